"""Some partitions of an asset as rows of one Delta table: a predicate for delta-rs, a mask for Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from dagster import MultiPartitionsDefinition, PartitionsDefinition, TimeWindowPartitionsDefinition

from ubunye_orchestrate.dagster_io.storage.spark_partitions import Columns
from ubunye_orchestrate.errors import StorageError

__all__ = ["Rows", "columns_of_folders", "outside", "predicate", "rows_of"]


@dataclass(frozen=True)
class _Equal:
    """Rows with one value in a column."""

    column: str
    value: str | int | date


@dataclass(frozen=True)
class _Within:
    """Rows from one moment up to another, which is not among them."""

    column: str
    start: date | datetime
    end: date | datetime


_Condition = _Equal | _Within
Rows = tuple[_Condition, ...]
"""The rows of one partition: all conditions hold, one for each dimension."""


def rows_of(schema: pa.Schema, columns: Columns, definition: PartitionsDefinition, key: str) -> Rows:
    """Return what the rows of a partition are, in a table of these columns.

    As in Dagster's database IO managers, but for columns alone: a row is of a time window's partition if its
    date or time is within the window (in the partitions' zone where the column has none), else if it has the
    key as its value. Raises StorageError for a column that is not there, or that cannot hold the key.
    """
    if not isinstance(definition, MultiPartitionsDefinition):
        return (_condition(schema, columns[None], definition, key),)
    by_name = definition.get_partition_key_from_str(key).keys_by_dimension
    return tuple(
        _condition(schema, columns[one.name], one.partitions_def, by_name[one.name])
        for one in definition.partitions_defs
    )


def columns_of_folders(schema: pa.Schema, columns: Columns) -> list[str]:
    """Return the columns by which a new table is laid out in folders: those with few values."""
    folders = [name for name in columns.values() if not pat.is_timestamp(schema.field(name).type)]
    # The files hold the other columns, and have one at least.
    return folders if len(folders) < len(schema) else []


def predicate(partitions: Iterable[Rows]) -> str:
    """Return the condition of some partitions' rows in delta-rs' SQL."""
    distinct = list(dict.fromkeys(partitions))
    by_column = [list(dict.fromkeys(conditions)) for conditions in zip(*distinct, strict=True)]
    if len(distinct) == reduce(lambda product, one: product * len(one), by_column, 1):
        return " AND ".join(_any_of(conditions) for conditions in by_column)
    return " OR ".join("(" + " AND ".join(_any_of([one]) for one in rows) + ")" for rows in distinct)


def outside(batch: pa.RecordBatch, partitions: Iterable[Rows]) -> pa.RecordBatch:
    """Return the rows that are of none of the partitions."""
    inside = pa.array([False] * batch.num_rows, pa.bool_())
    for rows in dict.fromkeys(partitions):
        masks = [_mask(batch.column(one.column), one) for one in rows]
        inside = pc.or_(inside, reduce(pc.and_, masks))
    return batch.filter(pc.invert(inside))


def _condition(schema: pa.Schema, column: str, definition: PartitionsDefinition, key: str) -> _Condition:
    if column not in schema.names:
        raise StorageError(
            f"the partition is told by {column!r} (partition_expr), which the table does not have; expected "
            f"the name of one of its columns: {', '.join(map(repr, schema.names))}"
        )
    t = schema.field(column).type
    windows = isinstance(definition, TimeWindowPartitionsDefinition)
    if isinstance(definition, TimeWindowPartitionsDefinition) and (pat.is_date32(t) or pat.is_timestamp(t)):
        window = definition.time_window_for_partition_key(key)
        return _Within(column, _moment(t, column, window.start), _moment(t, column, window.end))
    value: str | int | date = key
    try:
        if pat.is_integer(t):
            value = int(key)
        elif pat.is_date32(t):
            value = date.fromisoformat(key)
    except ValueError as e:
        raise StorageError(f"partition {key!r} is no value of {column!r} (partition_expr, {t})") from e
    if isinstance(value, str) and not (pat.is_string(t) or pat.is_large_string(t)):
        kinds = "string, date, timestamp or an integer type" if windows else "string, date or an integer type"
        raise StorageError(f"partition_expr {column!r} is {t}; expected {kinds}, as the partition keys are")
    return _Equal(column, value)


def _moment(t: pa.DataType, column: str, edge: datetime) -> date | datetime:
    if pat.is_timestamp(t):
        return edge.astimezone(timezone.utc) if t.tz else edge.replace(tzinfo=None)
    if edge.time() != time():
        raise StorageError(
            f"partition_expr {column!r} is a date and the partitions are parts of a day ({edge:%H:%M}); "
            "expected a timestamp"
        )
    return edge.date()


def _any_of(conditions: Sequence[_Condition]) -> str:
    """Return the condition of rows that meet any of these, all of one column."""
    name = '"' + conditions[0].column.replace('"', '""') + '"'
    values = [_literal(one.value) for one in conditions if isinstance(one, _Equal)]
    if values:
        return f"{name} IN ({', '.join(values)})"
    told = [f"{name} >= {_literal(start)} AND {name} < {_literal(end)}" for start, end in _merged(conditions)]
    return told[0] if len(told) == 1 else "(" + " OR ".join(f"({one})" for one in told) + ")"


def _merged(conditions: Iterable[_Condition]) -> list[tuple[date, date]]:
    merged: list[tuple[date, date]] = []
    for start, end in sorted((one.start, one.end) for one in conditions if isinstance(one, _Within)):
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def _literal(value: str | int | date) -> str:
    if isinstance(value, datetime):
        zone = "None" if value.tzinfo is None else 'Some("UTC")'
        moment = value.replace(tzinfo=None).isoformat() + ("" if value.tzinfo is None else "Z")
        # A TIMESTAMP literal has nanoseconds, and delta-rs then compares it with nothing.
        return f"arrow_cast('{moment}', 'Timestamp(Microsecond, {zone})')"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _mask(column: pa.Array, condition: _Condition) -> pa.Array:
    t = column.type
    if isinstance(condition, _Equal):
        mask = pc.equal(column, pa.scalar(condition.value, t))
    else:
        start, end = pa.scalar(condition.start, t), pa.scalar(condition.end, t)
        mask = pc.and_(pc.greater_equal(column, start), pc.less(column, end))
    return pc.fill_null(mask, False)
