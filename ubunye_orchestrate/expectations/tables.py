"""A table as rules see it: its columns under names of ours, in types that every engine computes with.

A name means what it says: to an expression ``*`` is every column and ``^x$`` a pattern, a dot opens a struct,
and some engines take ``a`` for ``A``. So columns are renamed by their position, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
from narwhals import dependencies as libraries

__all__ = ["CannotCheckError", "Table", "in_arrow", "is_empty_of_type", "known", "seen", "table_of"]

_HALF = ("float16", "Float16")
_OF_CATEGORIES = (nw.Categorical, nw.Enum)


class CannotCheckError(Exception):
    """Why a rule cannot be checked on a table; says nothing of what the table holds."""


@dataclass(frozen=True)
class Table:
    """A table whose columns are called by their position."""

    rows: Any
    """Narwhals' frame, in memory or lazy."""
    names: Sequence[str]
    """The names that people know, in order; one may stand twice."""
    types: Mapping[str, Any]
    """Narwhals' types, by those names."""

    @property
    def lazy(self) -> bool:
        """Whether it is a plan."""
        return isinstance(self.rows, nw.LazyFrame)

    def place(self, name: str) -> str:
        """Return what a column is called in ``rows``. Raises CannotCheckError where none is meant or two."""
        if name not in self.types:
            raise CannotCheckError(
                f"the table has no column {name!r}; it has {', '.join(self.names[:20]) or 'none'}"
            )
        if self.names.count(name) > 1:
            raise CannotCheckError(f"the table has {self.names.count(name)} columns {name!r}")
        return _called(self.names.index(name))


def table_of(frame: object) -> Table:
    """Return a frame of any library as rules see it. Raises CannotCheckError for what is none."""
    native, names = _by_position(frame)
    try:
        rows = nw.from_native(native)
    except TypeError as e:
        raise CannotCheckError(
            f"a {type(frame).__name__} is no table that can be read twice; return a pandas, Arrow or Polars "
            "table"
        ) from e
    if names is None:
        names = list(rows.collect_schema())
        rows = rows.rename({name: _called(at) for at, name in enumerate(names)})
    return Table(rows, names, dict(zip(names, rows.collect_schema().values(), strict=True)))


def _called(position: int) -> str:
    return f"c{position}"


def _by_position(frame: Any) -> tuple[Any, list[str] | None]:
    """Return a frame with its columns renamed, and their names; None where only Narwhals can do it."""
    if libraries.is_pandas_dataframe(frame):
        frame = _with_index_as_columns(frame)
        names = [str(label) for label in frame.columns]
        frame = frame.copy(deep=False)
        frame.columns = [_called(at) for at in range(len(names))]
        return frame, names
    if type(frame).__name__ == "RecordBatch" and type(frame).__module__.startswith("pyarrow"):
        import pyarrow as pa

        frame = pa.Table.from_batches([frame])
    if libraries.is_pyarrow_table(frame):
        return frame.rename_columns([_called(at) for at in range(frame.num_columns)]), frame.column_names
    if libraries.is_polars_dataframe(frame):
        renamed = frame.clone()
        renamed.columns = [_called(at) for at in range(frame.width)]
        return renamed, frame.columns
    if libraries.is_polars_lazyframe(frame):
        names = frame.collect_schema().names()
        return frame.rename({name: _called(at) for at, name in enumerate(names)}), names
    if libraries.is_duckdb_relation(frame):
        places = (f"#{at + 1} as {_called(at)}" for at in range(len(frame.columns)))
        return frame.project(", ".join(places)), frame.columns
    if libraries.is_pyspark_dataframe(frame) or libraries.is_pyspark_connect_dataframe(frame):
        return frame.toDF(*(_called(at) for at in range(len(frame.columns)))), frame.columns
    return frame, None


def _with_index_as_columns(frame: Any) -> Any:
    """Return a pandas frame with the columns that it is hashed and stored with: a named index is one."""
    named = [name for name in frame.index.names if name is not None]
    return frame.reset_index(named) if named else frame


