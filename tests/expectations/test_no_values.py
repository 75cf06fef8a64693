"""What could not be checked is told without what the table holds: no cell, no secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import pandera.pandas as pandera
import polars as pl
import pyarrow as pa
import pytest

from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.expectations.evaluate import evaluate, measure
from ubunye_orchestrate.expectations.in_parts import TableInParts, evaluate_in_parts, measure_in_parts

CELL = "ann@secret.example"


def _raises(_: Any) -> Any:
    raise ValueError(f"{CELL} at postgres://u:hunter2@h/db")


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas of two kinds": lambda: pd.DataFrame({"mail": [1, CELL]}),
    "pandas of sets": lambda: pd.DataFrame({"mail": [{CELL}, {CELL}]}),
    "pandas categories": lambda: pd.DataFrame(
        {"mail": pd.Categorical([CELL], categories=[CELL], ordered=True)}
    ),
    "arrow": lambda: pa.table({"mail": [[CELL]]}),
    "arrow dictionary": lambda: pa.table({"mail": pa.array([CELL]).dictionary_encode()}),
    "polars": lambda: pl.DataFrame({"mail": [CELL]}, schema={"mail": pl.Enum([CELL])}),
    "polars objects": lambda: pl.DataFrame({"mail": pl.Series([{CELL}], dtype=pl.Object)}),
    "polars list of enumerations": lambda: pl.DataFrame(
        {"mail": [[CELL]]}, schema={"mail": pl.List(pl.Enum([CELL]))}
    ),
    "polars lazy": lambda: pl.LazyFrame({"mail": [CELL]}, schema={"mail": pl.Enum([CELL])}),
    "polars that raises": lambda: pl.LazyFrame({"mail": [1]}).map_batches(_raises),
    "polars that cannot cast": lambda: pl.LazyFrame({"mail": [CELL]}).cast({"mail": pl.Int64}),
    "duckdb": lambda: duckdb.sql(f"select '{CELL}'::enum('{CELL}') as mail"),
    "duckdb that cannot cast": lambda: duckdb.sql(
        f"select cast(a as int) as mail from (values ('{CELL}')) as t(a)"
    ),
    "no table": lambda: {CELL: 1},
}
RULES = [
    expect.not_null("mail"),
    expect.unique("mail"),
    expect.between("mail", 0),
    expect.between("mail", "a", "b"),
    expect.one_of("mail", [1]),
    expect.matches("mail", "x"),
    expect.columns({"mail": "int64"}),
]


def _says_nothing(text: str | None) -> None:
    for word in ("secret", "hunter2", "ann@"):
        assert word not in str(text)


@pytest.mark.parametrize("frame", FRAMES)
def test_what_another_library_says_is_not_repeated(frame: str) -> None:
    outcomes = evaluate(RULES, FRAMES[frame]())
    for one in outcomes:
        _says_nothing(one.detail)
    _says_nothing(str(measure(FRAMES[frame](), ["mail"])))


def test_the_column_and_the_kind_of_error_are_named() -> None:
    outcomes = evaluate(
        [expect.one_of("mail", [1]), expect.unique("mail", "id")],
        pl.LazyFrame({"mail": [1], "id": [1]}).map_batches(_raises),
    )
    assert [one.detail for one in outcomes] == [
        "not checked: ValueError at column 'mail'",
        "not checked: ValueError at columns 'mail', 'id'",
    ]
    (outcome,) = evaluate([expect.one_of("mail", [1])], pd.DataFrame({"mail": [1, CELL]}))
    assert outcome.detail == "not checked: ArrowInvalid at column 'mail'"
    assert measure(pl.LazyFrame({"n": [1]}).map_batches(_raises), ["n"]) == "ValueError at column 'n'"


def test_parts_that_cannot_be_read_say_nothing_of_what_they_hold() -> None:
    table = TableInParts(lambda: pa.schema([("mail", pa.int64())]), _raises)
    for one in evaluate_in_parts(RULES, table):
        assert not one.passed
        _says_nothing(one.detail)
    _says_nothing(str(measure_in_parts(table, ["mail"])))


@pytest.mark.parametrize(
    "column",
    [
        pandera.Column(str, pandera.Check(_raises)),
        pandera.Column(str, pandera.Check(_raises, element_wise=True)),
        pandera.Column(str, parsers=pandera.Parser(_raises)),
        pandera.Column(int, coerce=True),
        pandera.Column(str, pandera.Check(lambda one: one == "x", error="password=hunter2")),
        pandera.Column(str, pandera.Check(lambda one: one == "x", raise_warning=True)),
        pandera.Column(pandera.Category(categories=["x"]), coerce=True),
    ],
)
def test_a_schema_says_which_check_and_not_of_what(column: Any) -> None:
    schema = pandera.DataFrameSchema({"mail": column})
    (outcome,) = evaluate([expect.schema(schema)], pd.DataFrame({"mail": [CELL]}))
    assert not outcome.passed
    _says_nothing(outcome.detail)
