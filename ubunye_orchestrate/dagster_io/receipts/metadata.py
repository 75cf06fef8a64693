"""What a materialization shows of its receipt, and how a receipt is read back from an event.

The receipt in an event is compact, at most ``MAX_RECEIPT_BYTES`` of JSON: first columns and expectations are
cut, then what else a comparison needs least, and it says what was cut and where the whole record is. What is
cut becomes unknown to a later comparison, never equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dagster import (
    EventLogRecord,
    MetadataValue,
    TableColumn,
    TableSchema,
    TableSchemaMetadataValue,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.records.codec import decode_dumped
from ubunye_orchestrate.records.model import RunRecord

__all__ = [
    "CHANGES",
    "DATA_HASH",
    "ERROR",
    "HASH_ERROR",
    "HASH_SECONDS",
    "MAX_RECEIPT_BYTES",
    "MIRROR_ERROR",
    "PARTITION_ROWS",
    "RECEIPT",
    "RECORD_PATH",
    "SECONDS",
    "STORED_TOGETHER",
    "compact_receipt",
    "free_names",
    "receipt_of",
    "receipt_of_event",
    "table_metadata",
]

RECEIPT = "ubunye/receipt"
DATA_HASH = "ubunye/data_hash"
HASH_ERROR = "ubunye/hash_error"
HASH_SECONDS = "ubunye/hash_seconds"
SECONDS = "ubunye/seconds"
RECORD_PATH = "ubunye/record_path"
MIRROR_ERROR = "ubunye/mirror_error"
CHANGES = "ubunye/changes"
ERROR = "ubunye/error"
STORED_TOGETHER = "ubunye/stored_together"
PARTITION_ROWS = "dagster/partition_row_count"

MAX_RECEIPT_BYTES = 64 * 1024
_MAX_SCHEMA_COLUMNS = 1_000

_CUT = "cut from the receipt for its size; the whole record has it"
# What a comparison needs of an input; the rest of a step is cut before these are.
_STEP_CORE = (
    "name",
    "direction",
    "row_count",
    "schema_hash",
    "data_hash",
    "hash_method",
    "hash_error",
    "hash_scope",
    "lane_sums",
    "source_changed",
    "made_by",
)

_OURS = "ubunye/"
# What one of our keys is called where the user has taken it.
_SUFFIX = " (receipt)"
_RENAMED = f"{RECEIPT}{_SUFFIX}"


def compact_receipt(record: RunRecord, record_path: str | None) -> dict[str, Any]:
    """Return the record as the JSON that stands in an event, at most ``MAX_RECEIPT_BYTES`` of it.

    ``record_path`` is where the whole record was written; None when it was not.
    """
    receipt = record.model_dump(mode="json", exclude_none=True)
    # Empty lists and mappings say nothing that their absence does not.
    receipt = {name: value for name, value in receipt.items() if value not in ([], {})}
    if record_path is not None:
        receipt["record_path"] = record_path
    cuts: list[str] = []
    for name, cut in _CUTS:
        if _size(receipt) <= MAX_RECEIPT_BYTES:
            break
        if cut(receipt):
            cuts.append(name)
            receipt["cut"] = cuts
    return receipt


def receipt_of(metadata: Mapping[str, MetadataValue], *, source: str) -> RunRecord | None:
    """Return the receipt among an event's metadata, None when there is none.

    ``source`` is how messages name the event. Raises InvalidRecordError for one that is no record, or is of a
    newer version than this package reads.
    """
    said = {name: upstream.json_of(metadata[name]) for name in (RECEIPT, _RENAMED) if name in metadata}
    return _receipt(said, source)


def receipt_of_event(event: EventLogRecord | upstream.AssetEvent) -> RunRecord | None:
    """Return the receipt of a materialization, None without one. InvalidRecordError: it cannot be read."""
    one = event if isinstance(event, upstream.AssetEvent) else upstream.asset_event(event)
    where = f"materialization {one.storage_id} of {one.asset_key.to_user_string()}"
    if one.error is not None:
        raise InvalidRecordError(f"{where} cannot be read ({one.error})")
    return _receipt(one.metadata, where)


def _receipt(metadata: Mapping[str, bytes | upstream.NotJson], source: str) -> RunRecord | None:
    renamed = metadata.get(_RENAMED)
    # Where the user took the key, theirs may be anything: a receipt too, copied from another event.
    said = metadata.get(RECEIPT) if renamed is None or isinstance(renamed, upstream.NotJson) else renamed
    if said is None:
        return None
    if isinstance(said, upstream.NotJson):
        raise InvalidRecordError(
            f"{source}: {RECEIPT} is {said.kind}; expected JSON; another program uses this key"
        )
    return decode_dumped(said, source=source)


def table_metadata(
    fingerprint: Fingerprint, column_order: Sequence[str], *, partitioned: bool
) -> dict[str, MetadataValue]:
    """Return the standard keys that Dagster's pages know, as far as they are known: rows and column schema.

    ``column_order`` is the order of the columns in the frame; a fingerprint has them sorted.
    """
    known: dict[str, MetadataValue] = {}
    if fingerprint.row_count is not None:
        name = PARTITION_ROWS if partitioned else "dagster/row_count"
        known[name] = MetadataValue.int(fingerprint.row_count)
    types = dict(fingerprint.columns)
    if 0 < len(types) <= _MAX_SCHEMA_COLUMNS:
        order = [name for name in column_order if name in types]
        names = order if len(order) == len(types) else list(types)
        known["dagster/column_schema"] = TableSchemaMetadataValue(
            TableSchema(columns=[TableColumn(name, types[name]) for name in names])
        )
    return known


def free_names(metadata: Mapping[str, MetadataValue], taken: Mapping[str, Any]) -> dict[str, MetadataValue]:
    """Return what can be added beside ``taken``, the user's own keys, which win.

    A standard key that is taken is left out, since theirs says the same. One of ours is renamed to
    ``<name> (receipt)``, so that nothing is lost.
    """
    free: dict[str, MetadataValue] = {}
    for name, value in metadata.items():
        if name not in taken:
            free[name] = value
        elif name.startswith(_OURS) and f"{name}{_SUFFIX}" not in taken:
            free[f"{name}{_SUFFIX}"] = value
    return free


def _size(receipt: Mapping[str, Any]) -> int:
    return len(json.dumps(receipt, separators=(",", ":")).encode())


def _steps(receipt: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*receipt.get("inputs", ()), *receipt.get("outputs", ())]


def _cut_columns(receipt: dict[str, Any]) -> bool:
    cut = [step.pop("columns", None) for step in _steps(receipt)]
    return any(columns is not None for columns in cut)


def _cut_field(name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda receipt: receipt.pop(name, None) is not None


def _cut_step_details(receipt: dict[str, Any]) -> bool:
    for step in receipt.get("inputs", ()):
        for name in [name for name in step if name not in _STEP_CORE]:
            del step[name]
    return bool(receipt.get("inputs"))


def _cut_functions(receipt: dict[str, Any]) -> bool:
    if not receipt.get("code"):
        return False
    receipt["code"] = {"function": receipt["code"].get("function"), "functions": {}, "error": _CUT}
    return True


def _cut_inputs(receipt: dict[str, Any]) -> bool:
    if not receipt.get("inputs"):
        return False
    # One that stands for all: a comparison must see that inputs are not known.
    name = f"{len(receipt['inputs'])} inputs"
    receipt["inputs"] = [{"name": name, "direction": "input", "hash_error": _CUT}]
    receipt.get("dagster", {}).pop("declared_inputs", None)
    return True


_CUTS: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
    ("columns", _cut_columns),
    ("expectations", _cut_field("expectations")),
    ("timings", _cut_field("timings")),
    ("details of inputs", _cut_step_details),
    ("functions", _cut_functions),
    ("inputs", _cut_inputs),
    ("variables", _cut_field("variables")),
    ("error", _cut_field("error")),
)
