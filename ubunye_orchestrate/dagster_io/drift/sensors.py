"""The drift sensor: what was materialized since the last tick, each held against its baseline."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckSeverity,
    AssetKey,
    DefaultSensorStatus,
    MetadataValue,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
)

from ubunye_orchestrate.compare.findings import SEVERITIES, Finding
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.drift.cadence import late_ones, late_report, period
from ubunye_orchestrate.dagster_io.drift.cursor import DriftCursor
from ubunye_orchestrate.dagster_io.drift.judging import (
    CHECK_NAME,
    DriftReport,
    NotJudgedError,
    events_named,
    judge_event,
    report_metadata,
)
from ubunye_orchestrate.dagster_io.drift.paths import with_paths
from ubunye_orchestrate.dagster_io.drift.remediation import (
    Remediation,
    request_for,
    runs_that_remediate,
    with_key_and_tags,
)
from ubunye_orchestrate.dagster_io.drift.seen import Seen
from ubunye_orchestrate.dagster_io.drift.selection import AssetsGiven, Selection, selection_of
from ubunye_orchestrate.dagster_io.receipts.acceptance import acceptance_in
from ubunye_orchestrate.dagster_io.receipts.policies import Policies, PolicyGiven, policies
from ubunye_orchestrate.errors import InvalidRecordError, UbunyeError
from ubunye_orchestrate.records.baselines import Acceptance
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["OnFinding", "build_drift_sensor"]

OnFinding = Callable[[DriftReport], Any]
"""Called with each report that did not pass."""

# A tick has a minute by default; some hundred receipts take a second.
_EVENTS_PER_TICK = 500
_NAMED_AT_MOST = 5
# Each asks what was said of its materialization since.
_LATE_PER_TICK = 50
_NOTHING = "Nothing was materialized since the last look."


def build_drift_sensor(
    assets: AssetsGiven,
    *,
    name: str = "drift",
    policy: PolicyGiven = None,
    minimum_interval_seconds: int | None = None,
    on_finding: OnFinding | Sequence[OnFinding] = (),
    remediation_job: upstream.Job | str | None = None,
    remediation: Remediation = request_for,
    default_status: DefaultSensorStatus = DefaultSensorStatus.STOPPED,
    description: str | None = None,
) -> SensorDefinition:
    """Return a sensor that judges every new materialization of ``assets`` against its baseline.

    Each is reported once, as a result of the asset check ``drift`` on that materialization (declare the check
    with ``build_drift_checks`` to see it on the asset). The first tick only notes where the event log is.
    ``policy`` is one for all assets, or one for each; an asset's own stands in its metadata under
    ``ubunye/policy``. ``on_finding`` is called with each report that did not pass; what it raises is logged.
    An asset that cannot be judged is named in the tick, and the others are judged. One that was not
    materialized for longer than its policy's ``expected_hours`` is reported once, within five minutes.

    ``remediation_job`` is run for each report that ``remediation`` returns a ``RunRequest`` for; by default
    for each one with an error. The run's tags name the asset and the run that drifted; what such a run
    materializes is judged, but requests no further one. A run that somebody accepted or pinned passes: its
    check is reported anew with who said so.
    """
    selection = selection_of(assets)
    policy_of = policies(policy)
    callbacks = (on_finding,) if callable(on_finding) else tuple(on_finding)

    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        cursor = DriftCursor.parse(context.cursor)
        if cursor is None:
            return _first_tick(context)
        wanted = None if remediation_job is None else remediation
        return _Tick(context, selection, policy_of, callbacks, wanted).run(cursor)

    return SensorDefinition(
        name=name,
        evaluation_fn=evaluate,
        minimum_interval_seconds=minimum_interval_seconds,
        description=description or "Holds each new materialization against its baseline, by its receipt.",
        default_status=default_status,
        job_name=remediation_job if isinstance(remediation_job, str) else None,
        job=None if isinstance(remediation_job, str) else remediation_job,
        # Without a job it requests no runs; the selection shows in the UI which assets it looks at.
        asset_selection=selection.shown if remediation_job is None else None,
    )


def _first_tick(context: SensorEvaluationContext) -> SensorResult:
    head = upstream.head_of_event_log(context.instance)
    again = " (the cursor could not be read)" if context.cursor else ""
    return SensorResult(
        cursor=DriftCursor(storage_id=head, observed=head).text(),
        skip_reason=f"First look{again}: what is materialized from now on is judged, nothing before.",
    )


@dataclass
class _Tick:
    """One look at the event log.

    One query for what was materialized, one for what was accepted, one for the materializations that both
    name; where data changed, one more for each level of the graph that these do not reach. Every five minutes
    one for the newest materializations of assets that are expected so and so often.
    """

    context: SensorEvaluationContext
    selection: Selection
    policy_of: Policies
    callbacks: Sequence[OnFinding]
    remediation: Remediation | None = None
    reports: list[DriftReport] = field(default_factory=list)
    accepted: list[AssetCheckEvaluation] = field(default_factory=list)
    requests: list[RunRequest] = field(default_factory=list)
    told: dict[str, tuple[int, Finding]] = field(default_factory=dict)
    """Which of the reports has a finding that is told once for all assets, by its ``merge_key``."""
    remarks: list[str] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)

    def run(self, cursor: DriftCursor) -> SensorResult:
        """Judge what is new after ``cursor``."""
        instance = self.context.instance
        events = upstream.materializations_after(instance, cursor.storage_id, _EVENTS_PER_TICK)
        observed = cursor.storage_id if cursor.observed is None else cursor.observed
        observations = upstream.observations_after(instance, observed, _EVENTS_PER_TICK)
        cursor = cursor.having_observed(observations[-1].storage_id if observations else observed)
        said = self._said(observations)
        now = time.time()
        is_time = period(now) != cursor.period
        if not events and not said and not is_time:
            return SensorResult(cursor=cursor.text(), skip_reason=_NOTHING)
        metadata = self.selection.resolve(self.context)
        seen = Seen(instance, events)
        receipts = self._receipts(events, seen, metadata)
        seen.read({storage_id for _, record in receipts for storage_id in events_named(record)} | said.keys())
        for event, record in receipts:
            cursor = self._judge(event, record, seen, metadata, cursor)
        self.reports = [replace(report, accepted=said.get(report.storage_id)) for report in self.reports]
        self._follow(seen)
        self._take(said, seen, metadata)
        if is_time:
            cursor = self._overdue(seen, metadata, now, cursor)
        if not events and not said and not self.reports and not self.not_judged:
            return SensorResult(cursor=cursor.text(), skip_reason=_NOTHING)
        self._tell()
        self._remedy()
        words = self._words()
        if self.requests:
            # Dagster takes no words beside requests; the tick's log has them.
            self.context.log.info(words)
        return SensorResult(
            asset_events=[*map(_evaluation, self.reports), *self.accepted],
            run_requests=self.requests,
            cursor=(cursor.moved_to(events[-1].storage_id) if events else cursor).text(),
            skip_reason=None if self.requests else words,
        )

    def _said(self, observations: Sequence[upstream.AssetEvent]) -> dict[int, Acceptance]:
        """Return what was accepted and pinned, by the storage id of the materialization."""
        said: dict[int, Acceptance] = {}
        for event in observations:
            try:
                one = acceptance_in(event)
            except InvalidRecordError as e:
                self.not_judged.append(str(e))
                continue
            if one is not None and one.kind != "unpinned" and one.storage_id is not None:
                said[one.storage_id] = one
        return said

    def _follow(self, seen: Seen) -> None:
        try:
            self.reports = with_paths(self.reports, seen)
        except Exception:  # noqa: BLE001 - the findings stand without their path
            self.context.log.error(f"ubunye: following the changes failed\n{traceback.format_exc()}")

    def _take(
        self,
        said: Mapping[int, Acceptance],
        seen: Seen,
        metadata: Mapping[AssetKey, Mapping[str, Any]],
    ) -> None:
        """Report the check of runs that were judged before and are accepted now."""
        judged = {report.storage_id for report in self.reports}
        for storage_id, one in said.items():
            event = seen.event(storage_id)
            if event is None or storage_id in judged or event.asset_key not in metadata:
                continue
            self.accepted.append(_acceptance(event, one))
            self.remarks.append(f"{event.asset_key.to_user_string()}: run {one.run_id} was {_by(one)}.")

    def _overdue(
        self, seen: Seen, metadata: Mapping[AssetKey, Mapping[str, Any]], now: float, cursor: DriftCursor
    ) -> DriftCursor:
        """Report each asset that has become overdue, once for its newest materialization."""
        expected: dict[AssetKey, DriftPolicy] = {}
        for key, of_asset in metadata.items():
            try:
                policy = self.policy_of(key, of_asset)
            except UbunyeError:
                continue  # Named where something is materialized.
            if policy.expected_hours is not None:
                expected[key] = policy
        try:
            late = late_ones(self.context.instance, expected, now)
        except Exception:  # noqa: BLE001 - what was materialized is judged all the same
            self.context.log.error(f"ubunye: looking for what is overdue failed\n{traceback.format_exc()}")
            return cursor
        told = {one.event.storage_id for one in late} & set(cursor.overdue)
        new = [one for one in late if one.event.storage_id not in told]
        for one in new[:_LATE_PER_TICK]:
            told.add(one.event.storage_id)
            seen.add([one.event])
            record = seen.readable(one.event.storage_id)
            if record is None:
                self._cannot(one.event.asset_key, f"{one.finding.text}; it has no receipt that can be read")
            else:
                self.reports.append(late_report(self.context.instance, one, record, seen))
        # The others with the next tick.
        return cursor.having_looked_for_overdue(-1 if len(new) > _LATE_PER_TICK else period(now), told)

    def _remedy(self) -> None:
        """Request what the remediation wants run, but not for runs that it has requested itself."""
        if self.remediation is None:
            return
        failed = [report for report in self.reports if not report.passed]
        own = runs_that_remediate(self.context.instance, (report.run_id for report in failed))
        for report in failed:
            where = report.asset_key.to_user_string()
            if report.run_id in own:
                self.remarks.append(f"No further run is requested for {where}: its run was requested here.")
                continue
            try:
                request = self.remediation(report)
            except Exception:  # noqa: BLE001 - a user's function must not stop the sensor
                self.context.log.error(f"ubunye: remediation failed\n{traceback.format_exc()}")
                continue
            if request is not None:
                self.requests.append(with_key_and_tags(request, report))
                self.remarks.append(f"A run is requested for {where}.")

    def _receipts(
        self,
        events: Sequence[upstream.AssetEvent],
        seen: Seen,
        metadata: Mapping[AssetKey, Mapping[str, Any]],
    ) -> list[tuple[upstream.AssetEvent, RunRecord]]:
        found = []
        for event in events:
            key = event.asset_key
            if key not in metadata:
                continue
            try:
                record = seen.receipt(event.storage_id)
            except InvalidRecordError as e:
                self._cannot(key, str(e))
                continue
            if record is None:
                self._cannot(key, "its materialization has no receipt (is its IO manager wrapped?)")
            else:
                found.append((event, record))
        return found

    def _judge(
        self,
        event: upstream.AssetEvent,
        record: RunRecord,
        seen: Seen,
        metadata: Mapping[AssetKey, Mapping[str, Any]],
        cursor: DriftCursor,
    ) -> DriftCursor:
        key = event.asset_key
        try:
            report = judge_event(event, record, seen, self.policy_of(key, metadata[key]))
        except (NotJudgedError, UbunyeError) as e:
            self._cannot(key, str(e))
            return cursor
        except Exception as e:  # noqa: BLE001 - one asset's fault must not keep the others from being judged
            self.context.log.error(f"ubunye: judging {key.to_user_string()} failed\n{traceback.format_exc()}")
            self._cannot(key, f"{type(e).__name__}: {e}")
            return cursor
        cursor = cursor.in_environment(record.environment_hash)
        said: list[Finding] = []
        for finding in report.verdict.findings:
            if finding.merge_key is None:
                continue
            if finding.merge_key not in cursor.reported:
                cursor = cursor.having_reported(finding.merge_key)
            elif not self._graver(finding):
                said.append(finding)
                continue
            self.told[finding.merge_key] = (len(self.reports), finding)
        self.reports.append(report.without(said))
        return cursor

    def _graver(self, finding: Finding) -> bool:
        """Whether a finding was told of another asset of this look, where it is milder; then take it away."""
        assert finding.merge_key is not None, "only such findings are told once"
        where, told = self.told.get(finding.merge_key, (None, finding))
        if where is None or SEVERITIES.index(finding.severity) <= SEVERITIES.index(told.severity):
            return False
        self.reports[where] = self.reports[where].without([told])
        return True

    def _cannot(self, key: AssetKey, why: str) -> None:
        self.not_judged.append(f"{key.to_user_string()}: {why}")

    def _tell(self) -> None:
        for report in self.reports:
            if report.passed:
                continue
            for callback in self.callbacks:
                try:
                    callback(report)
                except Exception:  # noqa: BLE001 - a user's callback must not stop the sensor
                    name = getattr(callback, "__name__", type(callback).__name__)
                    self.context.log.error(f"ubunye: on_finding {name} failed\n{traceback.format_exc()}")

    def _words(self) -> str:
        found = [report.text for report in self.reports if not report.passed]
        quiet = sum(report.verdict.passed for report in self.reports)
        accepted = [report.text for report in self.reports if report.passed and not report.verdict.passed]
        parts = [*_some(found), *_some(accepted), *_some(self.remarks)]
        if quiet:
            parts.append(f"{quiet} materialization{'s' if quiet > 1 else ''} without drift.")
        if self.not_judged:
            parts.append("Not judged: " + "; ".join(_some(self.not_judged)))
        return " ".join(parts) or "None of the selected assets was materialized since the last look."


def _some(texts: Sequence[str]) -> list[str]:
    left = len(texts) - _NAMED_AT_MOST
    shown = [text if text.endswith(".") else f"{text}." for text in texts[:_NAMED_AT_MOST]]
    return [*shown, f"And {left} more."] if left > 0 else shown


def _evaluation(report: DriftReport) -> AssetCheckEvaluation:
    shown = report.in_full() if report.earlier else report
    return upstream.check_evaluation_on(
        report.asset_key,
        CHECK_NAME,
        passed=shown.passed,
        severity=shown.severity,
        description=report.text,
        metadata=report_metadata(shown),
        storage_id=report.storage_id,
        run_id=report.run_id,
        timestamp=report.timestamp,
    )


def _acceptance(event: upstream.AssetEvent, said: Acceptance) -> AssetCheckEvaluation:
    return upstream.check_evaluation_on(
        event.asset_key,
        CHECK_NAME,
        passed=True,
        severity=AssetCheckSeverity.WARN,
        description=f"{_by(said)}; not judged anew",
        metadata={
            "ubunye/accepted": MetadataValue.text(f"{_by(said)}, {said.at}"),
            "ubunye/run": MetadataValue.dagster_run(event.run_id),
        },
        storage_id=event.storage_id,
        run_id=event.run_id,
        timestamp=event.timestamp,
    )


def _by(said: Acceptance) -> str:
    return f"{said.kind} by {said.by} ({said.why})"
