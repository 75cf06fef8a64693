"""Receipts for assets that read and store by themselves, without an IO manager: three lines in the asset."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from dagster import AssetExecutionContext, AssetKey, MetadataValue, OpExecutionContext

from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts import metadata as keys
from ubunye_orchestrate.dagster_io.receipts.assembly import build_record
from ubunye_orchestrate.dagster_io.receipts.baseline import find_baseline
from ubunye_orchestrate.dagster_io.receipts.expecting import check_read, check_table, not_checked, rules_of
from ubunye_orchestrate.dagster_io.receipts.ledger import Checked, StepEntry, Stored
from ubunye_orchestrate.dagster_io.receipts.metadata import table_metadata
from ubunye_orchestrate.dagster_io.receipts.panel import harmless, mirror, receipt_metadata, with_baseline
from ubunye_orchestrate.dagster_io.receipts.policies import policy_in
from ubunye_orchestrate.dagster_io.receipts.producers import producers_of
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
from ubunye_orchestrate.records.model import HashScope, StepRecord
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.steps import step_of_frame
from ubunye_orchestrate.records.store import RecordStore
from ubunye_orchestrate.records.values import columns_in_order, inspect_value

__all__ = ["ReceiptRun"]

_Frame = TypeVar("_Frame")


_ANOTHER_FRAME = "another frame"


class _Output(NamedTuple):
    step: StepRecord
    hashed: Fingerprint
    frame: object


class _Check(NamedTuple):
    frame: object
    shape: object
    """As the frame had it when it was checked: it may have been changed in place since."""
    checked: Checked


class ReceiptRun:
    """One asset's receipt while the asset runs: what it read, what it wrote (``Receipts.run``).

    ``with receipts.run(context) as run:``, then ``run.read(name, frame)`` for each table read and
    ``run.wrote(name, frame)`` for each one stored. At the end of the block the record is mirrored and the
    receipt stands on the asset's materialization; a block that fails leaves the record of a failure at the
    end of the step. Nothing here fails the asset but a rule that ``run.read`` or ``run.expect`` finds broken.
    """

    def __init__(
        self,
        context: AssetExecutionContext | OpExecutionContext,
        settings: ReceiptSettings,
        asset: AssetKey | None,
    ) -> None:
        """Raises ConfigurationError where it is not clear which asset the receipt is of."""
        self._log = context.log
        self._step = upstream.step_of(context)
        self._settings = settings
        self._entry: StepEntry | None = None
        self._task = self._task_of(asset)
        self._outputs: list[_Output] = []
        self._checks: list[_Check] = []

    def __enter__(self) -> ReceiptRun:
        """Begin the block. Raises ConfigurationError where the asset has a record already, or a block."""
        with harmless(self._log, "beginning a receipt"):
            self._entry = entry_of_step(self._step, self._settings, has_worked=True)
        if self._entry is not None and self._task.key is not None:
            self._refuse_a_second_record(self._entry, self._task.key)
            self._entry.blocks[self._task.key] = None
            # What a block before it has checked, which failed, was not written.
            self._entry.checked.pop(self._task.name, None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is not None and self._entry is not None and self._task.key is not None:
            self._entry.blocks[self._task.key] = error_text(error)
        if error is None and self._outputs:
            with harmless(self._log, "writing the receipt"):
                self._finish()

    def read(
        self,
        name: str,
        frame: _Frame,
        *,
        format: str | None = None,  # noqa: A002 - the field's name in the record
        location: str | None = None,
        scope: HashScope = "passed_rows",
        source_version: dict[str, Any] | None = None,
    ) -> _Frame:
        """Note a table that the asset read, and return it.

        ``name`` is the upstream asset (``raw/orders``), so that it counts as that declared dependency, or any
        other name. A frame in memory is hashed, unless ``hash_inputs`` is off, and so is a Spark frame, which
        is computed for it; a reader or another lazy frame is not touched. ``source_version`` says which state
        of the source it is (``SparkResource.pinned`` gives one). ``scope`` is ``stored_table`` where the
        frame is all that the upstream asset stored.
        Raises ExpectationError where it breaks a rule about this input (``on_input``) of severity ``fail``.
        """
        with harmless(self._log, f"noting input {name}"):
            if self._entry is not None:
                key = AssetKey(name.split("/"))
                producer = None
                if self._task.asset is not None and key in self._task.asset.parents:
                    producer = producers_of(self._step.instance, key, (), partitioned=False)
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
        rules = rules_of(self._step, self._task.key)
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
        location: str | None = None,
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
        shown: dict[str, MetadataValue] = {}
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
            shown = table_metadata(hashed, columns_in_order(frame), partitioned=bool(self._task.partitions))
            if hashed.data_hash is not None:
                shown[keys.DATA_HASH] = MetadataValue.text(hashed.data_hash)
            if hashed.error is not None:
                shown[keys.HASH_ERROR] = MetadataValue.text(hashed.error)
        return shown

    @property
    def commit_note(self) -> str:
        """What a commit of the asset's own should say of its run: a table's history then names the receipt.

        The text for ``userMetadata``: an option of Spark's Delta writer, ``SparkResource.commits`` for a
        merge or any SQL, custom metadata of that name in delta-rs.
        """
        return note_of_run(key_of_step(self._step), self._task, self._settings, self._task.partitions)

    def _refuse_a_second_record(self, entry: StepEntry, key: AssetKey) -> None:
        """Two records of one run would share a file, and the materialization would show the first one's."""
        name, expected = self._task.name, "expected one block that notes all that the asset reads and stores"
        # A block that failed has left no record: the asset may try again.
        if key in entry.blocks and entry.blocks[key] is None:
            raise ConfigurationError(f"receipts.run got a second block of {name} in one step; {expected}")
        if any(one.record.task_name == self._task.task_name for one in entry.stored):
            raise ConfigurationError(
                f"receipts.run got a block of {name} when its IO manager had stored it: {name} has a record "
                f"already; {expected}, before its result is returned"
            )

    def _note_check(self, frame: object) -> None:
        name = self._task.name
        if self._entry is not None and name in self._entry.checked:
            self._checks.append(_Check(frame, _shape(frame), self._entry.checked[name]))
            self._entry.checked[name] = _together(check.checked for check in self._checks)

    def _settle_checks(self, entry: StepEntry, written: object) -> None:
        """Keep the results of the frame that was written; else say in the others that they are of another."""
        if not self._checks:
            return
        its = [one.checked for one in self._checks if one.frame is written and one.shape == _shape(written)]
        if not its:
            its = [_of_another_frame(one.checked) for one in self._checks]
            if any(one.get("checked") == _ANOTHER_FRAME for checked in its for one in checked.results):
                self._log.warning(
                    f"ubunye: {self._task.name}: run.expect got another frame than run.wrote, so its rules "
                    f"were not held against what was written; their results say checked: {_ANOTHER_FRAME}"
                )
        entry.checked[self._task.name] = _together(its)

    def _note_backend(self, frame: object) -> None:
        if self._entry is None:
            return
        seen = inspect_value(frame)
        self._entry.backend = self._entry.backend or seen.backend
        if seen.backend == "spark":
            spark_frame: Any = native(frame)
            note_session(self._entry, spark_frame.sparkSession)

    def _task_of(self, asset: AssetKey | None) -> Task:
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
        definition, partitions = upstream.partitions_of_step(self._step)
        variables = partition_variables(definition, partitions)
        key = key_of_step(self._step)
        return task_of_asset(key, asset, made[asset].group, partitions, assets, variables=variables)

    def _finish(self) -> None:
        entry, task = self._entry, self._task
        if entry is None or task.key is None:
            return
        if task.name not in entry.checked and (rules := rules_of(self._step, task.key)):
            reason = "the asset stores by itself; call run.expect(frame) before it does"
            held = {one["rule"] for one in entry.checked_inputs.get(task.name, ())}
            left = [rule for rule in rules if rule.name not in held]
            entry.checked[task.name] = not_checked(task.name, left, reason)
        main = self._main()
        self._settle_checks(entry, main.frame)
        entry.backend = inspect_value(main.frame).backend or entry.backend
        self._note_backend(main.frame)
        # Several tables, none called as the asset is: none of their hashes is the asset's.
        version = main.hashed.data_hash if len(self._outputs) == 1 or main.step.name == task.name else None
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
            policy = policy_in(upstream.metadata_in_step(self._step, task.key), task.key) or policy
        baseline = find_baseline(
            self._step.instance, task.key, task.partitions, self._settings.profile, policy.baseline
        )
        record = with_baseline(record, baseline)
        mirrored = mirror(RecordStore(self._settings.root), record, self._log)
        shown = receipt_metadata(
            record, baseline, mirrored, main.hashed, columns_in_order(main.frame), policy, self._log
        )
        if version is not None:
            upstream.set_data_version(self._step, task.key, version)
        # Dagster lets these win over what the asset returns; so only ours, which nobody else gives.
        ours = {name: value for name, value in shown.items() if name.startswith("ubunye/")}
        for partition in task.partitions or (None,):
            upstream.add_asset_metadata(self._step, task.key, partition, ours)
        entry.stored.append(Stored(record, self._settings))

    def _main(self) -> _Output:
        """Return the output that is the asset's own table: the one called as the asset is, else the first."""
        named = [output for output in self._outputs if output.step.name == self._task.name]
        return (named or self._outputs)[0]


def _shape(frame: object) -> object:
    """Return what shows at a glance that a table in memory was changed; None for anything else."""
    if inspect_value(frame).nature != "whole":
        return None
    table: Any = frame
    return len(table), columns_in_order(frame)


def _together(several: Iterable[Checked]) -> Checked:
    found = list(several)
    results = [one for checked in found for one in checked.results]
    distinct = [one for at, one in enumerate(results) if one not in results[:at]]
    return Checked(tuple(distinct), sum(checked.seconds for checked in found))


def _of_another_frame(checked: Checked) -> Checked:
    """Say so in each result but those of inputs, and of a plan: that already says that rows may differ."""
    marked = (
        one if one.get("side") or one.get("checked") else {**one, "checked": _ANOTHER_FRAME}
        for one in checked.results
    )
    return replace(checked, results=tuple(marked))
