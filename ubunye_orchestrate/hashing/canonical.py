"""The reference: one value to its text, one row to its line, slowly and obviously.

This is the specification in code, and the oracle that the columnar path is held to. It shares nothing with
that path: exact integers, Python's ``datetime.date`` for the calendar of one 400-year cycle, and the decimal
of a float found from the definition in the documentation of Java's ``Double.toString`` (JDK 19 and newer).
Values are read from Arrow without a detour that could lose anything (no pandas, no ``datetime``).
"""

from __future__ import annotations

import base64
import bisect
import datetime
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.types import canonical_columns, canonical_type, field_name

__all__ = [
    "batch_lines",
    "date_text",
    "decimal_text",
    "double_text",
    "float_text",
    "json_string",
    "row_line",
    "text_at",
    "timestamp_text",
]

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86_400
_DAY_IN_MILLISECONDS = _DAY * 1000
_DAYS_TO_EPOCH = datetime.date(1970, 1, 1).toordinal() - 1  # from 0001-01-01
_DAYS_IN_CYCLE = 146_097  # 400 years of the proleptic Gregorian calendar

# What Jackson, the JSON writer in Spark, escapes; everything else stands as it is.
_ESCAPES = {i: f"\\u{i:04X}" for i in range(0x20)}
_ESCAPES |= {ord(c): "\\" + e for c, e in zip('"\\\b\t\n\f\r', '"\\btnfr', strict=True)}


# --------------------------------------------------------------------------- rows


def batch_lines(batch: pa.RecordBatch, *, first_row: int = 0) -> pa.Array:
    """Return the canonical line of each row of a record batch as a ``large_string`` array.

    ``first_row`` is the position of the batch's first row in its table, for messages. Raises HashError,
    naming column, type and row, for a type or a value that rows-v1 does not define.
    """
    names = [name for name, _ in canonical_columns(batch.schema)]
    columns = [(name, batch.column(name)) for name in names]
    lines = [row_line(columns, row, first_row=first_row) for row in range(batch.num_rows)]
    return pa.array(lines, pa.large_string())


def row_line(columns: Sequence[tuple[str, pa.Array]], row: int, *, first_row: int = 0) -> str:
    """Return the canonical line of one row: a JSON object, columns sorted by name, null fields left out."""
    fields = []
    for name, values in sorted(columns, key=lambda column: column[0]):
        try:
            text = text_at(values, row)
        except HashError as e:
            type_name = canonical_type(values.type, column=name)
            raise HashError(e.reason, column=name, type_name=type_name, row=first_row + row) from e
        if text is not None:
            fields.append(f"{json_string(name)}:{text}")
    return "{" + ",".join(fields) + "}"


def text_at(values: pa.Array, row: int) -> str | None:
    """Return the canonical text of the value at a position of an Arrow array, or None for null.

    Raises HashError with the reason alone; ``row_line`` adds the place.
    """
    stored = _stored(values, row)
    if stored is None:
        return None
    values, row = stored
    t = values.type
    if _is_list(t):
        items = values[row].values
        return "[" + ",".join(_text_or_null(items, i) for i in range(len(items))) + "]"
    if pat.is_map(t):
        return _map_text(values[row].values)
    if pat.is_struct(t):
        return _struct_text(values, row)
    return _flat_text(values[row], t)


def _stored(values: pa.Array, row: int) -> tuple[pa.Array, int] | None:
    """Follow extension types, dictionaries and runs to the array that stores a value; None for null.

    No scalar is made of a null: where the type has no builder of Arrow's (a dictionary of half floats, an
    extension type), a null list of runs of it ends the process (pyarrow 26).
    """
    while True:
        if isinstance(values.type, pa.BaseExtensionType):
            values = values.storage
        elif pat.is_dictionary(values.type):
            index = values.indices[row].as_py()
            if index is None:
                return None
            values, row = values.dictionary, index
        elif pat.is_run_end_encoded(values.type):
            row = bisect.bisect_right(values.run_ends.to_numpy(), values.offset + row)
            values = values.values
        else:
            return None if values.slice(row, 1).null_count else (values, row)


