"""From what an IO manager read and stored to the record, its mirror and the materialization's metadata.

Invariants: nothing here changes the value that passes; a receipt is made after the store succeeded; whatever
goes wrong here is logged and harms neither the run nor the user's own error.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dagster import InputContext, MetadataValue, OutputContext

from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.assembly import build_record, with_dagster
from ubunye_orchestrate.dagster_io.receipts.baseline import find_baseline
from ubunye_orchestrate.dagster_io.receipts.graphs import maker_of, whole_graph
from ubunye_orchestrate.dagster_io.receipts.ledger import StepEntry, Stored
from ubunye_orchestrate.dagster_io.receipts.metadata import free_names
from ubunye_orchestrate.dagster_io.receipts.panel import (
    Mirrored,
    harmless,
    mirror,
    mirror_metadata,
    receipt_metadata,
    with_baseline,
)
from ubunye_orchestrate.dagster_io.receipts.policies import policy_in
from ubunye_orchestrate.dagster_io.receipts.producers import asset_name, ordered_partitions, producers_of
from ubunye_orchestrate.dagster_io.receipts.tasks import Task, enter_step, partition_variables, task_of_output
from ubunye_orchestrate.dagster_io.receipts.values import combined
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.records.model import Producer, RunRecord, StepRecord
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.steps import step_from_fingerprint
from ubunye_orchestrate.records.store import RecordStore

__all__ = ["OpenInput", "OpenOutput", "ReceiptWriter", "TableRead", "TableStored"]

Scope = Literal["stored_table", "stored_partition", "passed_rows", "projection"]


@dataclass(frozen=True)
class TableRead:
    """What an IO manager read."""

    fingerprint: Fingerprint
    format: str
    scope: Scope
    location: str | None = None
    recomputed: bool = False
    """The rows were read again for the hash."""
    backend: str | None = None
    source_version: dict[str, Any] | None = None
    source_version_at_hash: dict[str, Any] | None = None
    note: str | None = None
    reused_from: str | None = None
    """Run id of the receipt that the fingerprint was taken from."""


@dataclass(frozen=True)
class TableStored:
    """What an IO manager stored."""

    parts: Mapping[str | None, Fingerprint]
    """By partition where each was stored apart; else one entry under None."""
    format: str
    scope: Scope
    location: str | None = None
    locations: Mapping[str, str] = field(default_factory=dict)
    """By partition, where each was stored apart."""
    versions: Mapping[str | None, dict[str, Any]] = field(default_factory=dict)
    """What tells this state of the storage from another, as ``source_version``: keys as of ``parts``."""
    backend: str | None = None
    columns: Sequence[str] = ()
    """Names in the frame's order."""
    is_file: bool = False
    """The location is a file or folder of this IO manager's own, to be shown as such."""
    taken: Mapping[str, Any] = field(default_factory=dict)
    """Metadata that the inner IO manager returned instead of adding it: its keys win too."""
    recomputed: bool = False
    """The rows were computed again for the hash."""
    note: str | None = None
    """Where the hashed rows are from, as ``source_note``."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """The same by partition, where they differ."""
    beside: Sequence[StepRecord] = ()
    """Other outputs of the record: what else is known of the table that was stored."""


@dataclass(frozen=True)
class OpenInput:
    """A load that has begun."""

    entry: StepEntry
    name: str
    partitions: tuple[str, ...]
    producer: list[Producer] | None
    made_by: str | None = None
    """The op whose output it is, where it is no asset."""


@dataclass(frozen=True)
class OpenOutput:
    """A store that has begun: the step's own work on this output is over."""

    entry: StepEntry
    transform_seconds: float


