"""A rule as a value: what it checks, how much its breach matters, and its form in an asset's metadata."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast, get_args

from ubunye_orchestrate.errors import ConfigurationError

__all__ = ["RULES", "Kind", "Rule", "Severity", "rules_in", "rules_of_function", "with_own_names"]

Kind = Literal[
    "not_null", "unique", "between", "one_of", "matches", "row_count", "columns", "reconcile", "schema"
]
Severity = Literal["fail", "warn"]

RULES = "ubunye/expectations"
"""The key in an asset's metadata under which its rules stand."""

_ATTRIBUTE = "__ubunye_expectations__"
_KINDS_IN_METADATA = frozenset(get_args(Kind)) - {"schema"}
_FIELDS = {"kind", "columns", "severity", "name", "options"}

_Target = TypeVar("_Target")


@dataclass(frozen=True)
class Rule:
    """One rule. ``expect`` makes them; it stands above an asset's function, or in ``expect(…)``."""

    kind: Kind
    columns: tuple[str, ...] = ()
    """The columns that it is about; empty for a rule about the whole table."""
    severity: Severity = "fail"
    """``fail``: nothing is written when it is broken. ``warn``: it is written, and the record tells."""
    name: str = ""
    """How records and checks call it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else the kind needs, as JSON has it."""
    schema: Any = field(default=None, compare=False, repr=False)
    """A pandera schema, of the kind ``schema``."""
    input: str = ""
    """The input that it is about: the upstream asset or the parameter. Empty: about what the asset makes."""

    def __post_init__(self) -> None:
        if self.severity not in get_args(Severity):
            raise ConfigurationError(
                f"rule {self.name!r} has severity {self.severity!r}; expected one of {get_args(Severity)}"
            )

    def __call__(self, function: _Target) -> _Target:
        """Put the rule on an asset's function, as a decorator below ``@asset``.

        Raises ConfigurationError on anything but a function.
        """
        if not inspect.isfunction(function):
            raise ConfigurationError(
                f"@expect.{self.kind} got {type(function).__name__}; expected the asset's function: write "
                f"@asset above @expect.{self.kind}(…), or metadata=expect(expect.{self.kind}(…)) in @asset"
            )
        # Decorators are applied from the bottom; the rules stand as they are read.
        setattr(function, _ATTRIBUTE, (self, *rules_of_function(function)))
        return cast("_Target", function)

    def on_input(self, name: str) -> Rule:
        """Return the rule as one about an input, which is held against it when it is read.

        ``name`` is the upstream asset (``raw/orders``) or the parameter. A broken rule of severity ``fail``
        fails the step before the asset's function runs. Raises ConfigurationError for ``reconcile``, which
        is about both sides.
        """
        if self.kind == "reconcile" or not name:
            raise ConfigurationError(
                f"expect.{self.kind}(…).on_input({name!r}): expected a rule about one table and the name of "
                'an input: expect.not_null("id").on_input("orders")'
            )
        return replace(self, input=name)

    def as_metadata(self) -> dict[str, Any]:
        """Return the rule as JSON. Raises ConfigurationError for a schema, which has no such form."""
        if self.schema is not None:
            raise ConfigurationError(
                "expect.schema(…) holds an object, and metadata cannot; write it as a decorator: "
                "@expect.schema(…) below @asset"
            )
        about = {"input": self.input} if self.input else {}
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "severity": self.severity,
            "name": self.name,
            "options": dict(self.options),
            **about,
        }


def rules_of_function(function: object) -> tuple[Rule, ...]:
    """Return the rules that stand above a function, from the top; those of what it wraps too."""
    rules = getattr(function, _ATTRIBUTE, None)
    if rules is None and (wrapped := getattr(function, "__wrapped__", None)) is not None:
        return rules_of_function(wrapped)
    return tuple(rules or ())


def rules_in(metadata: Mapping[str, Any], asset: str) -> tuple[Rule, ...]:
    """Return the rules in an asset's metadata, as ``expect(…)`` put them there; ``asset`` is for messages.

    Raises ConfigurationError for what it did not put there.
    """
    value = metadata.get(RULES)
    # Dagster wraps a list into a metadata value of its own.
    value = getattr(value, "data", value)
    if value is None:
        return ()
    try:
        return tuple(_rule(given) for given in value)
    except (TypeError, KeyError, AttributeError) as e:
        raise ConfigurationError(
            f'metadata "{RULES}" of asset {asset} is {value!r}; expected what expect(…) returns: '
            'metadata=expect(expect.not_null("id"))'
        ) from e


def with_own_names(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules with a name each, which no other has and which an asset check can have."""
    named: dict[str, Rule] = {}
    for rule in rules:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", rule.name or _plain_name(rule))
        name, number = plain, 1
        while name in named:
            number += 1
            name = f"{plain}_{number}"
        named[name] = replace(rule, name=name)
    return tuple(named.values())


def _rule(given: Mapping[str, Any]) -> Rule:
    if set(given) - {"input"} != _FIELDS or given["kind"] not in _KINDS_IN_METADATA:
        raise TypeError("not a rule")
    return Rule(
        kind=given["kind"],
        columns=tuple(str(column) for column in given["columns"]),
        severity=given["severity"],
        name=str(given["name"]),
        options=dict(given["options"]),
        input=str(given.get("input", "")),
    )


def _plain_name(rule: Rule) -> str:
    if rule.kind == "reconcile":
        what = f"{rule.columns[0]}_sum" if rule.columns else "rows"
        return f"{what}_from_{rule.options['input']}"
    return "_".join([*([rule.input] if rule.input else []), *rule.columns, rule.kind])
