"""Polars frames, eager and lazy."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from tests.hashing.expected import assert_stands_for, failure
from ubunye_orchestrate.hashing.api import arrow_table, fingerprint
from ubunye_orchestrate.hashing.frames.stream import ROWS_AT_ONCE

NOON = dt.datetime(2020, 1, 1, 12)
NAN = float("nan")


@pytest.mark.parametrize(
    ("series", "values", "t"),
    [
        (pl.Series([1, None], dtype=pl.Int8), [1, None], pa.int8()),
        (pl.Series([2**64 - 1, None], dtype=pl.UInt64), [2**64 - 1, None], pa.uint64()),
        (pl.Series([1.5, NAN, None]), [1.5, NAN, None], pa.float64()),
        (pl.Series([0.5, None], dtype=pl.Float32), [0.5, None], pa.float32()),
        (pl.Series([True, None]), [True, None], pa.bool_()),
        (
            pl.Series(["a", None, "a text longer than twelve bytes"]),
            ["a", None, "a text longer than twelve bytes"],
            pa.string(),
        ),
        (pl.Series([b"\x00", None]), [b"\x00", None], pa.binary()),
        (pl.Series(["a", None, "a"], dtype=pl.Categorical), ["a", None, "a"], pa.string()),
        (pl.Series(["a", None], dtype=pl.Enum(["b", "a"])), ["a", None], pa.string()),
        (pl.Series([dt.date(1, 1, 1), None]), [dt.date(1, 1, 1), None], pa.date32()),
        (pl.Series([dt.time(1, 2, 3, 4)]), [dt.time(1, 2, 3, 4)], pa.time64("ns")),
        (pl.Series([NOON, None], dtype=pl.Datetime("ms")), [NOON, None], pa.timestamp("us")),
        (
            pl.Series([NOON, None], dtype=pl.Datetime("us", "UTC")),
            [NOON.replace(tzinfo=dt.timezone.utc), None],
            pa.timestamp("us", "UTC"),
        ),
        (
            pl.Series([Decimal("1.50"), None], dtype=pl.Decimal(10, 2)),
            [Decimal("1.50"), None],
            pa.decimal128(10, 2),
        ),
        (
            pl.Series([[1, None], None, []], dtype=pl.List(pl.Int16)),
            [[1, None], None, []],
            pa.list_(pa.int16()),
        ),
        (pl.Series([[1, 2]], dtype=pl.Array(pl.Int16, 2)), [[1, 2]], pa.list_(pa.int16())),
        (
            pl.Series([{"a": 1, "b": "x"}, None], dtype=pl.Struct({"a": pl.Int8, "b": pl.String})),
            [{"a": 1, "b": "x"}, None],
            pa.struct([("a", pa.int8()), ("b", pa.string())]),
        ),
        (pl.Series([None, None]), [None, None], pa.null()),
        (pl.Series([], dtype=pl.String), [], pa.string()),
    ],
    ids=lambda v: str(v.dtype) if isinstance(v, pl.Series) else None,
)
def test_every_type(series: pl.Series, values: list[Any], t: pa.DataType) -> None:
    expected = pa.table({"c": pa.array(values, t)})
    frame = series.alias("c").to_frame()
    assert_stands_for(frame, expected)
    assert_stands_for(frame.lazy(), expected)
    assert_stands_for(frame[1:], expected.slice(1))


@pytest.mark.parametrize(
    ("dtype", "inside"),
    [
        (pl.Object, "Object"),
        (pl.Int128, "Int128"),
        (pl.List(pl.Int128), "Int128"),
        (pl.Array(pl.Int128, 2), "Int128"),
        (pl.Struct({"a": pl.List(pl.Int128)}), "Int128"),
    ],
)
def test_types_without_an_arrow_form(dtype: Any, inside: str) -> None:
    frame = pl.DataFrame({"fine": [], "c": []}, schema={"fine": pl.Int8, "c": dtype})
    if dtype == pl.Object:
        frame = pl.DataFrame({"fine": [1], "c": [object()]}, schema={"fine": pl.Int8, "c": pl.Object})
    for either in (frame, frame.lazy()):
        got = failure(either)
        assert got.error is not None
        assert got.error.startswith(f"column 'c' ({frame.schema['c']}): Polars has no Arrow form of {inside}")
    assert failure(frame).row_count == frame.height


def test_a_duration_names_column_and_type() -> None:
    got = failure(pl.DataFrame({"c": [dt.timedelta(1)]}))
    assert got.error is not None
    assert got.error.startswith("column 'c' (duration[us])")


def test_rows_in_several_chunks_and_many_slices() -> None:
    rows = ROWS_AT_ONCE + 10
    frame = pl.concat([pl.DataFrame({"a": [7]}), pl.DataFrame({"a": range(rows)})], rechunk=False)
    assert_stands_for(frame, pa.table({"a": [7, *range(rows)]}))
    assert_stands_for(frame.lazy(), pa.table({"a": [7, *range(rows)]}))


def test_frames_without_rows_or_columns() -> None:
    assert_stands_for(pl.DataFrame(), pa.table({}))
    assert_stands_for(pl.LazyFrame(), pa.table({}))
    empty = pl.LazyFrame({"a": [1, 2]}).filter(pl.col("a") > 5)
    assert_stands_for(empty, pa.table({"a": pa.array([], pa.int64())}))


def test_a_lazy_frame_is_computed_once() -> None:
    calls = []

    def seen(frame: pl.DataFrame) -> pl.DataFrame:
        calls.append(frame.height)
        return frame

    lazy = pl.LazyFrame({"a": range(10)}).map_batches(seen, schema={"a": pl.Int64})
    assert fingerprint(lazy).row_count == 10
    assert sum(calls) == 10
    calls.clear()
    assert arrow_table(lazy).num_rows == 10
    assert sum(calls) == 10


def test_a_lazy_frame_that_fails() -> None:
    def broken(frame: pl.DataFrame) -> pl.DataFrame:
        raise RuntimeError("not today")

    got = failure(pl.LazyFrame({"a": [1]}).map_batches(broken, schema={"a": pl.Int64}))
    assert got.error is not None
    assert "the source failed before the first row" in got.error
    assert "not today" in got.error
    missing = failure(pl.LazyFrame({"a": [1]}).select("b"))
    assert missing.error is not None
    assert "the source failed before the first row" in missing.error


def test_a_lazy_frame_that_fails_late_is_not_taken_for_a_shorter_one() -> None:
    texts = [str(i) for i in range(3 * ROWS_AT_ONCE)]
    texts[-1] = "no number"
    got = failure(pl.LazyFrame({"a": texts}).with_columns(pl.col("a").cast(pl.Int64, strict=True)))
    assert got.error is not None
    assert "the rows could not all be read: the source failed" in got.error
    assert got.row_count is None