def _is_list(t: pa.DataType) -> bool:
    kinds = pat.is_list, pat.is_large_list, pat.is_fixed_size_list, pat.is_list_view, pat.is_large_list_view
    return any(is_kind(t) for is_kind in kinds)


def _text_or_null(values: pa.Array, row: int) -> str:
    text = text_at(values, row)
    return "null" if text is None else text


def _struct_text(values: pa.StructArray, row: int) -> str:
    fields = []
    for i in range(values.type.num_fields):
        text = text_at(values.field(i), row)
        if text is not None:
            fields.append(f"{json_string(field_name(values.type.field(i)))}:{text}")
    return "{" + ",".join(fields) + "}"


# --------------------------------------------------------------------------- flat values


def _flat_text(scalar: pa.Scalar, t: pa.DataType) -> str:
    if pat.is_boolean(t):
        return "true" if scalar.as_py() else "false"
    if pat.is_integer(t):
        return str(scalar.as_py())
    if pat.is_float64(t):
        return _not_finite_in_quotes(double_text(scalar.as_py()))
    if pat.is_floating(t):
        return _not_finite_in_quotes(float_text(float(scalar.as_py())))
    if pat.is_decimal(t):
        return decimal_text(_unscaled(scalar), t.scale)
    if pat.is_string(t) or pat.is_large_string(t) or pat.is_string_view(t):
        return json_string(_string(scalar))
    if pat.is_date(t):
        return f'"{date_text(_days(scalar))}"'
    if pat.is_timestamp(t):
        return f'"{timestamp_text(scalar.value * _NANOSECONDS[t.unit])}{"Z" if t.tz else ""}"'
    if pat.is_time(t):
        return f'"{_time_text(scalar)}"'
    assert isinstance(scalar, pa.BinaryScalar), t
    return f'"{base64.b64encode(scalar.as_buffer().to_pybytes()).decode("ascii")}"'


def _not_finite_in_quotes(text: str) -> str:
    return f'"{text}"' if text.endswith(("N", "y")) else text


def _string(scalar: pa.Scalar) -> str:
    # Arrow does not check that its strings are UTF-8.
    try:
        return str(scalar.as_buffer().to_pybytes(), "utf-8")
    except UnicodeDecodeError as e:
        raise HashError(
            f"text that is not valid Unicode (byte {e.start}: {e.reason}); store it as binary"
        ) from None


def json_string(text: str) -> str:
    """Return text as a JSON string exactly as Jackson escapes it.

    Raises HashError for a lone surrogate, which is not text in UTF-8.
    """
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise HashError("text that is not valid Unicode (a lone surrogate); store it as binary")
    return f'"{text.translate(_ESCAPES)}"'


def decimal_text(unscaled: int, scale: int) -> str:
    """Return ``unscaled * 10**-scale`` as Java's ``BigDecimal.toString`` writes it."""
    sign = "-" if unscaled < 0 else ""
    digits = str(abs(unscaled))
    exponent = len(digits) - 1 - scale
    if scale >= 0 and exponent >= -6:
        if scale == 0:
            return sign + digits
        digits = digits.rjust(scale + 1, "0")
        return f"{sign}{digits[:-scale]}.{digits[-scale:]}"
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}" + (f"E{exponent:+d}" if exponent else "")


def _unscaled(scalar: pa.Scalar) -> int:
    value = scalar.as_py()
    assert isinstance(value, Decimal)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits)))
    shift = exponent + int(scalar.type.scale)
    assert shift >= 0, scalar.type
    return (-unscaled if sign else unscaled) * _ten_to(shift)


# --------------------------------------------------------------------------- dates and times


