"""A table held against its rules, with Narwhals, whatever library the table is of.

A table in memory is checked as it is. A lazy plan (Polars, Spark, DuckDB) is computed for the check and again
when it is written: its results say ``checked: plan``, since a plan may give other rows the second time. Where
what was written can be read before it takes the old table's place, that is checked instead: ``in_parts``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import localcontext
from typing import Any

import narwhals as nw

from ubunye_orchestrate.expectations.literals import (
    ABOVE_ALL,
    BELOW_ALL,
    CannotCompareError,
    bound_for,
    type_shown,
    values_for,
)
from ubunye_orchestrate.expectations.outcomes import Measure, Outcome
from ubunye_orchestrate.expectations.pandera_schemas import check_schema
from ubunye_orchestrate.expectations.patterns import java_pattern, plain_pattern
from ubunye_orchestrate.expectations.rules import Rule
from ubunye_orchestrate.expectations.tables import (
    CannotCheckError,
    Table,
    in_arrow,
    is_empty_of_type,
    known,
    seen,
    table_of,
)
from ubunye_orchestrate.masking import mask_text

__all__ = ["evaluate", "failures", "measure", "not_checked", "rows_within", "why"]

_AT_A_GLANCE = (nw.String, nw.Boolean, nw.Date, nw.Datetime)


def evaluate(rules: Iterable[Rule], frame: object) -> list[Outcome]:
    """Return what became of each rule but ``reconcile``, in their order.

    Never raises for what the table holds: a rule that cannot be checked has not passed, and says why.
    """
    wanted = [rule for rule in rules if rule.kind != "reconcile"]
    schemas = [rule for rule in wanted if rule.kind == "schema"]
    if schemas:
        found = iter(evaluate([rule for rule in wanted if rule.kind != "schema"], frame))
        return [_by_pandera(rule, frame) if rule.kind == "schema" else next(found) for rule in wanted]
    if not wanted:
        return []
    try:
        table = table_of(frame)
        total = _rows(table)
    except failures() as e:  # each library has its own, and none may pass as a rule that holds
        return [not_checked(rule, e) for rule in wanted]
    outcomes = []
    for rule in wanted:
        try:
            outcome = _check(rule, table, total)
        except failures() as e:
            outcome = not_checked(rule, e)
        outcomes.append(replace(outcome, on_plan=table.lazy))
    return outcomes


def measure(frame: object, columns: Sequence[str]) -> Measure | str:
    """Return the rows of a table and the sum of each of the columns; a text says why there are none.

    Sums of a table in memory are exact, whatever the order of its rows.
    """
    try:
        table = table_of(frame)
        return Measure(_rows(table), {column: _sum(table, column) for column in columns})
    except failures() as e:
        return why(e, columns)


def rows_within(rule: Rule, total: int) -> Outcome:
    """Return what became of a ``row_count`` rule on a table of so many rows."""
    least, most = rule.options.get("min", 0), rule.options.get("max", total)
    return Outcome(rule, least <= total <= most, int(not least <= total <= most), total)


def _check(rule: Rule, table: Table, total: int) -> Outcome:
    if rule.kind == "row_count":
        return rows_within(rule, total)
    if rule.kind == "columns":
        return _check_columns(rule, table)
    if rule.kind == "unique":
        failed = _alike(table, rule.columns)
    elif rule.kind == "not_null":
        failed = _count_missing(table, rule.columns[0])
    elif table.lazy:
        failed = _breaking_in_plan(rule, table)
    else:
        failed = _breaking(rule, table)
    return Outcome(rule, failed == 0, failed, total)


def _check_columns(rule: Rule, table: Table) -> Outcome:
    wanted: Mapping[str, Sequence[str]] = rule.options["types"]
    columns = table.types
    for name in wanted:
        if name in columns:
            table.place(name)
    wrong = []
    for name, types in wanted.items():
        if name not in columns:
            wrong.append(f"{name}: expected {' or '.join(types) or 'a column'}, missing")
        elif types and not {_type_name(columns[name]), str(columns[name]).lower()} & set(types):
            wrong.append(f"{name}: expected {' or '.join(types)}, found {_type_name(columns[name])}")
    extra = [] if rule.options["extra"] else [name for name in columns if name not in wanted]
    wrong += [f"{name}: not expected (extra=False), found {_type_name(columns[name])}" for name in extra]
    return Outcome(rule, not wrong, len(wrong), len(wanted) + len(extra), "; ".join(wrong) or None)


def _type_name(dtype: Any) -> str:
    return type(dtype).__name__.lower() if not isinstance(dtype, type) else dtype.__name__.lower()


def _missing(value: nw.Expr, dtype: Any) -> nw.Expr:
    return value.is_null() | value.is_nan() if dtype.is_float() else value.is_null()


def _count_missing(table: Table, column: str) -> int:
    place = table.place(column)
    if table.lazy:
        return _count(table.rows, _missing(nw.col(place), table.types[column]))
    return _missing_among(seen(table.rows[place]))


def _missing_among(values: Any) -> int:
    # Not by an expression, which takes several times as long to set up.
    if values.dtype.is_float():
        missing = (values.is_null() | values.is_nan()).sum()
    else:
        missing = values.is_null().sum() if isinstance(values.dtype, nw.Unknown) else values.null_count()
    # Not a number of NumPy's, which no record holds.
    return int(missing or 0)


def _rows(table: Table) -> int:
    return int(_scalars(table.rows, {"rows": nw.len()})["rows"]) if table.lazy else len(table.rows)


def _count(rows: Any, condition: nw.Expr) -> int:
    # A sum of truth values fails on Spark.
    one = nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))
    return int(_scalars(rows, {"failed": one.sum()})["failed"] or 0)


def _alike(table: Table, names: Sequence[str]) -> int:
    places = [table.place(name) for name in names]
    rows = table.rows
    if not table.lazy:
        keys = [_one_zero(seen(rows[place])) for place in places]
        if len(keys) == 1 and _all_different(keys[0]):
            return 0
        rows = _side_by_side(keys)
    types = rows.collect_schema()
    groups = rows.select(*(_key(place, types[place]) for place in places)).group_by(*places)
    alike = groups.agg(nw.len().alias("rows")).filter(nw.col("rows") > 1)
    return int(_scalars(alike, {"failed": nw.col("rows").sum()})["failed"] or 0)


def _key(place: str, dtype: Any) -> nw.Expr:
    value = nw.col(place)
    # NaN is missing, and missing values are alike.
    return nw.when(~_missing(value, dtype)).then(value).alias(place) if dtype.is_float() else value


def _side_by_side(keys: Sequence[Any]) -> Any:
    if len({key.implementation for key in keys}) > 1:
        keys = [in_arrow(key) for key in keys]
    return keys[0].to_frame().with_columns(*keys[1:])


def _all_different(values: Any) -> bool:
    """Tell at a glance that no two values of a column are alike; False where it takes a closer look.

    Grouping, which also counts those that are alike, takes twenty times as long for a small table.
    """
    dtype = values.dtype
    plain = dtype.is_integer() or dtype.is_float() or isinstance(dtype, _AT_A_GLANCE)
    return plain and values.n_unique() == len(values) and _missing_among(values) <= 1


def _one_zero(values: Any) -> Any:
    """Return floats with one zero: to Arrow, which computes for pandas too, -0.0 is another value."""
    return values + 0.0 if values.dtype.is_float() else values


def _breaking(rule: Rule, table: Table) -> int:
    """Count the values in memory that break a rule; what is missing does not."""
    column = rule.columns[0]
    given = table.rows[table.place(column)]
    values = seen(given)
    if is_empty_of_type(values):
        return 0
    values = known(values)
    if rule.kind == "matches":
        return _texts_not_matching(values, column, rule.options["pattern"])
    dtype = given.dtype if str(given.dtype) == "Float16" else values.dtype
    value = nw.col(values.name)
    # Apart, since pandas compares no None with a text.
    kept = values.to_frame().filter(~_missing(value, values.dtype))
    if rule.kind == "one_of":
        kept = _one_zero(kept[values.name]).to_frame()
    return len(kept) - len(kept.filter(_holds(rule, _in_one_zone(value, dtype), dtype)))


def _breaking_in_plan(rule: Rule, table: Table) -> int:
    """Count the values of a plan that break a rule; what is missing does not."""
    column = rule.columns[0]
    value, dtype = nw.col(table.place(column)), table.types[column]
    present = ~_missing(value, dtype)
    if isinstance(dtype, nw.Unknown) and not _count(table.rows, present):
        return 0
    if isinstance(dtype, nw.Categorical | nw.Enum):
        value, dtype = value.cast(nw.String), nw.String()
    kind = table.rows.implementation
    java = kind.is_pyspark() or kind.is_pyspark_connect()
    if rule.kind != "matches":
        held = _in_one_zone(value, dtype) if kind.is_polars() else value
        return _count(table.rows, present & ~_holds(rule, held, dtype, java=java))
    if not isinstance(dtype, nw.String):
        raise CannotCheckError(f"column {column!r} is {type_shown(dtype)}; matches needs text")
    pattern = rule.options["pattern"]
    matching = value.str.contains(java_pattern(pattern) if java else plain_pattern(pattern))
    return _count(table.rows, present & ~matching)


def _holds(rule: Rule, value: nw.Expr, dtype: Any, *, java: bool = False) -> nw.Expr:
    column = rule.columns[0]
    of_clocks = java and isinstance(dtype, nw.Datetime) and dtype.time_zone is None
    if rule.kind == "one_of":
        values = values_for(rule.options["values"], dtype, column)
        if of_clocks:
            values = [_clock(one) for one in values]
        if of_clocks or dtype.is_decimal():
            # Engines bring what they compare to one scale, and not what they look up.
            return nw.any_horizontal(*(value == one for one in values), ignore_nulls=False)
        return value.is_in(values) if values else value.is_null()
    bounds = {
        side: bound_for(rule.options[side], dtype, column, at_least=side == "min")
        for side in ("min", "max")
        if side in rule.options
    }
    least, most = bounds.get("min", BELOW_ALL), bounds.get("max", ABOVE_ALL)
    if least is ABOVE_ALL or most is BELOW_ALL:
        return value.is_null()
    within = [] if least is BELOW_ALL else [value >= (_clock(least) if of_clocks else least)]
    within += [] if most is ABOVE_ALL else [value <= (_clock(most) if of_clocks else most)]
    return nw.all_horizontal(*within, ignore_nulls=False) if within else ~value.is_null()


def _in_one_zone(value: nw.Expr, dtype: Any) -> nw.Expr:
    """Return moments as bounds have them: neither Arrow nor Polars compares those of two zones."""
    zone = dtype.time_zone if isinstance(dtype, nw.Datetime) else None
    return value if zone in (None, "UTC") else value.dt.convert_time_zone("UTC")


def _clock(moment: datetime) -> nw.Expr:
    """Return a time of no zone for Spark, which takes Python's for one of the process's zone."""
    return nw.lit(moment.isoformat(" ")).cast(nw.Datetime("us"))


def _texts_not_matching(values: Any, column: str, pattern: str) -> int:
    """Count the texts in memory that do not match, by RE2 itself."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(values.dtype, nw.String | nw.Categorical | nw.Enum):
        raise CannotCheckError(f"column {column!r} is {type_shown(values.dtype)}; matches needs text")
    texts = pc.cast(values.to_arrow(), pa.large_string())
    return int(pc.sum(pc.invert(pc.match_substring_regex(texts, plain_pattern(pattern)))).as_py() or 0)


