"""What a materialization's panel shows of its record, and the record's way to the mirror."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dagster import DagsterLogManager, MetadataValue

from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.drift import judge, judge_first
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.compare.render import markdown
from ubunye_orchestrate.dagster_io.receipts import metadata as keys
from ubunye_orchestrate.dagster_io.receipts.assembly import with_dagster
from ubunye_orchestrate.dagster_io.receipts.baseline import Baseline
from ubunye_orchestrate.dagster_io.receipts.metadata import compact_receipt, table_metadata
from ubunye_orchestrate.errors import UbunyeError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.masking import mask_text
from ubunye_orchestrate.records.model import RunRecord
from ubunye_orchestrate.records.store import RecordStore

__all__ = [
    "Mirrored",
    "frame_metadata",
    "harmless",
    "mirror",
    "mirror_metadata",
    "receipt_metadata",
    "with_baseline",
]


@dataclass(frozen=True)
class Mirrored:
    """Where a record was written, or why it was not."""

    path: str | None
    problem: str | None


@contextmanager
def harmless(log: DagsterLogManager, what: str) -> Iterator[None]:
    """Log what goes wrong inside, with its traceback, as a warning of the run, and go on."""
    try:
        yield
    except Exception:  # noqa: BLE001 - a receipt never fails a run that would have succeeded
        log.warning(f"ubunye: {what} failed; the run goes on.\n{traceback.format_exc()}")


def mirror(store: RecordStore, record: RunRecord, log: DagsterLogManager) -> Mirrored:
    """Write the record's file. A mirror out of reach is a warning: the event log has the receipt too."""
    try:
        return Mirrored(store.save(record), None)
    except UbunyeError as e:
        log.warning(f"ubunye: the record was not mirrored; its receipt is in the event log: {e}")
        return Mirrored(None, mask_text(str(e)))


def with_baseline(record: RunRecord, baseline: Baseline | None) -> RunRecord:
    """Return the record with its baseline named, or why it has none."""
    if baseline is None:
        return record
    if baseline.missing is not None:
        return with_dagster(record, not_compared=baseline.missing)
    named: dict[str, Any] = {"run_id": baseline.run_id, "storage_id": baseline.storage_id}
    if baseline.kind != "previous":
        named["kind"] = baseline.kind
    record = with_dagster(record, baseline=named)
    return with_dagster(record, baselines=dict(baseline.named)) if baseline.named else record


def receipt_metadata(
    record: RunRecord,
    baseline: Baseline | None,
    mirrored: Mirrored,
    part: Fingerprint,
    columns: Sequence[str],
    policy: DriftPolicy,
    log: DagsterLogManager,
    *,
    is_file: bool = False,
) -> dict[str, MetadataValue]:
    """Return everything that a materialization shows of its record.

    ``part`` is what was stored and ``columns`` the order of its columns; ``is_file`` shows its location too.
    """
    shown = frame_metadata(part, columns, (record.dagster or {}).get("partition_keys") or ())
    if record.duration_sec is not None:
        shown[keys.SECONDS] = MetadataValue.float(record.duration_sec)
    shown[keys.HASH_SECONDS] = MetadataValue.float(round(part.seconds, 6))
    with harmless(log, "telling what changed"):
        shown[keys.CHANGES] = MetadataValue.md(_changes(record, baseline, policy))
    shown.update(mirror_metadata(mirrored))
    location = record.outputs[0].location if record.outputs else None
    if is_file and location is not None:
        if "://" in location:
            shown["dagster/uri"] = MetadataValue.text(location)
        else:
            shown["path"] = MetadataValue.path(location)
    shown[keys.RECEIPT] = MetadataValue.json(compact_receipt(record, mirrored.path))
    return shown


def frame_metadata(
    part: Fingerprint, columns: Sequence[str], partitions: Sequence[str]
) -> dict[str, MetadataValue]:
    """Return what a materialization shows of a frame that was stored, for all these partitions at once."""
    shown = table_metadata(part, columns, partitioned=bool(partitions))
    if part.data_hash is not None:
        shown[keys.DATA_HASH] = MetadataValue.text(part.data_hash)
    if len(partitions) > 1:
        shown = _of_all(shown, part, len(partitions))
    if part.error is not None:
        shown[keys.HASH_ERROR] = MetadataValue.text(mask_text(part.error))
    return shown


def _of_all(
    shown: Mapping[str, MetadataValue], part: Fingerprint, partitions: int
) -> dict[str, MetadataValue]:
    """Take from what several partitions show what is known of all of them only, and say so."""
    rows = "unknown" if part.row_count is None else f"{part.row_count:,}"
    told = f"rows of all {partitions:,} partitions: {rows}; data hash of them: {part.data_hash or 'none'}"
    left = {name: one for name, one in shown.items() if name not in (keys.PARTITION_ROWS, keys.DATA_HASH)}
    return {**left, keys.STORED_TOGETHER: MetadataValue.text(told)}


def mirror_metadata(mirrored: Mirrored) -> dict[str, MetadataValue]:
    """Return where the record was written, or why it was not."""
    shown: dict[str, MetadataValue] = {}
    if mirrored.path is not None:
        shown[keys.RECORD_PATH] = MetadataValue.path(mirrored.path)
    if mirrored.problem is not None:
        shown[keys.MIRROR_ERROR] = MetadataValue.text(mirrored.problem)
    return shown


def _changes(record: RunRecord, baseline: Baseline | None, policy: DriftPolicy) -> str:
    if baseline is None or baseline.missing is not None:
        return markdown(judge_first(record, policy))
    which = f"the {baseline.kind} run {baseline.run_id}"
    if baseline.record is None:
        return f"Not compared: {which} is no longer in the event log, or cannot be read."
    told = markdown(judge(compare_records(baseline.record, record), policy))
    return told if baseline.kind == "previous" else f"{told}\n\nHeld against {which}."
