"""What a running step knows: its context, its assets, the partitions that it makes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, cast

from dagster import (
    AssetCheckExecutionContext,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    DagsterEventType,
    DagsterInstance,
    DagsterInvariantViolationError,
    InputContext,
    OpExecutionContext,
    Output,
    OutputContext,
)
from dagster._core.definitions.utils import NoValueSentinel
from dagster._core.errors import DagsterInvalidPropertyError
from dagster._core.execution.context.system import StepExecutionContext
from dagster._core.execution.plan import execute_step
from dagster._core.execution.plan.handle import ResolvedFromDynamicStepHandle, StepHandle

__all__ = [
    "AssetOfStep",
    "GraphOfAsset",
    "StepContext",
    "add_asset_metadata",
    "asset_groups",
    "asset_metadata_given",
    "assets_definition_of",
    "assets_of_step",
    "attempt_of",
    "compute_function",
    "graphs_of_step",
    "instance_of",
    "is_stored_by_itself",
    "is_yielded",
    "makes_checks_only",
    "mapping_of",
    "materialization_at_start",
    "metadata_in_step",
    "metadata_of_checked",
    "node_of",
    "node_of_step_key",
    "op_config",
    "output_of_asset",
    "put_asset_metadata",
    "step_being_logged",
    "step_context",
    "step_key",
    "step_of",
    "step_of_check",
    "step_outputs",
]


StepContext = Any
"""Dagster's ``StepExecutionContext``, which it does not export."""


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


@dataclass(frozen=True)
class GraphOfAsset:
    """The graph that makes an asset, of which a step runs one op."""

    function: Callable[..., Any] | None
    """The function that composes it; None for one that is put together by hand."""
    configs: Mapping[str, Any]
    """The run's config of each op that the asset is made by, by the path of its node."""
    reads: frozenset[AssetKey]
    """The assets that these ops read: fewer than Dagster declares where a graph makes several assets."""


def step_context(context: InputContext | OutputContext) -> StepContext | None:
    """Return the context of the running step; None outside of one (a test's bare context, a load by hand)."""
    try:
        return context.step_context
    except DagsterInvariantViolationError:
        return None


def instance_of(context: OutputContext) -> DagsterInstance:
    """Return the instance of the run that stores an output (an input's context has it publicly)."""
    return context.step_context.instance


def step_of(context: AssetExecutionContext | OpExecutionContext) -> StepContext | None:
    """Return the context of the step that an asset's or an op's own context belongs to.

    None where the asset is called directly, as tests do (``build_asset_context``).
    """
    try:
        return context.get_step_execution_context()
    except DagsterInvalidPropertyError:
        return None


def step_being_logged() -> StepContext | None:
    """Return the context of the step whose event this thread is just logging; None where there is none.

    For a listener of events: it is told what happened in a step, but not of which function and with which
    configuration. Dagster makes the event from the step's context, which is found among those who called.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        step = frame.f_locals.get("step_context")
        if isinstance(step, StepExecutionContext):
            return step
        frame = frame.f_back
    return None


def makes_checks_only(step: StepContext) -> bool:
    """Tell whether a step runs asset checks and makes nothing itself."""
    return step.assets_def is not None and not step.assets_def.keys


def output_of_asset(step: StepContext, key: AssetKey) -> str | None:
    """Return the name of the step's output that an asset is; None where the step does not make it."""
    key_of = step.job_def.asset_layer.get_asset_key_for_node_output
    return next((name for name in step_outputs(step) if key_of(step.node_handle, name) == key), None)


def is_stored_by_itself(step: StepContext, output: str) -> bool:
    """Tell, while the event of an output is logged, whether Dagster will call no IO manager for it.

    It calls none for an output that is declared empty, nor for the result without a value of an asset that
    declares no type.
    """
    kind = step.op_def.output_def_named(output).dagster_type
    if kind.is_nothing or not kind.is_any:
        return bool(kind.is_nothing)
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        given = frame.f_locals.get("output")
        if isinstance(given, Output):
            return isinstance(given, execute_step.AssetResultOutput) and given.value is NoValueSentinel
        frame = frame.f_back
    return False


def is_yielded(step: StepContext, key: AssetKey) -> bool:
    """Tell whether the step has given the result of an asset to Dagster already."""
    output = output_of_asset(step, key)
    return output is not None and step.has_seen_output(output)


