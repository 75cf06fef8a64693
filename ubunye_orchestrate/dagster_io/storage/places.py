"""Where an IO manager of this package puts a table: names of folders and files, from the asset's key."""

from __future__ import annotations

from dagster import InputContext, MultiPartitionKey, OutputContext

from ubunye_orchestrate.records.paths import safe_part

__all__ = ["partition_parts", "table_parts"]


def table_parts(context: InputContext | OutputContext) -> list[str]:
    """Return the names of a table's folders below the base and of the table, each safe as a file name.

    The parts of the asset's key, or what identifies the output of an op.
    """
    path = context.asset_key.path if context.has_asset_key else context.get_identifier()
    return [safe_part(part) for part in path]


def partition_parts(key: str) -> list[str]:
    """Return the names of a partition below its table: one, or one for each dimension by their names."""
    parts = [key]
    if isinstance(key, MultiPartitionKey):
        parts = [value for _, value in sorted(key.keys_by_dimension.items())]
    return [safe_part(part) for part in parts]
