"""Fingerprints of frames, and of batches on their way to a store."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.frames import NTZ, arrow_stream, checked_zone, known_row_count, native, spark
from ubunye_orchestrate.hashing.frames.stream import source_failure
from ubunye_orchestrate.hashing.tally import Tally

__all__ = ["HashingStream", "arrow_table", "fingerprint", "hash_stream"]


def fingerprint(frame: object, *, naive_timestamps: str = NTZ) -> Fingerprint:
    """Return the rows-v1 fingerprint of any supported frame, over all of its rows.

    Supported are pandas frames, pyarrow tables, batches, readers, datasets and scanners, Polars frames (eager
    and lazy), DuckDB relations, Spark frames (classic and Connect; their rows stay where they are), anything
    with the Arrow PyCapsule protocol, and objects with ``schema`` and
    ``collect()`` (``hashing.frames.port``). A reader that can be read once is consumed, since that is what
    was asked for; a lazy frame or a relation is computed once.

    ``naive_timestamps`` is ``ntz`` (a timestamp without a zone is a ``timestamp_ntz``), or the zone in which
    such timestamps are read as instants (``UTC``, ``Europe/Berlin``).

    Never raises for what a frame holds: where there is no data hash, ``error`` says why, naming column, type
    and (about a value) the row counted from 0; for what is no table it is ``not a table (dict)``. Raises
    ConfigurationError for a setting that cannot work.
    """
    started = time.perf_counter()
    zone = checked_zone(naive_timestamps)
    if spark.recognises(native(frame)):
        from ubunye_orchestrate.hashing.spark import fingerprint_spark

        return fingerprint_spark(native(frame), naive_timestamps=zone)
    tally = Tally()
    known_rows = None
    try:
        known_rows = known_row_count(frame)
        stream = arrow_stream(frame, naive_timestamps=zone)
        tally.open(stream.schema)
        for batch in () if tally.failed else stream.batches:
            tally.add(batch)
            if tally.failed:
                break
        if not tally.failed:
            tally.finish()
    except Exception as e:  # noqa: BLE001 - noted by fail, and logged where it is not about the data
        tally.fail(e)
    tally.seconds = time.perf_counter() - started
    return tally.fingerprint(known_rows)


def arrow_table(frame: object, *, naive_timestamps: str = NTZ) -> pa.Table:
    """Convert a frame to the Arrow table whose rows ``fingerprint`` would hash; nothing is lost on the way.

    For an IO manager, which converts once, hashes this table and stores this table. A reader is consumed, a
    lazy frame computed once. Types that Arrow has and rows-v1 does not (a duration) are converted, so that
    they can be stored; hashing them then fails honestly. Raises HashError where the frame cannot be converted
    exactly or read, UnsupportedFrameError for what is not a table, ConfigurationError for an unknown zone.
    """
    stream = arrow_stream(frame, naive_timestamps=naive_timestamps)
    return pa.Table.from_batches(stream.batches, stream.schema)


def hash_stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> HashingStream:
    """Return an iterator over the same batches that hashes each as it passes, for a writer to draw from.

    ``batches`` may be a ``pa.RecordBatchReader``. Raises ConfigurationError for an unknown hash path.
    """
    return HashingStream(schema, batches)


class HashingStream(Iterator[pa.RecordBatch]):
    """Record batches on their way to a writer, hashed as they pass (see ``hash_stream``).

    Hashing never stops the writer: what cannot be hashed passes all the same, and the fingerprint says why it
    has no data hash. An exception of the source is passed on to the writer, and noted.
    """

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.schema = schema
        """The schema of every batch, as given."""
        self._batches = iter(batches)
        self._tally = Tally()
        self._tally.open(schema)
        self._exhausted = False

    def __next__(self) -> pa.RecordBatch:
        """Return the next batch, hashed."""
        try:
            batch = next(self._batches)
        except StopIteration:
            if not self._exhausted:
                self._exhausted = True
                self._timed(self._tally.finish)
            raise
        except Exception as e:
            self._tally.fail(source_failure(e, self._tally.rows_passed))
            raise
        if batch.schema != self.schema:
            self._tally.fail(HashError(f"the batch after {self._tally.rows_passed} rows has another schema"))
        self._timed(lambda: self._tally.add(batch))
        return batch

    def fingerprint(self) -> Fingerprint:
        """Return the fingerprint of the batches that passed.

        Before the last one has passed (also when the writer stopped early, or the source failed) there is no
        data hash. ``seconds`` is the time spent hashing, without the source's and the writer's.
        """
        fingerprint = self._tally.fingerprint()
        if self._exhausted or self._tally.failed:
            return fingerprint
        return dataclasses.replace(
            fingerprint, error=f"not all rows were passed on: {self._tally.rows_passed} until now"
        )

    def _timed(self, hashing: Callable[[], None]) -> None:
        started = time.perf_counter()
        hashing()
        self._tally.seconds += time.perf_counter() - started
