"""The ways from Arrow data to canonical lines, under the names that ``Fingerprint.path_taken`` gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from ubunye_orchestrate.hashing import canonical, rows_v1
from ubunye_orchestrate.hashing.lines import batch_lines
from ubunye_orchestrate.hashing.types import canonical_columns

Lines = Callable[[pa.RecordBatch], pa.Array]

PATHS: dict[str, Lines] = {"reference": canonical.batch_lines, "pyarrow": batch_lines}


def hash_of(batches: Iterable[pa.RecordBatch], schema: pa.Schema, lines: Lines) -> str:
    """The data hash of a table given in batches, by one path."""
    total = rows_v1.LaneSums()
    for batch in batches:
        total.add(lines(batch))
    return rows_v1.data_hash(total.rows, canonical_columns(schema), total.sums)
