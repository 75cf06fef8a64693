"""A record as its file had it, made again from the receipts in the event log.

A run over several partitions has one record and a receipt on each partition; a step's outcome stands in the
file only, and is read from the run's log. What was cut from a receipt for its size stays out, and the record
says what that is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from dagster import DagsterEventType, DagsterInstance

from ubunye_orchestrate.dagster_io.receipts.assembly import with_dagster
from ubunye_orchestrate.dagster_io.receipts.values import combined
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.records.model import RunRecord, StepRecord
from ubunye_orchestrate.records.paths import stored_run_id
from ubunye_orchestrate.records.steps import step_from_fingerprint
from ubunye_orchestrate.records.store import parse_time

__all__ = ["Outcome", "Outcomes", "fingerprint_of", "outcomes_of_run", "rebuilt_record"]

_STARTS = {DagsterEventType.STEP_START, DagsterEventType.STEP_RESTARTED}
_ENDS = {
    DagsterEventType.STEP_SUCCESS: "success",
    DagsterEventType.STEP_FAILURE: "error",
    DagsterEventType.STEP_UP_FOR_RETRY: "error",
}


class Outcome(NamedTuple):
    """How one try of a step ended."""

    status: str
    ended_at: float
    """Seconds since the epoch."""


Outcomes = Mapping[tuple[str, int], Outcome]
"""By step key and attempt, which counts from 0."""


def outcomes_of_run(instance: DagsterInstance, run_id: str) -> Outcomes:
    """Return how the tries of a run's steps ended; empty for a run whose log is gone."""
    tries: dict[str, int] = {}
    found: dict[tuple[str, int], Outcome] = {}
    for entry in instance.all_logs(run_id, of_type={*_STARTS, *_ENDS}):
        event = entry.dagster_event
        if event is None or event.step_key is None:
            continue
        if event.event_type in _STARTS:
            tries[event.step_key] = tries.get(event.step_key, -1) + 1
        elif event.event_type in _ENDS:
            attempt = max(tries.get(event.step_key, 0), 0)
            found[event.step_key, attempt] = Outcome(_ENDS[event.event_type], entry.timestamp)
    return found


def rebuilt_record(receipts: Sequence[RunRecord], outcomes: Outcomes) -> RunRecord:
    """Return the record of a run from its receipts: one, or one for each partition that was stored apart."""
    first = receipts[0]
    record = _with_all_fields(first)
    # Stored together, each partition's materialization has the receipt of all of them.
    if len(receipts) > 1 and all(len(_partition_keys(receipt)) == 1 for receipt in receipts):
        apart = {_partition_keys(receipt)[0]: receipt for receipt in receipts}
        keys = _in_order(list(apart), first.run_id)
        variables = _with_all_fields(apart[keys[0]]).variables
        record = with_dagster(record, partition_keys=keys, baseline=None)
        # Each partition has its own; the file of all of them names none.
        dagster = {name: value for name, value in (record.dagster or {}).items() if name != "baselines"}
        record = record.model_copy(
            update={
                "outputs": [_whole({key: apart[key] for key in keys})],
                "variables": variables,
                "dagster": dagster,
            }
        )
    dagster = record.dagster or {}
    outcome = outcomes.get((str(dagster.get("step_key")), _attempt(dagster.get("attempt"))))
    if outcome is None or dagster.get("step_status") is not None:
        return record
    timings = record.timings
    began = None if record.started_at is None else parse_time(record.started_at)
    if began is not None:
        seconds = round(outcome.ended_at - began.timestamp(), 6)
        timings = [*timings, {"step": f"Step:{dagster.get('op')}", "seconds": seconds}]
    return with_dagster(record.model_copy(update={"timings": timings}), step_status=outcome.status)


def ended_at(record: RunRecord) -> datetime | None:
    """Return when the run of a record ended, as far as it says."""
    text = record.ended_at or record.started_at
    return None if text is None else parse_time(text)


def _with_all_fields(receipt: RunRecord) -> RunRecord:
    """Return a receipt, which has only the fields that say something, as a whole record."""
    fields = receipt.model_dump(mode="json", exclude_unset=True)
    # Where the file was: it is written anew.
    fields.pop("record_path", None)
    return RunRecord.model_validate(fields)


def _partition_keys(receipt: RunRecord) -> list[str]:
    return [str(key) for key in (receipt.dagster or {}).get("partition_keys") or ()]


def _in_order(keys: list[str], run_id: str) -> list[str]:
    """Sort the partitions of a run, the first and last that its record's id names at the ends.

    Their own order, that of their definition, is not in the event log.
    """
    first, _, last = run_id.partition("--")[2].partition(".retry-")[0].partition("..")
    names = {key: stored_run_id("", [key]).partition("--")[2] for key in keys}
    return sorted(keys, key=lambda key: (names[key] != first, names[key] == last, key))


def _attempt(value: object) -> int:
    return value if isinstance(value, int) else 0


def _whole(by_partition: Mapping[str, RunRecord]) -> StepRecord:
    """Return the output of all partitions from those of each."""
    outputs = {key: receipt.outputs[0] for key, receipt in by_partition.items()}
    first = next(iter(outputs.values()))
    folders = {os.path.dirname(step.location) if step.location else None for step in outputs.values()}
    return step_from_fingerprint(
        first.name,
        "output",
        combined({key: fingerprint_of(step) for key, step in outputs.items()}),
        format=first.format,
        location=folders.pop() if len(folders) == 1 else None,
        scope=first.hash_scope or "stored_partition",
    )


def fingerprint_of(step: StepRecord) -> Fingerprint:
    """Return what a step says of its table; without its columns there is no hash of the whole."""
    known = step.columns is not None or step.data_hash is None
    sums = step.lane_sums
    return Fingerprint(
        data_hash=step.data_hash if known else None,
        schema_hash=step.schema_hash,
        row_count=step.row_count,
        lane_sums=None if sums is None else (int(sums[0]), int(sums[1])),
        columns=tuple(step.columns or ()),
        error=step.hash_error if known else "its columns were cut from the receipt for its size",
        seconds=step.hash_seconds or 0.0,
        path_taken=step.hash_path or "",
    )
