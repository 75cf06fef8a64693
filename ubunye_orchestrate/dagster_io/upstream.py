"""Every use of Dagster that its public API does not cover, one named function each.

Nothing else in this package touches a private name of Dagster. ``tests/dagster_io/test_upstream.py`` calls
each function on a real instance, so that an upgrade that moves one of them fails there, loudly and by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckSeverity,
    AssetExecutionContext,
    AssetKey,
    AssetObservation,
    AssetsDefinition,
    AssetSelection,
    DagsterEventType,
    DagsterInstance,
    DagsterInvariantViolationError,
    DagsterRun,
    DataVersion,
    Definitions,
    EventLogEntry,
    EventLogRecord,
    EventRecordsFilter,
    InMemoryIOManager,
    InputContext,
    IOManager,
    IOManagerDefinition,
    JobDefinition,
    MetadataValue,
    OpExecutionContext,
    OutputContext,
    PartitionKeyRange,
    PartitionsDefinition,
    RepositoryDefinition,
    ResourceDefinition,
    build_input_context,
    build_output_context,
)
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.definitions.asset_selection import KeysAssetSelection
from dagster._core.definitions.assets.definition.cacheable_assets_definition import (
    CacheableAssetsDefinition,
)
from dagster._core.definitions.job_definition import default_job_io_manager
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.events import AssetObservationData, DagsterEvent
from dagster._core.execution.plan.handle import ResolvedFromDynamicStepHandle, StepHandle
from dagster._core.storage.fs_io_manager import PickledObjectFilesystemIOManager
from dagster._core.types.dagster_type import resolve_dagster_type
from dagster_shared.record import copy as copy_record

__all__ = [
    "AssetOfStep",
    "Job",
    "LegacyAssets",
    "StepContext",
    "add_asset_metadata",
    "asset_groups",
    "assets_of_step",
    "attempt_of",
    "check_evaluation_on",
    "compute_function",
    "context_to_load",
    "default_io_manager",
    "error_of",
    "function_of",
    "group_in_project",
    "head_of_event_log",
    "instance_of",
    "keeps_values_whole",
    "keys_in_project",
    "keys_named_by",
    "latest_materialization_ids",
    "mapping_of",
    "materialization_at_start",
    "materializations_after",
    "materializations_by_id",
    "metadata_in_project",
    "metadata_in_step",
    "metadata_of_checked",
    "node_of",
    "observations_after",
    "op_config",
    "partitions_from",
    "partitions_in_step",
    "partitions_of_step",
    "planned_asset",
    "replace_definitions",
    "replace_resources",
    "report_observation",
    "set_data_version",
    "step_context",
    "step_key",
    "step_of",
    "step_of_check",
    "step_outputs",
]

StepContext = Any
"""Dagster's ``StepExecutionContext``, which it does not export."""

Job: TypeAlias = JobDefinition | UnresolvedAssetJobDefinition
"""A job in both forms in which a user has one; the second is what ``define_asset_job`` returns."""

LegacyAssets: TypeAlias = CacheableAssetsDefinition
"""Assets that are known only when a project is loaded. Superseded; loaders of assets still name it."""

# SQLite allows 32,766 variables in a statement, older builds 999.
_IDS_AT_ONCE = 500

# What Dagster puts around a user's exception; those that begin with DagsterExecution too.
_WRAPPERS = (
    "DagsterUserCodeExecutionError",
    "RetryRequestedFromPolicy",
    "RetryRequested",
    "DagsterTypeCheckError",
)


@dataclass(frozen=True)
class AssetOfStep:
    """What a step's definition says of one asset that it makes."""

    key: AssetKey
    group: str
    code_version: str | None
    parents: tuple[AssetKey, ...]
    """Declared dependencies outside of the step, sorted."""
    checks: frozenset[str] = frozenset()
    """Names of the asset checks that are declared for it."""


def step_context(context: InputContext | OutputContext) -> StepContext | None:
    """Return the context of the running step; None outside of one (a test's bare context, a load by hand)."""
    try:
        return context.step_context
    except DagsterInvariantViolationError:
        return None


def instance_of(context: OutputContext) -> DagsterInstance:
    """Return the instance of the run that stores an output (an input's context has it publicly)."""
    return context.step_context.instance


def step_of(context: AssetExecutionContext | OpExecutionContext) -> StepContext:
    """Return the context of the step that an asset's or an op's own context belongs to."""
    return context.get_step_execution_context()


def partitions_of_step(step: StepContext) -> tuple[PartitionsDefinition | None, tuple[str, ...]]:
    """Return the partitioning of the step's assets and the partitions it makes; (None, ()) without any."""
    definition = step.entity_partitions_def
    if definition is None or not (step.has_partition_key or step.has_partition_key_range):
        return None, ()
    keys = definition.get_partition_keys_in_range(step.partition_key_range)
    return definition, tuple(str(key) for key in keys)


def step_of_check(context: AssetCheckExecutionContext) -> StepContext:
    """Return the context of the step that runs a check."""
    return context.get_step_execution_context()


