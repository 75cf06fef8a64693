"""What is known of a table while its batches pass by, and the Fingerprint at the end.

The row-at-a-time reference (``canonical``) computes each batch's lines.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Mapping

import pyarrow as pa

from ubunye_orchestrate.errors import ConfigurationError, HashError
from ubunye_orchestrate.hashing import canonical
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.rows_v1 import LaneSums, data_hash, schema_hash
from ubunye_orchestrate.hashing.types import canonical_columns

__all__ = ["PATHS", "Tally", "chosen_path"]

logger = logging.getLogger(__name__)

PATHS = ("reference", "pyarrow")
_PATH_VARIABLE = "UBUNYE_HASH_PATH"


def chosen_path(environment: Mapping[str, str] = os.environ) -> str:
    """Return how hashes are computed: as ``UBUNYE_HASH_PATH`` says, else the fastest way that there is.

    Raises ConfigurationError for a value that names no path.
    """
    forced = environment.get(_PATH_VARIABLE)
    if forced is None:
        return "reference"
    if forced not in PATHS:
        allowed = " or ".join(repr(path) for path in PATHS)
        raise ConfigurationError(
            f"{_PATH_VARIABLE}={forced!r} names no way of hashing: expected {allowed}, or leave it unset "
            "for the fastest one that is there"
        )
    return forced


class Tally:
    """Schema, rows and lane sums of one table, or why they cannot be had.

    No method raises for what a table holds: after a failure there is no data hash, and rows are only counted.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows_passed = 0
        """Rows of the batches added so far, hashed or not."""
        self.seconds = 0.0
        """Wall time spent so far, as the caller measures it."""
        self._columns: tuple[tuple[str, str], ...] | None = None
        self._sums = LaneSums()
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

    def add(self, batch: pa.RecordBatch) -> None:
        """Hash and count one batch of rows; once something failed, only count it."""
        first_row = self.rows_passed
        self.rows_passed += batch.num_rows
        if self.failed:
            return
        try:
            self._sums.add(canonical.batch_lines(batch, first_row=first_row))
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

    def fingerprint(self, row_count: int | None) -> Fingerprint:
        """Return what is known.

        ``row_count`` is the number of rows in the table, None where it is not known; without it, and after a
        failure, there is no data hash.
        """
        columns = self._columns
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
        if self.failed or columns is None or row_count is None:
            return fingerprint
        assert self._sums.rows == row_count, "every row is hashed, or there is a failure"
        hashed = data_hash(row_count, columns, self._sums.sums)
        return dataclasses.replace(fingerprint, data_hash=hashed, lane_sums=self._sums.sums)
