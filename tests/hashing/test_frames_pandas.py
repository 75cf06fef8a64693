"""pandas frames: every kind of column is what its Arrow form is, or an honest failure naming it."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.hashing.expected import assert_stands_for, failure
from ubunye_orchestrate.errors import ConfigurationError, HashError
from ubunye_orchestrate.hashing.api import arrow_table, fingerprint

PANDAS_3 = int(pd.__version__.split(".")[0]) >= 3
NAN = float("nan")
UTC = dt.timezone.utc
NOON = dt.datetime(2020, 1, 1, 12)


def objects(*values: Any) -> pd.Series:
    """A column of Python objects, none of them touched by pandas."""
    cells = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        cells[i] = value
    return pd.Series(cells, dtype=object)


def frame(column: Any) -> pd.DataFrame:
    return pd.DataFrame({"c": column})


def table(values: list[Any], t: pa.DataType) -> pa.Table:
    return pa.table({"c": pa.array(values, t)})


# --------------------------------------------------------------------------- NumPy types


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_numpy_integers(name: str) -> None:
    limits = np.iinfo(name)
    values = [limits.min, 0, limits.max]
    assert_stands_for(frame(np.array(values, name)), table([int(v) for v in values], getattr(pa, name)()))


def test_numpy_booleans() -> None:
    assert_stands_for(frame(np.array([True, False])), table([True, False], pa.bool_()))


@pytest.mark.parametrize(("name", "t"), [("float64", pa.float64()), ("float32", pa.float32())])
def test_nan_in_a_numpy_float_column_is_null(name: str, t: pa.DataType) -> None:
    values = np.array([1.1, NAN, -0.0, np.inf], name)
    expected = [float(values[0]), None, -0.0, float("inf")]
    assert_stands_for(frame(values), table(expected, t))


def test_numpy_halves_are_widened_exactly() -> None:
    halves = np.array([0.1, NAN, 65504], "float16")
    assert_stands_for(frame(halves), table([float(halves[0]), None, 65504.0], pa.float32()))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_naive_timestamps_of_every_unit(unit: str) -> None:
    values = np.array(["2020-01-01T12:00:00", "NaT", "1969-12-31T23:59:59"], f"M8[{unit}]")
    expected = [NOON, None, dt.datetime(1969, 12, 31, 23, 59, 59)]
    assert_stands_for(frame(values), table(expected, pa.timestamp("us")))


def test_nanoseconds_of_a_timestamp_are_kept() -> None:
    values = np.array([1, 1_000], "M8[ns]")
    assert_stands_for(frame(values), pa.table({"c": pa.array([1, 1_000], pa.timestamp("ns"))}))


def test_bytes_in_the_other_order_and_strided_columns() -> None:
    matrix = np.arange(12, dtype=">i4").reshape(6, 2)
    assert_stands_for(
        pd.DataFrame(matrix[::2], columns=["a", "b"]),
        pa.table({"a": pa.array([0, 4, 8], pa.int32()), "b": pa.array([1, 5, 9], pa.int32())}),
    )


@pytest.mark.parametrize(
    ("column", "type_name"),
    [
        (np.array([1j, 2]), "complex128"),
        (np.array([1, 2], "longdouble"), np.dtype("longdouble").name),
        (pd.period_range("2020", periods=2, freq="D"), "period[D]"),
        (pd.interval_range(0, 2), "interval[int64, right]"),
        (pd.arrays.SparseArray([0, 1]), "Sparse[int64, 0]"),
        (pd.cut([1, 2], [0, 1, 2]), "interval[int64, right]"),
    ],
)
def test_types_without_an_exact_arrow_form_are_failures_that_name_column_and_type(
    column: Any, type_name: str
) -> None:
    got = failure(pd.DataFrame({"fine": [1, 2], "c": column}))
    assert got.error is not None
    assert got.error.startswith(f"column 'c' ({type_name})")
    assert got.row_count == 2
    assert got.schema_hash is None


@pytest.mark.parametrize("column", [pd.to_timedelta([1, 2]), objects(dt.timedelta(1), pd.Timedelta(1))])
def test_a_duration_is_a_failure_but_can_be_stored(column: Any) -> None:
    got = failure(frame(column))
    assert got.error is not None
    assert got.error.startswith("column 'c' (duration[")
    stored = arrow_table(frame(column))
    assert stored.schema.field("c").type == pa.duration("ns")
    assert stored.column("c").cast(pa.int64()).to_pylist()[1] in (1, 2)


# --------------------------------------------------------------------------- zoned timestamps


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/New_York", UTC, dt.timezone(dt.timedelta(hours=2))]
)
def test_zoned_timestamps_are_instants_whatever_the_zone(zone: Any) -> None:
    texts = ["2020-01-01T12:00:00Z", None, "1999-07-01T00:00:00.000001Z"]
    values = pd.Series(pd.to_datetime(texts, format="ISO8601"))
    expected = [NOON.replace(tzinfo=UTC), None, dt.datetime(1999, 7, 1, 0, 0, 0, 1, UTC)]
    assert_stands_for(frame(values.dt.tz_convert(zone)), table(expected, pa.timestamp("us", "UTC")))


def test_a_zone_that_arrow_cannot_name() -> None:
    zone = dt.timezone(dt.timedelta(hours=1, seconds=40))  # local mean time has seconds
    values = pd.Series(pd.to_datetime(["2020-01-01T12:00:00Z"])).dt.tz_convert(zone)
    assert_stands_for(frame(values), table([NOON.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")))


def test_the_users_zone_is_kept_for_the_store() -> None:
    values = pd.Series(pd.to_datetime(["2020-01-01T12:00:00Z"])).dt.tz_convert("Europe/Berlin")
    assert arrow_table(frame(values)).schema.field("c").type.tz == "Europe/Berlin"


# --------------------------------------------------------------------------- nullable and Arrow-backed types


@pytest.mark.parametrize(
    ("dtype", "values", "t"),
    [
        ("Int8", [1, None, -128], pa.int8()),
        ("Int64", [2**62, None, -1], pa.int64()),
        ("UInt64", [2**64 - 1, None, 0], pa.uint64()),
        ("Float32", [0.5, None, 1e30], pa.float32()),
        ("Float64", [0.1, None, -0.0], pa.float64()),
        ("boolean", [True, None, False], pa.bool_()),
        ("string", ["a", None, ""], pa.string()),
        ("string[python]", ["a", None, "ü\U0001f600"], pa.string()),
        ("string[pyarrow]", ["a", None, "\x00"], pa.string()),
    ],
)
def test_nullable_types(dtype: str, values: list[Any], t: pa.DataType) -> None:
    values = [values[0], None, values[2]]
    expected = pa.array(values, pa.float64()).cast(t) if t == pa.float32() else pa.array(values, t)
    assert_stands_for(frame(pd.array(values, dtype=dtype)), pa.table({"c": expected}))


@pytest.mark.skipif(not PANDAS_3, reason="`str` is a type of its own from pandas 3 on")
@pytest.mark.parametrize("storage", ["python", "pyarrow"])
def test_the_str_type(storage: str) -> None:
    column = pd.Series(["a", None, NAN, "b"], dtype=pd.StringDtype(storage, na_value=NAN))
    assert_stands_for(frame(column), table(["a", None, None, "b"], pa.string()))
    assert_stands_for(frame(["a", None, "b"]), table(["a", None, "b"], pa.string()))


def test_nan_and_null_of_an_arrow_backed_column_are_kept_apart() -> None:
    arrow = pa.array([1.0, NAN, None, np.inf])
    column = pd.Series(pd.arrays.ArrowExtensionArray(arrow))
    assert_stands_for(frame(column), pa.table({"c": arrow}))
    without_nan = pa.array([1.0, None, None, np.inf])
    assert fingerprint(frame(column)).data_hash != fingerprint(pa.table({"c": without_nan})).data_hash


def test_a_nullable_column_is_what_pandas_hands_over() -> None:
    zero = pd.array([0.0, 1.0, None], dtype="Float64")
    column = zero / zero  # NaN beside NA before pandas 3, which makes both NA
    expected = [None if column[0] is pd.NA else NAN, 1.0, None]
    assert_stands_for(frame(column), table(expected, pa.float64()))


@pytest.mark.parametrize(
    "arrow",
    [
        pa.array([1, None], pa.int32()),
        pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
        pa.array([[1, None], None], pa.list_(pa.int16())),
        pa.array([{"x": 1, "y": None}, None], pa.struct([("x", pa.int8()), ("y", pa.string())])),
        pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.array([dt.date(1, 1, 1), None], pa.date32()),
        pa.array([dt.time(1, 2, 3), None], pa.time64("us")),
        pa.array([b"\x00", None], pa.binary()),
        pa.array([None, None], pa.null()),
        pa.array([1, None], pa.timestamp("ns", "UTC")),
        pa.array(["a", None, "a"], pa.string()).dictionary_encode(),
    ],
    ids=lambda a: str(a.type),
)
def test_arrow_backed_types(arrow: pa.Array) -> None:
    whole = pa.chunked_array([arrow, arrow.slice(1)])
    column = pd.Series(pd.arrays.ArrowExtensionArray(whole))
    assert_stands_for(frame(column), pa.table({"c": whole}))
    assert_stands_for(frame(column).iloc[1:], pa.table({"c": whole.slice(1)}))


# --------------------------------------------------------------------------- categories


@pytest.mark.parametrize(
    ("values", "t"),
    [
        (["b", None, "a", "b"], pa.string()),
        ([3, None, 1, 3], pa.int64()),
        ([True, None, False], pa.bool_()),
        ([NOON, None, NOON], pa.timestamp("us")),
        ([NOON.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        ([Decimal("1.5"), None, Decimal("2.5")], pa.decimal128(2, 1)),
        ([None, None], pa.string()),
    ],
    ids=["text", "integers", "booleans", "naive", "instants", "decimals", "nothing"],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_a_category_is_its_values(values: list[Any], t: pa.DataType, ordered: bool) -> None:
    present = [v for v in dict.fromkeys(values) if v is not None]
    categories = pd.Index(present, dtype=None if present else object)
    column = pd.Categorical(values, categories=categories, ordered=ordered)
    assert_stands_for(frame(column), table(values, t))


def test_categories_of_nothing_have_no_type_of_their_own() -> None:
    assert_stands_for(frame(pd.Categorical([None, None])), table([None, None], pa.string()))
    assert_stands_for(frame(pd.Categorical([])), table([], pa.string()))


def test_unused_categories_and_a_shared_prefix_do_not_show() -> None:
    column = pd.Categorical(["a", "c"], categories=["x", "a", "b", "c"])
    assert_stands_for(frame(column), table(["a", "c"], pa.string()))
    assert_stands_for(frame(column).iloc[1:], table(["c"], pa.string()))


def test_categories_of_mixed_kinds() -> None:
    got = failure(frame(pd.Categorical(["a", 1], categories=["a", 1])))
    assert got.error is not None
    assert "column 'c'" in got.error
    assert "integer, text" in got.error


# --------------------------------------------------------------------------- objects that Arrow holds exactly


class Colour(str, enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("column", "values", "t"),
    [
        (objects("a", None, NAN, pd.NA, pd.NaT), ["a", None, None, None, None], pa.string()),
        (objects(NAN, None, pd.NA, pd.NaT), [None] * 4, pa.string()),
        (objects(Decimal("NaN")), [None], pa.string()),
        (objects(Decimal("NaN"), Decimal("1.5"), None), [None, Decimal("1.5"), None], pa.decimal128(2, 1)),
        (objects(np.datetime64("NaT"), np.timedelta64("NaT")), [None, None], pa.string()),
        (objects(1, None, -(2**63)), [1, None, -(2**63)], pa.int64()),
        (objects(1, NAN, 2), [1, None, 2], pa.int64()),
        (objects(1, 2.5, None), [1.0, 2.5, None], pa.float64()),
        (objects(1.5, NAN, None), [1.5, None, None], pa.float64()),
        (objects(np.int8(1), np.int8(2)), [1, 2], pa.int8()),
        (objects(np.uint64(2**64 - 1)), [2**64 - 1], pa.uint64()),
        (objects(np.float32(0.1), None), [np.float32(0.1), None], pa.float32()),
        (objects(True, None, np.False_), [True, None, False], pa.bool_()),
        (objects(b"a", bytearray(b"b"), None), [b"a", b"b", None], pa.binary()),
        (objects(Colour.RED, "x"), ["red", "x"], pa.string()),
        (objects(dt.date(1, 1, 1), None), [dt.date(1, 1, 1), None], pa.date32()),
        (objects(dt.time(1, 2, 3, 4)), [dt.time(1, 2, 3, 4)], pa.time64("us")),
        (objects(NOON, None, pd.NaT), [NOON, None, None], pa.timestamp("us")),
        (objects(NOON, pd.Timestamp(NOON)), [NOON, NOON], pa.timestamp("us")),
        (objects(dt.datetime(1, 1, 1)), [dt.datetime(1, 1, 1)], pa.timestamp("us")),
        (objects(np.datetime64(5, "us")), [dt.datetime(1970, 1, 1, 0, 0, 0, 5)], pa.timestamp("us")),
        (objects([1, 2], None, []), [[1, 2], None, []], pa.list_(pa.int64())),
        (objects((1, 2), [3.5]), [[1.0, 2.0], [3.5]], pa.list_(pa.float64())),
        (objects(np.array([1, 2], "i4")), [[1, 2]], pa.list_(pa.int32())),
        (objects(["a", None], [NAN]), [["a", None], [None]], pa.list_(pa.string())),
        (objects([None], [None]), [[None], [None]], pa.list_(pa.null())),
        (
            objects({"x": 1}, {"y": "b"}, None),
            [{"x": 1, "y": None}, {"x": None, "y": "b"}, None],
            pa.struct([("x", pa.int64()), ("y", pa.string())]),
        ),
        (
            objects({"x": [{"y": 1}]}),
            [{"x": [{"y": 1}]}],
            pa.struct([("x", pa.list_(pa.struct([("y", pa.int64())])))]),
        ),
    ],
)
def test_objects_of_one_kind_are_what_arrow_infers(column: Any, values: list[Any], t: pa.DataType) -> None:
    assert_stands_for(frame(column), table(values, t))


@pytest.mark.parametrize(
    "null",
    [None, np.nan, np.float32("nan"), complex("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN")],
    ids=repr,
)
def test_whatever_pandas_takes_for_a_null_is_one_among_text(null: Any) -> None:
    frame = pd.DataFrame({"x": np.array(["a", null, "", null, "é"], object)})
    assert fingerprint(frame).error is None
    assert_stands_for(frame, pa.table({"x": pa.array(["a", None, "", None, "é"])}))


def test_text_that_is_no_text_is_named_by_its_row() -> None:
    frame = pd.DataFrame({"x": pd.Series(["a", np.nan, "b", "\ud800"], dtype=object)})
    assert "row 3: text that is not valid Unicode" in str(failure(frame).error)


def test_decimals_of_several_scales_are_one_type_and_equal_by_value() -> None:
    column = objects(Decimal("1.0"), Decimal("1.00"), Decimal("1.2E+4"), 7)
    expected = [Decimal("1.00"), Decimal("1.00"), Decimal("12000.00"), Decimal("7.00")]
    assert_stands_for(frame(column), table(expected, pa.decimal128(7, 2)))


@pytest.mark.parametrize("nested", [False, True])
def test_nanoseconds_of_objects_are_kept_at_every_depth(nested: bool) -> None:
    instants = [pd.Timestamp(1), pd.Timestamp("2020-01-01")]
    expected = pa.array(instants, pa.timestamp("ns"))
    assert expected.cast(pa.int64()).to_pylist()[0] == 1
    if nested:
        offsets = pa.array([0, 1, 2], pa.int32())
        lists = pa.ListArray.from_arrays(offsets, expected)
        assert_stands_for(frame(objects(*[[i] for i in instants])), pa.table({"c": lists}))
        structs = pa.StructArray.from_arrays([expected], ["at"])
        assert_stands_for(frame(objects(*[{"at": i} for i in instants])), pa.table({"c": structs}))
    else:
        assert_stands_for(frame(objects(*instants)), pa.table({"c": expected}))


def test_aware_times_of_several_zones_are_instants() -> None:
    berlin = dt.timezone(dt.timedelta(hours=1))
    column = objects(NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=berlin), pd.Timestamp(NOON, tz="UTC"))
    expected = [NOON.replace(tzinfo=UTC), NOON.replace(hour=11, tzinfo=UTC), NOON.replace(tzinfo=UTC)]
    assert_stands_for(frame(column), table(expected, pa.timestamp("us", "UTC")))


# --------------------------------------------------------------------------- objects that Arrow would coerce


class Plain(enum.Enum):
    ONE = 1


@pytest.mark.parametrize(
    ("column", "named"),
    [
        (objects("a", b"b"), "bytes, text"),
        (objects(b"b", "a"), "bytes, text"),
        (objects("a", 1), "integer, text"),
        (objects("a", 1.5), "float, text"),
        (objects(True, 1), "boolean, integer"),
        (objects(1.5, True), "boolean, float"),
        (objects(np.True_, 1), "boolean, integer"),
        (objects(Decimal("1.5"), 1.5), "decimal, float"),
        (objects(Decimal(1), True), "boolean, decimal"),
        (objects(NOON, NOON.replace(tzinfo=UTC)), "aware datetime, naive datetime"),
        (objects(pd.Timestamp(NOON, tz="UTC"), NOON), "aware datetime, naive datetime"),
        (objects(NOON.date(), NOON), "date, naive datetime"),
        (objects(NOON, NOON.date()), "date, naive datetime"),
        (objects(NOON.time(), NOON.date()), "date, time"),
        (objects(dt.timedelta(1), 1), "duration, integer"),
        (objects([1], 1), "integer, list"),
        (objects([1], {"a": 1}), "list, mapping"),
        (objects(["a", b"b"]), "at []: holds mixed kinds of objects (bytes, text)"),
        (objects(["a"], None, [b"b"]), "at []: holds mixed kinds of objects (bytes, text)"),
        (objects([True], [1]), "at []: holds mixed kinds of objects (boolean, integer)"),
        (objects({"x": [1]}, {"x": ["a"]}), "at .x[]: holds mixed kinds of objects (integer, text)"),
        (objects({"x": NOON}, {"x": NOON.date()}), "at .x: holds mixed kinds"),
        (objects(np.array([1]), np.array(["a"])), "at []: holds mixed kinds of objects (integer, text)"),
        (objects(dt.time(1, tzinfo=UTC)), "times of day with a zone"),
        (objects({1, 2}), "objects of type set"),
        (objects([{1}]), "at []: holds objects of type set"),
        (objects(1j), "objects of type complex"),
        (objects(object()), "objects of type object"),
        (objects(Plain.ONE), "Plain"),
        (objects(pd.Period("2020")), "Period"),
        (objects(pd.Interval(1, 2)), "Interval"),
        (objects(range(2)), "range"),
        (objects(np.longdouble(1)), "longdouble"),
        (objects({1: 2}), "keys of type int"),
        (objects(np.ones((2, 2))), "not one-dimensional"),
        (objects(Decimal("Infinity")), "infinite"),
        (objects(Decimal("sNaN")), "signalling NaN"),
        (objects(np.int8(1), np.uint64(2**63)), "integer outside the range"),
        (objects(Decimal("1" * 80)), "more than 76 digits"),
        (objects(Decimal("1" * 70), Decimal("1E-70")), "more than 76 digits"),
    ],
)
def test_mixed_or_unknown_objects_are_failures_that_name_column_and_kinds(column: Any, named: str) -> None:
    got = failure(pd.DataFrame({"fine": range(len(column)), "c": column}))
    assert got.error is not None
    assert got.error.startswith("column 'c'")
    assert named in got.error
    assert got.row_count == len(column)
    with pytest.raises(HashError) as raised:
        arrow_table(frame(column))
    assert raised.value.column == "c"


@pytest.mark.parametrize(
    ("column", "row", "named"),
    [
        (objects("a", "b", "\ud800", "c"), 2, "valid Unicode"),
        (pd.Series(["a", "\udfff"], dtype="string[python]"), 1, "valid Unicode"),
        (objects(1, None, 2**63), 2, "integer outside"),
        (objects(-1, 2**64), 1, "integer outside"),
        (objects(1.5, 2**53 + 1), 1, "cannot hold exactly"),
        (objects(pd.Timestamp(1), dt.datetime(1, 1, 1)), 1, "naive datetime"),
        (objects(*["x"] * 70_000, "\ud800"), 70_000, "valid Unicode"),
    ],
)
def test_values_that_arrow_refuses_are_failures_that_name_the_row(column: Any, row: int, named: str) -> None:
    got = failure(frame(column))
    assert got.error is not None
    assert got.error.startswith("column 'c' (")
    assert f"row {row}: " in got.error
    assert named in got.error
    assert got.row_count == len(column)
    assert got.schema_hash is not None  # the type was known


def test_no_value_stands_in_an_error() -> None:
    for column in (
        objects("secret-1", b"secret-2"),
        objects("secret-3", "secret-\ud800"),
        objects({"secret"}),
    ):
        error = failure(frame(column)).error
        assert error is not None
        assert "secret" not in error


def test_uuids_are_their_bytes_where_arrow_knows_them() -> None:
    value = uuid.UUID(int=5)
    got = fingerprint(frame(objects(value)))
    if got.error is None:
        assert_stands_for(frame(objects(value)), table([value.bytes], pa.binary()))
    else:
        assert got.error.startswith("column 'c' (object)")


# --------------------------------------------------------------------------- labels and indexes


def test_labels_become_text() -> None:
    expected = pa.table({"1": [1], "2.5": [2], "None": [3], "('a', 1)": [4]})
    assert_stands_for(
        pd.DataFrame([[1, 2, 3, 4]], columns=pd.Index([1, 2.5, None, ("a", 1)], dtype=object)), expected
    )
    levels = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    assert_stands_for(
        pd.DataFrame([[1, 2]], columns=levels), pa.table({"('a', 'x')": [1], "('a', 'y')": [2]})
    )


@pytest.mark.parametrize("columns", [["a", "a"], [1, "1"], ["a", "b", "a"]])
def test_two_labels_with_one_text(columns: list[Any]) -> None:
    got = failure(pd.DataFrame([range(len(columns))], columns=pd.Index(columns, dtype=object)))
    assert got.error is not None
    assert got.error.startswith(f"column {str(columns[0])!r}: ")
    assert f"this text: {columns[0]!r}, " in got.error
    assert got.row_count == 1
    with pytest.raises(HashError, match="rename or drop some"):
        arrow_table(pd.DataFrame([range(len(columns))], columns=pd.Index(columns, dtype=object)))


def test_a_label_that_is_not_valid_unicode() -> None:
    got = failure(pd.DataFrame([[1]], columns=pd.Index(["\ud800"], dtype=object)))
    assert got.error is not None
    assert "not valid Unicode" in got.error


def test_an_unnamed_index_is_dropped_and_a_named_one_becomes_a_column() -> None:
    plain = pa.table({"v": [1, 2]})
    assert_stands_for(pd.DataFrame({"v": [1, 2]}), plain)
    assert_stands_for(pd.DataFrame({"v": [1, 2]}, index=[7, 9]), plain)
    assert_stands_for(pd.DataFrame({"v": [1, 2]}, index=["x", "y"]), plain)
    named = pa.table({"v": [1, 2], "k": ["x", "y"]})
    assert_stands_for(pd.DataFrame({"v": [1, 2]}, index=pd.Index(["x", "y"], name="k")), named)
    numbered = pa.table({"v": [1, 2], "0": [0, 1]})
    assert_stands_for(pd.DataFrame({"v": [1, 2]}, index=pd.RangeIndex(2, name=0)), numbered)
    times = pd.DatetimeIndex(["2020-01-01T12:00:00"], name="t")
    assert_stands_for(pd.DataFrame({"v": [1]}, index=times), pa.table({"v": [1], "t": [NOON]}))


def test_a_multiindex_goes_by_its_names() -> None:
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2), (None, 3)], names=["k", None])
    expected = pa.table({"v": [1, 2, 3], "k": ["a", "b", None]})
    assert_stands_for(pd.DataFrame({"v": [1, 2, 3]}, index=index), expected)
    unnamed = pd.MultiIndex.from_tuples([("a", 1), ("b", 2), ("c", 3)])
    assert_stands_for(pd.DataFrame({"v": [1, 2, 3]}, index=unnamed), pa.table({"v": [1, 2, 3]}))
    both = index.set_names(["k", "n"])
    assert_stands_for(
        pd.DataFrame({"v": [1, 2, 3]}, index=both), expected.append_column("n", pa.array([1, 2, 3]))
    )


def test_an_index_named_as_a_column() -> None:
    got = failure(pd.DataFrame({"k": [1]}, index=pd.Index([1], name="k")))
    assert got.error is not None
    assert "column 'k'" in got.error


# --------------------------------------------------------------------------- shapes


def test_frames_without_rows_or_columns() -> None:
    assert_stands_for(pd.DataFrame(), pa.table({}))
    assert_stands_for(pd.DataFrame({"c": []}, dtype=object), table([], pa.string()))
    assert_stands_for(
        pd.DataFrame(columns=["a", "b"]),
        pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.string())}),
    )
    assert_stands_for(pd.DataFrame({"c": pd.array([], dtype="Int8")}), table([], pa.int8()))
    assert_stands_for(pd.DataFrame({"c": pd.Categorical([])}), table([], pa.string()))
    rows_only = pa.table({"x": [1, 2, 3]}).select([])
    assert_stands_for(pd.DataFrame(index=range(3)), rows_only)
    assert arrow_table(pd.DataFrame(index=range(3))).num_rows == 3


def test_a_slice_is_its_rows_and_the_frame_is_not_changed() -> None:
    whole = pd.DataFrame(
        {"a": range(10), "b": list("abcdefghij"), "t": pd.date_range("2020", periods=10, tz="UTC")}
    )
    before = whole.copy(deep=True)
    expected = arrow_table(whole)
    assert_stands_for(whole.iloc[3:7], expected.slice(3, 4))
    assert_stands_for(whole[::3], expected.take([0, 3, 6, 9]))
    pd.testing.assert_frame_equal(whole, before)


def test_a_series_is_not_a_table() -> None:
    got = failure(pd.Series([1]))
    assert got.error is not None
    assert got.error.startswith("not a table (Series)")


# --------------------------------------------------------------------------- naive timestamps as instants


def test_naive_timestamps_read_as_instants_of_a_zone() -> None:
    naive = frame(pd.Series([NOON, None]))
    instant = table([NOON.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    assert_stands_for(naive, instant, naive_timestamps="UTC")
    summer = frame(pd.Series([dt.datetime(2020, 7, 1, 12)]))
    in_berlin = table([dt.datetime(2020, 7, 1, 10, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert_stands_for(summer, in_berlin, naive_timestamps="Europe/Berlin")


def test_instants_and_other_columns_are_not_touched_by_naive_timestamps() -> None:
    mixed = pd.DataFrame({"n": [NOON], "z": [pd.Timestamp(NOON, tz="UTC")], "i": [1]})
    expected = pa.table({"n": [NOON.replace(tzinfo=UTC)], "z": [NOON.replace(tzinfo=UTC)], "i": [1]})
    assert_stands_for(mixed, expected, naive_timestamps="UTC")


@pytest.mark.parametrize("local", [dt.datetime(2020, 3, 29, 2, 30), dt.datetime(2020, 10, 25, 2, 30)])
def test_a_local_time_skipped_or_had_twice_is_a_failure_with_its_row(local: dt.datetime) -> None:
    got = failure(frame(pd.Series([NOON, local])), naive_timestamps="Europe/Berlin")
    assert got.error is not None
    assert "column 'c' (timestamp[" in got.error
    assert "row 1: a local time that Europe/Berlin skips or has twice" in got.error


def test_nested_naive_timestamps() -> None:
    nested = frame(objects([NOON], None))
    expected = table([[NOON.replace(tzinfo=UTC)], None], pa.list_(pa.timestamp("us", "UTC")))
    assert_stands_for(nested, expected, naive_timestamps="UTC")
    got = failure(nested, naive_timestamps="Europe/Berlin")
    assert got.error is not None
    assert "column 'c'" in got.error


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "NTZ"])
def test_a_zone_that_does_not_exist_is_a_configuration_error(zone: str) -> None:
    with pytest.raises(ConfigurationError, match="expected 'ntz'"):
        fingerprint(frame([1]), naive_timestamps=zone)


def test_the_context_of_decimals_is_left_alone() -> None:
    before = decimal.getcontext().copy()
    failure(frame(objects(Decimal("sNaN"))))
    assert decimal.getcontext().traps == before.traps
