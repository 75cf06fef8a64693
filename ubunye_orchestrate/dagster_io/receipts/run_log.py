"""What a run's log says of its steps: which tries of them began, how each ended, and what it was to make."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from dagster import AssetKey, DagsterEventType, DagsterInstance, DagsterRun, EventLogEntry

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.ledger import StepKey

__all__ = ["ENDS", "KILLED", "STARTS", "Attempt", "Planned", "RunLog", "planned_of", "read_log"]

STARTS = {DagsterEventType.STEP_START, DagsterEventType.STEP_RESTARTED}
ENDS = {
    DagsterEventType.STEP_SUCCESS: "success",
    DagsterEventType.STEP_FAILURE: "error",
    DagsterEventType.STEP_UP_FOR_RETRY: "error",
}
KILLED = "killed"
# What the multiprocess executor logs, from its own process, for a step whose process died.
_CRASH = "ChildProcessCrashException"
_PLANNED = DagsterEventType.ASSET_MATERIALIZATION_PLANNED


@dataclass
class Attempt:
    """One try of a step, as the event log has it."""

    key: StepKey
    started_at: float | None
    ended_at: float = 0.0
    outcome: str = ""
    error: str | None = None
    retried: bool = False
    """Dagster tries the step again."""
    here: bool = False
    """It ended in this process."""


@dataclass
class Planned:
    """What a step was to make."""

    partitions: dict[AssetKey, list[str]] = field(default_factory=dict)


@dataclass
class RunLog:
    """What a run's log says of its steps."""

    ended: list[Attempt] = field(default_factory=list)
    """The tries that have ended, in order."""
    open: dict[str, Attempt] = field(default_factory=dict)
    """The tries that began and have not ended, by step key."""
    planned: dict[str, Planned] = field(default_factory=dict)
    """What each step was to make."""
    tries: dict[str, int] = field(default_factory=dict)
    """The number of the last try of each step that has started."""


def planned_of(step_key: str, log: RunLog) -> Planned:
    """Return the assets that a failed step was to make.

    A graph's assets are planned for its last step, which a failure in an earlier one keeps from starting.
    """
    if step_key in log.planned or "." not in step_key:
        return log.planned.get(step_key, Planned())
    graph = step_key.split(".", 1)[0] + "."
    missed = Planned()
    for other, its in log.planned.items():
        if other.startswith(graph) and other not in log.tries:
            missed.partitions.update(its.partitions)
    return missed


def read_log(instance: DagsterInstance, run: DagsterRun) -> RunLog:
    """Return what the run's log says of its steps: one query."""
    log = RunLog()
    open_attempts, tries, ended, planned = log.open, log.tries, log.ended, log.planned
    pid = os.getpid()
    for event in instance.all_logs(run.run_id, of_type={*STARTS, *ENDS, _PLANNED}):
        dagster_event = event.dagster_event
        if dagster_event is None or dagster_event.step_key is None:
            continue
        step_key, kind = dagster_event.step_key, dagster_event.event_type
        if kind is _PLANNED:
            _plan(planned.setdefault(step_key, Planned()), event)
        elif kind in STARTS:
            number = tries.get(step_key, -1) + 1
            tries[step_key] = number
            open_attempts[step_key] = Attempt(StepKey(run.run_id, step_key, number), event.timestamp)
        else:
            # A step that could not even start has an end without a start.
            number = max(tries.get(step_key, 0), 0)
            attempt = open_attempts.pop(step_key, Attempt(StepKey(run.run_id, step_key, number), None))
            error = upstream.error_of(event)
            crashed = error is not None and error.startswith(_CRASH)
            ended.append(
                replace(
                    attempt,
                    ended_at=event.timestamp,
                    outcome=KILLED if crashed else ENDS[kind],
                    error=f"killed: its process ended before the step did ({error})" if crashed else error,
                    retried=kind is DagsterEventType.STEP_UP_FOR_RETRY,
                    here=dagster_event.pid == pid,
                )
            )
    return log


def _plan(planned: Planned, event: EventLogEntry) -> None:
    key, partitions = upstream.planned_asset(event)
    planned.partitions.setdefault(key, []).extend(partitions)
