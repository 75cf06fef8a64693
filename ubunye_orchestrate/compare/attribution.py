"""Which evidence moved between two records, and which is missing.

The evidence of a record is shared by all of its outputs, so it is gathered once for each comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ubunye_orchestrate.compare.comparison import Comparison, Evidence, StepComparison
from ubunye_orchestrate.compare.findings import Change, Finding, Kind, Severity
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.compare.text import short_hash
from ubunye_orchestrate.masking import MASK
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["CODE_FOLDER", "Attribution", "attribute", "input_set_change"]

CODE_FOLDER = "the code folder"
"""How ``changed`` names the hash of the whole folder, where no function is known to have changed."""


@dataclass(frozen=True)
class Attribution:
    """The evidence of one comparison."""

    findings: tuple[Finding, ...]
    """A finding for each kind of evidence that moved."""
    changed: tuple[str, ...]
    """Name of each thing that moved, as ``changed_with`` lists it."""
    missing: tuple[str, ...]
    """What would have to be known, and is not, to say that nothing else moved."""
    ignored: tuple[str, ...]
    """Versions that moved and that the policy does not count."""
    masked: tuple[str, ...]
    """Variables whose value is masked in both records, so that a change of it would not show."""
    has_inputs: bool
    """Whether either side read, or declares, an input."""


def attribute(comparison: Comparison, policy: DriftPolicy, *, output_changed: bool) -> Attribution:
    """Gather what moved and what is missing. ``output_changed`` decides severities only."""
    gathered = _Gathering(comparison, policy, output_changed)
    gathered.identity()
    gathered.inputs()
    gathered.code()
    gathered.environment()
    gathered.configuration()
    return Attribution(
        findings=tuple(gathered.findings),
        changed=tuple(gathered.changed),
        missing=tuple(gathered.missing),
        ignored=tuple(gathered.ignored),
        masked=tuple(
            name
            for name, value in comparison.b.variables.items()
            if value == MASK and comparison.a.variables.get(name) == MASK
        ),
        has_inputs=bool(
            comparison.inputs or _declared_inputs(comparison.a) or _declared_inputs(comparison.b)
        ),
    )


class _Gathering:
    """One pass over the kinds of evidence; each method appends what it finds."""

    def __init__(self, comparison: Comparison, policy: DriftPolicy, output_changed: bool) -> None:
        self.comparison = comparison
        self.policy = policy
        self.output_changed = output_changed
        self.findings: list[Finding] = []
        self.changed: list[str] = []
        self.missing: list[str] = []
        self.ignored: list[str] = []

    def identity(self) -> None:
        """Another partition, profile or task: listed with what changed, so that nothing is unexplained."""
        for what, evidence in (
            ("partition", self.comparison.partitions),
            ("profile", self.comparison.profile),
            ("task", self.comparison.task),
        ):
            if evidence.state == "changed":
                self.changed.append(f"{what} {_side(evidence.a)} -> {_side(evidence.b)}")

    def inputs(self) -> None:
        for step in self.comparison.inputs:
            set_change = input_set_change(self.comparison, step)
            if set_change is not None:
                self._input_added_or_removed(step, set_change)
            elif step.data.state == "changed":
                self._input_changed(step)
            elif step.data.state != "unchanged":
                self.missing.append(f"input {step.label}: {step.data.why}")
                kind: Kind = "unknown" if step.data.state == "unknown" else "not_comparable"
                self.add(
                    kind,
                    step.label,
                    f"whether input {step.label} changed is {_state(step.data)}",
                    severity=self.policy.severity(kind),
                    details={"direction": "input", "why": step.data.why},
                )
            if step.recomputed:
                self.missing.append(f"input {step.label}: hashed from rows that were computed again")
        recorded = {step.name for step in self.comparison.inputs}
        for record, side in ((self.comparison.a, "earlier"), (self.comparison.b, "later")):
            for name in _declared_inputs(record):
                if name not in recorded:
                    self.missing.append(f"input {name}: declared but not recorded in the {side} run")

    def _input_added_or_removed(self, step: StepComparison, how: str) -> None:
        self.changed.append(f"input {step.label} ({how})")
        self.add(
            "input_changed",
            step.label,
            f"input {step.label} was {how}",
            (Change(f"input {step.label}", short_hash(step.data.a), short_hash(step.data.b)),),
            details={"how": how},
        )

    def _input_changed(self, step: StepComparison) -> None:
        self.changed.append(f"input {step.label}")
        changes = [Change(f"input {step.label}", short_hash(step.data.a), short_hash(step.data.b))]
        if step.row_count.state == "changed":
            changes.append(
                Change(f"rows of input {step.label}", str(step.row_count.a), str(step.row_count.b))
            )
        text = f"input {step.label} changed"
        if step.types_changed_values_not:
            text += " in its types, not in its values"
        told = [
            f"{what} {', '.join(keys)}"
            for what, keys in (
                ("partitions added:", step.partitions.added),
                ("partitions no longer read:", step.partitions.removed),
                ("partitions materialised anew:", step.partitions.materialised_anew),
            )
            if keys
        ]
        self.add(
            "input_changed",
            step.label,
            f"{text} ({'; '.join(told)})" if told else text,
            tuple(changes),
            details={
                "partitions_added": list(step.partitions.added),
                "partitions_removed": list(step.partitions.removed),
                "partitions_materialised_anew": list(step.partitions.materialised_anew),
                "types_only": step.types_changed_values_not,
            },
        )

    def code(self) -> None:
        code = self.comparison.code
        if code.why is not None:
            self.missing.append(f"code: {code.why}")
        moved = [*code.changed, *code.added, *code.removed]
        if moved:
            self.changed += [f"code of {name}" for name in moved]
            before, after = code.functions.a, code.functions.b
            told = [
                f"{what} {', '.join(names)}"
                for what, names in (("", code.changed), ("added:", code.added), ("removed:", code.removed))
                if names
            ]
            self.add(
                "code_changed",
                "code",
                f"code changed: {'; '.join(part.strip() for part in told)}",
                tuple(
                    Change(f"code of {n}", short_hash(before.get(n)), short_hash(after.get(n))) for n in moved
                ),
                details={
                    "changed": list(code.changed),
                    "added": list(code.added),
                    "removed": list(code.removed),
                },
            )
        elif code.folder.state == "changed":
            # The folder's hash alone: some file of it, of which it is not known that this asset runs it.
            self.changed.append(CODE_FOLDER)
            known = code.functions.state == "unchanged"
            self.add(
                "code_changed",
                "code folder",
                "something in the code folder changed, "
                + (
                    "but none of the functions that this asset reaches"
                    if known
                    else "which code is not known"
                ),
                (Change("code folder", short_hash(code.folder.a), short_hash(code.folder.b)),),
                severity=_at_most_note(self.policy.severity("code_changed")),
                details={"folder_only": True, "functions_known": known},
            )
        version = self.comparison.version
        if version.state == "changed":
            self.changed.append(f"declared code version {version.a} -> {version.b}")
            self.add(
                "code_changed",
                "declared code version",
                f"the declared code version moved from {version.a} to {version.b}",
                (Change("declared code version", version.a, version.b),),
                severity=_at_most_note(self.policy.severity("code_changed")),
                details={"declared_version": [version.a, version.b]},
            )

    def environment(self) -> None:
        environment = self.comparison.environment
        if environment.state == "unknown":
            self.missing.append(f"environment: {environment.hash.why}")
            return
        if environment.state == "unchanged":
            return
        counted = []
        for name, (before, after) in environment.changes.items():
            moved = _moved(name, before, after)
            if self.policy.ignores(name, before, after):
                self.ignored.append(moved)
            else:
                counted.append((name, before, after, moved))
        if not counted and self.ignored:
            return
        texts = [moved for *_, moved in counted] or ["the environment (which part is not recorded)"]
        self.changed += texts
        self.add(
            "environment_changed",
            "environment",
            f"environment changed: {', '.join(texts)}",
            tuple(Change(name, _side(before), _side(after)) for name, before, after, _ in counted),
            details={"changes": {name: [before, after] for name, before, after, _ in counted}},
            merge_key="environment: " + ", ".join(texts),
        )

    def configuration(self) -> None:
        comparison = self.comparison
        moved: list[tuple[str, Change]] = []
        if comparison.config.state == "unknown":
            self.missing.append(f"configuration: {comparison.config.why}")
        elif comparison.config.state == "changed":
            before, after = short_hash(comparison.config.a), short_hash(comparison.config.b)
            moved.append(("configuration", Change("configuration", before, after)))
        if comparison.variables.state == "unknown":
            self.missing.append(f"variables: {comparison.variables.why}")
        for name, (before, after) in comparison.variable_changes.items():
            moved.append((f"variable {name}", Change(f"variable {name}", _side(before), _side(after))))
        for what, evidence in (("backend", comparison.backend), ("time zone", comparison.time_zone)):
            if evidence.state == "changed":
                moved.append((what, Change(what, _side(evidence.a), _side(evidence.b))))
        if not moved:
            return
        self.changed += [name for name, _ in moved]
        self.add(
            "configuration_changed",
            "configuration",
            f"{', '.join(name for name, _ in moved)} changed",
            tuple(change for _, change in moved),
            details={"changes": {c.what: [c.before, c.after] for _, c in moved}},
        )

    def add(
        self,
        kind: Kind,
        subject: str,
        text: str,
        changes: tuple[Change, ...] = (),
        *,
        severity: Severity | None = None,
        details: dict[str, Any] | None = None,
        merge_key: str | None = None,
    ) -> None:
        if severity is None:
            severity = self.policy.severity(kind, output_changed=self.output_changed)
        self.findings.append(Finding(kind, severity, subject, text, changes, details or {}, merge_key))


def input_set_change(comparison: Comparison, step: StepComparison) -> str | None:
    """Say that an input was ``added`` or ``removed``; None where both sides have it, or where it may only be
    missing: the run failed before it was read, or declares it and did not record it.
    """
    if step.a is None and _did_not_read(comparison.a, step.name):
        return "added"
    if step.b is None and _did_not_read(comparison.b, step.name):
        return "removed"
    return None


def _did_not_read(record: RunRecord, name: str) -> bool:
    """Whether the lack of an input in a record says that the run had no such input."""
    if any(step.name == name for step in record.inputs):
        return True  # another partition of it was read, and recorded
    return record.status == "success" and name not in _declared_inputs(record)


def _declared_inputs(record: RunRecord) -> tuple[str, ...]:
    names = (record.dagster or {}).get("declared_inputs")
    return tuple(str(name) for name in names) if isinstance(names, list | tuple) else ()


def _state(evidence: Evidence) -> str:
    return f"{evidence.state}: {evidence.why}" if evidence.why else evidence.state


def _at_most_note(severity: Severity) -> Severity:
    return "none" if severity == "none" else "note"


def _moved(name: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"{name} {after} added"
    return f"{name} {before} removed" if after is None else f"{name} {before} -> {after}"


def _side(value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, tuple):  # partition keys
        return str(value[0]) if len(value) == 1 else f"{value[0]}..{value[-1]}"
    return str(value)
