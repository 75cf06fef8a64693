"""Texts of structs and lists, and the line of a row, which is a struct's.

Children are written as whole columns. A list's text is then a stretch of its elements' text: each element
is written with a comma before it, and the first comma is overwritten by the bracket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ubunye_orchestrate.hashing.kernels.encoded import (
    decoded,
    encoded_texts,
    positions_and_values,
    storage_of,
)
from ubunye_orchestrate.hashing.kernels.text import json_name
from ubunye_orchestrate.hashing.kernels.texts import (
    FaultyValueError,
    Ints,
    Mask,
    Texts,
    joined,
    raw,
    text_array,
    text_scalar,
    valid_mask,
)
from ubunye_orchestrate.hashing.kernels.turns import out_of_python

__all__ = ["ElementsOf", "enclosed", "list_texts", "object_lines", "or_null", "struct_texts"]

_END: Final = 2**62  # past the end of any text

TextsOf = Callable[[pa.Array], Texts]


def object_lines(names: Sequence[str], fields: Iterable[Texts], rows: int) -> pa.Array:
    """Return ``rows`` JSON objects of these fields, in this order, null fields left out.

    The result is fresh, packed and without nulls.
    """
    pieces: list[str | pa.Array] = []
    field_in_each_row = False
    for name, field in zip(names, fields, strict=True):
        if field.array.null_count == rows:
            continue
        start = f",{json_name(name)}:{field.before}"
        if field.array.null_count:
            pieces.append(_wrapped(start, field))
        else:
            pieces += [start, field.array, field.after]
            field_in_each_row = True
    if not pieces:
        return pa.repeat(text_scalar("{}"), rows)
    lines = joined([*pieces, "}"], nulls="skip")
    offsets, data = raw(lines)
    starts = offsets[:-1]
    if field_in_each_row:
        data[starts] = ord("{")
        return lines
    empty = np.diff(offsets) == 1
    data[starts[~empty]] = ord("{")
    return pc.if_else(pa.array(empty), text_scalar("{}"), lines) if empty.any() else lines


def _wrapped(start: str, field: Texts) -> pa.Array:
    """Write what stands before and after a field's texts to them, nulls staying null."""
    if not isinstance(field.after, str):
        return joined([start, field.array, field.after])
    # Cheaper than joining by half.
    with out_of_python():
        text = pc.binary_replace_slice(field.array, 0, 0, start)
        return pc.binary_replace_slice(text, _END, _END, field.after) if field.after else text


def struct_texts(values: pa.Array, texts_of: TextsOf) -> Texts:
    """Return structs as JSON objects, fields in declared order, null fields left out."""
    valid = valid_mask(values)
    fields = [
        _field_texts(values, i, flattened, valid, texts_of) for i, flattened in enumerate(values.flatten())
    ]
    lines = object_lines([f.name for f in values.type], fields, len(values))
    return Texts(lines if valid is None else text_array(*raw(lines), valid))


def _field_texts(
    values: pa.Array, i: int, flattened: pa.Array, valid: Mask | None, texts_of: TextsOf
) -> Texts:
    """Write one field of structs; null where the struct is, whatever stands there."""
    child = storage_of(flattened)
    if valid is None or not pa.types.is_run_end_encoded(child.type):
        return texts_of(child)
    # Runs have no place for the nulls that flattening brings from the struct; positions have.
    positions, stored = positions_and_values(child)
    return encoded_texts(pc.if_else(pa.array(valid), positions, None), stored, texts_of)


def list_texts(values: pa.Array, texts_of: TextsOf) -> Texts:
    """Return lists of any layout as JSON arrays, null elements as ``null``."""
    elements = ElementsOf(values)
    try:
        texts = or_null(elements.texts(values.values, texts_of))
    except FaultyValueError as e:
        raise FaultyValueError(elements.row_of(e.index), e.reason) from None
    return enclosed(joined([",", *texts.pieces()]), elements.bounds, valid_mask(values), "[", "]")


