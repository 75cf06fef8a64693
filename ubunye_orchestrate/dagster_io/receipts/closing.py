"""The end of steps: each record gains its step's outcome, and a failed step leaves records of what failed.

Called when an IO manager is torn down: after the run in process, after the step elsewhere, after failures
too. By then the step's end stands in the event log, so outcomes are read from there. A process that was
killed is not seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dagster import (
    AssetKey,
    AssetObservation,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    EventLogEntry,
    InitResourceContext,
    MetadataValue,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts import metadata as keys
from ubunye_orchestrate.dagster_io.receipts.assembly import build_record, with_dagster
from ubunye_orchestrate.dagster_io.receipts.baseline import latest_package
from ubunye_orchestrate.dagster_io.receipts.expectation_checks import broken_rules
from ubunye_orchestrate.dagster_io.receipts.graphs import whole_graph
from ubunye_orchestrate.dagster_io.receipts.ledger import LEDGER, StepEntry, StepKey, Stored
from ubunye_orchestrate.dagster_io.receipts.leftovers import Left, left_by
from ubunye_orchestrate.dagster_io.receipts.metadata import compact_receipt
from ubunye_orchestrate.dagster_io.receipts.monitoring import tell_asset_ended
from ubunye_orchestrate.dagster_io.receipts.panel import harmless
from ubunye_orchestrate.dagster_io.receipts.producers import asset_name
from ubunye_orchestrate.dagster_io.receipts.run_log import (
    ENDS,
    KILLED,
    STARTS,
    Attempt,
    Planned,
    planned_of,
    read_log,
)
from ubunye_orchestrate.dagster_io.receipts.tasks import Task, entry_of_step, task_of_asset, task_of_op
from ubunye_orchestrate.errors import UbunyeError
from ubunye_orchestrate.masking import mask_text
from ubunye_orchestrate.records.model import RunRecord
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.steps import step_without_hash
from ubunye_orchestrate.records.store import RecordStore

__all__ = ["Closing", "GroupOf", "Warn", "close_run", "close_steps", "open_run"]

Warn = Callable[[str], None]
GroupOf = Callable[[AssetKey], "str | None"]

# An observation for each partition of a failed range; past this the first ones stand for all.
_MAX_OBSERVATIONS = 50


def open_run(context: InitResourceContext, settings: Callable[[], ReceiptSettings]) -> None:
    """Note from now on when the steps of the resource's run begin, and what they are that fail; outside of a
    run do nothing.

    A step without inputs has worked, or failed, before an IO manager is asked for anything. Where nobody
    watched, the event log is asked when a step began.
    """
    log = context.log
    if context.run is None or context.instance is None or log is None:
        return

    def note(event: EventLogEntry) -> None:
        with harmless(log, "noting an event of a step"):
            _note(event, settings)

    with harmless(log, "watching for the starts of steps"):
        if LEDGER.watch(context.run.run_id):
            upstream.on_events(context.instance, context.run.run_id, note)
    with harmless(log, "opening the event log"):
        upstream.open_log(context.instance)


def _note(event: EventLogEntry, settings: Callable[[], ReceiptSettings]) -> None:
    found = event.dagster_event
    if found is None or found.step_key is None:
        return
    if found.event_type in STARTS:
        LEDGER.began(event.run_id, found.step_key, event.timestamp)
    elif found.event_type is DagsterEventType.STEP_OUTPUT:
        entry = LEDGER.newest(event.run_id, found.step_key)
        result = found.step_output_data
        for block in entry.blocks.values() if entry is not None else ():
            if block.on_result is not None:
                block.on_result(result.output_name, result.metadata)
    elif ENDS.get(found.event_type) == "error":
        # Its function and configuration are known here and no longer when it is closed.
        step = upstream.step_being_logged()
        if step is not None and not upstream.makes_checks_only(step):
            entry_of_step(step, settings(), has_worked=True)


def close_run(
    context: InitResourceContext,
    settings: Callable[[], ReceiptSettings],
    group_of: GroupOf = lambda key: None,
) -> None:
    """Close the steps that ended while the resource of ``context`` was there; outside of a run do nothing."""
    log = context.log
    if context.run is None or context.instance is None or log is None:
        return
    with harmless(log, "closing the records of finished steps"):
        close_steps(context.instance, context.run, settings(), log.warning, group_of)
    with harmless(log, "closing the event log"):
        upstream.close_log(context.instance)


def close_steps(
    instance: DagsterInstance,
    run: DagsterRun,
    settings: ReceiptSettings,
    warn: Warn,
    group_of: GroupOf = lambda key: None,
) -> None:
    """Close every step of the run that ended in this process and was not closed yet.

    ``group_of`` tells an asset's group where the ledger cannot: a step that failed before it used an IO
    manager left nothing there. Then the last receipt's is taken, else ``default``.
    """
    log = read_log(instance, run)
    left: Left | None = None
    for attempt in log.ended:
        if not attempt.here or not LEDGER.close(attempt.key):
            continue
        entry = LEDGER.take(attempt.key)
        close = Closing(instance, run, entry.settings if entry else settings, warn, group_of)
        if entry is not None:
            if attempt.outcome == "success":
                close.add_blocks(entry, attempt, planned_of(attempt.key.step_key, log))
            elif entry.blocks:
                left = left or left_by(instance, run)
                close.take_back(entry, attempt, left)
            close.complete(entry, attempt)
        if attempt.outcome == KILLED:
            # Another process knew what it had stored; the log knows.
            left = left or left_by(instance, run)
            close.fail_rest(attempt, planned_of(attempt.key.step_key, log), left)
        elif attempt.outcome != "success":
            close.fail(entry, attempt, planned_of(attempt.key.step_key, log))


def _is_of(record: RunRecord, key: AssetKey) -> bool:
    return (record.dagster or {}).get("asset_key") == list(key.path)


class Closing:
    """The end of one try of a step."""

    def __init__(
        self,
        instance: DagsterInstance,
        run: DagsterRun,
        settings: ReceiptSettings,
        warn: Warn,
        group_of: GroupOf,
    ) -> None:
        self._instance = instance
        self._run = run
        self._settings = settings
        self._warn = warn
        self._group_of = group_of

    def add_blocks(self, entry: StepEntry, attempt: Attempt, planned: Planned) -> None:
        """Add a record of what a block of ``receipts.run`` has noted, where there is none of its asset yet.

        The block failed and the asset went on; or it wrote nothing, and no IO manager of ours stored the
        asset.
        """
        made = {(stored.record.package, stored.record.task_name) for stored in entry.stored}
        for key, block in entry.blocks.items():
            partitions = planned.partitions.get(key, [])
            task = task_of_asset(attempt.key, key, self._group(attempt.key, key), partitions, entry.assets)
            if (task.package, task.task_name) in made:
                continue
            if block.error is None:
                why = "run.wrote was not called, and no IO manager has recorded what was stored"
            else:
                why = f"its block of receipts.run failed, and the asset went on ({block.error})"
            self._warn(f"ubunye: {task.name}: {why}; its record is in the mirror, without a receipt")
            record = self._record(task, entry, attempt, block.error)
            entry.stored.append(Stored(record, entry.settings))

    def take_back(self, entry: StepEntry, attempt: Attempt, left: Left) -> None:
        """Take back the records of blocks whose assets were not materialized, as the step failed after them.

        What they wrote stands in the record of the failure.
        """
        for key in entry.blocks:
            name = asset_name(key)
            made = [one for one in entry.stored if _is_of(one.record, key)]
            if made and not left.has(attempt.key, key):
                entry.stored = [one for one in entry.stored if not _is_of(one.record, key)]
                entry.left_behind[name] = [step for one in made for step in one.record.outputs]

    def complete(self, entry: StepEntry, attempt: Attempt) -> None:
        """Give each mirrored record of the step its outcome and the step's whole time, and nothing else."""
        whole = {"step": f"Step:{entry.op}", "seconds": round(attempt.ended_at - entry.started_at, 6)}
        for stored in entry.stored:
            record = stored.record.model_copy(update={"timings": [*stored.record.timings, whole]})
            record = with_dagster(record, step_status=attempt.outcome)
            self._save(record, stored.settings)
            tell_asset_ended(record, entry.settings, entry)

    def fail(self, entry: StepEntry | None, attempt: Attempt, planned: Planned) -> None:
        """Leave a record of all that the failed step was to make and did not, and log it on its assets."""
        made = (
            {(stored.record.package, stored.record.task_name) for stored in entry.stored} if entry else set()
        )
        for key, partitions in sorted(planned.partitions.items()):
            task = task_of_asset(
                attempt.key, key, self._group(attempt.key, key), partitions, entry.assets if entry else ()
            )
            if (task.package, task.task_name) not in made:
                record = self._error_record(task, entry, attempt)
                self._observe(key, partitions, attempt, record, self._save(record, self._settings))
                tell_asset_ended(record, self._settings, entry)
                if task.asset is not None and not attempt.retried:
                    for evaluation in broken_rules(key, record.expectations, task.asset.checks):
                        self._instance.report_runless_asset_event(evaluation)
        if entry is not None and not entry.assets:
            for output in entry.outputs:
                task = task_of_op(entry, output)
                if (task.package, task.task_name) not in made:
                    self._save(self._error_record(task, entry, attempt), self._settings)

    def fail_rest(self, attempt: Attempt, planned: Planned, left: Left) -> list[AssetKey]:
        """Leave a record of what a step did not make whose process is gone; return these assets.

        What a killed one had stored keeps its record, which is marked.
        """
        missing = {key: keys for key, keys in planned.partitions.items() if not left.has(attempt.key, key)}
        self.fail(None, attempt, Planned(missing))
        for receipt in left.made_in(attempt.key) if attempt.outcome == KILLED else ():
            self._mark(receipt, attempt)
        return list(missing)

    def _mark(self, receipt: RunRecord, attempt: Attempt) -> None:
        """Note in the file of what was stored that its step was killed after it."""
        store = RecordStore(self._settings.root)
        try:
            record = store.load(receipt.usecase, receipt.package, receipt.task_name, receipt.run_id)
            if (record.dagster or {}).get("step_status") is None:
                store.save(with_dagster(record, step_status=attempt.outcome))
        except UbunyeError as e:
            self._warn(f"ubunye: the record of {receipt.task_path} was not marked: {e}")

    def _error_record(self, task: Task, entry: StepEntry | None, attempt: Attempt) -> RunRecord:
        record = self._record(task, entry, attempt, mask_text(attempt.error or "unknown error"))
        return with_dagster(record, step_status=attempt.outcome)

    def _record(self, task: Task, entry: StepEntry | None, attempt: Attempt, error: str | None) -> RunRecord:
        left = [] if entry is None else entry.left_behind.get(task.name, [])
        named = any(step.name == task.name for step in left)
        missing = [] if error is None or named else [step_without_hash(task.name, "output")]
        return build_record(
            task,
            attempt.key,
            None if entry is None else whole_graph(self._instance, entry, task.key),
            self._settings,
            [*missing, *left],
            job=self._run.job_name,
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            error=error,
        )

    def _group(self, step: StepKey, key: AssetKey) -> str:
        known = LEDGER.group_of(step.run_id, key) or self._group_of(key)
        return known or latest_package(self._instance, key) or "default"

    def _save(self, record: RunRecord, settings: ReceiptSettings) -> str | None:
        try:
            return RecordStore(settings.root).save(record)
        except UbunyeError as e:
            self._warn(f"ubunye: the record of {record.task_path} was not mirrored: {e}")
            return None

    def _observe(
        self, key: AssetKey, partitions: Iterable[str], attempt: Attempt, record: RunRecord, path: str | None
    ) -> None:
        shown: dict[str, MetadataValue] = {
            keys.ERROR: MetadataValue.text(record.error or ""),
            keys.RECEIPT: MetadataValue.json(compact_receipt(record, path)),
        }
        if path is not None:
            shown[keys.RECORD_PATH] = MetadataValue.path(path)
        again = " and is tried again" if attempt.retried else ""
        for partition in list(partitions)[:_MAX_OBSERVATIONS] or (None,):
            upstream.report_observation(
                self._instance,
                self._run,
                attempt.key.step_key,
                AssetObservation(
                    asset_key=key,
                    partition=partition,
                    description=f"{asset_name(key)} was not materialized{again}: {record.error}",
                    metadata=shown,
                ),
            )
