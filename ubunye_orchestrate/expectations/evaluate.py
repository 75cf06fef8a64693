"""A table held against its rules, with Narwhals, whatever library the table is of.

A table in memory is checked as it is. A lazy plan (Polars, Spark, DuckDB) is computed for the check and again
when it is written: its results say ``checked: plan``, since a plan may give other rows the second time. Where
what was written can be read before it takes the old table's place, that is checked instead: ``in_parts``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import localcontext
from typing import Any

import narwhals as nw

from ubunye_orchestrate.expectations.literals import CannotCompareError, bound_for
from ubunye_orchestrate.expectations.outcomes import Measure, Outcome
from ubunye_orchestrate.expectations.pandera_schemas import check_schema
from ubunye_orchestrate.expectations.patterns import java_pattern, plain_pattern
from ubunye_orchestrate.expectations.rules import Rule

__all__ = ["evaluate", "measure", "not_checked", "rows_within"]

_TEXTS = (nw.String, nw.Categorical, nw.Enum)
_AT_A_GLANCE = (nw.String, nw.Boolean, nw.Date, nw.Datetime)


class _CannotCheckError(Exception):
    """Why a rule cannot be checked on a table."""


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
        table = _table(frame)
        columns = dict(table.collect_schema())
        total = _rows(table)
    except Exception as e:  # noqa: BLE001 - each library has its own, and none may pass as a rule that holds
        return [not_checked(rule, e) for rule in wanted]
    lazy = isinstance(table, nw.LazyFrame)
    outcomes = []
    for rule in wanted:
        try:
            outcome = _check(rule, table, columns, total)
        except Exception as e:  # noqa: BLE001 - as above
            outcome = not_checked(rule, e)
        outcomes.append(replace(outcome, on_plan=lazy))
    return outcomes


def measure(frame: object, columns: Sequence[str]) -> Measure | str:
    """Return the rows of a table and the sum of each of the columns; a text says why there are none.

    Sums of a table in memory are exact, whatever the order of its rows.
    """
    try:
        table = _table(frame)
        types = dict(table.collect_schema())
        for column in columns:
            if column not in types:
                raise _CannotCheckError(_no_column(column, types))
            if not types[column].is_numeric():
                raise _CannotCheckError(f"column {column!r} is {types[column]}; a sum needs numbers")
        return Measure(_rows(table), {column: _sum(table, column, types[column]) for column in columns})
    except Exception as e:  # noqa: BLE001 - each library has its own
        return _why(e)


def rows_within(rule: Rule, total: int) -> Outcome:
    """Return what became of a ``row_count`` rule on a table of so many rows."""
    least, most = rule.options.get("min", 0), rule.options.get("max", total)
    return Outcome(rule, least <= total <= most, int(not least <= total <= most), total)


def _table(frame: object) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    kind = type(frame)
    if kind.__module__.startswith("pandas") and kind.__name__ == "DataFrame":
        frame = _with_index_as_columns(frame)
    elif kind.__module__.startswith("pyarrow") and kind.__name__ == "RecordBatch":
        import pyarrow as pa

        frame = pa.Table.from_batches([frame])
    if type(frame).__module__.startswith("pyarrow") and type(frame).__name__ == "Table":
        frame = _without_views(frame)
    try:
        table = nw.from_native(frame)  # type: ignore[call-overload]  # narwhals tells what it does not know
    except TypeError as e:
        raise _CannotCheckError(
            f"a {kind.__name__} is no table that can be read twice; return a pandas, Arrow or Polars table"
        ) from e
    found: nw.DataFrame[Any] | nw.LazyFrame[Any] = table
    return found


def _without_views(table: Any) -> Any:
    """Return an Arrow table whose texts and bytes are of types that Arrow computes with."""
    import pyarrow as pa

    others = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    if not any(field.type in others for field in table.schema):
        return table
    fields = [field.with_type(others.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def _with_index_as_columns(frame: Any) -> Any:
    """Return a pandas frame with the columns that it is hashed and stored with: a named index is one."""
    named = [name for name in frame.index.names if name is not None]
    frame = frame.reset_index(named) if named else frame
    if all(isinstance(label, str) for label in frame.columns):
        return frame
    return frame.set_axis([str(label) for label in frame.columns], axis=1)


def _check(rule: Rule, table: Any, columns: Mapping[str, Any], total: int) -> Outcome:
    if rule.kind == "row_count":
        return rows_within(rule, total)
    if rule.kind == "columns":
        return _check_columns(rule, columns)
    for column in rule.columns:
        if column not in columns:
            raise _CannotCheckError(_no_column(column, columns))
    if rule.kind == "unique":
        failed = _alike(table, rule.columns, columns)
    elif rule.kind == "not_null":
        column = rule.columns[0]
        failed = _count_missing(table, column, columns[column])
    else:
        failed = _breaking(rule, table, columns[rule.columns[0]])
    return Outcome(rule, failed == 0, failed, total)


def _check_columns(rule: Rule, columns: Mapping[str, Any]) -> Outcome:
    wanted: Mapping[str, Sequence[str]] = rule.options["types"]
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


def _missing(column: str, dtype: Any) -> nw.Expr:
    null = nw.col(column).is_null()
    return null | nw.col(column).is_nan() if dtype.is_float() else null


def _count_missing(table: Any, column: str, dtype: Any) -> int:
    if isinstance(table, nw.LazyFrame):
        return _count(table, _missing(column, dtype))
    # Of a table in memory: an expression over it takes several times as long to set up.
    values = table[column]
    missing = (values.is_null() | values.is_nan()).sum() if dtype.is_float() else values.null_count()
    # Not a number of NumPy's, which no record holds.
    return int(missing or 0)


def _rows(table: Any) -> int:
    return int(_scalars(table, {"rows": nw.len()})["rows"]) if isinstance(table, nw.LazyFrame) else len(table)


def _count(table: Any, condition: nw.Expr) -> int:
    # A sum of truth values fails on Spark.
    one = nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))
    return int(_scalars(table, {"failed": one.sum()})["failed"] or 0)


def _alike(table: Any, names: Sequence[str], columns: Mapping[str, Any]) -> int:
    if len(names) == 1 and _all_different(table, names[0], columns[names[0]]):
        return 0
    # NaN is missing, and missing values are alike.
    keys = [
        nw.when(~_missing(name, columns[name])).then(nw.col(name)).alias(name)
        if columns[name].is_float()
        else nw.col(name)
        for name in names
    ]
    size = "rows alike"
    groups = table.select(*keys).group_by(*names).agg(nw.len().alias(size)).filter(nw.col(size) > 1)
    return int(_scalars(groups, {"failed": nw.col(size).sum()})["failed"] or 0)


def _all_different(table: Any, column: str, dtype: Any) -> bool:
    """Tell at a glance that no two values of a column are alike; False where it takes a closer look.

    Grouping, which also counts those that are alike, takes twenty times as long for a small table.
    """
    plain = dtype.is_integer() or dtype.is_float() or isinstance(dtype, _AT_A_GLANCE)
    if isinstance(table, nw.LazyFrame) or not plain:
        return False
    return table[column].n_unique() == len(table) and _count_missing(table, column, dtype) <= 1


def _breaking(rule: Rule, table: Any, dtype: Any) -> int:
    """Count the values that break a rule; what is missing does not."""
    column = rule.columns[0]
    lazy = isinstance(table, nw.LazyFrame)
    if isinstance(dtype, nw.Object) and not lazy:
        # Python's dates, decimals and the like in pandas: Arrow knows what they are.
        table = nw.from_dict({column: table[column].to_arrow()}, backend="pyarrow")
        dtype = table.schema[column]
    if rule.kind == "matches" and not isinstance(dtype, _TEXTS):
        raise _CannotCheckError(f"column {column!r} is {dtype}; matches needs text")
    value = nw.col(column)
    if isinstance(dtype, nw.Categorical | nw.Enum):
        value, dtype = value.cast(nw.String), nw.String()
    if rule.kind == "matches":
        if not lazy:
            return _texts_not_matching(table[column], rule.options["pattern"])
        java = table.implementation.is_pyspark() or table.implementation.is_pyspark_connect()
        pattern = rule.options["pattern"]
        holds = value.str.contains(java_pattern(pattern) if java else plain_pattern(pattern))
    elif rule.kind == "one_of":
        holds = value.is_in([bound_for(given, dtype, column) for given in rule.options["values"]])
    else:
        holds = _within(value, rule, dtype)
    present = ~_missing(column, dtype)
    if lazy:
        return _count(table, present & ~holds)
    # Apart, since pandas compares no None with a text.
    kept = table.select(nw.col(column)).filter(present)
    return len(kept) - len(kept.filter(holds))


def _within(value: nw.Expr, rule: Rule, dtype: Any) -> nw.Expr:
    column = rule.columns[0]
    least = bound_for(rule.options["min"], dtype, column, at_least=True) if "min" in rule.options else None
    most = bound_for(rule.options["max"], dtype, column, at_least=False) if "max" in rule.options else None
    bounds = [] if least is None else [value >= least]
    return nw.all_horizontal(*bounds, *([] if most is None else [value <= most]), ignore_nulls=False)


def _texts_not_matching(series: Any, pattern: str) -> int:
    """Count the texts in memory that do not match, by RE2 itself."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.cast(series.to_arrow(), pa.large_string())
    return int(pc.sum(pc.invert(pc.match_substring_regex(texts, plain_pattern(pattern)))).as_py() or 0)


