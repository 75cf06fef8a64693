"""Texts of dates, timestamps and times of day.

Arrow's casts write the years 0 to 9999 as Spark does; years outside are brought into one 400-year cycle of
the proleptic Gregorian calendar, written there, and given their own year back.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ubunye_orchestrate.hashing.kernels.texts import (
    TEXT,
    FaultyValueError,
    Ints,
    Texts,
    cast_to_text,
    joined,
    raw,
    text_array,
    text_scalar,
    valid_mask,
)

__all__ = ["date_texts", "days_of", "integers_of", "time_texts", "timestamp_texts"]

_UNITS_IN_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY: Final = 86_400
_MILLISECONDS_IN_DAY: Final = _DAY * 1000
_FIRST_DAY: Final = -719_528  # 0000-01-01, counted from the epoch
_LAST_DAY: Final = 2_932_896  # 9999-12-31
_DAYS_IN_CYCLE: Final = 146_097
_YEARS_IN_CYCLE: Final = 400
_AT_T: Final = len("yyyy-MM-dd")


def integers_of(values: pa.Array) -> Ints:
    """Return the integers that stand for dates, times or timestamps, as int64; 0 where null."""
    if len(values) == 0:
        return np.empty(0, np.int64)  # such an array may have no buffer at all
    narrow = values.type.bit_width == 32
    dtype = np.dtype(np.int32 if narrow else np.int64)
    numbers = np.frombuffer(values.buffers()[1], dtype, len(values), values.offset * dtype.itemsize)
    wide = numbers.astype(np.int64, copy=False)
    valid = valid_mask(values)
    return wide if valid is None else np.where(valid, wide, 0)


def days_of(values: pa.Array) -> Ints:
    """Return date32 or date64 values as days since the epoch, 0 where null.

    Raises FaultyValueError for a date64 that is not a whole day.
    """
    numbers = integers_of(values)
    if pa.types.is_date32(values.type):
        return numbers
    days, rest = np.divmod(numbers, _MILLISECONDS_IN_DAY)
    if rest.any():
        raise FaultyValueError(
            int(np.flatnonzero(rest)[0]), "a date64 value that is not a whole day; store it as a timestamp"
        )
    return days


def date_texts(values: pa.Array) -> Texts:
    """Return dates as ``yyyy-MM-dd`` in quotes."""
    return Texts(_null_where(_days_text(days_of(values)), values), '"', '"')


def timestamp_texts(values: pa.Array) -> Texts:
    """Return timestamps as ``yyyy-MM-ddTHH:mm:ss.SSSSSS`` in quotes, nine digits where six would cut.

    With a zone in their type they are instants, written in UTC with a ``Z``.
    """
    zone = "Z" if values.type.tz else ""
    if len(values) == values.null_count:
        return Texts(pa.nulls(len(values), TEXT))
    unit = values.type.unit
    ticks = integers_of(values)
    in_day = _UNITS_IN_SECOND[unit] * _DAY
    if ticks.min() // in_day >= _FIRST_DAY and ticks.max() // in_day <= _LAST_DAY:
        text = _in_plain_years(ticks, unit)
    else:
        days, rest = np.divmod(ticks, in_day)
        text = joined([_days_text(days), "T", _clock_text(rest, unit)])
    return Texts(_null_where(text, values), '"', zone + '"')


def time_texts(values: pa.Array) -> Texts:
    """Return times of day as ``HH:mm:ss.SSSSSS`` in quotes, nine digits where six would cut.

    Raises FaultyValueError for a value below 0 or past the end of the day.
    """
    unit = values.type.unit
    ticks = integers_of(values)
    outside = (ticks < 0) | (ticks >= _UNITS_IN_SECOND[unit] * _DAY)
    if outside.any():
        raise FaultyValueError(
            int(np.flatnonzero(outside)[0]),
            "a time of day outside 00:00:00 to 24:00:00; store it as an integer",
        )
    return Texts(_null_where(_clock_text(ticks, unit), values), '"', '"')


def _null_where(text: pa.Array, values: pa.Array) -> pa.Array:
    """Make the texts null where the values are."""
    valid = valid_mask(values)
    return text if valid is None else text_array(*raw(text), valid)


def _six_or_nine(ticks: Ints, of_six: pa.DataType, of_nine: pa.DataType) -> pa.Array:
    """Write nanoseconds through Arrow, those with whole microseconds with six digits."""
    microseconds, rest = np.divmod(ticks, 1000)
    six = cast_to_text(pa.array(microseconds).view(of_six))
    if not rest.any():
        return six
    nine = cast_to_text(pa.array(ticks).view(of_nine))
    return nine if rest.all() else pc.if_else(pa.array(rest == 0), six, nine)


def _in_plain_years(ticks: Ints, unit: str) -> pa.Array:
    """Write timestamps of the years 0 to 9999."""
    if unit == "ns":
        text = _six_or_nine(ticks, pa.timestamp("us"), pa.timestamp("ns"))
    else:
        microseconds = ticks * (10**6 // _UNITS_IN_SECOND[unit])
        text = cast_to_text(pa.array(microseconds).view(pa.timestamp("us")))
    offsets, data = raw(text)
    data[offsets[:-1] + _AT_T] = ord("T")  # a fresh array's bytes; Arrow leaves a space there
    return text


def _clock_text(ticks: Ints, unit: str) -> pa.Array:
    """Write the time of ``ticks`` within its day."""
    if unit == "ns":
        return _six_or_nine(ticks, pa.time64("us"), pa.time64("ns"))
    microseconds = ticks * (10**6 // _UNITS_IN_SECOND[unit])
    return cast_to_text(pa.array(microseconds).view(pa.time64("us")))


def _days_text(days: Ints) -> pa.Array:
    outside = (days < _FIRST_DAY) | (days > _LAST_DAY)
    if not outside.any():
        return _days_in_plain_years(days)
    cycle, inner = np.divmod(days - _FIRST_DAY, _DAYS_IN_CYCLE)  # inner is of the years 0 to 399
    in_cycle = (inner + _FIRST_DAY).astype(np.int32)
    years = pc.year(pa.array(in_cycle).view(pa.date32())).to_numpy() + cycle * _YEARS_IN_CYCLE
    digits = pc.ascii_lpad(cast_to_text(pa.array(np.abs(years))), 4, padding="0")
    sign = pc.if_else(
        pa.array(years < 0),
        text_scalar("-"),
        pc.if_else(pa.array(years > 9999), text_scalar("+"), text_scalar("")),
    )
    month_and_day = pc.utf8_slice_codeunits(_days_in_plain_years(in_cycle), start=len("yyyy"))
    return joined([sign, digits, month_and_day])


def _days_in_plain_years(days: Ints | np.ndarray[tuple[int], np.dtype[np.int32]]) -> pa.Array:
    return cast_to_text(pa.array(days.astype(np.int32, copy=False)).view(pa.date32()))
