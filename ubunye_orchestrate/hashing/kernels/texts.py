"""The texts of a column, and the few moves on their bytes that every kernel is made of.

Texts are ``large_string`` throughout: with 64-bit offsets no amount of text in one batch can overflow, and
measured they cost no more than 32-bit ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ubunye_orchestrate.hashing.kernels.turns import out_of_python

__all__ = [
    "TEXT",
    "Bytes",
    "FaultyValueError",
    "Ints",
    "Mask",
    "Texts",
    "cast_to_text",
    "joined",
    "raw",
    "text_array",
    "text_scalar",
    "valid_mask",
]

TEXT = pa.large_string()

# What pc.cast looks up and makes anew at each call.
_CAST = pc.get_function("cast")
_TO_TEXT = pc.CastOptions.safe(TEXT)

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class FaultyValueError(Exception):
    """A value that rows-v1 does not define, at ``index`` of the array that a kernel was given.

    Each level of nesting turns the index into its own; ``lines`` turns it into a HashError with the row.
    """

    def __init__(self, index: int, reason: str) -> None:
        self.index = index
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True)
class Texts:
    """The canonical texts of an array's values: ``before`` + each of ``array`` + ``after``.

    What all values share (quotes, a closing bracket) is kept apart, so that it is written once, by whoever
    joins the texts to something larger.
    """

    array: pa.Array
    """``large_string``, as long as the values; null where the value is null."""

    before: str = ""
    after: str | pa.Array = ""
    """Or a text for each value, never null: spares the joining of it to ``array``."""

    def at(self, positions: pa.Array) -> Texts:
        """Return the texts at these positions, null where the position is."""
        if isinstance(self.after, str):
            return Texts(pc.take(self.array, positions), self.before, self.after)
        return Texts(pc.take(joined([self.array, self.after]), positions), self.before)

    def pieces(self) -> list[str | pa.Array]:
        """Return what ``joined`` takes to write the texts out whole."""
        return [self.before, self.array, self.after]


@lru_cache(maxsize=4096)  # the same few for every batch of a table
def text_scalar(text: str) -> pa.Scalar:
    """Return a text as a scalar of the type that all texts have."""
    return pa.scalar(text, TEXT)


def cast_to_text(values: pa.Array) -> pa.Array:
    """Return the text that Arrow itself writes for each value."""
    with out_of_python():
        return _CAST.call([values], _TO_TEXT)


def joined(
    pieces: Sequence[str | pa.Array],
    *,
    nulls: Literal["emit_null", "skip"] = "emit_null",
) -> pa.Array:
    """Write the pieces of each row one behind the other; constants stand in every row.

    At least one piece is an array. A null makes its whole row null (``emit_null``) or is left out (``skip``).
    The result is freshly allocated: packed from offset 0, and the caller may write into its bytes.
    """
    arguments: list[Any] = []
    constant = ""
    for piece in pieces:
        if isinstance(piece, str):
            constant += piece
            continue
        if constant:
            arguments.append(text_scalar(constant))
            constant = ""
        arguments.append(piece)
    if constant:
        arguments.append(text_scalar(constant))
    with out_of_python():
        return pc.binary_join_element_wise(*arguments, text_scalar(""), null_handling=nulls)


def raw(array: pa.Array) -> tuple[Ints, Bytes]:
    """Return the offsets (one more than values, slice applied) and all bytes of a large text or binary array.

    Both are views: the bytes of a freshly joined array are writable, those of a user's must not be written.
    """
    if len(array) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    _, offsets, data = array.buffers()
    at = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
    return at, np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)


def text_array(offsets: Ints, data: Bytes, valid: Mask | None = None) -> pa.Array:
    """Return the ``large_string`` array over these offsets and bytes (not copied), null where not valid."""
    validity = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    return pa.Array.from_buffers(
        TEXT, len(offsets) - 1, [validity, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    )


def valid_mask(array: pa.Array) -> Mask | None:
    """Return where an array is not null, or None when it is nowhere null."""
    if array.null_count == 0:
        return None
    mask: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return mask
