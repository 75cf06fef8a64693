"""One Delta table read by Spark and by delta-rs: the same rows and one hash, or a refusal that says why."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest
from dagster import AssetSpec, asset

from ubunye_orchestrate.dagster_io.receipts.delta_evidence import delta_version, note_of_commit
from ubunye_orchestrate.dagster_io.storage import delta
from ubunye_orchestrate.dagster_io.storage.io_managers import DeltaIOManager
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

D = decimal.Decimal
COLUMNS = "id bigint, s string, p string, m map<string,int>, a array<struct<x:double,y:timestamp>>"
ROWS = (
    "select id, concat('s', id), if(id % 2 = 0, 'e', null), map('k', cast(id as int)), "
    "array(struct(cast(id as double), timestamp'2024-01-01 00:00:00')) from range(20)"
)


def by_spark(spark: SparkSession, place: Path) -> Any:
    return fingerprint(spark.read.format("delta").load(str(place)))


@pytest.fixture(scope="module")
def awkward(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Deletion vectors, columns that were renamed (nested ones too), dropped and added, and later rows."""
    place = tmp_path_factory.mktemp("awkward") / "data" / "awkward"
    table = f"delta.`{place}`"
    spark.sql(
        f"create table {table} ({COLUMNS}) using delta partitioned by (p) tblproperties "
        "('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"insert into {table} {ROWS}")
    spark.sql(f"delete from {table} where id in (3, 4, 11)")
    spark.sql(f"alter table {table} rename column s to `the s`")
    spark.sql(f"alter table {table} rename column a.element.x to z")
    spark.sql(f"alter table {table} drop column m")
    spark.sql(f"alter table {table} add column m date")
    spark.sql(f"insert into {table} select 99, 't', 'e', null, date'1582-10-10'")
    return place


def test_deletion_vectors_and_mapped_columns_are_read_as_spark_reads_them(
    awkward: Path, spark: SparkSession, project: Project
) -> None:
    expected = by_spark(spark, awkward)
    assert (expected.error, expected.row_count) == (None, 18)
    features = deltalake.DeltaTable(str(awkward)).protocol().reader_features
    assert set(features or ()) == {"deletionVectors", "columnMapping"}

    @asset(deps=[])
    def user(awkward: pa.Table) -> pa.Table:
        assert sorted(awkward["id"].to_pylist()) == [*(i for i in range(20) if i not in (3, 4, 11)), 99]
        assert awkward.column_names == ["id", "the s", "p", "a", "m"]
        return awkward

    manager = DeltaIOManager(base_path=str(awkward.parent), receipts=project.receipts)
    project.run([AssetSpec("awkward"), user], manager)
    record = project.receipt("user")
    assert record.inputs[0].data_hash == record.outputs[0].data_hash == expected.data_hash
    version = record.inputs[0].source_version or {}
    newest = spark.sql(f"describe history delta.`{awkward}` limit 1").collect()[0].asDict(recursive=True)
    by_its_history = delta_version(newest)
    assert {**version, "timestamp": None} == {**by_its_history, "timestamp": None}
    # delta-rs has the commit's own time, Spark that of its file.
    apart = [dt.datetime.fromisoformat(one["timestamp"]) for one in (version, by_its_history)]
    assert abs(apart[0] - apart[1]) < dt.timedelta(seconds=5)


def test_such_a_table_is_written_by_both(
    awkward: Path, spark: SparkSession, project: Project, tmp_path: Path
) -> None:
    place = tmp_path / "data" / "shared"
    spark.sql(
        f"create table delta.`{place}` (day string, v bigint) using delta tblproperties "
        "('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"insert into delta.`{place}` values ('a', 1), ('a', 2), ('b', 3)")
    spark.sql(f"delete from delta.`{place}` where v = 1")
    base = delta.open_table(str(place), {})
    schema = pa.schema([("v", pa.int64()), ("day", pa.string())])

    @asset
    def shared() -> pa.Table:
        return pa.table({"v": [7, 8], "day": ["b", "c"]}, schema=schema)

    manager = DeltaIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
    run = project.run([shared], manager)
    stored = project.receipt("shared").outputs[0]
    assert by_spark(spark, place).data_hash == stored.data_hash
    assert base.reader().read_all().to_pylist() == [{"day": "a", "v": 2}, {"day": "b", "v": 3}]
    newest = spark.sql(f"describe history delta.`{place}` limit 1").collect()[0].asDict(recursive=True)
    note = note_of_commit(newest)
    assert note is not None
    assert (note.run_id, note.asset) == (run.run_id, "shared")


ALL = pa.table(
    {
        "f": pa.array([0.1, float("nan"), None, -0.0]),
        "f32": pa.array([1234567.8, None, float("inf"), -0.0], pa.float32()),
        "at": pa.array([0, 1, -62135596800 * 10**6, None], pa.timestamp("us", "UTC")),
        "naive": pa.array([0, 1, -62135596800 * 10**6, None], pa.timestamp("us")),
        "d": pa.array([D("1.50"), None, D("2.25"), D("-0.01")]),
        "u": pa.array([2**64 - 1, None, 0, 1], pa.uint64()),
        "m": pa.array([[("b", 1), ("a", None)], None, [], []], pa.map_(pa.string(), pa.int64())),
        "bin": pa.array([b"\x00", None, b"", b"abc"]),
        "st": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 3, "b": "z"}]),
        "day": pa.array([dt.date(1582, 10, 10), dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
        "void": pa.nulls(4),
        "voids": pa.array([[None], None, [], [None]], pa.list_(pa.null())),
        "é 😀,;{}()=\n": pa.array(["a", None, "", "\x00"]),
    }
)


def test_what_the_io_manager_stored_has_one_hash_for_both(
    spark: SparkSession, project: Project, tmp_path: Path
) -> None:
    @asset
    def table() -> pa.Table:
        return ALL

    project.run([table], DeltaIOManager(base_path=str(tmp_path), receipts=project.receipts))
    stored = project.receipt("table").outputs[0]
    found = by_spark(spark, tmp_path / "table")
    assert (found.error, found.columns) == (None, tuple(stored.columns or ()))
    assert found.data_hash == stored.data_hash


@pytest.mark.parametrize(
    ("columns", "values", "told"),
    [
        ("s struct<c:array<char(5)>>", "struct(array('ab'))", "the column 's', a CHAR, which Spark"),
        ("v array<variant>", "array(parse_json('1'))", "the column 'v', a variant"),
    ],
)
def test_columns_that_delta_rs_reads_otherwise_are_refused(
    columns: str, values: str, told: str, spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "table"
    spark.sql(f"create table delta.`{place}` ({columns}, fine varchar(5)) using delta")
    spark.sql(f"insert into delta.`{place}` select {values}, 'x'")
    with pytest.raises(StorageError, match=r"Read the table with SparkIOManager") as raised:
        delta.open_table(str(place), {}).reader().read_all()
    assert f"{place} has {told}" in str(raised.value)


def test_a_feature_that_delta_rs_does_not_know_is_named(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "table"
    spark.sql(
        f"create table delta.`{place}` (id int) using delta "
        "tblproperties ('delta.enableTypeWidening' = 'true')"
    )
    spark.sql(f"insert into delta.`{place}` values (1)")
    spark.sql(f"alter table delta.`{place}` alter column id type bigint")
    with pytest.raises(StorageError) as raised:
        delta.open_table(str(place), {}).reader().read_all()
    told = str(raised.value)
    assert f"{place} cannot be read by delta-rs" in told
    assert "[TypeWidening]" in told
    assert "is read and written with SparkIOManager" in told
