"""pandas frames (2.2 and newer), a column and a slice of rows at a time.

The rules: NaN in a NumPy float column is pandas' missing marker, hence null; an Arrow-backed or nullable
column says itself what is null and keeps NaN apart. Named index levels are columns, unnamed ones are dropped.
Labels become text.
"""

from __future__ import annotations

import decimal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.frames.objects import object_column, text_column
from ubunye_orchestrate.hashing.frames.stream import ROWS_AT_ONCE, ArrowStream
from ubunye_orchestrate.hashing.loaded import loaded

__all__ = ["recognises", "row_count", "stream"]

# pandas' own types whose Arrow form loses what they mean, or that have none.
_NOT_IN_ARROW = ("PeriodDtype", "IntervalDtype", "SparseDtype")


_Rows: TypeAlias = "pa.Array | pa.ChunkedArray"


class _Column(NamedTuple):
    """One column, ready to be converted in slices: ``rows(start, stop)`` gives those rows as ``type``."""

    name: str
    type: pa.DataType
    rows: Callable[[int, int], _Rows]


def recognises(frame: object) -> bool:
    """Tell a pandas DataFrame."""
    pandas = loaded("pandas")
    return pandas is not None and hasattr(pandas, "DataFrame") and isinstance(frame, pandas.DataFrame)


def row_count(frame: Any) -> int:
    """Return the frame's length."""
    return len(frame)


def stream(frame: Any) -> ArrowStream:
    """Stream the frame's rows, converted a slice at a time.

    Raises HashError, naming the column, for labels that are not distinct as text, for mixed objects, and for
    a pandas type that Arrow cannot hold exactly.
    """
    columns = [_column(name, series) for name, series in _labelled(frame)]
    schema = pa.schema([pa.field(column.name, column.type) for column in columns])
    return ArrowStream(schema, _batches(columns, schema, len(frame)), "pandas")


def _batches(columns: list[_Column], schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, rows)
        if columns:
            arrays = [column.rows(start, stop) for column in columns]
            if any(isinstance(array, pa.ChunkedArray) for array in arrays):
                yield from pa.Table.from_arrays(arrays, schema=schema).to_batches()
            else:
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        else:
            # Rows without columns: only a struct array knows how many.
            yield pa.RecordBatch.from_struct_array(pa.array([{}] * (stop - start), pa.struct([])))


# --------------------------------------------------------------------------- labels


def _labelled(frame: Any) -> list[tuple[str, Any]]:
    """Return (name, Series) of each named index level and each column; HashError where names clash."""
    pandas = sys.modules["pandas"]
    index = frame.index
    levels = [
        (name, pandas.Series(index.get_level_values(i), copy=False))
        for i, name in enumerate(index.names)
        if name is not None
    ]
    columns = list(frame.items())
    labels = [label for label, _ in levels + columns]
    texts = [_label_text(label) for label in labels]
    for text, count in Counter(texts).items():
        if count > 1:
            clashing = [repr(label) for label, t in zip(labels, texts, strict=True) if t == text]
            raise HashError(
                f"{count} labels (columns and named index levels) are this text: {', '.join(clashing)}; "
                "rename or drop some",
                column=text,
            )
    return [(text, series) for text, (_, series) in zip(texts, levels + columns, strict=True)]


def _label_text(label: object) -> str:
    text = str(label)
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise HashError(
            "this column label is not valid Unicode (a lone surrogate); rename it", column=text
        ) from e
    return text


# --------------------------------------------------------------------------- columns


def _column(name: str, series: Any) -> _Column:
    dtype = series.dtype
    if type(dtype).__name__ in _NOT_IN_ARROW:
        raise HashError(
            "pandas values of this type have no exact Arrow form; convert the column before it is stored",
            column=name,
            type_name=str(dtype),
        )
    if isinstance(dtype, np.dtype):
        return _numpy_column(name, series.to_numpy())
    pandas = sys.modules["pandas"]
    if isinstance(dtype, pandas.CategoricalDtype):
        return _categorical_column(name, series.cat)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return _zoned_column(name, series)
    return _extension_column(name, series.array)


