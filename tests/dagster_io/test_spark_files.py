"""The Spark IO manager on parquet: folders replaced whole, hashed from the files that stand there."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates a context.
import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from dagster import AssetExecutionContext, BackfillPolicy, StaticPartitionsDefinition, asset
from fsspec.implementations.local import LocalFileSystem

from ubunye_orchestrate.dagster_io.storage import spark_tables
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.dagster_io.storage.spark_files import ParquetFolders
from ubunye_orchestrate.dagster_io.storage.spark_io_manager import SparkIOManager
from ubunye_orchestrate.dagster_io.storage.spark_session import SparkResource
from ubunye_orchestrate.errors import StorageError
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
    plans = ["id", "cast(raise_error('of the user') as bigint) as id"]

    @asset
    def table() -> Any:
        return spark.range(3).selectExpr(plans[0])

    project.run([table], manager)
    plans.pop(0)
    result = project.run([table], manager, raise_on_error=False)
    assert "of the user" in str(result.failure_data_for_node("table").error)  # type: ignore[union-attr]
    assert "of the user" not in (project.mirrored("table")[0].error or ""), "it may be made of cells"
    assert spark.read.parquet(str(base / "table")).count() == 3


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_folder_that_cannot_take_its_place_costs_no_data(
    project: Project,
    manager: SparkIOManager,
    spark: "SparkSession",
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
    comes_back: bool,
) -> None:
    rows = [3]

    @asset
    def table() -> Any:
        return spark.range(rows[0])

    project.run([table], manager)
    move = LocalFileSystem.mv

    def moved(self: Any, start: str, end: str, **options: Any) -> None:
        if start.endswith(".new") or (start.endswith(".old") and not comes_back):
            raise PermissionError(13, "Permission denied")
        move(self, start, end, **options)

    monkeypatch.setattr(LocalFileSystem, "mv", moved)
    rows[0] = 5
    result = project.run([table], manager, raise_on_error=False)
    told = str(result.failure_data_for_node("table").error)  # type: ignore[union-attr]
    (left,) = base.iterdir()
    if comes_back:
        assert f"{base / 'table'} cannot be written: Permission denied" in told
        assert left.name == "table"
    else:
        assert f"the table that was there is now {left}: move it back" in told
        assert left.name.endswith(".old")
    assert spark.read.parquet(*map(str, left.glob("*.parquet"))).count() == 3


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
    if spark.version < "4":
        with pytest.raises(StorageError, match="needs PySpark 4"):
            project.run([total, sales], manager, selection=[total])
        return
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
    hashed = spark_tables.fingerprint_within

    def move_first(frame: Any, *within: Any) -> Any:
        spark.range(5).write.mode("append").parquet(str(base / "source"))
        return hashed(frame, *within)

    project.run([taken, source], manager, selection=[taken])
    monkeypatch.setattr(spark_tables, "fingerprint_within", move_first)
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


def test_one_task_on_two_engines_leaves_the_same_hashes(
    project: Project, spark: "SparkSession", tmp_path: Path
) -> None:
    orders = [(1, "eu", 0.1, datetime.date(2024, 1, 1)), (2, None, float("inf"), None), (3, "eu", -0.0, None)]
    columns = ["id", "region", "price", "day"]
    schema = "id bigint, region string, price double, day date"

    def tasks(on_spark: bool) -> list[Any]:
        kind: Any = Any if on_spark else pd.DataFrame

        @asset(name="orders")
        def raw() -> Any:
            if on_spark:
                return spark.createDataFrame(orders, schema)
            return pd.DataFrame(orders, columns=columns)

        @asset
        def cheap(orders: kind) -> Any:
            return orders.where("price < 1") if on_spark else orders[orders.price < 1]

        @asset
        def per_region(cheap: kind) -> Any:
            if on_spark:
                return cheap.groupBy("region").agg({"id": "sum"}).withColumnRenamed("sum(id)", "ids")
            return cheap.groupby("region", as_index=False, dropna=False).agg(ids=("id", "sum"))

        return [raw, cheap, per_region]

    def hashes() -> dict[str, list[tuple[Any, ...]]]:
        records = {name: project.receipt(name) for name in ("orders", "cheap", "per_region")}
        return {
            name: [
                (step.name, step.data_hash, step.schema_hash, step.lane_sums, step.row_count)
                for step in [*record.inputs, *record.outputs]
            ]
            for name, record in records.items()
        }

    project.run(tasks(False), ParquetIOManager(base_path=str(tmp_path / "pandas"), receipts=project.receipts))
    on_pandas = hashes()
    assert all(step[1] is not None for steps in on_pandas.values() for step in steps)
    manager = SparkIOManager(
        base_path=str(tmp_path / "spark"), spark=SparkResource.of(spark), receipts=project.receipts
    )
    project.run(tasks(True), manager)
    assert hashes() == on_pandas
    # The engines are all that changed: what the receipt shows says that the data is the same.
    changes = project.metadata("per_region")["ubunye/changes"]
    assert "backend" in changes, changes


def test_parquet_tables_of_a_catalog(project: Project, spark: "SparkSession") -> None:
    manager = SparkIOManager(
        database="files", format="parquet", spark=SparkResource.of(spark), receipts=project.receipts
    )
    rows = {"eu": [("2024-01-01", 1), ("2024-01-02", 2)], "us": [("2024-01-01", 3)]}

    @asset(
        partitions_def=StaticPartitionsDefinition(list(rows)),
        metadata={"partition_expr": "region"},
    )
    def orders(context: AssetExecutionContext) -> Any:
        region = context.partition_key
        return spark.createDataFrame(
            [(region, day, n) for day, n in rows[region]], "region string, day string, n int"
        ).selectExpr("n", "region", "day", "rand() as x")

    @asset
    def total(orders: Any) -> Any:
        return orders.groupBy("region").count()

    spark.sql("create schema files")
    try:
        for region in rows:
            project.run([orders], manager, partition_key=region)
        kept = project.receipt("orders", "us").outputs[0]
        rows["eu"] = [("2024-01-02", 9)]
        project.run([orders], manager, partition_key="eu")
        project.run([total, orders], manager, selection=[total])
        project.run([total, orders], manager, selection=[total])
        stored = spark.table("files.orders")
        assert sorted((row.region, row.n) for row in stored.collect()) == [("eu", 9), ("us", 3)]
        for region in rows:
            output = project.receipt("orders", region).outputs[0]
            assert output.data_hash == fingerprint(stored.where(f"region = '{region}'")).data_hash
            assert output.location == "files.orders"
        assert project.receipt("orders", "us").outputs[0].data_hash == kept.data_hash
        assert project.receipt("total").inputs[0].row_count == 2
        rows["eu"] = []
        project.run([orders], manager, partition_key="eu")
        spark.sql("refresh table files.orders")
        assert [row.region for row in spark.table("files.orders").collect()] == ["us"]
        assert project.receipt("orders", "eu").outputs[0].row_count == 0
        listed = spark.sql("show tables in files").collect()
        assert {row.tableName for row in listed if not row.isTemporary} == {"orders", "total"}
    finally:
        spark.sql("drop schema files cascade")


@pytest.mark.parametrize(
    ("mode", "later", "told"),
    [
        ("overwrite", "2.5D as n", "n is double here and int there"),
        ("overwrite", "2 as n, 'x' as w", "w (string) is not there"),
        ("overwrite", "2L as n", "n is bigint here and int there"),
        ("append", "2.5D as n", "n is double here and int there"),
        ("overwrite", "cast(2 as tinyint) as N", None),
        ("append", "null as n", None),
    ],
)
def test_what_a_table_of_a_catalog_cannot_hold_as_it_is_is_refused(
    project: Project, spark: "SparkSession", mode: str, later: str, told: str | None
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.caseSensitive", "false")
    manager = SparkIOManager(
        database="kept", format="parquet", spark=SparkResource.of(session), receipts=project.receipts
    )
    given = {"eu": "1 as n", "us": later}

    @asset(
        partitions_def=StaticPartitionsDefinition(["eu", "us"]),
        metadata={"partition_expr": "region", "mode": mode},
    )
    def sales(context: AssetExecutionContext) -> Any:
        return session.sql(f"select '{context.partition_key}' as region, {given[context.partition_key]}")

    spark.sql("create schema kept")
    try:
        project.run([sales], manager, partition_key="eu")
        result = project.run([sales], manager, partition_key="us", raise_on_error=False)
        session.sql("refresh table kept.sales")
        rows = session.table("kept.sales").count()
        if told is None:
            assert (result.success, rows) == (True, 2)
        else:
            error = str(result.failure_data_for_node("sales").error)  # type: ignore[union-attr]
            assert f"the frame does not fit the table kept.sales: {told}; " in error
            assert rows == 1
    finally:
        spark.sql("drop schema kept cascade")


def test_a_folder_that_holds_the_tables_of_others_is_not_replaced(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    @asset(key=["shop"])
    def shop() -> Any:
        return spark.range(3)

    @asset(key=["shop", "orders"])
    def orders() -> Any:
        return spark.range(5)

    project.run([orders], manager)
    result = project.run([shop], manager, raise_on_error=False)
    error = str(result.failure_data_for_node("shop").error)  # type: ignore[union-attr]
    assert f"{base / 'shop'} holds folders (orders), which would be gone with the table" in error
    assert spark.read.parquet(str(base / "shop" / "orders")).count() == 5


def test_what_somebody_has_cached_of_a_folder_is_not_what_is_read_later(
    project: Project, manager: SparkIOManager, spark: "SparkSession"
) -> None:
    rows = [1]
    seen: list[int] = []

    @asset
    def orders() -> Any:
        return spark.range(rows[0])

    @asset
    def used(orders: Any) -> Any:
        seen.append(orders.cache().count())
        return orders

    try:
        for rows[0] in (1, 5):
            project.run([orders, used], manager)
    finally:
        spark.catalog.clearCache()
    assert seen == [1, 5]
    stored = project.receipt("orders").outputs[0]
    read = project.receipt("used").inputs[0]
    assert stored.row_count == 5
    assert (read.row_count, read.data_hash) == (5, stored.data_hash)
    assert (read.source_version or {})["files"] >= 1
    assert read.source_changed is False


def test_a_column_that_has_no_hash_is_stored_all_the_same(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    if spark.version < "4":
        pytest.skip("Spark has variants from 4.0 on")

    @asset
    def table() -> Any:
        return spark.sql("select 1 as id, parse_json('{}') as v")

    project.run([table], manager)
    output = project.receipt("table").outputs[0]
    assert output.data_hash is None
    assert "column 'v' (variant)" in (output.hash_error or "")
    assert spark.read.parquet(str(base / "table")).count() == 1
