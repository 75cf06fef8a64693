"""The ways from Arrow data to canonical lines, in words that begin as ``Fingerprint.path_taken`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from unittest.mock import patch

import pyarrow as pa

from ubunye_orchestrate.hashing import canonical, rows_v1
from ubunye_orchestrate.hashing.kernels import numbers
from ubunye_orchestrate.hashing.lines import batch_lines
from ubunye_orchestrate.hashing.types import canonical_columns

Lines = Callable[[pa.RecordBatch], pa.Array]


def _lines_in_bulk(batch: pa.RecordBatch) -> pa.Array:
    """What the columnar path does with many rows: no number is written by itself."""
    with patch.object(numbers, "_FEW", 0):
        return batch_lines(batch)


PATHS: dict[str, Lines] = {
    "reference": canonical.batch_lines,
    "pyarrow": batch_lines,
    "pyarrow in bulk": _lines_in_bulk,
}


def hash_of(batches: Iterable[pa.RecordBatch], schema: pa.Schema, lines: Lines) -> str:
    """The data hash of a table given in batches, by one path."""
    total = rows_v1.LaneSums()
    for batch in batches:
        total.add(lines(batch))
    return rows_v1.data_hash(total.rows, canonical_columns(schema), total.sums)
