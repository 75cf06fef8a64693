"""fingerprint, arrow_table and hash_stream: what they say, and what they never do."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.hashing.expected import assert_stands_for, failure
from tests.hashing.vectors import arrow_table as vector_table
from tests.hashing.vectors import table_vectors
from ubunye_orchestrate.errors import ConfigurationError, HashError
from ubunye_orchestrate.hashing import api, tally
from ubunye_orchestrate.hashing.api import arrow_table, fingerprint, hash_stream

TABLE = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": ["x", None, "z"]})
NOT_UNICODE = pa.StringArray.from_buffers(
    2, pa.py_buffer(bytes([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0])), pa.py_buffer(b"a\xff")
)


def both_paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for path in tally.PATHS:
        monkeypatch.setenv("UBUNYE_HASH_PATH", path)
        yield path


# --------------------------------------------------------------------------- paths


@pytest.mark.parametrize("vector", table_vectors(), ids=lambda v: v["name"])
def test_the_vectors_on_both_paths(vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    table = vector_table(vector)
    for path in both_paths(monkeypatch):
        for frame in (table, table.to_reader(), arrow_table(table)):
            got = fingerprint(frame)
            assert got.path_taken == path
            assert got.data_hash == vector["data_hash"]
            assert got.schema_hash == vector["schema_hash"]
            assert got.row_count == vector["row_count"]
            assert got.lane_sums == tuple(int(s) for s in vector["lane_sums"])


def test_the_fastest_path_is_taken_unless_one_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UBUNYE_HASH_PATH", raising=False)
    assert fingerprint(TABLE).path_taken == "pyarrow"


@pytest.mark.parametrize("forced", [None, "pyarrow"])
def test_a_columnar_path_that_fails_its_self_check_is_not_taken(
    forced: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UBUNYE_HASH_PATH", raising=False)
    if forced:
        monkeypatch.setenv("UBUNYE_HASH_PATH", forced)
    expected = fingerprint(TABLE).data_hash
    monkeypatch.setattr(tally, "columnar_is_trusted", lambda: False)
    got = fingerprint(TABLE)
    assert (got.path_taken, got.data_hash) == ("reference", expected)


@pytest.mark.parametrize("value", ["", "arrow", "Reference", "native "])
def test_a_path_that_does_not_exist_is_a_configuration_error(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UBUNYE_HASH_PATH", value)
    with pytest.raises(ConfigurationError, match="expected 'reference' or 'pyarrow'"):
        fingerprint(TABLE)
    with pytest.raises(ConfigurationError, match="UBUNYE_HASH_PATH"):
        hash_stream(TABLE.schema, [])


def test_a_number_of_threads_that_cannot_be_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UBUNYE_HASH_THREADS", "none")
    with pytest.raises(ConfigurationError, match="UBUNYE_HASH_THREADS"):
        fingerprint(TABLE)


# --------------------------------------------------------------------------- what is known after a failure


def test_a_faulty_value_leaves_schema_and_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in both_paths(monkeypatch):
        got = failure(pa.table({"ok": [1, 2], "s": NOT_UNICODE}))
        assert got.error is not None
        assert got.error.startswith("column 's' (string), row 1: text that is not valid Unicode")
        assert got.row_count == 2
        assert got.columns == (("ok", "int64"), ("s", "string"))
        assert got.schema_hash == fingerprint(pa.table({"ok": [1], "s": ["a"]})).schema_hash


def test_the_row_of_a_faulty_value_is_counted_over_the_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    good = pa.array(["x"] * 40_000)
    for _ in both_paths(monkeypatch):
        got = failure(pa.table({"s": pa.chunked_array([good, NOT_UNICODE, good])}))
        assert got.error is not None
        assert "row 40001:" in got.error


def test_an_unsupported_type_leaves_the_rows() -> None:
    got = failure(
        pa.table({"a": [1], "d": pa.array([1], pa.duration("s")), "e": pa.array([1], pa.duration("s"))})
    )
    assert got.error is not None
    assert got.error.startswith("column 'd' (duration[s])")
    assert (got.row_count, got.schema_hash, got.columns) == (1, None, ())


@pytest.mark.parametrize(
    ("table", "named"),
    [
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), "column 'a': 2 columns"),
        (pa.table({"m": pa.array([[(b"k", 1)]], pa.map_(pa.binary(), pa.int8()))}), "column 'm' (map<binary"),
        (
            pa.table({"m": pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int8()))}),
            "column 'm' (map<string,int8>), row 0",
        ),
        (pa.table({"d": pa.array([1], pa.date64())}), "column 'd' (date), row 0"),
        (
            pa.table({"i": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}),
            "column 'i' (month_day_nano_interval)",
        ),
        (
            pa.table({"l": pa.array([[1]], pa.list_(pa.duration("s")))}),
            "column 'l' (list<item: duration[s]>)",
        ),
    ],
)
def test_failures_name_the_place(table: pa.Table, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in both_paths(monkeypatch):
        got = failure(table)
        assert got.error is not None
        assert got.error.startswith(named)


def test_a_fault_of_ours_is_logged_with_its_traceback_and_called_what_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    for place in ("known_row_count", "arrow_stream"):
        with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
            patch.setattr(api, place, broken)
            got = fingerprint(TABLE)
        assert got.data_hash is None
        assert got.error is not None
        assert got.error.startswith("internal error (ZeroDivisionError): a fault of ubunye-orchestrate")
        assert caplog.records[-1].exc_info is not None
    with monkeypatch.context() as patch:
        patch.setattr(tally.ColumnarHasher, "add", broken)
        assert (fingerprint(TABLE).error or "").startswith("internal error (ZeroDivisionError)")
        stream = hash_stream(TABLE.schema, TABLE.to_batches())
        assert pa.Table.from_batches(stream) == TABLE
        assert (stream.fingerprint().error or "").startswith("internal error (ZeroDivisionError)")


def test_no_library_of_frames_is_loaded_to_recognise_one() -> None:
    code = """
