"""Inputs on which other hashes and converters are known to fail, each with siblings of its kind.

Each kind comes from a public bug report of the project named, or was measured against real Spark. All of them
go through ``fingerprint``, on both paths.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.hashing.paths import PATHS, hash_of
from ubunye_orchestrate.hashing import tally
from ubunye_orchestrate.hashing.api import arrow_table, fingerprint
from ubunye_orchestrate.hashing.datasets import fingerprint_dataset

NAN = float("nan")
UTC = dt.timezone.utc


@pytest.fixture(params=tally.PATHS, autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs on every path."""
    name = str(request.param)
    monkeypatch.setenv("UBUNYE_HASH_PATH", name)
    return name


def hashed(frame: Any) -> str:
    got = fingerprint(frame)
    assert got.error is None
    assert got.data_hash is not None
    return got.data_hash


def column(values: Any, t: pa.DataType | None = None) -> pa.Table:
    return pa.table({"c": values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, t)})


def texts(values: pa.Array, path: str) -> list[Any]:
    """The canonical text of each value, as it stands in its row's line."""
    lines = PATHS[path](pa.record_batch({"c": values})).cast(pa.string()).to_pylist()
    return [None if line == "{}" else line[len('{"c":') : -1] for line in lines]


def error_of(frame: Any) -> str:
    got = fingerprint(frame)
    assert got.data_hash is None
    assert got.error is not None
    assert "internal error" not in got.error
    return got.error


def objects(*values: Any) -> pd.DataFrame:
    cells = np.empty(len(values), object)
    for i, value in enumerate(values):
        cells[i] = value
    return pd.DataFrame({"c": pd.Series(cells, dtype=object)})


# --------------------------------------------------------------------------- floats


def test_doubles_have_the_text_of_jdk_19(path: str) -> None:
    """JDK-4511638, apache/gluten 8959: older JVMs write digits too many."""
    expected = {
        1e23: "1.0E23",
        2.0e-3: "0.002",
        2e23: "2.0E23",
        8.41e21: "8.41E21",
        2.2250738585072014e-308: "2.2250738585072014E-308",
        5e-324: "4.9E-324",
        1e-323: "9.9E-324",
        2.83191781765631872e17: "2.8319178176563187E17",
        9007199254740993.0: "9.007199254740992E15",
        2.0**-44: "5.684341886080802E-14",
        1e7: "1.0E7",
        9999999.999999998: "9999999.999999998",
        1e-3: "0.001",
        9.99e-4: "9.99E-4",
        1.7976931348623157e308: "1.7976931348623157E308",
        -1e23: "-1.0E23",
        -0.0: "-0.0",
    }
    assert texts(pa.array(list(expected)), path) == list(expected.values())


def test_floats_are_written_as_floats(path: str) -> None:
    """Measured: NumPy writes a float32 from 1e6 on with an exponent; through a double it gets digits more."""
    expected = {
        1234567.8: "1234567.8",
        1e6: "1000000.0",
        7654321.0: "7654321.0",
        9999999.0: "9999999.0",
        1e7: "1.0E7",
        0.1: "0.1",
        16777216.0: "1.6777216E7",
        23271246000.0: "2.3271246E10",
        1e-3: "0.001",
        9.99e-4: "9.99E-4",
        1.4e-45: "1.4E-45",
        3.4028235e38: "3.4028235E38",
    }
    assert texts(pa.array(list(expected), pa.float32()), path) == list(expected.values())


def test_halves_are_widened_exactly(path: str) -> None:
    """arrow 2691: float16 0.1 is the float 0.099975586, at every depth."""
    halves = pa.array([np.float16(0.1), np.float16(65504), None], pa.float16())
    assert texts(halves, path) == ["0.099975586", "65504.0", None]
    nested = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), halves)
    assert texts(nested, path) == ["[0.099975586,65504.0]", "[null]"]
    assert hashed(column(halves)) == hashed(column(halves.cast(pa.float32())))
    assert hashed(pd.DataFrame({"c": np.array([0.1], "f2")})) == hashed(column(halves.slice(0, 1)))


