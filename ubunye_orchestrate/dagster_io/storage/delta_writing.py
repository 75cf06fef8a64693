"""One commit to a Delta table through delta-rs: all rows or none, with a note of who made it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from queue import Full, Queue
from typing import Any

import pyarrow as pa

from ubunye_orchestrate.dagster_io.receipts.delta_evidence import USER_METADATA
from ubunye_orchestrate.dagster_io.storage.delta import (
    Snapshot,
    as_storage_error,
    delta_rs,
    find,
    open_table,
    place_of,
    shown_uri,
)
from ubunye_orchestrate.dagster_io.storage.delta_types import same_columns
from ubunye_orchestrate.errors import StorageError

__all__ = ["commit", "create"]

_LOOK_AGAIN_SECONDS = 0.2


def create(
    uri: str, options: Mapping[str, str], schema: pa.Schema, partition_by: Sequence[str], note: str | None
) -> Snapshot:
    """Make an empty table, or return the one that somebody else has made by now. Raises StorageError."""
    deltalake = delta_rs()
    try:
        with as_storage_error(f"{shown_uri(uri)} cannot be made by delta-rs"):
            deltalake.DeltaTable.create(
                place_of(uri),
                schema,
                mode="ignore",
                partition_by=list(partition_by) or None,
                storage_options=dict(options) or None,
                commit_properties=_properties(note, makes_the_table=True),
            )
    except StorageError:
        # Another writer may have been faster; whether its table fits is seen when it is used.
        found = find(uri, options)
        if found is None:
            raise
        return found
    return open_table(uri, options)


def commit(
    uri: str,
    options: Mapping[str, str],
    base: Snapshot | None,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    note: str | None,
    where: str | None = None,
) -> Snapshot:
    """Write the rows in one commit in place of the table's, or of those that meet ``where``.

    ``base`` is the version that the writer knows, None for no table. ``schema`` is in types that Delta has.
    ``note`` becomes the commit's user metadata. Nothing is committed unless all rows are written. Returns the
    version that the commit made. Raises StorageError for what delta-rs refuses and for another writer's
    commit that contradicts this one; what the batches' source raises passes through.
    """
    deltalake = delta_rs()
    shown = shown_uri(uri)
    replaces_schema = where is None and base is not None and not same_columns(schema, base.schema)

    def write(reader: pa.RecordBatchReader) -> None:
        deltalake.write_deltalake(
            place_of(uri) if base is None else base.table,
            reader,
            mode="error" if base is None else "overwrite",
            schema_mode="overwrite" if replaces_schema else None,
            predicate=where,
            storage_options=dict(options) or None,
            commit_properties=_properties(note, makes_the_table=base is None),
        )

    error = _Writing(schema, write).all_of(batches)
    try:
        with as_storage_error(f"{shown} cannot be written by delta-rs"):
            if error is not None:
                raise error
    except StorageError as e:
        if _is_behind_another(error, uri, options, knows_a_table=base is not None):
            raise StorageError(f"{e}; nothing was committed: run it again after the other writer") from error
        raise
    if base is not None:
        # delta-rs has moved it on to the version that it made.
        return base
    return Snapshot(
        deltalake.DeltaTable(place_of(uri), version=0, storage_options=dict(options) or None), shown
    )


def _is_behind_another(
    error: BaseException | None, uri: str, options: Mapping[str, str], *, knows_a_table: bool
) -> bool:
    """Whether a write failed since another writer's commit came first.

    That of a table which we made at the same time delta-rs may find at its start, or at the commit.
    """
    if isinstance(error, delta_rs().exceptions.CommitFailedError):
        return True
    try:
        return not knows_a_table and find(uri, options) is not None
    except StorageError:
        return False


class _Writing:
    """A write in a thread of its own, to which batches are handed from the caller's.

    delta-rs draws batches from threads in which nothing may use delta-rs again: a source that reads another
    Delta table would bring the process down. And a source may be bound to the thread that made it.
    """

    def __init__(self, schema: pa.Schema, write: Any) -> None:
        self._schema = schema
        self._write = write
        self._waiting: Queue[pa.RecordBatch | None] = Queue(maxsize=1)
        self._broken = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="delta-rs", daemon=True)

    def all_of(self, batches: Iterator[pa.RecordBatch]) -> BaseException | None:
        """Write all batches; return delta-rs' error, None where there was none. Raises the source's error."""
        self._thread.start()
        try:
            for batch in batches:
                if not self._hand_over(batch):
                    break
        except BaseException:
            self._broken = True
            raise
        finally:
            self._hand_over(None)
            self._thread.join()
        return self._error

    def _hand_over(self, batch: pa.RecordBatch | None) -> bool:
        while self._thread.is_alive():
            try:
                self._waiting.put(batch, timeout=_LOOK_AGAIN_SECONDS)
            except Full:
                continue
            return True
        return False

    def _run(self) -> None:
        try:
            self._write(pa.RecordBatchReader.from_batches(self._schema, self._handed_over()))
        except BaseException as e:  # noqa: BLE001 - raised in the caller's thread, panics of Rust code too
            self._error = e

    def _handed_over(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._waiting.get()) is not None:
            yield batch
        if self._broken:
            raise StorageError("the source of the rows failed")


def _properties(note: str | None, *, makes_the_table: bool) -> Any:
    custom = None if note is None else {USER_METADATA: note}
    # Of two writers that make a table at once, delta-rs would let the second one try again, as the next
    # version: then the table holds the rows of both.
    retries = 0 if makes_the_table else None
    return delta_rs().CommitProperties(custom_metadata=custom, max_commit_retries=retries)
