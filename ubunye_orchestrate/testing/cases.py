"""The tables that a backend is held to: every type of rows-v1, and what makes each of them hard."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["FAILURES", "TABLES", "Failure", "Table"]


@dataclass(frozen=True)
class Table:
    """A table with a hash."""

    name: str
    """What ``ConformanceSuite.unsupported`` calls it."""

    build: Callable[[], pa.Table]
    """Makes the Arrow table."""


@dataclass(frozen=True)
class Failure(Table):
    """A table that cannot be hashed, and the column that the error names."""

    column: str
    """The column at fault."""


def _column(name: str, values: list[Any], t: pa.DataType) -> tuple[Table, Table]:
    """Two tables of one column: without and with nulls."""
    return (
        Table(name, lambda: pa.table({"c": pa.array(values, t)})),
        Table(f"{name} with nulls", lambda: pa.table({"c": pa.array([None, *values, None], t)})),
    )


def _ticks(t: pa.DataType) -> Callable[[list[int]], pa.Array]:
    return lambda ticks: pa.array(ticks, pa.int32() if t.bit_width == 32 else pa.int64()).view(t)


def _from_ticks(name: str, ticks: list[int], t: pa.DataType) -> tuple[Table, Table]:
    """As ``_column``, for values outside what Python's own dates and times can say."""
    make = _ticks(t)
    return (
        Table(name, lambda: pa.table({"c": make(ticks)})),
        Table(f"{name} with nulls", lambda: pa.table({"c": pa.concat_arrays([pa.nulls(1, t), make(ticks)])})),
    )


def _ends(bits: int) -> list[int]:
    return [0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]


_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_NAN = float("nan")
_DAY = 86_400
_FLOATS = [
    0.0,
    -0.0,
    1.0,
    0.1,
    123456.789,
    9999999.0,
    1e7,
    1e-3,
    9.99e-4,
    1e23,
    5e-324,
    1.7976931348623157e308,
]
_FLOATS_32 = [0.0, -0.0, 0.25, 1234567.75, 1e7, 16777216.0, 2.0**-149, 2.0**100]
_TEXTS = [
    "",
    "plain",
    'a"b',
    "back\\slash",
    "\t\n\r\b\f",
    "\x00\x1f\x7f",
    "é ü",
    "\u2028",
    "\U0001f600",
    "a/b",
    " NaN",
]
_BYTES = [b"", b"\x00", b"\xff\xfe", b"abc", bytes(range(256))]
_DAYS = [0, -1, 18262, -719162, -354286, -141427, 2932896]  # to years 1, 1000, 1582 and 9999
_SECONDS = [0, -1, 1577836800, -62135596800, 253402300799, _DAY - 1]

