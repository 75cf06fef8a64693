"""Random tables of all types that Spark and rows-v1 share, nested to depth three, each from a seed."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

_KEYS = (
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
    *(pa.decimal128(10, 2), pa.decimal128(38, 38)),
)
_FLAT = (*_KEYS, pa.binary(), pa.decimal128(5, 0), pa.decimal128(38, 8), pa.null())
_CHARACTERS = '\x00\x01\b\t\n\x0b\f\r\x1b\x1f "\\/\x7f\x80é\u2028\ufeff\ufffd\uffff\U0001f600aAbZ{}[],:`'
_NAMES = [
    "a",
    "A",
    "b",
    "a b",
    "a.b",
    "é",
    "\U0001f600",
    "\uffff",
    "x:y,<z>`",
    "",
    '"\\\n',
    "id",
    "ID",
    "select",
    "f0",
]
_DAY = 86_400_000_000


def random_table(seed: int, *, columns: int = 12, rows: int = 30) -> pa.Table:
    """Columns of types as they fall, names among them that differ only in case."""
    source = random.Random(seed)
    names = _names(source, columns)
    types = [_type(source, source.randrange(4)) for _ in names]
    arrays = [pa.array([_value(source, t) for _ in range(rows)], t) for t in types]
    return pa.Table.from_arrays(arrays, schema=pa.schema(list(zip(names, types, strict=True))))


def _names(source: random.Random, count: int) -> list[str]:
    names = source.sample(_NAMES, min(count, len(_NAMES)))
    return names + [f"c{n}" for n in range(count - len(names))]


def _type(source: random.Random, depth: int) -> pa.DataType:
    if depth == 0:
        return source.choice(_FLAT)
    kind = source.choice(["flat", "list", "map", "struct"])
    if kind == "list":
        return pa.list_(_type(source, depth - 1))
    if kind == "map":
        return pa.map_(source.choice(_KEYS), _type(source, depth - 1))
    if kind == "struct":
        names = _names(source, source.randrange(4))
        return pa.struct([pa.field(name, _type(source, depth - 1)) for name in names])
    return source.choice(_FLAT)


def _value(source: random.Random, t: pa.DataType) -> Any:
    if pat.is_null(t) or source.random() < 0.15:
        return None
    return _present(source, t)


def _present(source: random.Random, t: pa.DataType) -> Any:
    if pat.is_list(t):
        return [_value(source, t.value_type) for _ in range(source.randrange(4))]
    if pat.is_map(t):
        keys = {
            _known_as(key): key for key in (_present(source, t.key_type) for _ in range(source.randrange(4)))
        }
        entries = [(key, _value(source, t.item_type)) for key in keys.values()]
        source.shuffle(entries)
        return entries
    if pat.is_struct(t):
        return {t.field(i).name: _value(source, t.field(i).type) for i in range(t.num_fields)}
    return _FLAT_VALUES[str(t)](source) if str(t) in _FLAT_VALUES else _decimal(source, t)


def _known_as(key: Any) -> Any:
    """What two keys of one map must not share."""
    if isinstance(key, float):
        return "NaN" if key != key else key + 0.0
    return key


def _integer(bits: int) -> Callable[[random.Random], int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return lambda source: source.choice([low, -1, 0, 1, high, *(source.randint(low, high) for _ in range(5))])


def _float(kind: str, bits: int) -> Callable[[random.Random], float]:
    edges = [
        0.0,
        -0.0,
        float("nan"),
        float("inf"),
        float("-inf"),
        0.001,
        1e7,
        2.0**60,
        1e23,
        0.1,
        1.5,
        5e-324,
    ]

    def value(source: random.Random) -> float:
        anything = struct.unpack(f">{kind}", source.getrandbits(bits).to_bytes(bits // 8, "big"))[0]
        plain = source.randint(-(10**9), 10**9) / 10 ** source.randrange(12)
        whole = float(source.getrandbits(68))
        (chosen,) = struct.unpack(
            kind, struct.pack(kind, source.choice([anything, plain, whole, source.choice(edges)]))
        )
        return float(chosen)

    return value


def _decimal(source: random.Random, t: pa.Decimal128Type) -> Decimal:
    most = 10**t.precision - 1
    unscaled = source.choice([0, 1, -1, most, -most, source.randint(-most, most), source.randint(-99, 99)])
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -t.scale))


def _text(source: random.Random) -> str:
    return "".join(source.choices(_CHARACTERS, k=source.randrange(8)))


def _microseconds(source: random.Random) -> int:
    years_0_to_10000 = source.randint(-719_528 * _DAY, 2_932_897 * _DAY)
    return source.choice(
        [years_0_to_10000, source.randint(-(2**62), 2**62), source.randint(-3 * _DAY, 3 * _DAY)]
    )


_FLAT_VALUES: dict[str, Callable[[random.Random], Any]] = {
    "bool": lambda source: source.random() < 0.5,
    **{f"int{bits}": _integer(bits) for bits in (8, 16, 32, 64)},
    "float": _float("f", 32),
    "double": _float("d", 64),
    "string": _text,
    "binary": lambda source: source.randbytes(source.choice([0, 1, 2, 3, 80])),
    "date32[day]": lambda source: source.randint(-800_000, 3_000_000),
    "timestamp[us]": _microseconds,
    "timestamp[us, tz=UTC]": _microseconds,
}