def _sum(table: Table, column: str) -> Any:
    place = table.place(column)
    if table.lazy:
        return _sum_of_plan(table, column)
    values = seen(table.rows[place])
    if is_empty_of_type(values):
        return 0
    values = known(values)
    _only_numbers(column, values.dtype)
    present = values.to_frame().filter(~_missing(nw.col(place), values.dtype))[place].to_list()
    if values.dtype.is_float():
        return math.fsum(present)
    with localcontext() as context:
        context.prec = 1_000
        return sum(present)


def _sum_of_plan(table: Table, column: str) -> Any:
    dtype, value = table.types[column], nw.col(table.place(column))
    present = ~_missing(value, dtype)
    if isinstance(dtype, nw.Unknown) and not _count(table.rows, present):
        return 0
    _only_numbers(column, dtype)
    if dtype.is_integer():
        total = _scalars(table.rows.filter(present), {"sum": _wide(value, table).sum()})["sum"]
        return int(total or 0)
    return _scalars(table.rows.filter(present), {"sum": value.sum()})["sum"] or 0


def _wide(value: nw.Expr, table: Table) -> nw.Expr:
    """Return whole numbers in a type whose sum does not wrap around."""
    kind = table.rows.implementation
    if kind.is_duckdb():
        return value  # it widens by itself
    if kind.is_polars():
        return value.cast(nw.Int128)
    return value.cast(nw.Decimal(38, 0) if kind.is_pyspark() or kind.is_pyspark_connect() else nw.Int64)