@pytest.mark.parametrize(
    "t", [pa.float64(), pa.float32(), pa.list_(pa.float64()), pa.struct([("x", pa.float32())])]
)
def test_nan_and_null_differ(t: pa.DataType) -> None:
    """pandas 32265, 55668: NaN and null of Arrow data."""

    def wrapped(value: float | None) -> Any:
        return [value] if pa.types.is_list(t) else {"x": value} if pa.types.is_struct(t) else value

    with_nan = [wrapped(v) for v in (1.0, NAN, None, math.inf)]
    without = [wrapped(v) for v in (1.0, None, None, math.inf)]
    all_nan = [wrapped(v) for v in (1.0, NAN, NAN, math.inf)]
    hashes = {hashed(column(values, t)) for values in (with_nan, without, all_nan)}
    assert len(hashes) == 3
    backed = pd.DataFrame({"c": pd.Series(pd.arrays.ArrowExtensionArray(pa.array(with_nan, t)))})
    assert hashed(backed) == hashed(column(with_nan, t))
    assert hashed(pl.from_arrow(column(with_nan, t))) == hashed(column(with_nan, t))


def test_nan_is_one_value_and_not_the_text() -> None:
    payloads = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view("f8")
    assert len({hashed(column(pa.array(payloads[i : i + 1]))) for i in range(3)}) == 1
    assert hashed(column([NAN])) != hashed(column(["NaN"]))
    assert hashed(column([0.0])) != hashed(column([-0.0]))


# --------------------------------------------------------------------------- dates and times


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (dt.datetime(1, 1, 1), "0001-01-01T00:00:00.000000"),
        (dt.datetime(999, 12, 31, 23, 59, 59, 999999), "0999-12-31T23:59:59.999999"),
        (dt.datetime(1582, 10, 10), "1582-10-10T00:00:00.000000"),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999999), "1969-12-31T23:59:59.999999"),
        (dt.datetime(9999, 12, 31, 23, 59, 59, 999999), "9999-12-31T23:59:59.999999"),
    ],
)
def test_years_are_padded_to_four_digits(moment: dt.datetime, text: str, path: str) -> None:
    """Measured: years before 1000."""
    assert texts(pa.array([moment], pa.timestamp("us")), path) == [f'"{text}"']
    assert texts(pa.array([moment], pa.timestamp("us", "America/New_York")), path) == [f'"{text}Z"']
    assert texts(pa.array([moment.date()], pa.date32()), path) == [f'"{text[:10]}"']


def test_years_beyond_four_digits_have_a_sign(path: str) -> None:
    days = pa.array([2932897, -719528, -719529], pa.int32()).view(pa.date32())
    assert texts(days, path) == ['"+10000-01-01"', '"0000-01-01"', '"-0001-12-31"']


def test_one_instant_in_every_unit_and_one_nanosecond_more() -> None:
    """pandas 58989, SPARK-40819: units do not show, nanoseconds do."""
    seconds = 1_577_880_000
    for zone in ("UTC", None, "Asia/Tokyo"):
        per_unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
        tables = [column(pa.array([seconds * n], pa.timestamp(u, zone))) for u, n in per_unit.items()]
        more = column(pa.array([seconds * 10**9 + 1], pa.timestamp("ns", zone)))
        assert len({hashed(t) for t in tables}) == 1
        assert hashed(more) != hashed(tables[0])
        frames = [table.to_pandas() for table in (*tables, more)]
        assert [hashed(f) for f in frames] == [hashed(t) for t in (*tables, more)]
        microsecond = column(pa.array([seconds * 10**6 + 1], pa.timestamp("us", zone)))
        assert hashed(microsecond) not in (hashed(more), hashed(tables[0]))


@pytest.mark.parametrize(
    "day",
    [
        dt.date(1001, 1, 1),
        dt.date(1582, 10, 4),
        dt.date(1582, 10, 10),
        dt.date(1582, 10, 15),
        dt.date(1, 1, 1),
    ],
)
def test_days_before_the_gregorian_calendar_keep_their_number(
    day: dt.date, tmp_path: Path, path: str
) -> None:
    """SPARK-31662, 31455: proleptic day numbers through parquet, and every library's own form."""
    table = column([day], pa.date32())
    assert texts(table["c"].chunk(0), path) == [f'"{day.isoformat()}"']
    pq.write_table(table, tmp_path / "t.parquet")
    expected = hashed(table)
    assert fingerprint_dataset(tmp_path / "t.parquet").data_hash == expected
    assert hashed(pl.read_parquet(tmp_path / "t.parquet")) == expected
    assert hashed(duckdb.sql(f"select c from '{tmp_path}/t.parquet'")) == expected
    assert hashed(objects(day)) == expected
    assert hashed(column(table["c"].cast(pa.date64()))) == expected


# --------------------------------------------------------------------------- objects of pandas


