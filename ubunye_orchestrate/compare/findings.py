"""What a comparison may say: findings, their severities, and the verdict that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

__all__ = ["KINDS", "SEVERITIES", "Change", "Finding", "Kind", "Severity", "Verdict", "worst"]

Severity = Literal["none", "note", "warn", "error"]
Kind = Literal[
    "configuration_changed",
    "code_changed",
    "custody_broken",
    "custody_held",
    "custody_not_judged",
    "data_changed",
    "environment_changed",
    "first_record",
    "input_changed",
    "not_attributable",
    "not_comparable",
    "overdue",
    "rows_out_of_bounds",
    "schema_changed",
    "source_changed",
    "types_changed_values_not",
    "unexplained",
    "unknown",
]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Change:
    """One thing that moved, as a row of a table: what, from, to. The texts are short forms for people."""

    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Finding:
    """One statement about what changed, or about what could not be told."""

    kind: Kind
    severity: Severity
    subject: str
    """What it is about: an output or input by name, a package's environment, the code."""
    text: str
    """One sentence. It says what changed together, never what caused what."""
    changes: tuple[Change, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs; JSON values only."""
    merge_key: str | None = None
    """Equal for findings that are one and the same for several assets of a code location (an environment
    that moved): whoever reports many assets reports it once."""


@dataclass(frozen=True)
class Verdict:
    """The findings of one comparison, and what changed together with an output that changed."""

    findings: tuple[Finding, ...]
    changed_with: tuple[str, ...] = ()
    """Everything recorded that changed beside an output; empty when no output changed."""

    @property
    def severity(self) -> Severity:
        """The worst severity among the findings."""
        return worst(finding.severity for finding in self.findings)

    @property
    def passed(self) -> bool:
        """Whether no finding is a warning or an error."""
        return self.severity in ("none", "note")


def worst(severities: Iterable[Severity]) -> Severity:
    """Return the worst of some severities; ``none`` of nothing."""
    return max(severities, key=SEVERITIES.index, default="none")