TABLES: tuple[Table, ...] = (
    *(case for t in _SIGNED for case in _column(str(t), _ends(t.bit_width), t)),
    *(case for t in _UNSIGNED for case in _column(str(t), [0, 1, 2**t.bit_width - 1], t)),
    *_column("float16", [np.float16(x) for x in (0.5, -2.0, 65504.0)], pa.float16()),
    *_column("float32", _FLOATS_32, pa.float32()),
    *_column("float64", _FLOATS, pa.float64()),
    *_column("float64 infinite", [float("inf"), float("-inf")], pa.float64()),
    *_column("float32 not a number", [_NAN, 1.5], pa.float32()),
    *_column("float64 not a number", [_NAN, 1.5], pa.float64()),
    *_column("bool", [True, False], pa.bool_()),
    *_column("string", _TEXTS, pa.string()),
    *_column("large_string", _TEXTS, pa.large_string()),
    *_column("string_view", [*_TEXTS, "a text that is stored out of line"], pa.string_view()),
    *_column("binary", _BYTES, pa.binary()),
    *_column("large_binary", _BYTES, pa.large_binary()),
    *_column("fixed_size_binary", [b"abc", b"\x00\xff\x00"], pa.binary(3)),
    *_from_ticks("date", _DAYS, pa.date32()),
    *_from_ticks("date64", [day * _DAY * 1000 for day in _DAYS], pa.date64()),
    *_from_ticks("timestamp[s]", _SECONDS, pa.timestamp("s", "UTC")),
    *_from_ticks("timestamp[ms]", [s * 10**3 + 7 for s in _SECONDS], pa.timestamp("ms", "UTC")),
    *_from_ticks("timestamp[us]", [s * 10**6 + 7 for s in _SECONDS], pa.timestamp("us", "UTC")),
    *_from_ticks("timestamp[ns]", [0, 1, -1, 10**18, 10**18 + 1000], pa.timestamp("ns", "UTC")),
    *_from_ticks(
        "timestamp of another zone", [s * 10**6 for s in _SECONDS], pa.timestamp("us", "America/New_York")
    ),
    *_from_ticks("timestamp_ntz[s]", _SECONDS, pa.timestamp("s")),
    *_from_ticks("timestamp_ntz[ms]", [s * 10**3 + 7 for s in _SECONDS], pa.timestamp("ms")),
    *_from_ticks("timestamp_ntz[us]", [s * 10**6 + 7 for s in _SECONDS], pa.timestamp("us")),
    *_from_ticks("timestamp_ntz[ns]", [0, 1, -1, 10**18, 10**18 + 1000], pa.timestamp("ns")),
    *_from_ticks("time32[s]", [0, 1, _DAY - 1], pa.time32("s")),
    *_from_ticks("time32[ms]", [0, 1, _DAY * 1000 - 1], pa.time32("ms")),
    *_from_ticks("time64[us]", [0, 1, _DAY * 10**6 - 1], pa.time64("us")),
    *_from_ticks("time64[ns]", [0, 1, _DAY * 10**9 - 1], pa.time64("ns")),
    *_column("decimal", [Decimal("0.00"), Decimal("-12.30"), Decimal("99999999.99")], pa.decimal128(10, 2)),
    *_column(
        "decimal of small values",
        [Decimal("0E-8"), Decimal("1E-8"), Decimal("-1.00000000")],
        pa.decimal128(18, 8),
    ),
    *_column("decimal of 38 digits", [Decimal(10**38 - 1), Decimal(-1)], pa.decimal128(38, 0)),
    *_column("decimal256", [Decimal(10**75), Decimal(-1)], pa.decimal256(76, 0)),
    Table("null", lambda: pa.table({"c": pa.nulls(3)})),
    *_column("list", [[1, None], [], [2]], pa.list_(pa.int64())),
    *_column("large_list", [["a", None], [], ["b"]], pa.large_list(pa.string())),
    *_column("fixed_size_list", [[1, 2], [3, None]], pa.list_(pa.int32(), 2)),
    *_column("list of null", [[None], [], [None, None]], pa.list_(pa.null())),
    *_column("list of list", [[[1], None, []], []], pa.list_(pa.list_(pa.int8()))),
    *_column(
        "struct",
        [{"b": 1, "a": "x"}, {"b": None, "a": None}],
        pa.struct([("b", pa.int64()), ("a", pa.string())]),
    ),
    *_column("list of struct", [[{"a": 1.5}, None], []], pa.list_(pa.struct([("a", pa.float64())]))),
    *_column(
        "struct of struct", [{"s": {"a": 1}}, {"s": None}], pa.struct([("s", pa.struct([("a", pa.int8())]))])
    ),
    *_column("map", [[("b", 1), ("a", None)], []], pa.map_(pa.string(), pa.int64())),
    *_column("map of integer keys", [[(10, "x"), (9, "y")]], pa.map_(pa.int32(), pa.string())),
    *_column("map of date keys", [[(datetime.date(2020, 1, 1), 1)]], pa.map_(pa.date32(), pa.int8())),
    *_column("map of lists", [[("k", [1, None])], []], pa.map_(pa.string(), pa.list_(pa.int8()))),
    Table("dictionary", lambda: pa.table({"c": pa.array(["a", None, "b", "a"]).dictionary_encode()})),
    Table(
        "dictionary of integers",
        lambda: pa.table({"c": pa.array([7, None, 7], pa.int64()).dictionary_encode()}),
    ),
    Table("no rows", lambda: pa.table({"a": pa.array([], pa.int32()), "b": pa.array([], pa.string())})),
    Table("no columns", lambda: pa.table({})),
    Table("rows without columns", lambda: pa.table({"a": [1, 2, 3]}).select([])),
    Table("rows of nulls", lambda: pa.table({"a": pa.nulls(2, pa.int32()), "b": pa.nulls(2, pa.string())})),
    Table("equal rows", lambda: pa.table({"a": ["x", "x", "y"], "b": [1, 1, 2]})),
    Table(
        "chunks",
        lambda: pa.table(
            {"a": pa.chunked_array([[1, 2], [], [3]], pa.int64()), "b": pa.chunked_array([["x"], ["y", "z"]])}
        ),
    ),
    Table("slice", lambda: pa.table({"a": list(range(50)), "b": [str(i) for i in range(50)]}).slice(17, 20)),
    Table(
        "many rows", lambda: pa.table({"a": list(range(70_000)), "b": [str(i % 97) for i in range(70_000)]})
    ),
    Table("names that differ in case", lambda: pa.table({"id": [1], "ID": [2], "Id": [3]})),
    Table(
        "awkward names",
        lambda: pa.table(
            {name: [1] for name in ("a b", "a.b", 'q"', "ta\tb", "é", "\U0001f600", "～", "<a:b>", "`", "1")}
        ),
    ),
    Table("an empty name", lambda: pa.table({"": [1], "a": [2]})),
)
"""Tables whose hash every backend that can hold them must give."""


def _invalid_text() -> pa.Table:
    offsets = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    return pa.table({"fine": [1, 2], "c": pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"a\xff"))})


FAILURES: tuple[Failure, ...] = (
    Failure("duration", lambda: pa.table({"fine": [1], "c": pa.array([1], pa.duration("us"))}), "c"),
    Failure("list of duration", lambda: pa.table({"c": pa.array([[1]], pa.list_(pa.duration("us")))}), "c"),
    Failure("interval", lambda: pa.table({"c": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), "c"),
    Failure(
        "map of binary keys",
        lambda: pa.table({"c": pa.array([[(b"k", 1)]], pa.map_(pa.binary(), pa.int8()))}),
        "c",
    ),
    Failure(
        "map with equal keys",
        lambda: pa.table({"c": pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int8()))}),
        "c",
    ),
    Failure("text that is not Unicode", _invalid_text, "c"),
    Failure(
        "columns of one name", lambda: pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["c", "c"]), "c"
    ),
)
"""Tables that no backend may give a hash for."""
