"""Records of runs whose process was killed: nothing in it could close them, so a sensor does, from the log.

Dagster's run monitoring (or the daemon) marks such a run as failed. Each step that began and never ended
leaves a record whose ``step_status`` is ``killed``; a step that failed and left none (its process died before
it could write) leaves one with its error. What was materialized keeps its record, which is marked. The
multiprocess executor notes itself that a step's process died; such a step is closed with its run.
"""

from __future__ import annotations

from dataclasses import replace

from dagster import (
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunStatusSensorContext,
    SensorDefinition,
    SkipReason,
    run_status_sensor,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.closing import Closing, GroupOf, Warn
from ubunye_orchestrate.dagster_io.receipts.leftovers import Left, left_by
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.run_log import KILLED, Attempt, planned_of, read_log
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.records.settings import ReceiptSettings

__all__ = ["build_killed_runs_sensor", "close_killed_run"]

_STATUSES = (DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED)


def build_killed_runs_sensor(
    receipts: Receipts | None = None,
    *,
    name: str = "close_killed_runs",
    run_status: DagsterRunStatus = DagsterRunStatus.FAILURE,
    minimum_interval_seconds: int | None = None,
    default_status: DefaultSensorStatus = DefaultSensorStatus.STOPPED,
) -> SensorDefinition:
    """Return a sensor that closes the records of runs that were killed.

    ``receipts`` says where records go; by default the environment does. ``run_status`` is how the runs ended:
    ``FAILURE``, or ``CANCELED`` for a second sensor of another name. Doing it twice writes nothing the second
    time. Raises ConfigurationError for another status.
    """
    if run_status not in _STATUSES:
        raise ConfigurationError(
            f"run_status={run_status.value}; expected one of {', '.join(one.value for one in _STATUSES)}"
        )

    def close(context: RunStatusSensorContext) -> SkipReason:
        settings = (receipts or Receipts()).settings()
        repository = context.repository_def
        closed = close_killed_run(
            context.instance,
            context.dagster_run,
            settings,
            context.log.warning,
            lambda key: None if repository is None else upstream.group_in_project(repository, key),
        )
        run_id = context.dagster_run.run_id
        if not closed:
            return SkipReason(f"Run {run_id} left the records that it should.")
        return SkipReason(f"Run {run_id} was ended from outside: closed the records of {', '.join(closed)}.")

    return run_status_sensor(
        run_status=run_status,
        name=name,
        minimum_interval_seconds=minimum_interval_seconds,
        description="Closes the records of runs whose process was killed.",
        default_status=default_status,
    )(close)


def close_killed_run(
    instance: DagsterInstance,
    run: DagsterRun,
    settings: ReceiptSettings,
    warn: Warn,
    group_of: GroupOf = lambda key: None,
) -> list[str]:
    """Close what a run that is over left open; return the names of the assets, sorted.

    The run must be over: what still works would be called killed. ``group_of`` tells an asset's group; else
    the last receipt's is taken, or ``default``.
    """
    log = read_log(instance, run)
    left = left_by(instance, run)
    close = Closing(instance, run, settings, warn, group_of)
    closed: set[str] = set()
    failed = [one for one in log.ended if one.outcome != "success"]
    for attempt in [*failed, *(_killed(one, left) for one in log.open.values())]:
        missing = close.fail_rest(attempt, planned_of(attempt.key.step_key, log), left)
        closed |= {key.to_user_string() for key in missing}
    return sorted(closed)


def _killed(attempt: Attempt, left: Left) -> Attempt:
    """Return a try that began and never ended, as it is to be recorded."""
    reason = f"; its run was ended: {left.reason}" if left.reason else ""
    return replace(
        attempt,
        ended_at=max(left.ended_at, attempt.started_at or 0.0),
        outcome=KILLED,
        error=f"killed: the step began and never ended{reason}",
    )
