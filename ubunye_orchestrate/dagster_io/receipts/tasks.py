"""Which step is running, which task its output is, and under what identity its record goes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dagster import (
    AssetKey,
    InputContext,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    OutputContext,
    PartitionsDefinition,
    TimeWindowPartitionsDefinition,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.delta_evidence import commit_note
from ubunye_orchestrate.dagster_io.receipts.ledger import LEDGER, StepEntry, StepKey
from ubunye_orchestrate.dagster_io.receipts.monitoring import MonitoredTask, tell_asset_started
from ubunye_orchestrate.dagster_io.receipts.producers import asset_name, ordered_partitions
from ubunye_orchestrate.dagster_io.upstream import AssetOfStep
from ubunye_orchestrate.records.code import code_evidence
from ubunye_orchestrate.records.evidence import config_hash
from ubunye_orchestrate.records.monitors import kept_from_the_run
from ubunye_orchestrate.records.paths import stored_run_id, task_name_for_asset
from ubunye_orchestrate.records.settings import ReceiptSettings

__all__ = [
    "Task",
    "enter_step",
    "entry_of_step",
    "key_of_step",
    "launch_of",
    "note_of_run",
    "partition_variables",
    "task_of_asset",
    "task_of_op",
    "task_of_output",
]

_NO_FUNCTION = "the step has no function of its own (made without a decorator)"


@dataclass(frozen=True)
class Task:
    """One asset (or one output of an op) that a step makes, and its place among the records."""

    key: AssetKey | None
    asset: AssetOfStep | None
    """None for the output of an op, and where the step's definition is not at hand."""
    name: str
    """How a step record names it: the asset, or the output."""
    output: str | None
    """Name of the step's output."""
    package: str
    task_name: str
    run_id: str
    """The record's: with partitions and attempt."""
    partitions: tuple[str, ...]
    mapping_key: str | None
    variables: Mapping[str, Any]


def enter_step(context: InputContext | OutputContext, settings: ReceiptSettings) -> StepEntry | None:
    """Return the ledger's entry of the running step, made on first use; None outside of a step."""
    step = upstream.step_context(context)
    if step is None:
        return None
    # Inputs come first, so the step has just begun, unless it has none: then it has already worked.
    return entry_of_step(step, settings, has_worked=isinstance(context, OutputContext))


def entry_of_step(step: upstream.StepContext, settings: ReceiptSettings, *, has_worked: bool) -> StepEntry:
    """Return the ledger's entry of a step, made on first use.

    ``has_worked`` tells that it began before now: the event log knows when.
    """
    key = key_of_step(step)
    known = LEDGER.get(key)
    if known is not None:
        return known
    now, mark = time.time(), time.perf_counter()
    began = _step_began(step, key, now) if has_worked else now
    function = upstream.compute_function(step)
    code: dict[str, Any] = {"function": None, "functions": {}, "error": _NO_FUNCTION}
    folder_hash = None
    if function is not None:
        evidence = code_evidence(function)
        code = evidence.as_record()
        folder_hash = evidence.folder_hash
    entry = StepEntry(
        key=key,
        settings=settings,
        job=step.job_name,
        op=upstream.node_of(step),
        launch=launch_of(step.run_tags),
        assets=upstream.assets_of_step(step),
        # What a check returns is its result, and no table of anybody's.
        outputs=() if upstream.makes_checks_only(step) else upstream.step_outputs(step),
        config_hash=config_hash(upstream.op_config(step)),
        code=code,
        code_hash=folder_hash,
        started_at=began,
        mark=mark - (now - began),
        config=upstream.op_config(step),
        graphs=upstream.graphs_of_step(step),
    )
    if settings.monitors:
        with kept_from_the_run("telling monitors of the start"):
            _tell_started(step, entry)
    return LEDGER.add(entry, upstream.asset_groups(step))


def _tell_started(step: upstream.StepContext, entry: StepEntry) -> None:
    for asset in entry.assets:
        definition, partitions = upstream.partitions_made(step, asset.key)
        variables = partition_variables(definition, partitions)
        task = task_of_asset(entry.key, asset.key, asset.group, partitions, entry.assets)
        context = MonitoredTask(task.run_id, task.task_name, task.package, entry.settings.profile, variables)
        tell_asset_started(context, entry.settings, entry.config)


