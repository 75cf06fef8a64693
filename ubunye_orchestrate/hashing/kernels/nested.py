"""Texts of structs and lists, and the line of a row, which is a struct's.

Children are written as whole columns. A list's text is then a stretch of its elements' text: each element
is written with a comma before it, and the first comma is overwritten by the bracket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ubunye_orchestrate.hashing.kernels.encoded import encoded_texts, positions_and_values, storage_of
from ubunye_orchestrate.hashing.kernels.text import json_name
from ubunye_orchestrate.hashing.kernels.texts import (
    FaultyValueError,
    Ints,
    Mask,
    Texts,
    joined,
    pieces_of,
    raw,
    text_array,
    text_scalar,
    valid_mask,
)

__all__ = ["bounds_of", "enclosed", "list_texts", "object_lines", "or_null", "row_at", "struct_texts"]

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
            pieces.append(joined([start, field.array, field.after]))
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
    bounds = bounds_of(values)
    try:
        elements = or_null(texts_of(values.flatten()))  # null lists' own slots are dropped
    except FaultyValueError as e:
        raise FaultyValueError(row_at(bounds, e.index), e.reason) from None
    return enclosed(joined([",", *pieces_of(elements)]), bounds, valid_mask(values), "[", "]")


def bounds_of(lists: pa.Array) -> Ints:
    """Return where each list begins and ends in its flattened elements: one more than lists, 0 first."""
    lengths = pc.list_value_length(lists)
    if lengths.null_count:
        lengths = pc.fill_null(lengths, 0)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths.to_numpy(), dtype=np.int64)))


def row_at(bounds: Ints, element: int) -> int:
    """Return which list holds an element of the flattened lists."""
    return int(np.searchsorted(bounds, element, side="right")) - 1


def or_null(texts: Texts) -> Texts:
    """Return texts with ``null`` written out for nulls."""
    if not texts.array.null_count:
        return texts
    written = joined(pieces_of(texts)) if texts.before or texts.after else texts.array
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
