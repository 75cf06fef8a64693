"""Texts of integers, booleans, decimals and floating-point numbers.

Arrow's casts find the digits (the shortest that read back, as Java does); what is left is to lay them out as
``Double.toString`` and ``Float.toString`` of JDK 19 and newer do.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ubunye_orchestrate.hashing.kernels.texts import (
    TEXT,
    Ints,
    Mask,
    Texts,
    cast_to_text,
    joined,
    raw,
    text_array,
    text_scalar,
    valid_mask,
)
from ubunye_orchestrate.hashing.kernels.turns import out_of_python

__all__ = ["boolean_texts", "decimal_texts", "float_texts", "floats_of", "integer_texts"]

Floats = npt.NDArray[np.floating[Any]]

# Where the shortest decimal has one digit and another of two digits is closer, Java writes the latter. That
# happens only to subnormals, by their bits:
_TWO_DIGITS: Final = {
    np.dtype(np.float64): {
        1: "4.9E-324",
        2: "9.9E-324",
        10: "4.9E-323",
        12: "5.9E-323",
        14: "6.9E-323",
        16: "7.9E-323",
        18: "8.9E-323",
        20: "9.9E-323",
    },
    np.dtype(np.float32): {
        1: "1.4E-45",
        2: "2.8E-45",
        3: "4.2E-45",
        4: "5.6E-45",
        6: "8.4E-45",
        7: "9.8E-45",
        21: "2.9E-44",
        29: "4.1E-44",
        71: "9.9E-44",
    },
}
_LEAST_POWER: Final = -324
_MOST_POWER: Final = 308
_POWERS: Final = range(_LEAST_POWER, _MOST_POWER + 1)
# "E9" for digits d.ddd, and behind them "0E9" for a lone digit d.
_EXPONENTS: Final = pa.array([f"{zero}E{power}" for zero in ("", "0") for power in _POWERS], TEXT)
_FEW: Final = 64
"""Up to how many numbers of an array are written with an exponent one by one."""
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")


def integer_texts(values: pa.Array) -> Texts:
    """Return the texts of integers of any width and sign."""
    return Texts(cast_to_text(values))


def boolean_texts(values: pa.Array) -> Texts:
    """Return ``true`` and ``false``."""
    with out_of_python():
        return Texts(pc.if_else(values, text_scalar("true"), text_scalar("false")))


def decimal_texts(values: pa.Array) -> Texts:
    """Return decimals as ``BigDecimal.toString`` writes them at their scale; Arrow's rules are Java's."""
    return Texts(cast_to_text(values))


def floats_of(values: pa.Array) -> Floats:
    """Return a float64 or float32 array's numbers as NumPy sees them, anything in null slots."""
    dtype = np.float64 if values.type == pa.float64() else np.float32
    return np.frombuffer(values.buffers()[1], dtype, len(values), values.offset * np.dtype(dtype).itemsize)


@np.errstate(invalid="ignore")  # a signalling NaN is a NaN like any other, and no cause for a warning
def float_texts(values: pa.Array, *, quoted: bool = True) -> Texts:
    """Return halfs, floats or doubles as Java writes them; NaN and infinities in quotes if ``quoted``.

    Plain (``123.0``, ``0.001``) where 1e-3 <= abs < 1e7, else with an exponent (``1.0E7``). That range is of
    the decimal in Java's definition; comparing the number with the nearest number to the bound is the same,
    since that number's shortest decimal is the bound itself.
    """
    if pa.types.is_float16(values.type):
        values = pc.cast(values, pa.float32())  # exact
    text = cast_to_text(values)
    if len(values) == values.null_count:
        return Texts(text)
    numbers = floats_of(values)
    magnitudes = np.abs(numbers)
    plain = ((magnitudes >= 1e-3) & (magnitudes < 1e7)) | (magnitudes == 0)
    # Arrow writes whole numbers without ".0".
    whole = plain & (np.trunc(numbers) == numbers)
    valid = valid_mask(values)
    if valid is not None:
        plain |= ~valid
        whole |= ~valid
    others = ~plain
    count = int(np.count_nonzero(others))
    if 0 < count <= _FEW:
        some = [text[i].as_py() for i in np.flatnonzero(others).tolist()]
        laid_out = _few_scientific(some, magnitudes[others], quoted=quoted)
        text = pc.replace_with_mask(text, pa.array(others), pa.array(laid_out, TEXT))
    elif count == len(values):
        text = _scientific(text, numbers, quoted=quoted)
    elif count:
        mask = pa.array(others)
        laid_out = _scientific(pc.filter(text, mask), numbers[others], quoted=quoted)
        with out_of_python():
            text = pc.replace_with_mask(text, mask, laid_out)
    if whole.all():
        return Texts(text, "", ".0")
    if whole.any():
        return Texts(text, "", pc.if_else(pa.array(whole), text_scalar(".0"), text_scalar("")))
    return Texts(text)


