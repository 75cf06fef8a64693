"""A pattern means the same to every engine that may read it, or is refused where it is written."""

from __future__ import annotations

import re

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.expectations.patterns import java_pattern, plain_pattern

TEXTS = [
    "abc",
    "ABC",
    "a1",
    "a\n",
    "\n",
    "",
    " ",
    "\u00a0",
    "é",
    "É",
    "٣",
    "a-b",
    "x_y",
    "[",
    "a]",
    "ß",
    "\v",
    "a.c",
]
PATTERNS = {
    "[a-z]+": ["abc"],
    "^[a-z]+$": ["abc"],
    "a|abc": ["abc"],
    r"\w+\d?": ["abc", "ABC", "a1", "x_y"],
    r"\d": [],
    r"\s": ["\n", " "],
    r"\S": ["\u00a0", "é", "É", "٣", "[", "ß", "\v"],
    r"[^\d-]{3}": ["abc", "ABC", "x_y", "a.c"],
    "(?i)[A-C]{3}": ["abc", "ABC"],
    "(?i)é": ["é", "É"],
    "a.": ["a1", "a]"],
    "(?s)a.": ["a1", "a\n", "a]"],
    r"a\.c": ["a.c"],
    r"[\[\]a]+": ["[", "a]"],
}


@pytest.mark.parametrize(("pattern", "matching"), PATTERNS.items())
def test_every_engine_matches_the_same_texts_as_a_whole(pattern: str, matching: list[str]) -> None:
    expect.matches("text", pattern)
    plain = plain_pattern(pattern)
    by_arrow = pc.match_substring_regex(pa.array(TEXTS), plain).to_pylist()
    assert [text for text, matched in zip(TEXTS, by_arrow, strict=True) if matched] == matching
    assert pl.Series(TEXTS).str.contains(plain).to_list() == by_arrow
    table = pa.table({"text": TEXTS})
    by_duckdb = duckdb.from_arrow(table).select(
        duckdb.FunctionExpression(
            "regexp_matches", duckdb.ColumnExpression("text"), duckdb.ConstantExpression(plain)
        )
    )
    assert [row[0] for row in by_duckdb.fetchall()] == by_arrow


def test_java_gets_its_own_flags() -> None:
    assert java_pattern("(?i)a.b$") == r"(?diu)\A(?:a.b\z)\z"


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)b",
        "(?!a)b",
        "(?<=a)b",
        "(?<!a)b",
        r"(a)\1",
        "(?>a)",
        "a++",
        r"a\b",
        r"\p{L}",
        r"\Qa\E",
        "(?P<n>a)",
        "(?<n>a)",
        "a(?i)b",
        "(?m)a",
        "[[:alpha:]]",
        "[a&&b]",
        "[a--b]",
        r"[\D]",
        r"[\w-z]",
        r"[+-\d]",
        "[]a]",
        "a{",
        "a{,3}",
        "a{1001}",
        "(",
        "a)|(b",
        "[a",
        "\\",
    ],
)
def test_what_engines_read_differently_is_refused_where_it_is_written(pattern: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(repr(pattern))):
        expect.matches("text", pattern)