def _only_numbers(column: str, dtype: Any) -> None:
    if not dtype.is_numeric():
        raise CannotCheckError(f"column {column!r} is {type_shown(dtype)}; a sum needs numbers")


def _scalars(rows: Any, expressions: Mapping[str, nw.Expr]) -> dict[str, Any]:
    row = rows.select(**expressions)
    row = row.collect() if isinstance(row, nw.LazyFrame) else row
    return {name: row[name].to_list()[0] for name in expressions}


def _by_pandera(rule: Rule, frame: object) -> Outcome:
    try:
        return check_schema(rule, frame)
    except failures() as e:  # a schema holds the user's own functions
        return not_checked(rule, e)


def failures() -> tuple[type[BaseException], ...]:
    """Return what a check may end with: any error, and the panics of Polars, which are none to Python."""
    polars = sys.modules.get("polars")
    return (Exception,) if polars is None else (Exception, polars.exceptions.PanicException)


def not_checked(rule: Rule, error: BaseException) -> Outcome:
    """Return the outcome of a rule that could not be checked, and why."""
    return Outcome(rule, passed=False, detail=f"not checked: {why(error, rule.columns)}")


def why(error: BaseException, columns: Sequence[str]) -> str:
    """Return why there is no result. Other libraries quote what they trip over: of theirs the kind alone."""
    if isinstance(error, CannotCheckError | CannotCompareError):
        return mask_text(str(error))
    about = (
        f" at {'column' if len(columns) == 1 else 'columns'} {', '.join(map(repr, columns))}"
        if columns
        else ""
    )
    return mask_text(f"{_kind(error)}{about}")


def _kind(error: BaseException) -> str:
    """Return an exception's class; with Spark's own (CAST_INVALID_INPUT) or what is not installed."""
    if isinstance(error, ModuleNotFoundError):
        return f"{type(error).__name__} [{error.name}]"
    condition = getattr(error, "getCondition", getattr(error, "getErrorClass", None))
    said = condition() if type(error).__module__.startswith("pyspark.") and condition is not None else None
    return f"{type(error).__name__} [{said}]" if said else type(error).__name__
