"""Records of runs whose process was killed: nothing in it could close them, so a sensor does, from the log.

Dagster's run monitoring (or the daemon) marks such a run as failed. Each step that began and never ended
leaves a record whose ``step_status`` is ``killed``; a step that failed and left none (its process died before
it could write) leaves one with its error. What was materialized keeps its record, which is marked. The
multiprocess executor notes itself that a step's process died; such a step is closed with its run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dagster import (
    AssetKey,
    DagsterEventType,
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
from ubunye_orchestrate.dagster_io.assembly import with_dagster
from ubunye_orchestrate.dagster_io.closing import (
    KILLED,
    Attempt,
    Closing,
    GroupOf,
    Planned,
    Warn,
    planned_of,
    read_log,
)
from ubunye_orchestrate.dagster_io.metadata import receipt_of
from ubunye_orchestrate.dagster_io.receipts import Receipts
from ubunye_orchestrate.errors import ConfigurationError, InvalidRecordError, UbunyeError
from ubunye_orchestrate.records.model import RunRecord
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.store import RecordStore

__all__ = ["build_killed_runs_sensor", "close_killed_run"]

_MADE = DagsterEventType.ASSET_MATERIALIZATION
_SEEN = DagsterEventType.ASSET_OBSERVATION
_RUN_ENDS = {DagsterEventType.RUN_FAILURE, DagsterEventType.RUN_CANCELED}
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
    left = _left_by(instance, run)
    close = Closing(instance, run, settings, warn, group_of)
    closed: set[str] = set()
    failed = [one for one in log.ended if one.outcome != "success"]
    for attempt in [*failed, *(left.killed(one) for one in log.open.values())]:
        planned = planned_of(attempt.key.step_key, log)
        missing = Planned({key: p for key, p in planned.partitions.items() if not left.has(attempt, key)})
        close.fail(None, attempt, missing)
        closed |= {key.to_user_string() for key in missing.partitions}
        if attempt.outcome == KILLED:
            _mark(left.made.get(attempt.key.step_key, ()), attempt, settings, warn)
    return sorted(closed)


@dataclass
class _Left:
    """What a run left in the log."""

    made: dict[str, list[RunRecord]] = field(default_factory=dict)
    """Receipts of what was materialized, by step."""
    assets_made: set[tuple[str, AssetKey]] = field(default_factory=set)
    seen: set[tuple[str, int, AssetKey]] = field(default_factory=set)
    """Step, try and asset of the receipts of failures."""
    ended_at: float = 0.0
    reason: str | None = None

    def has(self, attempt: Attempt, key: AssetKey) -> bool:
        """Whether the asset has its receipt of this try."""
        step = attempt.key
        return (step.step_key, key) in self.assets_made or (step.step_key, step.attempt, key) in self.seen

    def killed(self, attempt: Attempt) -> Attempt:
        """Return a try that began and never ended, as it is to be recorded."""
        reason = f"; its run was ended: {self.reason}" if self.reason else ""
        return replace(
            attempt,
            ended_at=max(self.ended_at, attempt.started_at or 0.0),
            outcome=KILLED,
            error=f"killed: the step began and never ended{reason}",
        )


def _left_by(instance: DagsterInstance, run: DagsterRun) -> _Left:
    left = _Left()
    for event in instance.all_logs(run.run_id, of_type={_MADE, _SEEN, *_RUN_ENDS}):
        left.ended_at = max(left.ended_at, event.timestamp)
        happened = event.dagster_event
        if happened is None:
            continue
        if happened.event_type in _RUN_ENDS:
            left.reason = (happened.message or event.user_message).partition("\n")[0] or None
            continue
        about = event.asset_materialization or event.asset_observation
        if about is None or happened.step_key is None:
            continue
        if happened.event_type is _MADE:
            left.assets_made.add((happened.step_key, about.asset_key))
        try:
            record = receipt_of(about.metadata, source=f"run {run.run_id}")
        except InvalidRecordError:
            continue
        if record is None:
            continue
        if happened.event_type is _MADE:
            left.made.setdefault(happened.step_key, []).append(record)
        else:
            attempt = (record.dagster or {}).get("attempt")
            left.seen.add((happened.step_key, attempt if isinstance(attempt, int) else 0, about.asset_key))
    return left


def _mark(made: Sequence[RunRecord], attempt: Attempt, settings: ReceiptSettings, warn: Warn) -> None:
    """Note in the files of what a killed step had stored that its step was killed after it."""
    store = RecordStore(settings.root)
    for receipt in made:
        try:
            record = store.load(receipt.usecase, receipt.package, receipt.task_name, receipt.run_id)
            if (record.dagster or {}).get("step_status") is None:
                store.save(with_dagster(record, step_status=attempt.outcome))
        except UbunyeError as e:
            warn(f"ubunye: the record of {receipt.task_path} was not marked: {e}")
