"""What is known of a table while its batches pass by, and the Fingerprint at the end.

Two paths compute the same: the row-at-a-time reference (``canonical``) and the columnar one (``columnar``).
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from ubunye_orchestrate.errors import ConfigurationError, HashError
from ubunye_orchestrate.hashing import canonical
from ubunye_orchestrate.hashing.columnar import ColumnarHasher, Sums, hash_threads
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.rows_v1 import LaneSums, data_hash, schema_hash
from ubunye_orchestrate.hashing.selfcheck import columnar_is_trusted
from ubunye_orchestrate.hashing.types import canonical_columns

__all__ = ["PATHS", "Tally", "chosen_path"]

logger = logging.getLogger(__name__)

PATHS = ("reference", "pyarrow")
_PATH_VARIABLE = "UBUNYE_HASH_PATH"


def chosen_path(environment: Mapping[str, str] = os.environ) -> str:
    """Return how hashes are computed: as ``UBUNYE_HASH_PATH`` says, else the fastest way that there is.

    The columnar path is not taken, forced or not, where it fails its self-check: its hashes would be wrong.
    Raises ConfigurationError for a value that names no path.
    """
    forced = environment.get(_PATH_VARIABLE)
    if forced is not None and forced not in PATHS:
        allowed = " or ".join(repr(path) for path in PATHS)
        raise ConfigurationError(
            f"{_PATH_VARIABLE}={forced!r} names no way of hashing: expected {allowed}, or leave it unset "
            "for the fastest one that is there"
        )
    return "pyarrow" if forced != "reference" and columnar_is_trusted() else "reference"


class _Hasher(Protocol):
    def add(self, batch: pa.RecordBatch) -> None: ...
    def finish(self) -> Sums: ...


class _ReferenceHasher:
    """Hashes batches a row at a time, with the interface of ``ColumnarHasher``."""

    def __init__(self) -> None:
        self._sums = LaneSums()

    def add(self, batch: pa.RecordBatch) -> None:
        self._sums.add(canonical.batch_lines(batch, first_row=self._sums.rows))

    def finish(self) -> Sums:
        return self._sums.rows, self._sums.sums


class Tally:
    """Schema, rows and lane sums of one table, or why they cannot be had.

    ``open``, then ``add`` for each batch, then ``finish`` once all have passed. No method raises for what a
    table holds: after a failure there is no data hash, and rows are only counted.
    """

    def __init__(self) -> None:
        """Choose the path. Raises ConfigurationError for a setting of the hash that cannot work."""
        self.path = chosen_path()
        """How hashes are computed, as ``Fingerprint.path_taken`` has it."""
        self.rows_passed = 0
        """Rows of the batches added so far, hashed or not."""
        self.seconds = 0.0
        """Wall time spent so far, as the caller measures it."""
        self._threads = hash_threads()
        self._columns: tuple[tuple[str, str], ...] | None = None
        self._hasher: _Hasher = _ReferenceHasher()
        self._sums: tuple[int, int] | None = None
        self._all_passed = False
        self._error: str | None = None

    @property
    def failed(self) -> bool:
        """Whether there is an error, so that batches are no longer hashed."""
        return self._error is not None

    def open(self, schema: pa.Schema) -> None:
        """Take the table's schema, before its first batch."""
        try:
            self._columns = canonical_columns(schema)
        except HashError as e:
            self.fail(e)
            return
        if self.path != "reference":
            self._hasher = ColumnarHasher(self._columns, threads=self._threads)

    def add(self, batch: pa.RecordBatch) -> None:
        """Hash and count one batch of rows; once something failed, only count it."""
        self.rows_passed += batch.num_rows
        if self.failed:
            return
        try:
            self._hasher.add(batch)
        except Exception as e:  # noqa: BLE001 - noted by fail, and logged where it is not about the data
            self.fail(e)

    def finish(self) -> None:
        """Note that every row of the table has passed."""
        self._all_passed = True
        if self.failed:
            return
        try:
            rows, self._sums = self._hasher.finish()
            assert rows == self.rows_passed, (rows, self.rows_passed)
        except Exception as e:  # noqa: BLE001 - noted by fail, and logged where it is not about the data
            self.fail(e)

    def fail(self, error: Exception) -> None:
        """Note why there is no data hash; the first reason stays.

        An error that is not about the data is logged with its traceback and called what it is.
        """
        if isinstance(error, HashError):
            reason = str(error)
        else:
            logger.error("an unexpected error while hashing a table", exc_info=error)
            reason = (
                f"internal error ({type(error).__name__}): a fault of ubunye-orchestrate, not of the data; "
                "its traceback is in the log"
            )
        self._error = self._error or reason

    def fingerprint(self, known_rows: int | None = None) -> Fingerprint:
        """Return what is known; ``known_rows`` is the table's own count, for where not all rows passed."""
        columns = self._columns
        row_count = self.rows_passed if self._all_passed else known_rows
        fingerprint = Fingerprint(
            data_hash=None,
            schema_hash=None if columns is None else schema_hash(columns),
            row_count=row_count,
            lane_sums=None,
            columns=columns or (),
            error=self._error,
            seconds=self.seconds,
            path_taken=self.path,
        )
        if self.failed or columns is None or self._sums is None:
            return fingerprint
        hashed = data_hash(self.rows_passed, columns, self._sums)
        return dataclasses.replace(fingerprint, data_hash=hashed, lane_sums=self._sums)
