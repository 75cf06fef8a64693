"""What people call the subject of a record: the asset by its key, with the partitions of the run."""

from __future__ import annotations

from collections.abc import Sequence

from ubunye_orchestrate.records.model import RunRecord

__all__ = ["asset_name", "keys_in_order", "name_with_partitions", "named"]


def asset_name(record: RunRecord) -> str | None:
    """Return the asset key's parts joined with ``/``; None for a record that is of no asset."""
    key = (record.dagster or {}).get("asset_key")
    return "/".join(str(part) for part in key) if isinstance(key, list) else None


def keys_in_order(record: RunRecord) -> list[str]:
    """Return the record's partition keys in their recorded order."""
    keys = (record.dagster or {}).get("partition_keys")
    return [str(key) for key in keys] if isinstance(keys, list | tuple) else []


def name_with_partitions(name: str, keys: Sequence[str]) -> str:
    """Return ``name``, ``name[key]`` or ``name[first..last]``."""
    if not keys:
        return name
    return f"{name}[{keys[0] if len(keys) == 1 else f'{keys[0]}..{keys[-1]}'}]"


def named(record: RunRecord, otherwise: str) -> str:
    """Return the asset's name (``otherwise`` for a record of no asset) with the run's partitions."""
    return name_with_partitions(asset_name(record) or otherwise, keys_in_order(record))
