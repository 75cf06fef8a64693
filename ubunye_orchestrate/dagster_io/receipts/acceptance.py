"""Acceptances and pins in the event log, where they are authoritative: observations of their asset."""

from __future__ import annotations

from collections.abc import Iterator

from dagster import (
    AssetKey,
    AssetObservation,
    AssetRecordsFilter,
    DagsterInstance,
    EventLogRecord,
    MetadataValue,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.metadata import receipt_of_event
from ubunye_orchestrate.errors import ConfigurationError, InvalidRecordError, RecordNotFoundError
from ubunye_orchestrate.records.baselines import Acceptance, decode_acceptance

__all__ = [
    "ACCEPTANCE",
    "acceptance_in",
    "acceptances_in",
    "report_acceptance",
    "said_since",
    "storage_id_of",
]

ACCEPTANCE = "ubunye/acceptance"
"""The metadata key under which an observation has an acceptance or a pin, as JSON."""

_PAGE = 200


def report_acceptance(instance: DagsterInstance, said: Acceptance) -> Acceptance:
    """Write an acceptance or a pin to the event log, with its run's storage id; return it so.

    Raises ConfigurationError for a record that is of no asset, and RecordNotFoundError when the instance has
    no materialization with that receipt.
    """
    if said.asset_key is None:
        raise ConfigurationError(
            f"run {said.run_id} is of no Dagster asset; expected one to accept in an instance; leave it out"
        )
    key = AssetKey(said.asset_key)
    storage_id = storage_id_of(instance, said)
    if storage_id is None:
        raise RecordNotFoundError(
            f"no materialization of {key.to_user_string()} with the receipt of run {said.run_id} in this "
            "instance; expected the instance that made it"
        )
    whole = said.model_copy(update={"storage_id": storage_id})
    instance.report_runless_asset_event(
        AssetObservation(
            asset_key=key,
            partition=said.partition_keys[0] if len(said.partition_keys) == 1 else None,
            description=f"run {said.run_id} was {said.kind} by {said.by}: {said.why}",
            metadata={ACCEPTANCE: MetadataValue.json(whole.model_dump(mode="json"))},
        )
    )
    return whole


def acceptances_in(instance: DagsterInstance, key: AssetKey) -> Iterator[Acceptance | InvalidRecordError]:
    """Yield what was accepted and pinned of an asset, newest first; an error for one that cannot be read."""
    cursor: str | None = None
    while True:
        page = instance.fetch_observations(AssetRecordsFilter(asset_key=key), limit=_PAGE, cursor=cursor)
        for event in page.records:
            try:
                found = acceptance_in(event)
            except InvalidRecordError as e:
                yield e
                continue
            if found is not None:
                yield found
        if not page.has_more:
            return
        cursor = page.cursor


def said_since(instance: DagsterInstance, key: AssetKey, after: int) -> tuple[list[Acceptance], int]:
    """Return what was said of an asset's runs after a storage id, newest first, and how far that reaches.

    That is the storage id of the newest observation, of whatever kind; ``after`` itself where there is none.
    What cannot be read says nothing.
    """
    found: list[Acceptance] = []
    until = after
    cursor: str | None = None
    wanted = AssetRecordsFilter(asset_key=key, after_storage_id=after or None)
    while True:
        page = instance.fetch_observations(wanted, limit=_PAGE, cursor=cursor)
        for event in page.records:
            until = max(until, event.storage_id)
            try:
                said = acceptance_in(event)
            except InvalidRecordError:
                continue
            if said is not None:
                found.append(said)
        if not page.has_more:
            return found, until
        cursor = page.cursor


def acceptance_in(event: EventLogRecord | upstream.AssetEvent) -> Acceptance | None:
    """Return the acceptance that an observation holds, None when it is another kind of observation.

    Raises InvalidRecordError for one that cannot be read.
    """
    one = event if isinstance(event, upstream.AssetEvent) else upstream.asset_event(event)
    if ACCEPTANCE not in one.metadata:
        return None
    value = one.metadata[ACCEPTANCE]
    where = f"observation {one.storage_id} of {one.asset_key.to_user_string()}"
    if isinstance(value, upstream.NotJson):
        raise InvalidRecordError(f"{where}: {ACCEPTANCE} is {value.kind}; expected JSON")
    return decode_acceptance(value, source=where)


def storage_id_of(instance: DagsterInstance, said: Acceptance) -> int | None:
    """Return the storage id of the materialization whose run was accepted; None where there is none here."""
    if said.asset_key is None:
        return None
    cursor: str | None = None
    while True:
        page = instance.fetch_materializations(
            AssetRecordsFilter(
                asset_key=AssetKey(said.asset_key), asset_partitions=said.partition_keys[:1] or None
            ),
            limit=_PAGE,
            cursor=cursor,
        )
        for event in page.records:
            try:
                record = receipt_of_event(event)
            except InvalidRecordError:
                continue
            if record is not None and record.run_id == said.run_id:
                return event.storage_id
        if not page.has_more:
            return None
        cursor = page.cursor
