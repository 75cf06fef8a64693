"""A user's pandera schema as one rule, checked by pandera itself.

Pandera may check another table than is stored: one that it has parsed, coerced, filled or rid of its invalid
rows first. So what it returns is held against what it was given.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ubunye_orchestrate.expectations.outcomes import Outcome
from ubunye_orchestrate.expectations.rules import Rule
from ubunye_orchestrate.masking import mask_text

__all__ = ["check_schema", "is_schema"]

_NAMED = 5


def is_schema(value: object) -> bool:
    """Tell a pandera schema (an object) or model (a class)."""
    classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
    from_pandera = any(one.__module__.split(".")[0] == "pandera" for one in classes)
    return from_pandera and callable(getattr(value, "validate", None))


def check_schema(rule: Rule, frame: Any) -> Outcome:
    """Return what became of a rule that holds a schema.

    ``failed`` counts the rows that break it, as far as pandera tells them apart, else its findings. A row
    that pandera drops or gives another value breaks it, since it is stored as it was; the same value in
    another type does not. A check that only warns breaks it too. Not checked is what pandera would pass
    unread: a lazy plan, or with its validation turned off.
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
        with _heard(errors.SchemaWarning) as warned:
            checked = rule.schema.validate(frame, lazy=True)
    except errors.SchemaErrors as e:
        return _broken(rule, e.failure_cases, len(frame))
    if warned:
        detail = f"broken checks that only warn (raise_warning=True): {len(warned)}"
        return Outcome(rule, False, len(warned), len(frame), detail)
    return _as_given(rule, frame, checked)


@contextmanager
def _heard(category: type[Warning]) -> Iterator[list[Warning]]:
    """Give the warnings of a category, which quote what they found, instead of issuing them."""
    heard: list[Warning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield heard
        finally:
            heard += [one.message for one in caught if isinstance(one.message, category)]
    for one in caught:
        if not issubclass(one.category, category):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _as_given(rule: Rule, given: Any, checked: Any) -> Outcome:
    """Return the outcome of a rule that pandera passed: it holds for the table that pandera returned."""
    before, after = list(given.columns), list(checked.columns)
    other = [f"column {name!r} left out" for name in before if name not in after]
    other += [f"column {name!r} added" for name in after if name not in before]
    rows = abs(len(given) - len(checked))
    if rows:
        other.append(f"rows dropped: {rows}")
    changed: set[int] = set()
    for name, one, two in [] if rows else _pairs(given, checked, before, after):
        found = _changed(one, two)
        if found:
            other.append(f"values of {name} changed: {len(found)}")
            changed |= found
    if not other:
        return Outcome(rule, True, 0, len(given))
    detail = f"the schema holds for another table than this one: {_first(other)}"
    return Outcome(rule, False, rows + len(changed) or len(other), len(given), mask_text(detail))


def _pairs(given: Any, checked: Any, before: list[Any], after: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    if hasattr(given, "index"):
        yield "the index", given.index, checked.index
    for at, name in enumerate(before):
        # Two columns of pandas may have one name.
        other = at if before == after else after.index(name) if name in after else None
        if other is not None:
            yield f"column {name!r}", _column(given, at), _column(checked, other)


def _column(frame: Any, at: int) -> Any:
    return frame.iloc[:, at] if hasattr(frame, "iloc") else frame.to_series(at)


def _changed(one: Any, two: Any) -> set[int]:
    """Return the rows in which two columns hold other values, whatever their types."""
    if one is two or (one.dtype == two.dtype and one.equals(two)):
        return set()
    return {at for at, (p, q) in enumerate(zip(list(one), list(two), strict=True)) if not _same(p, q)}


def _same(one: Any, two: Any) -> bool:
    if one is two:
        return True
    try:
        return bool(one == two) or (_missing(one) and _missing(two))
    except (TypeError, ValueError):
        return _missing(one) and _missing(two)


def _missing(value: Any) -> bool:
    try:
        return value is None or not value == value  # noqa: SIM201 - pandas' NA is neither
    except TypeError:
        return True
    except ValueError:
        return False


def _broken(rule: Rule, cases: Any, total: int) -> Outcome:
    def column(name: str) -> list[Any]:
        return list(cases[name]) if name in cases.columns else []

    rows = {row for row in column("index") if row is not None and row == row}  # NaN is not itself
    found = dict.fromkeys(
        f"{where}: {check}" for where, check in zip(column("column"), column("check"), strict=True)
    )
    # A check may be called by a text of the user's.
    return Outcome(rule, False, len(rows) or len(cases), total, mask_text(_first(list(found))))


def _first(found: list[str]) -> str:
    more = f" (and {len(found) - _NAMED} more)" if len(found) > _NAMED else ""
    return "; ".join(found[:_NAMED]) + more


def _not_checked(rule: Rule, why: str) -> Outcome:
    return Outcome(rule, False, detail=f"not checked: {why}")