def date_text(days: int) -> str:
    """Return days since the epoch as ``yyyy-MM-dd``, proleptic Gregorian, as Spark writes them.

    The year has at least four digits, a plus sign past 9999 and a minus sign before year 0.
    """
    cycle, day = divmod(days + _DAYS_TO_EPOCH, _DAYS_IN_CYCLE)
    date = datetime.date.fromordinal(day + 1)  # in the years 1 to 400
    year = date.year + 400 * cycle
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{date.month:02d}-{date.day:02d}"


def timestamp_text(nanoseconds: int) -> str:
    """Return nanoseconds since the epoch as ``yyyy-MM-ddTHH:mm:ss`` with six digits, nine where needed."""
    seconds, fraction = divmod(nanoseconds, 10**9)
    days, second = divmod(seconds, _DAY)
    return f"{date_text(days)}T{_clock_text(second, fraction)}"


def _clock_text(second: int, nanoseconds: int) -> str:
    minute, s = divmod(second, 60)
    h, m = divmod(minute, 60)
    fraction = f"{nanoseconds:09d}"
    if fraction.endswith("000"):
        fraction = fraction[:6]
    return f"{h:02d}:{m:02d}:{s:02d}.{fraction}"


def _time_text(scalar: pa.Scalar) -> str:
    seconds, nanoseconds = divmod(scalar.value * _NANOSECONDS[scalar.type.unit], 10**9)
    if not 0 <= seconds < _DAY:
        raise HashError("a time of day outside 00:00:00 to 24:00:00; store it as an integer")
    return _clock_text(seconds, nanoseconds)


def _days(scalar: pa.Scalar) -> int:
    value = int(scalar.value)
    if pat.is_date32(scalar.type):
        return value
    days, rest = divmod(value, _DAY_IN_MILLISECONDS)
    if rest:
        raise HashError("a date64 value that is not a whole day; store it as a timestamp")
    return days


# --------------------------------------------------------------------------- floats


def double_text(value: float) -> str:
    """Return a double as JDK 19+ ``Double.toString`` writes it (no quotes: ``NaN``, ``Infinity``)."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value))
    return _float_text(bits, exponent_bits=11, mantissa_bits=52)


def float_text(value: float) -> str:
    """Return a 32-bit float, given as the double of equal value, as JDK 19+ ``Float.toString`` writes it."""
    (bits,) = struct.unpack(">I", struct.pack(">f", value))
    return _float_text(bits, exponent_bits=8, mantissa_bits=23)


def _float_text(bits: int, *, exponent_bits: int, mantissa_bits: int) -> str:
    sign = "-" if bits >> (exponent_bits + mantissa_bits) else ""
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    if exponent == (1 << exponent_bits) - 1:
        return "NaN" if mantissa else sign + "Infinity"
    if exponent == 0 and mantissa == 0:
        return sign + "0.0"
    lowest = 2 - (1 << (exponent_bits - 1)) - mantissa_bits  # exponent of the last bit of a subnormal
    if exponent == 0:
        digits, power = _shortest_decimal(mantissa, lowest, lower_gap_is_half=False)
    else:
        # Below a power of two the neighbour is half as far away, except at the smallest normal.
        half = mantissa == 0 and exponent > 1
        digits, power = _shortest_decimal(
            mantissa | (1 << mantissa_bits), lowest + exponent - 1, lower_gap_is_half=half
        )
    return sign + _placed(digits, power)


def _shortest_decimal(mantissa: int, exponent: int, *, lower_gap_is_half: bool) -> tuple[str, int]:
    """Return the decimal that stands for ``mantissa * 2**exponent``: its digits d, d', ... and its power p.

    The decimal is ``d.d'... * 10**p``. By the definition in ``Double.toString``: of all decimals that round
    (half to even) to the value, those of the least length, but at least two digits; of these the closest to
    the value, and of two as close the one whose last digit is even.
    """
    # In units of a quarter of the last bit everything is an integer: the value and both ends of the interval
    # that rounds to it. The whole is the fraction x / unit.
    value, low, high = 4 * mantissa, 4 * mantissa - (1 if lower_gap_is_half else 2), 4 * mantissa + 2
    scale = 1 << max(0, exponent - 2)
    unit = 1 << max(0, 2 - exponent)
    value, low, high = value * scale, low * scale, high * scale
    ends_included = mantissa % 2 == 0

    power = len(str(value // unit)) - 1 if value >= unit else -len(str(unit // value))
    while value >= unit * _ten_to(power + 1) if power >= -1 else value * _ten_to(-power - 1) >= unit:
        power += 1
    for length in range(2, 20):
        # Candidates are whole multiples of 10**step; compare c * 10**step * unit with value.
        step = power - length + 1
        grain = unit * _ten_to(step) if step >= 0 else unit
        lift = 1 if step >= 0 else _ten_to(-step)
        c, rest = divmod(value * lift, grain)
        # The closer of the two neighbours first; on a tie the even one.
        upper_first = 2 * rest > grain or (2 * rest == grain and c % 2 == 1)
        for candidate in (c + 1, c) if upper_first else (c, c + 1):
            at = candidate * grain
            inside = low * lift <= at <= high * lift if ends_included else low * lift < at < high * lift
            if inside:
                digits = str(candidate)
                return digits, step + len(digits) - 1
    raise AssertionError((mantissa, exponent))


def _ten_to(power: int) -> int:
    return int(10**power)


def _placed(digits: str, power: int) -> str:
    """Write ``d.d'... * 10**power`` plain from 1e-3 to below 1e7, else with an exponent."""
    digits = digits.rstrip("0") or "0"
    if -3 <= power < 0:
        return "0." + "0" * (-power - 1) + digits
    if 0 <= power < 7:
        whole = digits[: power + 1].ljust(power + 1, "0")
        return f"{whole}.{digits[power + 1 :] or '0'}"
    return f"{digits[0]}.{digits[1:] or '0'}E{power}"


