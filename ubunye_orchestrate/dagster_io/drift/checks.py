"""The asset check ``drift``: the sensor's comparison inside a run, and its place in the UI."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates ``context``.
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetKey,
    AssetRecordsFilter,
    EventLogRecord,
    MetadataValue,
    asset_check,
)

from ubunye_orchestrate.compare.drift import judge_age
from ubunye_orchestrate.compare.findings import SEVERITIES, Verdict
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.drift.judging import (
    CHECK_NAME,
    DriftReport,
    NotJudgedError,
    events_named,
    judge_event,
    report_metadata,
)
from ubunye_orchestrate.dagster_io.drift.paths import with_paths
from ubunye_orchestrate.dagster_io.drift.seen import Seen
from ubunye_orchestrate.dagster_io.drift.selection import AssetGiven, AssetsGiven, keys_in
from ubunye_orchestrate.dagster_io.receipts.acceptance import said_since
from ubunye_orchestrate.dagster_io.receipts.policies import Policies, PolicyGiven, policies
from ubunye_orchestrate.errors import UbunyeError

__all__ = ["build_drift_checks"]

# A run over a range stores many partitions; past this the newest stand for all.
_MAX_PARTITIONS = 500


def build_drift_checks(
    assets: AssetsGiven,
    policy: PolicyGiven = None,
    *,
    blocking: bool = False,
    among: Sequence[AssetGiven] | None = None,
) -> list[AssetChecksDefinition]:
    """Return the check ``drift`` for each asset, which holds its newest materialization against its baseline.

    Its declaration also makes the results of ``build_drift_sensor`` visible on the asset. With ``blocking``,
    assets downstream are not run when it fails with an error. ``policy`` is one for all assets, or one for
    each; an asset's own stands in its metadata under ``ubunye/policy``. ``assets`` is a list, such as
    ``load_assets_from_package_module`` returns, or an ``AssetSelection``; one that goes by the graph needs
    the project's assets in ``among``.
    """
    policy_of = policies(policy)
    return [_check(key, policy_of, blocking) for key in keys_in(assets, among)]


def _check(key: AssetKey, policy_of: Policies, blocking: bool) -> AssetChecksDefinition:
    @asset_check(
        asset=key,
        name=CHECK_NAME,
        blocking=blocking,
        description="Whether the newest materialization drifted from its baseline, by their receipts.",
    )
    def drift(context: AssetCheckExecutionContext) -> AssetCheckResult:
        return _result(context, key, policy_of)

    return drift


def _result(context: AssetCheckExecutionContext, key: AssetKey, policy_of: Policies) -> AssetCheckResult:
    reports: list[DriftReport] = []
    seen = Seen(context.instance)
    not_judged: list[str] = []
    metadata = upstream.metadata_of_checked(context, key)
    for event in map(upstream.asset_event, _events(context, key)):
        try:
            report = _judge(event, policy_of(key, metadata), seen)
            reports.append(_with_age(report, time.time()))
        except (NotJudgedError, UbunyeError) as e:
            not_judged.append(str(e))
    if not reports:
        why = "; ".join(not_judged) or "it was never materialized"
        # What was not checked must not look as if it had passed.
        return AssetCheckResult(
            passed=False,
            severity=AssetCheckSeverity.WARN,
            description=f"not judged: {why}",
            metadata={"ubunye/not_judged": MetadataValue.text(why)},
        )
    reports = with_paths(_accepted(context, key, reports), seen)
    worst = max(reports, key=lambda one: (not one.passed, SEVERITIES.index(one.verdict.severity)))
    shown = report_metadata(worst)
    if not_judged:
        shown["ubunye/not_judged"] = MetadataValue.text("; ".join(not_judged))
    return AssetCheckResult(
        passed=worst.passed,
        severity=worst.severity,
        description=_words(reports, worst),
        metadata=shown,
    )


def _events(context: AssetCheckExecutionContext, key: AssetKey) -> Iterable[EventLogRecord]:
    """Return what this run materialized of the asset; its newest materialization where it was nothing."""
    fetch = context.instance.fetch_materializations
    newest: Sequence[EventLogRecord] = fetch(AssetRecordsFilter(asset_key=key), limit=1).records
    if not newest or newest[0].run_id != context.run.run_id or newest[0].partition_key is None:
        return newest
    recent: Sequence[EventLogRecord] = fetch(AssetRecordsFilter(asset_key=key), limit=_MAX_PARTITIONS).records
    return [event for event in recent if event.run_id == context.run.run_id]


def _judge(event: upstream.AssetEvent, policy: DriftPolicy, seen: Seen) -> DriftReport:
    seen.add([event])
    record = seen.receipt(event.storage_id)
    if record is None:
        raise NotJudgedError("its materialization has no receipt (is its IO manager wrapped?)")
    seen.read(events_named(record))
    return judge_event(event, record, seen, policy)


def _with_age(report: DriftReport, now: float) -> DriftReport:
    """Add to a report that its materialization is older than the policy expects."""
    late = judge_age(report.asset_key.to_user_string(), (now - report.timestamp) / 3600, report.policy)
    if late is None:
        return report
    verdict = report.verdict
    return replace(report, verdict=Verdict((late, *verdict.findings), verdict.changed_with))


def _accepted(
    context: AssetCheckExecutionContext, key: AssetKey, reports: list[DriftReport]
) -> list[DriftReport]:
    """Mark the runs that somebody accepted or pinned since they were made."""
    if all(report.verdict.passed for report in reports):
        return reports
    since = min(report.storage_id for report in reports)
    said, _ = said_since(context.instance, key, since)
    by_id = {one.storage_id: one for one in reversed(said) if one.kind != "unpinned"}
    return [replace(report, accepted=by_id.get(report.storage_id)) for report in reports]


def _words(reports: Sequence[DriftReport], worst: DriftReport) -> str:
    others = sum(not report.passed for report in reports if report is not worst)
    return f"{worst.text} (and {others} more partitions)" if others else worst.text
