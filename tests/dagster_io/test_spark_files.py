"""The Spark IO manager on parquet: folders replaced whole, hashed from the files that stand there."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates a context.
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from dagster import AssetExecutionContext, BackfillPolicy, StaticPartitionsDefinition, asset

from ubunye_orchestrate.dagster_io import spark_tables
from ubunye_orchestrate.dagster_io.io_managers import ParquetIOManager
from ubunye_orchestrate.dagster_io.spark_files import ParquetFolders
from ubunye_orchestrate.dagster_io.spark_io_manager import SparkIOManager
from ubunye_orchestrate.dagster_io.spark_session import SparkResource
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

REGIONS = StaticPartitionsDefinition(["eu", "us/w %x"])


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "tables"


@pytest.fixture
def manager(project: Project, spark: "SparkSession", base: Path) -> SparkIOManager:
    return SparkIOManager(
        base_path=str(base), format="parquet", spark=SparkResource.of(spark), receipts=project.receipts
    )


def test_files_are_replaced_whole_and_a_plan_is_computed_once(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    bound = [2.0]

    @asset
    @expect.between("x", 0, 1)
    def drawn() -> Any:
        return spark.range(10).selectExpr("id", f"rand() * {bound[0]} as x")

    bound[0] = 1.0
    project.run([drawn], manager)
    record = project.receipt("drawn")
    stored = record.outputs[0]
    first = spark.read.parquet(str(base / "drawn"))
    assert stored.data_hash == fingerprint(first).data_hash
    assert (stored.format, stored.hash_basis, stored.hash_scope) == (
        "parquet",
        "materialised",
        "stored_table",
    )
    files = list((base / "drawn").glob("*.parquet"))
    assert {name: (stored.source_version or {})[name] for name in ("kind", "files", "bytes")} == {
        "kind": "files",
        "files": len(files),
        "bytes": sum(file.stat().st_size for file in files),
    }
    assert [(one["passed"], one.get("checked")) for one in record.expectations] == [(True, None)]
    # The rule is held against what is staged: a table that breaks it never takes the place of the old one.
    bound[0] = 9.0
    assert not project.run([drawn], manager, raise_on_error=False).success
    assert fingerprint(spark.read.parquet(str(base / "drawn"))).data_hash == stored.data_hash
    assert [path.name for path in base.iterdir()] == ["drawn"]
    bound[0] = 1.0
    project.run([drawn], manager)
    again = project.receipt("drawn").outputs[0].data_hash
    assert again != stored.data_hash
    assert again == fingerprint(spark.read.parquet(str(base / "drawn"))).data_hash


def test_a_write_that_fails_leaves_the_old_table(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    plans = ["id", "cast(raise_error('the user''s own') as bigint) as id"]

    @asset
    def table() -> Any:
        return spark.range(3).selectExpr(plans[0])

    project.run([table], manager)
    plans.pop(0)
    result = project.run([table], manager, raise_on_error=False)
    assert "the user's own" in str(result.failure_data_for_node("table").error)  # type: ignore[union-attr]
    assert "the user's own" in (project.mirrored("table")[0].error or "")
    assert spark.read.parquet(str(base / "table")).count() == 3


@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")
def test_each_partition_is_a_folder(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    @asset(
        partitions_def=REGIONS,
        metadata={"partition_expr": "r"},
        backfill_policy=BackfillPolicy.single_run(),
    )
    def sales(context: AssetExecutionContext) -> Any:
        return {
            key: spark.createDataFrame([(n, key)], "x int, r string")
            for n, key in enumerate(context.partition_keys)
        }

    @asset
    def total(sales: pd.DataFrame) -> Any:
        assert sorted(sales.r) == ["eu", "us/w %x"]
        return spark.createDataFrame(sales)

    tags = {"dagster/asset_partition_range_start": "eu", "dagster/asset_partition_range_end": "us/w %x"}
    project.run([sales], manager, tags=tags)
    project.run([total, sales], manager, selection=[total])
    assert sorted(path.name for path in (base / "sales").iterdir()) == ["eu", "us%2Fw%20%25x"]
    whole, read = project.mirrored("sales")[0].outputs[0], project.receipt("total").inputs[0]
    assert read.lane_sums == whole.lane_sums
    assert (read.hash_basis, read.row_count) == ("materialised", 2)
    assert (read.source_version or {})["kind"] == "none"
    assert project.receipt("sales", "eu").outputs[0].row_count == 1


def test_an_input_says_when_its_files_moved_between_the_reading_and_the_hash(
    project: Project,
    manager: SparkIOManager,
    spark: "SparkSession",
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @asset
    def source() -> Any:
        return spark.range(3)

    @asset
    def taken(source: Any) -> Any:
        return source

    project.run([source], manager)
    hashed = spark_tables.fingerprint

    def move_first(frame: Any, **options: Any) -> Any:
        spark.range(5).write.mode("append").parquet(str(base / "source"))
        return hashed(frame, **options)

    project.run([taken, source], manager, selection=[taken])
    monkeypatch.setattr(spark_tables, "fingerprint", move_first)
    project.run([taken, source], manager, selection=[taken])
    moved, still = (record.inputs[0] for record in project.mirrored("taken"))
    assert still.source_changed is False
    assert moved.source_changed is True
    assert moved.source_note == "the files moved between the reading and the hash"
    # A frame keeps to the files that it found: those that came later are not in the hash.
    assert moved.row_count == 3


def test_what_spark_appends_is_hashed_as_it_was_handed_over(
    project: Project, spark: "SparkSession", base: Path
) -> None:
    manager = SparkIOManager(
        base_path=str(base),
        format="parquet",
        mode="append",
        hash_table=True,
        spark=SparkResource.of(spark),
        receipts=project.receipts,
    )

    @asset
    def log() -> Any:
        return spark.range(2)

    project.run([log], manager)
    project.run([log], manager)
    whole, added = project.receipt("log").outputs
    assert (whole.name, whole.row_count, whole.hash_scope) == ("log", 4, "stored_table")
    assert whole.data_hash == fingerprint(spark.read.parquet(str(base / "log"))).data_hash
    assert (added.name, added.row_count, added.hash_scope) == ("log (appended)", 2, "passed_rows")
    assert added.hash_basis == "recomputed"
    assert added.data_hash == fingerprint(spark.range(2)).data_hash


def test_a_spark_that_does_not_see_our_files_writes_by_itself(
    project: Project,
    manager: SparkIOManager,
    spark: "SparkSession",
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ParquetFolders, "_sees", lambda *_: False)

    @asset
    @expect.not_null("id")
    def table() -> Any:
        return spark.range(3)

    for _ in range(2):
        project.run([table], manager)
    record = project.receipt("table")
    assert record.outputs[0].data_hash == fingerprint(spark.range(3)).data_hash
    assert [one.get("checked") for one in record.expectations] == ["plan"]


def test_both_engines_leave_the_same_hashes(
    project: Project, manager: SparkIOManager, spark: "SparkSession", tmp_path: Path
) -> None:
    rows = pd.DataFrame({"id": [1, 2], "s": ["a", None], "x": [0.1, float("inf")]})

    @asset
    def by_pandas() -> pd.DataFrame:
        return rows

    @asset
    def by_spark() -> Any:
        return spark.createDataFrame(rows, "id bigint, s string, x double")

    project.run([by_pandas], ParquetIOManager(base_path=str(tmp_path / "pandas"), receipts=project.receipts))
    project.run([by_spark], manager)
    one, other = (project.receipt(name).outputs[0] for name in ("by_pandas", "by_spark"))
    assert (one.data_hash, one.schema_hash, one.lane_sums) == (
        other.data_hash,
        other.schema_hash,
        other.lane_sums,
    )
