"""Whole Arrow columns to canonical lines: the columnar path, byte for byte the reference's.

Each type has a kernel that writes the texts of a whole array with Arrow's and NumPy's own loops; none looks
at rows one by one, nested types included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.kernels.encoded import encoded_texts, positions_and_values, storage_of
from ubunye_orchestrate.hashing.kernels.maps import map_texts
from ubunye_orchestrate.hashing.kernels.nested import list_texts, object_lines, struct_texts
from ubunye_orchestrate.hashing.kernels.numbers import (
    boolean_texts,
    decimal_texts,
    float_texts,
    integer_texts,
)
from ubunye_orchestrate.hashing.kernels.temporal import date_texts, time_texts, timestamp_texts
from ubunye_orchestrate.hashing.kernels.text import binary_texts, string_texts
from ubunye_orchestrate.hashing.kernels.texts import TEXT, FaultyValueError, Texts
from ubunye_orchestrate.hashing.types import canonical_columns

__all__ = ["batch_lines", "lines_of_columns", "texts_of"]

# By the type's id. A type is one of these, or nested, or not in rows-v1 (canonical_columns refuses it first).
_FLAT_KERNELS: Final[dict[int, Callable[[pa.Array], Texts]]] = {
    t.id: kernel
    for kernel, types in (
        (boolean_texts, [pa.bool_()]),
        (integer_texts, [pa.int8(), pa.int16(), pa.int32(), pa.int64()]),
        (integer_texts, [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]),
        (float_texts, [pa.float16(), pa.float32(), pa.float64()]),
        (decimal_texts, [pa.decimal32(1), pa.decimal64(1), pa.decimal128(1), pa.decimal256(1)]),
        (string_texts, [pa.string(), pa.large_string(), pa.string_view()]),
        (binary_texts, [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)]),
        (date_texts, [pa.date32(), pa.date64()]),
        (timestamp_texts, [pa.timestamp("s")]),
        (time_texts, [pa.time32("s"), pa.time64("us")]),
    )
    for t in types
}


def batch_lines(batch: pa.RecordBatch, *, first_row: int = 0) -> pa.Array:
    """Return the canonical line of each row of a record batch as a ``large_string`` array without nulls.

    ``first_row`` is the position of the batch's first row in its table, for messages. Raises HashError,
    naming column, type and row, for a type or a value that rows-v1 does not define.
    """
    return lines_of_columns(batch, canonical_columns(batch.schema), first_row=first_row)


def lines_of_columns(
    batch: pa.RecordBatch, columns: tuple[tuple[str, str], ...], *, first_row: int
) -> pa.Array:
    """Do as ``batch_lines``, given the ``canonical_columns`` of the batch's schema."""
    fields = []
    faults: list[tuple[int, str, str, str]] = []
    for name, type_name in columns:
        try:
            fields.append(texts_of(batch.column(name)))
        except FaultyValueError as e:
            first = _first_fault(batch.column(name), e)
            faults.append((first.index, name, type_name, first.reason))
    if faults:  # name the one that reading row by row would meet first
        row, name, type_name, reason = min(faults)
        raise HashError(reason, column=name, type_name=type_name, row=first_row + row)
    return object_lines([name for name, _ in columns], fields, batch.num_rows)


def _first_fault(values: pa.Array, known: FaultyValueError) -> FaultyValueError:
    """Return the fault in the first faulty row; a kernel names the first in an order of its own."""
    start = 0  # no row before this one is faulty
    while start < known.index:
        middle = (start + known.index) // 2
        try:
            texts_of(values[start : middle + 1])
        except FaultyValueError as e:
            known = FaultyValueError(start + e.index, e.reason)
        else:
            start = middle + 1
    return known


def texts_of(values: pa.Array) -> Texts:
    """Return the canonical texts of an array of any type of rows-v1.

    Raises FaultyValueError for a value that has none.
    """
    kernel = _FLAT_KERNELS.get(values.type.id)
    if kernel is not None:
        return kernel(values)
    t = values.type
    if isinstance(t, pa.BaseExtensionType):
        return texts_of(storage_of(values))
    if pat.is_null(t):
        return Texts(pa.nulls(len(values), TEXT))
    if pat.is_dictionary(t) or pat.is_run_end_encoded(t):
        return encoded_texts(*positions_and_values(values), texts_of)
    if pat.is_struct(t):
        return struct_texts(values, texts_of)
    if pat.is_map(t):
        return map_texts(values, texts_of)
    return list_texts(values, texts_of)
