"""A comparison and a verdict as JSON documents.

The first part of a comparison's document is, field for field, what ``ubunye lineage compare --json`` prints,
so that what reads the one reads the other. What is ours stands beside it under keys of its own, and no key
of the first part is changed or added to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ubunye_orchestrate.compare.comparison import Comparison, Evidence, StepComparison
from ubunye_orchestrate.compare.findings import Verdict
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["as_json", "verdict_as_json"]

# The engine names these under "environment_changes"; the rest of an environment stands under our key.
_NOT_NAMED_BY_THE_ENGINE = frozenset({"implementation", "machine", "java"})


def as_json(comparison: Comparison, verdict: Verdict | None = None) -> dict[str, Any]:
    """Return the engine's document, then ours: the states, code, columns, partitions and the verdict."""
    environment = comparison.environment
    document: dict[str, Any] = {
        "task": comparison.b.task_path,
        "a": _run(comparison.a),
        "b": _run(comparison.b),
        "status": _pair(comparison.status),
        "duration_sec": _pair(comparison.duration),
        "config_hash": _pair(comparison.config),
        "code_hash": _pair(comparison.code.folder),
        "environment_hash": _pair(environment.hash),
        "environment_changes": {
            name: {"a": a, "b": b}
            for name, (a, b) in environment.changes.items()
            if name not in _NOT_NAMED_BY_THE_ENGINE
        },
        "inputs": {step.label: _step(step) for step in comparison.inputs},
        "outputs": {step.label: _step(step) for step in comparison.outputs},
    }
    document |= {
        "profile": _pair(comparison.profile),
        "partitions": {
            "a": list(comparison.partitions.a),
            "b": list(comparison.partitions.b),
            "changed": comparison.partitions.state == "changed",
        },
        "version": _evidence(comparison.version),
        "backend": _evidence(comparison.backend),
        "time_zone": _evidence(comparison.time_zone),
        "variables": {
            **_state(comparison.variables),
            "changes": {name: {"a": a, "b": b} for name, (a, b) in comparison.variable_changes.items()},
        },
        "configuration": _state(comparison.config),
        "code": {
            "state": comparison.code.state,
            **({"why": comparison.code.why} if comparison.code.why else {}),
            "folder": _state(comparison.code.folder),
            "functions": _state(comparison.code.functions),
            "changed": list(comparison.code.changed),
            "added": list(comparison.code.added),
            "removed": list(comparison.code.removed),
        },
        "environment": {
            **_state(environment.hash),
            "changes": {name: {"a": a, "b": b} for name, (a, b) in environment.changes.items()},
        },
        "input_evidence": _step_evidence(comparison.inputs),
        "output_evidence": _step_evidence(comparison.outputs),
    }
    if verdict is not None:
        document["verdict"] = verdict_as_json(verdict)
    return document


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON values: passed, severity, findings and what changed with an output."""
    return {
        "passed": verdict.passed,
        "severity": verdict.severity,
        "changed_with": list(verdict.changed_with),
        "findings": [
            {
                "kind": finding.kind,
                "severity": finding.severity,
                "subject": finding.subject,
                "text": finding.text,
                "changes": [asdict(change) for change in finding.changes],
                "details": dict(finding.details),
            }
            for finding in verdict.findings
        ],
    }


def _run(record: RunRecord) -> dict[str, Any]:
    return {"run_id": record.run_id, "started_at": record.started_at, "status": record.status}


def _pair(evidence: Evidence) -> dict[str, Any]:
    # "changed" as the engine has it: a plain inequality, so that null and null are not "changed". What is
    # known and what is not stands in the states below.
    return {"a": evidence.a, "b": evidence.b, "changed": evidence.a != evidence.b}


def _step(step: StepComparison) -> dict[str, Any]:
    data = {
        "a": step.data.a,
        "b": step.data.b,
        "method_a": step.a.hash_method if step.a else None,
        "method_b": step.b.hash_method if step.b else None,
        "state": step.data.state,
    }
    if step.data.state == "unknown":
        data["why"] = step.data.why
    return {"row_count": _pair(step.row_count), "schema_hash": _pair(step.schema), "data_hash": data}


def _state(evidence: Evidence) -> dict[str, Any]:
    return {"state": evidence.state, **({"why": evidence.why} if evidence.why else {})}


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {"a": evidence.a, "b": evidence.b, **_state(evidence)}


def _step_evidence(steps: Sequence[StepComparison]) -> dict[str, Any]:
    return {
        step.label: {
            "name": step.name,
            "rows": _state(step.row_count),
            "schema": _state(step.schema),
            "data": _state(step.data),
            "types_changed_values_not": step.types_changed_values_not,
            "columns": None
            if step.columns is None
            else {
                "added": [list(pair) for pair in step.columns.added],
                "removed": [list(pair) for pair in step.columns.removed],
                "retyped": [list(triple) for triple in step.columns.retyped],
            },
            "partitions": {
                "added": list(step.partitions.added),
                "removed": list(step.partitions.removed),
                "materialised_anew": list(step.partitions.materialised_anew),
            },
            "scope_a": step.a.hash_scope if step.a else None,
            "scope_b": step.b.hash_scope if step.b else None,
        }
        for step in steps
    }
