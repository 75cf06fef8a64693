"""The types that a Delta table gives back, and Arrow data brought to them without a change of any value.

Delta has no unsigned integers, no halves, no times of day, no nanoseconds and no dictionaries. What has an
exact counterpart is brought to it before it is hashed and stored, so that the hash of what was stored equals
the hash of what is read; unsigned integers become what Spark makes of those in parquet files. What has none
is refused: delta-rs by itself would cut nanoseconds off without a word.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ubunye_orchestrate.errors import HashError, StorageError
from ubunye_orchestrate.foreign import said
from ubunye_orchestrate.hashing.kernels.encoded import positions_and_values, storage_of
from ubunye_orchestrate.hashing.kernels.maps import keys_and_items
from ubunye_orchestrate.hashing.kernels.nested import ElementsOf
from ubunye_orchestrate.hashing.types import canonical_columns, canonical_type, field_name

__all__ = ["aligned", "as_read", "as_stored", "compact", "same_columns", "with_stored_types"]

_UNSIGNED = (
    (pat.is_uint8, pa.int16()),
    (pat.is_uint16, pa.int32()),
    (pat.is_uint32, pa.int64()),
    (pat.is_uint64, pa.decimal128(20, 0)),
)
_AS_THEY_ARE = (
    *(pat.is_null, pat.is_boolean, pat.is_signed_integer, pat.is_float32, pat.is_float64, pat.is_date32),
    *(pat.is_string, pat.is_large_string, pat.is_binary, pat.is_large_binary),
)
_LARGE = (pat.is_large_list, pat.is_large_list_view)
_LISTS = (pat.is_list, pat.is_list_view, pat.is_fixed_size_list, *_LARGE)
_OTHER_BYTES = (pat.is_binary_view, pat.is_fixed_size_binary)


def as_stored(schema: pa.Schema) -> pa.Schema:
    """Return the schema in types that a Delta table holds and gives back by the same canonical name.

    Every column may be null. Raises StorageError for a type without an exact counterpart, and for names that
    Delta holds to be one (it does not tell ``a`` from ``A``), in structs too; it names the columns.
    """
    if not len(schema):
        raise StorageError("got a table without columns; a Delta table has one at least")
    names = _names(schema, "the table")
    return pa.schema([(name, _stored(schema.field(i).type, name)) for i, name in enumerate(names)])


def as_read(schema: pa.Schema) -> pa.Schema:
    """Return the schema in the types in which a table's rows are handed over, without fields' metadata."""
    return pa.schema([(field.name, _stored(field.type, field.name)) for field in schema])


def aligned(schema: pa.Schema, table: pa.Schema, shown: str) -> pa.Schema:
    """Return the schema of rows that go into a table beside others: the table's columns, in its order.

    A column of nothing but nulls takes the table's type. Raises StorageError that names what is missing, too
    much, or of another type. ``shown`` is what messages call the table.
    """
    missing = [name for name in table.names if name not in schema.names]
    added = [name for name in schema.names if name not in table.names]
    if missing or added:
        told = [f"lack {_listed(missing)}"] * bool(missing) + [f"have {_listed(added)} besides"] * bool(added)
        raise StorageError(
            f"the rows {' and '.join(told)}; expected the columns of {shown}: {_listed(table.names)}. The "
            "partitions of one table have the same columns; change the table first, or store it whole"
        )
    for wanted in table:
        given = schema.field(wanted.name).type
        if not _fits(given, wanted.type):
            raise StorageError(
                f"column {wanted.name!r} is {given} and {shown} holds {wanted.type}; convert the column, or "
                "store the table whole"
            )
    return pa.schema([(field.name, field.type) for field in table])


def same_columns(one: pa.Schema, other: pa.Schema) -> bool:
    """Tell whether two schemas have the same columns, whatever their order and Arrow's layout of them."""
    try:
        return canonical_columns(one) == canonical_columns(other)
    except HashError:
        return False


