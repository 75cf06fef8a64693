"""Parquet tables of a catalog: staged as a table of its own, checked there, and then put in place by Spark.

A plan is computed once, into the staged table. What replaces rows of the table is read from that one, so it
is the same however often it is read.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from ubunye_orchestrate.dagster_io.storage.spark_files import ParquetFolders
from ubunye_orchestrate.dagster_io.storage.spark_inserting import as_the_table
from ubunye_orchestrate.dagster_io.storage.spark_partitions import quoted
from ubunye_orchestrate.dagster_io.storage.spark_places import (
    MissingTableError,
    Place,
    Rows,
    Staged,
    Stored,
    outside_error,
    staged_plan,
)
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.hashing.spark.sql import literal

__all__ = ["ParquetTablesByName"]

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


class ParquetTablesByName(ParquetFolders):
    """Writes and reads parquet tables by their names in a catalog."""

    one_table = True

    def stage(
        self, frame: Any, place: Place, note: str | None, rows: Rows | None, *, append: bool
    ) -> AbstractContextManager[Staged]:
        """Write a frame into a table of its own beside the one that it changes; or prepare to append it.

        Raises StorageError for rows outside of ``rows``, and for partitions that are no folders of a table;
        what Spark says of the plan passes through.
        """
        planned = frame if rows is None else rows.guarded(frame)
        folders = [] if rows is None else rows.folders(frame)
        if rows is not None and len(folders) < len(rows.columns):
            raise StorageError(
                f"a parquet table is partitioned by columns of its own, and partition_expr is "
                f"{', '.join(rows.columns.values())}; expected columns of type string, date or an integer"
            )
        if append:
            return staged_plan(frame, lambda: self._append_to(frame, planned, place, folders))
        return self._beside_named(planned, place, rows, folders)

    def read(self, session: Any, place: Place, version: Mapping[str, Any]) -> Any:
        """Return the table as it is now. Raises MissingTableError."""
        try:
            # Another session may have written since this one listed its files.
            session.sql(f"refresh table {place.name}")
            return session.table(place.name)
        except Exception as e:
            if "_NOT_FOUND" not in str(e):
                raise
            raise MissingTableError(
                f"no table {place.shown}; expected the table that the upstream asset stored; materialize it "
                "first"
            ) from e

    def _append_to(self, frame: Any, planned: Any, place: Place, folders: list[str]) -> Stored:
        session = frame.sparkSession
        if self._is_there(session, place):
            planned = as_the_table(planned, session.table(place.name), place.shown)
        self._save_as(planned, place, "append", folders)
        return self._as_handed_over(frame, place)

    @contextlib.contextmanager
    def _beside_named(
        self, planned: Any, place: Place, rows: Rows | None, folders: list[str]
    ) -> Iterator[Staged]:
        session = planned.sparkSession
        staged = Place(table=(*place.table[:-1], f"ubunye_staged_{uuid.uuid4().hex}"))

        def commit() -> Stored:
            source = session.table(staged.name)
            if rows is None or not self._is_there(session, place):
                self._save_as(source, place, "overwrite", folders)
            else:
                _replace_partitions(session, source, place, rows, folders)
            return self._stored(session, place, None, rows)

        try:
            self._save_as(planned, staged, "error", folders)
            yield Staged(session.table(staged.name), True, commit)
        finally:
            with contextlib.suppress(Exception):
                session.sql(f"drop table if exists {staged.name}")

    def _is_there(self, session: Any, place: Place) -> bool:
        try:
            self.read(session, place, {})
        except MissingTableError:
            return False
        return True

    def _save_as(self, frame: Any, place: Place, mode: str, folders: list[str]) -> None:
        writer = frame.write.format("parquet").mode(mode).partitionBy(*folders)
        for name, value in self._options.items():
            writer = writer.option(name, value)
        try:
            writer.saveAsTable(place.name)
        except Exception as e:
            known = outside_error(e)
            if known is None:
                raise
            raise known from e


def _replace_partitions(session: Any, source: Any, place: Place, rows: Rows, folders: list[str]) -> None:
    """Replace the folders of some partitions, and drop those that the new rows do not have any more."""
    table = session.table(place.name)
    inserted = as_the_table(source, table, place.shown)
    old = {tuple(row) for row in rows.of(table).select(*map(quoted, folders)).distinct().collect()}
    new = {tuple(row) for row in source.select(*map(quoted, folders)).distinct().collect()}
    before = session.conf.get(_OVERWRITE_MODE)
    session.conf.set(_OVERWRITE_MODE, "dynamic")
    try:
        inserted.write.mode("overwrite").insertInto(place.name)
    finally:
        session.conf.set(_OVERWRITE_MODE, before)
    for values in old - new:
        folder = ", ".join(f"{quoted(n)} = {_literal(v)}" for n, v in zip(folders, values, strict=True))
        session.sql(f"alter table {place.name} drop if exists partition ({folder})")


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int) else literal(str(value))