# --------------------------------------------------------------------------- maps


def _map_text(entries: pa.StructArray) -> str:
    keys, items = entries.field(0), entries.field(1)
    by_text: dict[str, tuple[Any, str]] = {}
    for i in range(len(entries)):
        text, order = _key(keys, i)
        if text in by_text:
            raise HashError("a map has two keys with the same text; its entries cannot be told apart")
        by_text[text] = (order, _text_or_null(items, i))
    entries_sorted = sorted(by_text.items(), key=lambda entry: entry[1][0])
    return "{" + ",".join(f"{json_string(key)}:{value}" for key, (_, value) in entries_sorted) + "}"


def _key(keys: pa.Array, row: int) -> tuple[str, Any]:
    """Return a map key's text as Spark's JSON writer turns it to one, and what the entries are sorted by."""
    stored = _stored(keys, row)
    if stored is None:
        raise HashError("a map has a null key; it has no text")
    keys, row = stored
    scalar, t = keys[row], keys.type
    if pat.is_floating(t):
        number = float(scalar.as_py()) + 0.0  # a key -0.0 is 0.0
        text = double_text(number) if pat.is_float64(t) else float_text(number)
        is_nan = number != number
        return text, (is_nan, 0.0 if is_nan else number)
    if pat.is_decimal(t):
        unscaled = _unscaled(scalar)
        return decimal_text(unscaled, t.scale), unscaled
    if pat.is_date(t):
        return str(_days(scalar)), _days(scalar)
    if pat.is_timestamp(t):
        microseconds, rest = divmod(scalar.value * _NANOSECONDS[t.unit], 1000)
        if rest:
            raise HashError("a timestamp as map key has nanoseconds, which its text (microseconds) would cut")
        return str(microseconds), microseconds
    if pat.is_boolean(t):
        return ("true" if scalar.as_py() else "false"), scalar.as_py()
    if pat.is_integer(t):
        return str(scalar.as_py()), scalar.as_py()
    text = _string(scalar)
    return text, text
