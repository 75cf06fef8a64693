"""The materialization that a run is held against.

As a rule the last success of its asset, partition and profile; a pinned run while there is one; the last
accepted one where the policy asks for it. What was pinned and accepted stands in observations of the asset.
Each receipt names all three and how far the observations were read, so that the next one reads only what was
said since, and whoever judges a receipt needs no further look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dagster import AssetKey, AssetRecordsFilter, DagsterInstance, EventLogRecord

from ubunye_orchestrate.compare.policy import BaselineWanted
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.acceptance import said_since
from ubunye_orchestrate.dagster_io.receipts.completing import completed
from ubunye_orchestrate.dagster_io.receipts.metadata import receipt_of_event
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.records.baselines import Acceptance
from ubunye_orchestrate.records.model import RunRecord

__all__ = [
    "Baseline",
    "BaselineKind",
    "baseline_named",
    "find_baseline",
    "latest_package",
    "receipt_of_event",
]

BaselineKind = Literal["previous", "pinned", "accepted"]

# How far back one looks past other profiles' runs and runs without a receipt.
_LOOK_BACK = 50


@dataclass(frozen=True)
class Baseline:
    """A materialization to hold a run against."""

    storage_id: int
    run_id: str
    record: RunRecord | None
    """None for a pinned or accepted one that is no longer in the event log or cannot be read."""
    kind: BaselineKind = "previous"
    named: Mapping[str, Any] = field(default_factory=dict)
    """As the receipt keeps it: ``previous``, ``pinned`` and ``accepted``, each with ``run_id`` and
    ``storage_id``, and ``said_until``, the newest observation that was read. Empty where nothing was said."""
    missing: str | None = None
    """Why this is none, though it is no first run: its partitions were stored together, or apart, then."""


def find_baseline(
    instance: DagsterInstance,
    key: AssetKey,
    partition_keys: Sequence[str],
    profile: str,
    wanted: BaselineWanted = "previous",
) -> Baseline | None:
    """Return what a new run of the asset is held against; None where there is nothing, not even a reason.

    One look at the event log, as a rule; another where there are observations since the previous success, for
    what they say, and one for a pinned or accepted run. A receipt that this version cannot read is passed
    over.
    """
    newest = upstream.newest_of_asset(instance, key, next(iter(partition_keys), None))
    previous, otherwise = _previous(instance, key, partition_keys, profile, newest)
    known: Mapping[str, Any] = {}
    if previous is not None and previous.record is not None:
        known = (previous.record.dagster or {}).get("baselines") or {}
    noted_until = known.get("said_until")
    after = noted_until if isinstance(noted_until, int) else 0
    said: list[Acceptance] = []
    until = after
    if newest is None or newest.observation > after:
        said, until = said_since(instance, key, after)
    said = [one for one in said if one.profile == profile and set(one.partition_keys) == set(partition_keys)]
    named: dict[str, Any] = {}
    if previous is not None:
        named["previous"] = {"run_id": previous.run_id, "storage_id": previous.storage_id}
    pins = (one for one in said if one.kind != "accepted")
    accepted = (one for one in said if one.kind != "unpinned")
    for kind, last in (("pinned", next(pins, None)), ("accepted", next(accepted, None))):
        entry = known.get(kind) if last is None else _entry(last)
        if entry is not None:
            named[kind] = entry
    # What nobody ever said need not be noted.
    noted = {**named, "said_until": until} if until else {}
    chosen = baseline_named({"baselines": named}, wanted)
    if chosen is None:
        return otherwise
    kind, entry = chosen
    if kind == "previous":
        assert previous is not None, "the previous one was found"
        return Baseline(previous.storage_id, previous.run_id, previous.record, kind, noted)
    storage_id = entry["storage_id"]
    event = upstream.materializations_by_id(instance, [storage_id]).get(storage_id)
    return Baseline(storage_id, entry["run_id"], None if event is None else _readable(event), kind, noted)


def baseline_named(
    dagster: Mapping[str, Any] | None, wanted: BaselineWanted
) -> tuple[BaselineKind, Mapping[str, Any]] | None:
    """Return which materialization a receipt (its ``dagster`` part) is to be held against, and of what kind.

    A pinned one first, then what ``wanted`` asks for; until a run is accepted, that is the previous one.
    """
    named = (dagster or {}).get("baselines") or {}
    order: tuple[BaselineKind, ...] = (
        ("pinned", "accepted", "previous") if wanted == "accepted" else ("pinned", "previous")
    )
    for kind in order:
        if named.get(kind):
            return kind, named[kind]
    alone = (dagster or {}).get("baseline")
    return ("previous", alone) if alone else None


def _previous(
    instance: DagsterInstance,
    key: AssetKey,
    partition_keys: Sequence[str],
    profile: str,
    newest: upstream.NewestOfAsset | None,
) -> tuple[Baseline | None, Baseline | None]:
    """Return the newest materialization whose receipt is of the same partitions and profile.

    Where there is none, the newest one of other partitions than these, among them one of these, with what
    that means. ``newest`` is the newest one of all, where it is known.
    """
    otherwise: Baseline | None = None
    if newest is not None:
        last = newest.materialization
        if last is None:
            return None, None
        record = _readable(last)
        if record is not None and _fits(record, partition_keys, profile):
            return Baseline(last.storage_id, last.run_id, record), None
    partitions = list(partition_keys[:1]) or None
    for limit in (1, _LOOK_BACK) if newest is None else (_LOOK_BACK,):
        events = instance.fetch_materializations(
            AssetRecordsFilter(asset_key=key, asset_partitions=partitions), limit=limit
        ).records
        for event in events:
            record = _readable(event)
            if record is None or record.status != "success" or record.profile != profile:
                continue
            if _fits(record, partition_keys, profile):
                return Baseline(event.storage_id, event.run_id, record), None
            if otherwise is None:
                why = _otherwise(event.run_id, _partitions_of(record), partition_keys)
                otherwise = Baseline(event.storage_id, event.run_id, None, missing=why)
        if len(events) < limit:
            break
    return None, otherwise


def _otherwise(run_id: str, then: Sequence[str], now: Sequence[str]) -> str:
    return f"nothing to compare with: run {run_id} stored {_together(then)}, this one {_together(now)}"


def _together(partitions: Sequence[str]) -> str:
    if not partitions:
        return "the asset as a whole"
    shown = ", ".join(partitions[:3])
    if len(partitions) == 1:
        return f"partition {shown}"
    more = f" and {len(partitions) - 3:,} more" if len(partitions) > 3 else ""
    return f"partitions {shown}{more} together"


def _entry(said: Acceptance) -> Mapping[str, Any] | None:
    """Return the run that was accepted or pinned; None for one that was unpinned, or is not in the log."""
    if said.kind == "unpinned" or said.storage_id is None:
        return None
    return {"run_id": said.run_id, "storage_id": said.storage_id}


def _readable(event: EventLogRecord | upstream.AssetEvent) -> RunRecord | None:
    try:
        receipt = receipt_of_event(event)
    except InvalidRecordError:
        return None
    return None if receipt is None else completed(receipt)


def _fits(record: RunRecord, partition_keys: Sequence[str], profile: str) -> bool:
    same = set(_partitions_of(record)) == set(partition_keys)
    return record.status == "success" and record.profile == profile and same


def _partitions_of(record: RunRecord) -> list[str]:
    return [str(key) for key in (record.dagster or {}).get("partition_keys") or ()]


def latest_package(instance: DagsterInstance, key: AssetKey) -> str | None:
    """Return the package (the asset's group) of the asset's newest receipt."""
    for event in instance.fetch_materializations(AssetRecordsFilter(asset_key=key), limit=1).records:
        try:
            record = receipt_of_event(event)
        except InvalidRecordError:
            return None
        return None if record is None else record.package
    return None