def _sum(table: Any, column: str, dtype: Any) -> Any:
    present = table.select(nw.col(column)).filter(~_missing(column, dtype))
    if isinstance(table, nw.LazyFrame):
        wide = nw.col(column).cast(nw.Int64) if dtype.is_integer() else nw.col(column)
        return _scalars(present, {"sum": wide.sum()})["sum"] or 0
    values = present[column].to_list()
    if dtype.is_float():
        return math.fsum(values)
    with localcontext() as context:
        context.prec = 1_000
        return sum(values)


def _scalars(table: Any, expressions: Mapping[str, nw.Expr]) -> dict[str, Any]:
    row = table.select(**expressions)
    row = row.collect() if isinstance(row, nw.LazyFrame) else row
    return {name: row[name].to_list()[0] for name in expressions}


def _by_pandera(rule: Rule, frame: object) -> Outcome:
    try:
        return check_schema(rule, frame)
    except Exception as e:  # noqa: BLE001 - a schema holds the user's own functions
        return not_checked(rule, e)


def not_checked(rule: Rule, error: Exception) -> Outcome:
    """Return the outcome of a rule that could not be checked, and why."""
    return Outcome(rule, passed=False, detail=f"not checked: {_why(error)}")


def _why(error: Exception) -> str:
    if isinstance(error, _CannotCheckError | CannotCompareError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _no_column(column: str, columns: Iterable[str]) -> str:
    return f"the table has no column {column!r}; it has {', '.join(list(columns)[:20]) or 'none'}"
