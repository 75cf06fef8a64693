"""What a gate says: on a terminal, as JSON, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ubunye_orchestrate.cli.gate import Judged
from ubunye_orchestrate.cli.gate_policy import GatePolicy
from ubunye_orchestrate.cli.views import wrapped
from ubunye_orchestrate.compare.render import markdown, verdict_as_json
from ubunye_orchestrate.compare.text import markdown_cell, printable, short_run_id

__all__ = ["gate_document", "gate_lines", "gate_markdown", "passed"]


def passed(judged: Sequence[Judged]) -> bool:
    """Whether every run passed."""
    return not any(one.failed for one in judged)


def gate_lines(judged: Sequence[Judged], policy: GatePolicy) -> Iterator[str]:
    """Yield the gate's text for a terminal."""
    failed = sum(one.failed for one in judged)
    for one in judged:
        runs = "" if one.record is None else f"  {short_run_id(one.record.run_id)}"
        if one.baseline is not None:
            runs += f" against {short_run_id(one.baseline.run_id)}"
        yield f"{one.word:<8}  {printable(one.name)}{runs}"
        yield from wrapped(" " * 10, one.why)
        if one.path is not None:
            yield from wrapped(" " * 10, one.path)
    word = "FAIL" if failed else "PASS"
    yield f"{word:<8}  {failed} of {len(judged)} failed (fails on {policy.fail_on})"


def gate_document(judged: Sequence[Judged], policy: GatePolicy) -> dict[str, Any]:
    """Return the gate as one JSON document."""
    return {
        "passed": passed(judged),
        "fail_on": policy.fail_on,
        "judged": [
            {
                "task": one.task,
                "asset": one.name,
                "run_id": None if one.record is None else one.record.run_id,
                "baseline": None if one.baseline is None else one.baseline.run_id,
                "passed": not one.failed,
                "why": one.why,
                "path": one.path,
                "accepted": None if one.accepted is None else one.accepted.model_dump(mode="json"),
                "verdict": None if one.verdict is None else verdict_as_json(one.verdict),
            }
            for one in judged
        ],
    }


def gate_markdown(judged: Sequence[Judged], policy: GatePolicy) -> str:
    """Return the gate for a pull request: a table of all runs, then the findings of each that has any."""
    failed = sum(one.failed for one in judged)
    words = f"{failed} of {len(judged)} failed" if failed else f"all {len(judged)} passed"
    parts = [f"### Data gate: {words}", f"Fails on `{policy.fail_on}` and above."]
    rows = ["| | asset | run | against | what was found |", "|---|---|---|---|---|"]
    for one in judged:
        run = "-" if one.record is None else markdown_cell(short_run_id(one.record.run_id))
        against = "-" if one.baseline is None else markdown_cell(short_run_id(one.baseline.run_id))
        found = markdown_cell(one.why)
        if one.path is not None:
            found += f"; {markdown_cell(one.path)}"
        rows.append(f"| {one.word} | {markdown_cell(one.name)} | {run} | {against} | {found} |")
    parts.append("\n".join(rows))
    for one in judged:
        if one.verdict is not None and one.verdict.severity != "none":
            parts.append(f"#### {markdown_cell(one.name)}\n\n{markdown(one.verdict)}")
    return "\n\n".join(parts) + "\n"
