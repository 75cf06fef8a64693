"""Which records may be deleted: those that are neither among the newest nor young, and that nothing needs.

Counted by partition and profile, each of which has a history of its own. Never deleted are: a pinned or
accepted run, the newest success (the next run is held against it), what the newest run was held against, a
record whose age is not recorded, and a file that cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ubunye_orchestrate.cli.address import Task, of_dagster_run
from ubunye_orchestrate.compare.comparison import partition_keys
from ubunye_orchestrate.compare.text import printable
from ubunye_orchestrate.records.model import RunRecord
from ubunye_orchestrate.records.store import parse_time

__all__ = ["Plan", "plan_document", "plan_lines", "plan_task"]


@dataclass(frozen=True)
class _Run:
    """What pruning needs to know of a record, so that a long history is not held whole."""

    run_id: str
    ended: datetime | None
    success: bool
    held_against: tuple[str, ...]
    """The Dagster runs that its receipt names as baselines."""


@dataclass(frozen=True)
class Plan:
    """What would be deleted of one task, and what is kept."""

    task: Task
    delete: tuple[_Run, ...]
    """Oldest first."""
    kept: int
    protected: int
    """Kept although they are old: pinned, accepted, or a baseline."""


def plan_task(task: Task, keep: int | None, keep_days: float | None, now: datetime | None = None) -> Plan:
    """Return what may be deleted when the newest ``keep`` runs and those of ``keep_days`` days stay.

    With both given, a run that either keeps stays. Every record of the task is read once.
    """
    now = datetime.now(timezone.utc) if now is None else now
    oldest = None if keep_days is None else now - timedelta(days=keep_days)
    by_name = set(task.store.run_ids(*task.names))
    named = {said.run_id for said in task.said if said.kind != "unpinned"}
    histories: dict[tuple[str, tuple[str, ...]], list[_Run]] = {}
    for record in task.runs():
        histories.setdefault((record.profile, partition_keys(record)), []).append(_run(record))
    delete: list[_Run] = []
    kept = protected = 0
    for history in histories.values():
        # By their own times: a copy of the mirror may have lost its files'.
        timed = sorted((r for r in history if r.ended), key=lambda r: r.ended or now, reverse=True)
        kept += len(history) - len(timed)
        needed = named | _baselines(timed)
        for position, run in enumerate(timed):
            young = oldest is not None and run.ended is not None and run.ended >= oldest
            if (keep is not None and position < keep) or young:
                kept += 1
            elif run.run_id in needed or run.run_id not in by_name:
                kept, protected = kept + 1, protected + 1
            else:
                delete.append(run)
    delete.sort(key=lambda run: (run.ended or now, run.run_id))
    return Plan(task, tuple(delete), kept, protected)


def _run(record: RunRecord) -> _Run:
    ended = record.ended_at or record.started_at
    dagster = record.dagster or {}
    baselines = dagster.get("baselines")
    named = [dagster.get("baseline"), *(baselines.values() if isinstance(baselines, dict) else ())]
    run_ids = [one.get("run_id") for one in named if isinstance(one, dict)]
    return _Run(
        record.run_id,
        None if ended is None else parse_time(ended),
        record.status == "success",
        tuple(dict.fromkeys(run_id for run_id in run_ids if isinstance(run_id, str))),
    )


def _baselines(history: list[_Run]) -> set[str]:
    """Return the newest success, and what the newest run was held against: as it says, else by order."""
    if not history:
        return set()
    needed = {run.run_id for run in [run for run in history if run.success][:1]}
    newest, *earlier = history
    for run_id in newest.held_against:
        of_baseline = of_dagster_run(run_id)
        needed |= {run.run_id for run in [run for run in earlier if of_baseline(run.run_id)][:1]}
    needed |= {run.run_id for run in [run for run in earlier if run.success][:1]}
    return needed


def plan_lines(plans: list[Plan], *, done: bool) -> Iterator[str]:
    """Yield the text for a terminal."""
    for plan in plans:
        for run in plan.delete:
            when = "-" if run.ended is None else f"{run.ended:%Y-%m-%d %H:%M}"
            yield f"{'deleted' if done else 'delete'}  {when}  {plan.task.path}/{printable(run.run_id)}"
    count = sum(len(plan.delete) for plan in plans)
    kept = sum(plan.kept for plan in plans)
    protected = sum(plan.protected for plan in plans)
    told = f"{count} {'deleted' if done else 'would be deleted'}, {kept} kept"
    yield told + (f" ({protected} of them old: pinned, accepted or a baseline)" if protected else "")
    if count and not done:
        yield "Nothing was deleted: this is a dry run. Give --yes to delete."


def plan_document(plans: list[Plan], *, done: bool) -> dict[str, Any]:
    """Return the plan as one JSON document."""
    return {
        "dry_run": not done,
        "kept": sum(plan.kept for plan in plans),
        "protected": sum(plan.protected for plan in plans),
        "delete": [
            {
                "task": "/".join(plan.task.names),
                "run_id": run.run_id,
                "ended_at": None if run.ended is None else run.ended.isoformat(),
            }
            for plan in plans
            for run in plan.delete
        ],
    }
