"""Records as the engine's ``--json`` prints them: every field that it knows, in its order, then the others.

A record of an older version gets the later fields empty, as the engine fills them.
"""

from __future__ import annotations

from typing import Any

from ubunye_orchestrate.records.model import RunRecord, StepRecord

__all__ = ["record_document", "trace_document"]

_RECORD: dict[str, Any] = {
    "run_id": None,
    "task_path": None,
    "usecase": None,
    "package": None,
    "task_name": None,
    "profile": None,
    "model": None,
    "version": None,
    "config_hash": None,
    "started_at": None,
    "ended_at": None,
    "duration_sec": None,
    "status": None,
    "inputs": None,
    "outputs": None,
    "error": None,
    "engine_version": "",
    "backend": "",
    "variables": {},
    "record_version": None,
    "code_hash": None,
    "environment": {},
    "environment_hash": None,
    "timings": [],
    "expectations": [],
    "llm_calls": [],
    "llm_budget": {},
    "time_zone": None,
}
_STEP = (
    "name",
    "direction",
    "format",
    "location",
    "row_count",
    "schema_hash",
    "data_hash",
    "hash_method",
    "hash_error",
    "hash_seconds",
    "hash_reused_from",
    "hash_basis",
    "source_version",
    "source_version_at_hash",
    "source_changed",
    "source_note",
)


def record_document(record: RunRecord) -> dict[str, Any]:
    """Return a whole record."""
    stored = record.model_dump(mode="json")
    if record.environment is not None:
        stored["environment"] = record.environment.model_dump(mode="json", exclude_unset=True)
    stored["inputs"] = [_step_document(step) for step in record.inputs]
    stored["outputs"] = [_step_document(step) for step in record.outputs]
    document = {
        name: stored[name] if name in record.model_fields_set or stored[name] is not None else empty
        for name, empty in _RECORD.items()
    }
    return document | _others(stored, document)


def _step_document(step: StepRecord) -> dict[str, Any]:
    stored = step.model_dump(mode="json")
    document = {name: stored[name] for name in _STEP}
    return document | _others(stored, document)


def _others(stored: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return our own fields, and those of an unknown writer, where they say something."""
    return {name: value for name, value in stored.items() if name not in document and value is not None}


def trace_document(record: RunRecord) -> dict[str, Any]:
    """Return the flow of one run: the engine's fields, then what else is known of it."""
    whole = record_document(record)
    return {
        "task": record.task_path,
        "run_id": record.run_id,
        "status": record.status,
        "error": record.error,
        "inputs": whole["inputs"],
        "transform": transform_name(record),
        "outputs": whole["outputs"],
        **{
            name: whole[name]
            for name in ("code_hash", "environment", "timings", "expectations", "code", "dagster")
            if name in whole
        },
    }


def transform_name(record: RunRecord) -> str:
    """Name what made the outputs: the asset's function, or the file that the engine runs."""
    function = (record.code or {}).get("function")
    return str(function) if function else "transformations.py"