def _numpy_column(name: str, values: npt.NDArray[Any]) -> _Column:
    if values.dtype == object:
        is_text = sys.modules["pandas"].api.types.infer_dtype(values) == "string"  # nulls left out
        look = text_column if is_text else object_column
        column = look(values, lambda objects: _missing(objects, name), name)
        return _Column(name, column.type, column.slice)
    native = values.dtype.newbyteorder("=")
    try:
        arrow_type = pa.from_numpy_dtype(native)
    except pa.ArrowException as e:
        raise HashError(
            "NumPy values of this type have no Arrow form; convert the column before it is stored",
            column=name,
            type_name=str(values.dtype),
        ) from e

    def rows(start: int, stop: int) -> _Rows:
        return pa.array(values[start:stop].astype(native, copy=False), arrow_type, from_pandas=True)

    return _Column(name, arrow_type, rows)


def _missing(values: npt.NDArray[np.object_], name: str) -> npt.NDArray[np.bool_]:
    """Mark None, NaN, NA, NaT and Decimal("NaN"), as pandas does."""
    pandas = sys.modules["pandas"]
    try:
        return np.asarray(pandas.isna(values))
    except decimal.InvalidOperation as e:
        raise HashError(
            "holds a Decimal that is a signalling NaN, which cannot be compared",
            column=name,
            type_name="object",
        ) from e


def _categorical_column(name: str, accessor: Any) -> _Column:
    """Convert the categories once and the codes in slices."""
    pandas = sys.modules["pandas"]
    values = pandas.Series(accessor.categories, copy=False)
    if not len(values):
        values = values.astype(object)  # of nothing but nulls; what pandas takes for its type is no one's
    _, _, of_categories = _column(name, values)
    categories = of_categories(0, len(values))
    if isinstance(categories, pa.ChunkedArray):
        categories = categories.combine_chunks()
    codes = accessor.codes.to_numpy()
    arrow_type = pa.dictionary(pa.from_numpy_dtype(codes.dtype), categories.type, bool(accessor.ordered))

    def rows(start: int, stop: int) -> _Rows:
        part = codes[start:stop]
        indices = pa.array(part, mask=part < 0)
        return pa.DictionaryArray.from_arrays(indices, categories, ordered=bool(accessor.ordered))

    return _Column(name, arrow_type, rows)


def _zoned_column(name: str, series: Any) -> _Column:
    unit = series.dtype.unit
    try:
        arrow_type = pa.timestamp(unit, series.dtype.tz)
    except (pa.ArrowException, ValueError, TypeError):
        # A zone that Arrow has no name for (an offset with seconds): the instants are the same in UTC.
        arrow_type = pa.timestamp(unit, "UTC")
    instants = series.values  # in UTC, not a copy; to_numpy gives objects

    def rows(start: int, stop: int) -> _Rows:
        return pa.array(instants[start:stop], arrow_type, from_pandas=True)

    return _Column(name, arrow_type, rows)


def _extension_column(name: str, values: Any) -> _Column:
    """Nullable, string and Arrow-backed columns, and other libraries' types: Arrow asks the column itself."""
    type_name = str(values.dtype)
    if not hasattr(values, "__arrow_array__"):
        raise HashError(
            "pandas values of this type have no Arrow form; convert the column before it is stored",
            column=name,
            type_name=type_name,
        )
    if hasattr(values.dtype, "pyarrow_dtype"):
        whole = pa.chunked_array(pa.array(values))  # as it is, not a copy
        return _Column(name, whole.type, lambda start, stop: whole.slice(start, stop - start))
    arrow_type = pa.array(values[:0]).type

    def converted(start: int, stop: int) -> _Rows:
        return pa.array(values[start:stop])

    def rows(start: int, stop: int) -> _Rows:
        try:
            return converted(start, stop)
        except UnicodeEncodeError as e:
            row = next(i for i in range(start, stop) if _is_not_unicode(values[i]))
            raise HashError(
                "text that is not valid Unicode (a lone surrogate); store it as binary",
                column=name,
                type_name=type_name,
                row=row,
            ) from e

    return _Column(name, arrow_type, rows)


def _is_not_unicode(value: object) -> bool:
    return isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value)
