"""Random tables of every type that rows-v1 defines, nested to depth three, and their look-alikes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.types as pat
from hypothesis import strategies as st

from tests.hashing.arrays import Tagged, is_binary, is_list, is_string, plain_array

_DAY_IN_UNITS = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}

KEY_TYPES = (
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.date32(), pa.date64()),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "America/New_York")),
    *(pa.decimal32(7, 3), pa.decimal64(12, 9), pa.decimal128(38, 38), pa.decimal256(60, 8)),
)
FLAT_TYPES = (
    *KEY_TYPES,
    *(pa.uint16(), pa.uint32()),
    *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.decimal128(5, 0), pa.decimal128(10, 2), pa.decimal128(6, -3), pa.decimal256(76, 76)),
    pa.null(),
)
# What a Spark data frame can hold, exactly as it is.
SPARK_KEY_TYPES = (
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.date32()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.decimal128(10, 2), pa.decimal128(38, 38)),
)
SPARK_FLAT_TYPES = (*SPARK_KEY_TYPES, pa.binary(), pa.decimal128(5, 0), pa.decimal128(38, 8))

_AWKWARD_CHARACTERS = '\x00\x01\b\t\n\x0b\f\r\x1b\x1f "\\/\x7f\x80é\u2028\ufeff\uffff\U0001f600aAbZ'
TEXTS = st.text(max_size=12) | st.text(st.sampled_from(_AWKWARD_CHARACTERS), max_size=12)
NAMES = (
    st.sampled_from(["a", "A", "b", "a b", "é", "\U0001f600", "\uffff", "x:y,<z>`", "", '"\\\n', "id"])
    | TEXTS
)


@dataclass(frozen=True)
class Kinds:
    """Which types to draw from; ``layouts`` adds those that only lay the same values out in another way."""

    flat: tuple[pa.DataType, ...] = FLAT_TYPES
    keys: tuple[pa.DataType, ...] = KEY_TYPES
    layouts: bool = True


ALL = Kinds()
SPARK = Kinds(SPARK_FLAT_TYPES, SPARK_KEY_TYPES, layouts=False)


@dataclass(frozen=True)
class RandomTable:
    """A table as plain values: what the rows are, apart from how Arrow lays them out."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(n, t) for n, t in zip(self.names, self.types, strict=True)])

    def batch(self, *, awkward: bool = False) -> pa.RecordBatch:
        arrays = [
            plain_array([row[i] for row in self.rows], t, awkward=awkward) for i, t in enumerate(self.types)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def with_rows(self, rows: list[tuple[Any, ...]]) -> RandomTable:
        return replace(self, rows=tuple(rows))

    def with_columns_in_order(self, order: list[int]) -> RandomTable:
        return RandomTable(
            tuple(self.names[i] for i in order),
            tuple(self.types[i] for i in order),
            tuple(tuple(row[i] for i in order) for row in self.rows),
        )


# --------------------------------------------------------------------------- types


@st.composite
def types(draw: st.DrawFn, depth: int, kinds: Kinds = ALL) -> pa.DataType:
    """Types nested up to ``depth``."""
    return draw(_types(depth, kinds))


@cache  # building strategies costs more than drawing from them
def _types(depth: int, kinds: Kinds) -> st.SearchStrategy[pa.DataType]:
    leaf = st.sampled_from(kinds.flat)
    if depth == 0:
        return leaf | _encoded(leaf) if kinds.layouts else leaf
    inner = types(depth - 1, kinds)
    key = st.sampled_from(kinds.keys)
    nested = [
        inner.map(pa.list_),
        st.builds(pa.map_, key | _encoded(key) if kinds.layouts else key, inner),
        st.lists(st.tuples(NAMES, inner), max_size=4, unique_by=lambda f: f[0]).map(
            lambda fields: pa.struct([pa.field(n, t) for n, t in fields])
        ),
    ]
    if not kinds.layouts:
        return st.one_of(inner, *nested)
    layouts = [
        inner.map(pa.large_list),
        inner.map(pa.list_view),
        inner.map(pa.large_list_view),
        st.builds(pa.list_, inner, st.integers(0, 3)),
    ]
    return st.one_of(inner, *nested, *layouts, _encoded(inner))


def _encoded(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    values = inner.filter(lambda t: not isinstance(t, pa.BaseExtensionType) and not _is_encoded(t))
    dictionary = st.builds(
        pa.dictionary,
        st.sampled_from([pa.int16(), pa.uint32(), pa.int64()]),
        values.filter(lambda t: not pat.is_null(t) and not pat.is_nested(t)),
    )
    # Arrow (pyarrow 26) can build, put together and compare little of what has an extension type in runs.
    in_runs = values.filter(lambda t: not (pat.is_nested(t) and "extension<" in str(t)))
    runs = st.builds(pa.run_end_encoded, st.sampled_from([pa.int16(), pa.int32(), pa.int64()]), in_runs)
    return dictionary | runs | values.map(Tagged)


def _is_encoded(t: pa.DataType) -> bool:
    return bool(pat.is_dictionary(t) or pat.is_run_end_encoded(t))


@lru_cache(maxsize=1000)
def alike(t: pa.DataType) -> st.SearchStrategy[pa.DataType]:
    """Types of the same canonical name that can hold the same values."""
    if isinstance(t, pa.BaseExtensionType):
        return alike(t.storage_type)
    if _is_encoded(t):
        return alike(t.value_type)
    if pat.is_fixed_size_list(t):
        others = alike(t.value_type)
        return others.map(lambda i: pa.list_(i, t.list_size)) | others.map(pa.list_)
    if is_list(t):
        others = alike(t.value_type)
        kinds = st.sampled_from([pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
        return st.builds(lambda kind, item: kind(item), kinds, others)
    if pat.is_map(t):
        return st.builds(pa.map_, alike(t.key_type), alike(t.item_type))
    if pat.is_struct(t):
        fields = [t.field(i) for i in range(t.num_fields)]
        return st.tuples(*(alike(f.type) for f in fields)).map(
            lambda inner: pa.struct([pa.field(f.name, i) for f, i in zip(fields, inner, strict=True)])
        )
    same = st.sampled_from(_flat_alike(t))
    return same | _encoded(same)


def _flat_alike(t: pa.DataType) -> list[pa.DataType]:
    if is_string(t):
        return [pa.string(), pa.large_string(), pa.string_view()]
    if is_binary(t):
        return [t, pa.binary(), pa.large_binary(), pa.binary_view()]
    if pat.is_decimal(t):
        kinds = [(9, pa.decimal32), (18, pa.decimal64), (38, pa.decimal128), (76, pa.decimal256)]
        return [kind(t.precision, t.scale) for most, kind in kinds if t.precision <= most]
    if pat.is_timestamp(t) and t.tz:
        return [t, pa.timestamp(t.unit, "UTC"), pa.timestamp(t.unit, "+05:30")]
    return [t]


# --------------------------------------------------------------------------- values


@lru_cache(maxsize=1000)
def values(t: pa.DataType, *, faulty: bool = False) -> st.SearchStrategy[Any]:
    """Values of the type, null among them; if ``faulty``, also such that rows-v1 has no text for."""
    return st.none() | present(t, faulty=faulty)


@lru_cache(maxsize=1000)
def present(t: pa.DataType, *, key: bool = False, faulty: bool = False) -> st.SearchStrategy[Any]:
    """Values of the type that are not null; as keys of a map only those that have a text as key."""
    if isinstance(t, pa.BaseExtensionType):
        return present(t.storage_type, key=key, faulty=faulty)
    if _is_encoded(t):
        return present(t.value_type, key=key, faulty=faulty)
    if pat.is_fixed_size_list(t):
        return st.lists(values(t.value_type, faulty=faulty), min_size=t.list_size, max_size=t.list_size)
    if is_list(t):
        return st.lists(values(t.value_type, faulty=faulty), max_size=4)
    if pat.is_map(t):
        entries = st.tuples(present(t.key_type, key=True, faulty=faulty), values(t.item_type, faulty=faulty))
        unique = None if faulty else lambda e: normal(e[0], t.key_type, key=True)
        return st.lists(entries, max_size=4, unique_by=unique)
    if pat.is_struct(t):
        return st.tuples(*(values(t.field(i).type, faulty=faulty) for i in range(t.num_fields)))
    right = _flat_values(t, key)
    return right | _without_text(t, key) if faulty else right


def _without_text(t: pa.DataType, key: bool) -> st.SearchStrategy[Any]:
    if is_string(t):
        return st.sampled_from([b"\xff", b"a\xed\xa0\x80", b"\xc0\x80"])
    if pat.is_date64(t):
        return st.sampled_from([1, -1, 86_400_001])
    if pat.is_time(t):
        return st.sampled_from([-1, _DAY_IN_UNITS[t.unit]])
    if pat.is_timestamp(t) and t.unit == "ns" and key:
        return st.sampled_from([1, -1, 1_001])
    return st.nothing()


def _flat_values(t: pa.DataType, key: bool) -> st.SearchStrategy[Any]:
    if pat.is_null(t):
        return st.none()
    if pat.is_boolean(t):
        return st.booleans()
    if pat.is_integer(t):
        return _whole_range(t.bit_width, signed=pat.is_signed_integer(t))
    if pat.is_floating(t):
        return _floats(t.bit_width)
    if is_string(t):
        return TEXTS
    if pat.is_fixed_size_binary(t):
        return st.binary(min_size=t.byte_width, max_size=t.byte_width)
    if is_binary(t):
        return st.binary(max_size=9)
    if pat.is_decimal(t):
        most = 10**t.precision - 1
        return (st.integers(-most, most) | st.integers(-min(most, 99), min(most, 99))).map(
            lambda unscaled: decimal_of(unscaled, t.scale)
        )
    if pat.is_date32(t):
        return _whole_range(32, signed=True) | st.integers(-800_000, 80_000)
    if pat.is_date64(t):
        return (st.integers(-(10**8), 10**8) | st.integers(-800_000, 80_000)).map(lambda d: d * 86_400_000)
    if pat.is_time(t):
        return st.integers(0, _DAY_IN_UNITS[t.unit] - 1)
    return _timestamps(t, key)


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """The decimal without the rounding of the decimal module's context."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _whole_range(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(low, high) | st.sampled_from([low, 0, 1, high])


def _floats(bits: int) -> st.SearchStrategy[float]:
    strategy = st.floats(width=bits)  # type: ignore[arg-type]
    if bits == 16:
        return strategy
    return strategy | st.sampled_from([0.5, 1e6, 1234567.0, 9999999.0, 1e7, 2.0**63, 0.0009765625])


def _timestamps(t: pa.TimestampType, key: bool) -> st.SearchStrategy[int]:
    day = _DAY_IN_UNITS[t.unit]
    low, high = -(2**63), 2**63 - 1
    years_0_to_10000 = st.integers(max(low, -719_528 * day), min(high, 2_932_897 * day))
    any_time = st.integers(low, high) | years_0_to_10000 | st.integers(-3 * day, 3 * day)
    if key and t.unit == "ns":
        return any_time.map(lambda value: value // 1000 * 1000 if value // 1000 * 1000 >= low else 0)
    return any_time


# --------------------------------------------------------------------------- tables


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    depth: int = 3,
    kinds: Kinds = ALL,
    min_columns: int = 0,
    min_rows: int = 0,
    max_rows: int = 6,
    faulty: bool = False,
) -> RandomTable:
    names = draw(st.lists(NAMES, min_size=min_columns, max_size=4, unique=True))
    chosen = [draw(types(draw(st.integers(0, depth)), kinds)) for _ in names]
    row = st.tuples(*(values(t, faulty=faulty) for t in chosen))
    rows = draw(st.lists(row, min_size=min_rows if names else 0, max_size=max_rows if names else 0))
    return RandomTable(tuple(names), tuple(chosen), tuple(rows))


def normal(value: Any, t: pa.DataType, *, key: bool = False) -> Any:
    """A hashable form; two values have the same one if and only if rows-v1 holds them to be the same."""
    if isinstance(t, pa.BaseExtensionType):
        return normal(value, t.storage_type, key=key)
    if _is_encoded(t):
        return normal(value, t.value_type, key=key)
    if value is None:
        return None
    if pat.is_map(t):
        return frozenset((normal(k, t.key_type, key=True), normal(v, t.item_type)) for k, v in value)
    if is_list(t):
        return tuple(normal(v, t.value_type) for v in value)
    if pat.is_struct(t):
        return tuple(normal(v, t.field(i).type) for i, v in enumerate(value))
    if pat.is_floating(t):
        return "NaN" if value != value else value + 0.0 if key else repr(value)
    return value


def entries_shuffled(value: Any, t: pa.DataType, shuffle: random.Random) -> Any:
    """The same value with the entries of every map in another order."""
    if isinstance(t, pa.BaseExtensionType):
        return entries_shuffled(value, t.storage_type, shuffle)
    if value is None or _is_encoded(t):
        return value
    if pat.is_map(t):
        entries = [(k, entries_shuffled(v, t.item_type, shuffle)) for k, v in value]
        shuffle.shuffle(entries)
        return entries
    if is_list(t):
        return [entries_shuffled(v, t.value_type, shuffle) for v in value]
    if pat.is_struct(t):
        return tuple(entries_shuffled(v, t.field(i).type, shuffle) for i, v in enumerate(value))
    return value
