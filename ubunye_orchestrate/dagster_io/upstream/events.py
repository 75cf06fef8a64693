"""The event log: what was materialized and observed, planned and failed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from dagster import (
    AssetCheckEvaluation,
    AssetCheckSeverity,
    AssetKey,
    AssetObservation,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    EventLogEntry,
    MetadataValue,
)
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.events import AssetObservationData, DagsterEvent, HandledOutputData

from ubunye_orchestrate.foreign import is_foreign, without_values

__all__ = [
    "check_evaluation_on",
    "error_of",
    "head_of_event_log",
    "latest_materialization_ids",
    "on_events",
    "outputs_handled",
    "planned_asset",
    "report_observation",
]


# What Dagster puts around a user's exception; those that begin with DagsterExecution too.
_WRAPPERS = (
    "DagsterUserCodeExecutionError",
    "RetryRequestedFromPolicy",
    "RetryRequested",
    "DagsterTypeCheckError",
)


def error_of(event: EventLogEntry) -> str | None:
    """Return the error of a failed or retried step as ``Type: message``: the user's own where it is one."""
    data = event.dagster_event.event_specific_data if event.dagster_event else None
    error = getattr(data, "error", None)
    if error is None:
        return None
    while error.cause is not None and _is_wrapper(error.cls_name):
        error = error.cause
    # As Python prints it: the class may have its module in front.
    printed = str(error.message).strip()
    message = re.sub(rf"^[\w.<>]*\b(?={re.escape(error.cls_name or '')}\b)", "", printed)
    if is_foreign(printed.partition(":")[0]):
        name, _, told = message.partition(": ")
        return f"{name}: {without_values(told)}" if told else name
    return (
        message
        if error.cls_name is None or message.startswith(error.cls_name)
        else f"{error.cls_name}: {message}"
    )


def _is_wrapper(class_name: str | None) -> bool:
    return class_name is not None and (class_name.startswith("DagsterExecution") or class_name in _WRAPPERS)


def outputs_handled(
    instance: DagsterInstance, run_id: str
) -> Sequence[tuple[str, Mapping[str, MetadataValue]]]:
    """Return the step key and the metadata of each output that a run has stored, oldest first: one query."""
    found = []
    for event in instance.all_logs(run_id, of_type={DagsterEventType.HANDLED_OUTPUT}):
        handled = event.dagster_event
        if handled is not None and handled.step_key is not None:
            data = cast("HandledOutputData", handled.event_specific_data)
            found.append((handled.step_key, data.metadata))
    return found


def planned_asset(event: EventLogEntry) -> tuple[AssetKey, list[str]]:
    """Return the asset that a run planned to make, and its partitions."""
    data = cast("DagsterEvent", event.dagster_event).asset_materialization_planned_data
    if data.partition is not None:
        return data.asset_key, [str(data.partition)]
    if data.partitions_subset is not None:
        return data.asset_key, sorted(str(key) for key in data.partitions_subset.get_partition_keys())
    return data.asset_key, []


def head_of_event_log(instance: DagsterInstance) -> int:
    """Return the storage id of the newest event of any run; 0 for an empty log."""
    return instance.event_log_storage.get_maximum_record_id() or 0


def on_events(instance: DagsterInstance, run_id: str, callback: Callable[[EventLogEntry], None]) -> None:
    """Have every event of a run that this process stores handed to ``callback``, until the process ends."""
    instance.add_event_listener(run_id, callback)


def latest_materialization_ids(
    instance: DagsterInstance, key: AssetKey, partitions: Sequence[str]
) -> Mapping[str, int]:
    """Return the storage id of the newest materialization of each partition that has one: one query."""
    return instance.event_log_storage.get_latest_storage_id_by_partition(
        key, DagsterEventType.ASSET_MATERIALIZATION, set(partitions)
    )


def report_observation(
    instance: DagsterInstance, run: DagsterRun, step_key: str, observation: AssetObservation
) -> None:
    """Log an observation as an event of the run and step, also when the step is over."""
    instance.report_dagster_event(
        DagsterEvent(
            event_type_value=DagsterEventType.ASSET_OBSERVATION.value,
            job_name=run.job_name,
            step_key=step_key,
            event_specific_data=AssetObservationData(observation),
            message=observation.description or "",
        ),
        run_id=run.run_id,
    )


def check_evaluation_on(
    key: AssetKey,
    name: str,
    *,
    passed: bool,
    severity: AssetCheckSeverity,
    description: str,
    metadata: Mapping[str, MetadataValue],
    storage_id: int,
    run_id: str,
    timestamp: float,
) -> AssetCheckEvaluation:
    """Return the result of a check on one materialization, which need not be the newest.

    It names no partition: Dagster's store takes one result outside of a run for each asset, check and
    partition, ever (the unique index ``idx_asset_check_executions_unique``; two without a partition do not
    meet). The materialization that it is on has the partition.
    """
    return AssetCheckEvaluation(
        asset_key=key,
        check_name=name,
        passed=passed,
        severity=severity,
        description=description,
        metadata=metadata,
        target_materialization_data=AssetCheckEvaluationTargetMaterializationData(
            storage_id=storage_id, run_id=run_id, timestamp=timestamp
        ),
    )