def step_of_check(context: AssetCheckExecutionContext) -> StepContext:
    """Return the context of the step that runs a check."""
    return context.get_step_execution_context()


def attempt_of(step: StepContext) -> int:
    """Return how often the step was tried before, 0 the first time."""
    return int(step.previous_attempt_count)


def step_key(step: StepContext) -> str:
    """Return the key of the step: the node's path, with the mapping key of a mapped step."""
    return str(step.step.key)


def node_of(step: StepContext) -> str:
    """Return the path of the step's node in its job, without a mapping key."""
    return str(step.node_handle)


def node_of_step_key(step_key: str) -> str:
    """Return the path of the node that a step of this key runs: the key without a mapping key."""
    return str(StepHandle.parse_from_key(step_key).node_handle)


def graphs_of_step(step: StepContext) -> Mapping[AssetKey, GraphOfAsset]:
    """Return the graph behind each asset that the step's graph makes; empty for a step outside of one.

    An op in the middle of a graph makes no asset itself: it is part of all those of its graph.
    """
    if not step.is_in_graph_asset:
        return {}
    definition, layer = step.assets_def, step.job_def.asset_layer
    ops = step.resolved_run_config.ops
    function = getattr(definition.node_def, "composition_fn", None)
    graphs = {}
    for key in definition.keys:
        handles = layer.upstream_dep_op_handles(key)
        read = (
            layer.get_asset_key_for_node_input(handle, name)
            for handle in handles
            for name in step.job_def.get_op(handle).definition.input_dict
        )
        graphs[key] = GraphOfAsset(
            function if callable(function) else None,
            {str(handle): ops[str(handle)].config for handle in handles},
            frozenset(one for one in read if one is not None),
        )
    return graphs


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
    graphs = graphs_of_step(step)
    found = []
    for key in sorted(keys):
        node = layer.get(key)
        read = graphs[key].reads if key in graphs else node.parent_keys
        parents = tuple(
            sorted(parent for parent in node.parent_keys if parent not in keys and parent in read)
        )
        checks = frozenset(check.name for check in node.check_keys)
        found.append(AssetOfStep(key, node.group_name or "default", node.code_version, parents, checks))
    return tuple(found)


def assets_definition_of(step: StepContext) -> AssetsDefinition | None:
    """Return the definition of the assets that a step makes, or is part of; None for an op's."""
    definition = step.assets_def
    return definition if isinstance(definition, AssetsDefinition) else None


def asset_groups(step: StepContext) -> Mapping[AssetKey, str]:
    """Return the group of every asset that the step's job can make."""
    layer = step.job_def.asset_layer
    return {key: layer.get(key).group_name or "default" for key in layer.executable_asset_keys}


def step_outputs(step: StepContext) -> tuple[str, ...]:
    """Return the names of the step's outputs."""
    return tuple(output.name for output in step.step.step_outputs)


def asset_metadata_given(step: StepContext, key: AssetKey, partitions: Sequence[str]) -> dict[str, Any]:
    """Return what a step has said of an asset and of any of these partitions (``add_asset_metadata``)."""
    given: dict[str, Any] = {}
    for partition in (None, *partitions):
        given |= step.get_asset_metadata(key, partition) or {}
    return given


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


def put_asset_metadata(
    step: StepContext, key: AssetKey, partition: str | None, metadata: Mapping[str, Any]
) -> None:
    """Add metadata to the materialization of an asset, or of one partition, over what stands there."""
    step.add_asset_metadata(metadata, asset_key=key, partition_key=partition)


def compute_function(step: StepContext) -> Callable[..., Any] | None:
    """Return the user's function behind the step; None for a step made without a decorator."""
    function = getattr(step.op_def.compute_fn, "decorated_fn", None)
    return cast("Callable[..., Any]", function) if callable(function) else None


def metadata_in_step(step: StepContext, key: AssetKey) -> Mapping[str, Any]:
    """Return the metadata of the definition of an asset that the step makes."""
    metadata: Mapping[str, Any] = step.job_def.asset_layer.get(key).metadata
    return metadata


def metadata_of_checked(context: AssetCheckExecutionContext, key: AssetKey) -> Mapping[str, Any]:
    """Return the metadata of the definition of the asset that a check is of; empty when it is not at hand."""
    layer = context.job_def.asset_layer
    return layer.get(key).metadata if layer.has(key) else {}
