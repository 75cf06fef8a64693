"""The materialization that a run is held against: the last success of its asset, partition and profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dagster import AssetKey, AssetRecordsFilter, DagsterInstance, EventLogRecord

from ubunye_orchestrate.dagster_io.metadata import receipt_of
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["Baseline", "find_baseline", "latest_package", "receipt_of_event"]

# How far back one looks past other profiles' runs and runs without a receipt.
_LOOK_BACK = 50


@dataclass(frozen=True)
class Baseline:
    """A materialization with a receipt."""

    storage_id: int
    run_id: str
    record: RunRecord


def find_baseline(
    instance: DagsterInstance, key: AssetKey, partition_keys: Sequence[str], profile: str
) -> Baseline | None:
    """Return the newest materialization of the asset whose receipt is of the same partitions and profile.

    One query of one event as a rule; a second one of some dozens where that one does not fit. A receipt that
    this version cannot read is passed over.
    """
    partitions = list(partition_keys[:1]) or None
    for limit in (1, _LOOK_BACK):
        events = instance.fetch_materializations(
            AssetRecordsFilter(asset_key=key, asset_partitions=partitions), limit=limit
        ).records
        for event in events:
            try:
                record = receipt_of_event(event)
            except InvalidRecordError:
                continue
            if record is not None and _fits(record, partition_keys, profile):
                return Baseline(event.storage_id, event.run_id, record)
        if len(events) < limit:
            break
    return None


def receipt_of_event(event: EventLogRecord) -> RunRecord | None:
    """Return the receipt of a materialization, None without one. InvalidRecordError: it cannot be read."""
    materialization = event.asset_materialization
    if materialization is None:
        return None
    where = f"materialization {event.storage_id} of {materialization.asset_key.to_user_string()}"
    return receipt_of(materialization.metadata, source=where)


def _fits(record: RunRecord, partition_keys: Sequence[str], profile: str) -> bool:
    recorded = (record.dagster or {}).get("partition_keys") or []
    return record.status == "success" and record.profile == profile and set(recorded) == set(partition_keys)


def latest_package(instance: DagsterInstance, key: AssetKey) -> str | None:
    """Return the package (the asset's group) of the asset's newest receipt."""
    for event in instance.fetch_materializations(AssetRecordsFilter(asset_key=key), limit=1).records:
        try:
            record = receipt_of_event(event)
        except InvalidRecordError:
            return None
        return None if record is None else record.package
    return None
