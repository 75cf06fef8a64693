"""The port for other libraries: any object with ``schema`` and ``collect()``.

``schema`` (an attribute, or a method without arguments) gives the canonical type of each column: a mapping
of name to type name, or (name, type name) pairs. ``collect()`` gives the rows: a frame of a kind that is
known here, or an iterable of rows, each a mapping by name or a sequence in the schema's order. Values are
plain Python ones: None is null and NaN is NaN; an instant is an aware datetime, a ``timestamp_ntz`` a naive
one; a map is a mapping or (key, value) pairs.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from ubunye_orchestrate.errors import HashError, UnsupportedFrameError
from ubunye_orchestrate.hashing.frames.stream import ROWS_AT_ONCE, ArrowStream, from_source
from ubunye_orchestrate.hashing.frames.type_names import arrow_type
from ubunye_orchestrate.hashing.types import canonical_columns, canonical_type

__all__ = ["recognises", "row_count", "stream"]


def recognises(frame: object) -> bool:
    """Tell an object (not a class) with a schema and a method ``collect``."""
    return (
        not isinstance(frame, type) and callable(getattr(frame, "collect", None)) and hasattr(frame, "schema")
    )


def row_count(frame: object) -> None:
    """Return None: the port tells the number of rows only by giving them."""


def stream(frame: Any, open_known: Callable[[object], ArrowStream | None]) -> ArrowStream:
    """Collect the frame once and stream its rows.

    ``open_known`` opens a frame of a library that is known here, and gives None for anything else. Raises
    UnsupportedFrameError where the schema gives no canonical names, HashError where the rows are not what the
    schema declares.
    """
    schema = _schema(frame)
    collected = from_source(frame.collect)
    known = open_known(collected)
    if known is None:
        return ArrowStream(schema, _rows_as_batches(collected, schema), "port")
    declared, given = dict(canonical_columns(schema)), dict(canonical_columns(known.schema))
    for name in sorted(declared.keys() | given.keys()):
        if declared.get(name) != given.get(name):
            raise HashError(
                f"the schema declares {declared.get(name, 'no such column')}, collect() gave "
                f"{given.get(name, 'no such column')}",
                column=name,
            )
    return ArrowStream(known.schema, known.batches, "port")


def _schema(frame: Any) -> pa.Schema:
    schema = from_source(lambda: frame.schema() if callable(frame.schema) else frame.schema)
    pairs = list(schema.items()) if isinstance(schema, Mapping) else schema
    try:
        return pa.schema([pa.field(name, arrow_type(type_name)) for name, type_name in pairs])
    except (TypeError, ValueError) as e:
        raise UnsupportedFrameError(
            f"not a table ({type(frame).__name__}): its schema gives no canonical type names ({e}); expected "
            "a mapping like {'id': 'int64', 'at': 'timestamp'}"
        ) from e


def _rows_as_batches(collected: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if not isinstance(collected, Iterable):
        raise HashError(
            f"collect() gave a {type(collected).__name__}; expected a frame or an iterable of rows"
        )
    rows, done = iter(collected), 0
    while part := from_source(lambda: list(islice(rows, ROWS_AT_ONCE)), rows=done):
        columns = _columns(part, schema, done)
        arrays = [_array(values, field, done) for values, field in zip(columns, schema, strict=True)]
        if arrays:
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        else:
            yield pa.RecordBatch.from_struct_array(pa.array([{}] * len(part), pa.struct([])))
        done += len(part)


def _columns(part: list[Any], schema: pa.Schema, done: int) -> list[list[Any]]:
    columns: list[list[Any]] = [[] for _ in schema]
    for i, row in enumerate(part):
        values = [row.get(name) for name in schema.names] if isinstance(row, Mapping) else list(row)
        unknown = set(row) - set(schema.names) if isinstance(row, Mapping) else set()
        if unknown or len(values) != len(columns):
            what = f"a column {min(unknown, key=str)!r}" if unknown else f"{len(values)} values"
            raise HashError(
                f"collect() gave {what}; the schema declares {len(columns)} columns", row=done + i
            )
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    return columns


def _array(values: list[Any], field: pa.Field, done: int) -> pa.Array:
    for i, value in enumerate(values):
        if not _fits(value, field.type):
            raise _misfit(field, value, done + i)
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        for i, value in enumerate(values):
            try:
                pa.array([value], field.type)
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as e:
                raise _misfit(field, value, done + i) from e
        raise


def _misfit(field: pa.Field, value: object, row: int) -> HashError:
    return HashError(
        f"collect() gave a value ({type(value).__name__}) that the declared type does not hold exactly",
        column=field.name,
        type_name=canonical_type(field.type, column=field.name),
        row=row,
    )


def _fits(value: Any, t: pa.DataType) -> bool:
    """Tell whether a value is of the kind that a type holds; Arrow would coerce some others silently."""
    if value is None:
        return True
    if pat.is_list(t):
        return isinstance(value, list | tuple) and all(_fits(v, t.value_type) for v in value)
    if pat.is_map(t):
        if not isinstance(value, Mapping | list | tuple):
            return False
        pairs = value.items() if isinstance(value, Mapping) else value
        return all(_fits(k, t.key_type) and _fits(v, t.item_type) for k, v in pairs)
    if pat.is_struct(t):
        fields = {t.field(i).name: t.field(i).type for i in range(t.num_fields)}
        return isinstance(value, Mapping) and all(
            k in fields and _fits(v, fields[k]) for k, v in value.items()
        )
    return _fits_flat(value, t)


def _fits_flat(value: Any, t: pa.DataType) -> bool:
    if pat.is_boolean(t):
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if pat.is_integer(t):
        return isinstance(value, int)
    if pat.is_float32(t):
        return isinstance(value, int | float) and _is_float32(value)
    if pat.is_float64(t):
        return isinstance(value, int | float)
    if pat.is_decimal(t):
        return isinstance(value, int | Decimal)
    if pat.is_string(t):
        return isinstance(value, str)
    if pat.is_binary(t):
        return isinstance(value, bytes | bytearray)
    if pat.is_date(t):
        return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    if pat.is_timestamp(t):
        # A pandas Timestamp has nanoseconds, which the type's microseconds would cut.
        is_datetime = isinstance(value, datetime.datetime) and not getattr(value, "nanosecond", 0)
        return is_datetime and (value.tzinfo is None) == (t.tz is None)
    return pat.is_time(t) and isinstance(value, datetime.time) and value.tzinfo is None


def _is_float32(value: float) -> bool:
    try:
        (nearest,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return False
    return value != value or nearest == value