def partitions_in_step(step: StepContext, key: AssetKey) -> PartitionsDefinition | None:
    """Return the partitioning of any asset that the step's job knows."""
    layer = step.job_def.asset_layer
    return layer.get(key).partitions_def if layer.has(key) else None


def context_to_load(
    step: StepContext, key: AssetKey, partition: str | None, manager: str, load_as: type | None
) -> InputContext:
    """Return the context with which an IO manager loads an asset, or a partition, outside of a step's inputs.

    ``manager`` is the IO manager's resource key, whose configuration it gets. Nothing that is loaded so is
    logged as an input.
    """
    config = step.resolved_run_config.resources[manager].config
    definition = partitions_in_step(step, key)
    layer = step.job_def.asset_layer
    only = None if partition is None else PartitionKeyRange(partition, partition)
    return build_input_context(
        name=key.path[-1],
        asset_key=key,
        dagster_type=resolve_dagster_type(load_as or Any),
        resource_config=config,
        asset_partitions_def=definition,
        asset_partition_key_range=only,
        instance=step.instance,
        upstream_output=build_output_context(
            name=key.path[-1],
            asset_key=key,
            definition_metadata=layer.get(key).metadata if layer.has(key) else {},
            resource_config=config,
            asset_partitions_def=definition,
            asset_partition_key_range=only,
        ),
    )


def partitions_from(instance: DagsterInstance) -> AbstractContextManager[object]:
    """Return a context in which partitions that are added at run time are looked up in ``instance``."""
    return partition_loading_context(dynamic_partitions_store=instance)


def attempt_of(step: StepContext) -> int:
    """Return how often the step was tried before, 0 the first time."""
    return int(step.previous_attempt_count)


def step_key(step: StepContext) -> str:
    """Return the key of the step: the node's path, with the mapping key of a mapped step."""
    return str(step.step.key)


def node_of(step: StepContext) -> str:
    """Return the path of the step's node in its job, without a mapping key."""
    return str(step.node_handle)


def mapping_of(step_key: str) -> str | None:
    """Return the mapping key of a step that is mapped over a dynamic output; None for any other."""
    handle = StepHandle.parse_from_key(step_key)
    return handle.mapping_key if isinstance(handle, ResolvedFromDynamicStepHandle) else None


def materialization_at_start(step: StepContext, key: AssetKey) -> tuple[int, str] | None:
    """Return the newest materialization of an input asset when the step began: its storage id and run.

    Dagster has read it by then, to note which data versions the step's assets are made from; so this is no
    query, as a rule. None where there is none.
    """
    found = step.maybe_fetch_and_get_input_asset_version_info(key)
    if found is None or found.event_type is not DagsterEventType.ASSET_MATERIALIZATION:
        return None
    return found.storage_id, found.run_id


def op_config(step: StepContext) -> Any:
    """Return the step's own run config; None without one."""
    return step.op_config


def assets_of_step(step: StepContext) -> tuple[AssetOfStep, ...]:
    """Return the assets that the step makes, those of its selection only."""
    layer = step.job_def.asset_layer
    keys = step.get_output_asset_keys()
    found = []
    for key in sorted(keys):
        node = layer.get(key)
        parents = tuple(sorted(parent for parent in node.parent_keys if parent not in keys))
        checks = frozenset(check.name for check in node.check_keys)
        found.append(AssetOfStep(key, node.group_name or "default", node.code_version, parents, checks))
    return tuple(found)


def asset_groups(step: StepContext) -> Mapping[AssetKey, str]:
    """Return the group of every asset that the step's job can make."""
    layer = step.job_def.asset_layer
    return {key: layer.get(key).group_name or "default" for key in layer.executable_asset_keys}


def step_outputs(step: StepContext) -> tuple[str, ...]:
    """Return the names of the step's outputs."""
    return tuple(output.name for output in step.step.step_outputs)


def set_data_version(step: StepContext, key: AssetKey, version: str) -> None:
    """Make ``version`` the data version of the asset's materialization that follows.

    A version that the asset gives itself (``Output(data_version=…)``, or the tag) still wins.
    """
    step.set_data_version(key, DataVersion(version))


def add_asset_metadata(
    step: StepContext, key: AssetKey, partition: str | None, metadata: Mapping[str, Any]
) -> None:
    """Add metadata to the materialization of an asset, or of one partition; what the user put there stays."""
    taken = step.get_asset_metadata(key, partition) or {}
    step.add_asset_metadata(
        {name: value for name, value in metadata.items() if name not in taken},
        asset_key=key,
        partition_key=partition,
    )


def compute_function(step: StepContext) -> Callable[..., Any] | None:
    """Return the user's function behind the step; None for a step made without a decorator."""
    function = getattr(step.op_def.compute_fn, "decorated_fn", None)
    return cast("Callable[..., Any]", function) if callable(function) else None


def function_of(asset: AssetsDefinition) -> Callable[..., Any] | None:
    """Return the user's function that an asset is made of; None for a graph, or without a decorator."""
    node = asset.node_def if asset.is_executable else None
    function = getattr(getattr(node, "compute_fn", None), "decorated_fn", None)
    return cast("Callable[..., Any]", function) if callable(function) else None


