"""Assets that are overdue: their newest materialization is older than their policy expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dagster import AssetKey, DagsterInstance

from ubunye_orchestrate.compare.drift import judge_age
from ubunye_orchestrate.compare.findings import Finding, Verdict
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.drift.judging import DriftReport, NotJudgedError, events_named, judge_event
from ubunye_orchestrate.dagster_io.drift.seen import Seen
from ubunye_orchestrate.dagster_io.receipts.acceptance import said_since
from ubunye_orchestrate.errors import UbunyeError
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["Late", "late_ones", "late_report", "period"]

_SECONDS = 300
"""Cadences are hours: so often is looked at them."""


@dataclass(frozen=True)
class Late:
    """An overdue asset."""

    event: upstream.AssetEvent
    """Its newest materialization."""
    finding: Finding
    policy: DriftPolicy


def period(now: float) -> int:
    """Return the number of the five minutes that ``now`` is in: in each, one looks once."""
    return int(now // _SECONDS)


def late_ones(instance: DagsterInstance, expected: Mapping[AssetKey, DriftPolicy], now: float) -> list[Late]:
    """Return the overdue among assets whose policy says how often they are made: one query.

    An asset that was never materialized is not among them.
    """
    found = []
    for record in instance.get_asset_records(list(expected)) if expected else ():
        newest = record.asset_entry.last_materialization_record
        if newest is None:
            continue
        event = upstream.asset_event(newest)
        policy = expected[event.asset_key]
        hours = (now - event.timestamp) / 3600
        finding = judge_age(event.asset_key.to_user_string(), hours, policy)
        if finding is not None:
            found.append(Late(event, finding, policy))
    return found


def late_report(instance: DagsterInstance, late: Late, record: RunRecord, seen: Seen) -> DriftReport:
    """Return what is to be said of an overdue asset: that alone, beside what its check has said before.

    Its check shows the newest result only, so what was found of the materialization stands in this one again,
    unless somebody accepted it.
    """
    event = late.event
    seen.read(events_named(record))
    earlier: tuple[Finding, ...] = ()
    baseline = None
    try:
        judged = judge_event(event, record, seen, late.policy)
    except (NotJudgedError, UbunyeError):
        pass  # It was named when it was materialized.
    else:
        said, _ = said_since(instance, event.asset_key, event.storage_id)
        accepted = any(one.storage_id == event.storage_id and one.kind != "unpinned" for one in said)
        earlier, baseline = (() if accepted else judged.verdict.findings), judged.baseline
    return DriftReport(
        asset_key=event.asset_key,
        partition=event.partition,
        run_id=event.run_id,
        storage_id=event.storage_id,
        timestamp=event.timestamp,
        verdict=Verdict((late.finding,)),
        record=record,
        baseline=baseline,
        policy=late.policy,
        earlier=earlier,
    )
