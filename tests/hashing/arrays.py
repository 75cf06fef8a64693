"""Arrow arrays of any type from plain values, on purpose laid out in awkward ways.

A plain value is None, an int (also for dates, times and timestamps, in the type's unit), a float, a bool, a
str, bytes, a Decimal, a list, for a map a list of pairs, for a struct a tuple of its fields' values.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat


class Tagged(pa.ExtensionType):
    """An extension type with nothing of its own: hashed by its storage."""

    def __init__(self, storage: pa.DataType) -> None:
        # Inside runs Arrow holds all extension types equal (pyarrow 26): caches tell them by the name.
        super().__init__(storage, f"tests.tagged.{storage}")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    def __hash__(self) -> int:
        return hash((Tagged, self.storage_type))

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Tagged:
        return cls(storage)


def plain_array(values: list[Any], t: pa.DataType, *, awkward: bool = False) -> pa.Array:
    """The values as an array of type ``t``.

    ``awkward`` gives every array, nested ones too, an offset and a tail that do not belong to it, and puts
    values where a null hides them; nothing of that may ever show.
    """
    if not awkward:
        return _array(values, t, awkward=False)
    hidden = hidden_value(t)
    return _array([hidden, *values, hidden, hidden], t, awkward=True).slice(1, len(values))


def hidden_value(t: pa.DataType) -> Any:
    """Some value of the type that is not null, to stand where it must not be seen."""
    if isinstance(t, pa.BaseExtensionType):
        return hidden_value(t.storage_type)
    if pat.is_null(t):
        return None
    if pat.is_dictionary(t) or pat.is_run_end_encoded(t):
        return hidden_value(t.value_type)
    if pat.is_fixed_size_list(t):
        return [hidden_value(t.value_type)] * t.list_size
    if is_list(t):
        return [hidden_value(t.value_type)]
    if pat.is_map(t):
        return [] if pat.is_null(t.key_type) else [(hidden_value(t.key_type), hidden_value(t.item_type))]
    if pat.is_struct(t):
        return tuple(hidden_value(t.field(i).type) for i in range(t.num_fields))
    if pat.is_fixed_size_binary(t):
        return b"h" * t.byte_width
    if pat.is_decimal(t):
        return Decimal(0)
    if pat.is_floating(t):
        return 0.5
    if is_string(t):
        return "hidden"
    if is_binary(t):
        return b"hidden"
    return False if pat.is_boolean(t) else 0


def is_list(t: pa.DataType) -> bool:
    kinds = pat.is_list, pat.is_large_list, pat.is_fixed_size_list, pat.is_list_view, pat.is_large_list_view
    return any(is_kind(t) for is_kind in kinds)


def is_string(t: pa.DataType) -> bool:
    return bool(pat.is_string(t) or pat.is_large_string(t) or pat.is_string_view(t))


def is_binary(t: pa.DataType) -> bool:
    kinds = pat.is_binary, pat.is_large_binary, pat.is_binary_view, pat.is_fixed_size_binary
    return any(is_kind(t) for is_kind in kinds)


def _array(values: list[Any], t: pa.DataType, *, awkward: bool) -> pa.Array:
    if isinstance(t, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(t, plain_array(values, t.storage_type, awkward=awkward))
    if pat.is_dictionary(t):
        return _dictionary(values, t, awkward)
    if pat.is_run_end_encoded(t):
        return _runs(values, t, awkward)
    if pat.is_map(t):
        offsets, entries = _flattened(values, hidden_value(t) if awkward else [])
        keys = plain_array([k for k, _ in entries], t.key_type, awkward=awkward)
        items = plain_array([v for _, v in entries], t.item_type, awkward=awkward)
        offsets_array = pa.array(offsets, pa.int32())
        return pa.MapArray.from_arrays(offsets_array, keys, items, type=t, mask=_mask(values))
    if is_list(t):
        return _lists(values, t, awkward)
    if pat.is_struct(t):
        return _structs(values, t, awkward)
    if pat.is_float16(t):
        halves = np.array([0 if v is None else v for v in values], np.float16)
        return pa.array(halves, t, mask=np.array([v is None for v in values], bool), from_pandas=False)
    if is_string(t) and any(isinstance(v, bytes) for v in values):
        # Bytes for a string: those that are no text, which Arrow would refuse to make one of.
        data = [v.encode() if isinstance(v, str) else v for v in values]
        return pa.array(data, _BINARY_LIKE[t]).view(t)
    return pa.array(values, t, from_pandas=False)


_BINARY_LIKE = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def _mask(values: list[Any]) -> pa.Array:
    return pa.array([v is None for v in values], pa.bool_())


def _validity(values: list[Any]) -> pa.Buffer:
    return pa.array([v is not None for v in values], pa.bool_()).buffers()[1]


def _dictionary(values: list[Any], t: pa.DictionaryType, awkward: bool) -> pa.Array:
    entries: list[Any] = [None, hidden_value(t.value_type)] if awkward else []
    indices: list[int | None] = []
    for i, value in enumerate(values):
        if value is None:
            # A null may be a null index, or an index to a null entry.
            indices.append(0 if awkward and i % 2 else None)
            continue
        entries.append(value)
        indices.append(len(entries) - 1)
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, t.index_type), plain_array(entries, t.value_type, awkward=awkward)
    )


def _runs(values: list[Any], t: pa.DataType, awkward: bool) -> pa.Array:
    ends: list[int] = []
    entries: list[Any] = []
    for i, value in enumerate(values):
        if entries and repr(entries[-1]) == repr(value):
            ends[-1] = i + 1
        else:
            entries.append(value)
            ends.append(i + 1)
    children = [pa.array(ends, t.run_end_type), plain_array(entries, t.value_type, awkward=awkward)]
    # RunEndEncodedArray.from_arrays would refuse values that are faulty on purpose.
    return pa.Array.from_buffers(t, len(values), [None], 0, 0, children)


def _flattened(values: list[Any], hidden: list[Any]) -> tuple[list[int], list[Any]]:
    offsets, flat = [0], []
    for value in values:
        flat.extend(hidden if value is None else value)
        offsets.append(len(flat))
    return offsets, flat


def _lists(values: list[Any], t: pa.DataType, awkward: bool) -> pa.Array:
    hidden = [hidden_value(t.value_type)] if awkward else []
    if pat.is_fixed_size_list(t):
        hidden = [hidden_value(t.value_type)] * t.list_size
    if pat.is_list_view(t) or pat.is_large_list_view(t):
        # The views may stand in any order over their items.
        order = list(reversed(range(len(values)))) if awkward else list(range(len(values)))
        offsets, flat = _flattened([values[i] for i in order], hidden)
        starts = [0] * len(values)
        sizes = [0] * len(values)
        for place, i in enumerate(order):
            starts[i], sizes[i] = offsets[place], offsets[place + 1] - offsets[place]
        large = pat.is_large_list_view(t)
        index = pa.int64() if large else pa.int32()
        kind = pa.LargeListViewArray if large else pa.ListViewArray
        items = plain_array(flat, t.value_type, awkward=awkward)
        return kind.from_arrays(
            pa.array(starts, index), pa.array(sizes, index), items, type=t, mask=_mask(values)
        )
    offsets, flat = _flattened(values, hidden)
    items = plain_array(flat, t.value_type, awkward=awkward)
    if pat.is_fixed_size_list(t):
        if t.list_size == 0:  # from_arrays divides by the size (pyarrow 26)
            return pa.Array.from_buffers(t, len(values), [_validity(values)], children=[items])
        return pa.FixedSizeListArray.from_arrays(items, type=t, mask=_mask(values))
    large = pat.is_large_list(t)
    kind = pa.LargeListArray if large else pa.ListArray
    index = pa.int64() if large else pa.int32()
    return kind.from_arrays(pa.array(offsets, index), items, type=t, mask=_mask(values))


def _structs(values: list[Any], t: pa.StructType, awkward: bool) -> pa.Array:
    if t.num_fields == 0:
        return pa.array([None if v is None else {} for v in values], t)
    hidden = hidden_value(t) if awkward else (None,) * t.num_fields
    rows = [hidden if v is None else v for v in values]
    fields = [t.field(i) for i in range(t.num_fields)]
    children = [
        plain_array([row[i] for row in rows], field.type, awkward=awkward) for i, field in enumerate(fields)
    ]
    return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(values))
