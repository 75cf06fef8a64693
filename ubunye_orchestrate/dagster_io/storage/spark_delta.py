"""Delta tables through Spark, classic or Connect: one commit a write, hashed from the version that it made.

A version of a Delta table never changes, so what is read from it later is what was committed, whatever
others commit meanwhile. The commit is found in the table's history by the note that it carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import unquote

from ubunye_orchestrate.dagster_io.receipts.delta_evidence import USER_METADATA, delta_version
from ubunye_orchestrate.dagster_io.storage.spark_inserting import as_the_table
from ubunye_orchestrate.dagster_io.storage.spark_listing import file_name_of_row, files_read
from ubunye_orchestrate.dagster_io.storage.spark_places import (
    MissingTableError,
    Place,
    Rows,
    Staged,
    Stored,
    base_of,
    outside_error,
    staged_plan,
)
from ubunye_orchestrate.dagster_io.storage.spark_session import commits_noted, delta_coordinates
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.hashing.spark.failures import reason

__all__ = ["DeltaTables", "place_of"]

# Others' commits between ours and the look at the history: more than the first step holds is rare.
_HISTORY_STEPS = (20, 1_000)
_NOT_THERE = (
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_TABLE_ONLY_OPERATION",
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
)
_NO_TRUNCATE = "does not support truncate"
_NO_DELTA = ("io.delta.", "DeltaCatalog", "DATA_SOURCE_NOT_FOUND", "PARSE_SYNTAX_ERROR")


class DeltaTables:
    """Writes and reads Delta tables by path or by name."""

    format = "delta"
    one_table = True

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take options for Spark's writer."""
        self._options = options

    def stage(
        self, frame: Any, place: Place, note: str | None, rows: Rows | None, *, append: bool
    ) -> AbstractContextManager[Staged]:
        """Prepare to commit a frame: in place of the table, of the rows of some partitions, or beside them.

        ``note`` becomes the commit's user metadata, by which it is found again; no other commit has it.
        Without one (outside of a run) nobody asks what was stored. Raises StorageError for rows outside of
        ``rows``; what Spark says of the plan passes through.
        """
        return staged_plan(frame, lambda: self._write(frame, place, note, rows, append=append))

    def _write(
        self, frame: Any, place: Place, note: str | None, rows: Rows | None, *, append: bool
    ) -> Stored:
        session = frame.sparkSession
        where = None if rows is None else rows.condition(frame)
        writer = (frame if rows is None else rows.guarded(frame)).write.format(self.format)
        writer = writer.mode("append" if append else "overwrite")
        if where is None and not append:
            writer = writer.option("overwriteSchema", "true")
        elif where is not None and not append:
            writer = writer.option("replaceWhere", where)
        if rows is not None and not self._exists(session, place):
            writer = writer.partitionBy(*rows.folders(frame))
        for name, value in self._options.items():
            writer = writer.option(name, value)
        if note is not None:
            writer = writer.option(USER_METADATA, note)
        try:
            _ = writer.save(place.path) if place.path is not None else writer.saveAsTable(place.name)
        except Exception as e:
            known = outside_error(e) or _no_delta(e, session)
            if known is not None:
                raise known from e
            if place.path is not None or append or _NO_TRUNCATE not in str(e):
                raise
            self._insert(frame if rows is None else rows.guarded(frame), place, note, rows)
        return self._committed(session, place, note, rows, append=append)

    def _insert(self, frame: Any, place: Place, note: str | None, rows: Rows | None) -> None:
        """Replace rows where Spark refuses to replace a table by name (3.5.9 does, with Delta 3.3)."""
        session = frame.sparkSession
        # The statement that makes a table passes over the writer's option.
        with nullcontext() if note is None else commits_noted(session, note):
            if not self._exists(session, place):
                writer = frame.write.format(self.format).mode("append")
                writer.partitionBy(*([] if rows is None else rows.folders(frame))).saveAsTable(place.name)
                return
            ordered = as_the_table(frame, session.table(place.name), place.shown)
            writer = ordered.write.format(self.format).mode("overwrite")
            if rows is not None:
                writer = writer.option("replaceWhere", rows.condition(frame))
            try:
                writer.insertInto(place.name)
            except Exception as e:
                known = outside_error(e)
                if known is None:
                    raise
                raise known from e

    def resolve(self, session: Any, place: Place, number: int | None = None) -> dict[str, Any]:
        """Return a version, by default the newest, as ``source_version``.

        Raises StorageError, MissingTableError.
        """
        if number is None:
            return delta_version(self._history(session, place, 1)[0])
        commits = self._history(session, place, None)
        found = next((commit for commit in commits if commit["version"] == number), None)
        if found is None:
            raise MissingTableError(
                f"the Delta table {place.shown} has no version {number} any more or yet; its history has "
                f"{commits[-1]['version']} to {commits[0]['version']}"
            )
        return delta_version(found)

    def read(self, session: Any, place: Place, version: Mapping[str, Any]) -> Any:
        """Return the table as it is in a version, whatever is committed later."""
        number = int(version["version"])
        if place.path is None:
            return session.sql(f"select * from {place.name} version as of {number}")
        return session.read.format(self.format).option("versionAsOf", number).load(place.path)

    def _committed(
        self, session: Any, place: Place, note: str | None, rows: Rows | None, *, append: bool
    ) -> Stored:
        try:
            commit = None if note is None else self._commit_of(session, place, note)
            if commit is None and append:
                # Delta makes no commit of nothing.
                version = self.resolve(session, place)
                whole = self._rows_at(session, place, version, rows)
                return Stored(
                    whole.limit(0), version, "no row was appended, and no version made", whole=whole
                )
            if commit is None:
                why = "the commit is not in the table's history"
                return Stored(None, {"kind": "none", "reason": why}, f"not hashed: {why}")
            version = delta_version(commit)
        except Exception as e:  # noqa: BLE001 - the write has succeeded, so this is the receipt's trouble only
            why = f"what was stored cannot be read back: {reason(e)}"
            return Stored(None, {"kind": "none", "reason": why}, f"not hashed: {why}")
        try:
            stored = self._rows_at(session, place, version, rows)
            told = f"hashed from version {version['version']}, which this run committed"
            if append:
                added = self._added(session, place, version)
                told = f"hashed from the files that version {version['version']} added"
                counted = version["metrics"].get("numOutputRows")
                return Stored(added, version, told, counted=counted, whole=stored)
            return Stored(stored, version, told)
        except Exception as e:  # noqa: BLE001 - the write has succeeded, so this is the receipt's trouble only
            return Stored(None, version, f"not hashed: what was stored cannot be read back: {reason(e)}")

    def _rows_at(self, session: Any, place: Place, version: Mapping[str, Any], rows: Rows | None) -> Any:
        table = self.read(session, place, version)
        return table if rows is None else rows.of(table)

    def _added(self, session: Any, place: Place, version: dict[str, Any]) -> Any:
        """Return the rows of the files that a version has and the one before has not; an append only adds."""
        number = int(version["version"])
        table = self.read(session, place, version)
        names = _file_names(table)
        if number > 0:
            names -= _file_names(self.read(session, place, {"version": number - 1}))
        return table.where(file_name_of_row(table).isin(sorted(names)))

    def _commit_of(self, session: Any, place: Place, note: str) -> dict[str, Any] | None:
        for limit in _HISTORY_STEPS:
            history = self._history(session, place, limit)
            found = next((commit for commit in history if commit.get(USER_METADATA) == note), None)
            if found is not None or len(history) < limit:
                return found
        return None

    def _history(self, session: Any, place: Place, limit: int | None) -> list[dict[str, Any]]:
        """Return the newest commits, newest first."""
        path = (place.path or "").replace("`", "``")
        table = place.name if place.path is None else f"delta.`{path}`"
        try:
            # As a number: a timestamp would come in the zone of whoever collects it.
            newest = "" if limit is None else f" limit {limit}"
            found = session.sql(f"describe history {table}{newest}").selectExpr(
                "version",
                "unix_millis(timestamp) as timestamp",
                "operation",
                "operationMetrics",
                USER_METADATA,
            )
            commits = [row.asDict(recursive=True) for row in found.collect()]
        except Exception as e:
            known = _not_there(e, place) or _no_delta(e, session)
            if known is None:
                raise
            raise known from e
        if not commits:
            raise MissingTableError(f"the Delta table {place.shown} has no version")
        return commits

    def _exists(self, session: Any, place: Place) -> bool:
        try:
            self._history(session, place, 1)
        except MissingTableError:
            return False
        return True


def place_of(table: str) -> Place:
    """Return the place of a table that somebody names: a path (it has a ``/``), or a name in a catalog."""
    return Place(path=base_of(table)) if "/" in table else Place(table=tuple(table.split(".")))


def _file_names(table: Any) -> set[str]:
    # Every file's name is its own, and its path may be written in several ways.
    return {unquote(path.rpartition("/")[2]) for path in files_read(table)}


def _not_there(error: Exception, place: Place) -> StorageError | None:
    if not any(f"[{name}" in str(error) for name in _NOT_THERE):
        return None
    return MissingTableError(
        f"no Delta table {place.shown}; expected the table that the upstream asset stored; materialize it "
        "first"
    )


def _no_delta(error: Exception, session: Any) -> StorageError | None:
    """Return what to do about a Spark that does not know Delta; None for any other error."""
    text = str(error)
    if "delta" not in text.lower() or not any(name in text for name in _NO_DELTA):
        return None
    return StorageError(
        f"this Spark ({session.version}) has no Delta: {reason(error).splitlines()[0]}; give it the jars "
        f'(SparkResource(packages=["{delta_coordinates(session.version)}"]), jars=[…], or spark.jars of '
        "the cluster), with Delta's extension and catalog set when it starts"
    )
