"""From a comparison to a verdict: what changed, what changed with it, and what cannot be told.

The evidence shows what changed together, never what caused what, and the texts keep to that. An output is
called unexplained only when it changed while every piece of evidence is recorded on both sides and equal.
"""

from __future__ import annotations

from collections.abc import Iterable

from ubunye_orchestrate.compare.attribution import Attribution, attribute
from ubunye_orchestrate.compare.comparison import Comparison, StepComparison
from ubunye_orchestrate.compare.custody import judge_custody
from ubunye_orchestrate.compare.findings import Change, Finding, Kind, Severity, Verdict, worst
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.compare.text import short_hash
from ubunye_orchestrate.records.model import RunRecord, StepRecord

__all__ = [
    "Change",
    "DriftPolicy",
    "Finding",
    "Severity",
    "Verdict",
    "judge",
    "judge_age",
    "judge_custody",
    "judge_first",
]

_DEFAULT_POLICY = DriftPolicy()

_POSSIBLE_REASONS = (
    "an input that is not declared, the clock, randomness, the order of rows (rows-v1 does not see it, a "
    "transform may), or the order of a floating-point sum (usual on Spark)"
)


def judge(comparison: Comparison, policy: DriftPolicy = _DEFAULT_POLICY) -> Verdict:
    """Judge a run against its baseline.

    A run that did not succeed is not judged as data drift, nor is one whose baseline did not: the evidence
    that moved is reported as notes.
    """
    if comparison.b.status != "success":
        return _not_judged(comparison, policy, _failure(comparison.b, "the run"))
    if comparison.a.status != "success":
        verdict = _not_judged(comparison, policy, _failure(comparison.a, "the baseline run"))
        bounds = [finding for step in comparison.outputs for finding in _row_bounds(step, policy)]
        return Verdict((*verdict.findings, *bounds))
    changed = any(step.data.state == "changed" for step in comparison.outputs)
    evidence = attribute(comparison, policy, output_changed=changed)
    findings: list[Finding] = []
    for step in comparison.outputs:
        findings += _judge_output(step, evidence, policy)
    if not comparison.outputs:
        findings.append(_unknown("outputs", "neither run recorded an output: nothing to compare", policy))
    return Verdict((*findings, *evidence.findings), evidence.changed if changed else ())


def judge_first(record: RunRecord, policy: DriftPolicy = _DEFAULT_POLICY) -> Verdict:
    """Judge a run that has no baseline, by what needs none.

    Where it is no first run, the record says why there was nothing to compare with
    (``dagster.not_compared``).
    """
    if record.status != "success":
        text = f"{_failure(record, 'the run')}; its outputs are not judged"
        return Verdict((Finding("unknown", policy.severity("unknown"), "run", text),))
    why = (record.dagster or {}).get("not_compared")
    text = why if isinstance(why, str) else "first record, nothing to compare with"
    findings = [Finding("first_record", policy.severity("first_record"), record.task_path, text)]
    for output in record.outputs:
        if output.data_hash is None:
            why = output.hash_error or "no hash was recorded"
            findings.append(_unknown(output.name, f"output {output.name} has no hash: {why}", policy))
        findings += _bounds_of(output.name, None, output, policy)
    return Verdict(tuple(findings))


def judge_age(label: str, hours: float, policy: DriftPolicy) -> Finding | None:
    """Judge how many hours ago the newest materialization was made; None while it may be that old."""
    if policy.expected_hours is None or hours <= policy.expected_hours:
        return None
    return Finding(
        "overdue",
        policy.severity("overdue"),
        label,
        f"{label} was last materialized {hours:.1f} hours ago; one is expected every "
        f"{policy.expected_hours:g} hours",
        details={"hours": round(hours, 3), "expected_hours": policy.expected_hours},
    )


def _failure(record: RunRecord, who: str) -> str:
    if record.status == "running":
        return f"{who} has not ended"
    # The whole message, which may be long, stands in the record.
    error = (record.error or "").strip().partition("\n")[0]
    return f"{who} failed ({error})" if error else f"{who} failed"


