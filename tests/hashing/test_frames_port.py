"""The port: any object with a schema of canonical names and collect()."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.hashing.expected import assert_stands_for, failure
from tests.hashing.vectors import arrow_table as vector_table
from tests.hashing.vectors import table_vectors
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.frames.type_names import arrow_type
from ubunye_orchestrate.hashing.types import canonical_type

UTC = dt.timezone.utc
NOON = dt.datetime(2020, 1, 1, 12)


class Port:
    def __init__(self, schema: Any, rows: Any) -> None:
        self.schema = schema
        self.rows = rows
        self.collected = 0

    def collect(self) -> Any:
        self.collected += 1
        return self.rows


def one(type_name: str, *values: Any) -> Port:
    return Port({"c": type_name}, [{"c": value} for value in values])


@pytest.mark.parametrize(
    ("type_name", "values"),
    [
        ("int8", [1, None, -128]),
        ("uint64", [2**64 - 1]),
        ("float32", [0.5, float("nan"), float("inf"), None, 3]),
        ("float64", [0.1, float("nan"), None, 7]),
        ("bool", [True, None]),
        ("string", ["a", None, "\U0001f600"]),
        ("binary", [b"\x00", bytearray(b"a"), None]),
        ("date", [dt.date(1, 1, 1), None]),
        ("timestamp", [NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=1)))]),
        ("timestamp_ntz", [NOON, None]),
        ("time64[us]", [dt.time(1, 2, 3)]),
        ("decimal(5,2)", [Decimal("1.5"), Decimal("-0.01"), 3, None]),
        ("decimal(40,0)", [Decimal(10**39)]),
        ("null", [None]),
        ("list<list<int32>>", [[[1, None], None], [], None]),
        ("map<string,list<date>>", [{"b": [dt.date(1, 1, 1)], "a": None}, [("x", [])], None]),
        ("struct<a:int8,b:struct<>>", [{"a": 1, "b": {}}, {"b": None}, None]),
        ("struct<`a:b`:int8,`c``d,<>`:list<string>>", [{"a:b": 1, "c`d,<>": ["x"]}]),
        ("struct<:int8>", [{"": 1}]),
    ],
)
def test_values_of_every_type(type_name: str, values: list[Any]) -> None:
    t = arrow_type(type_name)
    assert canonical_type(t, column="c") == type_name
    plain = [dict(v) if isinstance(v, list) and pa.types.is_map(t) else v for v in values]
    assert_stands_for(one(type_name, *values), pa.table({"c": pa.array(plain, t)}))


@pytest.mark.parametrize(
    "vector",
    [v for v in table_vectors() if not v["name"].startswith("timestamps_far")],
    ids=lambda v: v["name"],
)
def test_the_type_names_of_the_vectors(vector: dict[str, Any]) -> None:
    for name, type_name in vector["schema"]:
        assert canonical_type(arrow_type(type_name), column=name) == type_name
    table = vector_table(vector)
    port = Port(vector["schema"], table)
    assert fingerprint(port).data_hash == vector["data_hash"]


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("int32", 1.0),
        ("int32", True),
        ("int32", 2**31),
        ("int32", "1"),
        ("uint8", -1),
        ("float64", 2**53 + 1),
        ("float64", True),
        ("float64", "1"),
        ("float32", 0.1),
        ("float32", 1e300),
        ("bool", 1),
        ("string", b"a"),
        ("string", "\ud800"),
        ("binary", "a"),
        ("date", NOON),
        ("timestamp", NOON),
        ("timestamp_ntz", NOON.replace(tzinfo=UTC)),
        ("timestamp_ntz", pd.Timestamp(1)),
        ("timestamp_ntz", NOON.date()),
        ("time64[us]", dt.time(1, tzinfo=UTC)),
        ("decimal(5,2)", Decimal("1.555")),
        ("decimal(5,2)", 1.5),
        ("decimal(2,1)", Decimal("100")),
        ("null", 1),
        ("list<int32>", "12"),
        ("list<int32>", [1, "a"]),
        ("list<string>", [b"a"]),
        ("map<string,int32>", {"a": "b"}),
        ("map<string,int32>", {1: 1}),
        ("map<string,int32>", 5),
        ("struct<a:int8>", {"b": 1}),
        ("struct<a:int8>", 5),
        ("struct<a:int8>", {"a": 1.5}),
    ],
)
def test_values_that_the_declared_type_does_not_hold_exactly(type_name: str, value: Any) -> None:
    got = failure(one(type_name, None, value))
    assert got.error is not None
    assert got.error.startswith(f"column 'c' ({type_name}), row 1: ")
    assert got.schema_hash is not None


@pytest.mark.parametrize("as_method", [False, True])
@pytest.mark.parametrize("as_pairs", [False, True])
@pytest.mark.parametrize("as_tuples", [False, True])
def test_shapes_of_schema_and_rows(as_method: bool, as_pairs: bool, as_tuples: bool) -> None:
    declared: Any = [("b", "string"), ("a", "int64")] if as_pairs else {"b": "string", "a": "int64"}
    rows = (("x", 1), (None, 2)) if as_tuples else [{"b": "x", "a": 1}, {"a": 2}]
    port = Port((lambda: declared) if as_method else declared, iter(rows))
    assert_stands_for(port, pa.table({"a": [1, 2], "b": ["x", None]}))
    assert port.collected == 1


def test_collect_may_give_a_frame_that_is_known() -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    assert_stands_for(Port({"a": "int64"}, frame), pa.table({"a": [1, 2]}))
    for declared, name in (({"a": "int32"}, "a"), ({"a": "int64", "b": "string"}, "b"), ({}, "a")):
        got = failure(Port(declared, frame))
        assert got.error is not None
        assert got.error.startswith(f"column {name!r}: the schema declares")


def test_rows_without_columns_count() -> None:
    assert_stands_for(Port({}, [{}, {}]), pa.table({"x": [1, 2]}).select([]))
    assert_stands_for(Port({"a": "int64"}, []), pa.table({"a": pa.array([], pa.int64())}))


@pytest.mark.parametrize("row", [{"a": 1, "b": 2}, (1, 2), ()])
def test_rows_of_another_shape(row: Any) -> None:
    got = failure(Port({"a": "int64"}, [{"a": 1}, row]))
    assert got.error is not None
    assert got.error.startswith("row 1: ")


def test_rows_that_are_none() -> None:
    got = failure(Port({"a": "int64"}, 5))
    assert got.error == "collect() gave a int; expected a frame or an iterable of rows"


@pytest.mark.parametrize(
    "schema",
    [
        {"a": "bigint"},
        {"a": int},
        {"a": "list<int32"},
        {"a": "map<int32>"},
        {"a": "struct<a>"},
        {"a": ""},
        {"a": "int32>"},
        {1: "int32"},
        5,
        None,
        ["a"],
        {"a": "decimal(1)"},
        {"a": "decimal(99,0)"},
        "ab",
    ],
)
def test_a_schema_without_canonical_names_is_no_table(schema: Any) -> None:
    got = failure(Port(schema, []))
    assert got.error is not None
    assert got.error.startswith("not a table (Port)")


def test_what_the_port_raises_is_the_sources_failure() -> None:
    class Broken(Port):
        def collect(self) -> Any:
            raise RuntimeError("not today")

    got = failure(Broken({"a": "int64"}, []))
    assert got.error is not None
    assert "RuntimeError: not today" in got.error
    half = failure(Port({"a": "int64"}, ({"a": 1 // (70_000 - i)} for i in range(80_000))))
    assert half.error is not None
    assert "the source failed after 65536 rows (ZeroDivisionError" in half.error


def test_an_array_is_not_a_list_of_values() -> None:
    got = failure(one("list<float64>", np.array([1.5])))
    assert got.error is not None
    assert "ndarray" in got.error
