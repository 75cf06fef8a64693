"""Partitions in a running step: those that it makes, those that it reads, and how one of them is loaded."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from dagster import (
    AssetKey,
    DagsterInstance,
    InputContext,
    PartitionKeyRange,
    PartitionsDefinition,
    build_input_context,
    build_output_context,
)
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.types.dagster_type import resolve_dagster_type

from ubunye_orchestrate.dagster_io.upstream.steps import StepContext

__all__ = [
    "context_to_load",
    "partitions_from",
    "partitions_in_step",
    "partitions_made",
    "partitions_read_of",
]


def partitions_made(step: StepContext, key: AssetKey) -> tuple[PartitionsDefinition | None, tuple[str, ...]]:
    """Return the partitioning of an asset that the step makes, and which ones it makes; (None, ()) without.

    Of the assets of a step some may have partitions and others not.
    """
    definition = partitions_in_step(step, key)
    if definition is None or not (step.has_partition_key or step.has_partition_key_range):
        return None, ()
    with partitions_from(step.instance):
        keys = definition.get_partition_keys_in_range(step.partition_key_range)
    return definition, tuple(str(key) for key in keys)


def partitions_in_step(step: StepContext, key: AssetKey) -> PartitionsDefinition | None:
    """Return the partitioning of any asset that the step's job knows."""
    layer = step.job_def.asset_layer
    return layer.get(key).partitions_def if layer.has(key) else None


def partitions_read_of(step: StepContext, key: AssetKey) -> tuple[str, ...] | None:
    """Return the partitions of an asset that the step reads, by the mapping of that dependency.

    None for an asset that the step does not depend on, or that has no partitions.
    """
    layer = step.job_def.asset_layer
    for name in filter(step.has_asset_partitions_for_input, step.op_def.ins):
        if layer.get_asset_key_for_node_input(step.node_handle, name) == key:
            read = step.asset_partitions_subset_for_input(name, require_valid_partitions=False)
            with partitions_from(step.instance):
                return tuple(sorted(str(one) for one in read.get_partition_keys()))
    return None


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
