"""One table that a run read or wrote, as a step of its record."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.masking import mask_location, mask_text
from ubunye_orchestrate.records.evidence import held_by_a_record
from ubunye_orchestrate.records.model import Direction, HashBasis, HashScope, Producer, StepRecord
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.values import fingerprint_value, inspect_value, not_hashed

__all__ = ["step_from_fingerprint", "step_of_frame", "step_without_hash"]

_INPUTS_OFF = "not hashed: hash_inputs is off"


def step_from_fingerprint(
    name: str,
    direction: Direction,
    fingerprint: Fingerprint,
    *,
    format: str | None,  # noqa: A002 - the field's name in the record
    location: str | None,
    scope: HashScope,
    basis: HashBasis = "materialised",
    producer: Sequence[Producer] | None = None,
    source_version: dict[str, Any] | None = None,
    source_version_at_hash: dict[str, Any] | None = None,
    source_changed: bool | None = None,
    source_note: str | None = None,
    reused_from: str | None = None,
    made_by: str | None = None,
) -> StepRecord:
    """Return the step of a table that was fingerprinted, or whose fingerprinting failed.

    ``scope`` says which rows were hashed and ``basis`` which pass over them; both stay empty when there is no
    data hash. Credentials in ``location`` are masked. ``reused_from`` is the run id of the receipt that the
    hash was taken from; ``made_by`` the op whose output an input is that is no asset.
    """
    hashed = fingerprint.data_hash is not None
    sums = fingerprint.lane_sums
    return StepRecord(
        name=name,
        direction=direction,
        format=format,
        location=None if location is None else mask_location(location),
        row_count=fingerprint.row_count,
        schema_hash=fingerprint.schema_hash,
        data_hash=fingerprint.data_hash,
        hash_method=fingerprint.method,
        hash_error=None if fingerprint.error is None else mask_text(fingerprint.error),
        hash_seconds=round(fingerprint.seconds, 6),
        hash_reused_from=reused_from,
        hash_basis=basis if hashed else None,
        source_version=source_version,
        source_version_at_hash=source_version_at_hash,
        source_changed=source_changed,
        source_note=source_note,
        lane_sums=None if sums is None else (str(sums[0]), str(sums[1])),
        hash_scope=scope if hashed else None,
        hash_path=fingerprint.path_taken or None if hashed else None,
        producer=None if producer is None else list(producer),
        made_by=made_by,
        columns=list(fingerprint.columns) or None,
    )


def step_of_frame(
    name: str,
    direction: Direction,
    frame: object,
    settings: ReceiptSettings,
    *,
    format: str | None,  # noqa: A002 - the field's name in the record
    location: str | os.PathLike[str] | None,
    scope: HashScope,
    producer: Sequence[Producer] | None = None,
    source_version: dict[str, Any] | None = None,
) -> tuple[StepRecord, Fingerprint]:
    """Hash a frame that a run says that it read or wrote, and return its step and its fingerprint.

    A table in memory is hashed, and a Spark frame, which is computed for it. A reader or another lazy frame
    stays as it is: the run may not have read it yet, or would compute it twice. Texts are taken as such,
    whatever the user gave: a path is a location.
    """
    if direction == "input" and not settings.hash_inputs:
        hashed = not_hashed(_INPUTS_OFF)
    else:
        hashed = fingerprint_value(frame, settings.naive_timestamps, settings.budget, compute_spark=True)
    step = step_from_fingerprint(
        str(name),
        direction,
        hashed,
        format=_text(format),
        location=_text(location),
        scope=scope,
        basis="recomputed" if inspect_value(frame).nature == "lazy" else "materialised",
        producer=producer,
        source_version=None if source_version is None else held_by_a_record(source_version, "source_version"),
    )
    return step, hashed


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def step_without_hash(
    name: str,
    direction: Direction,
    *,
    reason: str | None = None,
    format: str | None = None,  # noqa: A002 - the field's name in the record
    location: str | os.PathLike[str] | None = None,
    row_count: int | None = None,
    producer: Sequence[Producer] | None = None,
) -> StepRecord:
    """Return the step of something that was not fingerprinted, and why (``reason`` becomes ``hash_error``).

    Without a reason nothing was tried: an output that a failed run never made.
    """
    return StepRecord(
        name=str(name),
        direction=direction,
        format=_text(format),
        location=None if location is None else mask_location(str(location)),
        row_count=row_count,
        hash_error=None if reason is None else mask_text(reason),
        producer=None if producer is None else list(producer),
    )
