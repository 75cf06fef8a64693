"""Datasets in files: every row and column of every file counts, or there is an honest failure."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from upath import UPath

from tests.hashing.paths import hash_of
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.hashing import canonical
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.datasets import fingerprint_dataset
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.types import canonical_columns

TABLE = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", None, 'q"']})


def write(table: pa.Table, path: Path, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)


def assert_holds(got: Fingerprint, table: pa.Table) -> None:
    assert got.error is None
    assert got.columns == canonical_columns(table.schema)
    assert got.row_count == table.num_rows
    assert got.data_hash == hash_of(table.to_batches(), table.schema, canonical.batch_lines)


def failed(path: Any, **options: Any) -> str:
    got = fingerprint_dataset(path, **options)
    assert got.data_hash is None
    assert got.error is not None
    assert "internal error" not in got.error
    return got.error


def test_a_file_and_a_folder_of_files(tmp_path: Path) -> None:
    write(TABLE, tmp_path / "0.parquet")
    assert_holds(fingerprint_dataset(tmp_path / "0.parquet"), TABLE)
    assert_holds(fingerprint_dataset(str(tmp_path / "0.parquet")), TABLE)
    write(TABLE, tmp_path / "deep" / "1.parquet", row_group_size=1)
    assert_holds(fingerprint_dataset(tmp_path), pa.concat_tables([TABLE, TABLE]))
    assert_holds(fingerprint_dataset(f"file://{tmp_path}"), pa.concat_tables([TABLE, TABLE]))
    assert_holds(fingerprint_dataset(UPath(tmp_path)), pa.concat_tables([TABLE, TABLE]))


def test_any_fsspec_url() -> None:
    memory = fsspec.filesystem("memory")
    try:
        for i in range(2):
            with memory.open(f"/bucket/table/k={i}/0.parquet", "wb") as file:
                pq.write_table(TABLE, file)
        expected = pa.concat_tables(
            [TABLE.append_column("k", pa.array([i] * 3, pa.int32())) for i in range(2)]
        )
        assert_holds(fingerprint_dataset("memory://bucket/table"), expected)
        assert_holds(fingerprint_dataset("memory://bucket/table/k=1/0.parquet"), TABLE)
        assert_holds(fingerprint_dataset(UPath("memory://bucket/table")), expected)
    finally:
        memory.rm("/bucket", recursive=True)


def test_partition_columns_are_as_pyarrow_presents_them(tmp_path: Path) -> None:
    for folder in ("y=2024/k=a%20b", "y=2025/k=x", "y=__HIVE_DEFAULT_PARTITION__/k=x"):
        write(TABLE, tmp_path / folder / "0.parquet")
    expected = ds.dataset(tmp_path, partitioning="hive").to_table()
    assert expected["y"].null_count == 3
    assert set(expected["k"].to_pylist()) == {"a b", "x"}
    assert_holds(fingerprint_dataset(tmp_path), expected)


def test_hidden_files_are_left_out_and_the_folders_above_do_not_matter(tmp_path: Path) -> None:
    root = tmp_path / ".cache" / "_tmp" / "day=1"
    write(TABLE, root / "0.parquet")
    write(TABLE, root / "_temporary" / "0.parquet")
    write(TABLE, root / ".0.parquet.crc")
    (root / "_SUCCESS").touch()
    assert_holds(fingerprint_dataset(root), TABLE)
    assert_holds(fingerprint_dataset(root / "0.parquet"), TABLE)


def test_a_column_that_only_some_files_have_counts(tmp_path: Path) -> None:
    write(pa.table({"id": [1]}), tmp_path / "0.parquet")
    write(pa.table({"late": ["x"], "id": [2]}), tmp_path / "1.parquet")
    write(pa.table({"id": [3], "void": pa.nulls(1)}), tmp_path / "2.parquet")
    expected = pa.table({"id": [1, 2, 3], "late": [None, "x", None], "void": pa.nulls(3)})
    assert_holds(fingerprint_dataset(tmp_path), expected)


def test_a_column_without_a_type_takes_that_of_later_files(tmp_path: Path) -> None:
    write(pa.table({"late": pa.nulls(1)}), tmp_path / "0.parquet")
    write(pa.table({"late": ["x"]}), tmp_path / "1.parquet")
    write(pa.table({"late": pa.nulls(1)}), tmp_path / "2.parquet")
    assert_holds(fingerprint_dataset(tmp_path), pa.table({"late": [None, "x", None]}))


def test_layouts_may_differ_from_file_to_file(tmp_path: Path) -> None:
    noon = dt.datetime(2020, 1, 1, 12)
    for i, (text, time) in enumerate(
        [
            (pa.array(["a"]), pa.array([noon], pa.timestamp("ms"))),
            (pa.array(["b"], pa.large_string()), pa.array([1], pa.timestamp("ns"))),
            (pa.array(["c"]).dictionary_encode(), pa.array([noon], pa.timestamp("us"))),
            (pa.nulls(1), pa.nulls(1)),
        ]
    ):
        write(pa.table({"text": text, "time": time}), tmp_path / f"{i}.parquet")
    nanoseconds = pa.array([noon, None, noon, None], pa.timestamp("ns")).cast(pa.int64()).to_pylist()
    nanoseconds[1] = 1
    expected = pa.table(
        {"text": ["a", "b", "c", None], "time": pa.array(nanoseconds).cast(pa.timestamp("ns"))}
    )
    assert_holds(fingerprint_dataset(tmp_path), expected)


def test_files_that_disagree_about_a_type(tmp_path: Path) -> None:
    write(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "0.parquet")
    write(pa.table({"id": pa.array([1], pa.int64())}), tmp_path / "1.parquet")
    error = failed(tmp_path)
    assert error.startswith("column 'id': the file ")
    assert error.endswith("1.parquet has int64 where files before it have int32")


def test_a_column_in_files_and_folders(tmp_path: Path) -> None:
    write(pa.table({"k": pa.array([1], pa.int32()), "v": [1]}), tmp_path / "k=2" / "0.parquet")
    assert failed(tmp_path).startswith(
        "column 'k': this column stands in the names of folders and in the file"
    )


def test_rows_without_columns_count(tmp_path: Path) -> None:
    write(TABLE.select([]), tmp_path / "0.parquet")
    if pq.read_metadata(tmp_path / "0.parquet").num_rows == 3:
        assert_holds(fingerprint_dataset(tmp_path), TABLE.select([]))


def test_no_files(tmp_path: Path) -> None:
    assert failed(tmp_path) == f"no parquet files under {tmp_path}"
    assert "FileNotFoundError" in failed(tmp_path / "missing")
    assert "could not all be read" in failed("nosuchscheme://x")


def test_a_file_that_is_cut_off_or_something_else(tmp_path: Path) -> None:
    write(TABLE, tmp_path / "0.parquet")
    (tmp_path / "1.parquet").write_bytes((tmp_path / "0.parquet").read_bytes()[:-20])
    error = failed(tmp_path)
    assert "1.parquet failed before the first row" in error
    (tmp_path / "1.parquet").write_text("not parquet")
    assert "1.parquet failed" in failed(tmp_path)


def test_a_file_damaged_inside_says_after_how_many_rows(tmp_path: Path) -> None:
    for i in range(2):
        write(
            pa.table({"x": range(1000)}), tmp_path / f"{i}.parquet", compression="none", use_dictionary=False
        )
    damaged = bytearray((tmp_path / "1.parquet").read_bytes())
    damaged[4:60] = b"\xff" * 56
    (tmp_path / "1.parquet").write_bytes(damaged)
    got = fingerprint_dataset(tmp_path)
    assert got.data_hash is None
    assert got.error is not None
    assert "1.parquet failed after 1000 rows" in got.error
    assert got.row_count == 2000  # the footers tell
    assert got.columns == (("x", "int64"),)


def test_a_delta_table_is_refused(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path, TABLE)
    deltalake.write_deltalake(tmp_path, TABLE, mode="overwrite")
    assert "is a Delta table" in failed(tmp_path)
    assert "is a Delta table" in failed(f"file://{tmp_path}")
    # What the message says to do.
    read = deltalake.DeltaTable(tmp_path).scan()
    assert fingerprint(read).data_hash == fingerprint(TABLE).data_hash


@pytest.mark.parametrize("name", ["ipc", "arrow", "feather", "orc", "csv"])
def test_other_formats(tmp_path: Path, name: str) -> None:
    table = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    path = tmp_path / "data" / f"0.{name}"
    path.parent.mkdir()
    if name == "csv":
        pyarrow.csv.write_csv(table, path)
    elif name == "orc":
        orc = pytest.importorskip("pyarrow.orc")
        orc.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, path)
    assert_holds(fingerprint_dataset(path.parent, format=name), table)


def test_an_unknown_format_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected one of 'parquet'"):
        fingerprint_dataset(tmp_path, format="delta")


def test_progress_is_told_and_what_it_raises_passes_through(tmp_path: Path) -> None:
    for i in range(3):
        write(TABLE, tmp_path / f"{i}.parquet")
    seen: list[tuple[int, int | None]] = []
    fingerprint_dataset(tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 9), (6, 9), (9, 9)]

    def broken(done: int, total: int | None) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fingerprint_dataset(tmp_path, progress=broken)


def test_a_type_that_is_not_defined_leaves_the_rows(tmp_path: Path) -> None:
    write(pa.table({"d": pa.array([1, 2], pa.duration("s"))}), tmp_path / "0.parquet")
    got = fingerprint_dataset(tmp_path)
    assert got.error is not None
    assert got.error.startswith("column 'd' (duration[s])")
