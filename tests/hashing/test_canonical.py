"""The rules of rows-v1 that one value shows, and every value that has no text; on each path."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.hashing.arrays import Tagged, plain_array
from tests.hashing.paths import PATHS
from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing import canonical

each_path = pytest.mark.parametrize("path", PATHS)


def _texts(array: pa.Array, path: str) -> list[str | None]:
    lines = PATHS[path](pa.record_batch([array], ["x"])).cast(pa.large_string()).to_pylist()
    return [None if line == "{}" else line.removeprefix('{"x":')[:-1] for line in lines]


def _utc(unit: str) -> pa.DataType:
    return pa.timestamp(unit, "UTC")


DAY_TEXTS = {
    -719528: "0000-01-01",
    -719529: "-0001-12-31",
    -719162: "0001-01-01",
    -354285: "1000-01-01",
    -141428: "1582-10-14",  # a day that only the proleptic calendar has
    -1: "1969-12-31",
    0: "1970-01-01",
    11016: "2000-02-29",
    2932896: "9999-12-31",
    2932897: "+10000-01-01",
    -4371953: "-10000-01-01",
    2**31 - 1: "+5881580-07-11",
    -(2**31): "-5877641-06-23",
}


@each_path
@pytest.mark.parametrize("t", [pa.date32(), pa.date64()])
def test_dates(t: pa.DataType, path: str) -> None:
    factor = 86_400_000 if t == pa.date64() else 1
    array = pa.array([d * factor for d in DAY_TEXTS], t)
    assert _texts(array, path) == [f'"{text}"' for text in DAY_TEXTS.values()]


MOMENTS = [
    ("s", 0, "1970-01-01T00:00:00.000000"),
    ("s", -(2**63), "-292277022657-01-27T08:29:52.000000"),
    ("s", 2**63 - 1, "+292277026596-12-04T15:30:07.000000"),
    ("ms", -1, "1969-12-31T23:59:59.999000"),
    ("ms", 2**63 - 1, "+292278994-08-17T07:12:55.807000"),
    ("us", -1, "1969-12-31T23:59:59.999999"),
    ("us", -62135596800000000, "0001-01-01T00:00:00.000000"),
    ("us", 2**63 - 1, "+294247-01-10T04:00:54.775807"),
    ("us", -(2**63), "-290308-12-21T19:59:05.224192"),
    ("ns", 1_000, "1970-01-01T00:00:00.000001"),
    ("ns", 1_001, "1970-01-01T00:00:00.000001001"),
    ("ns", -1, "1969-12-31T23:59:59.999999999"),
    ("ns", -(2**63), "1677-09-21T00:12:43.145224192"),
    ("ns", 2**63 - 1, "2262-04-11T23:47:16.854775807"),
]


@each_path
@pytest.mark.parametrize(("unit", "value", "text"), MOMENTS)
def test_timestamps(unit: str, value: int, text: str, path: str) -> None:
    assert _texts(pa.array([value], pa.timestamp(unit)), path) == [f'"{text}"']
    for zone in ("UTC", "America/New_York", "+05:30"):
        assert _texts(pa.array([value], pa.timestamp(unit, zone)), path) == [f'"{text}Z"']


@each_path
def test_one_instant_in_every_unit_is_one_text(path: str) -> None:
    second = 1_700_000_000
    units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    texts = {_texts(pa.array([second * n], _utc(unit)), path)[0] for unit, n in units.items()}
    assert texts == {'"2023-11-14T22:13:20.000000Z"'}
    (later,) = _texts(pa.array([second * 10**9 + 1], _utc("ns")), path)
    assert later == '"2023-11-14T22:13:20.000000001Z"'


@each_path
def test_times(path: str) -> None:
    assert _texts(pa.array([0, 86399], pa.time32("s")), path) == ['"00:00:00.000000"', '"23:59:59.000000"']
    assert _texts(pa.array([1, None], pa.time32("ms")), path) == ['"00:00:00.001000"', None]
    assert _texts(pa.array([3_661_000_001], pa.time64("us")), path) == ['"01:01:01.000001"']
    ns = pa.array([1_000, 1_001, 86_399_999_999_999], pa.time64("ns"))
    assert _texts(ns, path) == ['"00:00:00.000001"', '"00:00:00.000001001"', '"23:59:59.999999999"']


DECIMALS = [
    (pa.decimal128(10, 2), "1.5", "1.50"),
    (pa.decimal128(38, 8), "0.00000001", "1E-8"),
    (pa.decimal128(38, 8), "0", "0E-8"),
    (pa.decimal128(38, 8), "-0.00000012", "-1.2E-7"),
    (pa.decimal128(38, 8), "0.00000100", "0.00000100"),
    (pa.decimal128(38, 6), "0", "0.000000"),
    (pa.decimal128(38, 7), "0", "0E-7"),
    (pa.decimal128(38, 38), "0.00000000000000000000000000000000000001", "1E-38"),
    (pa.decimal128(38, 0), "-" + "9" * 38, "-" + "9" * 38),
    (pa.decimal256(76, 0), "9" * 76, "9" * 76),
    (pa.decimal256(76, 76), "0." + "1" * 76, "0." + "1" * 76),
    (pa.decimal32(9, 9), "0.000000001", "1E-9"),
    (pa.decimal64(18, 18), "-0.000000000000000001", "-1E-18"),
    (pa.decimal128(5, -2), "12000", "1.20E+4"),
    (pa.decimal128(5, -2), "100", "1E+2"),
    (pa.decimal128(5, -2), "0", "0E+2"),
]


@each_path
@pytest.mark.parametrize(("t", "value", "text"), DECIMALS, ids=str)
def test_decimals_are_java_text_at_the_scale_of_the_column(
    t: pa.DataType, value: str, text: str, path: str
) -> None:
    assert _texts(pa.array([Decimal(value), None], t), path) == [text, None]


@each_path
def test_floats(path: str) -> None:
    nan_with_payload = struct.unpack(">d", bytes.fromhex("fff8000000000123"))[0]
    doubles = [0.0, -0.0, nan_with_payload, float("inf"), float("-inf"), 5e-324, 1e23, 2e-3, 1e7, 123.0]
    texts = ["0.0", "-0.0", '"NaN"', '"Infinity"', '"-Infinity"', "4.9E-324", "1.0E23", "0.002", "1.0E7"]
    assert _texts(pa.array(doubles, pa.float64()), path) == [*texts, "123.0"]
    floats = [1234567.8, 1e6, 7654321.0, 2.32712458e10, 0.1, 1e-45, float("nan"), None, -1e7]
    float_texts = ["1234567.8", "1000000.0", "7654321.0", "2.3271246E10", "0.1", "1.4E-45", '"NaN"', None]
    assert _texts(pa.array(floats, pa.float32()), path) == [*float_texts, "-1.0E7"]


@each_path
def test_a_half_is_widened_exactly(path: str) -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    assert _texts(pa.array(halves), path) == _texts(pa.array(halves.astype(np.float32)), path)
    assert _texts(pa.array(halves[:0x3C01]), path)[-1] == "1.0"
    assert _texts(pa.array([np.float16(0.1)], pa.float16()), path) == ["0.099975586"]
    array = plain_array([[0.1, None]], pa.list_(pa.float16()))
    assert _texts(array, path) == ["[0.099975586,null]"]


@each_path
def test_integers_to_their_ends(path: str) -> None:
    for bits in (8, 16, 32, 64):
        ends = [-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1]
        assert _texts(pa.array(ends, f"int{bits}"), path) == list(map(str, ends))
        ends = [0, 2 ** (bits - 1), 2**bits - 1]
        assert _texts(pa.array(ends, f"uint{bits}"), path) == list(map(str, ends))
    assert _texts(pa.array([11069825858223412227], pa.uint64()), path) == ["11069825858223412227"]


@each_path
@pytest.mark.parametrize("t", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_is_escaped_as_jackson_does(t: pa.DataType, path: str) -> None:
    escapes = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    characters = [chr(i) for i in range(0x300)] + list("\u2028\u2029\ud7ff\ue000\ufffe\uffff\U0010ffff")
    expected = [escapes.get(c, f"\\u{ord(c):04X}" if c < " " else c) for c in characters]
    assert _texts(pa.array(characters, t), path) == [f'"{e}"' for e in expected]
    assert _texts(pa.array(["".join(characters)], t), path) == [f'"{"".join(expected)}"']


@each_path
def test_binary_is_base64(path: str) -> None:
    data = [b"", b"\x00", b"\xfb\xff", b"abc", bytes(range(256)) * 3]
    for t in (pa.binary(), pa.large_binary(), pa.binary_view()):
        texts = _texts(pa.array(data, t), path)
        assert texts[:4] == ['""', '"AA=="', '"+/8="', '"YWJj"']
        assert texts[4] is not None
        assert "\n" not in texts[4]
    assert _texts(pa.array([b"ab", None], pa.binary(2)), path) == ['"YWI="', None]
    assert _texts(pa.array([b"", None], pa.binary(0)), path) == ['""', None]


@each_path
def test_nulls_in_structs_are_left_out_and_in_lists_and_maps_kept(path: str) -> None:
    inner = pa.struct([("a", pa.int8()), ("b", pa.string())])
    assert _texts(pa.array([{"a": None, "b": None}, None, {"a": 1}], inner), path) == ["{}", None, '{"a":1}']
    array = pa.array([[None, {"b": "x"}], [], None], pa.list_(inner))
    assert _texts(array, path) == ['[null,{"b":"x"}]', "[]", None]
    maps = pa.array([[("k", None), ("a", {"a": None})], None, []], pa.map_(pa.string(), inner))
    assert _texts(maps, path) == ['{"a":{},"k":null}', None, "{}"]
    assert _texts(pa.array([[None, None], []], pa.list_(pa.null())), path) == ["[null,null]", "[]"]


@each_path
def test_struct_fields_stay_in_their_order_and_are_escaped(path: str) -> None:
    t = pa.struct([("b", pa.int8()), ("a", pa.int8()), ('"\n', pa.int8()), ("", pa.int8())])
    assert _texts(pa.array([{"b": 1, "a": 2, '"\n': 3, "": 4}], t), path) == ['{"b":1,"a":2,"\\"\\n":3,"":4}']


@each_path
@pytest.mark.parametrize("field", [pa.field("a", pa.null()), pa.field("a", pa.list_(pa.null()))])
def test_an_untyped_null_writes_the_rows_of_the_typed_one(field: pa.Field, path: str) -> None:
    typed = pa.list_(pa.int8()) if pa.types.is_list(field.type) else pa.int8()
    value = [{"a": [None]}, {"a": None}] if pa.types.is_list(field.type) else [{"a": None}, None]
    untyped = _texts(pa.array([value], pa.list_(pa.struct([field]))), path)
    assert untyped == _texts(pa.array([value], pa.list_(pa.struct([("a", typed)]))), path)


KEYS: list[tuple[pa.DataType, list[Any], str]] = [
    (pa.string(), ["b", "\uffff", "\U0001f600", "a", "", '"'], '"" "\\"" "a" "b" "\uffff" "\U0001f600"'),
    (pa.int8(), [10, 9, -1], '"-1" "9" "10"'),
    (pa.uint64(), [2**64 - 1, 2**63, 1], '"1" "9223372036854775808" "18446744073709551615"'),
    (pa.bool_(), [True, False], '"false" "true"'),
    (
        pa.float64(),
        [float("nan"), float("inf"), 0.1, -0.0, 1e7, float("-inf"), 10.0, 9.0],
        '"-Infinity" "0.0" "0.1" "9.0" "10.0" "1.0E7" "Infinity" "NaN"',
    ),
    (pa.float32(), [0.1, -0.0, 1234567.8, -2.0], '"-2.0" "0.0" "0.1" "1234567.8"'),
    (pa.float16(), [0.5, -0.0, 0.25], '"0.0" "0.25" "0.5"'),
    (
        pa.decimal128(20, 8),
        [Decimal("1.5"), Decimal("0.00000001"), Decimal(0), Decimal(-10)],
        '"-10.00000000" "0E-8" "1E-8" "1.50000000"',
    ),
    (pa.date32(), [18262, -1, 2], '"-1" "2" "18262"'),
    (pa.date64(), [18262 * 86_400_000, -86_400_000], '"-1" "18262"'),
    (pa.timestamp("s"), [2, -1], '"-1000000" "2000000"'),
    (pa.timestamp("s"), [2**63 - 1], '"9223372036854775807000000"'),
    (pa.timestamp("ns", "UTC"), [2000, -1000], '"-1" "2"'),
    (pa.dictionary(pa.int8(), pa.string()), ["b", "a"], '"a" "b"'),
    (Tagged(pa.int16()), [10, 9], '"9" "10"'),
]


@each_path
@pytest.mark.parametrize(("t", "keys", "expected"), KEYS, ids=lambda v: str(v)[:30])
def test_map_entries_are_sorted_by_key_and_keys_written_as_spark_does(
    t: pa.DataType, keys: list[Any], expected: str, path: str
) -> None:
    array = plain_array([[(k, 0) for k in keys]], pa.map_(t, pa.int8()))
    assert _texts(array, path) == ["{" + ",".join(f"{key}:0" for key in expected.split(" ")) + "}"]


@each_path
def test_rows_without_columns_have_a_line_each(path: str) -> None:
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}, {}], pa.struct([])))
    assert PATHS[path](batch).to_pylist() in (["{}"] * 3, [b"{}"] * 3)


@each_path
def test_an_empty_batch_has_no_lines(path: str) -> None:
    batch = pa.schema([("a", pa.map_(pa.string(), pa.list_(pa.int8())))]).empty_table().combine_chunks()
    (empty,) = batch.to_batches() or [
        pa.RecordBatch.from_arrays([pa.array([], batch.schema.types[0])], ["a"])
    ]
    assert PATHS[path](empty).to_pylist() == []


# --------------------------------------------------------------------------- no text


def _invalid_string(t: pa.DataType) -> pa.Array:
    data = [b"fine", b"\xff", b"fine"]
    if t == pa.string_view():
        return pa.array(data, pa.binary_view()).view(t)
    return pa.array(data, pa.large_binary() if t == pa.large_string() else pa.binary()).view(t)


def _map_with_keys(keys: pa.Array) -> pa.Array:
    return pa.MapArray.from_arrays([0, 0, len(keys), len(keys)], keys, pa.array([0] * len(keys), pa.int8()))


SURROGATE = pa.array([b"x", b"\xed\xa0\x80"], pa.binary()).view(pa.string())
NO_TEXT: dict[str, tuple[pa.Array, str]] = {
    "string": (_invalid_string(pa.string()), "not valid Unicode"),
    "large_string": (_invalid_string(pa.large_string()), "not valid Unicode"),
    "string_view": (_invalid_string(pa.string_view()), "not valid Unicode"),
    "surrogate": (SURROGATE, "not valid Unicode"),
    "dictionary": (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int8()), SURROGATE),
        "not valid Unicode",
    ),
    "string in a list": (
        pa.ListArray.from_arrays([0, 1, 2, 3], _invalid_string(pa.string())),
        "not valid Unicode",
    ),
    "date64": (pa.array([0, 1, 0], pa.date64()), "not a whole day"),
    "date64 in a struct": (
        pa.StructArray.from_arrays([pa.array([0, -1, 0], pa.date64())], ["d"]),
        "not a whole day",
    ),
    "time too late": (pa.array([0, 86_400, 0], pa.time32("s")), "time of day"),
    "negative time": (pa.array([0, -1, 0], pa.time64("ns")), "time of day"),
    "two equal keys": (_map_with_keys(pa.array(["a", "b", "a"])), "two keys"),
    "both zeros": (_map_with_keys(pa.array([0.0, 1.0, -0.0])), "two keys"),
    "two nan": (_map_with_keys(pa.array([float("nan"), float("nan")])), "two keys"),
    "null key": (
        _map_with_keys(pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))),
        "null key",
    ),
    "nanosecond key": (_map_with_keys(pa.array([1000, 1001], pa.timestamp("ns"))), "nanoseconds"),
    "date64 key": (_map_with_keys(pa.array([0, 5], pa.date64())), "not a whole day"),
    "surrogate key": (_map_with_keys(SURROGATE), "not valid Unicode"),
}


@each_path
@pytest.mark.parametrize("case", NO_TEXT)
def test_a_value_without_text_fails_naming_column_type_and_row(case: str, path: str) -> None:
    array, reason = NO_TEXT[case]
    other = pa.array([1] * len(array), pa.int8())
    with pytest.raises(HashError, match=reason) as caught:
        PATHS[path](pa.record_batch([other, array], ["other", "broken"]))
    assert caught.value.column == "broken"
    assert caught.value.row == 1
    assert caught.value.type_name == canonical.canonical_type(array.type, column="broken")


@each_path
def test_of_several_faults_the_first_row_is_named_then_the_first_column(path: str) -> None:
    late = pa.array([0, 0, 1], pa.date64())
    early = pa.array([0, -1, -1], pa.time32("s"))
    for names, expected in ((["a", "b", "c"], "b"), (["c", "b", "a"], "a")):
        with pytest.raises(HashError) as caught:
            PATHS[path](pa.record_batch([late, early, early], names))
        assert (caught.value.column, caught.value.row) == (expected, 1)


@each_path
def test_an_unsupported_column_fails_also_without_rows(path: str) -> None:
    batch = pa.record_batch([pa.array([1], pa.int8()), pa.array([1], pa.duration("s"))], ["a", "d"])
    for part in (batch, batch.slice(0, 0)):
        with pytest.raises(HashError, match=r"column 'd' \(duration\[s\]\)"):
            PATHS[path](part)


@each_path
def test_two_columns_of_one_name_fail(path: str) -> None:
    batch = pa.record_batch([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(HashError, match="column 'a'"):
        PATHS[path](batch)


@each_path
def test_what_a_null_hides_cannot_fail(path: str) -> None:
    broken = _invalid_string(pa.string())
    rows = pa.array([False, True, False])
    structs = pa.StructArray.from_arrays([broken], ["s"], mask=rows)
    assert _texts(structs, path) == ['{"s":"fine"}', None, '{"s":"fine"}']
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), broken, mask=rows)
    assert _texts(lists, path) == ['["fine"]', None, '["fine"]']
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 2, None], pa.int8()), broken)
    assert _texts(unused, path) == ['"fine"', '"fine"', None]
    assert _texts(broken.slice(2), path) == ['"fine"']


def test_the_row_in_a_message_counts_from_the_start_of_the_table() -> None:
    batch = pa.record_batch([_invalid_string(pa.string())], ["s"])
    with pytest.raises(HashError, match="row 1001"):
        canonical.batch_lines(batch, first_row=1000)


def test_a_message_holds_no_data() -> None:
    batch = pa.record_batch([_map_with_keys(pa.array(["secret", "secret"]))], ["m"])
    with pytest.raises(HashError) as caught:
        canonical.batch_lines(batch)
    assert "secret" not in str(caught.value)


def test_a_lone_surrogate_is_not_text() -> None:
    with pytest.raises(HashError, match="surrogate"):
        canonical.json_string("a\ud800")
