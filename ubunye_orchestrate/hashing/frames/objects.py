"""Columns of Python objects: which kinds they hold, and the one Arrow type that holds them all exactly.

Arrow infers a type from Python objects and coerces silently where kinds are mixed: text among bytes becomes
bytes, ``True`` among floats ``1.0``, an aware time among naive ones loses its zone, a date takes a datetime's
day, nanoseconds are cut. So the kinds are looked at first, at every depth.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from ubunye_orchestrate.errors import HashError

__all__ = ["ObjectColumn", "object_column", "text_column"]

MissingIn: TypeAlias = Callable[[npt.NDArray[np.object_]], npt.NDArray[np.bool_]]

# In this order: a bool is an int, a datetime a date, NumPy's float64 a float and its timedelta64 an integer.
_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "boolean"),
    ((np.timedelta64, datetime.timedelta), "duration"),
    ((int, np.integer), "integer"),
    ((float, np.float16, np.float32, np.float64), "float"),
    ((str,), "text"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((decimal.Decimal,), "decimal"),
    ((datetime.datetime,), "datetime"),
    ((np.datetime64,), "numpy datetime"),
    ((datetime.date,), "date"),
    ((datetime.time,), "time"),
    ((list, tuple, np.ndarray), "list"),
    ((dict,), "mapping"),
    ((uuid.UUID,), "UUID"),
)
_TOGETHER = ({"integer", "float"}, {"integer", "decimal"})  # Arrow holds these exactly as one, or refuses
_TYPES = {"text": pa.string(), "bytes": pa.binary(), "boolean": pa.bool_()}
# Of objects of exactly one of these types, and None, there is nothing more to look at.
_PLAIN: dict[type, tuple[str, pa.DataType]] = {
    bytes: ("bytes", pa.binary()),
    bool: ("boolean", pa.bool_()),
    datetime.date: ("date", pa.date32()),
}
_REFUSALS = {
    "text": "text that is not valid Unicode (a lone surrogate); store it as binary",
    "integer": "an integer outside the range of its 64-bit type; store the column as decimals or text",
    "float, integer": "an integer that a double cannot hold exactly; make the column one type",
    "decimal": "a decimal that needs more than 76 digits at the column's scale; store the column as text",
    "decimal, integer": "a number that needs more than 76 digits at the column's scale; store it as text",
}
_ERRORS_OF_ARROW = (pa.ArrowException, ValueError, TypeError, OverflowError)


@dataclass(frozen=True)
class ObjectColumn:
    """A column of Python objects of one kind, ready to be converted in slices."""

    name: str
    type: pa.DataType
    values: npt.NDArray[np.object_]
    missing: npt.NDArray[np.bool_] | None
    """Where the nulls are; None where Arrow is to tell them, and ``missing_in`` where it cannot."""
    kinds: str
    missing_in: MissingIn

    def slice(self, start: int, stop: int) -> pa.Array | pa.ChunkedArray:
        """Convert rows ``start`` to ``stop``; HashError, naming the row, where Arrow refuses a value."""
        if self.missing is None:
            with suppress(*_ERRORS_OF_ARROW):  # np.float32("nan") is a null for pandas, not for Arrow
                return pa.array(self.values[start:stop].tolist(), self.type, from_pandas=True)
        try:
            return self._converted(start, stop)
        except _ERRORS_OF_ARROW as e:
            raise HashError(
                _REFUSALS.get(self.kinds, f"Arrow cannot hold this {self.kinds} ({type(e).__name__})"),
                column=self.name,
                type_name=str(self.type),
                row=self._first_refused(start, stop),
            ) from e

    def _converted(self, start: int, stop: int) -> pa.Array | pa.ChunkedArray:
        values = self.values[start:stop]
        missing = self.missing_in(values) if self.missing is None else self.missing[start:stop]
        return pa.array(values, type=self.type, mask=missing, from_pandas=True)

    def _first_refused(self, start: int, stop: int) -> int:
        while stop - start > 1:
            middle = (start + stop) // 2
            try:
                self._converted(start, middle)
            except _ERRORS_OF_ARROW:
                stop = middle
            else:
                start = middle
        return start


def text_column(values: npt.NDArray[np.object_], missing_in: MissingIn, name: str) -> ObjectColumn:
    """Return a column whose objects are known to be text, and nulls."""
    return ObjectColumn(name, pa.string(), values, None, "text", missing_in)


def object_column(values: npt.NDArray[np.object_], missing_in: MissingIn, name: str) -> ObjectColumn:
    """Look at the kinds of objects in a column and find the Arrow type that holds them.

    ``missing_in`` marks the nulls (None, NaN, NA, NaT). A column of nothing else is a string column. Raises
    HashError, naming the column and the kinds, for kinds that one Arrow type cannot hold exactly.
    """
    types = set(map(type, values)) - {type(None)}
    if len(types) == 1 and (plain := _PLAIN.get(types.pop())) is not None:
        kind, arrow_type = plain
        return ObjectColumn(name, arrow_type, values, None, kind, missing_in)
    missing = missing_in(values)
    scan = _Scan(name)
    present = values if not missing.any() else values[~missing]
    kinds = scan.look_at(present, "")
    if not kinds:
        return ObjectColumn(name, pa.string(), values, np.ones(len(values), np.bool_), "null", missing_in)
    text = ", ".join(sorted(kinds))
    inferred = _TYPES.get(text)
    if inferred is None:
        inferred = _inferred(present, text, name)
        if scan.nanoseconds:
            inferred = _with_nanoseconds(inferred)
    return ObjectColumn(name, inferred, values, missing, text, missing_in)


def _inferred(present: npt.NDArray[np.object_], kinds: str, name: str) -> pa.DataType:
    try:
        return pa.infer_type(present, from_pandas=True)
    except _ERRORS_OF_ARROW as e:
        reason = _REFUSALS.get(kinds, f"Arrow has no one type for these values ({kinds}; {type(e).__name__})")
        raise HashError(reason, column=name, type_name="object") from e


def _with_nanoseconds(t: pa.DataType) -> pa.DataType:
    """Replace the microseconds that Arrow infers, at any depth."""
    if pat.is_timestamp(t):
        return pa.timestamp("ns", t.tz)
    if pat.is_duration(t):
        return pa.duration("ns")
    if pat.is_list(t):
        return pa.list_(_with_nanoseconds(t.value_type))
    if pat.is_struct(t):
        fields = [t.field(i) for i in range(t.num_fields)]
        return pa.struct([field.with_type(_with_nanoseconds(field.type)) for field in fields])
    return t


class _Scan:
    """One look at a column's objects, at every depth. ``nanoseconds``: some have more than microseconds."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.nanoseconds = False

    def look_at(self, values: Iterable[Any], path: str) -> set[str]:
        """Return the kinds of the values at ``path`` (none where all are null).

        Raises HashError where one Arrow type cannot hold them exactly.
        """
        values = values if isinstance(values, np.ndarray) else list(values)
        types = {t: _kind(t) for t in set(map(type, values)) if not _is_missing(t)}
        if "float" in types.values() and set(types.values()) != {"float"}:
            # NaN is a missing marker among objects: only another float is a kind of its own.
            floats = tuple(t for t, kind in types.items() if kind == "float")
            if all(v != v for v in values if isinstance(v, floats)):
                types = {t: kind for t, kind in types.items() if kind != "float"}
        kinds = {kind or _type_name(t) for t, kind in types.items()}
        if "datetime" in kinds:
            kinds = (kinds - {"datetime"}) | self._datetime_kinds(values)
        for t, kind in types.items():
            if kind is None:
                self._refuse(path, f"holds objects of type {_type_name(t)}, which have no Arrow type")
        if len(kinds) > 1 and not any(kinds <= together for together in _TOGETHER):
            self._refuse(
                path,
                f"holds mixed kinds of objects ({', '.join(sorted(kinds))}), which Arrow would coerce "
                "or refuse; make the column one type",
            )
        self._look_closer(values, kinds, path)
        return kinds

    def _look_closer(self, values: Iterable[Any], kinds: set[str], path: str) -> None:
        if "time" in kinds and any(v.tzinfo is not None for v in values if isinstance(v, datetime.time)):
            self._refuse(path, "holds times of day with a zone, which Arrow would drop")
        if "decimal" in kinds and any(v.is_infinite() for v in values if isinstance(v, decimal.Decimal)):
            self._refuse(path, "holds a Decimal that is infinite, which Arrow cannot hold")
        if "duration" in kinds:
            self.nanoseconds |= any(getattr(v, "nanoseconds", 0) for v in values)
        if "list" in kinds:
            lists = [v for v in values if isinstance(v, list | tuple | np.ndarray)]
            if any(v.ndim != 1 for v in lists if isinstance(v, np.ndarray)):
                self._refuse(path, "holds arrays that are not one-dimensional, which Arrow cannot hold")
            # Of an array with a type of its own one element shows the kind of all.
            looked_at = (v[:1] if isinstance(v, np.ndarray) and v.dtype != object else v for v in lists)
            self.look_at(chain.from_iterable(looked_at), f"{path}[]")
        if "mapping" in kinds:
            self._look_at_fields([v for v in values if isinstance(v, dict)], path)

    def _look_at_fields(self, mappings: list[Mapping[Any, Any]], path: str) -> None:
        fields: dict[str, list[Any]] = {}
        for mapping in mappings:
            for key, value in mapping.items():
                if not isinstance(key, str):
                    self._refuse(
                        path,
                        f"holds mappings with keys of type {_type_name(type(key))}; fields are named by text",
                    )
                fields.setdefault(key, []).append(value)
        for key, values in fields.items():
            self.look_at(values, f"{path}.{key}")

    def _datetime_kinds(self, values: Iterable[Any]) -> set[str]:
        kinds = set()
        for v in values:
            if isinstance(v, datetime.datetime) and not _is_missing(type(v)):
                kinds.add("naive datetime" if v.tzinfo is None else "aware datetime")
                self.nanoseconds |= bool(getattr(v, "nanosecond", 0))  # pandas' Timestamp has them
        return kinds

    def _refuse(self, path: str, what: str) -> NoReturn:
        where = f"at {path}: " if path else ""
        raise HashError(f"{where}{what}", column=self.column, type_name="object")


def _kind(t: type) -> str | None:
    if issubclass(t, np.longdouble) and t is not np.float64:
        return None  # wider than any Arrow float
    return next((kind for types, kind in _KINDS if issubclass(t, types)), None)


def _is_missing(t: type) -> bool:
    # By name: NA and NaT are pandas', which is not imported here. NaT is a datetime by its class.
    return t is type(None) or t.__name__ in ("NAType", "NaTType")


def _type_name(t: type) -> str:
    return t.__qualname__ if t.__module__ == "builtins" else f"{t.__module__}.{t.__qualname__}"
