"""DuckDB relations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.frames.stream import ROWS_AT_ONCE, ArrowStream, from_source, guarded
from ubunye_orchestrate.hashing.loaded import loaded

__all__ = ["recognises", "row_count", "stream"]

# Exported to Arrow with a loss: the offset is dropped, the upper half of the range wraps or overflows.
_LOSSY = {
    "time with time zone": "cast it to TIME or to VARCHAR",
    "uhugeint": "cast it to UBIGINT or to VARCHAR",
}


def recognises(frame: object) -> bool:
    """Tell a DuckDB relation."""
    duckdb = loaded("duckdb")
    return duckdb is not None and isinstance(frame, duckdb.DuckDBPyRelation)


def row_count(frame: object) -> None:
    """Return None: counting a relation's rows would run it."""


def stream(frame: Any) -> ArrowStream:
    """Run the relation once and stream its result in batches.

    Raises HashError for types that DuckDB exports with a loss.
    """
    for name, sql_type in zip(frame.columns, frame.types, strict=True):
        _refuse_lossy(name, sql_type, str(sql_type))
    reader = from_source(lambda: _reader(frame))
    # DuckDB renames a column that differs from another only in case.
    schema = pa.schema([f.with_name(name) for f, name in zip(reader.schema, frame.columns, strict=True)])
    return ArrowStream(schema, _renamed(guarded(iter(reader)), schema), "duckdb")


def _renamed(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _reader(relation: Any) -> Any:
    # Looked up on the class, since a relation's attributes are its columns.
    methods = dir(type(relation))
    if "fetchone" in methods:
        # Before 2.0 a relation keeps its result, which the user may have fetched in part: run another of the
        # same rows. Since 2.0 it keeps none.
        relation = relation.filter("true")
    name = "to_arrow_reader" if "to_arrow_reader" in methods else "fetch_arrow_reader"
    return getattr(relation, name)(ROWS_AT_ONCE)


def _refuse_lossy(column: str, sql_type: Any, whole: str) -> None:
    if hint := _LOSSY.get(str(sql_type).lower()):
        raise HashError(f"DuckDB exports {sql_type} with a loss; {hint}", column=column, type_name=whole)
    for child in _children(sql_type):
        _refuse_lossy(column, child, whole)


def _children(sql_type: Any) -> Iterator[Any]:
    if sql_type.id in ("list", "array", "struct", "map", "union"):
        for _, child in sql_type.children:
            if hasattr(child, "id"):  # an array's size is listed among its children
                yield child
