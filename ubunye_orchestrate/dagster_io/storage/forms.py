"""From the Arrow table that was read to what the asset's annotation asks for."""

from __future__ import annotations

import importlib
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.foreign import said

__all__ = ["Form", "concatenated", "convert", "form_of_annotation", "item_annotation", "pandas_metadata"]

Kind = Literal["pandas", "arrow", "polars", "polars_lazy", "reader", "spark"]

# (first part of the module, name) -> kind. By name, so that no library is imported to compare with.
_KINDS: Mapping[tuple[str, str], Kind] = {
    ("pandas", "DataFrame"): "pandas",
    ("pyarrow", "Table"): "arrow",
    ("pyarrow", "RecordBatchReader"): "reader",
    ("polars", "DataFrame"): "polars",
    ("polars", "LazyFrame"): "polars_lazy",
    ("pyspark", "DataFrame"): "spark",
}
# In a file's metadata: the columns that were Arrow-backed in pandas. Its own metadata beside it tells only
# some of them (no decimal), and some it cannot read back.
_ARROW_BACKED = b"ubunye.arrow_backed"
_BACKENDS = {"pandas": "pandas", "arrow": "pyarrow", "reader": "pyarrow", "spark": "spark"}
_EXPECTED = "pd.DataFrame, pa.Table, pa.RecordBatchReader, pl.DataFrame, pl.LazyFrame, or dict[str, …] of one"


@dataclass(frozen=True)
class Form:
    """What an input is to be handed over as."""

    kind: Kind
    by_partition: bool
    """As a dict with the partition keys as keys."""

    @property
    def backend(self) -> str:
        """The library that the asset computes with."""
        return _BACKENDS.get(self.kind, "polars")


def item_annotation(annotation: Any) -> Any:
    """Return what each part of an input is to be that collects the outputs of several steps.

    Its annotation is of all of them, ``list[pd.DataFrame]``.
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    return arguments[0] if origin is list and arguments else annotation


def form_of_annotation(
    annotation: Any, *, manager: str = "ParquetIOManager", otherwise: Kind = "pandas"
) -> Form:
    """Return the form that an input's annotation asks for; ``otherwise`` without one.

    ``dict[str, T]`` asks for the partitions one by one; ``T | None`` is ``T``. ``manager`` is the name of the
    IO manager; one that makes Spark frames makes them where nothing else is asked for. Raises StorageError
    for anything that it does not make.
    """
    if _is_open(annotation):
        return Form(otherwise, False)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        wanted = [argument for argument in arguments if argument is not type(None)]
        if len(wanted) == 1:
            return form_of_annotation(wanted[0], manager=manager, otherwise=otherwise)
    elif annotation is dict or _is_mapping(origin):
        wanted_of_each = arguments[1] if len(arguments) == 2 else Any
        element = form_of_annotation(wanted_of_each, manager=manager, otherwise=otherwise)
        if not element.by_partition:
            return Form(element.kind, True)
    else:
        name = (getattr(annotation, "__module__", "").split(".")[0], getattr(annotation, "__name__", ""))
        kind = _KINDS.get(name)
        if kind is not None and (kind != "spark" or otherwise == "spark"):
            return Form(kind, False)
    expected = f"a Spark DataFrame, {_EXPECTED}" if otherwise == "spark" else _EXPECTED
    raise StorageError(f"the input is annotated {annotation}; {manager} loads {expected}")


def convert(table: pa.Table, kind: Kind) -> Any:
    """Return the table as ``kind``, without copying where the library can share Arrow's memory."""
    if kind == "arrow":
        return table
    if kind == "reader":
        return table.to_reader()
    if kind == "pandas":
        return _to_pandas(table)
    try:
        polars = importlib.import_module("polars")
    except ImportError as e:
        raise StorageError(
            "the input is annotated as a Polars frame and Polars is not installed; pip install polars"
        ) from e
    frame = polars.from_arrow(table)
    return frame.lazy() if kind == "polars_lazy" else frame


def _to_pandas(table: pa.Table) -> Any:
    """Return the table as a pandas frame, in the pandas types that its metadata names.

    Without such metadata a column of whole numbers with nulls is of pandas' nullable integers: as floats,
    which pandas takes by itself, large ones would lose digits.
    """
    metadata = table.schema.metadata or {}
    backed = [n for n in json.loads(metadata.get(_ARROW_BACKED, b"[]")) if n in table.column_names]
    with_gaps = [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_integer(column.type) and column.null_count
    ]
    nullable = [] if b"pandas" in metadata else [n for n in with_gaps if n not in backed]
    if not backed and not nullable:
        return table.to_pandas()
    frame = table.drop_columns([*backed, *nullable]).to_pandas()
    pandas = importlib.import_module("pandas")
    for position, name in enumerate(table.column_names):
        if name in backed:
            frame.insert(position, name, pandas.arrays.ArrowExtensionArray(table[name]))
        elif name in nullable:
            dtype = pandas.api.types.pandas_dtype(str(table[name].type).replace("i", "I").replace("u", "U"))
            frame.insert(position, name, dtype.__from_arrow__(table[name]))
    return frame


def concatenated(parts: Mapping[str, pa.Table]) -> pa.Table:
    """Return the partitions as one table, in order; a column that is all null takes the others' type."""
    try:
        return pa.concat_tables(list(parts.values()), promote_options="default")
    except pa.ArrowException as e:
        raise StorageError(
            f"{len(parts)} partitions do not make one table ({said(e)}); annotate the input "
            "dict[str, pd.DataFrame] to get them one by one"
        ) from e


def pandas_metadata(frame: Any) -> dict[bytes, bytes]:
    """Return the schema metadata from which Arrow makes the frame's own pandas types again (``Int64``).

    Of the columns only: index levels with a name are columns by now, others are gone.
    """
    head = frame.iloc[:0]
    named: Sequence[Any] = [name for name in head.index.names if name is not None]
    head = head.reset_index(named) if named else head
    head = head.set_axis([str(label) for label in head.columns], axis=1)
    backed = [label for label in head.columns if hasattr(head[label].dtype, "pyarrow_dtype")]
    try:
        metadata = dict(pa.Schema.from_pandas(head.drop(columns=backed), preserve_index=False).metadata or {})
    except (pa.ArrowException, ValueError, TypeError):
        metadata = {}
    return {**metadata, _ARROW_BACKED: json.dumps(backed).encode()} if backed else metadata


def _is_open(annotation: Any) -> bool:
    return annotation is Any or annotation is None or annotation is object


def _is_mapping(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)
