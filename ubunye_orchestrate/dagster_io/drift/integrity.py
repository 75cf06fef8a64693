"""The asset check ``integrity``: what is stored now, held against the last receipt.

It finds what changed behind Dagster's back: a table overwritten by hand, a file that is truncated or half
written, a partition that is gone. It is no proof against somebody who may choose the rows.
"""

# Without "from __future__ import annotations": Dagster looks at the class that annotates ``context``.
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetKey,
    AssetRecordsFilter,
    AssetsDefinition,
    MetadataValue,
    asset_check,
)

from ubunye_orchestrate.compare.custody import judge_custody
from ubunye_orchestrate.compare.findings import Change, Finding, Verdict
from ubunye_orchestrate.compare.render import markdown
from ubunye_orchestrate.compare.text import short_hash
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.drift.selection import AssetGiven, AssetsGiven, keys_in
from ubunye_orchestrate.dagster_io.receipts import metadata as keys
from ubunye_orchestrate.dagster_io.receipts.metadata import receipt_of_event
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.storage.delta_tables import DeltaTables
from ubunye_orchestrate.dagster_io.storage.parquet_tables import ParquetTables
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.masking import mask_text
from ubunye_orchestrate.records.model import RunRecord, StepRecord
from ubunye_orchestrate.records.steps import step_from_fingerprint
from ubunye_orchestrate.records.values import inspect_value, not_hashed

__all__ = ["INTEGRITY", "build_integrity_checks"]

INTEGRITY = "integrity"

_DEFAULT_IO_MANAGER = "io_manager"
_NAMED_AT_MOST = 5
_State = Literal["unchanged", "changed", "unreadable", "unknown"]


@dataclass(frozen=True)
class _Stored:
    """One table or partition, as it is stored now."""

    name: str
    state: _State
    why: str
    run_id: str
    finding: Finding | None = None


def build_integrity_checks(
    assets: AssetsGiven,
    *,
    blocking: bool = False,
    receipts: Receipts | None = None,
    load_as: type | None = None,
    io_manager_key: str = _DEFAULT_IO_MANAGER,
    among: Sequence[AssetGiven] | None = None,
) -> list[AssetChecksDefinition]:
    """Return the check ``integrity`` for each asset: it loads what is stored through the asset's IO manager,
    hashes it, and holds it against the newest receipt, each partition against its own.

    It reads every row, one partition at a time; run it at night (``build_drift_schedule(checks=[...])``). It
    fails with an error for what changed and for what cannot be loaded, and with a warning for what cannot be
    judged: an asset without a receipt, rows that the IO manager may have changed on their way.

    ``load_as`` is the type to ask the IO manager for, as an input's annotation would; Arrow is what the IO
    manager of this package is asked for. ``io_manager_key`` is that of assets that are given by key.
    ``receipts`` says how timestamps without a zone are hashed. ``among`` are the project's assets where
    ``assets`` is a selection that goes by the graph.
    """
    given = [*(among or ()), *(() if not isinstance(assets, Sequence) else assets)]
    managers = {
        key: one.get_io_manager_key_for_asset_key(key)
        for one in given
        if isinstance(one, AssetsDefinition)
        for key in one.keys
    }
    return [
        _check(key, managers.get(key, io_manager_key), load_as, receipts or Receipts(), blocking)
        for key in keys_in(assets, among)
    ]


def _check(
    key: AssetKey, manager: str, load_as: type | None, receipts: Receipts, blocking: bool
) -> AssetChecksDefinition:
    @asset_check(
        asset=key,
        name=INTEGRITY,
        blocking=blocking,
        required_resource_keys={manager},
        description="Whether what is stored now is what the last receipt says.",
    )
    def integrity(context: AssetCheckExecutionContext) -> AssetCheckResult:
        zone = receipts.settings().naive_timestamps
        return _result(_Look(context, key, manager, load_as, zone).all())

    return integrity


