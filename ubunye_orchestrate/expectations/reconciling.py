"""What was read held against what is to be written: rows lost or gained, a sum that moved."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ubunye_orchestrate.expectations.outcomes import Measure, Outcome
from ubunye_orchestrate.expectations.rules import Rule

__all__ = ["reconcile"]


def reconcile(rule: Rule, inputs: Mapping[str, Measure | str], output: Measure | str, name: str) -> Outcome:
    """Return what became of a ``reconcile`` rule.

    ``inputs`` are the measures of what was read, ``output`` that of what is to be written (``name``); a text
    instead says why there is none.
    """
    source = rule.options["input"]
    read = inputs.get(source, f"no input {source!r} was read; read were {', '.join(inputs) or 'none'}")
    for side, measured in (("the input", read), ("the output", output)):
        if isinstance(measured, str):
            return Outcome(rule, passed=False, detail=f"not checked: {side}: {measured}")
    assert isinstance(read, Measure)
    assert isinstance(output, Measure)
    return _sums(rule, read, output, name) if rule.columns else _rows(rule, read, output, name)


def _rows(rule: Rule, read: Measure, output: Measure, name: str) -> Outcome:
    lost, gained = max(0, read.rows - output.rows), max(0, output.rows - read.rows)
    most_lost, most_gained = rule.options["max_lost"], rule.options["max_gained"]
    passed = lost <= most_lost and gained <= most_gained
    detail = (
        f"{read.rows} rows read from {rule.options['input']}, {output.rows} reached {name}: {lost} lost, "
        f"{gained} gained (at most {most_lost} lost, at most {most_gained} gained)"
    )
    return Outcome(rule, passed, 0 if passed else lost + gained, read.rows, detail)


def _sums(rule: Rule, read: Measure, output: Measure, name: str) -> Outcome:
    column, source, tolerance = rule.columns[0], rule.options["input"], rule.options["tolerance"]
    before, after = read.sums[column], output.sums[column]
    difference = _exact(after) - _exact(before)
    passed = abs(difference) <= _exact(tolerance)
    detail = (
        f"sum of {column} in {source} {before}, of {column} in {name} {after}: difference {difference} "
        f"(at most {tolerance})"
    )
    return Outcome(rule, passed, 0 if passed else 1, 1, detail)


def _exact(value: Any) -> Decimal:
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