def with_stored_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the columns and types of ``schema``, which ``as_stored`` or ``aligned`` made.

    Raises StorageError, naming the column, for a value that its new type cannot hold.
    """
    columns = []
    for field in schema:
        column = batch.column(batch.schema.get_field_index(field.name))
        try:
            columns.append(_as(column, field.type))
        except pa.ArrowInvalid as e:
            raise StorageError(
                f"column {field.name!r} ({column.type}) holds a value that Delta cannot, which stores "
                f"{field.type} ({said(e)}); round or convert it before it is stored"
            ) from e
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with nested columns that begin at their own memory's begin.

    delta-rs' import of Arrow data ends the whole process at a slice of structs of structs.
    """
    if not any(pat.is_nested(t) for t in batch.schema.types):
        return batch
    columns = [
        # Joined with nothing: a copy.
        pa.concat_arrays([column, column.slice(0, 0)]) if pat.is_nested(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _names(fields: Iterable[pa.Field], where: str) -> list[str]:
    seen: dict[str, str] = {}
    names: list[str] = []
    for field in fields:
        try:
            name = field_name(field)
        except HashError as e:
            raise StorageError(str(e)) from e
        if "\x00" in name:
            raise StorageError(f"{where} has {name!r}; delta-rs cuts a name at its NUL; rename the column")
        known = seen.setdefault(name.lower(), name)
        if len(seen) == len(names):
            raise StorageError(
                f"{where} has {known!r} and {name!r}, which are one column to Delta (it ignores case); "
                "rename one of them"
            )
        names.append(name)
    return names


def _stored(t: pa.DataType, column: str) -> pa.DataType:
    if isinstance(t, pa.BaseExtensionType):
        return _stored(t.storage_type, column)
    if pat.is_run_end_encoded(t) or pat.is_dictionary(t):
        return _stored(t.value_type, column)
    if any(is_kind(t) for is_kind in _AS_THEY_ARE):
        return t
    for is_kind, counterpart in _UNSIGNED:
        if is_kind(t):
            return counterpart
    if pat.is_float16(t):
        return pa.float32()
    if pat.is_string_view(t):
        return pa.large_string()
    if any(is_kind(t) for is_kind in _OTHER_BYTES):
        return pa.large_binary()
    if pat.is_date64(t):
        return pa.date32()
    if pat.is_timestamp(t):
        return pa.timestamp("us", "UTC" if t.tz else None)
    if pat.is_decimal(t) and 0 <= t.scale <= t.precision <= 38:
        return pa.decimal128(t.precision, t.scale)
    if pat.is_map(t):
        return pa.map_(_stored(t.key_type, column), _stored(t.item_type, column))
    if any(is_kind(t) for is_kind in _LISTS):
        make = pa.large_list if any(is_kind(t) for is_kind in _LARGE) else pa.list_
        return make(_stored(t.value_type, column))
    if pat.is_struct(t) and t.num_fields:
        names = _names(t.fields, f"a struct in column {column!r}")
        return pa.struct([(name, _stored(t.field(i).type, column)) for i, name in enumerate(names)])
    raise StorageError(
        f"column {column!r} holds {t}, for which Delta has no type with the same values; convert it (a time "
        "of day to text or to a count, a larger decimal to text) or drop it"
    )


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    try:
        return canonical_type(one, column="") == canonical_type(other, column="")
    except HashError:
        # Not hashed in either form; delta-rs says what does not fit.
        return True


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether every value of one type is one of the other: the same, or null where that has more."""
    if pat.is_null(given):
        return True
    if pat.is_map(given) and pat.is_map(wanted):
        return _fits(given.key_type, wanted.key_type) and _fits(given.item_type, wanted.item_type)
    if all(any(is_kind(t) for is_kind in _LISTS) for t in (given, wanted)):
        return _fits(given.value_type, wanted.value_type)
    if pat.is_struct(given) and pat.is_struct(wanted):
        pairs = list(zip(given.fields, wanted.fields, strict=False))
        return given.num_fields == wanted.num_fields and all(
            a.name == b.name and _fits(a.type, b.type) for a, b in pairs
        )
    return _same(given, wanted)


def _as(array: pa.Array, t: pa.DataType) -> pa.Array:
    """Return the array as a type that ``_stored`` gives for its own, or that this one fits.

    By hand, since Arrow's cast knows no way for some layouts, and looks at what a null of the parent hides.
    """
    array = storage_of(array)
    if array.type.equals(t):
        return array
    if pat.is_dictionary(array.type) or pat.is_run_end_encoded(array.type):
        positions, stored = positions_and_values(array)
        return pc.take(_as(stored, t), positions)
    if pat.is_null(array.type):
        return pa.nulls(len(array), t)
    if pat.is_struct(t):
        children = [
            # Runs have no place for the nulls that flattening brings.
            array.field(i) if pat.is_run_end_encoded(storage_of(child).type) else child
            for i, child in enumerate(array.flatten())
        ]
        typed = [_as(child, field.type) for child, field in zip(children, t.fields, strict=True)]
        return pa.StructArray.from_arrays(typed, fields=list(t.fields), mask=array.is_null())
    if pat.is_map(t):
        elements = ElementsOf(array)
        keys, items = keys_and_items(array, elements)
        keys, items = _elements(elements, keys, t.key_type), _elements(elements, items, t.item_type)
        offsets = pa.array(elements.bounds, pa.int32())
        return pa.MapArray.from_arrays(offsets, keys, items, type=t, mask=array.is_null())
    if any(is_kind(t) for is_kind in _LISTS):
        elements = ElementsOf(array)
        values = _elements(elements, array.values, t.value_type)
        kind, index = (pa.LargeListArray, pa.int64()) if pat.is_large_list(t) else (pa.ListArray, pa.int32())
        return kind.from_arrays(pa.array(elements.bounds, index), values, type=t, mask=array.is_null())
    return array.cast(t)


def _elements(elements: ElementsOf, values: pa.Array, t: pa.DataType) -> pa.Array:
    stored, positions = elements.stored(values)
    typed = _as(stored, t)
    return typed if positions is None else pc.take(typed, pa.array(positions))


def _listed(names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:9]) + (f" and {len(shown) - 9} more" if len(shown) > 9 else "")