def _not_judged(comparison: Comparison, policy: DriftPolicy, why: str) -> Verdict:
    evidence = attribute(comparison, policy, output_changed=False)
    return Verdict((_unknown("run", f"{why}; data drift is not judged", policy), *evidence.findings))


def _unknown(subject: str, text: str, policy: DriftPolicy, kind: Kind = "unknown") -> Finding:
    return Finding(kind, policy.severity(kind), subject, text)


# ---------------------------------------------------------------- one output


def _judge_output(step: StepComparison, evidence: Attribution, policy: DriftPolicy) -> Iterable[Finding]:
    if step.a is None:
        yield Finding(
            "first_record",
            policy.severity("first_record"),
            step.label,
            f"output {step.label} is new, nothing to compare with",
        )
    elif step.b is None:
        yield _unknown(step.label, f"output {step.label} is not in the later record", policy)
    elif step.data.state == "changed":
        yield from _judge_change(step, evidence, policy)
    elif step.data.state != "unchanged":
        kind: Kind = "unknown" if step.data.state == "unknown" else "not_comparable"
        yield _unknown(
            step.label,
            f"whether output {step.label} changed is {step.data.state}: {step.data.why}",
            policy,
            kind,
        )
        yield from _schema(step, policy)
    yield from _row_bounds(step, policy)


def _judge_change(step: StepComparison, evidence: Attribution, policy: DriftPolicy) -> Iterable[Finding]:
    attributed = list(_attribution(step, evidence, policy))
    schema = list(_schema(step, policy))
    # What changed with the output decides how bad the change is, unless the policy says so itself.
    severity = policy.severities.get("data_changed") or worst(
        finding.severity for finding in (*attributed, *_counted(evidence.findings))
    )
    changes = [Change(f"data of {step.label}", short_hash(step.data.a), short_hash(step.data.b))]
    text = f"output {step.label} changed"
    if step.row_count.state == "changed":
        before, after = step.row_count.a, step.row_count.b
        changes.append(Change(f"rows of {step.label}", str(before), str(after)))
        text += f" ({before} -> {after} rows, {after - before:+})"
    if step.types_changed_values_not:
        text += " (its types, not its values)"
    with_it = changed_together(evidence.changed)
    if not with_it and not policy.deterministic:
        with_it = "which is not judged further: the asset is declared not deterministic"
    yield Finding(
        "data_changed",
        severity,
        step.label,
        f"{text}, {with_it}" if with_it else text,
        tuple(changes),
        {"from": step.data.a, "to": step.data.b, "rows_from": step.row_count.a, "rows_to": step.row_count.b},
    )
    yield from schema
    yield from attributed


def _counted(findings: Iterable[Finding]) -> list[Finding]:
    """Keep the evidence that moved: an input that cannot be compared is named, and is not what moved."""
    return [finding for finding in findings if finding.kind not in ("unknown", "not_comparable")]


def changed_together(changed: tuple[str, ...]) -> str:
    """Say what changed with an output, and no more than that; empty when nothing recorded did."""
    if not changed:
        return ""
    if len(changed) == 1:
        return f"together with {changed[0]} (not proof of cause)"
    return f"together with {', '.join(changed[:-1])} and {changed[-1]} (cannot be separated)"


def _attribution(step: StepComparison, evidence: Attribution, policy: DriftPolicy) -> Iterable[Finding]:
    missing = list(evidence.missing)
    if step.recomputed:
        missing.append(f"output {step.label}: hashed from rows that were computed again")
    if not evidence.has_inputs:
        yield Finding(
            "source_changed",
            policy.severity("source_changed"),
            step.label,
            f"output {step.label} changed and has no recorded inputs: its source is not seen",
        )
    if missing:
        yield Finding(
            "not_attributable",
            policy.severity("not_attributable"),
            step.label,
            f"output {step.label} changed and some evidence is missing ({'; '.join(missing)})",
            details={"missing": missing},
        )
        return
    if evidence.changed or not evidence.has_inputs or not policy.deterministic:
        return
    apart = (
        f", apart from what the policy ignores ({', '.join(evidence.ignored)})" if evidence.ignored else ""
    )
    masked = (
        f"a value that is masked in the records ({', '.join(evidence.masked)}), " if evidence.masked else ""
    )
    yield Finding(
        "unexplained",
        policy.severity("unexplained"),
        step.label,
        f"output {step.label} changed and the recorded evidence is equal{apart}; possible reasons are "
        f"{masked}{_POSSIBLE_REASONS}",
        details={"ignored": list(evidence.ignored)},
    )


