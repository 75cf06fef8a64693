"""pyarrow's frames, anything with the PyCapsule protocol, and what is no table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.hashing.expected import assert_stands_for, failure
from ubunye_orchestrate.errors import HashError, UnsupportedFrameError
from ubunye_orchestrate.hashing.api import arrow_table, fingerprint
from ubunye_orchestrate.hashing.frames import is_table
from ubunye_orchestrate.hashing.frames.stream import guarded

TABLE = pa.table(
    {
        "id": pa.chunked_array([[1, 2], [], [3]], pa.int32()),
        "name": pa.chunked_array([["a"], [None, 'q"']]),
        "tags": pa.array([["x"], None, []], pa.list_(pa.string())),
    }
)
NO_COLUMNS = TABLE.select([])
NOON = dt.datetime(2020, 1, 1, 12)


def reader(batches: int = 3, fails_after: int | None = None) -> pa.RecordBatchReader:
    batch = pa.record_batch({"a": pa.array([1, 2], pa.int64())})

    def rows() -> Iterator[pa.RecordBatch]:
        for i in range(batches):
            if i == fails_after:
                raise OSError("the disk is gone")
            yield batch

    return pa.RecordBatchReader.from_batches(batch.schema, rows())


class Stream:
    """An exporter of nothing but a stream."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._inner.__arrow_c_stream__(requested_schema)


