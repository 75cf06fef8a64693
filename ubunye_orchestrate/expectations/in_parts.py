"""A stored table held against its rules part by part, in the memory of one part.

What a rule counts in the parts adds up; only ``unique`` needs its own columns of the whole table at once.
Narwhals is loaded when a table is checked, not when one is described.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from ubunye_orchestrate.expectations.outcomes import Measure, Outcome
from ubunye_orchestrate.expectations.rules import Rule

__all__ = ["TableInParts", "evaluate_in_parts", "measure_in_parts"]

_WHOLE = ("columns", "schema")


@dataclass(frozen=True)
class TableInParts:
    """A table that is read in parts, as often as one likes."""

    read_schema: Callable[[], pa.Schema]
    read: Callable[[Sequence[str]], Iterable[pa.Table]]
    """Given the columns that are wanted, in the schema's order, reads them."""

    @cached_property
    def schema(self) -> pa.Schema:
        """Its columns and their types."""
        return self.read_schema()


def evaluate_in_parts(rules: Iterable[Rule], table: TableInParts) -> list[Outcome]:
    """Return what became of each rule but ``reconcile``, in their order, as ``evaluate`` does."""
    from ubunye_orchestrate.expectations.evaluate import failures, not_checked

    wanted = [rule for rule in rules if rule.kind != "reconcile"]
    try:
        return _evaluated(wanted, table)
    except failures() as e:  # a file that cannot be read has kept no rule
        return [not_checked(rule, e) for rule in wanted]


def _evaluated(wanted: Sequence[Rule], table: TableInParts) -> list[Outcome]:
    from ubunye_orchestrate.expectations.evaluate import evaluate, rows_within

    apart = (*_WHOLE, "unique", "row_count")
    rows, found = _by_part([rule for rule in wanted if rule.kind not in apart], table)
    outcomes = []
    for rule in wanted:
        if rule.kind == "row_count":
            outcomes.append(rows_within(rule, rows))
        elif rule.kind in _WHOLE:
            outcomes += evaluate([rule], table.schema.empty_table())
        elif rule.kind == "unique":
            outcomes += evaluate([rule], _whole(table, rule.columns))
        else:
            outcomes.append(next(found))
    return outcomes


def measure_in_parts(table: TableInParts, columns: Sequence[str]) -> Measure | str:
    """Return the rows of a table and the sum of each of the columns, as ``measure`` does."""
    from ubunye_orchestrate.expectations.evaluate import failures, why

    try:
        return _measured(table, columns)
    except failures() as e:
        return why(e, columns)


def _measured(table: TableInParts, columns: Sequence[str]) -> Measure | str:
    from ubunye_orchestrate.expectations.evaluate import measure

    total = measure(table.schema.empty_table(), columns)
    if isinstance(total, str):
        return total
    for part in table.read([name for name in table.schema.names if name in columns]):
        one = measure(part, columns)
        if isinstance(one, str):
            return one
        total += one
    return total


def _by_part(rules: Sequence[Rule], table: TableInParts) -> tuple[int, Iterator[Outcome]]:
    """Return the rows of the table and what became of the rules, whose counts add up."""
    from ubunye_orchestrate.expectations.evaluate import evaluate

    columns = {column for rule in rules for column in rule.columns}
    totals = evaluate(rules, table.schema.empty_table())
    rows = 0
    for part in table.read([name for name in table.schema.names if name in columns]):
        rows += part.num_rows
        totals = [_added(total, one) for total, one in zip(totals, evaluate(rules, part), strict=True)]
    return rows, iter(totals)


def _added(total: Outcome, one: Outcome) -> Outcome:
    if total.failed is None or one.failed is None or total.total is None or one.total is None:
        return total if total.failed is None else one
    failed = total.failed + one.failed
    return replace(total, passed=failed == 0, failed=failed, total=total.total + one.total)


def _whole(table: TableInParts, columns: Sequence[str]) -> pa.Table:
    names = [name for name in table.schema.names if name in columns]
    parts = list(table.read(names))
    return pa.concat_tables(parts) if parts else table.schema.empty_table()
