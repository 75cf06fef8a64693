"""DuckDB relations."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.hashing.expected import assert_stands_for, failure
from ubunye_orchestrate.hashing.api import arrow_table, fingerprint

NOON = dt.datetime(2020, 1, 1, 12)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.sql("set TimeZone = 'America/New_York'")
        yield connection


@pytest.mark.parametrize(
    ("sql", "value", "t"),
    [
        ("1::tinyint", 1, pa.int8()),
        ("18446744073709551615::ubigint", 2**64 - 1, pa.uint64()),
        ("170141183460469231731687303715884105727::hugeint", Decimal(2**127 - 1), pa.decimal256(39, 0)),
        ("sum(2)", Decimal(2), pa.decimal128(38, 0)),
        ("'nan'::double", float("nan"), pa.float64()),
        ("1.5::float", 1.5, pa.float32()),
        ("true", True, pa.bool_()),
        ("'a\"b'", 'a"b', pa.string()),
        ("'x'::blob", b"x", pa.binary()),
        ("'b'::enum('a', 'b')", "b", pa.string()),
        ("date '0001-01-01'", dt.date(1, 1, 1), pa.date32()),
        ("time '01:02:03'", dt.time(1, 2, 3), pa.time64("us")),
        ("timestamp '2020-01-01 12:00:00'", NOON, pa.timestamp("us")),
        (
            "timestamptz '2020-01-01 12:00:00+00'",
            NOON.replace(tzinfo=dt.timezone.utc),
            pa.timestamp("us", "UTC"),
        ),
        ("1.50::decimal(10, 2)", Decimal("1.50"), pa.decimal128(10, 2)),
        ("[1, null]", [1, None], pa.list_(pa.int32())),
        ("[1, 2]::int[2]", [1, 2], pa.list_(pa.int32())),
        (
            "{'a': 1, 'b': null::varchar}",
            {"a": 1, "b": None},
            pa.struct([("a", pa.int32()), ("b", pa.string())]),
        ),
        ("map {'b': 1, 'a': 2}", [("a", 2), ("b", 1)], pa.map_(pa.string(), pa.int32())),
        ("'550e8400-e29b-41d4-a716-446655440000'::uuid", "550e8400-e29b-41d4-a716-446655440000", pa.string()),
    ],
)
def test_every_type(connection: duckdb.DuckDBPyConnection, sql: str, value: Any, t: pa.DataType) -> None:
    relation = connection.sql(f"select {sql} as c")
    if t == pa.decimal256(39, 0):  # DuckDB's name for it: 38 digits, one fewer than fit into its bits
        assert fingerprint(relation).columns == (("c", "decimal(38,0)"),)
        assert fingerprint(relation).error is None
        assert arrow_table(relation).column("c").cast(t).to_pylist() == [value]
        return
    assert_stands_for(relation, pa.table({"c": pa.array([value], t)}))


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("current_time::timetz", "TIME WITH TIME ZONE"),
        ("[current_time::timetz]", "TIME WITH TIME ZONE"),
        ("1::uhugeint", "UHUGEINT"),
        ("{'a': [1::uhugeint]}", "UHUGEINT"),
        ("map {'a': 1::uhugeint}", "UHUGEINT"),
        ("[1::uhugeint]::uhugeint[1]", "UHUGEINT"),
        ("interval 1 day", "interval"),
        ("union_value(x := 1)", "union"),
    ],
)
def test_types_that_would_lose_something(connection: duckdb.DuckDBPyConnection, sql: str, named: str) -> None:
    got = failure(connection.sql(f"select 1 as fine, {sql} as c"))
    assert got.error is not None
    assert got.error.startswith("column 'c' (")
    assert named in got.error


def test_columns_that_differ_only_in_case_are_two_and_equal_names_a_failure(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    assert_stands_for(
        connection.sql("select 1 as sf_gsp, 2 as SF_GSP"),
        pa.table({"sf_gsp": pa.array([1], pa.int32()), "SF_GSP": pa.array([2], pa.int32())}),
    )
    got = failure(connection.sql("select 1 as a, 2 as a"))
    assert got.error is not None
    assert got.error.startswith("column 'a': 2 columns have this name")


def test_a_large_result_comes_in_batches(connection: duckdb.DuckDBPyConnection) -> None:
    relation = connection.sql("select range as a from range(200000)")
    assert_stands_for(relation, pa.table({"a": pa.array(range(200_000), pa.int64())}))
    nothing = connection.sql("select range as a from range(10) where range > 10")
    assert_stands_for(nothing, pa.table({"a": pa.array([], pa.int64())}))


def test_the_users_relation_is_not_consumed(connection: duckdb.DuckDBPyConnection) -> None:
    relation = connection.sql("select range as a from range(5)")
    assert fingerprint(relation).row_count == 5
    assert fingerprint(relation).row_count == 5
    assert relation.fetchall() == [(i,) for i in range(5)]


def test_a_relation_half_fetched_is_hashed_whole(connection: duckdb.DuckDBPyConnection) -> None:
    relation = connection.sql("select range as a from range(5)")
    if not hasattr(type(relation), "fetchone"):
        pytest.skip("relations keep no result between calls in this DuckDB")
    relation.fetchone()
    assert fingerprint(relation).row_count == 5
    assert len(relation.fetchall()) == 4


def test_a_query_that_fails_while_it_runs(connection: duckdb.DuckDBPyConnection) -> None:
    got = failure(connection.sql("select error('not today') as a from range(3)"))
    assert got.error is not None
    assert "the rows could not all be read: the source failed before the first row" in got.error
    assert "not today" in got.error
