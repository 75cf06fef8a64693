"""A user's pandera schema as one rule, checked by pandera itself."""

from __future__ import annotations

import importlib
from typing import Any

from ubunye_orchestrate.expectations.outcomes import Outcome
from ubunye_orchestrate.expectations.rules import Rule

__all__ = ["check_schema", "is_schema"]

_NAMED = 5


def is_schema(value: object) -> bool:
    """Tell a pandera schema (an object) or model (a class)."""
    classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
    from_pandera = any(one.__module__.split(".")[0] == "pandera" for one in classes)
    return from_pandera and callable(getattr(value, "validate", None))


def check_schema(rule: Rule, frame: Any) -> Outcome:
    """Return what became of a rule that holds a schema.

    ``failed`` counts the rows that break it, as far as pandera tells them apart, else its findings. What it
    coerces is not kept. Not checked is what pandera would pass unread: a lazy plan, or with its validation
    turned off.
    """
    kind = type(frame)
    if kind.__name__ != "DataFrame" or kind.__module__.split(".")[0] not in ("pandas", "polars"):
        return _not_checked(rule, f"pandera does not check the rows of a {kind.__name__} here")
    config = importlib.import_module("pandera.config").get_config_context()
    depth = getattr(config.validation_depth, "name", "SCHEMA_AND_DATA")
    if not config.validation_enabled or depth == "SCHEMA_ONLY":
        return _not_checked(rule, "pandera's validation is turned off (PANDERA_VALIDATION_ENABLED, …_DEPTH)")
    errors = importlib.import_module("pandera.errors")
    try:
        rule.schema.validate(frame, lazy=True)
    except errors.SchemaErrors as e:
        return _broken(rule, e.failure_cases, len(frame))
    return Outcome(rule, True, 0, len(frame))


def _broken(rule: Rule, cases: Any, total: int) -> Outcome:
    def column(name: str) -> list[Any]:
        return list(cases[name]) if name in cases.columns else []

    rows = {row for row in column("index") if row is not None and row == row}  # NaN is not itself
    found = dict.fromkeys(
        f"{where}: {check}" for where, check in zip(column("column"), column("check"), strict=True)
    )
    shown = "; ".join(list(found)[:_NAMED])
    more = f" (and {len(found) - _NAMED} more)" if len(found) > _NAMED else ""
    return Outcome(rule, False, len(rows) or len(cases), total, f"{shown}{more}")


def _not_checked(rule: Rule, why: str) -> Outcome:
    return Outcome(rule, False, detail=f"not checked: {why}")
