"""Partitions as rows of one table: only those of the run are replaced, and each has a hash of its own."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates a context.
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from dagster import (
    AssetExecutionContext,
    AssetSelection,
    BackfillPolicy,
    DailyPartitionsDefinition,
    DynamicPartitionsDefinition,
    HourlyPartitionsDefinition,
    MonthlyPartitionsDefinition,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
    asset,
)
from pyspark.sql import functions

from ubunye_orchestrate.dagster_io.drift.integrity import build_integrity_checks
from ubunye_orchestrate.dagster_io.storage.spark_io_manager import SparkIOManager
from ubunye_orchestrate.dagster_io.storage.spark_partitions import condition, partition_columns
from ubunye_orchestrate.dagster_io.storage.spark_session import SparkResource
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = DailyPartitionsDefinition("2024-01-01", end_date="2024-02-01")
HOURS = HourlyPartitionsDefinition("2024-03-31-00:00", timezone="Europe/Berlin")
REGIONS = StaticPartitionsDefinition(["eu", "ü'\"`\\ x", "7"])
FIRST_DAYS = ["2024-01-01", "2024-01-02", "2024-01-03"]
BOTH = MultiPartitionsDefinition({"day": DAYS, "region": REGIONS})


# --------------------------------------------------------------------------- conditions


def table(**types: str) -> Any:
    return SimpleNamespace(dtypes=list(types.items()), columns=list(types))


@pytest.mark.parametrize(
    ("kind", "definition", "keys", "expected"),
    [
        ("date", DAYS, ["2024-01-02"], "p >= date'2024-01-02' and p < date'2024-01-03'"),
        (
            "date",
            DAYS,
            ["2024-01-03", "2024-01-02", "2024-01-05"],
            "(p >= date'2024-01-02' and p < date'2024-01-04') or "
            "(p >= date'2024-01-05' and p < date'2024-01-06')",
        ),
        (
            "date",
            MonthlyPartitionsDefinition("2024-01-01"),
            ["2024-02-01"],
            "p >= date'2024-02-01' and p < date'2024-03-01'",
        ),
        ("string", DAYS, ["2024-01-02"], "p = '2024-01-02'"),
        ("string", DAYS, ["2024-01-02", "2024-01-03"], "p in ('2024-01-02', '2024-01-03')"),
        (
            "timestamp",
            HOURS,
            ["2024-03-31-01:00"],
            "p >= timestamp'2024-03-31 00:00:00+00:00' and p < timestamp'2024-03-31 01:00:00+00:00'",
        ),
        (
            # The hour before the clocks go forward in Berlin: what they show next is 03:00.
            "timestamp_ntz",
            HOURS,
            ["2024-03-31-01:00"],
            "p >= timestamp_ntz'2024-03-31 01:00:00' and p < timestamp_ntz'2024-03-31 03:00:00'",
        ),
        ("bigint", StaticPartitionsDefinition(["7", "-1"]), ["7", "-1"], "p in (7, -1)"),
        ("int", DynamicPartitionsDefinition(name="ids"), ["7"], "p = 7"),
        ("date", StaticPartitionsDefinition(["2024-01-02"]), ["2024-01-02"], "p = date'2024-01-02'"),
    ],
)
def test_a_key_is_written_as_its_column_is_typed(
    kind: str, definition: Any, keys: list[str], expected: str
) -> None:
    assert condition(table(p=kind), {None: "p"}, definition, keys).replace("`", "") == expected


def test_a_column_may_have_any_name_and_be_an_expression() -> None:
    odd = condition(table(**{"my `day`": "date"}), {None: "my `day`"}, DAYS, ["2024-01-02"])
    assert odd.startswith("`my ``day``` >= date'2024-01-02'")
    made = SimpleNamespace(dtypes=[("t", "timestamp")], columns=["t"], selectExpr=lambda _: table(x="date"))
    told = condition(made, {None: "to_date(t)"}, DAYS, ["2024-01-02"])
    assert told.startswith("(to_date(t)) >= date'2024-01-02'")


def test_each_dimension_has_its_column() -> None:
    frame = table(d="date", r="string", other="int")
    columns = partition_columns({"partition_expr": {"day": "d", "region": "r"}}, BOTH)
    assert columns is not None
    key = MultiPartitionKey({"day": "2024-01-02", "region": "eu"})
    assert condition(frame, columns, BOTH, [key, str(key)]) == (
        "((`d` >= date'2024-01-02' and `d` < date'2024-01-03') and (`r` = 'eu'))"
    )


@pytest.mark.parametrize(
    ("kind", "definition", "key", "said"),
    [
        ("int", REGIONS, "eu", "partition 'eu' is no value of 'p'"),
        ("date", REGIONS, "eu", "partition 'eu' is no value of 'p'"),
        ("double", REGIONS, "eu", "partition_expr 'p' is double; expected string, date"),
        ("date", HOURS, "2024-03-31-01:00", "are parts of a day (01:00); expected a timestamp"),
    ],
)
def test_a_column_that_cannot_hold_the_key_is_named(kind: str, definition: Any, key: str, said: str) -> None:
    with pytest.raises(StorageError) as caught:
        condition(table(p=kind), {None: "p"}, definition, [key])
    assert said in str(caught.value)


@pytest.mark.parametrize("given", [7, ["d"], {"day": "d"}, {"day": "d", "region": "r", "x": "y"}, "d"])
def test_a_partition_expr_that_does_not_fit_the_dimensions_is_refused(given: Any) -> None:
    with pytest.raises(StorageError, match="expected the column of each dimension"):
        partition_columns({"partition_expr": given}, BOTH)
    assert partition_columns({}, BOTH) is None
    if not isinstance(given, str):
        with pytest.raises(StorageError, match="expected the column that holds the partition"):
            partition_columns({"partition_expr": given}, DAYS)


# --------------------------------------------------------------------------- tables


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "tables"


@pytest.fixture
def manager(project: Project, spark: "SparkSession", base: Path) -> SparkIOManager:
    return SparkIOManager(base_path=str(base), spark=SparkResource.of(spark), receipts=project.receipts)


@pytest.mark.spark
def test_only_the_partition_of_the_run_is_replaced(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    rows = {"2024-01-01": "values (1), (2)", "2024-01-02": "values (3)"}

    @asset(partitions_def=DAYS, metadata={"partition_expr": "day"})
    def sales(context: AssetExecutionContext) -> Any:
        day = context.partition_key
        return spark.sql(f"select col1 as x, date'{day}' as day from {rows[day]}")

    @asset(partitions_def=DAYS)
    def read(sales: Any) -> Any:
        return sales

    def stored(day: str) -> str | None:
        return project.receipt("sales", day).outputs[0].data_hash

    for day in rows:
        project.run([sales], manager, partition_key=day)
    first = {day: stored(day) for day in rows}
    rows["2024-01-02"] = "values (4), (5), (6)"
    project.run([sales], manager, partition_key="2024-01-02")
    project.run([read, sales], manager, partition_key="2024-01-01", selection=[read])
    whole = spark.read.format("delta").load(str(base / "sales"))
    assert sorted(row.x for row in whole.collect()) == [1, 2, 4, 5, 6]
    assert (base / "sales" / "day=2024-01-01").is_dir()
    assert stored("2024-01-01") == first["2024-01-01"]
    assert stored("2024-01-02") != first["2024-01-02"]
    assert stored("2024-01-02") == fingerprint(whole.where("day = date'2024-01-02'")).data_hash
    output = project.receipt("sales", "2024-01-02").outputs[0]
    assert (output.hash_scope, output.row_count) == ("stored_partition", 3)
    assert (output.source_version or {})["version"] == 2
    taken = project.receipt("read", "2024-01-01").inputs[0]
    assert (taken.data_hash, taken.hash_scope) == (first["2024-01-01"], "stored_partition")
    assert (taken.source_version or {})["version"] == 2


@pytest.mark.spark
def test_rows_of_another_partition_are_refused_and_nothing_is_lost(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    rows = ["eu"]

    @asset(partitions_def=REGIONS, metadata={"partition_expr": "region"})
    def sales() -> Any:
        return spark.createDataFrame([(1, r) for r in rows], "x int, region string")

    project.run([sales], manager, partition_key="eu")
    for bad in (["eu", "us"], ["eu", None]):
        rows[:] = bad  # type: ignore[assignment]  # a null is of no partition
        result = project.run([sales], manager, partition_key="eu", raise_on_error=False)
        assert not result.success
        assert "rows outside of the partition eu (region)" in str(
            result.failure_data_for_node("sales").error  # type: ignore[union-attr]  # it failed
        )
    record = project.mirrored("sales")[0]
    assert record.status == "error"
    assert "rows outside of the partition eu (region)" in (record.error or "")
    assert spark.read.format("delta").load(str(base / "sales")).count() == 1
    rows.clear()
    project.run([sales], manager, partition_key="eu")
    assert spark.read.format("delta").load(str(base / "sales")).count() == 0
    assert project.receipt("sales", "eu").outputs[0].row_count == 0
    odd = REGIONS.get_partition_keys()[1]
    rows[:] = [odd]
    project.run([sales], manager, partition_key=odd)
    assert project.receipt("sales", odd).outputs[0].row_count == 1


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")
@pytest.mark.parametrize("as_dict", [False, True])
def test_a_range_of_partitions_has_a_receipt_for_each(
    project: Project, manager: SparkIOManager, spark: "SparkSession", as_dict: bool
) -> None:
    @asset(
        partitions_def=DAYS,
        metadata={"partition_expr": "at"},
        backfill_policy=BackfillPolicy.single_run(),
    )
    def sales(context: AssetExecutionContext) -> Any:
        frame = spark.sql(
            "select id, timestamp'2024-01-01 00:00:00+00:00' + make_interval(0, 0, 0, 0, id * 12) as at "
            "from range(6)"
        )
        if not as_dict:
            return frame
        return {
            key: frame.where(f"cast(at + interval 5 hours as date) = '{key}'")
            for key in context.partition_keys
        }

    @asset(partitions_def=DAYS, backfill_policy=BackfillPolicy.single_run())
    def each(sales: dict[str, Any]) -> Any:
        assert {key: frame.count() for key, frame in sales.items()} == dict.fromkeys(FIRST_DAYS, 2)
        return sales

    tags = {
        "dagster/asset_partition_range_start": FIRST_DAYS[0],
        "dagster/asset_partition_range_end": FIRST_DAYS[-1],
    }
    project.run([sales, each], manager, tags=tags)
    whole = project.mirrored("sales")[0].outputs[0]
    assert whole.row_count == 6
    assert project.mirrored("each")[0].inputs[0].data_hash == whole.data_hash
    assert project.mirrored("each")[0].outputs[0].data_hash == whole.data_hash
    parts = [project.receipt("sales", day).outputs[0] for day in FIRST_DAYS]
    assert [part.row_count for part in parts] == [2, 2, 2]
    assert len({part.data_hash for part in parts}) == 3
    versions = [(part.source_version or {})["version"] for part in parts]
    assert versions == ([0, 1, 2] if as_dict else [0, 0, 0])
    notes = [f"hashed from version {n}, which this run committed" for n in versions]
    assert [part.source_note for part in parts] == notes
    told = [f"{day}: {note}" for day, note in zip(FIRST_DAYS, notes, strict=True)]
    assert whole.source_note == ("; ".join(told) if as_dict else notes[0])
    sums = [sum(int(part.lane_sums[lane]) for part in parts if part.lane_sums) % 2**64 for lane in (0, 1)]
    assert whole.lane_sums == tuple(str(one) for one in sums)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")
def test_what_was_committed_before_a_failure_stands_in_its_record(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    @asset(
        partitions_def=StaticPartitionsDefinition(["eu", "us"]),
        metadata={"partition_expr": "region"},
        backfill_policy=BackfillPolicy.single_run(),
    )
    def sales() -> Any:
        given = {"eu": "1", "us": "cast(raise_error('of ann') as int)"}
        return {key: spark.sql(f"select '{key}' as region, {x} as x") for key, x in given.items()}

    tags = {"dagster/asset_partition_range_start": "eu", "dagster/asset_partition_range_end": "us"}
    result = project.run([sales], manager, tags=tags, raise_on_error=False)
    assert not result.success
    assert "stored before the failure, and not undone: eu" in project.log(result)
    record = project.mirrored("sales")[0]
    assert record.status == "error"
    assert "Exception" in (record.error or "")
    assert "ann" not in (record.error or "")
    failed, left = record.outputs
    assert (failed.name, failed.data_hash, failed.source_version) == ("sales", None, None)
    assert (left.name, left.location, left.data_hash) == ("sales [eu]", str(base / "sales"), None)
    assert left.hash_error == "not hashed: the step failed after it was stored"
    assert (left.source_version or {})["version"] == 0
    assert [row.region for row in spark.read.format("delta").load(str(base / "sales")).collect()] == ["eu"]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["join", "udf"])
def test_rows_that_the_frame_itself_leaves_out_are_of_no_other_partition(
    project: Project, manager: SparkIOManager, spark: "SparkSession", tmp_path: Path, kind: str
) -> None:
    everything = str(tmp_path / "everything")
    spark.sql("select id, if(id < 2, 'eu', 'us') as region from range(4)").write.parquet(everything)

    @asset(partitions_def=StaticPartitionsDefinition(["eu", "us"]), metadata={"partition_expr": "region"})
    def sales() -> Any:
        source = spark.read.parquet(everything)
        if kind == "join":
            return source.join(spark.range(2), "id")
        return source.where(functions.udf(lambda region: region == "eu", "boolean")("region"))

    project.run([sales], manager, partition_key="eu")
    assert project.receipt("sales", "eu").outputs[0].row_count == 2


@pytest.mark.spark
def test_a_partition_of_two_dimensions_and_what_changes_behind_its_back(
    project: Project, manager: SparkIOManager, spark: "SparkSession", base: Path
) -> None:
    @asset(partitions_def=BOTH, metadata={"partition_expr": {"day": "day", "region": "region"}})
    def sales(context: AssetExecutionContext) -> Any:
        key = context.partition_key.keys_by_dimension
        rows = [(n, key["region"], key["day"]) for n in range(2)]
        return spark.createDataFrame(rows, "n int, region string, day string").selectExpr(
            "n", "region", "cast(day as date) as day", "rand() as x"
        )

    keys = [MultiPartitionKey({"day": "2024-01-02", "region": region}) for region in ("eu", "7")]
    for key in (*keys, keys[0]):
        project.run([sales], manager, partition_key=key)
    table = spark.read.format("delta").load(str(base / "sales"))
    assert table.count() == 4
    for key in keys:
        output = project.receipt("sales", str(key)).outputs[0]
        region = key.keys_by_dimension["region"]
        assert output.data_hash == fingerprint(table.where(f"region = '{region}'")).data_hash
    check = build_integrity_checks([sales])
    only = AssetSelection.checks(*(key for one in check for key in one.check_keys))
    for passed in (True, False):
        (found,) = project.run([sales, *check], manager, selection=only).get_asset_check_evaluations()
        assert found.passed is passed, found.description
        spark.sql(f"update delta.`{base / 'sales'}` set n = 5 where region = '7'")
    assert "sales[2024-01-02|7] is not what its receipt says" in (found.description or "")
    assert "|eu]" not in (found.description or "")