class ElementsOf:
    """Where the elements of lists are: one list behind the other, without what no list holds."""

    def __init__(self, lists: pa.Array) -> None:
        self._starts, sizes = _extents(lists)
        self.bounds: Ints = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        """Where each list begins and ends among the elements: one more than lists, 0 first."""
        total = int(self.bounds[-1])
        shifts = (
            self._starts - self.bounds[:-1]
        )  # from a place among the elements to the one in ``lists.values``
        held = shifts[sizes > 0]
        self._positions: Ints | None = None
        if total == 0:
            self._first = self._stop = 0
        elif (held == held[0]).all():
            self._first = int(held[0])
            self._stop = self._first + total
        else:  # null lists over elements of their own, or views that overlap, leave gaps or go back
            positions = np.repeat(shifts, sizes) + np.arange(total)
            self._first = int(positions.min())
            self._stop = int(positions.max()) + 1
            self._positions = positions - self._first

    def texts(self, values: pa.Array, texts_of: TextsOf) -> Texts:
        """Return the texts of the elements, given ``lists.values`` (or one of its fields)."""
        stored, positions = self.stored(values)
        return texts_of(stored) if positions is None else encoded_texts(pa.array(positions), stored, texts_of)

    def flat(self, values: pa.Array) -> pa.Array:
        """Return the elements themselves, decoded, where they are flat."""
        stored, positions = self.stored(values)
        stored = decoded(stored)
        return stored if positions is None else pc.take(stored, pa.array(positions))

    def stored(self, values: pa.Array) -> tuple[pa.Array, Ints | None]:
        """Return the stretch of values that holds the elements, and where in it each is (None: in order)."""
        return values.slice(self._first, self._stop - self._first), self._positions

    def first_of(self, row: int) -> int:
        """Return where a list's elements start in ``lists.values``."""
        return int(self._starts[row])

    def row_of(self, element: int) -> int:
        """Return which list holds an element."""
        return int(np.searchsorted(self.bounds, element, side="right")) - 1


def _extents(lists: pa.Array) -> tuple[Ints, Ints]:
    """Return where each list starts in ``lists.values`` and how many elements it has, 0 where null."""
    t = lists.type
    rows = len(lists)
    if rows == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    valid = valid_mask(lists)
    if pa.types.is_fixed_size_list(t):
        starts = (lists.offset + np.arange(rows)) * t.list_size
        sizes = np.full(rows, t.list_size)
    else:
        wide = pa.types.is_large_list(t) or pa.types.is_large_list_view(t)
        dtype = np.dtype(np.int64 if wide else np.int32)
        at = lists.offset * dtype.itemsize
        buffers = lists.buffers()
        if pa.types.is_list_view(t) or pa.types.is_large_list_view(t):
            starts = np.frombuffer(buffers[1], dtype, rows, at).astype(np.int64)
            sizes = np.frombuffer(buffers[2], dtype, rows, at).astype(np.int64)
        else:
            offsets = np.frombuffer(buffers[1], dtype, rows + 1, at).astype(np.int64)
            starts, sizes = offsets[:-1], np.diff(offsets)
    return starts, sizes if valid is None else np.where(valid, sizes, 0)


def or_null(texts: Texts) -> Texts:
    """Return texts with ``null`` written out for nulls."""
    if not texts.array.null_count:
        return texts
    bare = texts.before == "" and isinstance(texts.after, str) and texts.after == ""
    written = texts.array if bare else joined(texts.pieces())
    return Texts(pc.fill_null(written, text_scalar("null")))


def enclosed(elements: pa.Array, bounds: Ints, valid: Mask | None, opening: str, closing: str) -> Texts:
    """Return the elements from bound to bound in brackets.

    ``elements`` is a fresh array without nulls; each element's text begins with a comma.
    """
    offsets, data = raw(elements)
    starts = offsets[bounds]
    filled = np.diff(bounds) > 0
    empty = ~filled if valid is None else valid & ~filled
    if empty.any():  # these have no comma to overwrite
        wider = np.empty(int(starts[-1]) + int(empty.sum()), np.uint8)
        moved = starts + np.concatenate((np.zeros(1, np.int64), np.cumsum(empty)))
        own = np.ones(len(wider), np.bool_)
        own[moved[:-1][empty]] = False
        wider[own] = data[: starts[-1]]
        wider[moved[:-1][empty]] = ord(opening)
        starts, data = moved, wider
    data[starts[:-1][filled]] = ord(opening)
    return Texts(text_array(starts, data, valid), "", closing)
