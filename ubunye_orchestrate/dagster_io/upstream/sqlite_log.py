"""Dagster's SQLite event log, kept open during a run.

Whoever opens it anew for a question waits sixty times as long for SQLite to read its tables' layout as for
the answer. And who closes it last, as Dagster does after each event of an asset, puts it in order. Whoever
opens it or asks closes it too (``close_log``), so that no file is held beyond the run.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dagster import DagsterInstance
from dagster._core.storage.event_log.sqlite.sqlite_event_log import (
    INDEX_SHARD_NAME,
    SqliteEventLogStorage,
)
from dagster._core.storage.legacy_storage import LegacyEventLogStorage

__all__ = ["ask_sqlite_log", "close_log", "open_log", "sqlite_log_of"]

# By process: SQLite's connections must not be used, nor closed, behind a fork.
_opened: weakref.WeakKeyDictionary[SqliteEventLogStorage, dict[int, sqlite3.Connection]] = (
    weakref.WeakKeyDictionary()
)
_lock = threading.Lock()


def sqlite_log_of(instance: DagsterInstance) -> SqliteEventLogStorage | None:
    """Return the event log of an instance where it is Dagster's own in SQLite files; else None."""
    storage: Any = instance.event_log_storage
    if isinstance(storage, LegacyEventLogStorage):
        # Of an instance that is configured by ``storage:``.
        storage = storage._storage.event_log_storage
    return storage if type(storage) is SqliteEventLogStorage else None


def ask_sqlite_log(
    storage: SqliteEventLogStorage, question: str, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Return the rows that a SELECT finds in the database with the events of all runs' assets.

    Nothing is locked when it returns. Raises ``sqlite3.Error`` where it cannot be opened or asked.
    """
    with _lock:
        mine = _opened.setdefault(storage, {})
        connection = mine.get(os.getpid())
        if connection is None:
            file = Path(storage.path_for_shard(INDEX_SHARD_NAME)).as_uri()
            # Never made here, and only read; steps may run on several threads.
            connection = sqlite3.connect(f"{file}?mode=rw", uri=True, check_same_thread=False)
            connection.execute("PRAGMA query_only = 1")
            mine[os.getpid()] = connection
        # All rows: a statement that is not at its end keeps the database from being written.
        return connection.execute(question, values).fetchall()


def open_log(instance: DagsterInstance) -> None:
    """Open the event log where it is in SQLite files, for questions that follow. Raises ``sqlite3.Error``."""
    storage = sqlite_log_of(instance)
    if storage is not None:
        ask_sqlite_log(storage, "PRAGMA schema_version", {})


def close_log(instance: DagsterInstance) -> None:
    """Close the event log if this process has opened it; it is opened again by the next question."""
    storage = sqlite_log_of(instance)
    if storage is None:
        return
    with _lock:
        connection = _opened.get(storage, {}).pop(os.getpid(), None)
        if connection is not None:
            connection.close()
