"""Every engine breaks every rule as often on the same awkward table, whatever its columns are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.expectations.awkward import NAMES, by_name, encoded, named_rules, named_sums, values_table
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.expectations.evaluate import evaluate, measure
from ubunye_orchestrate.expectations.in_parts import TableInParts, evaluate_in_parts, measure_in_parts
from ubunye_orchestrate.expectations.outcomes import Measure, Outcome
from ubunye_orchestrate.expectations.rules import Rule


def _nullable(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.int8(): pd.Int8Dtype()}.get)


ENGINES: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow": lambda table: table,
    "parts": lambda table: pa.concat_tables([table.schema.empty_table(), table]),
    "pandas": lambda table: table.to_pandas(),
    "pandas nullable": _nullable,
    "pandas arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table: pl.from_arrow(table),
    "polars lazy": lambda table: pl.from_arrow(table).lazy(),
    "duckdb": lambda table: duckdb.from_arrow(table),
}


def _named(engine: str, table: pa.Table) -> Any:
    if engine == "duckdb":
        # DuckDB calls the second of two columns that differ in case only otherwise, when it reads Arrow's.
        names = ('"' + name.replace('"', '""') + '"' for name in NAMES)
        places = ", ".join(f"#{at + 1} as {name}" for at, name in enumerate(names))
        return duckdb.from_arrow(table).project(places)
    return ENGINES[engine](table.rename_columns(list(NAMES)))


def _evaluated(engine: str, rules: list[Rule], frame: Any) -> list[Outcome]:
    return evaluate_in_parts(rules, _in_parts(frame)) if engine == "parts" else evaluate(rules, frame)


def _in_parts(table: pa.Table) -> TableInParts:
    parts = [table.slice(0, 0), *(table.slice(at, 3) for at in range(0, table.num_rows, 3))]
    return TableInParts(lambda: table.schema, lambda columns: (part.select(list(columns)) for part in parts))


def _compare(engine: str, cases: list[tuple[Rule, int]], frame: Any, total: int) -> None:
    outcomes = _evaluated(engine, [rule for rule, _ in cases], frame)
    found = {
        (one.rule.kind, one.rule.columns, str(one.rule.options)): (
            one.failed,
            one.total,
            one.detail,
            one.passed,
        )
        for one in outcomes
    }
    assert found == {
        (rule.kind, rule.columns, str(rule.options)): (failed, total, None, failed == 0)
        for rule, failed in cases
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_means_its_column_and_no_other(engine: str) -> None:
    frame = _named(engine, by_name())
    _compare(engine, named_rules(), frame, 8)
    sums = named_sums()
    if engine == "parts":
        assert measure_in_parts(_in_parts(frame), list(sums)) == Measure(8, sums)
    else:
        assert measure(frame, list(sums)) == Measure(8, sums)
    (columns,) = _evaluated(engine, [expect.columns(NAMES, extra=False)], frame)
    assert columns.passed, columns.detail


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_that_only_looks_like_a_column_is_none(engine: str) -> None:
    table = pa.table({"a": [{"b": 1}], "X": [1], "y": [2]})
    frame = ENGINES[engine](table)
    rules = [expect.not_null(name) for name in ("a.b", "x", "*", "^y$", "`y`", '"y"', "c0", "Y")]
    outcomes = _evaluated(engine, rules, frame)
    assert [one.passed for one in outcomes] == [False] * len(rules)
    assert {str(one.detail).partition("has no")[0] for one in outcomes} == {"not checked: the table "}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_counts_alike(engine: str) -> None:
    # Without a type of its own for them, pandas makes floats of whole numbers beside nulls.
    table, cases = values_table(*(["int64"] if engine == "pandas" else []))
    _compare(engine, cases, ENGINES[engine](table), 8)


# What a library holds without knowing what it is has not passed; DuckDB reads the last one's runs wrongly.
UNKNOWN = {("polars lazy", "extension"), ("duckdb", "sparse union")}
MISREAD = {("duckdb", "runs of a dictionary")}


@pytest.mark.parametrize("encoding", encoded())
@pytest.mark.parametrize("engine", ENGINES)
def test_an_encoding_hides_nothing(engine: str, encoding: str) -> None:
    values, cases = encoded()[encoding]
    table = pa.table({"key": values, "other": range(len(values))})
    try:
        frame = ENGINES[engine](table)
    except (Exception, pl.exceptions.PanicException) as e:  # noqa: BLE001 - what it cannot hold it need not check
        pytest.skip(f"{engine} does not take it: {type(e).__name__}")
    if (engine, encoding) in MISREAD:
        assert frame.select("key").fetchall() != [(value,) for value in values.to_pylist()]
        return
    if (engine, encoding) in UNKNOWN:
        outcomes = evaluate([rule for rule, failed in cases if failed], frame)
        assert not any(one.passed for one in outcomes)
        return
    _compare(engine, cases, frame, len(values))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_table_breaks_nothing(engine: str) -> None:
    table, cases = values_table()
    empty = ENGINES[engine](table.slice(0, 0))
    _compare(engine, [(rule, 0) for rule, _ in cases], empty, 0)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+01:00", None])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_moment_is_the_same_in_every_zone_and_unit(engine: str, unit: str, zone: str | None) -> None:
    seconds = pa.array([0, 1_700_000_000, None], pa.timestamp("s"))
    table = pa.table({"at": seconds.cast(pa.timestamp(unit)).cast(pa.timestamp(unit, zone))})
    try:
        frame = ENGINES[engine](table)
    except Exception as e:  # noqa: BLE001 - Polars has no zones without a name
        pytest.skip(f"{engine} does not take it: {type(e).__name__}")
    suffix = "+00:00" if zone else ""
    cases = [
        (expect.between("at", f"2000-01-01T00:00:00{suffix}"), 1),
        (expect.between("at", max=f"1970-01-01T00:00:00{suffix}"), 1),
        (expect.between("at", f"1969-12-31T23:59:59.999999{suffix}"), 0),
        (expect.one_of("at", [f"1970-01-01T00:00:00{suffix}"]), 1),
        (expect.unique("at"), 0),
    ]
    if engine == "duckdb" and unit == "ns" and zone:
        # A type that Narwhals does not know.
        assert not any(one.passed for one in evaluate([rule for rule, failed in cases if failed], frame))
        return
    _compare(engine, cases, frame, 3)


CATEGORIES: dict[str, tuple[pd.Series[Any], list[tuple[Rule, int]]]] = {
    "whole numbers": (
        pd.Series([1, 7, None, 1]).astype("Int64").astype("category"),
        [(expect.between("key", 0, 5), 1), (expect.one_of("key", [7]), 2)],
    ),
    "floats": (
        pd.Series([0.0, 1.5, None, 0.0]).astype("category"),
        [(expect.between("key", -0.0, 0), 1), (expect.one_of("key", [-0.0]), 1)],
    ),
    "ordered texts": (
        pd.Series(pd.Categorical(["x", "z", None, "x"], categories=["z", "x"], ordered=True)),
        [
            (expect.between("key", "w", "y"), 1),
            (expect.one_of("key", ["z"]), 2),
            (expect.matches("key", "[xy]"), 1),
        ],
    ),
    "days": (
        pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02", None, "2024-01-01"])).astype("category"),
        [(expect.between("key", max="2024-01-01"), 1)],
    ),
    "of two kinds": (pd.Series([1, "a", None, 1]).astype("category"), []),
    "intervals": (pd.Series(pd.cut([1, 7, float("nan"), 1], [0, 5, 10])), []),
    "nothing": (
        pd.Series(pd.Categorical([None] * 4)),
        [(expect.between("key", 0), 0), (expect.one_of("key", ["a"]), 0), (expect.matches("key", "a"), 0)],
    ),
}


@pytest.mark.parametrize("kind", CATEGORIES)
def test_categories_are_held_against_their_values(kind: str) -> None:
    values, cases = CATEGORIES[kind]
    frame = pd.DataFrame({"key": values, "other": range(4)})
    nulls, alike = (4, 4) if kind == "nothing" else (1, 2)
    _compare(
        "pandas",
        [
            *cases,
            (expect.not_null("key"), nulls),
            (expect.unique("key"), alike),
            (expect.unique("key", "other"), 0),
        ],
        frame,
        4,
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_of_whole_numbers_do_not_wrap_around(engine: str) -> None:
    table = pa.table(
        {
            "int8": pa.array([120, 120, None], pa.int8()),
            "int64": pa.array([2**63 - 1, 2**63 - 1, 1], pa.int64()),
            "uint64": pa.array([2**64 - 1, 2**64 - 1, 1], pa.uint64()),
            "void": pa.nulls(3),
        }
    )
    sums = {"int8": 240, "int64": 2**64 - 1, "uint64": 2**65 - 1, "void": 0}
    found = (
        measure_in_parts(_in_parts(table), list(sums))
        if engine == "parts"
        else measure(ENGINES[engine](table), list(sums))
    )
    assert found == Measure(3, sums)
