"""The columnar path: the reference's lines and errors on arrays laid out to trip it, and no row by itself."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from decimal import Decimal
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.hashing.arrays import Tagged, plain_array
from tests.hashing.paths import PATHS
from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing import canonical
from ubunye_orchestrate.hashing.kernels import numbers
from ubunye_orchestrate.hashing.lines import batch_lines


def _lines(values: pa.Array) -> list[str]:
    lines: list[str] = batch_lines(pa.record_batch([values], ["x"])).to_pylist()
    return lines


def _hold_to_reference(values: pa.Array) -> None:
    batch = pa.record_batch([values], ["x"])
    for path in ("pyarrow", "pyarrow in bulk"):
        assert PATHS[path](batch).equals(canonical.batch_lines(batch))


def _buffer(values: Any, dtype: str) -> pa.Buffer:
    return pa.py_buffer(np.array(values, dtype))


# ------------------------------------------------------------------------ rows and names


def test_fields_stand_sorted_by_code_point_and_nulls_are_left_out() -> None:
    batch = pa.record_batch(
        {"b": pa.array([1, None, None]), "B": pa.array(["x", "y", None]), "é": pa.array([None, None, None])}
    )
    assert batch_lines(batch).to_pylist() == ['{"B":"x","b":1}', '{"B":"y"}', "{}"]


def test_names_are_escaped() -> None:
    assert _lines(pa.array([1]))[0] == '{"x":1}'
    batch = pa.record_batch([pa.array([1]), pa.array([2])], ['a"\\\n', "\x01"])
    assert batch_lines(batch).to_pylist() == ['{"\\u0001":2,"a\\"\\\\\\n":1}']


def test_rows_without_columns_and_columns_without_rows() -> None:
    none = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert batch_lines(none).to_pylist() == ["{}", "{}"]
    assert batch_lines(pa.record_batch({"x": pa.array([], pa.list_(pa.string()))})).to_pylist() == []


@pytest.mark.parametrize(
    "t", [pa.date32(), pa.date64(), pa.timestamp("us"), pa.time64("ns"), pa.float64(), pa.int8(), pa.bool_()]
)
def test_an_array_without_values_may_have_no_buffer(t: pa.DataType) -> None:
    empty = pa.Array.from_buffers(t, 0, [None, None])
    assert _lines(empty) == []
    lists = pa.ListArray.from_arrays(pa.array([0, 0], pa.int32()), empty)
    assert _lines(lists) == ['{"x":[]}']


# ------------------------------------------------------------------------ layouts


FLAT: dict[str, tuple[pa.DataType, list[Any]]] = {
    "double": (pa.float64(), [1.5, None, 1e7, -3e-7, float("nan"), -0.0, 5e-324, 123.0, float("-inf")]),
    "float": (pa.float32(), [0.1, None, 1234567.8, 1e-45, 7654321.0, float("inf"), 3.4e38]),
    "half": (pa.float16(), [0.1, None, 65504.0, 6e-8]),
    "int8": (pa.int8(), [-128, None, 127]),
    "uint64": (pa.uint64(), [2**64 - 1, None, 0]),
    "bool": (pa.bool_(), [True, None, False]),
    "string": (pa.string(), ["a", None, "", 'q"\\/', "\x00\x1f\x7f\b\f", "é\U0001f600\u2028", "plain"]),
    "string_view": (pa.string_view(), ["short", None, 'a text that is too "long" for its view', ""]),
    "binary": (pa.binary(), [b"", None, b"a", b"ab", b"abc", bytes(range(256))]),
    "binary_view": (pa.binary_view(), [b"x" * 20, None, b"\xff"]),
    "fixed binary": (pa.binary(2), [b"ab", None, b"\x00\xff"]),
    "date32": (pa.date32(), [0, None, -719_529, 2_932_897, -(2**31), 2**31 - 1, -719_528]),
    "date64": (pa.date64(), [0, None, -86_400_000, 86_400_000 * 3_000_000]),
    "timestamp s": (pa.timestamp("s", "UTC"), [0, None, -(2**63), 2**63 - 1, -1]),
    "timestamp ms": (pa.timestamp("ms"), [0, None, -1, 253_402_300_800_000]),
    "timestamp us": (pa.timestamp("us", "Asia/Kolkata"), [0, None, -62_167_219_200_000_001, 2**63 - 1]),
    "timestamp ns": (pa.timestamp("ns"), [0, None, 1, -1, -1000, 2**63 - 1]),
    "time32": (pa.time32("ms"), [0, None, 86_399_999]),
    "time64": (pa.time64("ns"), [0, None, 1, 86_399_999_999_000]),
    "decimal": (pa.decimal128(38, 10), [Decimal("1E-10"), None, Decimal("-12.50"), Decimal(0)]),
    "negative scale": (pa.decimal128(5, -3), [Decimal("1000"), None, Decimal("0E3"), Decimal("-9.9E+7")]),
    "decimal256": (pa.decimal256(76, 0), [Decimal(10**75), None, Decimal(-7)]),
    "null": (pa.null(), [None, None, None]),
}

NESTED: dict[str, Callable[[pa.DataType, list[Any]], tuple[pa.DataType, list[Any]]]] = {
    "itself": lambda t, v: (t, v),
    "list": lambda t, v: (pa.list_(t), [v, [], None, v[:1], [], v[1:], [None], None]),
    "large list": lambda t, v: (pa.large_list(t), [[], [], v, None, []]),
    "list view": lambda t, v: (pa.list_view(t), [v, None, v[1:], [], v[:2]]),
    "fixed list": lambda t, v: (pa.list_(t, 2), [v[:2], None, v[1:3]]),
    "struct": lambda t, v: (
        pa.struct([("b", t), ("a", pa.int8())]),
        [(v[0], 1), (None, None), None, (v[1], 2), (v[2], None)],
    ),
    "map item": lambda t, v: (
        pa.map_(pa.string(), t),
        [[("z", v[0]), ("a", v[1]), ("é", v[2])], None, [], [("a", None)], [('"', v[0])]],
    ),
    "list of structs of lists": lambda t, v: (
        pa.list_(pa.struct([("l", pa.list_(t))])),
        [[(v,), None, ([],), (None,)], None, [], [(v[:1],)]],
    ),
    "dictionary": lambda t, v: (pa.dictionary(pa.int16(), t), [*v, *v]),
    "runs": lambda t, v: (pa.run_end_encoded(pa.int32(), t), [v[0], v[0], *v, None, None]),
    "extension": lambda t, v: (Tagged(t), v),
}
each_type_and_nesting = pytest.mark.parametrize(
    ("name", "nesting"),
    [(n, m) for n in FLAT for m in NESTED if (n, m) != ("null", "dictionary")],  # Arrow has none of these
)


@each_type_and_nesting
def test_every_type_in_every_layout(name: str, nesting: str) -> None:
    t, values = NESTED[nesting](*FLAT[name])
    for awkward in (False, True):
        array = plain_array(values, t, awkward=awkward)
        _hold_to_reference(array)
        for start in range(len(array) + 1):
            _hold_to_reference(array[start:])
            _hold_to_reference(array[start : start + 1])
    _hold_to_reference(plain_array([v for v in values if v is not None], t))
    _hold_to_reference(plain_array([None, None], t))


def test_views_that_overlap_and_go_back() -> None:
    starts, sizes = pa.array([2, 0, 1, 3], pa.int32()), pa.array([2, 3, 0, 1], pa.int32())
    for items in (pa.array(["a", None, 'c"', "d"]), pa.array(["a", None, "c", "d"], pa.string_view())):
        views = pa.ListViewArray.from_arrays(starts, sizes, items)
        assert _lines(views)[1].startswith('{"x":["a",null,"c')
        for start in range(4):
            _hold_to_reference(views[start:])


def test_entries_of_maps_that_have_an_offset_of_their_own() -> None:
    t = pa.map_(pa.string(), pa.int64())
    entries = pa.StructArray.from_arrays(
        [pa.array(["hidden", "b", "a", "c"]), pa.array([9, 1, 2, 3])],
        fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int64())],
    )[1:]
    maps = pa.Array.from_buffers(t, 2, [None, _buffer([0, 2, 3], "i4")], children=[entries])
    assert _lines(maps) == ['{"x":{"a":2,"b":1}}', '{"x":{"c":3}}']
    assert _lines(maps[1:]) == ['{"x":{"c":3}}']


def test_runs_below_a_null_struct_stay_hidden() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array(["a", "b"]))
    structs = pa.StructArray.from_arrays([runs], ["f"], mask=pa.array([True, False, False, True, False]))
    assert _lines(structs) == ["{}", '{"x":{"f":"a"}}', '{"x":{"f":"b"}}', "{}", '{"x":{"f":"b"}}']
    assert _lines(structs[2:]) == ['{"x":{"f":"b"}}', "{}", '{"x":{"f":"b"}}']


def test_dictionary_entries_that_no_row_points_at_are_no_part_of_the_data() -> None:
    entries = pa.array(["ok", "bad", None], pa.string_view())
    for stored in (_invalid_text(pa.string_view()), _invalid_text(pa.string())):
        unused = pa.DictionaryArray.from_arrays(pa.array([1, None, 1, 1]), stored)
        assert _lines(unused) == ['{"x":"good"}', "{}", '{"x":"good"}', '{"x":"good"}']
        nowhere = pa.DictionaryArray.from_arrays(pa.array([None, None, None], pa.int8()), stored)
        assert _lines(nowhere) == ["{}", "{}", "{}"]
    few = pa.DictionaryArray.from_arrays(pa.array([2, 0]), entries)  # more entries than rows
    assert _lines(few) == ["{}", '{"x":"ok"}']


def _invalid_text(t: pa.DataType) -> pa.Array:
    """Two strings, of which the first is not UTF-8."""
    small = pa.Array.from_buffers(
        pa.binary(), 2, [None, _buffer([0, 2, 6], "i4"), pa.py_buffer(b"\xff\xfegood")]
    )
    if pa.types.is_string_view(t):
        view = small.cast(pa.binary_view())
        return pa.Array.from_buffers(t, 2, view.buffers())
    return pa.Array.from_buffers(t, 2, small.buffers())


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            pa.array([2.5, float("nan"), -0.0, float("-inf"), -1e300]),
            '"-Infinity", "-1.0E300", "0.0", "2.5", "NaN"',
        ),
        (pa.array([0.1, 1e10], pa.float32()), '"0.1", "1.0E10"'),
        (pa.array([2**64 - 1, 3, 2**63], pa.uint64()), f'"3", "{2**63}", "{2**64 - 1}"'),
        (pa.array([True, False]), '"false", "true"'),
        (
            pa.array(["b", "", "ab", "\U0001f600", "\uffff", "é"]),
            '"", "ab", "b", "é", "\uffff", "\U0001f600"',
        ),
        (pa.array([Decimal("1.50"), Decimal("-2.00")]), '"-2.00", "1.50"'),
        (pa.array([18_262, -1], pa.int32()).view(pa.date32()), '"-1", "18262"'),
        (pa.array([0, -3, 2**62], pa.int64()).view(pa.timestamp("s")), f'"-3000000", "0", "{2**62}000000"'),
        (pa.array([5000, -1000], pa.int64()).view(pa.timestamp("ns", "UTC")), '"-1", "5"'),
    ],
    ids=lambda x: str(x.type) if isinstance(x, pa.Array) else "",
)
def test_map_keys_are_sorted_by_value_and_written_as_spark_does(keys: pa.Array, expected: str) -> None:
    items = pa.array(range(len(keys)))
    maps = pa.MapArray.from_arrays(pa.array([0, len(keys)], pa.int32()), keys, items)
    (line,) = _lines(maps)
    assert [part.split(":")[0] for part in line[len('{"x":{') : -2].split(",")] == expected.split(", ")
    _hold_to_reference(maps)
    _hold_to_reference(pa.MapArray.from_arrays(maps.offsets, keys.dictionary_encode(), items))


# ------------------------------------------------------------------------ honest failure


def _maps(keys: pa.Array) -> pa.Array:
    """Rows {}, {}, {keys}: what is wrong is in row 2."""
    return pa.MapArray.from_arrays(
        pa.array([0, 0, 0, len(keys)], pa.int32()), keys, pa.array([1] * len(keys))
    )


_INVALID = pa.Array.from_buffers(
    pa.string(), 4, [None, _buffer([0, 1, 3, 5, 6], "i4"), pa.py_buffer(b"a\xc3\xa9\xed\xa0b")]
)
FAULTS: dict[str, pa.Array] = {
    "invalid text": _INVALID,
    "invalid text in a dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 0, 2, 2]), _INVALID),
    "equal keys in runs": pa.RunEndEncodedArray.from_arrays(
        pa.array([2, 4, 8], pa.int16()), _maps(pa.array(["a", "a"]))
    ),
    "invalid text in a list": pa.ListArray.from_arrays(pa.array([0, 0, 2, 4], pa.int32()), _INVALID),
    "invalid text in a struct": pa.StructArray.from_arrays([_INVALID], ["f"]),
    "invalid text as key": _maps(_INVALID),
    "invalid text as item": pa.MapArray.from_arrays(
        pa.array([0, 1, 4], pa.int32()), pa.array(["a", "d", "c", "b"]), _INVALID
    ),
    "date64 within a day": pa.array([None, 0, 86_400_001, 5], pa.int64()).view(pa.date64()),
    "date64 within a day as key": _maps(pa.array([0, 1], pa.int64()).view(pa.date64())),
    "time past the day": pa.array([0, 1, 86_400], pa.int32()).view(pa.time32("s")),
    "negative time": pa.array([None, 0, -1], pa.int64()).view(pa.time64("ns")),
    "equal text keys": _maps(pa.array(["a", "b", "a"])),
    "equal neighbours": _maps(pa.array([1, 1])),
    "both zeros": _maps(pa.array([0.0, -0.0])),
    "two NaN": _maps(pa.array([float("nan"), 1.0, -float("nan")])),
    "null key": _maps(pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))),
    "nanosecond key": _maps(pa.array([1000, 1], pa.int64()).view(pa.timestamp("ns"))),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_column_type_and_row_as_the_reference_does(name: str) -> None:
    batch = pa.record_batch([pa.array([1] * len(FAULTS[name])), FAULTS[name]], ["a", "x"])
    with pytest.raises(HashError) as of_reference:
        canonical.batch_lines(batch, first_row=1000)
    with pytest.raises(HashError) as error:
        batch_lines(batch, first_row=1000)
    assert str(error.value) == str(of_reference.value)
    assert error.value.column == "x"
    assert error.value.type_name is not None
    assert error.value.row is not None
    # A slice counts its own rows, and one without the faulty row has no fault.
    with pytest.raises(HashError) as later:
        batch_lines(batch.slice(1), first_row=1001)
    assert later.value.row == error.value.row
    batch_lines(batch.slice(0, error.value.row - 1000))


def test_of_several_faults_the_one_is_named_that_is_met_first() -> None:
    late, early = FAULTS["time past the day"], pa.array([0, 5, 0], pa.int64()).view(pa.date64())
    for columns, named in (({"b": late, "a": late}, "a"), ({"b": early, "a": late}, "b")):
        batch = pa.record_batch(columns)
        for lines in (canonical.batch_lines, batch_lines):
            with pytest.raises(HashError, match=f"column '{named}'"):
                lines(batch)


def test_a_fault_that_a_null_hides_is_none() -> None:
    hidden = pa.StructArray.from_arrays([_INVALID], ["f"], mask=pa.array([False, False, True, False]))
    assert _lines(hidden)[2] == "{}"
    runs = FAULTS["equal keys in runs"][2:6]
    _hold_to_reference(pa.StructArray.from_arrays([runs], ["f"], mask=pa.array([False, False, True, True])))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), _INVALID, mask=pa.array([False, True]))
    assert _lines(lists) == ['{"x":["a","é"]}', "{}"]


@pytest.mark.parametrize("inner", [pa.dictionary(pa.int16(), pa.float16()), Tagged(pa.string())], ids=str)
def test_nulls_of_types_that_arrow_cannot_build(inner: pa.DataType) -> None:
    runs = pa.run_end_encoded(pa.int32(), pa.struct([("f", inner)]))
    for t in (pa.list_(runs), pa.list_(pa.list_(runs)), pa.map_(pa.string(), pa.list_(runs))):
        _hold_to_reference(plain_array([None, [], None], t))
        # As a scalar, such a null ends the process, as a cell or inside another (pyarrow 26).
        _hold_to_reference(plain_array([(None,), None, ([],)], pa.struct([("g", t)])))
        _hold_to_reference(plain_array([[None, []], None], pa.list_(t)))


def test_a_fault_in_a_type_that_arrow_cannot_put_together() -> None:
    t = pa.list_view(pa.run_end_encoded(pa.int16(), pa.map_(Tagged(pa.int8()), pa.bool_())))
    twice = [[(0, None), (0, None)]]
    lists = plain_array([[None, [(1, True)]], twice, [[(2, None), (3, False)]], twice], t)
    parts = lists.offsets, lists.sizes, lists.values
    # The second list's elements stand between those of the others, and a null hides them.
    hidden = pa.ListViewArray.from_arrays(*parts, type=t, mask=pa.array([False, True, False, False]))
    _hold_to_reference(hidden[:3])
    batch = pa.record_batch([hidden], ["x"])
    with pytest.raises(HashError) as of_reference:
        canonical.batch_lines(batch)
    with pytest.raises(HashError) as error:
        batch_lines(batch)
    assert (error.value.row, str(error.value)) == (3, str(of_reference.value))


def test_a_type_without_canonical_text_is_refused() -> None:
    with pytest.raises(HashError, match=r"column 'x' \(duration\[s\]\)"):
        batch_lines(pa.record_batch([pa.array([1], pa.duration("s"))], ["x"]))


# ------------------------------------------------------------------------ no row by itself


@each_type_and_nesting
def test_no_python_runs_by_row(name: str, nesting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "_FEW", 0)  # a number of them that does not grow is written one by one
    t, values = NESTED[nesting](*FLAT[name])
    array = plain_array(values, t)
    some, many = pa.concat_arrays([array] * 2), pa.concat_arrays([array] * 50)
    assert _steps(many) == _steps(some)


def _steps(values: pa.Array) -> int:
    """How many lines of Python and calls of built-in functions writing an array takes."""
    batch = pa.record_batch([values], ["x"])
    batch_lines(batch)  # whatever is kept from the first time is kept
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "c_call"

    gc.disable()  # others hang callbacks on it, which are Python too
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        batch_lines(batch)
    finally:
        sys.settrace(None)
        sys.setprofile(None)
        gc.enable()
    return count
