"""A rule's bound, written once, as each column's type takes it."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

import narwhals as nw

__all__ = ["CannotCompareError", "bound_for"]


class CannotCompareError(Exception):
    """A bound that values of a column's type cannot be held against."""


def bound_for(value: Any, dtype: Any, column: str, *, at_least: bool | None = None) -> Any:
    """Return ``value`` in the type of the column's values.

    ``at_least`` tells a lower bound from an upper one: a fraction is brought to the next whole number of a
    column of integers. Raises CannotCompareError where the two cannot be compared.
    """
    try:
        if dtype.is_numeric():
            return _number(value, dtype, at_least)
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
        raise CannotCompareError(f"column {column!r} is {dtype}; {value!r} is none: {e}") from e
    raise CannotCompareError(f"column {column!r} is {dtype}; it cannot be held against {value!r}")


def _number(value: Any, dtype: Any, at_least: bool | None) -> Any:
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if isinstance(dtype, nw.Float32):
        # As the column would hold it: what is written 0.2 is within a bound of 0.2.
        return struct.unpack("f", struct.pack("f", float(value)))[0]
    if dtype.is_float():
        return float(value)
    if not dtype.is_integer():
        return exact
    if at_least is not None:
        return math.ceil(exact) if at_least else math.floor(exact)
    return int(exact) if exact == int(exact) else float(value)


def _moment(value: str, dtype: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if len(value) == len("2024-01-31"):
        moment = datetime.combine(moment.date(), time())
    if (dtype.time_zone is None) != (moment.tzinfo is None):
        has = "no time zone" if dtype.time_zone is None else "a time zone"
        raise ValueError(f"the column has {has}; give the bound as the column is")
    return moment
