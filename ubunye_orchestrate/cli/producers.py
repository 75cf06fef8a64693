"""The records of the materializations that inputs were read from, found in the mirror."""

from __future__ import annotations

from ubunye_orchestrate.cli.address import Mirror, of_dagster_run
from ubunye_orchestrate.compare.comparison import partition_keys
from ubunye_orchestrate.errors import RecordError, StoreError
from ubunye_orchestrate.records.model import Producer, RunRecord, StepRecord
from ubunye_orchestrate.records.paths import may_hold_partition, task_name_for_asset

__all__ = ["ProducerRecords"]

TaskNames = tuple[str, str, str]


class ProducerRecords:
    """Finds producers' records. Each task's folder is listed once, and only files that may fit are read."""

    def __init__(self, mirror: Mirror) -> None:
        """Take the mirror; nothing is read yet."""
        self._mirror = mirror
        self._tasks: dict[str, list[TaskNames]] = {}
        self._run_ids: dict[TaskNames, list[str]] = {}

    def load(self, name: str, producer: Producer) -> RunRecord | None:
        """Return the record of the materialization of asset ``name``; None where the mirror does not have it.

        Of several attempts of a run the last one that succeeded. A file that cannot be read is reported.
        """
        if producer.run_id is None:
            return None
        of_run = of_dagster_run(producer.run_id)
        found: list[RunRecord] = []
        for names in self._tasks_of(name):
            for run_id in self._run_ids_of(names):
                if of_run(run_id) and _may_be_of(run_id, producer.partition):
                    record = self._read(names, run_id)
                    if record is not None and _made(record, name, producer.partition):
                        found.append(record)
        return max(found, key=lambda r: (r.status == "success", _attempt(r)), default=None)

    def of_input(self, step: StepRecord) -> list[RunRecord]:
        """Return the records that an input was read from, as far as the mirror has them, each once."""
        found = [self.load(step.name, producer) for producer in step.producer or ()]
        return list({(r.task_path, r.run_id): r for r in found if r is not None}.values())

    def _tasks_of(self, asset: str) -> list[TaskNames]:
        if asset not in self._tasks:
            # A name in a record does not tell the slashes between parts from those within.
            names = dict.fromkeys(task_name_for_asset(parts) for parts in (asset.split("/"), [asset]))
            self._tasks[asset] = [
                found
                for name in names
                for found in self._mirror.store.tasks(task=name, on_invalid=self._mirror.on_invalid)
            ]
        return self._tasks[asset]

    def _run_ids_of(self, names: TaskNames) -> list[str]:
        if names not in self._run_ids:
            try:
                self._run_ids[names] = self._mirror.store.run_ids(*names)
            except StoreError as e:
                self._mirror.on_invalid("/".join(names), e)
                self._run_ids[names] = []
        return self._run_ids[names]

    def _read(self, names: TaskNames, run_id: str) -> RunRecord | None:
        try:
            return self._mirror.store.load(*names, run_id)
        except RecordError as e:
            self._mirror.on_invalid(f"{'/'.join(names)}/{run_id}", e)
            return None


def _may_be_of(run_id: str, partition: str | None) -> bool:
    return partition is None or may_hold_partition(run_id, partition)


def _made(record: RunRecord, name: str, partition: str | None) -> bool:
    keys = partition_keys(record)
    of_partition = partition in keys if partition is not None else not keys
    return of_partition and any(step.name == name for step in record.outputs)


def _attempt(record: RunRecord) -> int:
    attempt = (record.dagster or {}).get("attempt")
    return attempt if isinstance(attempt, int) else 0
