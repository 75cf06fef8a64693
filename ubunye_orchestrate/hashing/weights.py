"""How much text rows come to, estimated before any is written, so that memory stays bounded.

Layouts that store a value once and point at it (dictionaries, runs, views that overlap) can come to far more
text than they take space; so rows are weighed by what they point at.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from ubunye_orchestrate.hashing.kernels.encoded import positions_and_values, storage_of
from ubunye_orchestrate.hashing.kernels.maps import keys_and_items
from ubunye_orchestrate.hashing.kernels.nested import ElementsOf
from ubunye_orchestrate.hashing.kernels.texts import Ints, valid_mask

__all__ = ["batch_weight", "row_weights"]

_FLAT: Final = 24  # bytes of text of a number or a time, about; no flat value but text and bytes has far more
_PUNCTUATION: Final = 4  # quotes, colon, comma
_LITTLE: Final = 2**17  # bytes; counted quickly for much more than they are, they do no harm
# Types whose text is as long as what is stored, but for a constant; by their ids.
_AS_STORED: Final = frozenset(
    t.id
    for t in (
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
        *(pa.date32(), pa.date64(), pa.timestamp("s"), pa.time32("s"), pa.time64("us")),
        *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
    )
)
_WIDE: Final = (pat.is_large_string, pat.is_large_binary)


def row_weights(batch: pa.RecordBatch) -> Ints:
    """Return about how many bytes of text each row of a batch comes to."""
    weights: Ints = np.zeros(batch.num_rows, np.int64)
    weights += _object_weights(batch.schema.names, batch.columns)
    return weights


def batch_weight(batch: pa.RecordBatch) -> int:
    """Return about how many bytes of text a batch comes to; at once where its memory tells."""
    names, types = batch.schema.names, batch.schema.types
    if not all(t.id in _AS_STORED for t in types):
        return int(row_weights(batch).sum())
    of_each_row = _PUNCTUATION + sum(map(len, names)) + len(names) * (_FLAT + _PUNCTUATION)
    stored = batch.get_total_buffer_size()  # of a slice, what it is a slice of too
    if stored > _LITTLE:
        stored = batch.nbytes
    return int(batch.num_rows * of_each_row + stored)


def _object_weights(names: list[str], fields: list[pa.Array]) -> Ints | int:
    weights: Ints | int = _PUNCTUATION
    for name, values in zip(names, fields, strict=True):
        weights = weights + (len(name) + _PUNCTUATION + _weights(values))
    return weights


def _weights(values: pa.Array) -> Ints | int:
    """Return the weight of each value, or the one that all have."""
    values = storage_of(values)
    t = values.type
    if pat.is_string_view(t) or pat.is_binary_view(t):
        return 2 * _view_lengths(values)
    if pat.is_fixed_size_binary(t):
        return 2 * int(t.byte_width)
    if _has_offsets(t):
        return np.diff(_offsets(values)) + _PUNCTUATION
    if pat.is_dictionary(t) or pat.is_run_end_encoded(t):
        return _weights_at(*positions_and_values(values))
    if pat.is_struct(t):
        fields = [values.field(i) for i in range(t.num_fields)]
        return _object_weights([t.field(i).name for i in range(t.num_fields)], fields)
    if pat.is_map(t):
        elements = ElementsOf(values)
        keys, items = keys_and_items(values, elements)
        return _weights_of_elements(elements, keys) + _weights_of_elements(elements, items)
    if pat.is_nested(t):
        return _weights_of_elements(ElementsOf(values), values.values)
    return _FLAT


def _has_offsets(t: pa.DataType) -> bool:
    return any(is_kind(t) for is_kind in (pat.is_string, pat.is_binary, *_WIDE))


def _offsets(values: pa.Array) -> Ints:
    if len(values) == 0:
        return np.zeros(1, np.int64)
    dtype = np.dtype(np.int64 if any(is_kind(values.type) for is_kind in _WIDE) else np.int32)
    at = values.offset * dtype.itemsize
    return np.frombuffer(values.buffers()[1], dtype, len(values) + 1, at).astype(np.int64, copy=False)


def _view_lengths(values: pa.Array) -> Ints | int:
    if len(values) == 0:
        return 0
    # A view is four integers, its length the first of them.
    views = np.frombuffer(values.buffers()[1], np.int32, 4 * len(values), values.offset * 16)
    lengths = views[::4].astype(np.int64) + _PUNCTUATION
    valid = valid_mask(values)
    return lengths if valid is None else np.where(valid, lengths, 0)


def _weights_at(positions: pa.Array, stored: pa.Array) -> Ints | int:
    valid = valid_mask(positions)
    at = (positions if valid is None else positions.fill_null(0)).to_numpy()
    stored = storage_of(stored)
    if not len(stored):
        return _FLAT
    if _has_offsets(stored.type):  # a batch of few rows may point at many stored values
        offsets = _offsets(stored)
        weights: Ints | int = offsets[at + 1] - offsets[at] + _PUNCTUATION
    else:
        weights = _weights(stored)
        weights = weights if isinstance(weights, int) else weights[at]
    return weights if valid is None else np.where(valid, weights, 0)


def _weights_of_elements(elements: ElementsOf, values: pa.Array) -> Ints:
    stored, positions = elements.stored(values)
    weights = _weights(stored)
    bounds = elements.bounds
    if isinstance(weights, int):
        return np.diff(bounds) * (weights + _PUNCTUATION) + _PUNCTUATION
    if positions is not None:
        weights = weights[positions]
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(weights + _PUNCTUATION)))
    return np.diff(ends[bounds]) + _PUNCTUATION
