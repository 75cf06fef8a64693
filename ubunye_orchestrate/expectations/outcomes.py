"""What became of a rule, and what a table holds in all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ubunye_orchestrate.expectations.rules import Rule

__all__ = ["Measure", "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What became of one rule."""

    rule: Rule
    passed: bool
    failed: int | None = None
    """Rows (columns, for ``columns``) that break it; None where it could not be checked."""
    total: int | None = None
    detail: str | None = None
    on_plan: bool = False
    """A lazy plan was computed for the check; what is written is computed again."""

    def as_record(self, table: str) -> dict[str, Any]:
        """Return the entry of ``RunRecord.expectations``, its keys in the engine's order.

        ``table`` is the output; of a rule about an input that input, as the engine has it.
        """
        entry: dict[str, Any] = {
            "output": table,
            "rule": self.rule.name,
            "kind": self.rule.kind,
            "severity": self.rule.severity,
            "column": ", ".join(self.rule.columns) or None,
            "failed": self.failed,
            "total": self.total,
            "passed": self.passed,
        }
        if self.detail is not None:
            entry["detail"] = self.detail
        if self.rule.input:
            entry["side"] = "input"
        if self.on_plan:
            entry["checked"] = "plan"
        return entry


@dataclass(frozen=True)
class Measure:
    """What a table holds in all, to be held against another one."""

    rows: int
    sums: Mapping[str, Any]
    """By column: int, float or Decimal, as the column is."""

    def __add__(self, other: Measure) -> Measure:
        return Measure(self.rows + other.rows, {name: v + other.sums[name] for name, v in self.sums.items()})
