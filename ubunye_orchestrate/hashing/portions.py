"""A stream of record batches, cut and put together to portions of a size that suits memory and caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from ubunye_orchestrate.hashing.weights import batch_weight, row_weights

__all__ = ["PORTION_ROWS", "PORTION_TEXT", "Portions"]

PORTION_ROWS: Final = 32_768
PORTION_TEXT: Final = 16 * 2**20
"""About how many bytes of text one portion comes to at most; a single row may be more."""

_SMALL_ROWS: Final = PORTION_ROWS // 4


class Portions:
    """Takes batches as they come and gives portions of them, in the same order of rows.

    Thousands of tiny batches are put together, since a portion costs about the same whatever its size; large
    ones are sliced by rows, and rows of much text by its amount.
    """

    def __init__(self) -> None:
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._waiting_text = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take a batch; give the portions that are due."""
        if batch.num_rows >= _SMALL_ROWS:
            yield from self.rest()
            yield from _cut(batch)
        elif batch.num_rows:
            self._waiting.append(batch)
            self._waiting_rows += batch.num_rows
            self._waiting_text += batch_weight(batch)
            if self._waiting_rows >= PORTION_ROWS or self._waiting_text >= PORTION_TEXT:
                yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Give the portions of what is still waiting."""
        whole = self._waiting_rows <= PORTION_ROWS and self._waiting_text <= PORTION_TEXT
        waiting, self._waiting, self._waiting_rows, self._waiting_text = self._waiting, [], 0, 0
        for batch in _put_together(waiting):
            if whole:  # as most small tables are, so it need not be weighed again
                yield batch
            else:
                yield from _cut(batch)


def _put_together(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    try:
        return [pa.concat_batches(batches)]
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return batches  # there are layouts that Arrow cannot put together; they are hashed one by one


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, PORTION_ROWS):
        window = batch.slice(start, PORTION_ROWS)
        ends = np.cumsum(row_weights(window))
        first = 0
        while first < window.num_rows:
            before = ends[first - 1] if first else 0
            stop = max(first + 1, int(np.searchsorted(ends, before + PORTION_TEXT, side="right")))
            yield window.slice(first, stop - first)
            first = stop
