"""Texts of maps: entries sorted by key inside each map, keys as Spark's JSON writer turns them to text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ubunye_orchestrate.hashing.kernels.nested import ElementsOf, enclosed, or_null
from ubunye_orchestrate.hashing.kernels.numbers import (
    boolean_texts,
    decimal_texts,
    float_texts,
    floats_of,
    integer_texts,
)
from ubunye_orchestrate.hashing.kernels.temporal import days_of, integers_of
from ubunye_orchestrate.hashing.kernels.text import escaped
from ubunye_orchestrate.hashing.kernels.texts import (
    FaultyValueError,
    Ints,
    Texts,
    cast_to_text,
    joined,
    text_scalar,
    valid_mask,
)

__all__ = ["keys_and_items", "map_texts"]

_ZEROS_TO_MICROSECONDS: Final = {"s": "000000", "ms": "000", "us": ""}

Codes = npt.NDArray[np.integer[Any]]
"""One integer a key; they compare as the keys do."""


def map_texts(values: pa.Array, texts_of: Callable[[pa.Array], Texts]) -> Texts:
    """Return maps as JSON objects, entries sorted by key, null values as ``null``.

    Raises FaultyValueError for a null key and for two keys of one map with the same text.
    """
    elements = ElementsOf(values)
    key_values, item_values = keys_and_items(values, elements)
    try:
        keys = elements.flat(key_values)
        if keys.null_count:
            at = pc.index(keys.is_null(), True).as_py()
            raise FaultyValueError(at, "a map has a null key; it has no text")
        key_text, codes = _key_texts(keys)
        order = _order_in_maps(elements.bounds, codes if codes is not None else keys)
        items = or_null(elements.texts(item_values, texts_of))
    except FaultyValueError as e:
        raise FaultyValueError(elements.row_of(e.index), e.reason) from None
    if order is not None:
        key_text = pc.take(key_text, order)
        items = items.at(order)
    entries = joined([',"', key_text, '":', *items.pieces()])
    return enclosed(entries, elements.bounds, valid_mask(values), "{", "}")


def keys_and_items(values: pa.Array, elements: ElementsOf) -> tuple[pa.Array, pa.Array]:
    """Return all keys and items that stand behind the maps' offsets.

    ``MapArray.keys`` and ``items`` leave out the offset that the entries may have of their own; the entries
    of one map, as a scalar, have it.
    """
    keys, items = values.keys, values.items
    filled = np.flatnonzero(np.diff(elements.bounds))
    if not len(filled):
        return keys, items
    row = int(filled[0])
    entries = values[row].values
    start = elements.first_of(row)
    return (
        keys.slice(entries.field(0).offset - keys.offset - start),
        items.slice(entries.field(1).offset - items.offset - start),
    )


def _key_texts(keys: pa.Array) -> tuple[pa.Array, Codes | None]:
    """Return keys as text without quotes, and their codes (None for strings, compared as they are)."""
    t = keys.type
    if pat.is_floating(t):
        return _float_keys(keys)
    if pat.is_decimal(t):
        wide = keys if t.bit_width >= 128 else pc.cast(keys, pa.decimal128(t.precision, t.scale))
        return decimal_texts(keys).array, pc.rank(wide, tiebreaker="dense").to_numpy()
    if pat.is_date(t):
        days = days_of(keys)
        return cast_to_text(pa.array(days)), days
    if pat.is_timestamp(t):
        ticks = integers_of(keys)
        return _microseconds_text(ticks, t.unit), ticks
    if pat.is_boolean(t):
        return boolean_texts(keys).array, pc.cast(keys, pa.int8()).to_numpy()
    if pat.is_integer(t):
        return integer_texts(keys).array, keys.to_numpy()
    if pat.is_null(t):
        return cast_to_text(keys), np.empty(0, np.int64)  # no key is null, so there is none
    return escaped(keys), None


def _float_keys(keys: pa.Array) -> tuple[pa.Array, Codes]:
    if pat.is_float16(keys.type):
        keys = pc.cast(keys, pa.float32())
    with np.errstate(invalid="ignore"):  # some NaNs are reported when they are reckoned with
        numbers = floats_of(keys) + 0.0 if len(keys) else np.empty(0, np.float32)  # a key -0.0 is 0.0
    numbers[np.isnan(numbers)] = np.nan
    texts = float_texts(pa.array(numbers, keys.type), quoted=False)
    # As integers, the bits of positive doubles ascend with the numbers (NaN last), those of negative descend.
    bits = numbers.astype(np.float64).view(np.int64)
    return joined(texts.pieces()), np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _microseconds_text(ticks: Ints, unit: str) -> pa.Array:
    if unit == "ns":
        ticks, rest = np.divmod(ticks, 1000)
        if rest.any():
            raise FaultyValueError(
                int(np.flatnonzero(rest)[0]),
                "a timestamp as map key has nanoseconds, which its text (microseconds) would cut",
            )
        return cast_to_text(pa.array(ticks))
    text = cast_to_text(pa.array(ticks))
    zeros = _ZEROS_TO_MICROSECONDS[unit]
    # By their text, since seconds can be more microseconds than 64 bits hold.
    return joined([text, pc.if_else(pa.array(ticks == 0), text_scalar(""), text_scalar(zeros))])


def _order_in_maps(bounds: Ints, keys: Codes | pa.Array) -> pa.Array | None:
    """Return the order that sorts each map's entries by key; None when they are sorted already."""
    if len(keys) < 2:
        return None
    in_map = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    same_map = in_map[1:] == in_map[:-1]
    if isinstance(keys, pa.Array):
        ascending = pc.less(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
    else:
        ascending = keys[:-1] < keys[1:]
    if (ascending | ~same_map).all():
        return None
    codes = _string_codes(keys) if isinstance(keys, pa.Array) else keys
    order = np.lexsort((codes, in_map))
    in_order = codes[order]
    twice = (in_order[:-1] == in_order[1:]) & same_map
    if twice.any():
        raise FaultyValueError(
            int(order[np.flatnonzero(twice)[0]]),
            "a map has two keys with the same text; its entries cannot be told apart",
        )
    return pa.array(order)


def _string_codes(keys: pa.Array) -> Codes:
    """Rank strings by code point, which is the order of their UTF-8 bytes."""
    encoded = pc.dictionary_encode(keys)
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    codes: Codes = ranks[encoded.indices.to_numpy()]
    return codes
