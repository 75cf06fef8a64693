"""From what an asset returned to Arrow data for a store: exact, or as Arrow has it, and then unhashed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from dagster import OutputContext

from ubunye_orchestrate.dagster_io.receipts.writer import ReceiptWriter
from ubunye_orchestrate.dagster_io.storage.forms import pandas_metadata
from ubunye_orchestrate.errors import HashError, StorageError
from ubunye_orchestrate.foreign import said
from ubunye_orchestrate.hashing.frames import arrow_stream
from ubunye_orchestrate.records.values import inspect_value

__all__ = ["RowsToStore", "spooled", "store_exactly", "values_to_store"]

T = TypeVar("T")


@dataclass(frozen=True)
class RowsToStore:
    """One value as Arrow data, to be read once."""

    schema: pa.Schema
    """With what pandas needs to make its own types again, of a pandas frame."""
    batches: Iterator[pa.RecordBatch]


class _NotExactError(Exception):
    """A value that cannot be converted exactly, so that it has no hash."""

    def __init__(self, name: str | None, error: HashError) -> None:
        super().__init__(str(error))
        self.name = name
        self.error = error


def values_to_store(context: OutputContext, obj: Any, keys: Sequence[str | None]) -> dict[str | None, Any]:
    """Return the value of each partition of a run (``keys``), of a dict of them where there are several.

    Raises StorageError for anything else, and for None.
    """
    # Keys may be given as what they stand for: dates, numbers.
    by_key = {str(key): value for key, value in obj.items()} if isinstance(obj, Mapping) else {}
    if by_key and by_key.keys() == set(keys):
        values = {name: by_key[str(name)] for name in keys}
    elif len(keys) == 1:
        values = {keys[0]: obj}
    else:
        got = f"a dict with the keys {sorted(map(str, obj))[:5]}" if isinstance(obj, Mapping) else _type(obj)
        raise StorageError(
            f"the run stores {len(keys)} partitions of {context.asset_key.to_user_string()} and got {got}; "
            "expected a dict of tables with the partition keys as keys: {key: table for key in "
            "context.partition_keys}, or give the asset BackfillPolicy.multi_run()"
        )
    if any(value is None for value in values.values()):
        raise StorageError(
            "got None; expected a table; annotate the asset with '-> None' if it stores its data itself"
        )
    return values


def store_exactly(
    context: OutputContext,
    values: Mapping[str | None, Any],
    writer: ReceiptWriter,
    store: Callable[[dict[str | None, RowsToStore]], T],
) -> tuple[T, dict[str | None, str]]:
    """Call ``store`` with the rows of the values; again, with what Arrow makes of one that is not exact.

    Returns what it returned, and why those values have no hash. ``store`` must leave nothing behind when it
    fails. Raises StorageError for what is no table; what a lazy source raises passes through.
    """
    unhashed: dict[str | None, str] = {}
    zone = writer.settings.naive_timestamps
    while True:
        try:
            rows = {
                name: _as_arrow_has_them(value) if name in unhashed else _exact(name, value, zone)
                for name, value in values.items()
            }
            stored = store(rows)
            break
        except _NotExactError as e:
            if inspect_value(values[e.name]).nature == "other":
                raise StorageError(
                    f"got {_type(values[e.name])}; {writer.manager} stores tables (pandas, Arrow, Polars, "
                    'DuckDB); give the asset another IO manager (io_manager_key="…")'
                ) from e.error
            if any(inspect_value(value).nature != "whole" for value in values.values()):
                # It cannot be read a second time, and the source's own error is the one to see.
                raise (e.error.__cause__ or e.error) from None
            unhashed[e.name] = str(e.error)
    for reason in unhashed.values():
        context.log.warning(f"ubunye: the table is stored without a data hash: {reason}")
    return stored, unhashed


def spooled(value: Any, naive_timestamps: str, file: str) -> pa.Table:
    """Compute what is not in memory, once, into a local file; return it as a table that stays there.

    Raises what the source raises, StorageError for what has no exact form in Arrow.
    """
    try:
        stream = arrow_stream(value, naive_timestamps=naive_timestamps)
        with pa.OSFile(file, "wb") as sink, pa.ipc.new_stream(sink, stream.schema) as writer:
            for batch in stream.batches:
                writer.write_batch(batch)
    except HashError as e:
        raise (e.__cause__ or StorageError(str(e))) from None
    return pa.ipc.open_stream(pa.memory_map(file)).read_all()


def _exact(name: str | None, value: Any, naive_timestamps: str) -> RowsToStore:
    try:
        stream = arrow_stream(value, naive_timestamps=naive_timestamps)
        schema = stream.schema
        if stream.library == "pandas":
            schema = schema.with_metadata(pandas_metadata(value))
    except HashError as e:
        raise _NotExactError(name, e) from e

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from stream.batches
        except HashError as e:
            raise _NotExactError(name, e) from e

    return RowsToStore(schema, batches())


def _as_arrow_has_them(frame: Any) -> RowsToStore:
    """Convert a frame in memory as Arrow does by itself. Raises StorageError where it refuses."""
    table = _arrow_table(frame)
    return RowsToStore(table.schema, iter(table.to_batches()))


def _arrow_table(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    try:
        if inspect_value(frame).backend == "pandas":
            named = [name for name in frame.index.names if name is not None]
            return pa.Table.from_pandas(frame.reset_index(named) if named else frame, preserve_index=False)
        return frame.to_arrow()
    except Exception as e:  # Arrow's, pandas' and Polars' own exceptions
        raise StorageError(f"the table cannot be stored: {said(e)}; convert the column that it names") from e


def _type(value: object) -> str:
    return f"a {type(value).__name__}"
