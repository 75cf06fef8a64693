"""Materializations and observations of any assets, read for what this package needs of them.

Dagster unpacks an event into objects, of which most are never looked at: for one with a receipt that takes
fifteen times as long as reading its JSON. From a database that is laid out as Dagster's own, the events are
therefore taken as they stand in their table, and only those whose JSON is not as expected are unpacked by
Dagster. Any other storage is asked by its public methods. Both ways give the same events.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy
from dagster import (
    AssetKey,
    DagsterEventType,
    DagsterInstance,
    EventLogEntry,
    EventLogRecord,
    EventRecordsFilter,
    JsonMetadataValue,
    MetadataValue,
)
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.legacy_storage import LegacyEventLogStorage
from dagster._serdes import deserialize_value
from pydantic_core import from_json, to_json

from ubunye_orchestrate.dagster_io.upstream.sqlite_log import ask_sqlite_log, sqlite_log_of

__all__ = [
    "AssetEvent",
    "NewestOfAsset",
    "NotJson",
    "asset_event",
    "json_of",
    "materializations_after",
    "materializations_by_id",
    "newest_of_asset",
    "observations_after",
]

# SQLite allows 32,766 variables in a statement, older builds 999.
_IDS_AT_ONCE = 500

# Whose event logs are laid out as Dagster's table says. A storage of the user's own may hold back events.
_DAGSTERS_OWN = ("dagster", "dagster_postgres", "dagster_mysql")

_OURS = "ubunye/"
_ABOUT = {"StepMaterializationData": "materialization", "AssetObservationData": "asset_observation"}


# All in one statement: opening the event log costs more than what is asked of it. And as text, which need not
# be compiled anew for each of Dagster's connections.
_NEWEST = """
SELECT
    (SELECT max(id) FROM event_logs WHERE asset_key = :key AND dagster_event_type = 'ASSET_OBSERVATION'),
    (SELECT asset_details FROM asset_keys WHERE asset_key = :key),
    newest.id, newest.event
FROM (SELECT 1 AS one) alone LEFT JOIN (
    SELECT id, event FROM event_logs
        WHERE asset_key = :key AND dagster_event_type = 'ASSET_MATERIALIZATION'{of_partition}
        ORDER BY id DESC LIMIT 1
) newest ON 1 = 1
"""


@dataclass(frozen=True)
class NotJson:
    """A value among an event's metadata that is no JSON."""

    kind: str
    """Name of the class of its value, as Dagster calls it."""


@dataclass(frozen=True)
class AssetEvent:
    """A materialization or an observation of an asset."""

    storage_id: int
    asset_key: AssetKey
    partition: str | None = None
    run_id: str = ""
    """Empty for one that was reported outside of a run."""
    timestamp: float = 0.0
    """Seconds since the epoch."""
    metadata: Mapping[str, bytes | NotJson] = field(default_factory=dict)
    """The entries of this package, by label: JSON as ``pydantic_core.to_json`` writes it, or no JSON."""
    error: str | None = None
    """Why nothing else is known of it: it cannot be read."""


class NewestOfAsset(NamedTuple):
    """The newest events of an asset."""

    materialization: AssetEvent | None
    observation: int
    """Storage id of the newest observation; 0 where there is none."""


def newest_of_asset(
    instance: DagsterInstance, key: AssetKey, partition: str | None = None
) -> NewestOfAsset | None:
    """Return the newest materialization of an asset, or of one of its partitions, and its newest observation.

    One look at a database. By the public methods they are four connections to it, each of which costs SQLite
    more than the answer. None where the log is no database as Dagster lays it out, or the asset was wiped:
    the public methods know what to do then. A database of SQLite stays open: who asks calls ``close_log``.
    """
    files = sqlite_log_of(instance)
    storage = _database_of(instance) if files is None else files
    if storage is None:
        return None
    asked = {"key": key.to_string()} | ({} if partition is None else {"partition": partition})
    query = _NEWEST.format(of_partition="" if partition is None else " AND partition = :partition")
    try:
        if files is not None:
            (row,) = ask_sqlite_log(files, query, asked)
        else:
            with storage.index_connection() as connection:
                row = connection.execute(sqlalchemy.text(query), asked).one()
    except (sqlalchemy.exc.SQLAlchemyError, sqlite3.Error):  # tables of another version
        return None
    observed, details, storage_id, event = row
    if details is not None:
        return None
    newest = None if storage_id is None else _event_of_row(storage_id, key.to_string(), event)
    return NewestOfAsset(newest, observed or 0)


def materializations_after(instance: DagsterInstance, storage_id: int, limit: int) -> Sequence[AssetEvent]:
    """Return at most ``limit`` materializations of any asset after ``storage_id``, oldest first: 1 query"""
    wanted = EventRecordsFilter(event_type=DagsterEventType.ASSET_MATERIALIZATION, after_cursor=storage_id)
    return _events(instance, wanted, limit)