@pytest.mark.parametrize(
    "missing",
    [[NAN, None, pd.NA, pd.NaT], [NAN], [None, None], [pd.NA], [pd.NaT, NAN], [Decimal("NaN"), None]],
)
def test_objects_that_are_all_missing(missing: list[Any]) -> None:
    """pandas 56836, arrow 35717: a column of nothing but missing markers, Decimal("NaN") among them."""
    assert hashed(objects(*missing)) == hashed(column([None] * len(missing), pa.string()))


def test_decimals_of_several_scales_are_one_type() -> None:
    """ray 25181: 1.0, 1.00 and 1.2E+4 in one column."""
    frame = objects(Decimal("1.0"), Decimal("1.00"), Decimal("1.2E+4"))
    assert fingerprint(frame).columns == (("c", "decimal(7,2)"),)
    equal_by_value = [Decimal("1"), Decimal("1.000").quantize(Decimal("1.00")), Decimal("12000")]
    assert hashed(frame) == hashed(column(equal_by_value, pa.decimal128(7, 2)))
    assert hashed(objects(Decimal("1.00"), Decimal("NaN"))) == hashed(
        column([Decimal("1.00"), None], pa.decimal128(3, 2))
    )
    assert hashed(objects(Decimal("1E-8"), None)) == hashed(
        column([Decimal("1E-8"), None], pa.decimal128(8, 8))
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.DataFrame({"a": [], "b": []}, dtype=object),
        lambda: pd.DataFrame(columns=["a", "b"]),
        lambda: pd.DataFrame({"a": ["x"], "b": [None]}).iloc[:0].astype(object),
    ],
)
def test_an_empty_frame_of_objects(make: Any) -> None:
    """pandas 37083."""
    frame = make()
    assert hashed(frame) == hashed(pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.string())}))


@pytest.mark.parametrize(
    "mixed",
    [
        ("a", b"b"),
        (1, "a"),
        (True, 1),
        (1.5, True),
        (dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=UTC)),
        (dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)),
        (["a"], [b"a"]),
    ],
)
def test_kinds_that_arrow_would_mix(mixed: tuple[Any, ...]) -> None:
    """Measured: Arrow makes bytes of text, numbers of booleans, dates of datetimes without a word."""
    for frame in (objects(*mixed), objects(*reversed(mixed)), objects(None, *mixed)):
        assert error_of(frame).startswith("column 'c' (object): ")


def test_nanoseconds_of_objects_are_not_cut() -> None:
    """Measured: Arrow infers microseconds of Timestamp objects and cuts the rest."""
    assert hashed(objects(pd.Timestamp(1))) != hashed(objects(pd.Timestamp(2)))
    assert hashed(objects([pd.Timestamp(1)])) != hashed(objects([pd.Timestamp(2)]))


def test_indexes_have_one_rule_before_writing(tmp_path: Path) -> None:
    """pandas 59385, delta-rs 989: an unnamed index is not data, a named one is a column, stored or not."""
    frame = pd.DataFrame({"v": [1, 2]})
    assert hashed(frame.set_axis([5, 3])) == hashed(frame.set_axis(["x", "y"])) == hashed(frame)
    for index in (
        pd.Index(["x", "y"], name="k"),
        pd.MultiIndex.from_tuples([("x", 1), ("y", 2)], names=["k", None]),
        pd.CategoricalIndex(["x", "y"], name="k"),
    ):
        named = frame.set_axis(index)
        assert hashed(named) == hashed(pa.table({"v": [1, 2], "k": ["x", "y"]}))
        pq.write_table(arrow_table(named), tmp_path / "t.parquet")
        assert hashed(pq.read_table(tmp_path / "t.parquet")) == hashed(named)


# --------------------------------------------------------------------------- names and types


def test_columns_that_differ_only_in_case_are_two() -> None:
    """delta-rs 4610: sf_gsp and SF_GSP, on every engine."""
    table = pa.table({"sf_gsp": [1, 2], "SF_GSP": [3, 4], "Sf_Gsp": [5, 6]})
    expected = hashed(table)
    assert len(fingerprint(table).columns) == 3
    assert hashed(table.to_pandas()) == hashed(pl.from_arrow(table)) == expected
    relation = duckdb.sql(
        "select range + 1 as sf_gsp, range + 3 as SF_GSP, range + 5 as Sf_Gsp from range(2)"
    )
    assert hashed(relation) == expected
    assert hashed(table.rename_columns(["SF_GSP", "sf_gsp", "Sf_Gsp"])) != expected


