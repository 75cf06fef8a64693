"""A table that is checked part by part breaks the same rules as one that is checked whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.expectations.evaluate import evaluate, measure
from ubunye_orchestrate.expectations.in_parts import TableInParts, evaluate_in_parts, measure_in_parts

SCHEMA = pa.schema([("number", pa.int64()), ("float", pa.float64()), ("text", pa.string())])
RULES = [
    *(expect.not_null(column) for column in SCHEMA.names),
    expect.unique("number"),
    expect.unique("text", "number"),
    expect.between("float", -1, 1),
    expect.one_of("text", ["a", "zz"]),
    expect.matches("text", "a?b"),
    expect.row_count(2, 8),
    expect.columns({"number": "int64", "nope": "string"}),
    expect.not_null("absent"),
    expect.between("text", 1),
]
ROW = st.fixed_dictionaries(
    {
        "number": st.one_of(st.none(), st.integers(-3, 3)),
        "float": st.one_of(st.none(), st.floats(-3, 3), st.just(float("nan"))),
        "text": st.one_of(st.none(), st.sampled_from(["", "a", "b", "ab", "zz"])),
    }
)


def in_parts(tables: Sequence[pa.Table]) -> TableInParts:
    def read(columns: Sequence[str]) -> Iterator[pa.Table]:
        for table in tables:
            yield table.select(list(columns))

    return TableInParts(lambda: SCHEMA, read)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(ROW, max_size=5), max_size=4))
def test_parts_count_as_the_whole(rows: list[list[dict[str, Any]]]) -> None:
    parts = [pa.Table.from_pylist(part, schema=SCHEMA) for part in rows]
    whole = pa.concat_tables([SCHEMA.empty_table(), *parts])
    assert evaluate_in_parts(RULES, in_parts(parts)) == evaluate(RULES, whole)
    assert measure_in_parts(in_parts(parts), ["number"]) == measure(whole, ["number"])


@pytest.mark.parametrize("columns", [["absent"], ["text"]])
def test_a_sum_that_there_is_not_is_said(columns: list[str]) -> None:
    assert measure_in_parts(in_parts([SCHEMA.empty_table()]), columns) == measure(
        SCHEMA.empty_table(), columns
    )


def test_only_the_columns_of_the_rules_are_read() -> None:
    asked: list[list[str]] = []

    def read(columns: Sequence[str]) -> Iterator[pa.Table]:
        asked.append(list(columns))
        yield SCHEMA.empty_table().select(list(columns))

    evaluate_in_parts([expect.not_null("float"), expect.unique("number")], TableInParts(lambda: SCHEMA, read))
    assert asked == [["float"], ["number"]]
