"""Parquet tables of Spark's in folders: written beside the old one and put in its place, whole or not at all.

Where this process does not see the files that Spark writes (a cluster's own disks, a store that fsspec has no
driver for), Spark overwrites the folder itself, and a write that fails leaves what Spark leaves.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import unquote

from upath import UPath

from ubunye_orchestrate.dagster_io.storage.parquet import files_version, shown_path
from ubunye_orchestrate.dagster_io.storage.spark_listing import files_read
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
from ubunye_orchestrate.foreign import said
from ubunye_orchestrate.hashing.spark.failures import reason

__all__ = ["ParquetFolders"]

_NOT_THERE = ("[PATH_NOT_FOUND", "[UNABLE_TO_INFER_SCHEMA")


class ParquetFolders:
    """Writes and reads parquet tables by path, each a folder."""

    format = "parquet"
    one_table = False

    def __init__(self, options: Mapping[str, str], storage_options: Mapping[str, Any]) -> None:
        """Take options for Spark's writer, and what fsspec needs to see the same files."""
        self._options = options
        self._storage_options = storage_options
        self._seen: dict[str, bool] = {}

    def stage(
        self, frame: Any, place: Place, note: str | None, rows: Rows | None, *, append: bool
    ) -> AbstractContextManager[Staged]:
        """Write a frame beside the folder that it replaces; or prepare to write it into it (``append``).

        ``note`` has no place in parquet. Raises StorageError for rows outside of ``rows`` and for a place
        that cannot be written; what Spark says of the plan passes through.
        """
        assert place.path is not None, "a folder has a path"
        path = place.path
        planned = frame if rows is None else rows.guarded(frame)
        if append:
            return staged_plan(frame, lambda: self._append(frame, planned, place, path))
        folder = self._folder(frame.sparkSession, path)
        if folder is None:
            return staged_plan(frame, lambda: self._overwrite(planned, place, path))
        _refuse_other_tables(folder)
        return self._beside(planned, place, path, folder)

    def resolve(self, session: Any, place: Place) -> dict[str, Any]:
        """Return the state of the files, as ``source_version``. Raises StorageError, MissingTableError."""
        return self._version_of(self.read(session, place, {}))

    def read(self, session: Any, place: Place, version: Mapping[str, Any]) -> Any:
        """Return the table: the files that are there now (a folder has no versions to choose from)."""
        try:
            # Of what somebody has cached of this path Spark would give the rows that were there then.
            session.catalog.refreshByPath(place.path)
            return session.read.parquet(place.path)
        except Exception as e:
            if not str(e).startswith(_NOT_THERE):
                raise
            raise MissingTableError(
                f"no parquet files in {place.shown}; expected the table that the upstream asset stored; "
                "materialize it first"
            ) from e

    def _save(self, frame: Any, path: str, mode: str) -> None:
        writer = frame.write.mode(mode)
        for name, value in self._options.items():
            writer = writer.option(name, value)
        try:
            writer.parquet(path)
        except Exception as e:
            known = outside_error(e)
            if known is None:
                raise
            raise known from e

    def _append(self, frame: Any, planned: Any, place: Place, path: str) -> Stored:
        self._save(planned, path, "append")
        return self._as_handed_over(frame, place)

    def _as_handed_over(self, frame: Any, place: Place) -> Stored:
        """Return an append whose rows cannot be told from those that were there."""
        session = frame.sparkSession
        told = "hashed as it was handed over: its plan was computed again for it, and may give other rows"
        version, whole = {"kind": "none", "reason": "the files cannot be listed"}, None
        with contextlib.suppress(Exception):  # the write has succeeded
            whole = self.read(session, place, {})
            version = self._version_of(whole)
        return Stored(frame, version, told, recomputed=True, whole=whole)

    def _overwrite(self, planned: Any, place: Place, path: str) -> Stored:
        self._save(planned, path, "overwrite")
        return self._stored(planned.sparkSession, place, None)

    @contextlib.contextmanager
    def _beside(self, planned: Any, place: Place, path: str, folder: UPath) -> Iterator[Staged]:
        """Write under a name that Spark's readers pass over, and move it to its place at the commit."""
        new, old = (folder.parent / f".{uuid.uuid4().hex}.{end}" for end in ("new", "old"))
        session = planned.sparkSession
        staged = f"{path.rpartition('/')[0]}/{new.name}"

        def commit() -> Stored:
            made = frozenset(file.name for file in new.iterdir() if not file.name.startswith(("_", ".")))
            try:
                _swap(new, folder, old)
            except OSError as e:
                what = e.strerror or e
                raise StorageError(
                    f"{place.shown} cannot be written: {what}; check the folder's rights"
                ) from e
            return self._stored(session, place, made)

        try:
            self._save(planned, staged, "error")
            yield Staged(session.read.parquet(staged), True, commit)
        finally:
            with contextlib.suppress(Exception):
                new.rmdir(recursive=True)

    def _stored(
        self, session: Any, place: Place, written: frozenset[str] | None, rows: Rows | None = None
    ) -> Stored:
        try:
            stored = self.read(session, place, {})
            # A frame keeps to the files that it found, and each write names its files anew.
            if written is not None and _names(stored) != written:
                raise StorageError("another run has replaced the files")
            version = self._version_of(stored)
            return Stored(
                stored if rows is None else rows.of(stored), version, "hashed from the stored files"
            )
        except Exception as e:  # noqa: BLE001 - the write has succeeded, so this is the receipt's trouble only
            why = f"what was stored cannot be read back: {reason(e)}"
            return Stored(None, {"kind": "none", "reason": why}, f"not hashed: {why}")

    def _folder(self, session: Any, path: str) -> UPath | None:
        """Return the folder as this process sees it; None where it and Spark do not see the same files."""
        parent = path.rpartition("/")[0]
        if parent not in self._seen:
            self._seen[parent] = self._sees(session, parent)
        return UPath(path, **self._storage_options) if self._seen[parent] else None

    def _sees(self, session: Any, folder: str) -> bool:
        token = uuid.uuid4().hex
        # Spark's readers pass over such names in a folder; by its own it is read.
        name = f"{token}.txt"
        try:
            here = UPath(folder, **self._storage_options)
            here.mkdir(parents=True, exist_ok=True)
            file = here / name
            file.write_text(token)
            try:
                return bool(session.read.text(f"{folder}/{name}").first()[0] == token)
            finally:
                file.unlink()
        except Exception:  # noqa: BLE001 - whatever the reason, Spark writes without our help
            return False

    def _version_of(self, frame: Any) -> dict[str, Any]:
        try:
            seen = [UPath(path, **self._storage_options) for path in _files(frame)]
        except Exception as e:  # noqa: BLE001 - a store that has no driver here, or a Spark that is gone
            return {"kind": "none", "reason": f"the files cannot be listed: {reason(e)}"}
        return files_version(seen) if seen else {"kind": "none", "reason": "Spark names no files"}


