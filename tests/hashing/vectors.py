"""The golden vectors of rows-v1 (``tests/data/vectors``), read into Arrow without loss."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = Path(__file__).parent.parent / "data" / "vectors"

_FLAT = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "null": pa.null(),
}


def value_vectors() -> list[dict[str, Any]]:
    return _json_lines("values.jsonl")


def table_vectors() -> list[dict[str, Any]]:
    return _json_lines("tables.jsonl")


def _json_lines(name: str) -> list[dict[str, Any]]:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def arrow_table(vector: dict[str, Any]) -> pa.Table:
    """The table of one line of ``tables.jsonl``."""
    types = [(name, arrow_type(type_name)) for name, type_name in vector["schema"]]
    arrays = [
        pa.array([arrow_value(row[i], t) for row in vector["rows"]], t) for i, (_, t) in enumerate(types)
    ]
    if not types:
        # Rows without columns: only a struct array knows how many.
        structs = pa.array([{}] * len(vector["rows"]), pa.struct([]))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(structs)])
    return pa.Table.from_arrays(arrays, schema=pa.schema([pa.field(name, t) for name, t in types]))


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type that a canonical name most plainly stands for."""
    t, rest = _parse(name)
    assert not rest, name
    return t


def _parse(text: str) -> tuple[pa.DataType, str]:
    if text.startswith("list<"):
        item, rest = _parse(text[5:])
        return pa.list_(item), rest.removeprefix(">")
    if text.startswith("map<"):
        key, rest = _parse(text[4:])
        value, rest = _parse(rest.removeprefix(","))
        return pa.map_(key, value), rest.removeprefix(">")
    if text.startswith("struct<"):
        return _parse_struct(text[7:])
    if text.startswith("decimal("):
        arguments, rest = text[8:].split(")", 1)
        precision, scale = map(int, arguments.split(","))
        return pa.decimal128(precision, scale), rest
    name = next(n for n in sorted(_FLAT, key=len, reverse=True) if text.startswith(n))
    return _FLAT[name], text[len(name) :]


def _parse_struct(rest: str) -> tuple[pa.DataType, str]:
    fields = []
    while not rest.startswith(">"):
        name, rest = rest.removeprefix(",").split(":", 1)
        t, rest = _parse(rest)
        fields.append(pa.field(name, t))
    return pa.struct(fields), rest[1:]


def arrow_value(value: Any, t: pa.DataType) -> Any:
    """A vector's encoded value as what ``pa.array`` takes for the type."""
    if value is None:
        return None
    if pa.types.is_float64(t):
        return struct.unpack(">d", bytes.fromhex(value))[0]
    if pa.types.is_float32(t):
        return struct.unpack(">f", bytes.fromhex(value))[0]
    if pa.types.is_decimal(t):
        return Decimal(value)
    if pa.types.is_binary(t):
        return bytes.fromhex(value)
    if pa.types.is_list(t):
        return [arrow_value(item, t.value_type) for item in value]
    if pa.types.is_map(t):
        return [(arrow_value(k, t.key_type), arrow_value(v, t.item_type)) for k, v in value]
    if pa.types.is_struct(t):
        return {f.name: arrow_value(value.get(f.name), f.type) for f in _fields(t)}
    return value


def _fields(t: pa.DataType) -> Iterator[pa.Field]:
    return (t.field(i) for i in range(t.num_fields))