def test_a_void_column_is_of_type_null() -> None:
    """delta-rs 1946: all null and of no type; Spark's lines of it are in the vectors."""
    table = pa.table({"v": pa.nulls(2), "i": pa.array([1, 2], pa.int32())})
    assert fingerprint(table).columns == (("i", "int32"), ("v", "null"))
    assert hashed(table) == hashed(pl.from_arrow(table))
    typed = pa.table({"v": pa.nulls(2, pa.string()), "i": pa.array([1, 2], pa.int32())})
    assert fingerprint(table).lane_sums == fingerprint(typed).lane_sums
    assert hashed(table) != hashed(typed)


@pytest.mark.parametrize(
    "values", [["a", None, "a", "a text longer than twelve bytes"], [], ["", None], [None, None]]
)
def test_text_is_text_in_every_layout(values: list[Any]) -> None:
    """delta-rs 2613, arrow 39633."""
    plain = pa.array(values, pa.string())
    layouts = [
        plain.cast(pa.large_string()),
        pa.array(values, pa.string_view()),
        plain.dictionary_encode(),
        plain.cast(pa.large_string()).dictionary_encode(),
        pc.run_end_encode(plain),
        pa.chunked_array([plain.slice(0, 1), plain.slice(1), pa.array([], pa.string())]),
    ]
    assert {hashed(column(layout)) for layout in layouts} == {hashed(column(plain))}
    assert hashed(pd.DataFrame({"c": pd.Categorical(values)})) == hashed(column(plain))
    assert hashed(pl.DataFrame({"c": pl.Series(values, dtype=pl.Categorical)})) == hashed(column(plain))


def test_bytes_are_bytes_in_every_layout() -> None:
    plain = pa.array([b"abc", None, b"\x00\xff\x10"], pa.binary())
    layouts = [
        plain.cast(pa.large_binary()),
        pa.array(plain.to_pylist(), pa.binary(3)),
        pa.array(plain.to_pylist(), pa.binary_view()),
    ]
    assert {hashed(column(layout)) for layout in layouts} == {hashed(column(plain))}


@pytest.mark.parametrize(
    ("untyped", "typed"),
    [
        (pa.array([[None], [], None]), pa.array([[None], [], None], pa.list_(pa.int64()))),
        (
            pa.array([[{"a": None, "b": 1}]], pa.list_(pa.struct([("a", pa.null()), ("b", pa.int64())]))),
            pa.array([[{"a": None, "b": 1}]], pa.list_(pa.struct([("a", pa.string()), ("b", pa.int64())]))),
        ),
        (
            pa.array([{"a": None}, None], pa.struct([("a", pa.null())])),
            pa.array([{"a": None}, None], pa.struct([("a", pa.int8())])),
        ),
        (
            pa.array([[("k", None)]], pa.map_(pa.string(), pa.null())),
            pa.array([[("k", None)]], pa.map_(pa.string(), pa.int8())),
        ),
    ],
    ids=["list", "list of struct", "struct", "map"],
)
def test_nested_nulls_without_a_type_are_rows_of_the_typed_form(untyped: pa.Array, typed: pa.Array) -> None:
    """arrow 47238, pandas 58867."""
    a, b = fingerprint(column(untyped)), fingerprint(column(typed))
    assert a.error is None
    assert a.lane_sums == b.lane_sums
    assert a.schema_hash != b.schema_hash


@pytest.mark.parametrize(
    ("t", "entries"),
    [
        (pa.map_(pa.string(), pa.int64()), [("a", 1), ("b", 2), ("～", 3), ("\U0001f600", 4)]),
        (pa.map_(pa.int64(), pa.string()), [(9, "x"), (10, "y"), (-1, None)]),
        (pa.map_(pa.date32(), pa.int8()), [(dt.date(2020, 1, 1), 1), (dt.date(1, 1, 1), 2)]),
        (pa.map_(pa.float64(), pa.int8()), [(0.1, 1), (1e10, 2), (NAN, 3), (-1.0, 4)]),
        (pa.map_(pa.bool_(), pa.int8()), [(True, 1), (False, 2)]),
        (pa.map_(pa.decimal128(5, 2), pa.int8()), [(Decimal("10.00"), 1), (Decimal("9.50"), 2)]),
    ],
    ids=lambda v: str(v) if isinstance(v, pa.DataType) else "",
)
def test_the_order_of_a_maps_entries_does_not_show(t: pa.DataType, entries: list[Any]) -> None:
    """SPARK-27619, arrow 34729."""
    forward, backward = column([entries], t), column([entries[::-1]], t)
    assert hashed(forward) == hashed(backward)
    nested = column([[{"m": entries}], [{"m": entries[::-1]}]], pa.list_(pa.struct([("m", t)])))
    turned = column([[{"m": entries[::-1]}], [{"m": entries}]], pa.list_(pa.struct([("m", t)])))
    assert hashed(nested) == hashed(turned)
    assert hashed(column([entries[:-1]], t)) != hashed(forward)


