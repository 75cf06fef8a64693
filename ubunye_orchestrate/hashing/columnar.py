"""Batches in, row count and lane sums out, by the columnar path: in bounded memory, on two threads.

The caller's thread draws the batches and writes their lines with Arrow's loops, which do without Python's
global lock; meanwhile a second thread hashes the lines of the portion before (``kernels.turns``).
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import pyarrow as pa

from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.hashing.kernels.turns import in_turn
from ubunye_orchestrate.hashing.lines import lines_of_columns
from ubunye_orchestrate.hashing.portions import Portions
from ubunye_orchestrate.hashing.rows_v1 import LaneSums
from ubunye_orchestrate.hashing.types import canonical_columns

__all__ = ["ColumnarHasher", "hash_batches", "hash_threads"]

_THREADS_VARIABLE: Final = "UBUNYE_HASH_THREADS"
_PORTIONS_AHEAD: Final = 2
_LINES_IN_TURN: Final = 1024  # hashed in about half a millisecond
_PAUSE: Final = 2e-5  # seconds; with what the system adds, long enough for a thread that waits to wake up

Sums = tuple[int, tuple[int, int]]


def hash_threads(environment: Mapping[str, str] = os.environ) -> int:
    """Return how many threads one hash may use: ``UBUNYE_HASH_THREADS``, else the processors at hand.

    Raises ConfigurationError for a value that is not a whole number above 0.
    """
    text = environment.get(_THREADS_VARIABLE)
    if text is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ConfigurationError(
            f"{_THREADS_VARIABLE}={text!r}: expected a whole number of threads from 1, or leave it unset"
        )
    return int(text)


def hash_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Sums:
    """Return the number of rows of a stream of batches and the sums of their lanes.

    Memory does not grow with the table. Raises HashError for a type or value that rows-v1 does not define,
    naming column, type and the row counted over the whole stream; ConfigurationError for
    ``UBUNYE_HASH_THREADS``.
    """
    hasher = ColumnarHasher(canonical_columns(schema))
    for batch in batches:
        hasher.add(batch)
    return hasher.finish()


class ColumnarHasher:
    """Hashes batches as they are pushed; for ``hash_batches`` the other way round.

    Small batches wait until they make a portion, so an error may come with a later batch, or with ``finish``.
    """

    def __init__(self, columns: tuple[tuple[str, str], ...], *, threads: int | None = None) -> None:
        """Take the ``canonical_columns`` of the table; ``threads`` above 1 allow the second thread."""
        self._columns = columns
        self._threads = hash_threads() if threads is None else threads
        self._portions = Portions()
        self._sums = LaneSums()
        self._rows_written = 0
        self._lines: pa.Array | None = None
        self._turn = threading.Lock()
        self._waiting = False
        self._hashing: deque[Future[Sums]] = deque()
        self._second_thread: ThreadPoolExecutor | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Hash a batch, or keep it until it makes a portion. Raises HashError (see ``hash_batches``)."""
        with in_turn(self._turn):
            portions = list(self._portions.add(batch))
        for portion in portions:
            self._write(portion)

    def finish(self) -> Sums:
        """Hash what is waiting; return the number of rows and their lane sums. Raises HashError."""
        for portion in self._portions.rest():
            self._write(portion)
        if self._lines is not None:
            self._sums.add(self._lines)
            self._lines = None
        self._wait_until_ahead(0)
        if self._second_thread is not None:
            self._second_thread.shutdown()
        return self._sums.rows, self._sums.sums

    def _write(self, portion: pa.RecordBatch) -> None:
        with in_turn(self._turn):
            lines = lines_of_columns(portion, self._columns, first_row=self._rows_written)
            self._rows_written += portion.num_rows
            if self._threads == 1:
                self._sums.add(lines)
                return
            if self._lines is None and self._second_thread is None:
                self._lines = lines  # a table of one portion needs no thread
                return
            if self._second_thread is None:
                self._second_thread = ThreadPoolExecutor(1, "ubunye-hash")
            for due in (self._lines, lines):
                if due is not None:
                    self._hashing.append(self._second_thread.submit(self._hash, due))
            self._lines = None
        self._wait_until_ahead(_PORTIONS_AHEAD)

    def _wait_until_ahead(self, portions: int) -> None:
        self._waiting = True
        while len(self._hashing) > portions:
            self._sums.add_sums(*self._hashing.popleft().result())
        self._waiting = False

    def _hash(self, lines: pa.Array) -> Sums:
        """Hash lines in the second thread, leaving Python to the first every so often."""
        sums = LaneSums()
        for start in range(0, len(lines), _LINES_IN_TURN):
            with self._turn:
                sums.add(lines.slice(start, _LINES_IN_TURN))
            if not self._waiting:
                time.sleep(_PAUSE)
        return sums.rows, sums.sums
