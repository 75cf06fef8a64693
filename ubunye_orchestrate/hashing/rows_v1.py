"""Lines to lanes, lanes to sums, sums and schema to the two hashes. Nothing here knows a frame or a type.

rows-v1 in five steps: a row is one canonical line (``canonical``, ``lines``); the first sixteen bytes of the
line's SHA-256 are its two lanes; each lane is summed over all rows modulo 2**64; the schema hash is over the
sorted names and types; the data hash over row count, schema and sums.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ubunye_orchestrate.hashing.fingerprint import METHOD

__all__ = ["LaneSums", "data_hash", "lane_sums_of_lines", "schema_hash"]

_MODULUS = 2**64
_WORDS_OF_DIGEST = 4
_COPIED_BYTES = 2**20
_LINES_AT_ONCE = 1024  # their bytes and digests stay in the processor's cache
_JSON = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), sort_keys=True)
_OF_LINES: dict[
    pa.DataType, tuple[pa.DataType, np.dtype[Any]]
] = {  # the type of the same bytes, and that of the offsets
    pa.large_string(): (pa.large_binary(), np.dtype(np.int64)),
    pa.large_binary(): (pa.large_binary(), np.dtype(np.int64)),
    pa.string(): (pa.binary(), np.dtype(np.int32)),
    pa.binary(): (pa.binary(), np.dtype(np.int32)),
}


class LaneSums:
    """The running number of rows and lane sums of a table whose lines arrive in batches, in any order."""

    def __init__(self) -> None:
        self.rows = 0
        self.sums = (0, 0)

    def add(self, lines: pa.Array | pa.ChunkedArray | Iterable[bytes]) -> None:
        """Add the lines of some rows (each row once)."""
        self.add_sums(*lane_sums_of_lines(lines))

    def add_sums(self, rows: int, sums: tuple[int, int]) -> None:
        """Add what ``lane_sums_of_lines`` gave for some rows."""
        self.rows += rows
        self.sums = ((self.sums[0] + sums[0]) % _MODULUS, (self.sums[1] + sums[1]) % _MODULUS)


def lane_sums_of_lines(
    lines: pa.Array | pa.ChunkedArray | Iterable[bytes],
) -> tuple[int, tuple[int, int]]:
    """Return the number of lines and the sums modulo 2**64 of their lanes a and b.

    ``lines`` is a ``large_string``, ``large_binary``, ``string`` or ``binary`` array without nulls, or an
    iterable of UTF-8 bytes. A line's lanes are bytes 0-7 and 8-15 of its SHA-256, big endian, unsigned.
    """
    if isinstance(lines, pa.ChunkedArray):
        total = LaneSums()
        for chunk in lines.chunks:
            total.add(chunk)
        return total.rows, total.sums
    if isinstance(lines, pa.Array):
        return _sums_of_array(lines)
    return _sums_of_digests([hashlib.sha256(line).digest() for line in lines])


def _sums_of_array(lines: pa.Array) -> tuple[int, tuple[int, int]]:
    if lines.null_count:
        raise ValueError(f"{lines.null_count} of {len(lines)} lines are null; every row has a line")
    if lines.type not in _OF_LINES:
        raise TypeError(f"lines of type {lines.type}; expected large_string, large_binary, string or binary")
    if len(lines) == 0:
        return 0, (0, 0)
    bytes_type, offset_type = _OF_LINES[lines.type]
    _, offsets_buffer, data_buffer = lines.buffers()
    offsets = np.frombuffer(offsets_buffer, offset_type, len(lines) + 1, lines.offset * offset_type.itemsize)
    as_bytes = lines.view(bytes_type)
    sha256 = hashlib.sha256
    total = LaneSums()
    for start in range(0, len(lines), _LINES_AT_ONCE):
        ends = offsets[start : start + _LINES_AT_ONCE + 1]
        if ends[-1] - ends[0] <= _COPIED_BYTES:  # Arrow's copies are cheaper than slices of its buffer
            stretch = as_bytes.slice(start, _LINES_AT_ONCE).to_numpy(zero_copy_only=False)
            digests = [sha256(line).digest() for line in stretch.tolist()]
            del stretch  # before the next is made
        else:
            data = memoryview(data_buffer).cast("B")
            digests = [sha256(data[a:b]).digest() for a, b in pairwise(ends.tolist())]
        total.add_sums(*_sums_of_digests(digests))
    return total.rows, total.sums


def _sums_of_digests(digests: list[bytes]) -> tuple[int, tuple[int, int]]:
    words = np.frombuffer(b"".join(digests), ">u8")
    # One lane at a time: twice as fast as both. Unsigned addition wraps at 2**64.
    a, b = (words[lane::_WORDS_OF_DIGEST].sum(dtype=np.uint64).item() for lane in (0, 1))
    return len(digests), (a, b)


def schema_hash(columns: Iterable[tuple[str, str]]) -> str:
    """Return ``sha256:`` and the hex SHA-256 of the compact JSON of the sorted [name, type] pairs."""
    return _hash_of_json(_sorted_pairs(columns))


def data_hash(row_count: int, columns: Iterable[tuple[str, str]], sums: Sequence[int]) -> str:
    """Return the data hash of a table from its row count, its names and canonical types, and its lane sums.

    ``columns`` may come in any order; ``sums`` are the two sums, each from 0 to below 2**64.
    """
    a, b = sums
    if row_count < 0 or not (0 <= a < _MODULUS and 0 <= b < _MODULUS):
        raise ValueError(f"row count {row_count} and lane sums {a}, {b}: expected unsigned, sums below 2**64")
    return _hash_of_json(
        {"method": METHOD, "rows": row_count, "schema": _sorted_pairs(columns), "sums": [a, b]}
    )


def _sorted_pairs(columns: Iterable[tuple[str, str]]) -> list[list[str]]:
    return [[name, type_name] for name, type_name in sorted(columns)]


def _hash_of_json(value: object) -> str:
    return "sha256:" + hashlib.sha256(_JSON.encode(value).encode("ascii")).hexdigest()
