"""A gate for CI: runs held against their baselines under a policy, and what of it is a failure.

A run passes only if it was judged. What cannot be judged (a failed run, a record that cannot be read) fails,
as does a verdict as grave as the policy says; a run that somebody accepted passes and is marked so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ubunye_orchestrate.cli.address import Mirror, Task
from ubunye_orchestrate.cli.gate_policy import GatePolicy
from ubunye_orchestrate.cli.producers import ProducerRecords
from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.custody import judge_custody_by_records
from ubunye_orchestrate.compare.drift import judge, judge_first
from ubunye_orchestrate.compare.findings import SEVERITIES, Verdict
from ubunye_orchestrate.compare.naming import asset_name, named
from ubunye_orchestrate.compare.path import follow, path_in_words
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.compare.render import summary
from ubunye_orchestrate.compare.text import printable
from ubunye_orchestrate.errors import RecordError, RecordNotFoundError
from ubunye_orchestrate.records.baselines import Acceptance, acceptance_of
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["Judged", "judge_tasks"]


@dataclass(frozen=True)
class Judged:
    """One run, judged or not."""

    task: str
    """usecase/package/task."""
    record: RunRecord | None
    baseline: RunRecord | None
    verdict: Verdict | None
    accepted: Acceptance | None
    path: str | None
    """Where the change entered; None when the data did not change."""
    failed: bool
    why: str
    """One line: the verdict's summary, or why there is none."""

    @property
    def name(self) -> str:
        """The asset's key and partition where it has one, else the task's path."""
        if self.record is None:
            return self.task
        return named(self.record, self.task)

    @property
    def word(self) -> str:
        """``FAIL``, ``PASS``, or ``ACCEPTED`` for a run that passes since somebody said so."""
        if self.failed:
            return "FAIL"
        return "PASS" if self.accepted is None else "ACCEPTED"


def judge_tasks(
    mirror: Mirror, tasks: Sequence[Task], baseline: str, candidate: str, policy: GatePolicy
) -> Iterator[Judged]:
    """Judge the candidate of each task; a run id's beginning stands for every record that begins so.

    Raises RecordNotFoundError when no task has the candidate.
    """
    producers = ProducerRecords(mirror)
    found = False
    for task in tasks:
        known_problems = len(mirror.on_invalid.errors)
        try:
            candidates = _candidates(task, candidate)
        except RecordError as e:
            yield _not_judged(task, None, f"not judged: {e}")
            found = True
            continue
        problems = mirror.on_invalid.errors[known_problems:]
        if problems:
            # The file that cannot be read may be the very run.
            yield _not_judged(task, None, f"not judged: {problems[0]}")
            found = True
        for record in candidates:
            found = True
            yield _judge(task, record, baseline, policy, producers)
    if not found:
        raise RecordNotFoundError(
            f"no record of run {candidate!r} among {len(tasks)} tasks of {mirror.shown}; expected `latest` "
            "or a run id's beginning; see `lineage search`"
        )


def _candidates(task: Task, text: str) -> list[RunRecord]:
    if text == "latest":
        return list(itertools.islice(task.runs(), 1))
    return list(task.runs(lambda run_id: run_id.startswith(text)))


def _judge(
    task: Task, record: RunRecord, baseline: str, policy: GatePolicy, producers: ProducerRecords
) -> Judged:
    if record.status != "success":
        how = (
            "has not ended"
            if record.status == "running"
            else f"failed: {record.error or 'no error recorded'}"
        )
        return _not_judged(task, record, f"the run {how}")
    rules = policy.of("/".join(task.names), asset_name(record) or "")
    try:
        held_against = _baseline(task, record, baseline, rules)
    except RecordError as e:
        return _not_judged(task, record, f"not judged: {e}")
    if held_against is None:
        verdict, path = judge_first(record, rules), None
    else:
        comparison = compare_records(held_against, record)
        verdict = judge(comparison, rules)
        changed = any(finding.kind == "data_changed" for finding in verdict.findings)
        path = path_in_words(follow(held_against, record, producers.load, rules)) if changed else None
    custody = [
        judge_custody_by_records(step, producers.of_input(step), rules)
        for step in record.inputs
        if step.producer
    ]
    told = tuple(finding for finding in custody if finding.kind != "custody_held")
    verdict = Verdict((*verdict.findings, *told), verdict.changed_with)
    grave = SEVERITIES.index(verdict.severity) >= SEVERITIES.index(policy.fail_on)
    accepted = acceptance_of(task.said, record.run_id) if grave else None
    why = summary(verdict)
    if accepted is not None:
        why = printable(f"{accepted.kind} by {accepted.by}, {accepted.at[:10]} ({accepted.why}); {why}")
    return Judged(
        "/".join(task.names), record, held_against, verdict, accepted, path, grave and accepted is None, why
    )


def _baseline(task: Task, record: RunRecord, text: str, rules: DriftPolicy) -> RunRecord | None:
    """Return the run to hold ``record`` against. Only the word ``baseline`` may come to nothing."""
    if text == "baseline":
        return task.baseline(record, last_accepted_wanted=rules.baseline == "accepted")
    if text in ("previous", "accepted"):
        return task.beside(record, text)
    return task.run(text)


def _not_judged(task: Task, record: RunRecord | None, why: str) -> Judged:
    return Judged("/".join(task.names), record, None, None, None, None, failed=True, why=printable(why))
