"""A stream of batches through the columnar path: same sums however it is cut, in bounded memory."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from ubunye_orchestrate.errors import ConfigurationError, HashError
from ubunye_orchestrate.hashing import canonical, portions, rows_v1
from ubunye_orchestrate.hashing.columnar import ColumnarHasher, hash_batches, hash_threads
from ubunye_orchestrate.hashing.portions import PORTION_ROWS, PORTION_TEXT, Portions
from ubunye_orchestrate.hashing.types import canonical_columns
from ubunye_orchestrate.hashing.weights import row_weights

Sums = tuple[int, tuple[int, int]]


def _table(rows: int) -> pa.Table:
    random = np.random.default_rng(5)
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 4, rows))]).astype(np.int32)
    words = pa.array([f"word {i}" if i % 7 else None for i in range(int(offsets[-1]))], pa.string())
    return pa.table(
        {
            "id": np.arange(rows),
            "amount": random.standard_normal(rows) * 1e6,
            "words": pa.ListArray.from_arrays(offsets, words),
            "kind": pa.array([("a", "b", None)[i % 3] for i in range(rows)]).dictionary_encode(),
            "view": pa.array([f'no "{i}" of the texts' for i in range(rows)], pa.string_view()),
        }
    )


TABLE = _table(2000)


@pytest.fixture(scope="module")
def reference() -> Sums:
    return rows_v1.lane_sums_of_lines(canonical.batch_lines(TABLE.to_batches()[0]))


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize(
    ("batch_rows", "portion_rows", "portion_text"),
    [
        (2000, PORTION_ROWS, PORTION_TEXT),
        (3, PORTION_ROWS, PORTION_TEXT),  # hundreds of batches make one portion
        (3, 100, PORTION_TEXT),
        (2000, 100, PORTION_TEXT),  # one batch makes twenty
        (2000, PORTION_ROWS, 1000),  # few rows to a portion
        (2000, PORTION_ROWS, 1),  # each row one
        (700, 512, 20_000),
    ],
)
def test_batches_and_portions_do_not_show(
    batch_rows: int,
    portion_rows: int,
    portion_text: int,
    threads: str,
    reference: Sums,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UBUNYE_HASH_THREADS", threads)
    monkeypatch.setattr(portions, "PORTION_ROWS", portion_rows)
    monkeypatch.setattr(portions, "PORTION_TEXT", portion_text)
    batches = TABLE.to_batches(max_chunksize=batch_rows)
    empty = batches[0].slice(0, 0)
    assert hash_batches(TABLE.schema, [empty, *batches, empty]) == reference


def test_batches_that_arrow_cannot_put_together_are_hashed_one_by_one() -> None:
    def batch(number: int) -> pa.RecordBatch:
        entries = pa.array([[number], [number, None]], pa.list_(pa.int64()))
        return pa.record_batch([pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), entries)], ["x"])

    batches = [batch(n) for n in range(3)]
    with pytest.raises(pa.ArrowNotImplementedError):
        pa.concat_batches(batches)
    lines = [canonical.batch_lines(b) for b in batches]
    got = hash_batches(batches[0].schema, batches)
    assert got == rows_v1.lane_sums_of_lines(pa.chunked_array(lines))


def test_no_batch_and_no_row() -> None:
    assert hash_batches(TABLE.schema, []) == (0, (0, 0))
    assert hash_batches(TABLE.schema, [TABLE.to_batches()[0].slice(0, 0)]) == (0, (0, 0))


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("batch_rows", [1, 999, 40_000])
def test_a_row_is_counted_over_the_whole_stream(
    batch_rows: int, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UBUNYE_HASH_THREADS", threads)
    days = np.zeros(70_000 if batch_rows > 1 else 700, np.int64)
    days[-3] = 1
    table = pa.table({"day": pa.array(days).view(pa.date64())})
    with pytest.raises(HashError, match="not a whole day") as error:
        hash_batches(table.schema, table.to_batches(max_chunksize=batch_rows))
    assert error.value.row == len(days) - 3


def test_a_source_that_fails_is_not_dressed_up() -> None:
    def source() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        hash_batches(TABLE.schema, source())


@pytest.mark.parametrize("value", ["0", "-1", "two", "", "1.5", "²"])
def test_a_setting_that_cannot_work_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match="UBUNYE_HASH_THREADS"):
        hash_threads({"UBUNYE_HASH_THREADS": value})


def test_threads_are_as_set_and_else_the_processors() -> None:
    assert hash_threads({"UBUNYE_HASH_THREADS": "3"}) == 3
    assert hash_threads({}) >= 1


# ------------------------------------------------------------------------ memory


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_does_not_grow_with_the_stream(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "PORTION_ROWS", 2000)
    batch = TABLE.to_batches()[0]

    def peak(batches: int) -> int:
        hasher = ColumnarHasher(canonical_columns(batch.schema), threads=threads)
        gc.collect()
        before, most = pa.total_allocated_bytes(), 0
        tracemalloc.start()
        for _ in range(batches):
            hasher.add(batch)
            most = max(most, pa.total_allocated_bytes() - before)
        hasher.finish()
        of_python = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most + of_python

    gc.collect()
    for thread in threading.enumerate():  # an earlier test's hash that failed may not have come to its end
        if thread.name.startswith("ubunye-hash"):
            thread.join(60)
    peak(2)
    assert peak(24) < 1.3 * peak(6)


def _one_value_in_many_rows(layout: str) -> pa.Array:
    """A few kilobytes of memory that come to 500 MB of text."""
    rows, text = 10_000, pa.array(["x" * 50_000])
    if layout == "dictionary":
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), text)
    if layout == "runs":
        return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), text)
    if layout == "list view":
        zeros, ones = pa.array(np.zeros(rows, np.int32)), pa.array(np.ones(rows, np.int32))
        return pa.ListViewArray.from_arrays(zeros, ones, text)
    if layout == "list of dictionary":
        offsets = pa.array(np.arange(rows + 1, dtype=np.int32))
        return pa.ListArray.from_arrays(offsets, _one_value_in_many_rows("dictionary"))
    if layout == "struct of runs":
        return pa.StructArray.from_arrays([_one_value_in_many_rows("runs")], ["f"])
    assert layout == "dictionary of structs"
    structs = pa.StructArray.from_arrays([text], ["f"])
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), structs)


@pytest.mark.parametrize(
    "layout",
    ["dictionary", "runs", "list view", "list of dictionary", "struct of runs", "dictionary of structs"],
)
def test_rows_are_weighed_by_the_text_they_come_to(layout: str) -> None:
    batch = pa.record_batch([_one_value_in_many_rows(layout)], ["x"])
    assert batch.get_total_buffer_size() < 3_000_000
    weights = row_weights(batch)
    assert weights.min() > 50_000
    assert weights.max() < 51_000
    portion = next(Portions().add(batch))
    assert 1 < portion.num_rows <= PORTION_TEXT // 50_000


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[None] * 100_000], pa.list_(pa.null())),
        pa.array([[True] * 100_000], pa.list_(pa.bool_())),
        pa.array([[{}] * 100_000], pa.list_(pa.struct([]))),
        pa.array([b"x" * 100_000], pa.binary()),
        pa.array([b"x" * 100_000], pa.binary(100_000)),
        pa.array(["x" * 100_000], pa.string_view()),
        pa.array([[("x" * 100_000, None)]], pa.map_(pa.string(), pa.null())),
    ],
    ids=lambda v: str(v.type)[:30],
)
def test_no_layout_comes_to_much_more_text_than_its_weight(values: pa.Array) -> None:
    batch = pa.record_batch([values], ["x"])
    (weight,) = row_weights(batch).tolist()
    text = len(canonical.batch_lines(batch)[0].as_py())
    assert text / 2 < weight < 12 * text


def test_one_row_may_weigh_more_than_a_portion() -> None:
    heavy = pa.array(["x" * (PORTION_TEXT + 1), "y", "z" * (PORTION_TEXT + 1)])
    sizes = [p.num_rows for p in _portions([pa.record_batch([heavy], ["x"])])]
    assert sizes == [1, 1, 1]


def test_order_is_kept_when_small_and_large_batches_alternate() -> None:
    numbers = pa.table({"n": np.arange(100_000)})
    batches = [numbers.slice(a, b - a) for a, b in [(0, 5), (5, 9), (9, 70_000), (70_000, 70_001)]]
    batches.append(numbers.slice(70_001))
    got = _portions([b for t in batches for b in t.to_batches()])
    assert pa.Table.from_batches(got).column("n").to_pylist() == list(range(100_000))
    assert max(p.num_rows for p in got) <= PORTION_ROWS


def _portions(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    taker = Portions()
    return [p for batch in batches for p in taker.add(batch)] + list(taker.rest())
