"""The tables behind the golden files, one for each group of types; literal values only, so that they stay.

A released golden file is never changed: other text would be another method, under another name than rows-v1.
New cases are added beside the old ones.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.hashing.arrays import Tagged, plain_array

_DAY = 86_400


def _doubles(*bits: str) -> list[float | None]:
    return [None, *(struct.unpack(">d", bytes.fromhex(b))[0] for b in bits)]


def _floats(*bits: str) -> list[float | None]:
    return [None, *(struct.unpack(">f", bytes.fromhex(b))[0] for b in bits)]


def _integers(bits: int) -> dict[str, tuple[pa.DataType, list[Any]]]:
    signed = [None, -(2 ** (bits - 1)), -1, 0, 7, 2 ** (bits - 1) - 1]
    unsigned = [None, 0, 7, 99, 2 ** (bits - 1), 2**bits - 1]
    return {
        f"int{bits}": (pa.type_for_alias(f"int{bits}"), signed),
        f"uint{bits}": (pa.type_for_alias(f"uint{bits}"), unsigned),
    }


_MOMENTS = [None, -62135596800, -30610224001, -1, 0, 951_782_400, 1_700_000_000, 253402300799, 253402300800]
_TEXTS = [None, "", "plain", '"\\/\b\f\n\r\t\x00\x1f\x7f', "é\u2028\uffff\U0001f600", "NaN", "null"]
_BYTES = [None, b"", b"\x00", b"\xfb\xff\xfe", b"abcd"]
_STRUCT = pa.struct([("b", pa.int8()), ("a", pa.string()), ("x:y,`z`", pa.list_(pa.float64()))])

_COLUMNS: dict[str, dict[str, tuple[pa.DataType, list[Any]]]] = {
    "bool_and_null": {"b": (pa.bool_(), [None, True, False]), "n": (pa.null(), [None] * 3)},
    "integers": {k: v for bits in (8, 16, 32, 64) for k, v in _integers(bits).items()},
    "float64": {
        "d": (
            pa.float64(),
            _doubles(
                *("7ff8000000000000", "fff8000000000123", "7ff0000000000000", "fff0000000000000"),
                *("8000000000000000", "0000000000000000", "0000000000000001", "0000000000000002"),
                *("0010000000000000", "7fefffffffffffff", "3ff0000000000000", "3fb999999999999a"),
                *("3f50624dd2f1a9fc", "3f50624dd2f1a9fb", "416312d000000000", "416312cfffffffff"),
                *("44b52d02c7e14af6", "438f7f0a7a6f4b3d", "4340000000000001", "c12e848000000000"),
            ),
        )
    },
    "float32": {
        "f": (
            pa.float32(),
            _floats(
                *("7fc00000", "7f800000", "ff800000", "80000000", "00000000", "00000001", "00800000"),
                *("7f7fffff", "3dcccccd", "3a83126f", "3a83126e", "4b189680", "4b18967f", "4996b43e"),
                *("49742400", "50ad69c9", "c9742400"),
            ),
        )
    },
    "float16": {"h": (pa.float16(), [None, 0.0, -0.0, 0.5, 65504.0, 5.960464477539063e-08, 0.0999755859375])},
    "string": {
        "s": (pa.string(), _TEXTS),
        "large": (pa.large_string(), _TEXTS),
        "view": (pa.string_view(), _TEXTS),
        "dictionary": (pa.dictionary(pa.int8(), pa.string()), _TEXTS),
        "runs": (pa.run_end_encoded(pa.int32(), pa.string()), _TEXTS),
        "tagged": (Tagged(pa.string()), _TEXTS),
        'awkward "name"\n\u2028\U0001f600': (pa.string(), _TEXTS),
    },
    "binary": {
        "b": (pa.binary(), _BYTES),
        "large": (pa.large_binary(), _BYTES),
        "view": (pa.binary_view(), _BYTES),
        "fixed": (pa.binary(3), [None, b"\x00\x01\x02", b"\xfb\xff\xfe", b"abc", b"\xff\xff\xff"]),
    },
    "date": {
        "d32": (pa.date32(), [None, -719529, -719528, -719162, -141428, -1, 0, 11016, 2932896, 2932897]),
        "d64": (
            pa.date64(),
            [
                d and d * _DAY * 1000
                for d in (None, -719529, -719528, -719162, -141428, -1, 0, 11016, 2932896, 2932897)
            ],
        ),
    },
    "timestamp": {
        f"{unit}{'z' if zone else ''}": (
            pa.timestamp(unit, zone),
            [m and m * 10**digits + (1 if digits else 0) for m in moments],
        )
        for unit, digits, moments in (
            ("s", 0, _MOMENTS),
            ("ms", 3, _MOMENTS),
            ("us", 6, _MOMENTS),
            ("ns", 9, [None, -9_000_000_000, -1, 0, 1, 951_782_400, 1_700_000_000, 9_000_000_000, 5]),
        )
        for zone in (None, "America/New_York")
    },
    "time": {
        "s": (pa.time32("s"), [None, 0, 1, 3_661, 86_399]),
        "ms": (pa.time32("ms"), [None, 0, 1, 3_661_001, 86_399_999]),
        "us": (pa.time64("us"), [None, 0, 1, 3_661_000_001, 86_399_999_999]),
        "ns": (pa.time64("ns"), [None, 0, 1, 3_661_000_001_000, 86_399_999_999_999]),
    },
    "decimal": {
        name: (t, [None if v is None else Decimal(v) for v in values])
        for name, t, values in (
            ("d32", pa.decimal32(9, 2), [None, "0", "1.5", "-9999999.99"]),
            ("d64", pa.decimal64(18, 7), [None, "0", "0.0000001", "-12345678901.2345678"]),
            ("d128", pa.decimal128(38, 8), [None, "0", "0.00000001", "-0.00000120"]),
            ("d256", pa.decimal256(76, 38), [None, "0", "1", "-" + "9" * 38 + "." + "1" * 38]),
            ("whole", pa.decimal128(38, 0), [None, "0", "-1", "9" * 38]),
            ("negative", pa.decimal128(5, -3), [None, "0", "1000", "-12345000"]),
        )
    },
    "list": {
        "l": (pa.list_(pa.int32()), [None, [], [1, None, -3]]),
        "large": (pa.large_list(pa.string()), [None, [], ["a", None, '"']]),
        "fixed": (pa.list_(pa.float32(), 2), [None, [0.5, None], [1234567.75, 1e10]]),
        "view": (pa.list_view(pa.date32()), [None, [], [0, None]]),
        "nested": (pa.list_(pa.list_(pa.float64())), [None, [[], None], [[float("nan"), None], [1e7]]]),
        "nulls": (pa.list_(pa.null()), [None, [], [None, None]]),
    },
    "struct": {
        "s": (_STRUCT, [None, (None, None, None), (1, "x", [0.5, None])]),
        "empty": (pa.struct([]), [None, (), ()]),
        "deep": (
            pa.struct([("s", pa.struct([("s", pa.struct([("n", pa.int8())]))]))]),
            [None, ((None,),), (((5,),),)],
        ),
        "list": (pa.list_(_STRUCT), [None, [None, (None, None, None)], [(2, None, [])]]),
    },
    "map": {
        "string": (pa.map_(pa.string(), pa.int32()), [None, [], [("b", 1), ("\U0001f600", 2), ("a", None)]]),
        "int": (pa.map_(pa.int64(), pa.string()), [None, [], [(10, "x"), (9, None), (-1, "")]]),
        "bool": (pa.map_(pa.bool_(), pa.bool_()), [None, [], [(True, False), (False, None)]]),
        "double": (
            pa.map_(pa.float64(), pa.int8()),
            [None, [], [(float("nan"), 1), (-0.0, 2), (1e7, 3), (0.1, 4), (float("-inf"), 5)]],
        ),
        "float": (pa.map_(pa.float32(), pa.int8()), [None, [], [(0.10000000149011612, 1), (-0.0, 2)]]),
        "decimal": (
            pa.map_(pa.decimal128(20, 8), pa.int8()),
            [None, [], [(Decimal("1.5"), 1), (Decimal("0.00000001"), 2), (Decimal(0), 3)]],
        ),
        "date": (pa.map_(pa.date32(), pa.date32()), [None, [], [(18262, 18262), (-1, None)]]),
        "timestamp": (pa.map_(pa.timestamp("ns"), pa.int8()), [None, [], [(2000, 1), (-1000, 2)]]),
        "nested": (
            pa.map_(pa.string(), pa.map_(pa.int8(), pa.list_(pa.string()))),
            [None, [("b", None), ("a", [(2, ["x"]), (1, None)])], [("c", [])]],
        ),
    },
    "no_rows": {"a": (pa.int64(), []), "b": (pa.map_(pa.string(), pa.timestamp("us", "UTC")), [])},
}


def golden_batches() -> dict[str, pa.RecordBatch]:
    """Each case's name and data."""
    batches = {
        name: pa.RecordBatch.from_arrays(
            [plain_array(values, t) for t, values in columns.values()],
            schema=pa.schema([pa.field(column, t) for column, (t, _) in columns.items()]),
        )
        for name, columns in _COLUMNS.items()
    }
    batches["no_columns"] = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))
    return batches
