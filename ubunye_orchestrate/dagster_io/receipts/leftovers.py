"""What a run left in the event log, where its own processes can no longer tell: who died left no ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from dagster import AssetKey, DagsterEventType, DagsterInstance, DagsterRun

from ubunye_orchestrate.dagster_io.receipts.ledger import StepKey
from ubunye_orchestrate.dagster_io.receipts.metadata import receipt_of
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["Left", "left_by"]

_MADE = DagsterEventType.ASSET_MATERIALIZATION
_SEEN = DagsterEventType.ASSET_OBSERVATION
_RUN_ENDS = {DagsterEventType.RUN_FAILURE, DagsterEventType.RUN_CANCELED}


@dataclass
class Left:
    """What a run left in the log."""

    receipts: list[RunRecord] = field(default_factory=list)
    """Of what was materialized."""
    told: set[tuple[str, int | None, AssetKey]] = field(default_factory=set)
    """Step, try and asset of what was materialized and of the receipts of failures; a materialization without
    a receipt is of any try."""
    ended_at: float = 0.0
    """When the last of it was logged, in seconds since the epoch."""
    reason: str | None = None
    """Why the run ended, as its log has it."""

    def has(self, step: StepKey, key: AssetKey) -> bool:
        """Whether the asset has its receipt of this try of its step."""
        return any((step.step_key, number, key) in self.told for number in (step.attempt, None))

    def made_in(self, step: StepKey) -> Sequence[RunRecord]:
        """Return the receipts of what was materialized in this try of a step."""
        return [one for one in self.receipts if _step_of(one) == (step.step_key, step.attempt)]


def left_by(instance: DagsterInstance, run: DagsterRun) -> Left:
    """Return what a run left in the log: one query."""
    left = Left()
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
        record: RunRecord | None = None
        with contextlib.suppress(InvalidRecordError):
            record = receipt_of(about.metadata, source=f"run {run.run_id}")
        if record is not None:
            left.told.add((happened.step_key, _step_of(record)[1], about.asset_key))
        if happened.event_type is _MADE:
            if record is None:
                left.told.add((happened.step_key, None, about.asset_key))
            else:
                left.receipts.append(record)
    return left


def _step_of(record: RunRecord) -> tuple[str, int]:
    dagster = record.dagster or {}
    attempt = dagster.get("attempt")
    return str(dagster.get("step_key")), attempt if isinstance(attempt, int) else 0
