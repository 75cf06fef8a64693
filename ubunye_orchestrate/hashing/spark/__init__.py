"""The hash of a Spark frame, classic or Connect, computed where its rows are.

``types`` names the columns, ``session`` asks the session how it writes JSON, ``lines`` (with ``values``)
writes the expression of a row's line, ``digests`` (with ``checks``) has the rows hashed, ``aggregate`` (with
``lanes``) sums them up in one query.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.frames.spark import recognises
from ubunye_orchestrate.hashing.frames.timestamps import NTZ
from ubunye_orchestrate.hashing.rows_v1 import data_hash, schema_hash
from ubunye_orchestrate.hashing.spark.aggregate import Totals, bad_values, totals
from ubunye_orchestrate.hashing.spark.failures import reason
from ubunye_orchestrate.hashing.spark.session import JsonWriter, json_writer, oldest_java
from ubunye_orchestrate.hashing.spark.types import SparkType, spark_columns

__all__ = ["fingerprint_spark", "is_spark_frame"]

logger = logging.getLogger(__name__)


def is_spark_frame(frame: object) -> bool:
    """Tell a Spark DataFrame, classic or Connect, without importing pyspark."""
    return recognises(frame)


def fingerprint_spark(frame: Any, *, naive_timestamps: str = NTZ) -> Fingerprint:
    """Return the rows-v1 fingerprint of all rows of a Spark frame: one aggregation, of which one row returns.

    The frame is neither collected nor persisted; its plan runs once (and once more where values are found
    that rows-v1 does not define, to name the column). Never raises for what the frame holds or what Spark
    says: where there is no data hash, ``error`` says why. ``path_taken`` is ``spark-sql``, with
    ``+java-method``, ``+arrow-udf`` or ``+python-udf`` where the table has floats and its JVM writes some of
    them with too many digits.

    ``naive_timestamps`` must be ``ntz`` for a frame with ``timestamp_ntz`` columns: Spark has instants of its
    own, and a column that holds none is left as it is.
    """
    hashing = _Hashing(frame, naive_timestamps)
    started = time.perf_counter()
    try:
        hashing.run()
    except Exception as e:  # noqa: BLE001 - noted, and logged where it is not about the data
        hashing.fail(e)
    return hashing.fingerprint(time.perf_counter() - started)


class _Hashing:
    """What is known of one frame, as far as it went."""

    def __init__(self, frame: Any, naive_timestamps: str) -> None:
        self._frame = frame
        self._naive_timestamps = naive_timestamps
        self._columns: tuple[tuple[str, str], ...] | None = None
        self._rows: int | None = None
        self._sums: tuple[int, int] | None = None
        self._path = "spark-sql"
        self._error: str | None = None

    def run(self) -> None:
        """Hash the frame. Raises HashError where it has no hash."""
        columns, writer = self._look()
        self._columns = tuple(sorted((name, t.name) for name, t in columns))
        found = self._totals(columns, writer)
        if found.other_java:
            # A cluster of several Javas: the way that serves the oldest serves all.
            found = self._totals(columns, oldest_java(writer, self._frame.sparkSession))
        self._rows = found.rows
        if found.equal_keys or found.invalid_text:
            raise bad_values(self._frame, columns, writer)
        self._sums = found.sums

    def _look(self) -> tuple[list[tuple[str, SparkType]], JsonWriter]:
        """Read the frame's schema and ask its session how it writes JSON."""
        try:
            if self._frame.isStreaming:
                raise HashError("a streaming frame has no last row; hash what its sink has stored")
            schema = self._frame.schema
            writer = json_writer(self._frame.sparkSession)
        except HashError:
            raise
        except Exception as e:
            raise HashError(f"Spark cannot say what the frame holds: {reason(e)}") from e
        columns = spark_columns(schema)
        for name, t in columns:
            if self._naive_timestamps != NTZ and t.holds("timestamp_ntz"):
                raise HashError(
                    f"naive_timestamps={self._naive_timestamps!r} is not for Spark, whose timestamps come "
                    "with and without a zone: cast the column to timestamp where it holds instants",
                    column=name,
                    type_name=t.name,
                )
        return columns, writer

    def _totals(self, columns: list[tuple[str, SparkType]], writer: JsonWriter) -> Totals:
        try:
            found = totals(self._frame, columns, writer)
        except HashError as e:
            if not writer.arrow or "No module named 'pyarrow'" not in str(e):
                raise
            # The executors' Python has nothing but Spark's own.
            found = totals(self._frame, columns, replace(writer, arrow=False))
        self._path = "+".join(("spark-sql", *found.ways_of_floats))
        return found

    def fail(self, error: Exception) -> None:
        """Note why there is no data hash; an error that is not about the data is logged as what it is."""
        if isinstance(error, HashError):
            self._error = str(error)
            return
        logger.error("an unexpected error while hashing a Spark frame", exc_info=error)
        self._error = (
            f"internal error ({type(error).__name__}): a fault of ubunye-orchestrate, not of the data; "
            "its traceback is in the log"
        )

    def fingerprint(self, seconds: float) -> Fingerprint:
        """Return what is known."""
        columns, rows, sums = self._columns, self._rows, self._sums
        fingerprint = Fingerprint(
            data_hash=None,
            schema_hash=None if columns is None else schema_hash(columns),
            row_count=rows,
            lane_sums=sums,
            columns=columns or (),
            error=self._error,
            seconds=seconds,
            path_taken=self._path,
        )
        if columns is None or rows is None or sums is None:
            return fingerprint
        return replace(fingerprint, data_hash=data_hash(rows, columns, sums))
