"""Which task and which run a command is about: names, an asset key, or only what is left to choose from."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ubunye_orchestrate.cli.output import Invalid
from ubunye_orchestrate.compare.comparison import partition_keys
from ubunye_orchestrate.compare.text import printable, short_run_id
from ubunye_orchestrate.errors import ConfigurationError, RecordNotFoundError
from ubunye_orchestrate.masking import mask_location
from ubunye_orchestrate.records.baselines import Acceptance, BaselineStore, last_accepted, pinned
from ubunye_orchestrate.records.model import RunRecord
from ubunye_orchestrate.records.paths import may_hold_partition, stored_run_id, task_name_for_asset
from ubunye_orchestrate.records.settings import resolve_settings
from ubunye_orchestrate.records.store import RecordStore, Wanted

__all__ = ["Mirror", "Task", "asset_key_parts", "of_dagster_run", "task_name"]

_NAMED = 10
"""Candidates that a message names before it only counts."""

_LOOK_BACK = 200
"""Records among which the one before another is looked for, so that a long history is not read whole."""

_RELATIVE = ("previous", "baseline", "accepted")


@dataclass(frozen=True)
class Task:
    """The runs of one task, of one partition where it was asked for."""

    store: RecordStore
    baselines: BaselineStore
    usecase: str
    package: str
    name: str
    partition: str | None
    on_invalid: Invalid

    @property
    def path(self) -> str:
        """``usecase/package/task``, printable."""
        return printable("/".join(self.names))

    @property
    def names(self) -> tuple[str, str, str]:
        """Return usecase, package and task."""
        return self.usecase, self.package, self.name

    def runs(self, wanted: Wanted | None = None) -> Iterator[RunRecord]:
        """Yield the records, newest first, each read when it is asked for; ``wanted`` looks at the run id."""

        def may_be(run_id: str) -> bool:
            if self.partition is not None and not may_hold_partition(run_id, self.partition):
                return False
            return wanted is None or wanted(run_id)

        for record in self.store.iter_runs(*self.names, self.on_invalid, may_be):
            if self.partition is None or self.partition in partition_keys(record):
                yield record

    def run(self, text: str | None) -> RunRecord:
        """Return the run that is meant: ``latest`` (or nothing), ``previous``, ``baseline``, ``accepted``, a
        run id, its beginning, or the short form in which it is shown.

        Raises RecordNotFoundError when there is none, ConfigurationError when several begin so, and
        InvalidRecordError when the file of exactly this run cannot be read.
        """
        if text in (None, "", "latest"):
            return self._first(self.runs(), "a run")
        if text in _RELATIVE:
            return self.beside(self.run("latest"), text)
        try:
            return self.store.load(*self.names, text)
        except RecordNotFoundError:
            found = self.beginning(text)
        # As a list shows it: that is the run, and not its retry or a partition whose name is longer.
        as_shown = [run for run in found if short_run_id(run.run_id) == text]
        if len(as_shown) == 1:
            return as_shown[0]
        if len(found) == 1:
            return found[0]
        if found:
            candidates = _named([short_run_id(r.run_id) if len(text) < 8 else r.run_id for r in found])
            raise ConfigurationError(
                f"run id {text!r} is the beginning of {len(found)} runs of {self.path}: {candidates}; "
                "give more of it, or --partition"
            )
        return self._first(iter(()), f"run {text!r}")

    def beginning(self, text: str) -> list[RunRecord]:
        """Return the runs whose id, whole or as it is shown, begins with ``text``, newest first.

        Only their files are read.
        """

        def fits(run_id: str) -> bool:
            return run_id.startswith(text) or short_run_id(run_id).startswith(text)

        found = list(self.runs(fits))
        if found:
            return found
        # A file may have another name than its run id: the newest are looked into, not a whole history.
        newest = itertools.islice(self.runs(), _LOOK_BACK)
        return [record for record in newest if fits(record.run_id)]

    def beside(self, record: RunRecord, word: str) -> RunRecord:
        """Return the run that ``previous``, ``baseline`` or ``accepted`` means from ``record`` on.

        Raises RecordNotFoundError when there is none.
        """
        if word == "previous":
            return self.before(record)
        of = f"of {self.path} for run {short_run_id(record.run_id)}"
        if word == "baseline":
            found = self.baseline(record)
            if found is None:
                raise RecordNotFoundError(
                    f"no baseline {of}: no earlier success of its partition and profile, and none is pinned; "
                    "name a run, or pin one with `lineage accept --pin`"
                )
            return found
        said = last_accepted(self.said, partition_keys(record), record.profile)
        if said is None:
            raise RecordNotFoundError(
                f"no accepted run {of}; expected one of its partition and profile; see `lineage accept`"
            )
        return self._accepted(said)

    def baseline(self, record: RunRecord, *, last_accepted_wanted: bool = False) -> RunRecord | None:
        """Return the run that ``record`` is held against, or None where there is none.

        The one that is pinned for its partition and profile; else, where that is wanted and there is one, the
        last accepted run; else the previous success, as its receipt names it or by order.

        Raises RecordNotFoundError when a run is pinned (or accepted) and its record is not there.
        """
        keys = partition_keys(record)
        said = pinned(self.said, keys, record.profile)
        if said is None and last_accepted_wanted:
            said = last_accepted(self.said, keys, record.profile)
        if said is not None:
            return self._accepted(said)
        dagster = record.dagster or {}
        baselines = dagster.get("baselines")
        named = baselines.get("previous") if isinstance(baselines, dict) else dagster.get("baseline")
        if isinstance(named, dict) and isinstance(named.get("run_id"), str):
            of_run = of_dagster_run(named["run_id"])
            for run in self.runs(of_run):
                if _alike(run, record) and run.status == "success" and run.run_id != record.run_id:
                    return run
        earlier = self._earlier(record, same_partition=True)
        return next((run for run in earlier if _alike(run, record) and run.status == "success"), None)

    @functools.cached_property
    def said(self) -> list[Acceptance]:
        """Return what was accepted and pinned of this task, newest first."""
        return self.baselines.of_task(*self.names, self.on_invalid)

    def pair(self, earlier: str | None, later: str | None) -> tuple[RunRecord, RunRecord]:
        """Return the two runs that are meant; ``previous``, ``baseline`` and ``accepted`` as the earlier one
        are counted from the later one. Without either the newest two.
        """
        if earlier is None and later is None:
            return self.newest_two()
        second = self.run(later)
        if earlier is None:
            return self.before(second), second
        return self.beside(second, earlier) if earlier in _RELATIVE else self.run(earlier), second

    def newest_two(self) -> tuple[RunRecord, RunRecord]:
        """Return the newest run and the one before it, the earlier one first."""
        runs = self.runs()
        later = self._first(runs, "a run")
        earlier = next(runs, None)
        if earlier is None or not _alike(earlier, later):
            earlier = self.before(later)
        # Runs are listed by their files' times, which a copy of the mirror may have lost.
        if (earlier.started_at or "") > (later.started_at or ""):
            return later, earlier
        return earlier, later

    def before(self, record: RunRecord) -> RunRecord:
        """Return the run before ``record``: the nearest of its partition and profile, else of its partition,
        else the nearest of all.
        """
        of_partition: RunRecord | None = None
        for run in self._earlier(record, same_partition=True):
            if _alike(run, record):
                return run
            if of_partition is None and _same_partitions(run, record):
                of_partition = run
        if of_partition is not None:
            return of_partition
        nearest = self._earlier(record, same_partition=False)
        return self._first(nearest, f"a run before {short_run_id(record.run_id)}")

    def _earlier(self, record: RunRecord, *, same_partition: bool) -> Iterator[RunRecord]:
        """Yield the runs before ``record``, a bounded number of them, so that no history is read whole.

        With ``same_partition`` without those whose name says another one.
        """
        run_ids = self.store.run_ids(*self.names)
        if record.run_id not in run_ids:
            # Its file has another name.
            runs = itertools.dropwhile(lambda run: run.run_id != record.run_id, self.runs())
            return itertools.islice(runs, 1, _LOOK_BACK)
        keys = partition_keys(record) if same_partition else ()
        earlier = (
            run_id
            for run_id in run_ids[run_ids.index(record.run_id) + 1 :]
            if len(keys) != 1 or may_hold_partition(run_id, keys[0])
        )
        wanted = set(itertools.islice(earlier, _LOOK_BACK))
        return self.runs(wanted.__contains__)

    def _accepted(self, said: Acceptance) -> RunRecord:
        try:
            return self.store.load(*self.names, said.run_id)
        except RecordNotFoundError as e:
            raise RecordNotFoundError(
                f"run {said.run_id} of {self.path} was {said.kind} by {said.by}, and has no record here; "
                "restore it with `lineage sync`, or accept or pin another one"
            ) from e

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
    """A store of records, what was accepted of them, and how messages name it."""

    store: RecordStore
    baselines: BaselineStore
    root: str
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
        return cls(RecordStore(root, lineage_dir), BaselineStore(root), root, printable(shown), Invalid())

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
        found = self.tasks(usecase, package, task, asset, partition)
        if len(found) == 1:
            return found[0]
        raise ConfigurationError(
            f"{len(found)} tasks fit: {_named(['/'.join(one.names) for one in found])}; expected one; "
            "choose with -u, -p and -t, or --asset"
        )

    def tasks(
        self,
        usecase: str | None,
        package: str | None,
        task: str | None,
        asset: str | None,
        partition: str | None = None,
    ) -> list[Task]:
        """Return every task that fits, sorted. Raises RecordNotFoundError when none does.

        With all three names given it is that task, without a look whether it is there.
        """
        task = task_name(task, asset)
        if usecase is not None and package is not None and task is not None:
            return [self._task((usecase, package, task), partition)]
        found = [
            self._task(names, partition)
            for names in self.store.tasks(usecase, package, task, self.on_invalid)
        ]
        if found:
            return found
        self.require_records()
        there = ["/".join(names) for names in self.store.tasks(on_invalid=self.on_invalid)]
        wanted = "/".join(name or "*" for name in (usecase, package, task))
        raise RecordNotFoundError(f"no task {wanted!r} in {self.shown}; there is {_named(there)}")

    def _task(self, names: tuple[str, str, str], partition: str | None) -> Task:
        return Task(self.store, self.baselines, *names, partition, self.on_invalid)

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
        name = task_name(task, asset)
        found = self.store.search(
            usecase, package, name, status=status, since=since, on_invalid=self.on_invalid
        )
        return (run for run in found if partition is None or partition in partition_keys(run))


def task_name(task: str | None, asset: str | None) -> str | None:
    """Return the task's name, given it or the asset's key. Raises ConfigurationError for both."""
    if asset is None:
        return task
    if task is not None:
        raise ConfigurationError("both --task and --asset were given; expected one of the two")
    return task_name_for_asset(asset_key_parts(asset))


def asset_key_parts(text: str) -> list[str]:
    r"""Split an asset key at its slashes, ``raw/flights``; ``\/`` is a slash within a part."""
    return [part.replace("\\/", "/") for part in re.split(r"(?<!\\)/", text.strip("/"))]


def of_dagster_run(run_id: str) -> Wanted:
    """Return what tells by a record's run id whether it is of a Dagster run: any partition, any attempt."""
    stem = stored_run_id(run_id)
    return lambda name: name == stem or name.startswith((f"{stem}--", f"{stem}.retry-"))


def _alike(run: RunRecord, other: RunRecord) -> bool:
    return _same_partitions(run, other) and run.profile == other.profile


def _same_partitions(run: RunRecord, other: RunRecord) -> bool:
    return partition_keys(run) == partition_keys(other)


def _named(names: list[str]) -> str:
    shown = ", ".join(printable(name) for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown
