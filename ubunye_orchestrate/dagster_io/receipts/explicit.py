"""Receipts for assets that read and store by themselves, without an IO manager: three lines in the asset."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from dagster import AssetExecutionContext, AssetKey, MetadataValue, OpExecutionContext

from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts import metadata as keys
from ubunye_orchestrate.dagster_io.receipts.assembly import build_record, with_dagster
from ubunye_orchestrate.dagster_io.receipts.baseline import find_baseline
from ubunye_orchestrate.dagster_io.receipts.expecting import check_read, check_table, not_checked, rules_of
from ubunye_orchestrate.dagster_io.receipts.frame_checks import ANOTHER_FRAME, FrameChecks
from ubunye_orchestrate.dagster_io.receipts.ledger import Block, StepEntry, Stored
from ubunye_orchestrate.dagster_io.receipts.metadata import compact_receipt
from ubunye_orchestrate.dagster_io.receipts.panel import (
    frame_metadata,
    harmless,
    mirror,
    receipt_metadata,
    with_baseline,
)
from ubunye_orchestrate.dagster_io.receipts.policies import policy_in
from ubunye_orchestrate.dagster_io.receipts.producers import producers_of
from ubunye_orchestrate.dagster_io.receipts.published import Published
from ubunye_orchestrate.dagster_io.receipts.spark_evidence import note_session
from ubunye_orchestrate.dagster_io.receipts.tasks import (
    Task,
    entry_of_step,
    key_of_step,
    note_of_run,
    partition_variables,
    task_of_asset,
)
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.frames import native
from ubunye_orchestrate.records.evidence import error_text
from ubunye_orchestrate.records.model import HashScope, Producer, RunRecord, StepRecord
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.steps import step_of_frame
from ubunye_orchestrate.records.store import RecordStore
from ubunye_orchestrate.records.values import columns_in_order, inspect_value, not_hashed

__all__ = ["ReceiptRun"]

_Frame = TypeVar("_Frame")


class _Output(NamedTuple):
    step: StepRecord
    hashed: Fingerprint
    frame: object


class ReceiptRun:
    """One asset's receipt while the asset runs: what it read, what it wrote (``Receipts.run``).

    ``with receipts.run(context) as run:``, then ``run.read(name, frame)`` for each table read and
    ``run.wrote(name, frame)`` for each one stored. At the end of the block the record is mirrored and the
    receipt stands on the asset's materialization, with no outputs where nothing was written; where an IO
    manager stores the asset, its record has what such a block has read. A block that fails leaves the record
    of a failure at the end of the step, also where the asset goes on. Nothing here fails the asset but a rule
    that ``run.read`` or ``run.expect`` finds broken, and a call of them outside of the block.
    """

    def __init__(
        self,
        context: AssetExecutionContext | OpExecutionContext,
        settings: ReceiptSettings,
        asset: AssetKey | None,
    ) -> None:
        """Raises ConfigurationError where it is not clear which asset the receipt is of."""
        self._log = context.log
        self._step: upstream.StepContext = upstream.step_of(context)
        self._settings = settings
        self._entry: StepEntry | None = None
        self._key, self._task = self._task_of(asset)
        self._outputs: list[_Output] = []
        self._checks = FrameChecks()
        self._phase = "before"
        self._record: RunRecord | None = None
        self._published = Published(self._step, self._key, self._task.partitions)

    def __enter__(self) -> ReceiptRun:
        """Begin the block. Raises ConfigurationError where the asset has a record already, or a block."""
        self._phase = "in"
        with harmless(self._log, "beginning a receipt"):
            self._entry = entry_of_step(self._step, self._settings, has_worked=True)
        if self._entry is not None:
            self._refuse_a_second_record(self._entry)
            self._entry.blocks[self._key] = Block()
            # What a block before it has checked, which failed, was not written.
            self._entry.checked.pop(self._task.name, None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        self._phase = "after"
        if self._entry is None:
            return
        block = self._entry.blocks[self._key]
        if error is not None:
            block.error = error_text(error)
            return
        block.on_result = self._on_result
        if self._outputs:
            with harmless(self._log, "writing the receipt"):
                self._finish(self._entry)

    def read(
        self,
        name: str,
        frame: _Frame,
        *,
        format: str | None = None,  # noqa: A002 - the field's name in the record
        location: str | os.PathLike[str] | None = None,
        scope: HashScope = "passed_rows",
        source_version: dict[str, Any] | None = None,
        partitions: Sequence[str] | None = None,
    ) -> _Frame:
        """Note a table that the asset read, and return it.

        ``name`` is the upstream asset (``raw/orders``), so that it counts as that declared dependency, or any
        other name. A frame in memory is hashed, unless ``hash_inputs`` is off, and so is a Spark frame, which
        is computed for it; a reader or another lazy frame is not touched. ``source_version`` says which state
        of the source it is (``SparkResource.pinned`` gives one). ``scope`` is ``stored_table`` where the
        frame is all that the upstream asset stored. ``partitions`` are those of the upstream asset that were
        read, by default what Dagster's mapping says; ``scope`` then is ``stored_partition``.
        Raises ExpectationError where it breaks a rule about this input (``on_input``) of severity ``fail``.
        """
        self._refuse_outside("read")
        with harmless(self._log, f"noting input {name}"):
            if self._entry is not None:
                producer = None
                with harmless(self._log, f"finding what {name} was read from"):
                    producer = self._producers(name, partitions)
                step, _ = step_of_frame(
                    name,
                    "input",
                    frame,
                    self._settings,
                    format=format,
                    location=location,
                    scope=scope,
                    producer=producer,
                    source_version=source_version,
                )
                self._entry.inputs.append(step)
                self._note_backend(frame)
        check_read(self._step, self._entry, [name], {None: frame}, self._log)
        return frame

    def expect(self, frame: _Frame) -> _Frame:
        """Hold a table that the asset is about to store against the asset's rules, and return it.

        Call it before anything is written. Raises ExpectationError where it breaks a rule of severity
        ``fail``. Without this call the rules of the asset count as not checked. Where it is called several
        times, the record has the results of the frame that was written; where none of them was written, it
        has all, and each says ``checked: another frame``.
        """
        self._refuse_outside("expect")
        rules = rules_of(self._step, self._key)
        if rules:
            try:
                check_table(self._entry, self._task.name, rules, {None: frame}, self._log)
            finally:
                with harmless(self._log, "noting what was checked"):
                    self._note_check(frame)
        return frame

    def wrote(
        self,
        name: str,
        frame: object,
        *,
        format: str | None = None,  # noqa: A002 - the field's name in the record
        location: str | os.PathLike[str] | None = None,
        scope: HashScope = "passed_rows",
        source_version: dict[str, Any] | None = None,
    ) -> dict[str, MetadataValue]:
        """Note a table that the asset stored, and return its metadata: rows, columns, hash.

        Return it in a ``MaterializeResult``, or pass it to ``context.add_output_metadata``, to see its rows
        and columns on the asset. Name it as the asset is (``/`` between the key's parts) where it is the
        asset's table: what reads it later is then held against it. A Spark frame is computed for its hash:
        give it the stored table, read back, with its ``source_version`` (``SparkResource.pinned``) and
        ``scope``, rather than the plan that was stored.
        """
        self._refuse_outside("wrote")
        with harmless(self._log, f"noting output {name}"):
            step, hashed = step_of_frame(
                name,
                "output",
                frame,
                self._settings,
                format=format,
                location=location,
                scope=scope,
                source_version=source_version,
            )
            self._outputs.append(_Output(step, hashed, frame))
            return frame_metadata(hashed, columns_in_order(frame), self._task.partitions)
        return {}

    @property
    def commit_note(self) -> str:
        """What a commit of the asset's own should say of its run: a table's history then names the receipt.

        The text for ``userMetadata``: an option of Spark's Delta writer, ``SparkResource.commits`` for a
        merge or any SQL, custom metadata of that name in delta-rs.
        """
        return note_of_run(key_of_step(self._step), self._task, self._settings, self._task.partitions)

    def _producers(self, name: str, partitions: Sequence[str] | None) -> list[Producer] | None:
        """Return the materializations that a dependency was read from; None where they are not known."""
        key = AssetKey(name.split("/"))
        # The assets of a step share their inputs: one of another asset's is read for this one, too.
        if self._entry is None or all(key not in one.parents for one in self._entry.assets):
            return None
        instance = self._step.instance
        if upstream.partitions_in_step(self._step, key) is None:
            return producers_of(instance, key, (), partitioned=False)
        if partitions is None:
            partitions = upstream.partitions_read_of(self._step, key)
        return producers_of(instance, key, partitions, partitioned=True) if partitions else None

    def _refuse_outside(self, call: str) -> None:
        if self._phase != "in":
            raise ConfigurationError(
                f"run.{call} of {self._task.name} was called {self._phase} its block, where nothing is "
                'recorded; expected it inside of "with receipts.run(context) as run:"'
            )

    def _on_result(self, output: str, metadata: Mapping[str, Any]) -> None:
        """Make what was published fit the result of the asset, which comes after the block."""
        entry = self._entry
        if entry is None or output != upstream.output_of_asset(self._step, self._key):
            return
        entry.blocks[self._key].on_result = None
        with harmless(self._log, "settling the receipt"):
            # Where an IO manager stores the asset, it makes the record, with what was read here.
            if self._record is None and upstream.is_stored_by_itself(self._step, output):
                self._finish(entry)
            if self._record is not None:
                self._published.publish(self._with_own_version(entry, self._record), metadata)

    def _refuse_a_second_record(self, entry: StepEntry) -> None:
        """Two records of one run would share a file, and the materialization would show the first one's."""
        name, expected = self._task.name, "expected one block that notes all that the asset reads and stores"
        # A block that failed has left no record: the asset may try again.
        block = entry.blocks.get(self._key)
        if block is not None and block.error is None:
            raise ConfigurationError(f"receipts.run got a second block of {name} in one step; {expected}")
        if any(one.record.task_name == self._task.task_name for one in entry.stored):
            raise ConfigurationError(
                f"receipts.run got a block of {name} when its IO manager had stored it: {name} has a record "
                f"already; {expected}, before its result is returned"
            )

    def _note_check(self, frame: object) -> None:
        name = self._task.name
        if self._entry is not None and name in self._entry.checked:
            self._entry.checked[name] = self._checks.add(frame, self._entry.checked[name])

    def _settle_checks(self, entry: StepEntry, written: object) -> None:
        checked = self._checks.of_written(written)
        if checked is None:
            return
        if any(one.get("checked") == ANOTHER_FRAME for one in checked.results):
            self._log.warning(
                f"ubunye: {self._task.name}: run.expect got another frame than run.wrote, so its rules were "
                f"not held against what was written; their results say checked: {ANOTHER_FRAME}"
            )
        entry.checked[self._task.name] = checked

    def _note_backend(self, frame: object) -> None:
        if self._entry is None:
            return
        seen = inspect_value(frame)
        self._entry.backend = self._entry.backend or seen.backend
        if seen.backend == "spark":
            spark_frame: Any = native(frame)
            note_session(self._entry, spark_frame.sparkSession)

    def _task_of(self, asset: AssetKey | None) -> tuple[AssetKey, Task]:
        assets = upstream.assets_of_step(self._step)
        made = {one.key: one for one in assets}
        if asset is None and len(made) == 1:
            asset = next(iter(made))
        if asset is None or asset not in made:
            got = "no asset" if asset is None else f"asset {asset.to_user_string()}"
            raise ConfigurationError(
                f"receipts.run got {got} in a step that makes "
                f"{', '.join(key.to_user_string() for key in made) or 'none'}; expected one of these: "
                'receipts.run(context, asset="…")'
            )
        definition, partitions = upstream.partitions_made(self._step, asset)
        variables = partition_variables(definition, partitions)
        key = key_of_step(self._step)
        task = task_of_asset(key, asset, made[asset].group, partitions, assets, variables=variables)
        return asset, task

    def _with_own_version(self, entry: StepEntry, record: RunRecord) -> Mapping[str, Any]:
        """Correct the record where the result gives a data version itself; return what is to be published."""
        given = upstream.data_version_given()
        if given is None or given == (record.dagster or {}).get("data_version"):
            return {}
        corrected = with_dagster(record, data_version=given)
        at = next(at for at, one in enumerate(entry.stored) if one.record is record)
        entry.stored[at] = Stored(corrected, self._settings)
        mirrored = mirror(RecordStore(self._settings.root), corrected, self._log)
        return {keys.RECEIPT: MetadataValue.json(compact_receipt(corrected, mirrored.path))}

    def _finish(self, entry: StepEntry) -> None:
        key, task = self._key, self._task
        if task.name not in entry.checked and (rules := rules_of(self._step, key)):
            reason = "the asset stores by itself; call run.expect(frame) before it does"
            held = {one["rule"] for one in entry.checked_inputs.get(task.name, ())}
            left = [rule for rule in rules if rule.name not in held]
            entry.checked[task.name] = not_checked(task.name, left, reason)
        main, version = self._main(), None
        if main is not None:
            self._settle_checks(entry, main.frame)
            entry.backend = inspect_value(main.frame).backend or entry.backend
            self._note_backend(main.frame)
            # Several tables, none called as the asset is: none of their hashes is the asset's.
            if len(self._outputs) == 1 or main.step.name == task.name:
                version = main.hashed.data_hash
        record = build_record(
            task,
            entry.key,
            entry,
            self._settings,
            [output.step for output in self._outputs],
            job=entry.job,
            ended_at=time.time(),
            data_version=version,
        )
        policy = DriftPolicy()
        with harmless(self._log, "reading the asset's policy"):
            policy = policy_in(upstream.metadata_in_step(self._step, key), key) or policy
        baseline = find_baseline(
            self._step.instance, key, task.partitions, self._settings.profile, policy.baseline
        )
        record = with_baseline(record, baseline)
        mirrored = mirror(RecordStore(self._settings.root), record, self._log)
        hashed = not_hashed(None) if main is None else main.hashed
        columns = () if main is None else columns_in_order(main.frame)
        shown = receipt_metadata(record, baseline, mirrored, hashed, columns, policy, self._log)
        if version is not None:
            upstream.set_data_version(self._step, key, version)
        if upstream.is_yielded(self._step, key):
            self._log.warning(
                f"ubunye: {task.name} was yielded inside its block of receipts.run, so its materialization "
                "has no receipt; expected the yield after the block"
            )
        # The standard keys are the asset's to return: its own may say more.
        self._published.publish({name: one for name, one in shown.items() if name.startswith("ubunye/")})
        entry.stored.append(Stored(record, self._settings))
        self._record = record
        # The ledger keeps this block until the run is over; frames are let go.
        self._outputs = []

    def _main(self) -> _Output | None:
        """Return the output that is the asset's own table: the one called as the asset is, else the first."""
        named = [output for output in self._outputs if output.step.name == self._task.name]
        return next(iter(named or self._outputs), None)
