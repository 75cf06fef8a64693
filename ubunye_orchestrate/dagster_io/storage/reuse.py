"""An input's hash taken from its producer's receipt, where the storage still holds what that one stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from dagster import DagsterInstance

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.baseline import receipt_of_event
from ubunye_orchestrate.dagster_io.receipts.rebuilding import fingerprint_of
from ubunye_orchestrate.dagster_io.receipts.values import combined
from ubunye_orchestrate.dagster_io.receipts.writer import OpenInput
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.records.model import StepRecord

__all__ = ["Reused", "reusable_hash"]


class Reused(NamedTuple):
    """A hash that need not be made again."""

    fingerprint: Fingerprint
    run_ids: str
    """The runs of the receipts that it is from."""
    version: dict[str, Any]
    """Of the store, before it was read."""


def reusable_hash(
    instance: DagsterInstance,
    begun: OpenInput,
    partitions: Iterable[str | None],
    holds: Callable[[str | None, StepRecord], bool],
    version: Callable[[], dict[str, Any]],
) -> Reused | None:
    """Return the hash of an input if the store holds, for every partition, what a receipt says was stored.

    ``holds`` tells that, from the receipt's output; ``version`` gives the store's state as a whole. One
    query, and none of the rows is read. None where a single partition has no such receipt.
    """
    producers = {producer.partition: producer for producer in begun.producer or ()}
    ids = [one.storage_id for one in producers.values() if one.storage_id is not None]
    events = upstream.materializations_by_id(instance, ids)
    prints: dict[str, Fingerprint] = {}
    runs: dict[str, None] = {}
    for partition in partitions:
        producer = producers.get(partition)
        event = None if producer is None else events.get(producer.storage_id or 0)
        record = None if event is None else receipt_of_event(event)
        if record is None or len(record.outputs) != 1 or not holds(partition, record.outputs[0]):
            return None
        prints[partition or ""] = fingerprint_of(record.outputs[0])
        runs[record.run_id] = None
    whole = combined(prints)
    if whole.data_hash is None:
        return None
    return Reused(replace(whole, seconds=0.0), ", ".join(runs), version())