@dataclass(frozen=True)
class _Look:
    """One look at everything that is stored of an asset."""

    context: AssetCheckExecutionContext
    key: AssetKey
    manager: str
    load_as: type | None
    zone: str

    def all(self) -> list[_Stored]:
        return [self._one(partition, event) for partition, event in self._newest().items()]

    def _newest(self) -> Mapping[str | None, upstream.AssetEvent]:
        """Return the newest materialization, or that of each partition that the asset still has."""
        instance = self.context.instance
        definition = upstream.partitions_in_step(upstream.step_of_check(self.context), self.key)
        if definition is None:
            events = instance.fetch_materializations(AssetRecordsFilter(asset_key=self.key), limit=1).records
            return {None: upstream.asset_event(events[0])} if events else {}
        made = instance.get_materialized_partitions(self.key)
        there = set(definition.get_partition_keys(dynamic_partitions_store=instance))
        ids = upstream.latest_materialization_ids(instance, self.key, sorted(made & there))
        events_by_id = upstream.materializations_by_id(instance, ids.values())
        return {partition: events_by_id[ids[partition]] for partition in sorted(ids)}

    def _one(self, partition: str | None, event: upstream.AssetEvent) -> _Stored:
        name = self.key.to_user_string() + ("" if partition is None else f"[{partition}]")
        try:
            record = receipt_of_event(event)
        except InvalidRecordError as e:
            return _Stored(name, "unknown", str(e), event.run_id)
        if record is None:
            why = "its materialization has no receipt (is its IO manager wrapped?)"
            return _Stored(name, "unknown", why, event.run_id)
        output, why = _output_of(record, partition)
        if output is None:
            return _Stored(name, "unknown", why, event.run_id)
        try:
            value = self._load(partition)
        except Exception as e:  # noqa: BLE001 - an IO manager raises what it likes for a file that is broken
            why = f"cannot be loaded: {mask_text(f'{type(e).__name__}: {e}')}"
            return _Stored(name, "unreadable", why, event.run_id)
        stored = self._judge(name, output, self._hash(value, partition), event)
        if stored.state == "changed" and self._newest().get(partition) != event:
            return _Stored(name, "unknown", "it was materialized while it was read", event.run_id)
        return stored

    def _load(self, partition: str | None) -> Any:
        manager = getattr(self.context.resources, self.manager)
        load_as = self.load_as or (pa.Table if isinstance(manager, ParquetTables | DeltaTables) else None)
        step = upstream.step_of_check(self.context)
        with upstream.partitions_from(self.context.instance):
            return manager.load_input(
                upstream.context_to_load(step, self.key, partition, self.manager, load_as)
            )

    def _hash(self, value: Any, partition: str | None) -> Fingerprint:
        if isinstance(value, Mapping) and set(value) == {partition}:
            value = value[partition]
        seen = inspect_value(value)
        if seen.nature == "other":
            return not_hashed(f"what was loaded is no table ({seen.what})")
        return fingerprint(value, naive_timestamps=self.zone)

    def _judge(self, name: str, output: StepRecord, now: Fingerprint, event: upstream.AssetEvent) -> _Stored:
        if now.data_hash is not None and now.data_hash == output.data_hash:
            # Equal is equal, whatever way the rows took.
            return _Stored(name, "unchanged", "", event.run_id)
        read = step_from_fingerprint(
            output.name,
            "input",
            now,
            format=output.format,
            location=output.location,
            basis="recomputed",
            scope=output.hash_scope or "passed_rows",
        )
        finding = judge_custody(read, [output])
        if finding.kind != "custody_broken":
            return _Stored(name, "unknown", _why_not(finding, output, now), event.run_id)
        rows = f"{output.row_count} rows in the receipt, {now.row_count} stored"
        changes = (
            Change(f"data of {name}", short_hash(output.data_hash), short_hash(now.data_hash)),
            Change(f"rows of {name}", str(output.row_count), str(now.row_count)),
        )
        told = Finding("custody_broken", "error", name, f"{name} is not stored as its receipt says", changes)
        return _Stored(name, "changed", f"is not what its receipt says ({rows})", event.run_id, told)


def _why_not(finding: Finding, output: StepRecord, now: Fingerprint) -> str:
    """Say why what is stored was not held against the receipt, and what would make it possible."""
    if now.data_hash is not None and output.data_hash is not None and output.hash_scope == "passed_rows":
        rows = f"{output.row_count} rows in the receipt, {now.row_count} stored"
        return (
            f"it has another hash than its receipt ({rows}), which proves nothing (scope passed_rows): the "
            "receipt is of the rows that the IO manager was given, and it may give back others of the same "
            "table (another type, a text for a number); only equal ones can be judged. Where an IO manager "
            "hashes what it stores, as ParquetIOManager does, all are"
        )
    return str(finding.details.get("why", finding.text))


def _output_of(record: RunRecord, partition: str | None) -> tuple[StepRecord | None, str]:
    """Return the output of a receipt that is of exactly this table or partition; why there is none."""
    stored_with = (record.dagster or {}).get("partition_keys") or []
    if partition is not None and stored_with != [partition]:
        return None, f"its receipt is of {len(stored_with)} partitions together"
    key = (record.dagster or {}).get("asset_key") or []
    named = [step for step in record.outputs if step.name == "/".join(str(part) for part in key)]
    if len(named) != 1:
        return None, "its receipt has no output of the asset's own name"
    if named[0].data_hash is None:
        return None, f"its receipt has no hash ({named[0].hash_error or 'not recorded'})"
    return named[0], ""


def _result(found: Sequence[_Stored]) -> AssetCheckResult:
    if not found:
        return _not_judged("it was never materialized", {})
    wrong = [one for one in found if one.state in ("changed", "unreadable")]
    unknown = [one for one in found if one.state == "unknown"]
    shown: dict[str, MetadataValue] = {
        "ubunye/unchanged": MetadataValue.int(sum(one.state == "unchanged" for one in found))
    }
    if unknown:
        shown["ubunye/not_judged"] = MetadataValue.text(
            "; ".join(f"{one.name}: {one.why}" for one in unknown)
        )
    if wrong:
        findings = tuple(one.finding for one in wrong if one.finding is not None)
        if findings:
            shown[keys.CHANGES] = MetadataValue.md(markdown(Verdict(findings)))
        shown["ubunye/run"] = MetadataValue.dagster_run(wrong[0].run_id)
        return AssetCheckResult(
            passed=False,
            severity=AssetCheckSeverity.ERROR,
            description=_named(wrong),
            metadata=shown,
        )
    if unknown:
        # What was not checked must not look as if it had passed.
        return _not_judged(_named(unknown), shown)
    return AssetCheckResult(passed=True, description=f"stored as {_receipts(len(found))}", metadata=shown)


def _not_judged(why: str, shown: Mapping[str, MetadataValue]) -> AssetCheckResult:
    return AssetCheckResult(
        passed=False,
        severity=AssetCheckSeverity.WARN,
        description=f"not judged: {why}",
        metadata={"ubunye/not_judged": MetadataValue.text(why), **shown},
    )


def _receipts(count: int) -> str:
    return "its receipt says" if count == 1 else f"its {count} receipts say"


def _named(found: Sequence[_Stored]) -> str:
    told = "; ".join(
        f"{one.name}{':' if one.state == 'unknown' else ''} {one.why}" for one in found[:_NAMED_AT_MOST]
    )
    left = len(found) - _NAMED_AT_MOST
    return f"{told}; and {left} more" if left > 0 else told
