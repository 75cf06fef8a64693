"""What a frame's fingerprint is held to: the Arrow table that it stands for, through the reference."""

from __future__ import annotations

import pyarrow as pa

from tests.hashing.paths import hash_of
from ubunye_orchestrate.hashing import canonical
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.types import canonical_columns


def assert_stands_for(frame: object, table: pa.Table, **settings: str) -> None:
    """The frame hashes as the table does through the reference, its columns named and typed alike."""
    got = fingerprint(frame, **settings)
    assert got.error is None
    assert got.columns == canonical_columns(table.schema)
    assert got.row_count == table.num_rows
    assert got.data_hash == hash_of(table.to_batches(), table.schema, canonical.batch_lines)


def failure(frame: object, **settings: str) -> Fingerprint:
    """The fingerprint of a frame that cannot be hashed: an error that is about the data, and no hash."""
    got = fingerprint(frame, **settings)
    assert got.data_hash is None
    assert got.lane_sums is None
    assert got.error is not None
    assert "internal error" not in got.error
    return got
