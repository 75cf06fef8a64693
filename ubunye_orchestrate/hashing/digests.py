"""The digests of two tables' rows, held against each other in memory that does not grow with the tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Digests", "Lanes", "Unmatched", "lanes_of_lines", "unmatched"]

Lanes = npt.NDArray[np.uint64]
"""Of each row the two lanes of its line: shape (rows, 2)."""

_IN_MEMORY: Final = 2**20  # digests of one table kept in memory before they go to files: 16 MiB
_BUCKETS: Final = 256  # by the first byte of a digest; of a billion rows one holds 60 MiB of each table
_LISTED: Final = 2**20  # unmatched digests remembered one by one: 16 MiB


def lanes_of_lines(lines: pa.Array) -> Lanes:
    """Return the lanes of each line of a ``large_string`` array (see ``rows_v1``)."""
    sha256 = hashlib.sha256
    digests = b"".join([sha256(line).digest()[:16] for line in lines.view(pa.large_binary()).to_pylist()])
    return np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)


class Digests:
    """The lanes of all rows of one table: a few in memory, many in files by their first byte."""

    def __init__(self, folder: Path) -> None:
        """Take an empty folder for the files."""
        self.rows = 0
        self._folder = folder
        self._waiting: list[Lanes] = []
        self._waiting_rows = 0
        self._in_files = False

    def add(self, lanes: Lanes) -> None:
        """Add the lanes of some rows."""
        self.rows += len(lanes)
        self._waiting.append(lanes)
        self._waiting_rows += len(lanes)
        if self._waiting_rows > _IN_MEMORY:
            self.write()

    @property
    def in_files(self) -> bool:
        """Whether some of the lanes are in files."""
        return self._in_files

    def in_memory(self) -> Lanes:
        """Return the lanes that are not in files."""
        return np.concatenate([np.empty((0, 2), np.uint64), *self._waiting])

    def bucket(self, number: int) -> Lanes:
        """Return the lanes of the rows whose digest begins with byte ``number``, after ``write``."""
        return np.fromfile(self._file(number), np.uint64).reshape(-1, 2)

    def write(self) -> None:
        """Move the lanes that are in memory to files."""
        waiting = self.in_memory()
        waiting = waiting[np.argsort(waiting[:, 0])]
        first_bytes = waiting[:, 0] >> np.uint64(56)
        ends = np.searchsorted(first_bytes, np.arange(_BUCKETS + 1))
        for number in range(_BUCKETS):
            with self._file(number).open("ab") as file:
                waiting[ends[number] : ends[number + 1]].tofile(file)
        self._waiting, self._waiting_rows, self._in_files = [], 0, True

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:02x}"


@dataclass(frozen=True)
class Unmatched:
    """The rows that only one of two tables has, a row had twice here and once there counted once."""

    only_in_a: int
    only_in_b: int
    lanes_a: Lanes
    """Lanes of rows that only ``a`` has, each once; of very many only the first."""
    lanes_b: Lanes
    """The same for ``b``."""
    all_listed: bool
    """Whether ``lanes_a`` and ``lanes_b`` list all of them."""


def unmatched(a: Digests, b: Digests) -> Unmatched:
    """Find the rows that only one of the two tables has."""
    listed: tuple[list[Lanes], list[Lanes]] = ([], [])
    counts, distinct = [0, 0], [0, 0]
    for lanes, surplus in _surpluses(a, b):
        for side, more in enumerate((surplus, -surplus)):
            here = more > 0
            counts[side] += int(more[here].sum())
            listed[side].append(lanes[here][: max(0, _LISTED - distinct[side])])
            distinct[side] += int(here.sum())
    lanes_a, lanes_b = (np.concatenate(side) for side in listed)
    return Unmatched(counts[0], counts[1], lanes_a, lanes_b, all_listed=max(distinct) <= _LISTED)


def _surpluses(a: Digests, b: Digests) -> Iterator[tuple[Lanes, npt.NDArray[np.int64]]]:
    """Yield distinct lanes with how many more rows of them ``a`` has than ``b``, a part of all at a time."""
    if not a.in_files and not b.in_files:
        yield _surplus(a.in_memory(), b.in_memory())
        return
    a.write()
    b.write()
    for number in range(_BUCKETS):
        yield _surplus(a.bucket(number), b.bucket(number))


def _surplus(a: Lanes, b: Lanes) -> tuple[Lanes, npt.NDArray[np.int64]]:
    lanes = np.concatenate([a, b])
    signs = np.repeat(np.array([1, -1], np.int64), [len(a), len(b)])
    order = np.lexsort((lanes[:, 1], lanes[:, 0]))
    lanes, signs = lanes[order], signs[order]
    is_first = np.ones(len(lanes), np.bool_)
    is_first[1:] = (lanes[1:] != lanes[:-1]).any(axis=1)
    starts = np.flatnonzero(is_first)
    # Of nothing there are no sums; reduceat refuses to say so.
    sums = np.add.reduceat(signs, starts) if len(starts) else signs
    return lanes[starts], sums
