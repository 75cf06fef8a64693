"""What every kind of frame becomes: a schema and record batches, read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.foreign import said

__all__ = ["ROWS_AT_ONCE", "ArrowStream", "from_source", "guarded", "source_failure"]

ROWS_AT_ONCE = 65_536
"""Rows of a batch where this package chooses: many enough for Arrow's kernels, few enough for the memory."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class ArrowStream:
    """The rows of a frame as Arrow record batches, to be iterated once."""

    schema: pa.Schema
    """Names and Arrow types of the columns, in the frame's order."""

    batches: Iterator[pa.RecordBatch]
    """The rows. Raises HashError for a value that cannot be converted or a source that cannot be read."""

    library: str
    """What the frame came from: ``pandas``, ``pyarrow``, ``polars``, ``duckdb``, ``capsule`` or ``port``."""


def from_source(read: Callable[[], _T], *, rows: int = 0, what: str = "the source") -> _T:
    """Call into the frame's own library; what it raises becomes a HashError saying after how many rows.

    This is the border between its faults (a file that is cut off, a query that fails) and ours: nothing but
    calls into the source may be inside ``read``.
    """
    try:
        return read()
    except HashError:
        raise
    except Exception as e:
        raise source_failure(e, rows, what) from e


def source_failure(error: Exception, rows: int, what: str = "the source") -> HashError:
    """Return the HashError for what a source raised after giving ``rows`` rows."""
    after = f"after {rows} rows" if rows else "before the first row"
    return HashError(f"the rows could not all be read: {what} failed {after} ({said(error)})")


def guarded(
    batches: Iterator[pa.RecordBatch], *, rows: int = 0, what: str = "the source"
) -> Iterator[pa.RecordBatch]:
    """Pass on a source's batches; what the source raises becomes a HashError (see ``from_source``).

    ``rows`` is the number of rows read before. A batch whose buffers do not fit together is a failure of the
    source too: reading on would be reading what is not its own.
    """
    while True:
        batch = from_source(lambda: next(batches, None), rows=rows, what=what)
        if batch is None:
            return
        from_source(batch.validate, rows=rows, what=what)
        rows += batch.num_rows
        yield batch
