"""What a look at the event log has read: materializations by storage id, each receipt decoded once."""

from __future__ import annotations

from collections.abc import Iterable

from dagster import DagsterInstance

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.completing import completed
from ubunye_orchestrate.dagster_io.receipts.metadata import receipt_of_event
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["Seen"]


class Seen:
    """Materializations by storage id, as far as they were read and are still in the event log."""

    def __init__(self, instance: DagsterInstance, events: Iterable[upstream.AssetEvent] = ()) -> None:
        self._instance = instance
        self._events: dict[int, upstream.AssetEvent] = {}
        self._receipts: dict[int, RunRecord | InvalidRecordError | None] = {}
        self._gone: set[int] = set()
        self.add(events)

    def add(self, events: Iterable[upstream.AssetEvent]) -> None:
        """Take materializations that were read otherwise."""
        self._events.update((event.storage_id, event) for event in events)

    def read(self, storage_ids: Iterable[int]) -> bool:
        """Read those that were not read before, all with one query; tell whether there were any."""
        wanted = set(storage_ids) - self._events.keys() - self._gone
        if not wanted:
            return False
        found = upstream.materializations_by_id(self._instance, wanted)
        self._events.update(found)
        self._gone |= wanted - found.keys()
        return True

    def event(self, storage_id: int | None) -> upstream.AssetEvent | None:
        """Return a materialization; None for one that is gone or was not read."""
        return None if storage_id is None else self._events.get(storage_id)

    def receipt(self, storage_id: int | None) -> RunRecord | None:
        """Return a materialization's receipt; None without one, and for a materialization that is gone.

        Raises InvalidRecordError for one that cannot be read.
        """
        event = self.event(storage_id)
        if event is None:
            return None
        if event.storage_id not in self._receipts:
            try:
                receipt = receipt_of_event(event)
                self._receipts[event.storage_id] = None if receipt is None else completed(receipt)
            except InvalidRecordError as e:
                self._receipts[event.storage_id] = e
        found = self._receipts[event.storage_id]
        if isinstance(found, InvalidRecordError):
            raise found
        return found

    def readable(self, storage_id: int | None) -> RunRecord | None:
        """Return the same, and None for a receipt that cannot be read."""
        try:
            return self.receipt(storage_id)
        except InvalidRecordError:
            return None
