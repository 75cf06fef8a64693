"""Texts of values that are stored once and pointed at: dictionaries (a pandas category) and runs.

The texts are written once for each stored value and then taken for each row. A stored value that no row
points at is no part of the data, so a fault in it is none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ubunye_orchestrate.hashing.kernels.texts import FaultyValueError, Texts, joined

__all__ = ["decoded", "encoded_texts", "positions_and_values", "storage_of"]


def storage_of(values: pa.Array) -> pa.Array:
    """Return an extension array's storage, any other array as it is."""
    while isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    return values


def positions_and_values(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return, of a dictionary or run-end-encoded array, each row's position and the stored values."""
    if pat.is_dictionary(values.type):
        return values.indices, values.dictionary
    rows = np.arange(values.offset, values.offset + len(values))
    return pa.array(np.searchsorted(values.run_ends.to_numpy(), rows, side="right")), values.values


def encoded_texts(positions: pa.Array, stored: pa.Array, texts_of: Callable[[pa.Array], Texts]) -> Texts:
    """Return the text of ``stored[positions[i]]`` for each i, null where the position is."""
    stored = storage_of(stored)
    if len(stored) > len(positions):
        if _can_be_taken(stored.type):
            return texts_of(pc.take(stored, positions))
        positions, stored = _trimmed(positions, stored)
    try:
        texts = texts_of(stored)
    except FaultyValueError:
        return _texts_of_used(positions, stored, texts_of)
    return texts.at(positions)


def _can_be_taken(t: pa.DataType) -> bool:
    """Whether ``pc.take`` is to be trusted with the type.

    Arrow cannot take from views and what holds them; where it does so all the same (a list view of an
    extension of string views, pyarrow 19 to 26), what it gives is memory that it has freed.
    """
    return not (
        pat.is_nested(t)
        or pat.is_string_view(t)
        or pat.is_binary_view(t)
        or pat.is_dictionary(t)
        or pat.is_run_end_encoded(t)
    )


def _trimmed(positions: pa.Array, stored: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Leave out the stored values before the first and after the last that are pointed at."""
    ends = pc.min_max(positions)
    first, last = ends["min"].as_py(), ends["max"].as_py()
    if first is None:
        return positions, stored[:0]
    return pc.subtract(positions, pa.scalar(first, positions.type)), stored[first : last + 1]


def _texts_of_used(positions: pa.Array, stored: pa.Array, texts_of: Callable[[pa.Array], Texts]) -> Texts:
    """Do as ``encoded_texts`` where some stored value is faulty: look at those alone that a row points at."""
    used = np.unique(pc.drop_null(positions).to_numpy())
    if not len(used):
        return texts_of(pa.nulls(len(positions), pa.null()))
    pointed_at = [stored[i : i + 1] for i in used.tolist()]
    with contextlib.suppress(pa.ArrowNotImplementedError):  # of nested types that it cannot put together
        pointed_at = [pa.concat_arrays(pointed_at)]
    written: list[Texts] = []
    for start, values in enumerate(pointed_at):  # one array of all, or as many arrays of one
        try:
            written.append(texts_of(values))
        except FaultyValueError as e:
            raise FaultyValueError(pc.index(positions, used[start + e.index]).as_py(), e.reason) from None
    closer = pc.index_in(positions, value_set=pa.array(used, positions.type))
    if len(written) == 1:
        return written[0].at(closer)
    return Texts(pa.concat_arrays([joined(texts.pieces()) for texts in written])).at(closer)


def decoded(values: pa.Array) -> pa.Array:
    """Return flat values without extension, dictionary and runs, views as plain strings."""
    values = storage_of(values)
    if pat.is_dictionary(values.type) or pat.is_run_end_encoded(values.type):
        positions, stored = positions_and_values(values)
        return pc.take(decoded(stored), positions)
    return pc.cast(values, pa.large_string()) if pat.is_string_view(values.type) else values
