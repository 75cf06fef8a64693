"""The Spark IO manager on Delta: a receipt is of the version that its run committed, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from dagster import AssetIn, asset

from ubunye_orchestrate.dagster_io.delta_evidence import note_of_commit
from ubunye_orchestrate.dagster_io.spark_io_manager import SparkIOManager
from ubunye_orchestrate.dagster_io.spark_session import SparkResource
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "tables"


@pytest.fixture
def manager(project: Project, spark: SparkSession, base: Path) -> SparkIOManager:
    return SparkIOManager(base_path=str(base), spark=SparkResource.of(spark), receipts=project.receipts)


def history(spark: SparkSession, path: Path) -> list[Any]:
    return spark.sql(f"describe history delta.`{path}`").collect()


def test_what_was_stored_is_what_the_receipt_says_and_what_readers_read(
    project: Project, manager: SparkIOManager, spark: SparkSession, base: Path
) -> None:
    @asset(key=["shop", "orders"])
    def orders() -> Any:
        return spark.createDataFrame(
            [(1, "a", 0.5), (2, None, float("nan"))], "id bigint, s string, x double"
        )

    @asset(ins={"frame": AssetIn(["shop", "orders"])})
    def by_name(frame: Any) -> Any:
        return frame.groupBy("s").count()

    result = project.run([orders, by_name], manager)
    stored = project.receipt("shop/orders").outputs[0]
    expected = fingerprint(pa.table({"id": [1, 2], "s": ["a", None], "x": [0.5, float("nan")]}))
    assert stored.data_hash == expected.data_hash
    assert (stored.format, stored.hash_basis, stored.hash_scope) == ("delta", "materialised", "stored_table")
    assert stored.location == str(base / "shop" / "orders")
    version = stored.source_version or {}
    assert (version["kind"], version["version"], version["operation"]) == ("delta", 0, "WRITE")
    assert version["metrics"]["numOutputRows"] == 2
    assert version["timestamp"].endswith("+00:00")
    record = project.receipt("by_name")
    read = record.inputs[0]
    assert read.data_hash == stored.data_hash
    assert read.source_version == version
    assert read.source_changed is False
    assert record.backend == "spark"
    assert record.time_zone == "America/New_York"
    assert record.environment is not None
    assert record.environment.java
    note = note_of_commit(history(spark, base / "shop" / "orders")[0].asDict())
    assert note is not None
    assert (note.run_id, note.asset) == (result.run_id, "shop/orders")
    assert project.metadata("shop/orders")["dagster/row_count"] == 2


def test_a_plan_that_gives_other_rows_each_time_is_computed_once(
    project: Project, manager: SparkIOManager, spark: SparkSession, base: Path
) -> None:
    @asset
    def drawn() -> Any:
        return spark.range(20).selectExpr(
            "id", "rand() as x", "uuid() as u", "monotonically_increasing_id() as m"
        )

    project.run([drawn], manager)
    project.run([drawn], manager)
    first, second = (event for event in reversed(project.events("drawn")))
    hashes = [
        fingerprint(spark.read.format("delta").option("versionAsOf", n).load(str(base / "drawn"))).data_hash
        for n in (0, 1)
    ]
    told = [event.asset_materialization.metadata["ubunye/data_hash"].value for event in (first, second)]  # type: ignore[union-attr]
    assert told == hashes
    assert hashes[0] != hashes[1]
