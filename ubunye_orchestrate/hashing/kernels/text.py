"""Texts of strings and of bytes: JSON escapes and base64, on the bytes of a whole column at once."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ubunye_orchestrate.hashing.kernels.texts import (
    TEXT,
    FaultyValueError,
    Texts,
    cast_to_text,
    raw,
    text_array,
    valid_mask,
)

__all__ = ["binary_texts", "escaped", "json_name", "string_texts"]

_BACKSLASH: Final = ord("\\")
_QUOTE: Final = ord('"')
_SPACE: Final = ord(" ")
_LETTERS: Final = dict(zip(b'"\\\b\t\n\f\r', '"\\btnfr', strict=True))
# By the byte escaped, a backslash first: the others bring backslashes that must not be escaped again.
_ESCAPES: Final = {
    byte: f"\\{_LETTERS[byte]}".encode() if byte in _LETTERS else f"\\u{byte:04X}".encode()
    for byte in (_BACKSLASH, _QUOTE, *range(_SPACE))
}
_ADDED: Final = np.zeros(256, np.int64)
for _byte, _escape in _ESCAPES.items():
    _ADDED[_byte] = len(_escape) - 1

# By twelve bits: two characters of base64.
_BASE64: Final = np.frombuffer(
    b"".join(base64.b64encode(bytes((i >> 4, i << 4 & 0xFF)))[:2] for i in range(4096)), np.dtype("<u2")
)


def string_texts(values: pa.Array) -> Texts:
    """Return strings (of any layout) as JSON strings, escaped as Jackson escapes them.

    Raises FaultyValueError for bytes that are not UTF-8.
    """
    return Texts(escaped(values), '"', '"')


@lru_cache(maxsize=4096)
def json_name(name: str) -> str:
    """Return a column's or field's name as it stands in a line, in quotes and escaped."""
    return f'"{escaped(pa.array([name], TEXT))[0].as_py()}"'


def escaped(values: pa.Array) -> pa.Array:
    """Return strings escaped for JSON, without the quotes; the same array when nothing needs an escape."""
    texts = cast_to_text(values)
    offsets, data = raw(texts)
    window = data[offsets[0] : offsets[-1]]
    if len(window) and window.max() > 0x7F:
        _check_utf8(texts)
    at = np.flatnonzero((window < _SPACE) | (window == _QUOTE) | (window == _BACKSLASH))
    if not len(at):
        return texts
    characters = window[at]
    counts = np.bincount(characters, minlength=256)
    wider = window.tobytes()
    for byte, escape in _ESCAPES.items():
        if counts[byte]:
            wider = wider.replace(bytes((byte,)), escape)
    added = np.concatenate((np.zeros(1, np.int64), np.cumsum(_ADDED[characters])))
    offsets = offsets - offsets[0] + added[np.searchsorted(at, offsets - offsets[0])]
    return text_array(offsets, np.frombuffer(wider, np.uint8), valid_mask(values))


def _check_utf8(texts: pa.Array) -> None:
    if _is_utf8(texts):
        return
    start, stop = 0, len(texts)
    while stop - start > 1:  # the first faulty value is in texts[start:stop]
        middle = (start + stop) // 2
        if _is_utf8(texts[start:middle]):
            start = middle
        else:
            stop = middle
    try:
        str(texts[start].as_buffer().to_pybytes(), "utf-8")
    except UnicodeDecodeError as e:
        reason = f"text that is not valid Unicode (byte {e.start}: {e.reason}); store it as binary"
        raise FaultyValueError(start, reason) from None
    raise AssertionError("Arrow refuses text that Python reads as UTF-8")


def _is_utf8(texts: pa.Array) -> bool:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def binary_texts(values: pa.Array) -> Texts:
    """Return bytes (of any layout) as base64 in quotes: RFC 4648, standard alphabet, padded."""
    values = pc.cast(values, pa.large_binary())
    offsets, data = raw(values)
    lengths = np.diff(offsets)
    groups = np.concatenate((np.zeros(1, np.int64), np.cumsum((lengths + 2) // 3)))
    rest = lengths % 3
    ends = groups[1:]
    one, two = ends[rest == 1], ends[rest == 2]  # what the last group of a value has too few bytes for

    padded = np.zeros((int(groups[-1]), 3), np.uint8)
    flat = padded.reshape(-1)
    own = np.ones(len(flat), np.bool_)
    own[3 * one - 2] = False
    own[3 * one - 1] = False
    own[3 * two - 1] = False
    flat[own] = data[offsets[0] : offsets[-1]]

    first, second, third = (padded[:, i].astype(np.uint16) for i in range(3))
    characters = np.empty((len(padded), 2), np.dtype("<u2"))
    characters[:, 0] = _BASE64[first << 4 | second >> 4]
    characters[:, 1] = _BASE64[(second & 0xF) << 8 | third]
    text = characters.reshape(-1).view(np.uint8)
    text[4 * one - 2] = ord("=")
    text[4 * one - 1] = ord("=")
    text[4 * two - 1] = ord("=")
    return Texts(text_array(4 * groups, text, valid_mask(values)), '"', '"')