def _schema(step: StepComparison, policy: DriftPolicy) -> Iterable[Finding]:
    if step.schema.state != "changed":
        return
    columns = step.columns
    changes: list[Change] = []
    told: list[str] = []
    if columns:
        changes += [Change(f"column {n} of {step.label}", "-", kind) for n, kind in columns.added]
        changes += [Change(f"column {n} of {step.label}", kind, "-") for n, kind in columns.removed]
        changes += [Change(f"column {n} of {step.label}", old, new) for n, old, new in columns.retyped]
        told += [f"{name} ({kind}) added" for name, kind in columns.added]
        told += [f"{name} ({kind}) removed" for name, kind in columns.removed]
        told += [f"{name} {old} -> {new}" for name, old, new in columns.retyped]
    else:
        changes.append(
            Change(f"schema of {step.label}", short_hash(step.schema.a), short_hash(step.schema.b))
        )
    named = ", ".join(told) if told else "which columns is not recorded"
    details = {
        "added": [list(pair) for pair in columns.added] if columns else [],
        "removed": [list(pair) for pair in columns.removed] if columns else [],
        "retyped": [list(triple) for triple in columns.retyped] if columns else [],
        "columns_recorded": columns is not None,
    }
    if step.types_changed_values_not:
        yield Finding(
            "types_changed_values_not",
            policy.severity("types_changed_values_not"),
            step.label,
            f"the schema of output {step.label} changed, its values did not: {named}",
            tuple(changes),
            details,
        )
        # A column of nulls leaves the rows' sums alone, and is a change of the schema all the same.
        if columns is None or not (columns.added or columns.removed):
            return
        changes = []
    yield Finding(
        "schema_changed",
        policy.severity("schema_changed"),
        step.label,
        f"the schema of output {step.label} changed: {named}",
        tuple(changes),
        details,
    )


# ---------------------------------------------------------------- rows


def _row_bounds(step: StepComparison, policy: DriftPolicy) -> Iterable[Finding]:
    if step.b is not None:
        baseline = step.a.row_count if step.a is not None else None
        yield from _bounds_of(step.label, baseline, step.b, policy)


def _bounds_of(label: str, before: int | None, output: StepRecord, policy: DriftPolicy) -> Iterable[Finding]:
    absolute = (policy.min_rows, policy.max_rows)
    relative = (policy.max_row_decrease, policy.max_row_increase)
    after = output.row_count
    if after is None:
        if any(bound is not None for bound in (*absolute, *relative)):
            yield _unknown(
                label, f"the rows of output {label} are not known: their bounds are not judged", policy
            )
        return
    broken: list[str] = []
    if policy.min_rows is not None and after < policy.min_rows:
        broken.append(f"fewer than {policy.min_rows}")
    if policy.max_rows is not None and after > policy.max_rows:
        broken.append(f"more than {policy.max_rows}")
    if before is not None:
        if policy.max_row_decrease is not None and before - after > before * policy.max_row_decrease:
            broken.append(f"down from {before}, more than {policy.max_row_decrease:.4g} of it")
        if policy.max_row_increase is not None and after - before > before * policy.max_row_increase:
            broken.append(f"up from {before}, more than {policy.max_row_increase:.4g} of it")
    if broken:
        yield Finding(
            "rows_out_of_bounds",
            policy.severity("rows_out_of_bounds"),
            label,
            f"output {label} has {after} rows: {'; '.join(broken)}",
            (Change(f"rows of {label}", "-" if before is None else str(before), str(after)),),
            {"rows": after, "baseline_rows": before},
        )
