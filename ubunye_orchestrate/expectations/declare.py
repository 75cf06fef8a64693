"""``expect``: how rules are written beside an asset.

::

    @asset
    @expect.not_null("order_id")
    @expect.between("quantity", min=1, max=100, severity="warn")
    def orders() -> pd.DataFrame: ...

about what it reads, checked before the function runs::

    @asset
    @expect.not_null("order_id").on_input("orders")
    def totals(orders: pd.DataFrame) -> pd.DataFrame: ...

or in its metadata, for an asset without a function of its own::

    AssetSpec("orders", metadata=expect(expect.not_null("order_id"), expect.unique("order_id")))

A missing value (null, and NaN in a column of floats) breaks ``not_null``; ``between``, ``one_of`` and
``matches`` pass over it, and for ``unique`` it is a value like any other. A rule above a function that makes
several assets holds for each of them. What cannot be checked (a column that is not there, a value that can be
read only once) counts as broken, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.pandera_schemas import is_schema
from ubunye_orchestrate.expectations.patterns import checked_pattern
from ubunye_orchestrate.expectations.rules import RULES, Rule, Severity

__all__ = ["expect"]

Bound = int | float | Decimal | str | date | datetime


class _Expect:
    """Makes rules, each to be written above an asset's function; called with rules, an asset's metadata."""

    __name__ = "expect"

    def __call__(self, *rules: Rule) -> dict[str, Any]:
        """Return the rules as metadata of an asset: ``@asset(metadata=expect(expect.not_null("id")))``."""
        for rule in rules:
            if not isinstance(rule, Rule):
                raise ConfigurationError(
                    f'expect(…) got {rule!r}; expected rules: expect(expect.not_null("id"))'
                )
        return {RULES: [rule.as_metadata() for rule in rules]}

    def not_null(self, column: str, *, severity: Severity = "fail", name: str = "") -> Rule:
        """Expect a value in every row of the column."""
        return Rule("not_null", (_column(column, "not_null"),), severity, name)

    def unique(self, *columns: str, severity: Severity = "fail", name: str = "") -> Rule:
        """Expect that no two rows are alike in the columns; every row of a group of like ones breaks it."""
        if not columns:
            raise ConfigurationError('expect.unique() got no column; expected some: expect.unique("id")')
        if len(set(columns)) < len(columns):
            raise ConfigurationError(f"expect.unique{columns} got a column twice; expected each once")
        return Rule("unique", tuple(_column(column, "unique") for column in columns), severity, name)

    def between(
        self,
        column: str,
        min: Bound | None = None,  # noqa: A002 - as people say it
        max: Bound | None = None,  # noqa: A002 - as people say it
        *,
        severity: Severity = "fail",
        name: str = "",
    ) -> Rule:
        """Expect every value to be at least ``min`` and at most ``max``: numbers, texts, dates or times."""
        if min is None and max is None:
            raise ConfigurationError(f'expect.between("{column}") got no bound; expected min=, max= or both')
        if min is not None and max is not None and _nothing_between(_plain(min), _plain(max)):
            raise ConfigurationError(
                f'expect.between("{column}", {min!r}, {max!r}): nothing is between; expected min, max'
            )
        bounds = {side: _plain(value) for side, value in (("min", min), ("max", max)) if value is not None}
        return Rule("between", (_column(column, "between"),), severity, name, bounds)

    def one_of(
        self, column: str, values: Iterable[Bound | bool], *, severity: Severity = "fail", name: str = ""
    ) -> Rule:
        """Expect every value to be one of ``values``."""
        if isinstance(values, str | bytes) or not (given := list(values)):
            raise ConfigurationError(
                f'expect.one_of("{column}", {values!r}): expected a list of values, such as ["a", "b"]'
            )
        options = {"values": [_plain(value) for value in given]}
        if not _comparable(options["values"]):
            raise ConfigurationError(f'expect.one_of("{column}", {given!r}): expected values of one kind')
        return Rule("one_of", (_column(column, "one_of"),), severity, name, options)

    def matches(self, column: str, pattern: str, *, severity: Severity = "fail", name: str = "") -> Rule:
        """Expect every text to match the pattern as a whole.

        The pattern is of the part of RE2's syntax that every engine reads alike (see ``patterns``); anything
        else raises ConfigurationError.
        """
        options = {"pattern": checked_pattern(pattern)}
        return Rule("matches", (_column(column, "matches"),), severity, name, options)

    def row_count(
        self,
        min: int | None = None,  # noqa: A002 - as people say it
        max: int | None = None,  # noqa: A002 - as people say it
        *,
        severity: Severity = "fail",
        name: str = "",
    ) -> Rule:
        """Expect at least ``min`` and at most ``max`` rows."""
        bounds = {side: value for side, value in (("min", min), ("max", max)) if value is not None}
        if not bounds or any(not isinstance(v, int) or isinstance(v, bool) or v < 0 for v in bounds.values()):
            raise ConfigurationError(f"expect.row_count got {bounds}; expected min=, max= or both, from 0 on")
        if min is not None and max is not None and min > max:
            raise ConfigurationError(f"expect.row_count got {bounds}; expected min <= max")
        return Rule("row_count", (), severity, name, bounds)

    def columns(
        self,
        columns: Mapping[str, str | Sequence[str]] | Sequence[str],
        *,
        extra: bool = True,
        severity: Severity = "fail",
        name: str = "",
    ) -> Rule:
        """Expect the columns to be there, with one of the types given for each; ``extra=False``: no others.

        Types are Narwhals' names in small letters (``int64``, ``string``, ``float64``, ``datetime``).
        """
        if isinstance(columns, Mapping):
            wanted = {
                str(column): [types] if isinstance(types, str) else [str(kind) for kind in types]
                for column, types in columns.items()
            }
        elif isinstance(columns, str):
            raise ConfigurationError(f'expect.columns("{columns}"): expected a list, or names with types')
        else:
            wanted = {_column(column, "columns"): [] for column in columns}
        if not wanted:
            raise ConfigurationError('expect.columns got none; expected some: expect.columns(["id"])')
        options = {
            "types": {column: [kind.lower() for kind in kinds] for column, kinds in wanted.items()},
            "extra": extra,
        }
        return Rule("columns", (), severity, name, options)

    def reconcile(
        self,
        input: str,  # noqa: A002 - as people say it
        *,
        max_lost: int = 0,
        max_gained: int = 0,
        sum: str | None = None,  # noqa: A002 - as people say it
        tolerance: int | float | Decimal = 0,
        severity: Severity = "fail",
        name: str = "",
    ) -> Rule:
        """Expect the rows of an input to reach the output, or with ``sum`` a column's sum to.

        ``input`` is the upstream asset (``raw/orders``) or the name of the parameter. At most ``max_lost``
        rows fewer and ``max_gained`` more; a sum differs by ``tolerance`` at most.
        """
        if min(max_lost, max_gained, tolerance) < 0:
            raise ConfigurationError(f'expect.reconcile("{input}") got a limit below 0; expected 0 or more')
        options: dict[str, Any] = {"input": str(input)}
        if sum is None:
            options |= {"max_lost": max_lost, "max_gained": max_gained}
        else:
            options["tolerance"] = _plain(tolerance)
        return Rule("reconcile", () if sum is None else (sum,), severity, name, options)

    def schema(self, schema: Any, *, severity: Severity = "fail", name: str = "") -> Rule:
        """Expect a table to pass a pandera schema or model, by pandera itself (the extra ``pandera``).

        Only as a decorator. The table is stored as the asset made it, so what the schema would drop, fill,
        parse or coerce to another value breaks the rule. So does a check that only warns; to warn of it here
        takes ``severity="warn"``.
        """
        if not is_schema(schema):
            raise ConfigurationError(
                f"expect.schema got {schema!r}; expected a pandera schema or model: "
                "pip install 'ubunye-orchestrate[pandera]'"
            )
        return Rule("schema", (), severity, name, schema=schema)


expect = _Expect()
"""Makes the rules of an asset: ``@expect.not_null("id")`` below ``@asset``, or ``metadata=expect(…)``."""


def _column(name: str, kind: str) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"expect.{kind} got column {name!r}; expected its name")
    return name


def _nothing_between(least: Any, most: Any) -> bool:
    """Tell that no column, of whatever type, has a value between two bounds, as metadata holds them."""
    readings: list[Callable[[Any], Any]] = [_number]
    if isinstance(least, str) and isinstance(most, str):
        readings += [datetime.fromisoformat, str]
    return not any(_in_order(least, most, reading) for reading in readings)


def _in_order(least: Any, most: Any, reading: Callable[[Any], Any]) -> bool:
    try:
        return bool(reading(least) <= reading(most))
    except (TypeError, ValueError, InvalidOperation):
        return False


def _comparable(values: Sequence[Any]) -> bool:
    """Tell whether there is a type of column that all the values can be held against."""
    if any(isinstance(value, bool) for value in values):
        return all(isinstance(value, bool) for value in values)
    return all(isinstance(value, str) for value in values) or all(
        _in_order(value, value, _number) for value in values
    )


def _number(value: Any) -> Decimal:
    return Decimal(repr(value) if isinstance(value, float) else value)


def _plain(value: Any) -> Any:
    """Return a bound as JSON holds it: dates, times and decimals as text, read again by the column's type."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    if isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ConfigurationError(
        f"got {value!r} ({type(value).__name__}) as a bound or value of a rule; expected a finite number, a "
        "text, a date or a time; for missing values there is expect.not_null"
    )