def _refuse_other_tables(folder: UPath) -> None:
    """Raise StorageError for a folder whose replacement would take another table away with it."""
    if not folder.exists():
        return
    inside = sorted(one.name for one in folder.iterdir() if one.is_dir())
    # Folders of the table's own are partitions of it, or of no interest to any reader.
    others = [name for name in inside if not name.startswith((".", "_")) and "=" not in name]
    if others:
        raise StorageError(
            f"{shown_path(folder)} holds folders ({', '.join(others[:3])}), which would be gone with the "
            "table that is replaced: of assets whose keys go on from this one's, or of partitions; give one "
            "of them another key or base_path, or remove them"
        )


def _files(frame: Any) -> list[str]:
    """Return the files that a frame reads, as fsspec takes them."""
    found = (unquote(uri) for uri in files_read(frame))
    return sorted(re.sub(r"\Afile:/+", "/", path) for path in found)


def _names(frame: Any) -> frozenset[str]:
    return frozenset(path.rpartition("/")[2] for path in _files(frame))


def _swap(new: UPath, folder: UPath, old: UPath) -> None:
    """Put a folder in the place of another, which comes back if that fails.

    Raises StorageError, naming where the old one is now, where it cannot come back.
    """
    had_one = folder.exists()
    if had_one:
        folder.fs.mv(folder.path, old.path, recursive=True)
    try:
        folder.fs.mv(new.path, folder.path, recursive=True)
    except Exception as e:
        if had_one:
            _put_back(old, folder, e)
        raise
    if had_one:
        with contextlib.suppress(Exception):  # the new one stands
            old.rmdir(recursive=True)


def _put_back(old: UPath, folder: UPath, why: Exception) -> None:
    try:
        # Moved to a folder that is there (half of the new one, another run's) it would end up inside.
        back = not folder.exists()
        if back:
            folder.fs.mv(old.path, folder.path, recursive=True)
    except Exception:  # noqa: BLE001 - each store has its own; said below
        back = False
    if not back:
        raise StorageError(
            f"{shown_path(folder)} cannot be replaced ({said(why)}), nor be put back; the table that was "
            f"there is now {shown_path(old)}: move it back, or materialize the asset again"
        ) from why
