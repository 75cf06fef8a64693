"""The record of one task, assembled from its step's ledger entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ubunye_orchestrate import __version__
from ubunye_orchestrate.dagster_io.receipts.ledger import StepEntry, StepKey
from ubunye_orchestrate.dagster_io.receipts.producers import asset_name
from ubunye_orchestrate.dagster_io.receipts.tasks import Task
from ubunye_orchestrate.dagster_io.times import utc_text
from ubunye_orchestrate.masking import mask_variables
from ubunye_orchestrate.records.environment import current_environment, environment_hash
from ubunye_orchestrate.records.model import RunRecord, StepRecord
from ubunye_orchestrate.records.settings import ReceiptSettings

__all__ = ["build_record", "with_dagster"]


def build_record(
    task: Task,
    step: StepKey,
    entry: StepEntry | None,
    settings: ReceiptSettings,
    outputs: Sequence[StepRecord],
    *,
    job: str,
    ended_at: float,
    started_at: float | None = None,
    error: str | None = None,
    timings: Sequence[dict[str, Any]] = (),
    data_version: str | None = None,
) -> RunRecord:
    """Return the record of a task.

    ``entry`` is what the step left in the ledger, None for a step that failed before an IO manager was used:
    such a record knows neither inputs nor code. ``started_at`` and ``ended_at`` are seconds since the epoch.
    ``timings`` are the task's own, beside those of its inputs.
    """
    began = entry.started_at if entry is not None else started_at
    environment = current_environment()
    if entry is not None and entry.java is not None:
        environment = environment.model_copy(update={"java": entry.java})
    asset = task.asset
    code_version = asset.code_version if asset is not None else None
    checked = entry.checked.get(task.name) if entry is not None else None
    checks: list[dict[str, Any]] = []
    if entry is not None and checked is not None:
        seconds = round(checked.seconds, 6)
        checks.append({"step": f"Expectations:{entry.op}", "output": task.name, "seconds": seconds})
    return RunRecord(
        run_id=task.run_id,
        task_path=f"{settings.usecase}/{task.package}/{task.task_name}",
        usecase=settings.usecase,
        package=task.package,
        task_name=task.task_name,
        profile=settings.profile,
        version=code_version or "",
        config_hash=entry.config_hash if entry is not None else None,
        started_at=None if began is None else utc_text(began),
        ended_at=utc_text(ended_at),
        duration_sec=None if began is None else round(max(0.0, ended_at - began), 6),
        status="success" if error is None else "error",
        inputs=list(entry.inputs) if entry is not None else [],
        outputs=list(outputs),
        error=error,
        engine_version=__version__,
        backend=entry.backend if entry is not None else None,
        variables=mask_variables(task.variables),
        code_hash=entry.code_hash if entry is not None else None,
        environment=environment,
        environment_hash=environment_hash(environment),
        timings=[*(entry.timings if entry is not None else ()), *checks, *timings],
        expectations=[*_of_inputs(task, entry), *(checked.results if checked is not None else ())],
        time_zone=entry.time_zone if entry is not None else None,
        code=entry.code if entry is not None else None,
        dagster={
            "run_id": step.run_id,
            "job": job,
            "step_key": step.step_key,
            "op": entry.op if entry is not None else None,
            "output": task.output,
            "mapping_key": task.mapping_key,
            "asset_key": list(task.key.path) if task.key is not None else None,
            "partition_keys": list(task.partitions),
            "attempt": step.attempt,
            "launch": entry.launch if entry is not None else None,
            "code_version": code_version,
            "data_version": data_version,
            "declared_inputs": [asset_name(key) for key in asset.parents] if asset is not None else None,
            "baseline": None,
            "step_status": None,
        },
    )


def _of_inputs(task: Task, entry: StepEntry | None) -> list[dict[str, Any]]:
    """Return what became of the rules about what was read; an op of a graph has those of its asset too."""
    if entry is None:
        return []
    names = [task.name, *(asset_name(key) for key in entry.graphs if task.key is None)]
    found = [one for name in names for one in entry.checked_inputs.get(name, ())]
    return [one for at, one in enumerate(found) if one not in found[:at]]


def with_dagster(record: RunRecord, **fields: Any) -> RunRecord:
    """Return the record with some of its Dagster fields set."""
    return record.model_copy(update={"dagster": {**(record.dagster or {}), **fields}})
