"""The mirror beside an instance's event log: what is missing is written, what is only in one is named.

The event log is authoritative. Nothing that is in the mirror is changed: a file is written where there is
none (or, when each one is read too, in place of one that cannot be read). Doing it twice writes nothing the
second time. Files are written in the order in which runs ended, since a store that keeps its own times lists
by them.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from dagster import AssetKey, AssetRecordsFilter, DagsterInstance, EventLogRecord

from ubunye_orchestrate.dagster_io.receipts.acceptance import acceptances_in, report_acceptance, storage_id_of
from ubunye_orchestrate.dagster_io.receipts.completing import completed
from ubunye_orchestrate.dagster_io.receipts.metadata import receipt_of
from ubunye_orchestrate.dagster_io.receipts.rebuilding import (
    Outcomes,
    ended_at,
    outcomes_of_run,
    rebuilt_record,
)
from ubunye_orchestrate.errors import (
    ConfigurationError,
    InvalidRecordError,
    NewerRecordError,
    UbunyeError,
)
from ubunye_orchestrate.records.baselines import Acceptance, BaselineStore
from ubunye_orchestrate.records.model import RunRecord
from ubunye_orchestrate.records.store import LINEAGE_DIR, RecordStore

__all__ = ["SyncReport", "newest_receipts", "opened_instance", "receipts_of_instance", "sync_mirror"]

TaskNames = tuple[str, str, str]
_Kind = Literal["materialization", "observation"]

_PAGE = 200


@dataclass
class SyncReport:
    """What is where. A record goes by its task's path and run id: ``usecase/package/task/run_id``."""

    written: list[str] = field(default_factory=list)
    """In the instance only, and now (or, in a dry run, to be) in the mirror too."""
    restored: list[str] = field(default_factory=list)
    """Their files could not be read and were (or would be) written again."""
    in_both: int = 0
    mirror_only: list[str] = field(default_factory=list)
    """Not in this instance: made outside of Dagster, in another instance, or not of an asset."""
    different: list[str] = field(default_factory=list)
    """In both, with other hashes of the same output. Neither is changed."""
    acceptances_written: int = 0
    """Acceptances and pins that were in the instance only."""
    acceptances_reported: int = 0
    """Acceptances and pins that were in the mirror only."""
    problems: list[str] = field(default_factory=list)
    """What could not be read or written, and why."""


@contextmanager
def opened_instance(home: str) -> Iterator[DagsterInstance]:
    """Open the instance in a folder (its ``DAGSTER_HOME``). Raises ConfigurationError where there is none."""
    folder = os.path.abspath(os.path.expanduser(home))
    # Without this file a new, empty instance would come into being.
    if not os.path.isfile(os.path.join(folder, "dagster.yaml")):
        raise ConfigurationError(
            f"no Dagster instance in {folder}: it has no dagster.yaml; expected the folder that DAGSTER_HOME "
            "names"
        )
    try:
        instance = DagsterInstance.from_config(folder)
    except Exception as e:  # Dagster, the database driver and the user's classes raise what they like
        reason = (str(e) or type(e).__name__).splitlines()[0]
        raise ConfigurationError(f"the Dagster instance in {folder} cannot be opened: {reason}") from e
    with instance:
        yield instance


def receipts_of_instance(
    instance: DagsterInstance, key: AssetKey, on_invalid: Callable[[InvalidRecordError], None]
) -> Iterator[RunRecord]:
    """Yield the receipts of an asset as they stand in the event log, oldest first.

    Those of materializations first, then those of runs that failed, which stand in observations.
    """
    kinds: tuple[_Kind, ...] = ("materialization", "observation")
    for kind in kinds:
        for event in _events(instance, key, kind):
            try:
                record = _receipt(event, kind)
            except InvalidRecordError as e:
                on_invalid(e)
                continue
            if record is not None:
                yield record


