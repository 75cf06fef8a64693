"""pyarrow's own tables, batches, readers, datasets and scanners."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

from ubunye_orchestrate.hashing.frames.stream import ROWS_AT_ONCE, ArrowStream, from_source, guarded
from ubunye_orchestrate.hashing.loaded import loaded

__all__ = ["recognises", "row_count", "stream"]


def recognises(frame: object) -> bool:
    """Tell a table, batch, reader, dataset or scanner of pyarrow."""
    return isinstance(frame, pa.Table | pa.RecordBatch | pa.RecordBatchReader) or _is_dataset(frame)


def row_count(frame: Any) -> int | None:
    """Return the rows of a table or batch; a reader or dataset does not know before it was read."""
    return int(frame.num_rows) if isinstance(frame, pa.Table | pa.RecordBatch) else None


def stream(frame: Any) -> ArrowStream:
    """Stream the frame's batches without copying. A reader is consumed."""
    if isinstance(frame, pa.Table):
        return ArrowStream(frame.schema, iter(frame.to_batches()), "pyarrow")
    if isinstance(frame, pa.RecordBatch):
        return ArrowStream(frame.schema, iter([frame]), "pyarrow")
    if isinstance(frame, pa.RecordBatchReader):
        return ArrowStream(frame.schema, guarded(iter(frame)), "pyarrow")
    return _scanned(frame)


def _is_dataset(frame: object) -> bool:
    # If the user has one, its module is loaded.
    dataset = loaded("pyarrow.dataset")
    return dataset is not None and isinstance(frame, dataset.Dataset | dataset.Scanner)


def _scanned(frame: Any) -> ArrowStream:
    if isinstance(frame, sys.modules["pyarrow.dataset"].Scanner):
        batches = from_source(frame.to_reader)
        return ArrowStream(frame.projected_schema, guarded(iter(batches)), "pyarrow")
    # By default Arrow reads 16 batches of 4 files ahead of the reader, which is what fills the memory.
    batches = from_source(
        lambda: frame.to_batches(batch_size=ROWS_AT_ONCE, batch_readahead=1, fragment_readahead=1)
    )
    return ArrowStream(frame.schema, guarded(iter(batches)), "pyarrow")
