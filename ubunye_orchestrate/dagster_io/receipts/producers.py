"""The materializations that an input was read from."""

from __future__ import annotations

from collections.abc import Sequence

from dagster import (
    AssetKey,
    AssetRecordsFilter,
    DagsterInstance,
    InputContext,
    OutputContext,
    StaticPartitionsDefinition,
    TimeWindowPartitionsDefinition,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.records.model import Producer

__all__ = ["asset_name", "ordered_partitions", "producers_of"]


def asset_name(key: AssetKey) -> str:
    """Return the asset's name in a record: its key's parts joined with ``/``."""
    return "/".join(key.path)


def ordered_partitions(context: InputContext | OutputContext) -> tuple[str, ...]:
    """Return the partitions that are read or written, in the order of their definition; empty for none.

    Dagster hands them over as a set. An input may take any of an asset's partitions: sorted by name.
    """
    if not context.has_asset_key or not context.has_asset_partitions:
        return ()
    keys = list(context.asset_partition_keys)
    if len(keys) > 1 and isinstance(context, OutputContext):
        definition = context.asset_partitions_def
        # The keys of the other kinds may need a store to be listed, and have no order of their own.
        if isinstance(definition, StaticPartitionsDefinition | TimeWindowPartitionsDefinition):
            defined = definition.get_partition_keys_in_range(context.asset_partition_key_range)
            if set(defined) == set(keys):
                return tuple(defined)
    return tuple(sorted(str(key) for key in keys))


def producers_of(
    instance: DagsterInstance,
    key: AssetKey,
    partitions: Sequence[str],
    *,
    partitioned: bool,
    just_begun: upstream.StepContext | None = None,
) -> list[Producer] | None:
    """Return the newest materialization of the asset, or of each partition; None where there never was one.

    ``just_begun`` is the step that reads it, if it has only just begun: then Dagster knows the newest one.
    Else one query; two, however many partitions. A partition without a materialization (files that were there
    before Dagster) is listed without one.
    """
    if not partitioned and just_begun is not None:
        known = upstream.materialization_at_start(just_begun, key)
        if known is not None:
            return [Producer(storage_id=known[0], run_id=known[1])]
    if not partitioned:
        events = instance.fetch_materializations(AssetRecordsFilter(asset_key=key), limit=1).records
        return [Producer(storage_id=e.storage_id, run_id=e.run_id) for e in events] or None
    ids = upstream.latest_materialization_ids(instance, key, partitions)
    made = upstream.materializations_by_id(instance, ids.values())
    runs = {partition: made[i].run_id for partition, i in ids.items() if i in made}
    return [Producer(partition=p, storage_id=ids.get(p), run_id=runs.get(p)) for p in partitions]
