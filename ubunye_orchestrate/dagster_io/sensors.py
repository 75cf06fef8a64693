"""The drift sensor: what was materialized since the last tick, each held against its baseline."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetKey,
    DefaultSensorStatus,
    EventLogRecord,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.baseline import receipt_of_event
from ubunye_orchestrate.dagster_io.cursor import DriftCursor
from ubunye_orchestrate.dagster_io.judging import (
    CHECK_NAME,
    DriftReport,
    NotJudgedError,
    events_named,
    judge_event,
    report_metadata,
)
from ubunye_orchestrate.dagster_io.policies import Policies, PolicyGiven, policies
from ubunye_orchestrate.dagster_io.selection import AssetsGiven, Selection, selection_of
from ubunye_orchestrate.errors import InvalidRecordError, UbunyeError
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["OnFinding", "build_drift_sensor"]

OnFinding = Callable[[DriftReport], Any]
"""Called with each report that did not pass."""

# A tick has a minute by default; some hundred receipts take a second.
_EVENTS_PER_TICK = 500
_NAMED_AT_MOST = 5
_NOTHING = "Nothing was materialized since the last look."


def build_drift_sensor(
    assets: AssetsGiven,
    *,
    name: str = "drift",
    policy: PolicyGiven = None,
    minimum_interval_seconds: int | None = None,
    on_finding: OnFinding | Sequence[OnFinding] = (),
    default_status: DefaultSensorStatus = DefaultSensorStatus.STOPPED,
    description: str | None = None,
) -> SensorDefinition:
    """Return a sensor that judges every new materialization of ``assets`` against its baseline.

    Each is reported once, as a result of the asset check ``drift`` on that materialization (declare the check
    with ``build_drift_checks`` to see it on the asset). The first tick only notes where the event log is.
    ``policy`` is one for all assets, or one for each; an asset's own stands in its metadata under
    ``ubunye/policy``. ``on_finding`` is called with each report that did not pass; what it raises is logged.
    An asset that cannot be judged is named in the tick, and the others are judged.
    """
    selection = selection_of(assets)
    policy_of = policies(policy)
    callbacks = (on_finding,) if callable(on_finding) else tuple(on_finding)

    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        cursor = DriftCursor.parse(context.cursor)
        if cursor is None:
            return _first_tick(context)
        return _Tick(context, selection, policy_of, callbacks).run(cursor)

    return SensorDefinition(
        name=name,
        evaluation_fn=evaluate,
        minimum_interval_seconds=minimum_interval_seconds,
        description=description or "Holds each new materialization against its baseline, by its receipt.",
        default_status=default_status,
        # It requests no runs; the selection shows in the UI which assets it looks at.
        asset_selection=selection.shown,
    )


def _first_tick(context: SensorEvaluationContext) -> SensorResult:
    head = upstream.head_of_event_log(context.instance)
    again = " (the cursor could not be read)" if context.cursor else ""
    return SensorResult(
        cursor=DriftCursor(storage_id=head).text(),
        skip_reason=f"First look{again}: what is materialized from now on is judged, nothing before.",
    )


@dataclass
class _Tick:
    """One look at the event log: one query for what is new, one for what its receipts name."""

    context: SensorEvaluationContext
    selection: Selection
    policy_of: Policies
    callbacks: Sequence[OnFinding]
    reports: list[DriftReport] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)

    def run(self, cursor: DriftCursor) -> SensorResult:
        """Judge what is new after ``cursor``."""
        instance = self.context.instance
        events = upstream.materializations_after(instance, cursor.storage_id, _EVENTS_PER_TICK)
        if not events:
            return SensorResult(
                cursor=cursor.text(), skip_reason="Nothing was materialized since the last look."
            )
        metadata = self.selection.resolve(self.context)
        receipts = self._receipts(events, metadata)
        named = {storage_id for _, record in receipts for storage_id in events_named(record)}
        known = {event.storage_id: event for event in events}
        known.update(upstream.materializations_by_id(instance, named - known.keys()))
        for event, record in receipts:
            cursor = self._judge(event, record, known, metadata, cursor)
        self._tell()
        return SensorResult(
            asset_events=[_evaluation(report) for report in self.reports],
            cursor=cursor.moved_to(events[-1].storage_id).text(),
            skip_reason=self._words(),
        )

    def _receipts(
        self, events: Sequence[EventLogRecord], metadata: Mapping[AssetKey, Mapping[str, Any]]
    ) -> list[tuple[EventLogRecord, RunRecord]]:
        found = []
        for event in events:
            key = event.asset_key
            if key is None or key not in metadata:
                continue
            try:
                record = receipt_of_event(event)
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
        event: EventLogRecord,
        record: RunRecord,
        known: Mapping[int, EventLogRecord],
        metadata: Mapping[AssetKey, Mapping[str, Any]],
        cursor: DriftCursor,
    ) -> DriftCursor:
        key = event.asset_key
        assert key is not None, "only events of assets are judged"
        try:
            report = judge_event(event, record, known, self.policy_of(key, metadata[key]))
        except (NotJudgedError, UbunyeError) as e:
            self._cannot(key, str(e))
            return cursor
        except Exception as e:  # noqa: BLE001 - one asset's fault must not keep the others from being judged
            self.context.log.error(f"ubunye: judging {key.to_user_string()} failed\n{traceback.format_exc()}")
            self._cannot(key, f"{type(e).__name__}: {e}")
            return cursor
        cursor = cursor.in_environment(record.environment_hash)
        said = [
            f for f in report.verdict.findings if f.merge_key is not None and f.merge_key in cursor.reported
        ]
        for finding in report.verdict.findings:
            if finding.merge_key is not None and finding.merge_key not in cursor.reported:
                cursor = cursor.having_reported(finding.merge_key)
        self.reports.append(report.without(said))
        return cursor

    def _cannot(self, key: AssetKey, why: str) -> None:
        self.not_judged.append(f"{key.to_user_string()}: {why}")

    def _tell(self) -> None:
        for report in self.reports:
            if report.verdict.passed:
                continue
            for callback in self.callbacks:
                try:
                    callback(report)
                except Exception:  # noqa: BLE001 - a user's callback must not stop the sensor
                    name = getattr(callback, "__name__", type(callback).__name__)
                    self.context.log.error(f"ubunye: on_finding {name} failed\n{traceback.format_exc()}")

    def _words(self) -> str:
        found = [report.text for report in self.reports if not report.verdict.passed]
        quiet = len(self.reports) - len(found)
        parts = [*_some(found)]
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
    return upstream.check_evaluation_on(
        report.asset_key,
        CHECK_NAME,
        passed=report.verdict.passed,
        severity=report.severity,
        description=report.text,
        metadata=report_metadata(report),
        storage_id=report.storage_id,
        run_id=report.run_id,
        timestamp=report.timestamp,
    )