class OneBatch:
    """An exporter of nothing but an array."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._inner.__arrow_c_array__(requested_schema)


def test_tables_batches_and_readers() -> None:
    assert_stands_for(TABLE, TABLE)
    assert_stands_for(TABLE.slice(1), TABLE.slice(1))
    assert_stands_for(TABLE.combine_chunks().to_batches()[0], TABLE)
    assert_stands_for(TABLE.to_reader(), TABLE)
    assert_stands_for(reader(), pa.table({"a": [1, 2] * 3}))
    assert_stands_for(reader(batches=0), pa.table({"a": pa.array([], pa.int64())}))


def test_rows_without_columns_count() -> None:
    assert_stands_for(NO_COLUMNS, NO_COLUMNS)
    assert_stands_for(TABLE.combine_chunks().to_batches()[0].select([]), NO_COLUMNS)
    assert fingerprint(NO_COLUMNS).data_hash != fingerprint(TABLE.slice(1).select([])).data_hash
    assert arrow_table(NO_COLUMNS).num_rows == 3


def test_datasets_and_scanners(tmp_path: Path) -> None:
    for part in range(2):
        (tmp_path / f"k={part}").mkdir()
        pq.write_table(TABLE, tmp_path / f"k={part}" / "0.parquet")
    dataset = ds.dataset(tmp_path, partitioning="hive")
    assert_stands_for(dataset, dataset.to_table())
    assert_stands_for(dataset.filter(ds.field("k") == 1), dataset.to_table(filter=ds.field("k") == 1))
    assert_stands_for(dataset.scanner(columns=["name"]), dataset.to_table(columns=["name"]))
    assert_stands_for(ds.dataset(TABLE), TABLE)


def test_a_reader_is_consumed_by_an_explicit_call_and_never_read_again() -> None:
    single = reader()
    assert fingerprint(single).row_count == 6
    assert fingerprint(single).row_count == 0


def test_a_reader_that_fails_half_way_says_after_how_many_rows() -> None:
    got = failure(reader(fails_after=2))
    assert (
        got.error
        == "the rows could not all be read: the source failed after 4 rows (OSError: the disk is gone)"
    )
    assert got.row_count is None
    assert got.columns == (("a", "int64"),)
    assert got.schema_hash == fingerprint(reader()).schema_hash
    assert "before the first row" in (failure(reader(fails_after=0)).error or "")
    with pytest.raises(HashError, match="after 4 rows"):
        arrow_table(reader(fails_after=2))


def test_a_batch_that_is_not_valid_arrow_data_is_not_read() -> None:
    class Source:
        """A batch whose buffers are too short, which pyarrow itself would not let one make."""

        num_rows = 1

        def validate(self) -> None:
            raise pa.ArrowInvalid("buffer too small")

    batches = guarded(iter([TABLE.to_batches()[0], Source()]))
    assert next(batches).num_rows == 1
    with pytest.raises(HashError, match=r"the source failed after 1 rows \(ArrowInvalid: buffer too small\)"):
        next(batches)


@pytest.mark.parametrize("export", [Stream, OneBatch])
def test_the_capsule_protocol(export: Any) -> None:
    assert_stands_for(export(TABLE.combine_chunks().to_batches()[0]), TABLE)


def test_a_stream_of_views_and_large_types() -> None:
    views = pa.table({"s": pa.array(["a", None, "long enough to stand out of line"], pa.string_view())})
    assert_stands_for(Stream(views), views)
    large = pa.table(
        {"s": pa.array(["a", None], pa.large_string()), "l": pa.array([[1], None], pa.large_list(pa.int8()))}
    )
    assert_stands_for(Stream(large), large)


@pytest.mark.parametrize(
    "column",
    [pa.array([1, 2]), pa.chunked_array([[1]]), Stream(pa.chunked_array([[1]])), OneBatch(pa.array([1]))],
    ids=["array", "chunked", "stream", "exported array"],
)
def test_a_single_column_is_no_table(column: Any) -> None:
    got = failure(column)
    assert got.error is not None
    assert got.error.startswith(f"not a table ({type(column).__name__})")
    with pytest.raises(UnsupportedFrameError):
        arrow_table(column)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({}, "dict"),
        (5, "int"),
        (None, "NoneType"),
        ([1], "list"),
        ("a", "str"),
        (pa.Table, "type"),
        (object(), "object"),
    ],
)
def test_what_is_no_table(value: object, name: str) -> None:
    got = failure(value)
    assert got.error == f"not a table ({name})"
    assert (got.row_count, got.schema_hash, got.columns) == (None, None, ())
    assert not is_table(value)
    with pytest.raises(UnsupportedFrameError, match=name):
        arrow_table(value)


def test_a_narwhals_frame_is_the_frame_that_it_wraps() -> None:
    native = pd.DataFrame({"a": [1.5, None]})
    assert fingerprint(nw.from_native(native)).data_hash == fingerprint(native).data_hash
    pl = pytest.importorskip("polars")
    assert_stands_for(nw.from_native(pl.LazyFrame({"a": [1]})), pa.table({"a": [1]}))


def test_a_spark_frame_is_not_mistaken_for_the_port() -> None:
    frame = type(
        "DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe", "collect": list, "schema": {}}
    )()
    got = failure(frame)
    assert got.error is not None
    assert "Spark" in got.error


# --------------------------------------------------------------------------- naive timestamps at any place


@pytest.mark.parametrize(
    ("naive", "instants"),
    [
        (pa.array([NOON, None]), pa.timestamp("us", "UTC")),
        (pa.array([NOON, None]).dictionary_encode(), pa.timestamp("us", "UTC")),
        (pa.array([[NOON], None]), pa.list_(pa.timestamp("us", "UTC"))),
        (pa.array([[NOON], None], pa.large_list(pa.timestamp("us"))), pa.list_(pa.timestamp("us", "UTC"))),
        (pa.array([[NOON], None], pa.list_(pa.timestamp("us"), 1)), pa.list_(pa.timestamp("us", "UTC"))),
        (
            pa.array([{"t": NOON, "x": 1}, None]),
            pa.struct([("t", pa.timestamp("us", "UTC")), ("x", pa.int64())]),
        ),
        (
            pa.array([[("k", NOON)], None], pa.map_(pa.string(), pa.timestamp("us"))),
            pa.map_(pa.string(), pa.timestamp("us", "UTC")),
        ),
    ],
    ids=["flat", "dictionary", "list", "large_list", "fixed_size_list", "struct", "map"],
)
def test_timestamps_without_a_zone_become_instants_at_every_depth(
    naive: pa.Array, instants: pa.DataType
) -> None:
    plain = naive.to_pylist()
    assert_stands_for(
        pa.table({"c": naive}), pa.table({"c": pa.array(plain, instants)}), naive_timestamps="UTC"
    )
    assert "timestamp_ntz" in dict(fingerprint(pa.table({"c": naive})).columns)["c"]


def test_runs_of_timestamps() -> None:
    runs = pc.run_end_encode(pa.array([NOON, NOON, None]))
    expected = pa.array([NOON, NOON, None], pa.timestamp("us", "UTC"))
    assert_stands_for(pa.table({"c": runs}), pa.table({"c": expected}), naive_timestamps="UTC")


@pytest.mark.parametrize("t", [pa.list_view(pa.timestamp("us")), pa.list_(pa.list_view(pa.timestamp("us")))])
def test_timestamps_inside_list_views_which_arrow_casts_wrongly(t: pa.DataType) -> None:
    value = [NOON] if pa.types.is_list_view(t) else [[NOON]]
    views = pa.table({"c": pa.array([value], t)})
    assert fingerprint(views).error is None
    got = failure(views, naive_timestamps="UTC")
    assert got.error is not None
    assert got.error.startswith("column 'c' (list")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_ends_of_64_bits_do_not_wrap(unit: str) -> None:
    ends = pa.table({"c": pa.array([0, -(2**63) + 5], pa.timestamp(unit))})
    got = failure(ends, naive_timestamps="Asia/Tokyo")
    assert got.error is not None
    assert "row 1: a local time too far from the present" in got.error


def test_the_row_of_a_doubtful_time_is_counted_over_batches() -> None:
    times = pa.chunked_array([[NOON, NOON], [NOON, dt.datetime(2020, 3, 29, 2, 30)]])
    got = failure(pa.table({"c": times}), naive_timestamps="Europe/Berlin")
    assert got.error is not None
    assert "row 3:" in got.error
