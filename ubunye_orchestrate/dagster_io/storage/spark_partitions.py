"""A partition as a condition on a table's columns, each key written as a value of the column's own type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timezone
from typing import Any

from dagster import (
    MultiPartitionKey,
    MultiPartitionsDefinition,
    PartitionsDefinition,
    TimeWindow,
    TimeWindowPartitionsDefinition,
)

from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.hashing.spark.sql import literal

__all__ = ["Columns", "condition", "folders_of", "partition_columns", "quoted"]

Columns = Mapping[str | None, str]
"""Dimension -> the column, or SQL expression, that holds it; the only key is None for a single dimension."""

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
# Each value of them is few rows: a folder for each would be too many.
_NOT_FOLDERS = ("timestamp", "timestamp_ntz")


def partition_columns(metadata: Mapping[str, Any], definition: PartitionsDefinition | None) -> Columns | None:
    """Return what an asset's metadata says of its partition columns (``partition_expr``); None for nothing.

    A text for a single dimension, a mapping with every dimension's name for several. Raises StorageError for
    anything else.
    """
    given = metadata.get("partition_expr")
    if given is None or definition is None:
        return None
    if isinstance(definition, MultiPartitionsDefinition):
        names = {one.name for one in definition.partitions_defs}
        if isinstance(given, Mapping) and set(given) == names:
            return {name: str(given[name]) for name in sorted(names)}
        example = ", ".join(f'"{name}": "…"' for name in sorted(names))
        raise StorageError(
            f'the asset\'s metadata "partition_expr" is {given!r}; expected the column of each dimension: '
            f'{{"partition_expr": {{{example}}}}}'
        )
    if isinstance(given, str):
        return {None: given}
    raise StorageError(
        f'the asset\'s metadata "partition_expr" is {given!r}; expected the column that holds the partition: '
        '{"partition_expr": "day"}'
    )


def folders_of(frame: Any, columns: Columns) -> list[str]:
    """Return the columns by which a new table of these partitions is laid out in folders."""
    types = dict(frame.dtypes)
    folders = [name for name in columns.values() if name in types and types[name] not in _NOT_FOLDERS]
    # The files hold the other columns, and have one at least.
    return folders if len(folders) < len(types) else []


def condition(frame: Any, columns: Columns, definition: PartitionsDefinition, keys: Sequence[str]) -> str:
    """Return the SQL condition that the rows of these partitions meet, and no others.

    ``frame`` is one with the table's columns; no job runs. Raises StorageError for a column that is not
    there, and for one whose type cannot hold the keys.
    """
    types = {name: _type_of(frame, column) for name, column in columns.items()}
    terms = {
        name: quoted(column) if column in frame.columns else f"({column})" for name, column in columns.items()
    }
    if not isinstance(definition, MultiPartitionsDefinition):
        return _one_dimension(terms[None], columns[None], types[None], definition, keys)
    dimensions = {one.name: one.partitions_def for one in definition.partitions_defs}
    told: dict[str, None] = {}
    for key in keys:
        parts = key if isinstance(key, MultiPartitionKey) else definition.get_partition_key_from_str(key)
        by_name = parts.keys_by_dimension
        each = [
            _one_dimension(terms[name], column, types[name], dimensions[name], [by_name[name]])
            for name, column in columns.items()
            if name is not None
        ]
        told[" and ".join(f"({one})" for one in each)] = None
    return " or ".join(f"({one})" for one in told)


def quoted(name: str) -> str:
    """Return a name as Spark's SQL has it, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def _type_of(frame: Any, column: str) -> str:
    found = dict(frame.dtypes).get(column)
    if found is not None:
        return str(found)
    try:
        return str(frame.selectExpr(column).dtypes[0][1])
    except Exception as e:
        raise StorageError(
            f"the partition is told by {column!r} (partition_expr); expected a column of that name among "
            f"{', '.join(frame.columns)}"
        ) from e


def _one_dimension(
    term: str, column: str, kind: str, definition: PartitionsDefinition, keys: Sequence[str]
) -> str:
    if isinstance(definition, TimeWindowPartitionsDefinition) and kind in ("date", *_NOT_FOLDERS):
        windows = _merged(definition.time_window_for_partition_key(key) for key in keys)
        ranges = [
            f"{term} >= {_moment(kind, w.start, column)} and {term} < {_moment(kind, w.end, column)}"
            for w in windows
        ]
        return ranges[0] if len(ranges) == 1 else " or ".join(f"({one})" for one in ranges)
    values = [_value(kind, key, column) for key in keys]
    return f"{term} = {values[0]}" if len(values) == 1 else f"{term} in ({', '.join(values)})"


def _merged(windows: Iterable[TimeWindow]) -> list[TimeWindow]:
    merged: list[TimeWindow] = []
    for window in sorted(windows, key=lambda w: w.start):
        if merged and merged[-1].end == window.start:
            merged[-1] = TimeWindow(merged[-1].start, window.end)
        else:
            merged.append(window)
    return merged


def _moment(kind: str, moment: datetime, column: str) -> str:
    """Write the edge of a time window: an instant, or what the clocks of the partitions' zone showed then."""
    if kind == "timestamp":
        return f"timestamp'{moment.astimezone(timezone.utc).isoformat(' ')}'"
    if kind == "timestamp_ntz":
        return f"timestamp_ntz'{moment.replace(tzinfo=None).isoformat(' ')}'"
    if moment.time() != time():
        raise StorageError(
            f"partition_expr {column!r} is a date and the partitions are parts of a day ({moment:%H:%M}); "
            "expected a timestamp"
        )
    return f"date'{moment.date().isoformat()}'"


def _value(kind: str, key: str, column: str) -> str:
    if kind == "string":
        return literal(key)
    try:
        if kind in _INTEGERS:
            return str(int(key))
        if kind == "date":
            return f"date'{date.fromisoformat(key).isoformat()}'"
    except ValueError as e:
        raise StorageError(f"partition {key!r} is no value of {column!r} (partition_expr, {kind})") from e
    raise StorageError(
        f"partition_expr {column!r} is {kind}; expected string, date, timestamp or an integer type, as the "
        "partition keys are"
    )
