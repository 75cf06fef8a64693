"""The Spark IO manager on Delta: a receipt is of the version that its run committed, nothing else."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates a context.
import importlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from dagster import AssetExecutionContext, AssetIn, BackfillPolicy, StaticPartitionsDefinition, asset
from typer.testing import CliRunner

from ubunye_orchestrate.dagster_io.receipts.delta_evidence import note_of_commit
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.storage.spark_delta import DeltaTables
from ubunye_orchestrate.dagster_io.storage.spark_io_manager import SparkIOManager
from ubunye_orchestrate.dagster_io.storage.spark_session import SparkResource
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "tables"


@pytest.fixture
def manager(project: Project, spark: "SparkSession", base: Path) -> SparkIOManager:
    return SparkIOManager(base_path=str(base), spark=SparkResource.of(spark), receipts=project.receipts)


def history(spark: "SparkSession", path: Path) -> list[Any]:
    return spark.sql(f"describe history delta.`{path}`").collect()


def test_what_was_stored_is_what_the_receipt_says_and_what_readers_read(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
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
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
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


def test_an_append_is_hashed_from_the_files_that_it_added(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    counts = [3, 2, 0]
    rows = []

    @asset(metadata={"mode": "append"})
    def log() -> Any:
        return spark.range(rows[-1]).selectExpr("id", "rand() as x")

    for count in counts:
        rows.append(count)
        project.run([log], manager)
    first, second, nothing = (record.outputs[0] for record in reversed(project.mirrored("log")))
    path = str(base / "log")
    old, new = (spark.read.format("delta").option("versionAsOf", n).load(path) for n in (0, 1))
    assert first.data_hash == fingerprint(old).data_hash
    assert second.data_hash == fingerprint(new.exceptAll(old)).data_hash
    assert [(one.row_count, one.hash_scope, one.hash_basis) for one in (first, second, nothing)] == [
        (n, "passed_rows", "materialised") for n in counts
    ]
    assert [(one.source_version or {})["version"] for one in (first, second, nothing)] == [0, 1, 1]
    assert nothing.source_note == "no row was appended, and no version made"


@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")
def test_an_append_is_told_from_a_version_that_somebody_has_cached(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    rows = [(1, "a"), (2, "a"), (3, "b")]

    @asset(
        partitions_def=StaticPartitionsDefinition(["a", "b"]),
        metadata={"partition_expr": "k", "mode": "append"},
        backfill_policy=BackfillPolicy.single_run(),
    )
    def log() -> Any:
        return spark.createDataFrame(rows, "id bigint, k string")

    tags = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}
    project.run([log], manager, tags=tags)
    cached = SparkResource.of(spark).pinned(str(base / "log")).frame.cache()
    try:
        assert cached.count() == 3
        rows[:] = [(9, "a"), (8, "b")]
        project.run([log], manager, tags=tags)
    finally:
        cached.unpersist()
    for key, number in (("a", 9), ("b", 8)):
        stored = project.receipt("log", key).outputs[0]
        assert stored.data_hash == fingerprint(pa.table({"id": [number], "k": [key]})).data_hash


def test_an_append_of_a_table_whose_column_hides_the_one_of_the_files(
    project: Project, manager: SparkIOManager, spark: "SparkSession"
) -> None:
    @asset(metadata={"mode": "append"})
    def log() -> Any:
        return spark.range(2).selectExpr("id as `_metadata`", "id as x")

    for _ in range(2):
        project.run([log], manager)
    expected = fingerprint(pa.table({"_metadata": [0, 1], "x": [0, 1]})).data_hash
    outputs = [record.outputs[0] for record in reversed(project.mirrored("log"))]
    assert [(one.hash_error, one.data_hash) for one in outputs] == [(None, expected)] * 2
    assert [(one.source_version or {})["version"] for one in outputs] == [0, 1]


def test_the_version_is_kept_where_its_rows_cannot_be_read(
    project: Project, manager: SparkIOManager, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: Any) -> Any:
        raise RuntimeError("the executor is gone")

    monkeypatch.setattr(DeltaTables, "read", lost)

    @asset
    def table() -> Any:
        return spark.range(3)

    assert project.run([table], manager).success
    output = project.receipt("table").outputs[0]
    assert output.data_hash is None
    assert (output.source_version or {})["version"] == 0


def test_the_whole_table_after_an_append_is_hashed_if_asked(
    project: Project, spark: "SparkSession", base: Path
) -> None:
    manager = SparkIOManager(
        base_path=str(base),
        mode="append",
        hash_table=True,
        spark=SparkResource.of(spark),
        receipts=project.receipts,
    )

    @asset
    def log() -> Any:
        return spark.range(2)

    @asset
    def read(log: Any) -> Any:
        return log

    project.run([log], manager)
    project.run([log, read], manager)
    whole, added = project.receipt("log").outputs
    assert (whole.name, whole.hash_scope, whole.row_count) == ("log", "stored_table", 4)
    assert (added.name, added.hash_scope, added.row_count) == ("log (appended)", "passed_rows", 2)
    assert project.receipt("read").inputs[0].data_hash == whole.data_hash


def test_an_input_is_pinned_to_the_version_that_it_was_resolved_to(
    project: Project,
    manager: SparkIOManager,
    spark: "SparkSession",
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @asset
    def source() -> Any:
        return spark.range(3)

    seen = []

    @asset
    def taken(source: Any) -> Any:
        seen.append(source.count())
        return source

    project.run([source], manager)
    resolve = DeltaTables.resolve

    def then_another_commits(self: DeltaTables, session: Any, place: Any) -> dict[str, Any]:
        version = resolve(self, session, place)
        spark.range(5).write.format("delta").mode("overwrite").save(str(base / "source"))
        return version

    monkeypatch.setattr(DeltaTables, "resolve", then_another_commits)
    project.run([taken, source], manager, selection=[taken])
    read = project.receipt("taken").inputs[0]
    assert seen == [3]
    assert (read.row_count, read.source_changed) == (3, False)
    assert (read.source_version or {})["version"] == 0
    assert read.source_note == "pinned to version 0, for the hash and for the asset"
    assert read.data_hash == project.receipt("source").outputs[0].data_hash
    assert spark.read.format("delta").load(str(base / "source")).count() == 5


def test_a_table_of_a_catalog(project: Project, spark: "SparkSession") -> None:
    manager = SparkIOManager(
        database="spark_catalog.shop", spark=SparkResource.of(spark), receipts=project.receipts
    )
    rows = {"eu": 1, "us": 2}

    @asset(
        key=["raw", "orders"],
        partitions_def=StaticPartitionsDefinition(list(rows)),
        metadata={"partition_expr": "region"},
    )
    def orders(context: AssetExecutionContext) -> Any:
        region = context.partition_key
        return spark.createDataFrame([(n, region) for n in range(rows[region])], "n int, region string")

    @asset(ins={"frame": AssetIn(["raw", "orders"])})
    def total(frame: Any) -> Any:
        return frame.selectExpr("count(*) as n")

    spark.sql("create schema if not exists shop")
    try:
        for region in rows:
            project.run([orders], manager, partition_key=region)
        rows["us"] = 5
        project.run([orders], manager, partition_key="us")
        for _ in range(2):
            project.run([total, orders], manager, selection=[total])
        assert spark.table("shop.raw__orders").count() == 6
        output = project.receipt("raw/orders", "us").outputs[0]
        assert output.location == "spark_catalog.shop.raw__orders"
        assert (output.row_count, output.hash_scope) == (5, "stored_partition")
        assert (output.source_version or {})["version"] == 2
        read = project.receipt("total").inputs[0]
        sums = [project.receipt("raw/orders", region).outputs[0].lane_sums for region in rows]
        assert read.lane_sums == tuple(
            str(sum(int(one[lane]) for one in sums if one) % 2**64) for lane in (0, 1)
        )
        assert [row.n for row in spark.table("shop.total").collect()] == [6]
        assert project.receipt("total").outputs[0].row_count == 1
    finally:
        spark.sql("drop schema shop cascade")


def test_a_table_that_vanished_is_named_and_leaves_the_record_of_a_failure(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    @asset
    def source() -> Any:
        return spark.range(3)

    @asset
    def taken(source: Any) -> Any:
        return source

    project.run([source], manager)
    shutil.rmtree(base / "source")
    result = project.run([taken, source], manager, selection=[taken], raise_on_error=False)
    assert not result.success
    record = project.mirrored("taken")[0]
    assert record.status == "error"
    assert f"MissingTableError: no Delta table {base / 'source'}" in (record.error or "")


def test_a_hash_that_fails_fails_no_write(
    project: Project,
    manager: SparkIOManager,
    spark: "SparkSession",
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lost(*_: Any) -> Any:
        raise RuntimeError("the executor is gone")

    monkeypatch.setattr(DeltaTables, "_commit_of", lost)

    @asset
    def table() -> Any:
        return spark.range(3)

    assert project.run([table], manager).success
    record = project.receipt("table")
    assert (record.status, record.outputs[0].data_hash) == ("success", None)
    assert record.outputs[0].hash_error == (
        "not hashed: what was stored cannot be read back: RuntimeError: the executor is gone"
    )
    assert spark.read.format("delta").load(str(base / "table")).count() == 3


def test_a_hash_is_taken_from_the_receipt_of_the_version_that_is_read(
    project: Project, spark: "SparkSession", base: Path
) -> None:
    receipts = Receipts(root=str(project.root), reuse_hashes=True)
    manager = SparkIOManager(base_path=str(base), spark=SparkResource.of(spark), receipts=receipts)

    @asset
    def source() -> Any:
        return spark.range(3)

    @asset
    def taken(source: Any) -> Any:
        return source

    first = project.run([source, taken], manager)
    spark.range(2).write.format("delta").mode("append").save(str(base / "source"))
    project.run([taken, source], manager, selection=[taken])
    moved, read = (record.inputs[0] for record in project.mirrored("taken"))
    assert read.hash_reused_from == first.run_id
    assert read.data_hash == project.receipt("source").outputs[0].data_hash
    assert (moved.hash_reused_from, moved.row_count) == (None, 5)


def test_the_engines_own_program_reads_what_spark_left(
    project: Project, manager: SparkIOManager, spark: "SparkSession"
) -> None:
    @asset
    def source() -> Any:
        return spark.range(3)

    @asset
    def taken(source: Any) -> Any:
        return source

    project.run([source, taken], manager)
    engine = importlib.import_module("ubunye.cli.main")
    address = ["-d", str(project.root), "-u", "default", "-p", "default", "-t", "taken"]
    said = CliRunner().invoke(engine.app, ["lineage", "trace", *address])
    assert said.exit_code == 0, said.output
    assert "source" in said.output