def observations_after(instance: DagsterInstance, storage_id: int, limit: int) -> Sequence[AssetEvent]:
    """Return at most ``limit`` observations of any asset after ``storage_id``, oldest first: one query."""
    wanted = EventRecordsFilter(event_type=DagsterEventType.ASSET_OBSERVATION, after_cursor=storage_id)
    return _events(instance, wanted, limit)


def materializations_by_id(instance: DagsterInstance, storage_ids: Iterable[int]) -> Mapping[int, AssetEvent]:
    """Return the materializations of any assets by storage id; ids that are gone are left out."""
    ids = sorted(set(storage_ids))
    found: dict[int, AssetEvent] = {}
    for start in range(0, len(ids), _IDS_AT_ONCE):
        wanted = EventRecordsFilter(
            event_type=DagsterEventType.ASSET_MATERIALIZATION, storage_ids=ids[start : start + _IDS_AT_ONCE]
        )
        found.update((event.storage_id, event) for event in _events(instance, wanted, None))
    return found


def asset_event(record: EventLogRecord) -> AssetEvent:
    """Return a materialization or an observation that Dagster has unpacked."""
    about = record.asset_materialization or record.asset_observation
    assert about is not None, "the event is about an asset"
    return AssetEvent(
        storage_id=record.storage_id,
        asset_key=about.asset_key,
        partition=None if about.partition is None else str(about.partition),
        run_id=record.run_id,
        timestamp=record.timestamp,
        metadata={
            label: json_of(value) for label, value in about.metadata.items() if label.startswith(_OURS)
        },
    )


def json_of(value: MetadataValue[Any]) -> bytes | NotJson:
    """Return the JSON that an entry among an event's metadata has, as ``pydantic_core.to_json`` writes it."""
    return _dumped(value.data) if isinstance(value, JsonMetadataValue) else NotJson(type(value).__name__)


def _dumped(data: Any) -> bytes:
    try:
        return to_json(data)
    except ValueError:  # text that is not valid Unicode, or nested too deeply: who reads it will say so
        return json.dumps(data).encode()


def _events(instance: DagsterInstance, wanted: EventRecordsFilter, limit: int | None) -> list[AssetEvent]:
    storage = _database_of(instance)
    if storage is None:
        records = instance.event_log_storage.get_event_records(wanted, limit=limit, ascending=True)
        return [asset_event(record) for record in records]
    table = SqlEventLogStorageTable.c
    query = sqlalchemy.select(table.id, table.asset_key, table.event).where(
        table.dagster_event_type == wanted.event_type.value
    )
    if wanted.after_cursor is not None:
        query = query.where(table.id > wanted.after_cursor)
    if wanted.storage_ids is not None:
        query = query.where(table.id.in_(wanted.storage_ids))
    with storage.index_connection() as connection:
        rows = connection.execute(query.order_by(table.id.asc()).limit(limit)).all()
    return [_event_of_row(*row) for row in rows]


def _database_of(instance: DagsterInstance) -> SqlEventLogStorage | None:
    """Return the storage whose table has the events of all runs; None where that is not known."""
    storage: Any = instance.event_log_storage
    if isinstance(storage, LegacyEventLogStorage):
        # Of an instance that is configured by ``storage:``.
        storage = storage._storage.event_log_storage
    own = type(storage).__module__.partition(".")[0] in _DAGSTERS_OWN
    return storage if own and isinstance(storage, SqlEventLogStorage) else None


def _event_of_row(storage_id: int, asset_key: str | None, text: str) -> AssetEvent:
    try:
        return _event_of_json(storage_id, from_json(text))
    except (ValueError, KeyError, TypeError):
        pass  # Of another version of Dagster's, or broken: that is Dagster's to say.
    try:
        return asset_event(EventLogRecord(storage_id, deserialize_value(text, EventLogEntry)))
    except Exception as e:  # noqa: BLE001 - one event that cannot be read must not keep the others from it
        key = AssetKey.from_db_string(asset_key) or AssetKey(["unknown"])
        return AssetEvent(storage_id, key, error=f"{type(e).__name__}: {e}")


def _event_of_json(storage_id: int, entry: Mapping[str, Any]) -> AssetEvent:
    """Take an event apart as Dagster packs it; raises for anything that is not as expected."""
    data = entry["dagster_event"]["event_specific_data"]
    about = data[_ABOUT[data["__class__"]]]
    metadata = {
        one["label"]: _value_of_json(one["entry_data"])
        for one in about["metadata_entries"]
        if one["label"].startswith(_OURS)
    }
    partition, run_id, timestamp = about["partition"], entry["run_id"], entry["timestamp"]
    known = entry["__class__"] == "EventLogEntry" and isinstance(timestamp, float)
    if not known or not (partition is None or isinstance(partition, str)):
        raise TypeError("an event of another kind")
    return AssetEvent(
        storage_id, AssetKey(about["asset_key"]["path"]), partition, run_id, timestamp, metadata
    )


def _value_of_json(value: Mapping[str, Any]) -> bytes | NotJson:
    kind: str = value["__class__"]
    # Dagster packs its values under the names that they once had.
    return (
        _dumped(value["data"])
        if kind == "JsonMetadataEntryData"
        else NotJson(kind.replace("EntryData", "Value"))
    )
