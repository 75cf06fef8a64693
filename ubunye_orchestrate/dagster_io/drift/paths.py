"""Where the changes that a look found entered: the recorded producers, followed in the event log alone.

The materializations that a look has read already hold most of the path, since an asset's baseline was made
with the baselines of what it reads. What is missing is read for all reports together, level by level, so
that the number of queries follows the depth of the graph and never its width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ubunye_orchestrate.compare.path import follow, path_in_words
from ubunye_orchestrate.dagster_io.drift.judging import DriftReport
from ubunye_orchestrate.dagster_io.drift.seen import Seen
from ubunye_orchestrate.records.model import Producer, RunRecord

__all__ = ["with_paths"]

# Levels of the graph that are read beyond what is known; past this a path is said to be not known.
_MAX_QUERIES = 8
# A change of everything has as many paths as assets: past this, only what did not pass gets its path.
_MAX_PATHS = 100


def with_paths(reports: Sequence[DriftReport], seen: Seen) -> list[DriftReport]:
    """Return the reports, those of changed data with the path of the change in words.

    What is missing on the paths is read into ``seen``.
    """
    changed = [one for one in reports if _data_changed(one)]
    if len(changed) > _MAX_PATHS:
        changed = [one for one in changed if not one.passed]
    wanted = {one.storage_id for one in changed[:_MAX_PATHS]}
    words: dict[int, str] = {}
    for _ in range(_MAX_QUERIES + 1):
        links = _Links(seen)
        words = {one.storage_id: _path(one, links) for one in reports if one.storage_id in wanted}
        if not seen.read(links.asked):
            break
    return [replace(one, path=words.get(one.storage_id)) for one in reports]


def _data_changed(report: DriftReport) -> bool:
    return report.baseline is not None and any(f.kind == "data_changed" for f in report.verdict.findings)


def _path(report: DriftReport, links: _Links) -> str:
    assert report.baseline is not None, "data changed against something"
    return path_in_words(follow(report.baseline, report.record, links.load, report.policy))


class _Links:
    """The producers' receipts, as far as they were seen, and which were asked for."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self.asked: set[int] = set()

    def load(self, name: str, producer: Producer) -> RunRecord | None:
        if producer.storage_id is not None:
            self.asked.add(producer.storage_id)
        return self._seen.readable(producer.storage_id)
