"""A rule's bound, written once, as each column's type takes it."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any

import narwhals as nw

__all__ = ["ABOVE_ALL", "BELOW_ALL", "CannotCompareError", "bound_for", "type_shown", "values_for"]

ABOVE_ALL = object()
"""A bound above whatever a column of its type can hold."""
BELOW_ALL = object()
"""A bound below it."""
_WHOLE = re.compile(r"(U?)Int(\d+)")
# Microseconds in one unit of a column of moments, where they are fewer than a bound may say.
_COARSE = {"s": 1_000_000, "ms": 1_000}


class CannotCompareError(Exception):
    """A bound that values of a column's type cannot be held against."""


def bound_for(value: Any, dtype: Any, column: str, *, at_least: bool) -> Any:
    """Return a bound in the type of the column's values, or BELOW_ALL or ABOVE_ALL.

    ``at_least`` tells a lower bound from an upper one: a fraction is brought to the next whole number of a
    column of integers, a moment to the next one that the column's unit has. Raises CannotCompareError where
    the two cannot be compared.
    """
    bound = _typed(value, dtype, column)
    if isinstance(bound, datetime):
        return _in_unit(bound, dtype, up=at_least)
    if not dtype.is_integer():
        return bound
    bound = math.ceil(bound) if at_least else math.floor(bound)
    least, most = _range(dtype)
    return BELOW_ALL if bound < least else ABOVE_ALL if bound > most else bound


def values_for(values: Iterable[Any], dtype: Any, column: str) -> list[Any]:
    """Return those of the values that a column of this type can hold, in its type.

    Raises CannotCompareError where one cannot be compared with the column's.
    """
    typed = [_typed(value, dtype, column) for value in values]
    if dtype.is_integer():
        least, most = _range(dtype)
        return [int(one) for one in typed if one == int(one) and least <= one <= most]
    if isinstance(dtype, nw.Datetime):
        return [one for one in typed if one == _in_unit(one, dtype, up=False)]
    return typed


def _typed(value: Any, dtype: Any, column: str) -> Any:
    try:
        if dtype.is_numeric():
            return _number(value, dtype)
        if isinstance(dtype, nw.Boolean) and isinstance(value, bool):
            return value
        if isinstance(value, str):
            if isinstance(dtype, nw.Date):
                return date.fromisoformat(value)
            if isinstance(dtype, nw.Datetime):
                return _moment(value, dtype)
        if isinstance(dtype, nw.String) and isinstance(value, str):
            return value
    except (ValueError, OverflowError, InvalidOperation) as e:
        raise CannotCompareError(f"column {column!r} is {type_shown(dtype)}; {value!r} is none: {e}") from e
    raise CannotCompareError(f"column {column!r} is {type_shown(dtype)}; it cannot be held against {value!r}")


def type_shown(dtype: Any) -> str:
    """Return a type as messages call it: an enumeration without its categories, which are values."""
    return type(dtype).__name__ if "Enum(" in str(dtype) else str(dtype)


def _number(value: Any, dtype: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not dtype.is_float():
        return exact
    # As the column would hold it: what is written 0.2 is within a bound of 0.2. There is one zero.
    kind = {"Float16": "e", "Float32": "f"}.get(str(dtype), "d")
    return struct.unpack(kind, struct.pack(kind, float(value)))[0] + 0.0


def _range(dtype: Any) -> tuple[int, int]:
    found = _WHOLE.fullmatch(str(dtype))
    assert found is not None
    bits = int(found[2])
    return (0, 2**bits - 1) if found[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _moment(value: str, dtype: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if len(value) == len("2024-01-31"):
        moment = datetime.combine(moment.date(), time())
    if (dtype.time_zone is None) != (moment.tzinfo is None):
        has = "no time zone" if dtype.time_zone is None else "a time zone"
        raise ValueError(f"the column has {has}; give the bound as the column is")
    # Arrow misreads other zones in some processes: it depends on what was loaded before its first array.
    return moment if moment.tzinfo is None else moment.astimezone(timezone.utc)


def _in_unit(moment: datetime, dtype: Any, *, up: bool) -> Any:
    """Return a moment that the column's unit has: engines cut what is finer, each in its own way."""
    unit = _COARSE.get(dtype.time_unit, 1)
    over = moment.microsecond % unit
    if not over:
        return moment
    try:
        return moment + timedelta(microseconds=unit - over if up else -over)
    except OverflowError:
        return ABOVE_ALL
