"""Which task and which run a command is about: names, an asset key, or only what is left to choose from."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ubunye_orchestrate.cli.output import Invalid
from ubunye_orchestrate.compare.comparison import partition_keys
from ubunye_orchestrate.compare.text import printable, short_run_id
from ubunye_orchestrate.errors import ConfigurationError, RecordNotFoundError
from ubunye_orchestrate.records.masking import mask_location
from ubunye_orchestrate.records.model import RunRecord
from ubunye_orchestrate.records.paths import task_name_for_asset
from ubunye_orchestrate.records.settings import resolve_settings
from ubunye_orchestrate.records.store import RecordStore

__all__ = ["Mirror", "Task", "asset_key_parts"]

_NAMED = 10
"""Candidates that a message names before it only counts."""

_LOOK_BACK = 200
"""Records among which the one before another is looked for, so that a long history is not read whole."""


@dataclass(frozen=True)
class Task:
    """The runs of one task, of one partition where it was asked for."""

    store: RecordStore
    usecase: str
    package: str
    name: str
    partition: str | None
    on_invalid: Invalid

    @property
    def path(self) -> str:
        """``usecase/package/task``, printable."""
        return printable(f"{self.usecase}/{self.package}/{self.name}")

    def runs(self) -> Iterator[RunRecord]:
        """Yield the records, newest first, each read when it is asked for."""
        for record in self.store.iter_runs(self.usecase, self.package, self.name, self.on_invalid):
            if self.partition is None or self.partition in partition_keys(record):
                yield record

    def run(self, text: str | None) -> RunRecord:
        """Return the run that is meant: ``latest`` (or nothing), ``previous``, a run id or its beginning.

        Raises RecordNotFoundError when there is none, ConfigurationError when several begin so, and
        InvalidRecordError when the file of exactly this run cannot be read.
        """
        if text in (None, "", "latest"):
            return self._first(self.runs(), "a run")
        if text == "previous":
            return self.before(self.run("latest"))
        try:
            return self.store.load(self.usecase, self.package, self.name, text)
        except RecordNotFoundError:
            found = [record for record in self.runs() if record.run_id.startswith(text)]
        if len(found) == 1:
            return found[0]
        if found:
            candidates = _named([short_run_id(r.run_id) if len(text) < 8 else r.run_id for r in found])
            raise ConfigurationError(
                f"run id {text!r} is the beginning of {len(found)} runs of {self.path}: {candidates}; "
                "give more of it, or --partition"
            )
        return self._first(iter(()), f"run {text!r}")

    def newest_two(self) -> tuple[RunRecord, RunRecord]:
        """Return the newest run and the one before it, the earlier one first."""
        later = self.run("latest")
        earlier = self.before(later)
        # Runs are listed by their files' times, which a copy of the mirror may have lost.
        if (earlier.started_at or "") > (later.started_at or ""):
            return later, earlier
        return earlier, later

    def before(self, record: RunRecord) -> RunRecord:
        """Return the run before ``record``: the nearest of its partition and profile, else of its partition,
        else the nearest of all.
        """
        runs = itertools.dropwhile(lambda run: run.run_id != record.run_id, self.runs())
        earlier = list(itertools.islice(runs, 1, 2))
        if earlier and not _alike(earlier[0], record):
            # Only then is more than one record read.
            earlier += itertools.islice(runs, _LOOK_BACK)
        for fits in (_alike, _same_partitions):
            for run in earlier:
                if fits(run, record):
                    return run
        return self._first(iter(earlier), f"a run before {short_run_id(record.run_id)}")

    def _first(self, runs: Iterator[RunRecord], what: str) -> RunRecord:
        record = next(runs, None)
        if record is not None:
            return record
        there = [short_run_id(run.run_id) for run in itertools.islice(self.runs(), _NAMED)]
        of = f"{self.path}{'' if self.partition is None else f', partition {self.partition!r}'}"
        if there:
            raise RecordNotFoundError(f"no record of {what} of {of}; expected one of {', '.join(there)}")
        if self.on_invalid.first is not None:
            raise self.on_invalid.first
        raise RecordNotFoundError(
            f"no record of {what} of {of}; expected files in the mirror's folder of that name; "
            "check -u, -p and -t (or --asset), or look with `lineage search`"
        )


@dataclass(frozen=True)
class Mirror:
    """A store of records, and how messages name it."""

    store: RecordStore
    shown: str
    on_invalid: Invalid

    @classmethod
    def open(cls, root: str, lineage_dir: str) -> Mirror:
        """Open the mirror below a folder or fsspec URL; nothing is read yet.

        Raises ConfigurationError for a root that cannot be one.
        """
        root = resolve_settings(root).root
        shown = mask_location(root)
        shown += f"{'' if shown.endswith('/') else '/'}{lineage_dir}"
        return cls(RecordStore(root, lineage_dir), printable(shown), Invalid())

    def require_records(self) -> None:
        """Raise RecordNotFoundError when the mirror holds no task at all."""
        if next(self.store.tasks(on_invalid=self.on_invalid), None) is None:
            raise RecordNotFoundError(
                f"no records in {self.shown}; expected <usecase>/<package>/<task>/<run_id>.json below it; "
                "run something that leaves records, or give its root with -d"
            )

    def task(
        self,
        usecase: str | None,
        package: str | None,
        task: str | None,
        asset: str | None,
        partition: str | None = None,
    ) -> Task:
        """Return the one task that is meant; names may be left out where only one is there.

        Raises RecordNotFoundError when none fits and ConfigurationError when several do.
        """
        task = _task_name(task, asset)
        if usecase is not None and package is not None and task is not None:
            return Task(self.store, usecase, package, task, partition, self.on_invalid)
        found = list(self.store.tasks(usecase, package, task, self.on_invalid))
        if len(found) == 1:
            return Task(self.store, *found[0], partition, self.on_invalid)
        paths = ["/".join(names) for names in found]
        if found:
            raise ConfigurationError(
                f"{len(found)} tasks fit: {_named(paths)}; expected one; "
                "choose with -u, -p and -t, or --asset"
            )
        self.require_records()
        there = ["/".join(names) for names in self.store.tasks(on_invalid=self.on_invalid)]
        wanted = "/".join(name or "*" for name in (usecase, package, task))
        raise RecordNotFoundError(f"no task {wanted!r} in {self.shown}; there is {_named(there)}")

    def search(
        self,
        usecase: str | None,
        package: str | None,
        task: str | None,
        asset: str | None,
        partition: str | None,
        status: str | None,
        since: str | None,
    ) -> Iterator[RunRecord]:
        """Yield the records of all tasks that fit. Raises ConfigurationError for a time that is none."""
        name = _task_name(task, asset)
        found = self.store.search(
            usecase, package, name, status=status, since=since, on_invalid=self.on_invalid
        )
        return (run for run in found if partition is None or partition in partition_keys(run))


def _task_name(task: str | None, asset: str | None) -> str | None:
    if asset is None:
        return task
    if task is not None:
        raise ConfigurationError("both --task and --asset were given; expected one of the two")
    return task_name_for_asset(asset_key_parts(asset))


def asset_key_parts(text: str) -> list[str]:
    r"""Split an asset key at its slashes, ``raw/flights``; ``\/`` is a slash within a part."""
    return [part.replace("\\/", "/") for part in re.split(r"(?<!\\)/", text.strip("/"))]


def _alike(run: RunRecord, other: RunRecord) -> bool:
    return _same_partitions(run, other) and run.profile == other.profile


def _same_partitions(run: RunRecord, other: RunRecord) -> bool:
    return partition_keys(run) == partition_keys(other)


def _named(names: list[str]) -> str:
    shown = ", ".join(printable(name) for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown
