"""explain_difference: what it finds is what was changed, and nothing of the data gets out unasked."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ubunye_orchestrate.errors import ConfigurationError, HashError, UnsupportedFrameError
from ubunye_orchestrate.hashing import digests
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.difference import explain_difference

ROWS = 1000
BASE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "name": [f"n{i}" for i in range(ROWS)],
        "x": pa.array([i / 8 for i in range(ROWS)]),
    }
)


def changed(column: str, row: int, value: Any) -> pa.Table:
    values = BASE[column].to_pylist()
    values[row] = value
    i = BASE.schema.get_field_index(column)
    return BASE.set_column(i, BASE.schema.field(i), pa.array(values, BASE.schema.field(i).type))


def test_equal_tables() -> None:
    shuffled = BASE.take(np.random.default_rng(0).permutation(ROWS)).select(["x", "id", "name"])
    found = explain_difference(BASE, shuffled)
    assert found.equal
    assert str(found) == "equal: 1,000 rows"
    assert found.rows_a == found.rows_b == ROWS


@pytest.mark.parametrize(
    ("column", "value"), [("id", -1), ("name", "other"), ("name", None), ("x", float("nan"))]
)
def test_one_changed_cell_is_found_in_its_column(column: str, value: Any) -> None:
    found = explain_difference(BASE, changed(column, 7, value))
    assert not found.equal
    assert found.columns_that_differ == (column,)
    assert (found.rows_only_in_a, found.rows_only_in_b) == (1, 1)
    assert found.examples_a == found.examples_b == ()


def test_examples_are_given_when_asked_for() -> None:
    found = explain_difference(BASE, changed("name", 7, "other"), examples=3)
    assert found.examples_a == ('{"id":7,"name":"n7","x":0.875}',)
    assert found.examples_b == ('{"id":7,"name":"other","x":0.875}',)
    assert str(found) == (
        "1,000 rows in the first, 1,000 in the second\n"
        "1 row only in the first, 1 only in the second\n"
        "values differ in: 'name'\n"
        'only in the first: {"id":7,"name":"n7","x":0.875}\n'
        'only in the second: {"id":7,"name":"other","x":0.875}'
    )
    all_differ = explain_difference(BASE, BASE.set_column(2, "x", pa.array([-1.0] * ROWS)), examples=10)
    assert len(set(all_differ.examples_a)) == len(set(all_differ.examples_b)) == 10


@pytest.mark.parametrize("examples", [-1, 11])
def test_more_examples_than_allowed(examples: int) -> None:
    with pytest.raises(ConfigurationError, match="from 0 to 10"):
        explain_difference(BASE, BASE, examples=examples)


def test_rows_are_counted_as_often_as_they_occur() -> None:
    a = pa.table({"v": [1, 1, 1, 2, 3]})
    b = pa.table({"v": [1, 2, 2, 2, 4]})
    found = explain_difference(a, b, examples=5)
    assert (found.rows_only_in_a, found.rows_only_in_b) == (3, 3)  # 1, 1, 3 and 2, 2, 4
    assert set(found.examples_a) == {'{"v":1}', '{"v":3}'}
    assert set(found.examples_b) == {'{"v":2}', '{"v":4}'}
    dropped = explain_difference(BASE, BASE.slice(1))
    assert (dropped.rows_only_in_a, dropped.rows_only_in_b, dropped.rows_b) == (1, 0, ROWS - 1)
    doubled = explain_difference(BASE, pa.concat_tables([BASE, BASE.slice(5, 1)]))
    assert (doubled.rows_only_in_a, doubled.rows_only_in_b) == (0, 1)


def test_values_that_moved_to_other_rows() -> None:
    moved = BASE.set_column(1, "name", BASE["name"].take(list(reversed(range(ROWS)))))
    found = explain_difference(BASE, moved)
    assert found.rows_only_in_a == found.rows_only_in_b == ROWS
    assert found.columns_that_differ == ()
    assert "the same values stand in other rows" in str(found)


def test_schemas_that_differ() -> None:
    other = (
        BASE.set_column(0, "id", BASE["id"].cast(pa.int32()))
        .rename_columns(["id", "nom", "x"])
        .append_column("more", pa.nulls(ROWS))
    )
    found = explain_difference(BASE, other)
    assert not found.equal
    assert found.retyped == (("id", "int64", "int32"),)
    assert found.columns_only_in_a == (("name", "string"),)
    assert found.columns_only_in_b == (("more", "null"), ("nom", "string"))
    assert found.compared == ("id", "x")
    assert (found.rows_only_in_a, found.rows_only_in_b, found.columns_that_differ) == (0, 0, ())
    text = str(found)
    assert "column 'id' is int64 in the first, int32 in the second" in text
    assert "column 'more' (null) is only in the second" in text
    assert "the rows are the same in the columns that both have" in text


def test_no_column_in_common() -> None:
    found = explain_difference(pa.table({"a": [1, 2]}), pa.table({"b": [1, 2, 3]}))
    assert found.compared == ()
    assert (found.rows_a, found.rows_b) == (2, 3)
    assert (found.rows_only_in_a, found.rows_only_in_b) == (0, 1)
    read_once = explain_difference(
        pa.table({"a": [1, 2]}).to_reader(), pa.table({"b": [1, 2, 3]}).to_reader()
    )
    assert read_once == found


def frames_of(table: pa.Table, folder: Path) -> dict[str, Any]:
    pq.write_table(table, folder / f"{len(list(folder.iterdir()))}.parquet")
    path = sorted(folder.iterdir())[-1]
    return {
        "table": table,
        "reader": table.to_reader(max_chunksize=100),
        "dataset": ds.dataset(path),
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "lazy": pl.from_arrow(table).lazy(),  # type: ignore[union-attr]  # a table gives a frame
        "duckdb": duckdb.sql(f"select * from '{path}'"),
        "capsule": table.to_batches()[0].to_struct_array(),
    }


@pytest.mark.parametrize(
    "kind", ["table", "reader", "dataset", "pandas", "polars", "lazy", "duckdb", "capsule"]
)
def test_frames_of_every_kind_even_read_once(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = frames_of(BASE, tmp_path / "a")
    second = frames_of(changed("name", 3, "other"), tmp_path / "b")
    found = explain_difference(first[kind], second["table"], examples=1)
    assert found.columns_that_differ == ("name",)
    assert found.examples_a == ('{"id":3,"name":"n3","x":0.375}',)
    other = explain_difference(frames_of(BASE, tmp_path / "a")["table"], second[kind], examples=1)
    assert other.examples_b == ('{"id":3,"name":"other","x":0.375}',)


def test_a_lazy_frame_is_computed_once() -> None:
    heights = []

    def seen(frame: pl.DataFrame) -> pl.DataFrame:
        heights.append(frame.height)
        return frame

    lazy = pl.LazyFrame({"a": [1, 2]}).map_batches(seen, schema={"a": pl.Int64})
    assert not explain_difference(lazy, pa.table({"a": [1, 3]}), examples=2).equal
    assert sum(heights) == 2


def test_a_frame_that_cannot_be_hashed_is_named() -> None:
    with pytest.raises(HashError, match="the second frame cannot be compared") as raised:
        explain_difference(BASE, pa.table({"d": pa.array([1], pa.duration("s"))}))
    assert raised.value.column == "d"
    with pytest.raises(HashError, match="the first frame cannot be compared") as raised:
        explain_difference(
            pa.table({"m": pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int8()))}),
            pa.table({"m": [1]}),
        )
    assert (raised.value.column, raised.value.row) == ("m", 0)
    with pytest.raises(UnsupportedFrameError, match=r"not a table \(int\)"):
        explain_difference(BASE, 5)
    with pytest.raises(HashError, match="mixed kinds"):
        explain_difference(pd.DataFrame({"a": ["x", b"y"]}), BASE)


def test_naive_timestamps_are_read_as_asked() -> None:
    naive = pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])})
    aware = pd.DataFrame({"t": pd.to_datetime(["2020-01-01T00:00:00Z"])})
    assert not explain_difference(naive, aware).equal
    assert explain_difference(naive, aware, naive_timestamps="UTC").equal


def test_nothing_of_the_data_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        explain_difference(BASE, changed("name", 7, "secret"), examples=10)
    assert "secret" not in caplog.text


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    explain_difference(BASE.to_reader(), BASE.to_reader())
    with pytest.raises(HashError):
        explain_difference(BASE.to_reader(), 5)
    assert list(tmp_path.iterdir()) == []


small_values = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None])), max_size=30)


@settings(max_examples=60, deadline=None)
@given(small_values, small_values, st.booleans(), st.booleans())
def test_counts_are_those_of_the_multisets(
    a: list[tuple[int, str | None]], b: list[tuple[int, str | None]], in_files: bool, over_limit: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if in_files:
            patch.setattr(digests, "_IN_MEMORY", 2)
        if over_limit:
            patch.setattr(digests, "_LISTED", 1)
        tables = [
            pa.table(
                {
                    "i": pa.array([i for i, _ in rows], pa.int64()),
                    "s": pa.array([s for _, s in rows], pa.string()),
                }
            )
            for rows in (a, b)
        ]
        found = explain_difference(*tables, examples=10)
    only_a, only_b = Counter(a) - Counter(b), Counter(b) - Counter(a)
    assert (found.rows_only_in_a, found.rows_only_in_b) == (only_a.total(), only_b.total())
    columns = [
        name for i, name in enumerate("is") if Counter(row[i] for row in a) != Counter(row[i] for row in b)
    ]
    assert list(found.columns_that_differ) == columns
    assert found.equal == (fingerprint(tables[0]).data_hash == fingerprint(tables[1]).data_hash)
    lines = ["{" + f'"i":{i}' + (f',"s":"{s}"' if s else "") + "}" for i, s in only_a]
    assert set(found.examples_a) <= set(lines)
    if not over_limit:
        assert len(found.examples_a) == min(10, len(only_a))


def test_many_rows_go_through_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_IN_MEMORY", 1000)
    rows = 200_000
    a = pa.table({"i": np.arange(rows), "k": np.arange(rows) % 7})
    b = pa.table({"i": np.arange(rows)[::-1] + 5, "k": (np.arange(rows)[::-1] + 5) % 7})
    found = explain_difference(a, b, examples=10)
    assert (found.rows_only_in_a, found.rows_only_in_b) == (5, 5)
    assert set(found.examples_a) == {f'{{"i":{i},"k":{i % 7}}}' for i in range(5)}
    assert found.columns_that_differ == ("i", "k")
