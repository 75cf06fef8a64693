"""A receipt that was cut for its size, completed from the mirrored record that it names.

Where the mirror is out of reach, or has another record there, the receipt stays as it is: what was cut is
unknown, and no comparison takes it for equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ubunye_orchestrate.errors import UbunyeError
from ubunye_orchestrate.records.model import RunRecord, StepRecord
from ubunye_orchestrate.records.paths import record_path
from ubunye_orchestrate.records.store import LINEAGE_DIR, RecordStore

__all__ = ["completed"]

# What was cut -> the fields of the record that have it. Columns and details are those of steps.
_FIELDS = {
    "expectations": "expectations",
    "timings": "timings",
    "functions": "code",
    "variables": "variables",
    "error": "error",
}
_OF_INPUTS = {"columns", "details of inputs", "inputs"}


def completed(receipt: RunRecord) -> RunRecord:
    """Return a receipt with what was cut from it, as far as its mirrored record can be read and fits it."""
    said = receipt.model_extra or {}
    cut = {str(name) for name in said.get("cut") or ()}
    path = said.get("record_path")
    if not cut or not isinstance(path, str):
        return receipt
    whole = _mirrored(receipt, path)
    if whole is None:
        return receipt
    fields: dict[str, Any] = receipt.model_dump(mode="json", exclude_unset=True, exclude={"cut"})
    theirs = whole.model_dump(mode="json", exclude_unset=True)
    fields.update({field: theirs.get(field) for name, field in _FIELDS.items() if name in cut})
    if "expectations" in cut:
        keys = (None, *_partition_keys(receipt))
        fields["expectations"] = [one for one in whole.expectations if one.get("partition") in keys]
    if "variables" in cut and _partition_keys(receipt) != _partition_keys(whole):
        # Those of one partition among several are not in the record of all of them.
        fields["variables"] = {}
        cut.discard("variables")
    if cut & _OF_INPUTS:
        fields["inputs"] = theirs.get("inputs", [])
        fields["outputs"] = [_with_columns(step, whole.outputs) for step in receipt.outputs]
    if "inputs" in cut:
        declared = (whole.dagster or {}).get("declared_inputs")
        fields["dagster"] = {**(receipt.dagster or {}), "declared_inputs": declared}
    return RunRecord.model_validate(fields)


def _mirrored(receipt: RunRecord, path: str) -> RunRecord | None:
    """Return the record that a receipt names; None where there is none, or one of another run or table."""
    names = (receipt.usecase, receipt.package, receipt.task_name, receipt.run_id)
    below = f"/{LINEAGE_DIR}/{record_path(*names)}"
    if not path.endswith(below):
        return None
    try:
        whole = RecordStore(path.removesuffix(below)).load(*names)
    except UbunyeError:
        return None
    alone = _partition_keys(receipt) != _partition_keys(whole)
    return whole if alone or _hashes(whole) == _hashes(receipt) else None


def _with_columns(step: StepRecord, outputs: Sequence[StepRecord]) -> dict[str, Any]:
    known = (one.columns for one in outputs if (one.name, one.schema_hash) == (step.name, step.schema_hash))
    columns = step.columns or next(known, None)
    fields = step.model_dump(mode="json", exclude_unset=True)
    return fields if columns is None else {**fields, "columns": columns}


def _partition_keys(record: RunRecord) -> list[str]:
    return [str(key) for key in (record.dagster or {}).get("partition_keys") or ()]


def _hashes(record: RunRecord) -> list[tuple[str, str | None]]:
    return [(step.name, step.data_hash) for step in record.outputs]