def error_of(event: EventLogEntry) -> str | None:
    """Return the error of a failed or retried step as ``Type: message``: the user's own where it is one."""
    data = event.dagster_event.event_specific_data if event.dagster_event else None
    error = getattr(data, "error", None)
    if error is None:
        return None
    while error.cause is not None and _is_wrapper(error.cls_name):
        error = error.cause
    # As Python prints it: the class may have its module in front.
    message = re.sub(rf"^[\w.<>]*\b(?={re.escape(error.cls_name or '')}\b)", "", str(error.message).strip())
    return (
        message
        if error.cls_name is None or message.startswith(error.cls_name)
        else f"{error.cls_name}: {message}"
    )


def _is_wrapper(class_name: str | None) -> bool:
    return class_name is not None and (class_name.startswith("DagsterExecution") or class_name in _WRAPPERS)


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


def materializations_after(
    instance: DagsterInstance, storage_id: int, limit: int
) -> Sequence[EventLogRecord]:
    """Return at most ``limit`` materializations of any asset after ``storage_id``, oldest first: 1 query"""
    return instance.event_log_storage.get_event_records(
        EventRecordsFilter(event_type=DagsterEventType.ASSET_MATERIALIZATION, after_cursor=storage_id),
        limit=limit,
        ascending=True,
    )


def observations_after(instance: DagsterInstance, storage_id: int, limit: int) -> Sequence[EventLogRecord]:
    """Return at most ``limit`` observations of any asset after ``storage_id``, oldest first: one query."""
    return instance.event_log_storage.get_event_records(
        EventRecordsFilter(event_type=DagsterEventType.ASSET_OBSERVATION, after_cursor=storage_id),
        limit=limit,
        ascending=True,
    )


def materializations_by_id(
    instance: DagsterInstance, storage_ids: Iterable[int]
) -> Mapping[int, EventLogRecord]:
    """Return the materializations of any assets by storage id; ids that are gone are left out."""
    ids = sorted(set(storage_ids))
    found: dict[int, EventLogRecord] = {}
    for start in range(0, len(ids), _IDS_AT_ONCE):
        records = instance.event_log_storage.get_event_records(
            EventRecordsFilter(
                event_type=DagsterEventType.ASSET_MATERIALIZATION,
                storage_ids=ids[start : start + _IDS_AT_ONCE],
            )
        )
        found.update((record.storage_id, record) for record in records)
    return found


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


def default_io_manager() -> IOManagerDefinition:
    """Return the IO manager that Dagster takes where none is given, by ``DAGSTER_DEFAULT_IO_MANAGER_…``."""
    return default_job_io_manager


def keeps_values_whole(manager: IOManager) -> bool:
    """Tell Dagster's own IO managers that give back exactly what they were given, and all of it."""
    return isinstance(manager, InMemoryIOManager | PickledObjectFilesystemIOManager)


def replace_definitions(definitions: Definitions, **fields: Any) -> Definitions:
    """Return the definitions with some fields replaced; all else stays."""
    return copy_record(definitions, **fields)


_HasResources = TypeVar("_HasResources", AssetsDefinition, JobDefinition)


def replace_resources(
    definition: _HasResources, resource_defs: Mapping[str, ResourceDefinition]
) -> _HasResources:
    """Return an asset or a job with other resources of its own."""
    if isinstance(definition, JobDefinition):
        return definition.with_top_level_resources(resource_defs)
    attributes = {**definition.get_attributes_dict(), "resource_defs": resource_defs}
    return type(definition).dagster_internal_init(**attributes)


def keys_in_project(repository: RepositoryDefinition, selection: AssetSelection) -> list[AssetKey]:
    """Return the assets of a project that a selection means, sorted."""
    return sorted(selection.resolve(repository.asset_graph))


def keys_named_by(selection: AssetSelection) -> tuple[AssetKey, ...] | None:
    """Return the keys of a selection that names its assets one by one; None for one that takes a graph."""
    return tuple(selection.selected_keys) if isinstance(selection, KeysAssetSelection) else None


def metadata_in_project(repository: RepositoryDefinition, key: AssetKey) -> Mapping[str, Any]:
    """Return the metadata of an asset's definition; empty for an asset that the project does not have."""
    graph = repository.asset_graph
    return graph.get(key).metadata if graph.has(key) else {}


def group_in_project(repository: RepositoryDefinition, key: AssetKey) -> str | None:
    """Return the group of an asset; None for an asset that the project does not have."""
    graph = repository.asset_graph
    return graph.get(key).group_name if graph.has(key) else None


def metadata_in_step(step: StepContext, key: AssetKey) -> Mapping[str, Any]:
    """Return the metadata of the definition of an asset that the step makes."""
    metadata: Mapping[str, Any] = step.job_def.asset_layer.get(key).metadata
    return metadata


def metadata_of_checked(context: AssetCheckExecutionContext, key: AssetKey) -> Mapping[str, Any]:
    """Return the metadata of the definition of the asset that a check is of; empty when it is not at hand."""
    layer = context.job_def.asset_layer
    return layer.get(key).metadata if layer.has(key) else {}


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
