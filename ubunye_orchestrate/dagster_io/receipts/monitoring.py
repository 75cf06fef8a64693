"""What monitors are told of the assets of a run: each one's start, and its end with its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ubunye_orchestrate.dagster_io.receipts.ledger import StepEntry
from ubunye_orchestrate.records.model import RunRecord
from ubunye_orchestrate.records.monitors import tell_end, tell_start
from ubunye_orchestrate.records.settings import ReceiptSettings

__all__ = ["MonitoredTask", "tell_asset_ended", "tell_asset_started"]


@dataclass(frozen=True)
class MonitoredTask:
    """The ``context`` that a monitor gets: one asset in one try of its step."""

    run_id: str
    """Of its record: with partitions and attempt."""
    task_name: str
    package: str
    profile: str
    variables: Mapping[str, Any] = field(compare=False)


def tell_asset_started(context: MonitoredTask, settings: ReceiptSettings, config: Any) -> None:
    """Tell the monitors that an asset's step begins; ``config`` is the step's."""
    tell_start(settings.monitors, context=context, config=config or {})


def tell_asset_ended(record: RunRecord, settings: ReceiptSettings, entry: StepEntry | None) -> None:
    """Tell the monitors of an asset's record, once its step is over; ``entry`` is what was known of the step.

    A step of which nothing was known had no start: it is told now. Outputs of ops are not told.
    """
    if not settings.monitors or not (record.dagster or {}).get("asset_key"):
        return
    context = MonitoredTask(record.run_id, record.task_name, record.package, record.profile, record.variables)
    config = entry.config if entry is not None else None
    if entry is None:
        tell_asset_started(context, settings, config)
    tell_end(
        settings.monitors,
        context=context,
        config=config or {},
        outputs=None,
        status=record.status,
        duration_sec=record.duration_sec or 0.0,
        inputs=None,
        expectations=record.expectations,
        timings=record.timings,
        error=record.error,
        record=record,
    )
