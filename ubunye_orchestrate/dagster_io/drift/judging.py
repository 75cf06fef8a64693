"""One materialization judged against its baseline, from the event log alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dagster import AssetCheckSeverity, AssetKey, MetadataValue

from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.custody import judge_custody_by_records
from ubunye_orchestrate.compare.drift import judge, judge_first
from ubunye_orchestrate.compare.findings import Finding, Verdict
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.compare.render import markdown, summary
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.drift.seen import Seen
from ubunye_orchestrate.dagster_io.receipts import metadata as keys
from ubunye_orchestrate.dagster_io.receipts.baseline import BaselineKind, baseline_named
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.records.baselines import Acceptance
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
    baseline_kind: BaselineKind | None = None
    """Whether the baseline is the previous success, a pinned run, or the last accepted one."""
    accepted: Acceptance | None = None
    """Set when somebody accepted or pinned this very run: it passes, whatever was found."""

    policy: DriftPolicy = field(default_factory=DriftPolicy)
    """What it was judged by."""
    path: str | None = None
    """Where the change entered, by the recorded producers; None when the data did not change."""
    earlier: tuple[Finding, ...] = ()
    """What was reported of the materialization before: its check, which shows the newest, has it again."""

    @property
    def passed(self) -> bool:
        """Whether nothing grave was found, or the run was accepted all the same."""
        return self.verdict.passed or self.accepted is not None

    @property
    def text(self) -> str:
        """The verdict in one line, with the asset (and partition) in front."""
        where = self.asset_key.to_user_string()
        if self.partition is not None:
            where += f"[{self.partition}]"
        told = summary(self.verdict)
        # A change that entered here, and nowhere else, is told already.
        if self.path is not None and (not self.path.startswith(f"entered at {where} (") or "; " in self.path):
            told = f"{told.removesuffix('.')}; {self.path}"
        if self.accepted is not None:
            told = f"{self.accepted.kind} by {self.accepted.by} ({self.accepted.why}); {told}"
        return f"{where}: {told}"

    @property
    def severity(self) -> AssetCheckSeverity:
        """The severity of the check's result, which counts when it did not pass."""
        return AssetCheckSeverity.ERROR if self.verdict.severity == "error" else AssetCheckSeverity.WARN

    def in_full(self) -> DriftReport:
        """Return the report with what was reported before."""
        verdict = self.verdict
        return replace(
            self, verdict=Verdict((*verdict.findings, *self.earlier), verdict.changed_with), earlier=()
        )

    def without(self, findings: Iterable[Finding]) -> DriftReport:
        """Return the report without some of its findings."""
        left_out = list(findings)
        kept = tuple(finding for finding in self.verdict.findings if finding not in left_out)
        return replace(self, verdict=Verdict(kept, self.verdict.changed_with))


def events_named(record: RunRecord) -> set[int]:
    """Return the storage ids of the materializations that judging a record takes: baselines and producers."""
    named = {producer.storage_id for step in record.inputs for producer in step.producer or ()}
    dagster = record.dagster or {}
    # Which of them is taken is the policy's to say; three are as cheap to read as one.
    for one in (dagster.get("baseline"), *_mappings(dagster.get("baselines"))):
        named.add((one or {}).get("storage_id"))
    return {storage_id for storage_id in named if isinstance(storage_id, int)}


def judge_event(
    event: upstream.AssetEvent,
    record: RunRecord,
    seen: Seen,
    policy: DriftPolicy,
) -> DriftReport:
    """Judge a materialization and the custody of its inputs.

    ``seen`` has the materializations that ``events_named`` asks for, as far as they are still there. Raises
    NotJudgedError when the baseline is gone or cannot be read.
    """
    kind, baseline = _baseline(record, seen, policy)
    if baseline is None:
        verdict = judge_first(record, policy)
    else:
        verdict = judge(compare_records(baseline, record), policy)
    custody = [
        judge_custody_by_records(step, _producers(step, seen), policy)
        for step in record.inputs
        if step.producer
    ]
    told = [finding for finding in custody if finding.kind != "custody_held"]
    return DriftReport(
        asset_key=event.asset_key,
        partition=event.partition,
        run_id=event.run_id,
        storage_id=event.storage_id,
        timestamp=event.timestamp,
        verdict=Verdict((*verdict.findings, *told), verdict.changed_with),
        record=record,
        baseline=baseline,
        baseline_kind=kind,
        policy=policy,
    )


def report_metadata(report: DriftReport) -> dict[str, MetadataValue]:
    """Return what a check's result shows: the table of changes, what changed with it, and both runs."""
    shown: dict[str, MetadataValue] = {keys.CHANGES: MetadataValue.md(markdown(report.verdict))}
    if report.verdict.changed_with:
        shown["ubunye/changed_with"] = MetadataValue.text(", ".join(report.verdict.changed_with))
    if report.path is not None:
        shown["ubunye/path"] = MetadataValue.text(report.path)
    if report.partition is not None:
        shown["ubunye/partition"] = MetadataValue.text(report.partition)
    shown["ubunye/run"] = MetadataValue.dagster_run(report.run_id)
    if report.baseline is not None:
        run_id = (report.baseline.dagster or {}).get("run_id")
        if isinstance(run_id, str):
            shown["ubunye/baseline_run"] = MetadataValue.dagster_run(run_id)
    if report.baseline_kind in ("pinned", "accepted"):
        shown["ubunye/baseline"] = MetadataValue.text(report.baseline_kind)
    if report.accepted is not None:
        said = report.accepted
        shown["ubunye/accepted"] = MetadataValue.text(f"{said.kind} by {said.by}, {said.at}: {said.why}")
    shown["ubunye/findings"] = MetadataValue.json(
        [
            {"kind": f.kind, "severity": f.severity, "subject": f.subject, "text": f.text}
            for f in report.verdict.findings
        ]
    )
    return shown


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value.values() if isinstance(one, Mapping)] if isinstance(value, Mapping) else []


def _baseline(
    record: RunRecord, seen: Seen, policy: DriftPolicy
) -> tuple[BaselineKind | None, RunRecord | None]:
    found = baseline_named(record.dagster, policy.baseline)
    if found is None:
        return None, None
    kind, named = found
    storage_id = named.get("storage_id")
    storage_id = storage_id if isinstance(storage_id, int) else None
    if seen.event(storage_id) is None:
        which = "baseline" if kind == "previous" else f"baseline ({kind})"
        told = f"materialization {named.get('storage_id')} of run {named.get('run_id')}"
        raise NotJudgedError(f"its {which}, {told}, is no longer in the event log")
    try:
        baseline = seen.receipt(storage_id)
    except InvalidRecordError as e:
        raise NotJudgedError(f"its baseline cannot be read: {e}") from e
    if baseline is None:
        raise NotJudgedError("its baseline has no receipt any more")
    return kind, baseline


def _producers(step: StepRecord, seen: Seen) -> list[RunRecord]:
    """Return the receipts of what an input was read from, as far as they can be read."""
    found = (seen.readable(producer.storage_id) for producer in step.producer or ())
    return [record for record in found if record is not None]