def key_of_step(step: upstream.StepContext) -> StepKey:
    """Return which try of which step of which run is running."""
    return StepKey(step.run_id, upstream.step_key(step), upstream.attempt_of(step))


def task_of_output(context: OutputContext, entry: StepEntry) -> Task:
    """Return the task that an output is."""
    partitions = ordered_partitions(context)
    if context.has_asset_key:
        definition = context.asset_partitions_def if context.has_asset_partitions else None
        variables = partition_variables(definition, partitions)
        group = next((asset.group for asset in entry.assets if asset.key == context.asset_key), "default")
        return task_of_asset(
            entry.key, context.asset_key, group, partitions, entry.assets, context.name, variables
        )
    return task_of_op(entry, context.name, context.mapping_key)


def task_of_op(entry: StepEntry, output: str, mapping_key: str | None = None) -> Task:
    """Return the task that an output of an op is, which is no asset."""
    # The copies of a dynamic output, and of a step mapped over one, are runs of one task.
    copies = [part for part in (upstream.mapping_of(entry.key.step_key), mapping_key) if part]
    return Task(
        key=None,
        asset=None,
        name=output,
        output=output,
        package="default",
        task_name=task_name_for_asset([entry.job, entry.op, output]),
        run_id=stored_run_id(entry.key.run_id, copies, entry.key.attempt),
        partitions=(),
        mapping_key=mapping_key,
        variables={},
    )


def task_of_asset(
    step: StepKey,
    key: AssetKey,
    group: str,
    partitions: Sequence[str],
    assets: Sequence[AssetOfStep] = (),
    output: str | None = None,
    variables: Mapping[str, Any] | None = None,
) -> Task:
    """Return the task that an asset is in one try of a step."""
    return Task(
        key=key,
        asset=next((asset for asset in assets if asset.key == key), None),
        name=asset_name(key),
        output=output,
        package=group,
        task_name=task_name_for_asset(key.path),
        run_id=stored_run_id(step.run_id, partitions, step.attempt),
        partitions=tuple(partitions),
        mapping_key=None,
        variables=variables or {},
    )


def note_of_run(step: StepKey, task: Task, settings: ReceiptSettings, partitions: Sequence[str]) -> str:
    """Return what a Delta commit says of the run that makes it: ``partitions`` are those that it stores."""
    receipt = f"{settings.usecase}/{task.package}/{task.task_name}/{task.run_id}"
    return commit_note(step.run_id, None if task.key is None else task.name, partitions, receipt)


def partition_variables(definition: PartitionsDefinition | None, partitions: Sequence[str]) -> dict[str, Any]:
    """Return ``dt`` (start of the first partition) and ``dtf`` (its format) of a time-partitioned asset."""
    if definition is None or not partitions:
        return {}
    first: str = partitions[0]
    if isinstance(definition, MultiPartitionsDefinition):
        key = definition.get_partition_key_from_str(first)
        for dimension in definition.partitions_defs:
            if isinstance(dimension.partitions_def, TimeWindowPartitionsDefinition) and isinstance(
                key, MultiPartitionKey
            ):
                return {
                    "dt": key.keys_by_dimension[dimension.name],
                    "dtf": dimension.partitions_def.fmt,
                }
    if isinstance(definition, TimeWindowPartitionsDefinition):
        return {"dt": first, "dtf": definition.fmt}
    return {}


def launch_of(tags: Mapping[str, str]) -> str:
    """Return how the run was launched, by its tags."""
    for tag, launch in (
        ("dagster/backfill", "backfill"),
        ("dagster/schedule_name", "schedule"),
        ("dagster/auto_materialize", "automation"),
        ("dagster/from_automation_condition", "automation"),
        ("dagster/sensor_name", "sensor"),
    ):
        if tag in tags:
            return launch
    return "manual"


def _step_began(step: upstream.StepContext, key: StepKey, now: float) -> float:
    seen = LEDGER.start_of(key.run_id, key.step_key)
    if seen is not None:
        return min(now, seen)
    stats = step.instance.get_run_step_stats(key.run_id, [key.step_key])
    starts = [attempt.start_time for one in stats for attempt in one.attempts_list if attempt.start_time]
    starts += [one.start_time for one in stats if one.start_time]
    # The newest start is this try's. Clocks of other machines may be ahead of this one.
    return min(now, max(starts, default=now))