def newest_receipts(
    instance: DagsterInstance,
    wanted: tuple[str | None, str | None, str | None],
    partition: str | None,
    on_invalid: Callable[[str, InvalidRecordError], None],
) -> Iterator[tuple[str, Iterator[RunRecord]]]:
    """Yield the task's path of each asset and its materializations' receipts, newest first.

    ``wanted`` are usecase, package and task where they are given; ``partition`` narrows to one partition.
    """
    for key in sorted(instance.get_asset_keys()):
        receipts = _newest_of(instance, key, partition, on_invalid)
        first = next(receipts, None)
        if first is None:
            continue
        names = (first.usecase, first.package, first.task_name)
        if all(name is None or name == given for name, given in zip(wanted, names, strict=True)):
            yield first.task_path, itertools.chain([first], receipts)


def _newest_of(
    instance: DagsterInstance,
    key: AssetKey,
    partition: str | None,
    on_invalid: Callable[[str, InvalidRecordError], None],
) -> Iterator[RunRecord]:
    for event in _events(instance, key, "materialization", ascending=False, partition=partition):
        try:
            record = _receipt(event, "materialization")
        except InvalidRecordError as e:
            on_invalid(f"materialization {event.storage_id}", e)
            continue
        if record is not None:
            yield completed(record)


def sync_mirror(
    instance: DagsterInstance,
    root: str,
    lineage_dir: str = LINEAGE_DIR,
    *,
    deep: bool = False,
    dry_run: bool = False,
) -> SyncReport:
    """Complete the mirror below ``root`` from the instance's event log.

    ``deep`` reads each record that is there, restores those that cannot be read (but not those of a newer
    version) and names those that differ. ``dry_run`` writes nothing. Raises StoreError when the mirror cannot
    be listed; what concerns single receipts is in the report.
    """
    sync = _Sync(instance, RecordStore(root, lineage_dir), BaselineStore(root), deep, dry_run)
    return sync.run()


def _events(
    instance: DagsterInstance,
    key: AssetKey,
    kind: _Kind,
    *,
    ascending: bool = True,
    partition: str | None = None,
) -> Iterator[EventLogRecord]:
    fetch = instance.fetch_materializations if kind == "materialization" else instance.fetch_observations
    wanted = AssetRecordsFilter(asset_key=key, asset_partitions=None if partition is None else [partition])
    cursor: str | None = None
    while True:
        page = fetch(wanted, limit=_PAGE, cursor=cursor, ascending=ascending)
        yield from page.records
        if not page.has_more:
            return
        cursor = page.cursor


def _receipt(event: EventLogRecord, kind: str) -> RunRecord | None:
    about = event.asset_materialization or event.asset_observation
    if about is None:
        return None
    where = f"{kind} {event.storage_id} of {about.asset_key.to_user_string()}"
    return receipt_of(about.metadata, source=where)


