"""A project as it is loaded: its assets, jobs and resources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from dagster import (
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    Definitions,
    InMemoryIOManager,
    IOManager,
    IOManagerDefinition,
    JobDefinition,
    OpDefinition,
    RepositoryDefinition,
    ResourceDefinition,
    SourceAsset,
)
from dagster._core.definitions.asset_selection import KeysAssetSelection
from dagster._core.definitions.assets.definition.cacheable_assets_definition import (
    CacheableAssetsDefinition,
)
from dagster._core.definitions.job_definition import default_job_io_manager
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.storage.fs_io_manager import PickledObjectFilesystemIOManager
from dagster_shared.record import copy as copy_record

__all__ = [
    "Job",
    "LegacyAssets",
    "default_io_manager",
    "function_of",
    "group_in_project",
    "keeps_values_whole",
    "keys_in_project",
    "keys_named_by",
    "may_store_by_itself",
    "metadata_in_project",
    "names_of_inputs",
    "ops_of",
    "own_resources",
    "replace_definitions",
    "replace_resources",
    "rules_function_of",
]


Job: TypeAlias = JobDefinition | UnresolvedAssetJobDefinition
"""A job in both forms in which a user has one; the second is what ``define_asset_job`` returns."""

LegacyAssets: TypeAlias = CacheableAssetsDefinition
"""Assets that are known only when a project is loaded. Superseded; loaders of assets still name it."""


def function_of(asset: AssetsDefinition) -> Callable[..., Any] | None:
    """Return the user's function that an asset is made of; None for a graph, or without a decorator."""
    node = asset.node_def if asset.is_executable else None
    function = getattr(getattr(node, "compute_fn", None), "decorated_fn", None)
    return cast("Callable[..., Any]", function) if callable(function) else None


def ops_of(definition: AssetsDefinition | JobDefinition) -> Sequence[OpDefinition]:
    """Return the ops that an asset or a job is made of, those in graphs too.

    None for what does not run, and for a job of assets, whose ops are those of its assets.
    """
    if isinstance(definition, JobDefinition):
        return [] if definition.is_asset_job else list(definition.graph.iterate_op_defs())
    return list(definition.node_def.iterate_op_defs()) if definition.is_executable else []


def rules_function_of(op: OpDefinition) -> Callable[..., Any] | None:
    """Return the user's function behind an op; None for one made without a decorator."""
    function = getattr(op.compute_fn, "decorated_fn", None)
    return cast("Callable[..., Any]", function) if callable(function) else None


def names_of_inputs(definition: AssetsDefinition | OpDefinition) -> frozenset[str]:
    """Return all names by which an input can be called: those of parameters, and those of assets.

    What an asset depends on without loading it counts too, and what an op in its graph reads.
    """
    if isinstance(definition, OpDefinition):
        keys = [one.hardcoded_asset_key for one in definition.input_defs]
        return frozenset(
            [*(one.name for one in definition.input_defs), *("/".join(key.path) for key in keys if key)]
        )
    names = [one.name for one in definition.node_def.input_defs]
    names += [name for op in ops_of(definition) for name in names_of_inputs(op)]
    names += ["/".join(key.path) for key in definition.keys_by_input_name.values()]
    names += ["/".join(dep.asset_key.path) for spec in definition.specs for dep in spec.deps]
    return frozenset(names)


def may_store_by_itself(definition: AssetsDefinition, keys: Collection[str] | None) -> bool:
    """Tell whether an asset may read and store without an IO manager, using one of these resources.

    With ``keys`` None any resource may be the one.
    """
    for op in ops_of(definition):
        asked = set(op.required_resource_keys)
        function = rules_function_of(op)
        returned = "" if function is None else str(getattr(function, "__annotations__", {}).get("return"))
        if asked if keys is None else asked & set(keys):
            return True
        nothing = all(one.dagster_type.is_nothing for one in op.output_defs)
        if (nothing and op.output_defs) or "MaterializeResult" in returned:
            return True
    return False


def default_io_manager() -> IOManagerDefinition:
    """Return the IO manager that Dagster takes where none is given, by ``DAGSTER_DEFAULT_IO_MANAGER_…``."""
    return default_job_io_manager


def keeps_values_whole(manager: IOManager) -> bool:
    """Tell Dagster's own IO managers that give back exactly what they were given, and all of it.

    Not a class that is made of one: it may store what it likes.
    """
    return type(manager) in (InMemoryIOManager, PickledObjectFilesystemIOManager)


def replace_definitions(definitions: Definitions, **fields: Any) -> Definitions:
    """Return the definitions with some fields replaced; all else stays."""
    return copy_record(definitions, **fields)


def own_resources(
    definition: AssetsDefinition | SourceAsset | JobDefinition,
) -> Mapping[str, ResourceDefinition]:
    """Return the resources that an asset or a job brings along itself, which win over the project's.

    A job lists the IO manager that Dagster takes where none is given, too. It is left out: it is not the
    job's own, and yields to the project's.
    """
    own = dict(definition.resource_defs)
    if isinstance(definition, JobDefinition):
        return {name: one for name, one in own.items() if one is not default_job_io_manager}
    return own


_HasResources = TypeVar("_HasResources", AssetsDefinition, SourceAsset, JobDefinition)


def replace_resources(
    definition: _HasResources, resource_defs: Mapping[str, ResourceDefinition]
) -> _HasResources:
    """Return an asset or a job with other resources of its own."""
    if isinstance(definition, JobDefinition):
        return definition.with_top_level_resources(resource_defs)
    if isinstance(definition, SourceAsset):
        source = definition.with_attributes()
        source.resource_defs = dict(resource_defs)
        return source
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