def test_map_keys_are_spelt_as_spark_spells_them(path: str) -> None:
    """Measured: a date key is its day number, a float key its shortest text, -0.0 is 0.0."""
    date = pa.array([[(dt.date(2020, 1, 1), 1)]], pa.map_(pa.date32(), pa.int8()))
    assert texts(date, path) == ['{"18262":1}']
    float32 = pa.array([[(0.1, 1), (-0.0, 2)]], pa.map_(pa.float32(), pa.int8()))
    assert texts(float32, path) == ['{"0.0":2,"0.1":1}']


@pytest.mark.parametrize("number", [11069825858223412227, 2**64 - 1, 2**63, 2**63 - 1, 0])
def test_unsigned_integers_keep_their_digits(number: int, path: str) -> None:
    """delta-rs 2175."""
    values = pa.array([number], pa.uint64())
    assert texts(values, path) == [str(number)]
    for frame in (
        pd.DataFrame({"c": np.array([number], "u8")}),
        pd.DataFrame({"c": pd.array([number], dtype="UInt64")}),
        pl.DataFrame({"c": pl.Series([number], dtype=pl.UInt64)}),
        duckdb.sql(f"select {number}::ubigint c"),
        objects(np.uint64(number)),
    ):
        assert hashed(frame) == hashed(column(values))


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        (column([(1, 2, 3)], pa.month_day_nano_interval()), "month_day_nano_interval"),
        (duckdb.sql("select interval 1 day as c"), "month_day_nano_interval"),
        (column([[(1, 2, 3)]], pa.list_(pa.month_day_nano_interval())), "month_day_nano_interval"),
        (column(pa.array([1], pa.duration("s"))), "duration[s]"),
        (pd.DataFrame({"c": pd.to_timedelta(["1s"])}), "duration["),
        (pl.DataFrame({"c": [dt.timedelta(1)]}), "duration[us]"),
        (pd.DataFrame({"c": pd.interval_range(0, 1)}), "interval[int64, right]"),
        (pd.DataFrame({"c": pd.period_range("2020", periods=1, freq="D")}), "period[D]"),
        (
            column(pa.MapArray.from_arrays([0, 1], pa.array([{"a": 1}]), pa.array([1]))),
            "map<struct<a: int64>",
        ),
        (
            pa.table({"c": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])}),
            "sparse_union",
        ),
    ],
)
def test_types_without_a_text_are_failures_that_name_column_and_type(frame: Any, named: str) -> None:
    """SPARK-45128 and its kin."""
    error = error_of(frame)
    assert error.startswith("column 'c' (")
    assert named in error


# --------------------------------------------------------------------------- sums and sizes


def test_lane_sums_wrap_at_64_bits() -> None:
    """NVIDIA cudf-spark 3424: sums past 2**63 are exact, modulo 2**64."""
    one, many = fingerprint(column([7])), fingerprint(column([7] * 1000))
    assert one.lane_sums is not None
    assert many.lane_sums == tuple(lane * 1000 % 2**64 for lane in one.lane_sums)
    assert any(lane * 1000 >= 2**64 for lane in one.lane_sums)


def test_one_chunk_or_thousands(path: str) -> None:
    rows = 5000
    whole = pa.table({"i": np.arange(rows), "s": [f"t{i % 13}" for i in range(rows)]})
    tiny = pa.concat_tables([whole.slice(i, 1) for i in range(rows)])
    assert tiny["i"].num_chunks == rows
    assert hashed(tiny) == hashed(whole) == hashed(tiny.to_reader())
    assert hashed(whole) == hash_of(whole.to_batches(), whole.schema, PATHS[path])


def test_escapes_are_jacksons(path: str) -> None:
    """Python's json escapes non-ASCII and DEL, and writes lower-case hex; Jackson does neither."""
    expected = {
        "\x7f": '"\x7f"',
        "é": '"é"',
        "\u2028": '"\u2028"',
        "\x1f": '"\\u001F"',
        "/": '"/"',
        "\U0001f600": '"\U0001f600"',
    }
    assert texts(pa.array(list(expected)), path) == list(expected.values())
    assert json.dumps("é") != '"é"'