@dataclass
class _Sync:
    instance: DagsterInstance
    store: RecordStore
    baselines: BaselineStore
    deep: bool
    dry_run: bool
    report: SyncReport = field(default_factory=SyncReport)
    outcomes: dict[str, Outcomes] = field(default_factory=dict)
    """By Dagster run, each log read once."""

    def run(self) -> SyncReport:
        mirrored = {
            names: set(self.store.run_ids(*names)) for names in self.store.tasks(on_invalid=self._problem)
        }
        unmatched = {names: set(run_ids) for names, run_ids in mirrored.items()}
        keys = sorted(self.instance.get_asset_keys())
        for key in keys:
            self._asset(key, mirrored, unmatched)
        self.report.mirror_only = sorted(
            f"{'/'.join(names)}/{run_id}" for names, run_ids in unmatched.items() for run_id in run_ids
        )
        self._acceptances(keys)
        return self.report

    def _asset(
        self, key: AssetKey, mirrored: dict[TaskNames, set[str]], unmatched: dict[TaskNames, set[str]]
    ) -> None:
        """Write the records of one asset that the mirror lacks."""
        missing: dict[tuple[TaskNames, str], list[RunRecord]] = defaultdict(list)
        looked_at: set[tuple[TaskNames, str]] = set()
        for receipt in receipts_of_instance(
            self.instance, key, lambda e: self.report.problems.append(str(e))
        ):
            names = (receipt.usecase, receipt.package, receipt.task_name)
            identity = (names, receipt.run_id)
            unmatched.get(names, set()).discard(receipt.run_id)
            if receipt.run_id not in mirrored.get(names, ()):
                missing[identity].append(receipt)
            elif identity not in looked_at:
                looked_at.add(identity)
                if self.deep and self._unreadable(names, receipt):
                    missing[identity].append(receipt)
                else:
                    self.report.in_both += 1
            elif identity in missing:
                missing[identity].append(receipt)
        records = [
            rebuilt_record(kept, self._outcomes_of(kept[0])) for kept in map(_one_kind, missing.values())
        ]
        records.sort(key=lambda record: (ended_at(record) is not None, ended_at(record), record.run_id))
        for record in records:
            there = record.run_id in mirrored.get((record.usecase, record.package, record.task_name), ())
            self._write(record, restored=there)

    def _outcomes_of(self, receipt: RunRecord) -> Outcomes:
        run_id = str((receipt.dagster or {}).get("run_id"))
        if run_id not in self.outcomes:
            self.outcomes[run_id] = outcomes_of_run(self.instance, run_id)
        return self.outcomes[run_id]

    def _write(self, record: RunRecord, *, restored: bool) -> None:
        name = f"{record.task_path}/{record.run_id}"
        if not self.dry_run:
            try:
                self.store.save(record)
            except UbunyeError as e:
                self.report.problems.append(str(e))
                return
        (self.report.restored if restored else self.report.written).append(name)

    def _unreadable(self, names: TaskNames, receipt: RunRecord) -> bool:
        """Read a mirrored record; tell whether it is to be restored, and note what else is odd about it."""
        try:
            record = self.store.load(*names, receipt.run_id)
        except NewerRecordError as e:
            self.report.problems.append(str(e))
            return False
        except InvalidRecordError:
            return True
        except UbunyeError as e:
            self.report.problems.append(str(e))
            return False
        # A receipt of one partition among several is held against nothing: the record has the whole.
        if len((record.dagster or {}).get("partition_keys") or ()) <= 1 and _hashes(record) != _hashes(
            receipt
        ):
            self.report.different.append(f"{record.task_path}/{record.run_id}")
        return False

    def _acceptances(self, keys: list[AssetKey]) -> None:
        said: dict[str, Acceptance] = {}
        for key in keys:
            for one in acceptances_in(self.instance, key):
                if isinstance(one, InvalidRecordError):
                    self.report.problems.append(str(one))
                else:
                    said[one.file_name] = one
        here = {one.file_name: one for one in self.baselines.all(self._problem)}
        for name in sorted(said.keys() - here.keys()):
            self._keep(said[name])
            self.report.acceptances_written += 1
        for name in sorted(here.keys() - said.keys()):
            one = here[name]
            # Of a run of another instance, or of none: that is not this one's to know.
            if storage_id_of(self.instance, one) is None:
                continue
            self._keep(one if self.dry_run else report_acceptance(self.instance, one))
            self.report.acceptances_reported += 1

    def _keep(self, said: Acceptance) -> None:
        if self.dry_run:
            return
        try:
            self.baselines.save(said)
        except UbunyeError as e:
            self.report.problems.append(str(e))

    def _problem(self, path: str, error: Exception) -> None:
        self.report.problems.append(str(error))


def _one_kind(receipts: list[RunRecord]) -> list[RunRecord]:
    """Keep the receipts of what was stored; where nothing was, one of a failed run stands for all of them."""
    stored = [receipt for receipt in receipts if receipt.status == "success"]
    return stored or receipts[:1]


def _hashes(record: RunRecord) -> dict[str, str | None]:
    return {step.name: step.data_hash for step in record.outputs}
