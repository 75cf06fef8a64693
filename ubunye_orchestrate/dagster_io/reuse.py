"""An input's hash taken from its producer's receipt, where the storage still holds what that one stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from dagster import DagsterInstance
from upath import UPath

from ubunye_orchestrate.dagster_io import parquet, upstream
from ubunye_orchestrate.dagster_io.baseline import receipt_of_event
from ubunye_orchestrate.dagster_io.rebuilding import fingerprint_of
from ubunye_orchestrate.dagster_io.values import combined
from ubunye_orchestrate.dagster_io.writer import OpenInput
from ubunye_orchestrate.hashing.fingerprint import Fingerprint

__all__ = ["Reused", "reusable_hash"]


class Reused(NamedTuple):
    """A hash that need not be made again."""

    fingerprint: Fingerprint
    run_ids: str
    """The runs of the receipts that it is from."""
    version: dict[str, Any]
    """Of the files, before they were read."""


def reusable_hash(
    instance: DagsterInstance, begun: OpenInput, paths: Mapping[str | None, UPath]
) -> Reused | None:
    """Return the hash of an input if every file is, by name, size and time, the one that a receipt names.

    One query, and none of the rows is read. None where a single partition has no such receipt.
    """
    producers = {producer.partition: producer for producer in begun.producer or ()}
    ids = [one.storage_id for one in producers.values() if one.storage_id is not None]
    events = upstream.materializations_by_id(instance, ids)
    prints: dict[str, Fingerprint] = {}
    runs: dict[str, None] = {}
    for partition, path in paths.items():
        producer = producers.get(partition)
        event = None if producer is None else events.get(producer.storage_id or 0)
        record = None if event is None else receipt_of_event(event)
        if record is None or len(record.outputs) != 1:
            return None
        stored = record.outputs[0]
        version = stored.source_version or {}
        if version.get("kind") != "files" or version != parquet.files_version([path]):
            return None
        prints[partition or ""] = fingerprint_of(stored)
        runs[record.run_id] = None
    whole = combined(prints)
    if whole.data_hash is None:
        return None
    return Reused(replace(whole, seconds=0.0), ", ".join(runs), parquet.files_version(paths.values()))
