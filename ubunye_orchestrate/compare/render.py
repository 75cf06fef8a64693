"""A comparison and its verdict for people: a terminal's text, a Markdown table, one line.

Hashes are shortened, text of records is escaped (``compare.text``), and nothing that is unknown is printed
as equal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from ubunye_orchestrate.compare.comparison import Comparison, Evidence, StepComparison
from ubunye_orchestrate.compare.document import as_json, verdict_as_json
from ubunye_orchestrate.compare.drift import judge
from ubunye_orchestrate.compare.findings import SEVERITIES, Finding, Verdict
from ubunye_orchestrate.compare.text import markdown_cell, printable, short_hash, short_run_id
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["as_json", "markdown", "summary", "terminal", "verdict_as_json"]

_RULE = "-" * 60
_WIDTH = 80


def terminal(comparison: Comparison, verdict: Verdict | None = None, *, full_hashes: bool = False) -> str:
    """Return the comparison in the layout of ``ubunye lineage compare``, then code, columns and findings.

    ``verdict`` is judged with the default policy where none is given. Lines keep to 80 columns unless
    ``full_hashes`` is set or a single name is longer.
    """
    verdict = judge(comparison) if verdict is None else verdict
    return "\n".join(_lines(comparison, verdict, full_hashes))


def _lines(comparison: Comparison, verdict: Verdict, full: bool) -> Iterator[str]:
    yield _RULE
    yield f"Comparing runs for '{printable(comparison.b.task_path)}'"
    yield f"  A: {_run(comparison.a)}"
    yield f"  B: {_run(comparison.b)}"
    yield _RULE
    yield _line("status", comparison.status, 2)
    yield f"  duration_sec: {_seconds(comparison.duration.a)} -> {_seconds(comparison.duration.b)}"
    for name, evidence in (("profile", comparison.profile), ("version", comparison.version)):
        if evidence.state == "changed":
            yield _line(name, evidence, 2)
    yield _line("config_hash", comparison.config, 2, full=full, hashes=True)
    for name, (a, b) in comparison.variable_changes.items():
        yield f"    {printable(name)}: {_value(a)} -> {_value(b)}"
    yield _line("code_hash", comparison.code.folder, 2, full=full, hashes=True)
    yield from _functions(comparison)
    yield _line("environment_hash", comparison.environment.hash, 2, full=full, hashes=True)
    if comparison.environment.state != "unknown":
        for name, (before, after) in comparison.environment.changes.items():
            yield f"    {printable(name)}: {_value(before)} -> {_value(after)}"
    for name, evidence in (("backend", comparison.backend), ("time_zone", comparison.time_zone)):
        if evidence.state == "changed":
            yield _line(name, evidence, 2)
    for step in (*comparison.inputs, *comparison.outputs):
        yield from _step(step, full)
    yield _RULE
    yield from _findings(verdict)


def _run(record: RunRecord) -> str:
    return f"{short_run_id(record.run_id)}  {printable(record.started_at or '-')[:19]}  {record.status}"


def _value(value: object) -> str:
    return "-" if value is None else printable(value)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _line(name: str, evidence: Evidence, indent: int, *, full: bool = False, hashes: bool = False) -> str:
    def side(value: object) -> str:
        return short_hash(value, full=full) if hashes and isinstance(value, str) else _value(value)

    lead = f"{' ' * indent}{name}: "
    if evidence.state == "unchanged":
        return f"{lead}{side(evidence.b)}  (unchanged)"
    if evidence.state == "changed":
        return f"{lead}{side(evidence.a)} -> {side(evidence.b)}  CHANGED"
    why = f" ({printable(evidence.why)})" if evidence.why else ""
    if evidence.state == "not comparable" or (evidence.a is None and evidence.b is None):
        return f"{lead}{evidence.state}{why}"
    return f"{lead}{side(evidence.a)} -> {side(evidence.b)}  {evidence.state}{why}"


def _functions(comparison: Comparison) -> Iterator[str]:
    code = comparison.code
    if code.functions.state == "unchanged":
        yield f"    functions: {len(code.functions.b)}  (unchanged)"
    for what, names in (("changed", code.changed), ("added", code.added), ("removed", code.removed)):
        for name in names:
            yield f"    function {printable(name)}: {what}"
    if code.functions.state == "unknown" and (code.functions.a is not None or code.functions.b is not None):
        yield f"    functions: unknown ({printable(code.functions.why)})"


def _step(step: StepComparison, full: bool) -> Iterator[str]:
    yield f"  {step.direction.capitalize()} '{printable(step.label)}':"
    yield _line("row_count", step.row_count, 6)
    yield _line("schema_hash", step.schema, 6, full=full, hashes=True)
    if step.columns:
        for name, kind in step.columns.added:
            yield f"        {printable(name)}: added ({printable(kind)})"
        for name, kind in step.columns.removed:
            yield f"        {printable(name)}: removed ({printable(kind)})"
        for name, before, after in step.columns.retyped:
            yield f"        {printable(name)}: {printable(before)} -> {printable(after)}"
    if step.data.state in ("unknown", "not comparable"):
        yield from _wrapped(f"data_hash: {step.data.state} ({step.data.why})", 6, 8)
    else:
        yield _line("data_hash", step.data, 6, full=full, hashes=True)
    if step.types_changed_values_not:
        yield "      the types changed, the values did not (equal lane sums)"
    for what, keys in (
        ("partitions added", step.partitions.added),
        ("partitions no longer read", step.partitions.removed),
        ("partitions materialised anew", step.partitions.materialised_anew),
    ):
        if keys:
            yield from _wrapped(f"{what}: {', '.join(keys)}", 6, 8)


def _findings(verdict: Verdict) -> Iterator[str]:
    if not verdict.findings:
        yield f"  {summary(verdict)}"
    for finding in verdict.findings:
        severity = "-" if finding.severity == "none" else finding.severity
        yield from _wrapped(f"{severity:<5}  {finding.text}", 2, 9)


def _wrapped(text: str, first: int, rest: int) -> list[str]:
    return textwrap.wrap(
        printable(text),
        _WIDTH,
        initial_indent=" " * first,
        subsequent_indent=" " * rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


# ---------------------------------------------------------------- one line


def summary(verdict: Verdict) -> str:
    """Say the verdict in one line: its worst findings, three at most, and how many more there are of them."""
    if not verdict.findings:
        return "outputs unchanged"
    grave = [finding for finding in verdict.findings if finding.severity == verdict.severity]
    # The sentence of an output that changed names all that changed with it.
    outputs = [finding for finding in grave if finding.kind == "data_changed"]
    sentences = _sentences(outputs if outputs and verdict.changed_with else grave)
    told = "; ".join(sentences[:3])
    others = len(sentences) - 3
    line = f"{told} (and {others} more)" if others > 0 else told
    kinds = {finding.kind for finding in verdict.findings}
    if not kinds & _ABOUT_OUTPUTS and kinds != {"overdue"}:
        line = f"outputs unchanged; {line}"
    return printable(line if verdict.severity == "none" else f"{verdict.severity}: {line}")


def _sentences(findings: Sequence[Finding]) -> list[str]:
    """Return what findings say, that an output changed said once for it."""
    changed = {finding.subject: finding.text for finding in findings if finding.kind == "data_changed"}
    told: dict[str, str] = {}
    for finding in findings:
        lead = f"output {finding.subject} changed"
        about = changed.get(finding.subject)
        if about in told and finding.kind != "data_changed" and finding.text.startswith(f"{lead} and "):
            told[about] += finding.text.removeprefix(lead)
        else:
            told[finding.text] = finding.text
    return list(told.values())


# Without any of these, every output was compared and found equal. (What is overdue was not compared.)
_ABOUT_OUTPUTS = frozenset({"data_changed", "unknown", "not_comparable", "first_record"})


# ---------------------------------------------------------------- Markdown


# Their rows say how the numbers moved, not why that is too far.
_SAID_IN_WORDS_TOO = ("rows_out_of_bounds", "custody_broken")


def markdown(subject: Verdict | Comparison, *, max_rows: int = 50) -> str:
    """Return a table (what, from, to, changed with) of everything that moved, then what could not be told.

    A comparison is judged with the default policy. Past ``max_rows`` rows the table says how many it left
    out. Without any change it is one sentence.
    """
    verdict = judge(subject) if isinstance(subject, Comparison) else subject
    rows = [
        (markdown_cell(change.what), markdown_cell(change.before), markdown_cell(change.after), with_it)
        for finding in verdict.findings
        for with_it in [_changed_with(finding, verdict)]
        for change in finding.changes
    ]
    parts: list[str] = []
    if rows:
        table = ["| what | from | to | changed with |", "|---|---|---|---|"]
        table += [f"| {' | '.join(row)} |" for row in rows[:max_rows]]
        parts.append("\n".join(table))
        if len(rows) > max_rows:
            parts.append(f"and {len(rows) - max_rows} more changes")
    told = [f for f in verdict.findings if not f.changes or f.kind in _SAID_IN_WORDS_TOO]
    told.sort(key=lambda finding: -SEVERITIES.index(finding.severity))
    if told:
        lines = [f"- {_word(finding)}{markdown_cell(finding.text)}" for finding in told[:max_rows]]
        if len(told) > max_rows:
            lines.append(f"- and {len(told) - max_rows} more")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) if parts else summary(verdict)


def _word(finding: Finding) -> str:
    return "" if finding.severity == "none" else f"**{finding.severity}**: "


def _changed_with(finding: Finding, verdict: Verdict) -> str:
    if finding.kind != "data_changed":
        return ""
    if verdict.changed_with:
        return markdown_cell(", ".join(verdict.changed_with))
    about = {f.kind for f in verdict.findings if f.subject == finding.subject}
    if "unexplained" in about:
        return "nothing recorded: unexplained"
    return "not known: some evidence is missing" if "not_attributable" in about else "nothing recorded"