def _few_scientific(texts: list[str], magnitudes: Floats, *, quoted: bool) -> list[str]:
    """Do as ``_scientific`` for a handful, whose values cost less one by one than in a dozen passes."""
    two_digits = _TWO_DIGITS[magnitudes.dtype]
    laid_out = []
    for text, bits in zip(texts, _bits(magnitudes).tolist(), strict=True):
        sign = "-" if text.startswith("-") else ""
        mantissa, _, exponent = text.removeprefix(sign).partition("e")
        if mantissa in ("nan", "inf"):
            name = "NaN" if mantissa == "nan" else f"{sign}Infinity"
            laid_out.append(f'"{name}"' if quoted else name)
        elif bits in two_digits:
            laid_out.append(sign + two_digits[bits])
        else:
            whole, _, fraction = mantissa.partition(".")
            digits = (whole + fraction).lstrip("0")
            power = len(digits) - len(fraction) - 1 + int(exponent or 0)
            digits = digits.rstrip("0")
            laid_out.append(f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}")
    return laid_out


def _bits(magnitudes: Floats) -> npt.NDArray[np.unsignedinteger[Any]]:
    return magnitudes.view(np.uint64 if magnitudes.dtype == np.float64 else np.uint32)


def _scientific(texts: pa.Array, numbers: Floats, *, quoted: bool) -> pa.Array:
    """Lay out numbers outside the plain range, given Arrow's texts of them (``12000000``, ``3e-07``)."""
    digits = pc.ascii_trim(_digits(texts), characters="0")
    lone = pc.binary_length(digits).to_numpy() == 1
    magnitudes = np.abs(numbers)
    row = _decimal_powers(magnitudes) - _LEAST_POWER + lone * len(_POWERS)
    pieces: list[str | pa.Array] = [
        pc.binary_replace_slice(digits, 1, 1, "."),
        pc.take(_EXPONENTS, pa.array(row), boundscheck=False),
    ]
    negative = np.signbit(numbers)
    if negative.any():
        pieces.insert(0, pc.if_else(pa.array(negative), text_scalar("-"), text_scalar("")))
    text = joined(pieces)
    text = _two_digits_where_closer(text, magnitudes, negative)
    return _not_finite_named(text, numbers, quoted=quoted)


def _digits(texts: pa.Array) -> pa.Array:
    """Return the digits of Arrow's texts before any exponent; sign, point and exponent are dropped."""
    offsets, data = raw(texts)
    window = data[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    keep = (window >= ord("0")) & (window <= ord("9"))
    marks = pc.find_substring(texts, "e").to_numpy()
    with_exponent = np.flatnonzero(marks >= 0)
    if len(with_exponent):
        mark = offsets[with_exponent] + marks[with_exponent]
        last = offsets[with_exponent + 1] - 1
        for back in range(3):  # an exponent has at most three digits
            at = last - back
            keep[at[at > mark]] = False
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(keep, dtype=np.int64)))
    return text_array(ends[offsets], window[keep])


def _power_table(dtype: np.dtype[Any]) -> npt.NDArray[np.float64]:
    """Return the number nearest to each power of ten in ``dtype``, 10**-324 (which is 0) first, inf last."""
    with np.errstate(over="ignore"):
        powers = np.array([float(f"1e{power}") for power in _POWERS]).astype(dtype)
    return np.append(powers.astype(np.float64), np.inf)


_POWER_TABLES: Final = {np.dtype(kind): _power_table(np.dtype(kind)) for kind in (np.float64, np.float32)}
# floor(log10(2**e)) by the biased exponent of a normal double; no power of two is near enough to one of ten
# for the rounding of the logarithm to matter.
_POWER_BY_EXPONENT: Final = np.array(
    [math.floor((biased - 1023) * math.log10(2)) for biased in range(2048)], np.int64
)


def _decimal_powers(magnitudes: Floats) -> Ints:
    """Return the power of ten of the first digit of each number's shortest decimal.

    A number is at least 10**p by its shortest decimal if and only if it is at least the number nearest to
    10**p, whose own shortest decimal that is. NaN and infinities get some power in range.
    """
    table = _POWER_TABLES[magnitudes.dtype]
    wide = magnitudes.astype(np.float64)
    biased = (wide.view(np.uint64) >> np.uint64(52)).astype(np.int64)
    power = _POWER_BY_EXPONENT[biased]
    subnormal = biased == 0
    if subnormal.any():
        power[subnormal] = np.searchsorted(table, wide[subnormal], side="right") - 1 + _LEAST_POWER
    power += wide >= table[np.minimum(power - _LEAST_POWER + 1, len(table) - 1)]
    return np.minimum(power, _MOST_POWER)


def _two_digits_where_closer(text: pa.Array, magnitudes: Floats, negative: Mask) -> pa.Array:
    table = _TWO_DIGITS[magnitudes.dtype]
    bits = _bits(magnitudes)
    if bits.min() > max(table):
        return text
    for pattern in np.unique(bits[bits <= max(table)]).tolist():
        for sign, of_sign in (("", ~negative), ("-", negative)):
            at = (bits == pattern) & of_sign
            if pattern in table and at.any():
                text = pc.if_else(pa.array(at), text_scalar(sign + table[pattern]), text)
    return text


def _not_finite_named(text: pa.Array, numbers: Floats, *, quoted: bool) -> pa.Array:
    if np.isfinite(numbers).all():
        return text
    for name, at in zip(_NOT_FINITE, (np.isnan(numbers), numbers == np.inf, numbers == -np.inf), strict=True):
        if at.any():
            text = pc.if_else(pa.array(at), text_scalar(f'"{name}"' if quoted else name), text)
    return text
