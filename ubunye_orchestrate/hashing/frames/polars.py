"""Polars frames, eager and lazy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.frames.stream import ROWS_AT_ONCE, ArrowStream, from_source
from ubunye_orchestrate.hashing.loaded import loaded

__all__ = ["recognises", "row_count", "stream"]


def recognises(frame: object) -> bool:
    """Tell a Polars DataFrame or LazyFrame."""
    polars = loaded("polars")
    return polars is not None and isinstance(frame, polars.DataFrame | polars.LazyFrame)


def row_count(frame: Any) -> int | None:
    """Return an eager frame's height; a lazy frame is not computed to know it."""
    return int(frame.height) if hasattr(frame, "height") else None


def stream(frame: Any) -> ArrowStream:
    """Stream an eager frame in slices; compute a lazy one, once, and stream what it gives.

    Raises HashError for a column of Python objects or 128-bit integers, which Polars exports as pointers or
    not at all.
    """
    if hasattr(frame, "height"):
        _refuse_what_arrow_cannot_hold(frame.schema)
        return ArrowStream(_to_arrow(frame.clear()).schema, _slices(frame, 0), "polars")
    _refuse_what_arrow_cannot_hold(from_source(frame.collect_schema))
    computed = _computed(frame)
    first = from_source(lambda: next(computed, None))
    if first is None:
        polars = sys.modules["polars"]
        first = polars.DataFrame(schema=frame.collect_schema())
    return ArrowStream(_to_arrow(first.clear()).schema, _all_slices(first, computed), "polars")


def _computed(lazy: Any) -> Iterator[Any]:
    """Compute a lazy frame once, as eager frames.

    ``collect_batches`` (marked unstable) holds a few of them at a time, ``collect`` the whole result. Before
    Polars 2 (seen in 1.34 and 1.36) the former may end as if complete when the query failed.
    """
    if int(sys.modules["polars"].__version__.split(".")[0]) >= 2:
        return iter(lazy.collect_batches(chunk_size=ROWS_AT_ONCE, maintain_order=True, lazy=True))
    return iter([from_source(lazy.collect)])


def _all_slices(first: Any, rest: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    rows = 0
    for frame in chain([first], _guarded_frames(rest, first.height)):
        if frame.schema != first.schema:
            raise HashError(
                f"the lazy frame gave two schemas: {first.schema}, and {frame.schema} after {rows} rows"
            )
        yield from _slices(frame, rows)
        rows += frame.height


def _guarded_frames(frames: Iterator[Any], rows: int) -> Iterator[Any]:
    while (frame := from_source(lambda: next(frames, None), rows=rows)) is not None:
        rows += frame.height
        yield frame


def _slices(frame: Any, rows_before: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, frame.height, ROWS_AT_ONCE):
        exported = _to_arrow(frame.slice(start, ROWS_AT_ONCE))
        # Before Polars 2 a slice of structs with nulls is not valid Arrow data.
        from_source(exported.validate, rows=rows_before + start)
        yield from exported.to_batches()


def _to_arrow(frame: Any) -> pa.Table:
    # The protocol, not to_arrow(): string views are handed over as they are.
    return pa.RecordBatchReader.from_stream(frame).read_all()


def _refuse_what_arrow_cannot_hold(schema: Any) -> None:
    for name, dtype in schema.items():
        if inside := _not_in_arrow(dtype):
            raise HashError(
                f"Polars has no Arrow form of {inside}; cast it to a type that Arrow has (Decimal, String)",
                column=name,
                type_name=str(dtype),
            )


def _not_in_arrow(dtype: Any) -> str | None:
    """Name the type at any depth of ``dtype`` that has no Arrow form, if there is one."""
    if str(dtype) in ("Int128", "UInt128", "Object"):
        return str(dtype)
    children = [getattr(dtype, "inner", None), *(field.dtype for field in getattr(dtype, "fields", ()))]
    return next(
        (inside for child in children if child is not None and (inside := _not_in_arrow(child))), None
    )