import sys
import pyarrow as pa
from ubunye_orchestrate.hashing.api import fingerprint
assert fingerprint(pa.table({"a": [1]})).error is None
assert fingerprint({}).error == "not a table (dict)"
# pandas is loaded by pyarrow itself, where it is installed.
loaded = {"polars", "duckdb", "narwhals", "pyspark", "deltalake", "dagster"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_passes_through(interruption: type[BaseException]) -> None:
    class Interrupted:
        schema = {"a": "int64"}  # noqa: RUF012 - as a user would write it

        def collect(self) -> Any:
            raise interruption

    with pytest.raises(interruption):
        fingerprint(Interrupted())


# --------------------------------------------------------------------------- hash_stream


def test_a_stream_gives_the_same_batches_and_their_hash() -> None:
    batches = TABLE.to_batches(max_chunksize=2)
    stream = hash_stream(TABLE.schema, batches)
    assert [batch for batch in stream if batch] == batches
    got = stream.fingerprint()
    assert got.data_hash == fingerprint(TABLE).data_hash
    assert got.row_count == 3
    assert got.seconds > 0
    assert next(stream, None) is None
    assert stream.fingerprint() == got


def test_a_stream_feeds_a_writer(tmp_path: Any) -> None:
    stream = hash_stream(TABLE.schema, TABLE.to_reader(max_chunksize=1))
    with pq.ParquetWriter(tmp_path / "t.parquet", stream.schema) as writer:
        for batch in stream:
            writer.write_batch(batch)
    stored = pq.read_table(tmp_path / "t.parquet")
    assert stream.fingerprint().data_hash == fingerprint(stored).data_hash


def test_a_stream_without_batches_is_an_empty_table() -> None:
    stream = hash_stream(TABLE.schema, [])
    assert list(stream) == []
    assert stream.fingerprint().data_hash == fingerprint(TABLE.slice(0, 0)).data_hash


def test_a_stream_that_was_not_drawn_to_its_end_has_no_hash() -> None:
    stream = hash_stream(TABLE.schema, TABLE.to_batches(max_chunksize=2))
    next(stream)
    got = stream.fingerprint()
    assert got.data_hash is None
    assert got.row_count is None
    assert got.error == "not all rows were passed on: 2 until now"
    assert got.schema_hash == fingerprint(TABLE).schema_hash
    next(stream)
    assert next(stream, None) is None
    assert stream.fingerprint().data_hash == fingerprint(TABLE).data_hash


def test_what_cannot_be_hashed_still_passes() -> None:
    table = pa.table({"s": NOT_UNICODE})
    stream = hash_stream(table.schema, [*table.to_batches(), *table.to_batches()])
    assert sum(batch.num_rows for batch in stream) == 4
    got = stream.fingerprint()
    assert got.data_hash is None
    assert got.row_count == 4
    assert got.error is not None
    assert "row 1" in got.error
    durations = pa.table({"d": pa.array([1], pa.duration("s"))})
    stream = hash_stream(durations.schema, durations.to_batches())
    assert len(list(stream)) == 1
    assert (stream.fingerprint().row_count, stream.fingerprint().schema_hash) == (1, None)


def test_the_sources_error_reaches_the_writer_and_the_fingerprint() -> None:
    def source() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()
        raise OSError("the disk is gone")

    stream = hash_stream(TABLE.schema, source())
    next(stream)
    with pytest.raises(OSError, match="the disk is gone"):
        next(stream)
    got = stream.fingerprint()
    assert (
        got.error
        == "the rows could not all be read: the source failed after 3 rows (OSError: the disk is gone)"
    )
    assert got.row_count is None


def test_the_first_reason_stays() -> None:
    table = pa.table({"s": NOT_UNICODE})

    def source() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        yield pa.record_batch({"other": [1]})
        raise OSError("the disk is gone")

    stream = hash_stream(table.schema, source())
    with pytest.raises(OSError, match="gone"):
        list(stream)
    assert (stream.fingerprint().error or "").startswith("the batch after 2 rows has another schema")


def test_a_batch_of_another_schema_passes_unhashed() -> None:
    other = pa.record_batch({"a": [1]})
    stream = hash_stream(TABLE.schema, [*TABLE.to_batches(), other])
    assert list(stream)[-1] is other
    got = stream.fingerprint()
    assert got.data_hash is None
    assert got.error == "the batch after 3 rows has another schema"


# --------------------------------------------------------------------------- arrow_table


def test_what_is_hashed_is_what_is_stored(tmp_path: Any) -> None:
    frame = pd.DataFrame(
        {"i": [1, 2], "s": ["a", None], "f": [0.5, None], "c": pd.Categorical(["x", "y"])},
        index=pd.Index([5, 6], name="k"),
    )
    table = arrow_table(frame)
    pq.write_table(table, tmp_path / "t.parquet")
    stored = pq.read_table(tmp_path / "t.parquet")
    assert fingerprint(frame).data_hash == fingerprint(table).data_hash == fingerprint(stored).data_hash


def test_an_arrow_table_is_not_copied() -> None:
    assert (
        arrow_table(TABLE).column("a").chunk(0).buffers()[1].address
        == TABLE["a"].chunk(0).buffers()[1].address
    )


def test_naive_timestamps_reach_the_stored_table() -> None:
    frame = pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])})
    assert arrow_table(frame).schema.field("t").type.tz is None
    assert arrow_table(frame, naive_timestamps="UTC").schema.field("t").type.tz == "UTC"
    stored = arrow_table(frame, naive_timestamps="UTC")
    assert_stands_for(frame, stored, naive_timestamps="UTC")
    with pytest.raises(ConfigurationError):
        arrow_table(frame, naive_timestamps="Mars")
    with pytest.raises(HashError, match="skips or has twice"):
        arrow_table(
            pd.DataFrame({"t": pd.to_datetime(["2020-03-29T02:30"])}), naive_timestamps="Europe/Berlin"
        )