def seen(values: Any) -> Any:
    """Return a column in memory with its values as they are, not as they are encoded.

    Dictionaries, runs, unions and the like hold nulls that their own bitmap does not tell, and Arrow computes
    with few of them.
    """
    given = values.to_native()
    if values.implementation.is_pyarrow():
        decoded = _flat(given)
        return values if decoded is given else _called_like(values, decoded)
    if values.implementation.is_pandas() and hasattr(given.dtype, "pyarrow_dtype"):
        return in_arrow(values)
    # By its name: the lowest Narwhals does not know the type.
    return values.cast(nw.Float32) if str(given.dtype) in _HALF else values


def in_arrow(values: Any) -> Any:
    """Return a column in memory as one of Arrow's, with its values as they are."""
    if values.implementation.is_pyarrow():
        return seen(values)
    return _called_like(values, _flat(values.to_arrow()))


def known(values: Any) -> Any:
    """Return a column of ``seen`` in a type of its values, which a bound can be held against.

    Categories are of a type of their own, and to pandas Python's dates and decimals are objects.
    """
    dtype = values.dtype
    if isinstance(dtype, _OF_CATEGORIES) and not values.implementation.is_pandas():
        return values.cast(nw.String)
    return in_arrow(values) if isinstance(dtype, (*_OF_CATEGORIES, nw.Object, nw.Unknown)) else values


def _called_like(values: Any, native: Any) -> Any:
    import pyarrow as pa

    chunked = native if isinstance(native, pa.ChunkedArray) else pa.chunked_array([native])
    series: Any = nw.from_native(chunked, series_only=True)
    return series.alias(values.name)


def _flat(values: Any) -> Any:
    """Return an Arrow column without encodings, in types that Arrow computes with and Narwhals knows."""
    import pyarrow as pa
    import pyarrow.types as pat

    t = values.type
    if t in (pa.string_view(), pa.binary_view()):
        return values.cast(pa.large_string() if pat.is_string_view(t) else pa.large_binary())
    if pat.is_float16(t):
        return values.cast(pa.float32())
    if pat.is_date64(t):
        return values.cast(pa.date32())
    if pat.is_decimal(t) and not pat.is_decimal128(t):
        return _cast_if_it_fits(values, pa.decimal128(min(t.precision, 38), t.scale))
    is_coded = pat.is_dictionary(t) or pat.is_run_end_encoded(t)
    if not (is_coded or pat.is_union(t) or isinstance(t, pa.BaseExtensionType)):
        return values
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    decoded = [_decoded(chunk) for chunk in chunks or [pa.array([], t)]]
    return _flat(pa.chunked_array(decoded)) if decoded[0].type != t else values


def _decoded(chunk: Any) -> Any:
    """Return an array with one encoding less; a union whose kinds have no common type as it is."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.types as pat

    t = chunk.type
    if isinstance(t, pa.BaseExtensionType):
        return chunk.storage
    if pat.is_dictionary(t):
        return _flat(chunk.dictionary).take(chunk.indices)
    if pat.is_run_end_encoded(t):
        rows = np.arange(chunk.offset, chunk.offset + len(chunk))
        return chunk.values.take(pa.array(np.searchsorted(chunk.run_ends.to_numpy(), rows, side="right")))
    try:
        return pa.array(chunk.to_pylist())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return chunk


def _cast_if_it_fits(values: Any, wanted: Any) -> Any:
    import pyarrow as pa

    try:
        return values.cast(wanted)
    except pa.ArrowInvalid:
        return values


def is_empty_of_type(values: Any) -> bool:
    """Tell a column in memory of which nothing says what it would hold, and which holds nothing."""
    if values.implementation.is_pandas():
        dtype = values.to_native().dtype
        untyped = dtype.name == "object" or (dtype.name == "category" and not len(dtype.categories))
    else:
        untyped = isinstance(values.dtype, nw.Unknown | nw.Object)
    return untyped and int(values.is_null().sum() or 0) == len(values)
