"""One materialization judged against its baseline, from the event log alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dagster import AssetCheckSeverity, AssetKey, EventLogRecord, MetadataValue

from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.drift import judge, judge_custody, judge_first
from ubunye_orchestrate.compare.findings import Finding, Verdict
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.compare.render import markdown, summary
from ubunye_orchestrate.dagster_io import metadata as keys
from ubunye_orchestrate.dagster_io.baseline import receipt_of_event
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.records.model import RunRecord, StepRecord

__all__ = ["CHECK_NAME", "DriftReport", "NotJudgedError", "events_named", "judge_event", "report_metadata"]

CHECK_NAME = "drift"


class NotJudgedError(Exception):
    """A materialization cannot be judged; the message says why, without the asset's name."""


@dataclass(frozen=True)
class DriftReport:
    """What was found about one materialization."""

    asset_key: AssetKey
    partition: str | None
    run_id: str
    storage_id: int
    timestamp: float
    verdict: Verdict
    record: RunRecord
    baseline: RunRecord | None

    @property
    def text(self) -> str:
        """The verdict in one line, with the asset (and partition) in front."""
        where = self.asset_key.to_user_string()
        if self.partition is not None:
            where += f"[{self.partition}]"
        return f"{where}: {summary(self.verdict)}"

    @property
    def severity(self) -> AssetCheckSeverity:
        """The severity of the check's result, which counts when it did not pass."""
        return AssetCheckSeverity.ERROR if self.verdict.severity == "error" else AssetCheckSeverity.WARN

    def without(self, findings: Iterable[Finding]) -> DriftReport:
        """Return the report without some of its findings."""
        left_out = list(findings)
        kept = tuple(finding for finding in self.verdict.findings if finding not in left_out)
        return replace(self, verdict=Verdict(kept, self.verdict.changed_with))


def events_named(record: RunRecord) -> set[int]:
    """Return the storage ids of the materializations that judging a record takes: baseline and producers."""
    named = {producer.storage_id for step in record.inputs for producer in step.producer or ()}
    baseline = (record.dagster or {}).get("baseline")
    if baseline:
        named.add(baseline.get("storage_id"))
    return {storage_id for storage_id in named if isinstance(storage_id, int)}


def judge_event(
    event: EventLogRecord,
    record: RunRecord,
    known: Mapping[int, EventLogRecord],
    policy: DriftPolicy,
) -> DriftReport:
    """Judge a materialization and the custody of its inputs.

    ``known`` are the materializations that ``events_named`` asks for, as far as they are still there. Raises
    NotJudgedError when the baseline is gone or cannot be read.
    """
    baseline = _baseline(record, known)
    verdict = (
        judge_first(record, policy) if baseline is None else judge(compare_records(baseline, record), policy)
    )
    custody = [judge_custody(step, _stored(step, known), policy) for step in record.inputs if step.producer]
    told = [finding for finding in custody if finding.kind != "custody_held"]
    materialization = event.asset_materialization
    assert materialization is not None, "only materializations are judged"
    return DriftReport(
        asset_key=materialization.asset_key,
        partition=None if materialization.partition is None else str(materialization.partition),
        run_id=event.run_id,
        storage_id=event.storage_id,
        timestamp=event.timestamp,
        verdict=Verdict((*verdict.findings, *told), verdict.changed_with),
        record=record,
        baseline=baseline,
    )


def report_metadata(report: DriftReport) -> dict[str, MetadataValue]:
    """Return what a check's result shows: the table of changes, what changed with it, and both runs."""
    shown: dict[str, MetadataValue] = {keys.CHANGES: MetadataValue.md(markdown(report.verdict))}
    if report.verdict.changed_with:
        shown["ubunye/changed_with"] = MetadataValue.text(", ".join(report.verdict.changed_with))
    if report.partition is not None:
        shown["ubunye/partition"] = MetadataValue.text(report.partition)
    shown["ubunye/run"] = MetadataValue.dagster_run(report.run_id)
    if report.baseline is not None:
        run_id = (report.baseline.dagster or {}).get("run_id")
        if isinstance(run_id, str):
            shown["ubunye/baseline_run"] = MetadataValue.dagster_run(run_id)
    shown["ubunye/findings"] = MetadataValue.json(
        [
            {"kind": f.kind, "severity": f.severity, "subject": f.subject, "text": f.text}
            for f in report.verdict.findings
        ]
    )
    return shown


def _baseline(record: RunRecord, known: Mapping[int, EventLogRecord]) -> RunRecord | None:
    named = (record.dagster or {}).get("baseline")
    if not named:
        return None
    event = known.get(named.get("storage_id"))
    if event is None:
        raise NotJudgedError(
            f"its baseline, materialization {named.get('storage_id')} of run {named.get('run_id')}, is no "
            "longer in the event log"
        )
    try:
        baseline = receipt_of_event(event)
    except InvalidRecordError as e:
        raise NotJudgedError(f"its baseline cannot be read: {e}") from e
    if baseline is None:
        raise NotJudgedError("its baseline has no receipt any more")
    return baseline


def _stored(step: StepRecord, known: Mapping[int, EventLogRecord]) -> list[StepRecord]:
    """Return the outputs that an input was read from, as their own receipts have them."""
    found: list[StepRecord] = []
    for producer in step.producer or ():
        event = known.get(producer.storage_id) if producer.storage_id is not None else None
        if event is None:
            continue
        try:
            record = receipt_of_event(event)
        except InvalidRecordError:
            continue
        found += [output for output in (record.outputs if record else ()) if output.name == step.name]
    return found
