"""Two run records side by side: what is equal, what differs, and what cannot be told.

Pure: two :class:`RunRecord` in, one frozen :class:`Comparison` out. Nothing here says why something changed;
what may be said of that is in ``compare.drift``. The four states of a piece of evidence are in
``compare.evidence``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ubunye_orchestrate.compare.circumstances import (
    CodeComparison,
    EnvironmentComparison,
    compare_code,
    compare_environment,
)
from ubunye_orchestrate.compare.evidence import NOT_RECORDED, Evidence, State, evidence_of
from ubunye_orchestrate.compare.steps import ColumnChanges, PartitionChanges, StepComparison, compare_steps
from ubunye_orchestrate.records.model import RunRecord

__all__ = [
    "CodeComparison",
    "ColumnChanges",
    "Comparison",
    "EnvironmentComparison",
    "Evidence",
    "PartitionChanges",
    "State",
    "StepComparison",
    "compare_records",
]


@dataclass(frozen=True)
class Comparison:
    """Everything that two records say about each other. ``a`` is the earlier one, the baseline."""

    a: RunRecord
    b: RunRecord
    task: Evidence
    profile: Evidence
    partitions: Evidence
    """Sorted partition keys; empty for an unpartitioned asset."""
    status: Evidence
    duration: Evidence
    """Seconds."""
    version: Evidence
    """The declared code version; unknown where a side declares none."""
    config: Evidence
    variables: Evidence
    variable_changes: Mapping[str, tuple[Any, Any]]
    backend: Evidence
    time_zone: Evidence
    code: CodeComparison
    environment: EnvironmentComparison
    inputs: tuple[StepComparison, ...]
    """Matched by name (and partition), sorted by label."""
    outputs: tuple[StepComparison, ...]


def compare_records(a: RunRecord, b: RunRecord) -> Comparison:
    """Compare two records of one task, the earlier one first. Raises nothing for what a record holds."""
    variables_known = a.record_version > 1 and b.record_version > 1
    names = sorted({*a.variables, *b.variables})
    moved = {
        name: (a.variables.get(name), b.variables.get(name))
        for name in names
        if (name in a.variables, a.variables.get(name)) != (name in b.variables, b.variables.get(name))
    }
    variables_state: State = "unknown" if not variables_known else "changed" if moved else "unchanged"
    return Comparison(
        a=a,
        b=b,
        task=evidence_of(a.task_path, b.task_path),
        profile=evidence_of(a.profile, b.profile),
        partitions=evidence_of(partition_keys(a), partition_keys(b)),
        status=evidence_of(a.status, b.status),
        duration=evidence_of(a.duration_sec, b.duration_sec),
        version=evidence_of(a.version or None, b.version or None),
        config=evidence_of(a.config_hash, b.config_hash),
        variables=Evidence(
            a.variables, b.variables, variables_state, None if variables_known else NOT_RECORDED
        ),
        variable_changes=moved if variables_known else {},
        backend=evidence_of(a.backend or None, b.backend or None),
        time_zone=evidence_of(a.time_zone, b.time_zone),
        code=compare_code(a, b),
        environment=compare_environment(a, b),
        inputs=compare_steps(a.inputs, b.inputs, "input", a.record_version, b.record_version),
        outputs=compare_steps(a.outputs, b.outputs, "output", a.record_version, b.record_version),
    )


def partition_keys(record: RunRecord) -> tuple[str, ...]:
    """Return the record's partition keys, sorted; empty for an unpartitioned asset or another writer's."""
    keys = (record.dagster or {}).get("partition_keys")
    return tuple(sorted(str(key) for key in keys)) if isinstance(keys, list | tuple) else ()