class ReceiptWriter:
    """Writes the receipts of one IO manager."""

    def __init__(self, settings: ReceiptSettings, manager: str) -> None:
        """Take the IO manager's name for timings (``manager``)."""
        self.settings = settings
        self.manager = manager
        self.store = RecordStore(settings.root)

    def begin_input(self, context: InputContext) -> OpenInput | None:
        """Note that an input is about to be read; None outside of a step."""
        entry = enter_step(context, self.settings)
        if entry is None:
            return None
        partitions = ordered_partitions(context)
        producer = None
        if context.has_asset_key:
            # Before the rows are read: what is stored later is not what was read.
            producer = producers_of(
                context.instance,
                context.asset_key,
                partitions,
                partitioned=context.has_asset_partitions,
                # Reading an earlier input may have taken its time.
                just_begun=None if entry.inputs else upstream.step_context(context),
            )
        name = asset_name(context.asset_key) if context.has_asset_key else context.name
        return OpenInput(entry, name, partitions, producer, maker_of(context))

    def end_input(self, begun: OpenInput, read_seconds: float, read: TableRead) -> None:
        """Put what was read into the step's ledger; ``read_seconds`` are without the hash."""
        entry = begun.entry
        changed = None
        if read.source_version is not None and read.source_version_at_hash is not None:
            changed = read.source_version != read.source_version_at_hash
        entry.inputs.append(
            step_from_fingerprint(
                begun.name,
                "input",
                read.fingerprint,
                format=read.format,
                location=read.location,
                basis="recomputed" if read.recomputed else "materialised",
                scope=read.scope,
                producer=begun.producer,
                source_version=read.source_version,
                source_version_at_hash=read.source_version_at_hash,
                source_changed=changed,
                source_note=read.note,
                reused_from=read.reused_from,
                made_by=begun.made_by,
            )
        )
        entry.timings.append(_timing(f"Reader:{self.manager}", read_seconds, "input", begun.name))
        entry.backend = entry.backend or read.backend
        entry.mark = time.perf_counter()

    def begin_output(self, context: OutputContext) -> OpenOutput | None:
        """Note that an output is about to be stored; None outside of a step."""
        now = time.perf_counter()
        entry = enter_step(context, self.settings)
        if entry is None:
            return None
        return OpenOutput(entry, max(0.0, now - entry.mark))

    def end_output(
        self, context: OutputContext, begun: OpenOutput, write_seconds: float, stored: TableStored
    ) -> None:
        """Make the record of what was stored, mirror it, and put the receipt on the materialization."""
        entry = begun.entry
        task = task_of_output(context, entry)
        if any(
            stored.record.run_id == task.run_id and stored.record.task_name == task.task_name
            for stored in entry.stored
        ):
            context.log.warning(
                f"ubunye: {task.name} has a receipt of its own (receipts.run); its IO manager adds none"
            )
            return
        entry.backend = stored.backend or entry.backend
        own = [
            _timing(f"Transform:{entry.op}", begun.transform_seconds, "output", task.name),
            _timing(f"Writer:{self.manager}", write_seconds, "output", task.name),
        ]
        parts = {name: part for name, part in stored.parts.items() if name is not None}
        whole = combined(parts) if parts else stored.parts[None]
        record = build_record(
            task,
            entry.key,
            whole_graph(upstream.instance_of(context), entry, task.key),
            self.settings,
            [_output(task, whole, stored, None), *stored.beside],
            job=entry.job,
            ended_at=time.time(),
            timings=own,
            data_version=self._choose_data_version(context, task, whole),
        )
        taken = {**context.output_metadata, **context.get_logged_metadata(), **stored.taken}
        if task.key is not None:
            # What the step says of the asset counts more than what the output says.
            taken |= upstream.asset_metadata_given(upstream.step_context(context), task.key, task.partitions)
        if len(parts) > 1:
            mirrored = mirror(self.store, record, context.log)
            for partition, part in parts.items():
                self._show_partition(context, record, task, partition, part, stored, mirrored, taken)
            shown = mirror_metadata(mirrored)
        else:
            shown, record, mirrored = self._shown(context, record, task, task.partitions, whole, stored)
        free = free_names(shown, taken)
        if task.key is None or task.key in entry.graphs:
            context.add_output_metadata(free)
        else:
            # On the materialization alone: on the output's own event it would be a second copy of it all,
            # which nobody reads (of an op's output, the graph's last op does).
            upstream.add_asset_metadata(upstream.step_context(context), task.key, None, free)
        entry.stored.append(Stored(record, self.settings))
        entry.mark = time.perf_counter()

    def _show_partition(
        self,
        context: OutputContext,
        record: RunRecord,
        task: Task,
        partition: str,
        part: Fingerprint,
        stored: TableStored,
        mirrored: Mirrored,
        taken: Mapping[str, Any],
    ) -> None:
        """Put on one partition's materialization the receipt of that partition alone.

        Its baseline is that partition's, so what it is compared with later is too.
        """
        if task.key is None:
            return
        variables = partition_variables(context.asset_partitions_def, [partition])
        alone = with_dagster(
            record.model_copy(
                update={
                    "outputs": [_output(task, part, stored, partition)],
                    "variables": variables,
                    "expectations": [
                        one for one in record.expectations if one.get("partition") in (None, partition)
                    ],
                }
            ),
            partition_keys=[partition],
        )
        shown, _, _ = self._shown(context, alone, task, (partition,), part, stored, mirrored)
        step = upstream.step_context(context)
        upstream.add_asset_metadata(step, task.key, partition, free_names(shown, taken))

    def _shown(
        self,
        context: OutputContext,
        record: RunRecord,
        task: Task,
        partitions: Sequence[str],
        part: Fingerprint,
        stored: TableStored,
        mirrored: Mirrored | None = None,
    ) -> tuple[dict[str, MetadataValue], RunRecord, Mirrored]:
        """Name the record's baseline, mirror it unless it was, and return what its materialization shows."""
        baseline, policy = None, DriftPolicy()
        if task.key is not None:
            with harmless(context.log, "reading the asset's policy"):
                policy = policy_in(context.definition_metadata, task.key) or policy
            baseline = find_baseline(
                upstream.instance_of(context), task.key, partitions, self.settings.profile, policy.baseline
            )
        record = with_baseline(record, baseline)
        mirrored = mirrored or mirror(self.store, record, context.log)
        shown = receipt_metadata(
            record, baseline, mirrored, part, stored.columns, policy, context.log, is_file=stored.is_file
        )
        return shown, record, mirrored

    def _choose_data_version(self, context: OutputContext, task: Task, whole: Fingerprint) -> str | None:
        """Make the data hash the asset's data version, unless it gives one itself; return the one it has."""
        if task.key is None:
            return None
        given = upstream.data_version_given()
        if given is not None or whole.data_hash is None:
            return given
        upstream.set_data_version(upstream.step_context(context), task.key, whole.data_hash)
        return whole.data_hash


def _output(task: Task, part: Fingerprint, stored: TableStored, partition: str | None) -> StepRecord:
    return step_from_fingerprint(
        task.name,
        "output",
        part,
        format=stored.format,
        location=stored.location if partition is None else stored.locations.get(partition, stored.location),
        basis="recomputed" if stored.recomputed else "materialised",
        scope=stored.scope,
        source_version=stored.versions.get(partition),
        source_note=stored.note if partition is None else stored.notes.get(partition, stored.note),
    )


def _timing(step: str, seconds: float, side: str, name: str) -> dict[str, Any]:
    return {"step": step, side: name, "seconds": round(seconds, 6)}
