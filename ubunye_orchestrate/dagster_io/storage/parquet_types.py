"""The types that a parquet file gives back, and tables brought to them without a change of any value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ubunye_orchestrate.errors import HashError, StorageError
from ubunye_orchestrate.foreign import said
from ubunye_orchestrate.hashing.types import canonical_type

__all__ = ["WRITER_OPTIONS", "as_read_back", "cannot_hold", "with_types"]

# Nanoseconds and unsigned integers need 2.6; the Arrow schema beside it restores categories and zones.
WRITER_OPTIONS: dict[str, Any] = {"version": "2.6", "store_schema": True}


def as_read_back(schema: pa.Schema) -> pa.Schema:
    """Return the schema in types that parquet can write and gives back by the same canonical name.

    Raises StorageError, naming the column, for a type that parquet cannot hold.
    """
    kept = _with_field_types(schema, [_writable(arrow_type) for arrow_type in schema.types])
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(kept.empty_table(), sink, **WRITER_OPTIONS)
        back = pq.read_schema(pa.BufferReader(sink.getvalue()))
    except pa.ArrowException as e:
        raise cannot_hold(kept, e) from e
    types = [
        field.type if _canonical(read) == _canonical(field) else read.type
        for field, read in zip(kept, back, strict=True)
    ]
    return _with_field_types(kept, types)


def _with_field_types(schema: pa.Schema, types: list[pa.DataType]) -> pa.Schema:
    fields = [field.with_type(new) for field, new in zip(schema, types, strict=True)]
    return pa.schema(fields, schema.metadata)


def with_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch in the types of ``schema``, the batch itself where it has them."""
    if batch.schema.equals(schema) or not schema.names:
        return batch
    columns = [_as(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def cannot_hold(schema: pa.Schema, error: Exception) -> StorageError:
    """Return the error that says which column parquet cannot hold."""
    for field in schema:
        try:
            pq.write_table(pa.schema([field]).empty_table(), pa.BufferOutputStream(), **WRITER_OPTIONS)
        except pa.ArrowException as e:
            return StorageError(
                f"column {field.name!r} ({field.type}) cannot be stored as parquet ({said(e)}); convert "
                "or drop it"
            )
    return StorageError(f"the table cannot be stored as parquet: {said(error)}")


def _writable(arrow_type: pa.DataType) -> pa.DataType:
    """Replace what Arrow's parquet writer does not take by what holds the same values.

    Categories of views (Polars exports them) become categories of texts; runs become what they repeat.
    """
    if pa.types.is_run_end_encoded(arrow_type):
        return _writable(arrow_type.value_type)
    if pa.types.is_dictionary(arrow_type):
        values = arrow_type.value_type
        if pa.types.is_string_view(values):
            return pa.dictionary(arrow_type.index_type, pa.large_string(), arrow_type.ordered)
        if pa.types.is_binary_view(values):
            return pa.dictionary(arrow_type.index_type, pa.large_binary(), arrow_type.ordered)
        return arrow_type
    if pa.types.is_struct(arrow_type):
        return pa.struct([field.with_type(_writable(field.type)) for field in arrow_type.fields])
    if pa.types.is_map(arrow_type):
        return pa.map_(
            arrow_type.key_field.with_type(_writable(arrow_type.key_type)),
            arrow_type.item_field.with_type(_writable(arrow_type.item_type)),
            arrow_type.keys_sorted,
        )
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.list_(_writable_values(arrow_type), arrow_type.list_size)
    for is_kind, make in (
        (pa.types.is_list, pa.list_),
        (pa.types.is_large_list, pa.large_list),
        (pa.types.is_list_view, pa.list_view),
        (pa.types.is_large_list_view, pa.large_list_view),
    ):
        if is_kind(arrow_type):
            return make(_writable_values(arrow_type))
    return arrow_type


def _writable_values(list_type: pa.DataType) -> pa.Field:
    field = list_type.value_field
    return field.with_type(_writable(field.type))


def _as(column: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    if column.type.equals(arrow_type):
        return column
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    return column if column.type.equals(arrow_type) else column.cast(arrow_type)


def _canonical(field: pa.Field) -> str | None:
    try:
        return canonical_type(field.type, column=field.name)
    except HashError:
        # It has no hash in either form.
        return None
