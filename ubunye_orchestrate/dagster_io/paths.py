"""Where the changes that a look found entered: the recorded producers, followed in the event log alone.

The materializations that a look has read already hold most of the path, since an asset's baseline was made
with the baselines of what it reads. What is missing is read for all reports together, level by level, so
that the number of queries follows the depth of the graph and never its width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dagster import DagsterInstance, EventLogRecord

from ubunye_orchestrate.compare.path import follow, path_in_words
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.judging import DriftReport
from ubunye_orchestrate.dagster_io.metadata import receipt_of_event
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.records.model import Producer, RunRecord

__all__ = ["with_paths"]

# Levels of the graph that are read beyond what is known; past this a path is said to be not known.
_MAX_QUERIES = 8
# A change of everything has as many paths as assets: past this, only what did not pass gets its path.
_MAX_PATHS = 100


def with_paths(
    instance: DagsterInstance, reports: Sequence[DriftReport], known: Mapping[int, EventLogRecord]
) -> list[DriftReport]:
    """Return the reports, those of changed data with the path of the change in words.

    ``known`` are materializations by storage id that were read before.
    """
    changed = [one for one in reports if _data_changed(one)]
    if len(changed) > _MAX_PATHS:
        changed = [one for one in changed if not one.passed]
    wanted = {one.storage_id for one in changed[:_MAX_PATHS]}
    records = _Records(known)
    words: dict[int, str] = {}
    for _ in range(_MAX_QUERIES + 1):
        words = {one.storage_id: _path(one, records) for one in reports if one.storage_id in wanted}
        missing = records.missing()
        if not missing:
            break
        records.add(missing, upstream.materializations_by_id(instance, missing))
    return [replace(one, path=words.get(one.storage_id)) for one in reports]


def _data_changed(report: DriftReport) -> bool:
    return report.baseline is not None and any(f.kind == "data_changed" for f in report.verdict.findings)


def _path(report: DriftReport, records: _Records) -> str:
    assert report.baseline is not None, "data changed against something"
    return path_in_words(follow(report.baseline, report.record, records.load, report.policy))


class _Records:
    """Receipts by storage id, each decoded once, and which of them were asked for in vain."""

    def __init__(self, known: Mapping[int, EventLogRecord]) -> None:
        self._events = dict(known)
        self._records: dict[int, RunRecord | None] = {}
        self._gone: set[int] = set()
        self._asked: set[int] = set()

    def load(self, name: str, producer: Producer) -> RunRecord | None:
        storage_id = producer.storage_id
        if storage_id is None:
            return None
        event = self._events.get(storage_id)
        if event is None:
            self._asked.add(storage_id)
            return None
        if storage_id not in self._records:
            self._records[storage_id] = _readable(event)
        return self._records[storage_id]

    def missing(self) -> set[int]:
        """Return what was asked for and not looked up yet."""
        return self._asked - self._events.keys() - self._gone

    def add(self, asked: set[int], found: Mapping[int, EventLogRecord]) -> None:
        """Take what a query found of what was asked for."""
        self._events.update(found)
        self._gone |= asked - found.keys()


def _readable(event: EventLogRecord) -> RunRecord | None:
    try:
        return receipt_of_event(event)
    except InvalidRecordError:
        return None
