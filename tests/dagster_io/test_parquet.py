"""The parquet IO manager: the hash of what was stored is the hash of what every reader reads."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import zoneinfo
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from dagster import (
    AssetIn,
    AssetOut,
    BackfillPolicy,
    DailyPartitionsDefinition,
    EnvVar,
    InMemoryIOManager,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
    asset,
    job,
    multi_asset,
    op,
)
from upath import UPath

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage import parquet
from ubunye_orchestrate.dagster_io.storage.forms import form_of_annotation
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.hashing.api import arrow_table, fingerprint

from .conftest import Project

pytestmark = pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")

D = decimal.Decimal
UTC = dt.timezone.utc
RANGE_TAGS = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def between(first: str, last: str) -> dict[str, str]:
    return dict(zip(RANGE_TAGS, (first, last), strict=True))


@pytest.fixture
def manager(project: Project, tmp_path: Path) -> ParquetIOManager:
    return ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)


# --------------------------------------------------------------------------- custody

ARROW: dict[str, Callable[[], pa.Array]] = {
    "int8": lambda: pa.array([1, None, -128], pa.int8()),
    "uint8": lambda: pa.array([0, None, 255], pa.uint8()),
    "uint32": lambda: pa.array([2**32 - 1, None, 0], pa.uint32()),
    "uint64": lambda: pa.array([2**64 - 1, None, 0], pa.uint64()),
    "float16": lambda: pa.array(np.array([0.1, 65504, 0], dtype="float16")),
    "float32": lambda: pa.array([0.1, None, float("nan")], pa.float32()),
    "float64": lambda: pa.array([-0.0, 0.0, None, float("nan"), float("inf")]),
    "bool": lambda: pa.array([True, None, False]),
    "string": lambda: pa.array(["a", None, "", 'ü\n"', "\x00"]),
    "large_string": lambda: pa.array(["a", None], pa.large_string()),
    "string_view": lambda: pa.array(["a", None, "longer than twelve bytes"], pa.string_view()),
    "binary": lambda: pa.array([b"\x00\xff", None, b""]),
    "fixed_size_binary": lambda: pa.array([b"ab", None], pa.binary(2)),
    "decimal32": lambda: pa.array([D("1.50"), None], pa.decimal32(5, 2)),
    "decimal128": lambda: pa.array([D("1E-8"), None, D("-12.3")], pa.decimal128(38, 8)),
    "decimal256": lambda: pa.array([D(10) ** 60, None], pa.decimal256(70, 2)),
    "date32": lambda: pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "date64": lambda: pa.array([dt.date(2020, 1, 1), None], pa.date64()),
    "time32_s": lambda: pa.array([dt.time(1, 2, 3), None], pa.time32("s")),
    "time32_ms": lambda: pa.array([1, None], pa.time32("ms")),
    "time64_ns": lambda: pa.array([1, None], pa.time64("ns")),
    "timestamp_s": lambda: pa.array([1, None, -1], pa.timestamp("s")),
    "timestamp_us": lambda: pa.array([1, None, -1], pa.timestamp("us")),
    "timestamp_ns": lambda: pa.array([1, None, -1], pa.timestamp("ns")),
    "timestamp_s_zone": lambda: pa.array([1, None], pa.timestamp("s", "America/New_York")),
    "timestamp_ns_zone": lambda: pa.array([1, None], pa.timestamp("ns", "Europe/Berlin")),
    "timestamp_offset": lambda: pa.array([1, None], pa.timestamp("us", "+05:30")),
    "null": lambda: pa.nulls(3),
    "dictionary": lambda: pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "dictionary_of_int": lambda: pa.array([1, None, 2]).dictionary_encode(),
    "dictionary_of_view": lambda: (
        pa.array(["a", None]).dictionary_encode().cast(pa.dictionary(pa.uint32(), pa.string_view()))
    ),
    "run_end_encoded": lambda: pa.RunEndEncodedArray.from_arrays(
        pa.array([2, 3], pa.int32()), pa.array(["a", None])
    ),
    "list": lambda: pa.array([[1, None], None, []]),
    "large_list": lambda: pa.array([["a"], None], pa.large_list(pa.string())),
    "list_view": lambda: pa.array([[1], None, [2, 3]], pa.list_view(pa.int64())),
    "fixed_size_list": lambda: pa.array([[1, 2], None], pa.list_(pa.int8(), 2)),
    "list_of_null": lambda: pa.array([[None], None, []], pa.list_(pa.null())),
    "list_of_dictionary": lambda: pa.array([["a"], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    "list_of_dictionary_of_view": lambda: pa.ListArray.from_arrays(
        [0, 1, 2], pa.array(["a", "b"]).dictionary_encode().cast(pa.dictionary(pa.int32(), pa.string_view()))
    ),
    "list_of_time_s": lambda: pa.array([[dt.time(1, 2, 3)], None], pa.list_(pa.time32("s"))),
    "map": lambda: pa.array([[("b", 1), ("a", None)], None, []], pa.map_(pa.string(), pa.int64())),
    "map_of_struct": lambda: pa.array(
        [[(1, {"x": [1.5]})], None], pa.map_(pa.int32(), pa.struct([("x", pa.list_(pa.float64()))]))
    ),
    "struct": lambda: pa.array([{"a": 1, "b": None}, None, {"a": None, "b": "x"}]),
    "struct_of_null": lambda: pa.array([{"x": None}, None], pa.struct([("x", pa.null())])),
}


@pytest.mark.parametrize("kind", ARROW)
def test_the_stored_hash_is_the_hash_that_is_read(kind: str, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(len(ARROW[kind]()))), "value": ARROW[kind]()})
    path = UPath(tmp_path / "table.parquet")
    stored = parquet.write_table(path, table.schema, iter(table.to_batches(max_chunksize=2)))
    assert stored.error is None
    assert fingerprint(parquet.read_table(path)).data_hash == stored.data_hash
    assert parquet.hash_file(path, "ntz").data_hash == stored.data_hash
    assert stored.row_count == table.num_rows
    # A time in seconds is brought to the unit that parquet has; nothing else is changed before it is stored.
    if "time32_s" not in kind and "time_s" not in kind:
        assert stored.data_hash == fingerprint(table).data_hash


PANDAS: dict[str, Callable[[], pd.Series[Any]]] = {
    "nullable_int": lambda: pd.Series([1, None, 3], dtype="Int64"),
    "nullable_bool": lambda: pd.Series([True, None, False], dtype="boolean"),
    "nullable_float": lambda: pd.Series([1.5, None, 2.5], dtype="Float64"),
    "string": lambda: pd.Series(["a", None, "b"], dtype="string"),
    "arrow_string": lambda: pd.Series(["a", None, "b"], dtype="string[pyarrow]"),
    "arrow_int": lambda: pd.Series([1, None, 3], dtype="int32[pyarrow]"),
    "arrow_decimal": lambda: pd.Series([D("1.5"), None, D("2")], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
    "object_text": lambda: pd.Series(["a", None, float("nan")], dtype=object),
    "object_empty": lambda: pd.Series([None, None, None], dtype=object),
    "object_decimal": lambda: pd.Series([D("1.0"), D("1.00"), None], dtype=object),
    "object_date": lambda: pd.Series([dt.date(2020, 1, 1), None, dt.date(1, 1, 1)], dtype=object),
    "object_bytes": lambda: pd.Series([b"a", None, b""], dtype=object),
    "object_list": lambda: pd.Series([[1], None, []], dtype=object),
    "category": lambda: pd.Series(["a", None, "b"], dtype="category"),
    "category_int": lambda: pd.Series([1, 2, None], dtype="category"),
    "ordered": lambda: pd.Series(pd.Categorical(["lo", "hi", None], ["lo", "hi"], ordered=True)),
    "datetime_ns": lambda: pd.Series(
        pd.to_datetime(["2020-01-01 00:00:00.000000001", None, "1700-01-01 00:00:00.000000000"])
    ),
    "datetime_s": lambda: pd.Series(np.array(["2020-01-01", "NaT", "0001-01-01"], dtype="datetime64[s]")),
    "datetime_zone": lambda: pd.Series(
        pd.to_datetime(["2020-06-01", None, "2020-12-01"]).tz_localize("Europe/Berlin")
    ),
    "datetime_zoneinfo": lambda: pd.Series(
        [dt.datetime(2020, 6, 1, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo")), None, None]
    ),
    "float_nan": lambda: pd.Series([1.0, float("nan"), -0.0]),
    "uint8": lambda: pd.Series([0, 255, 1], dtype="uint8"),
}


# What pandas' own to_parquet and read_parquet do not bring back either: the values do come back.
NOT_THE_SAME_DTYPE = (
    "arrow_string",
    "category_int",
    "datetime_s",
    "datetime_zoneinfo",
    "object_text",
    "object_empty",
    "object_list",
)


@pytest.mark.parametrize("kind", PANDAS)
def test_a_pandas_frame_comes_back_as_it_was_and_with_its_hash(
    kind: str, manager: ParquetIOManager, project: Project
) -> None:
    frame = pd.DataFrame({"value": PANDAS[kind]()})
    seen: list[pd.DataFrame] = []

    @asset
    def first() -> pd.DataFrame:
        return frame

    @asset
    def second(first: pd.DataFrame) -> None:
        seen.append(first)

    @asset
    def third(first: pd.DataFrame) -> pd.DataFrame:
        return first

    project.run([first, second, third], manager)
    stored = project.receipt("first").outputs[0]
    assert stored.data_hash == fingerprint(frame).data_hash
    step = project.receipt("third").inputs[0]
    assert (step.data_hash, step.hash_scope) == (stored.data_hash, "stored_table")
    if kind not in NOT_THE_SAME_DTYPE:
        pd.testing.assert_series_equal(seen[0]["value"], frame["value"], check_freq=False)


def test_what_was_loaded_and_stored_again_has_the_same_hash(
    manager: ParquetIOManager, project: Project
) -> None:
    @asset
    def first() -> pd.DataFrame:
        return pd.DataFrame({kind: make() for kind, make in PANDAS.items() if kind != "category_int"})

    @asset
    def second(first: pd.DataFrame) -> pd.DataFrame:
        return first

    project.run([first, second], manager)
    assert project.receipt("second").outputs[0].data_hash == project.receipt("first").outputs[0].data_hash


# --------------------------------------------------------------------------- forms

TABLE = pa.table({"x": [1, 2, 3], "y": ["a", None, "c"]})
TABLE_HASH = fingerprint(TABLE).data_hash


def a_reader() -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=1))


STORED: dict[str, tuple[Callable[[], Any], str]] = {
    "pandas": (lambda: pd.DataFrame({"x": [1, 2, 3], "y": ["a", None, "c"]}), "pandas"),
    "table": (lambda: TABLE, "pyarrow"),
    "batch": (lambda: TABLE.to_batches()[0], "pyarrow"),
    "reader": (a_reader, "pyarrow"),
    "dataset": (lambda: pads.dataset(TABLE), "pyarrow"),
    "polars": (lambda: pl.from_arrow(TABLE), "polars"),
    "lazy": (lambda: pl.from_arrow(TABLE).lazy(), "polars"),  # type: ignore[union-attr]
    "relation": (lambda: duckdb.from_arrow(TABLE), "duckdb"),
}


@pytest.mark.parametrize("kind", STORED)
def test_every_kind_of_table_is_stored_and_hashed_while_it_is_written(
    kind: str, manager: ParquetIOManager, project: Project, tmp_path: Path
) -> None:
    make, backend = STORED[kind]

    @asset
    def table() -> Any:
        return make()

    project.run([table], manager)
    receipt = project.receipt("table")
    assert receipt.outputs[0].data_hash == TABLE_HASH
    assert receipt.backend == backend
    assert receipt.outputs[0].row_count == 3
    assert receipt.outputs[0].format == "parquet"
    assert receipt.outputs[0].location == str(tmp_path / "data" / "table.parquet")
    assert pq.read_table(tmp_path / "data" / "table.parquet").num_rows == 3


LOADED: dict[str, tuple[Any, type, str]] = {
    "none": (Any, pd.DataFrame, "materialised"),
    "pandas": (pd.DataFrame, pd.DataFrame, "materialised"),
    "optional": (pd.DataFrame | None, pd.DataFrame, "materialised"),
    "table": (pa.Table, pa.Table, "materialised"),
    "reader": (pa.RecordBatchReader, pa.RecordBatchReader, "recomputed"),
    "polars": (pl.DataFrame, pl.DataFrame, "materialised"),
    "lazy": (pl.LazyFrame, pl.LazyFrame, "materialised"),
}


@pytest.mark.parametrize("kind", LOADED)
def test_the_annotation_decides_what_is_loaded(
    kind: str, manager: ParquetIOManager, project: Project
) -> None:
    annotation, expected, basis = LOADED[kind]
    seen: list[Any] = []

    @asset
    def table() -> pa.Table:
        return TABLE

    def user(table: Any) -> pd.DataFrame:
        seen.append(table)
        return pd.DataFrame({"rows": [arrow_table(table).num_rows]})

    # Dagster reads the annotation when it makes the asset.
    user.__annotations__["table"] = annotation
    plain = with_receipts(InMemoryIOManager(), project.receipts)
    project.run([table, asset(io_manager_key="plain")(user)], manager, resources={"plain": plain})
    assert isinstance(seen[0], expected)
    step = project.receipt("user").inputs[0]
    assert (step.data_hash, step.hash_basis, step.row_count) == (TABLE_HASH, basis, 3)
    assert step.source_version is not None
    assert step.source_version["files"] == 1
    if basis == "recomputed":
        assert step.source_changed is False
        assert step.source_note == "hashed in a reading of its own, before it was handed over"


@pytest.mark.parametrize(
    "annotation", [int, list[str], pd.Series, dict[str, dict[str, pd.DataFrame]]], ids=str
)
def test_an_annotation_that_it_does_not_make_is_refused(annotation: Any) -> None:
    with pytest.raises(StorageError, match=r"ParquetIOManager loads pd\.DataFrame"):
        form_of_annotation(annotation)


# --------------------------------------------------------------------------- places

DAYS = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-06")
BOTH = MultiPartitionsDefinition({"day": DAYS, "airline": StaticPartitionsDefinition(["AA", "a/b ü"])})


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_keys_are_folders_and_partitions_files_beneath(
    manager: ParquetIOManager, project: Project, tmp_path: Path
) -> None:
    @multi_asset(outs={"out": AssetOut(key=["raw", "a/b..", "plain"])})
    def plain() -> pa.Table:
        return TABLE

    @asset(key_prefix="raw", partitions_def=DAYS)
    def daily() -> pa.Table:
        return TABLE

    @asset(partitions_def=BOTH)
    def both() -> pa.Table:
        return TABLE

    project.run([plain], manager)
    project.run([daily], manager, partition_key="2024-01-02")
    project.run([both], manager, partition_key=MultiPartitionKey({"day": "2024-01-02", "airline": "a/b ü"}))
    assert files(tmp_path / "data") == [
        "both/a%2Fb%20%C3%BC/2024-01-02.parquet",
        "raw/a%2Fb.%2E/plain.parquet",
        "raw/daily/2024-01-02.parquet",
    ]
    assert project.receipt("raw/daily", "2024-01-02").outputs[0].hash_scope == "stored_partition"


@pytest.mark.parametrize("as_key", [str, dt.date.fromisoformat])
def test_a_range_stores_a_dict_with_the_partitions_as_keys(
    manager: ParquetIOManager, project: Project, tmp_path: Path, as_key: Any
) -> None:
    @asset(partitions_def=DAYS, backfill_policy=BackfillPolicy.single_run())
    def daily(context) -> dict[Any, pd.DataFrame]:
        return {as_key(key): pd.DataFrame({"day": [key] * int(key[-2:])}) for key in context.partition_keys}

    project.run([daily], manager, tags=between("2024-01-02", "2024-01-04"))
    assert files(tmp_path / "data") == [f"daily/2024-01-0{day}.parquet" for day in (2, 3, 4)]
    for day in (2, 3, 4):
        key = f"2024-01-0{day}"
        receipt = project.receipt("daily", key)
        assert receipt.outputs[0].data_hash == fingerprint(pd.DataFrame({"day": [key] * day})).data_hash
        assert receipt.outputs[0].location == str(tmp_path / "data" / "daily" / f"{key}.parquet")
        assert receipt.variables == {"dt": key, "dtf": "%Y-%m-%d"}
        assert project.metadata("daily", key)["dagster/partition_row_count"] == day
    (whole,) = project.mirrored("daily")
    assert whole.run_id.endswith("--2024-01-02..2024-01-04")
    assert whole.outputs[0].row_count == 9
    assert whole.outputs[0].location == str(tmp_path / "data" / "daily")


def test_partitions_in_their_place_before_a_failure_stand_in_its_record(
    manager: ParquetIOManager, project: Project, tmp_path: Path
) -> None:
    @asset(partitions_def=DAYS, backfill_policy=BackfillPolicy.single_run())
    def daily(context) -> dict[str, pa.Table]:
        return {key: pa.table({"day": [key]}) for key in context.partition_keys}

    (tmp_path / "data" / "daily" / "2024-01-03.parquet").mkdir(parents=True)
    result = project.run([daily], manager, tags=between("2024-01-02", "2024-01-04"), raise_on_error=False)
    assert not result.success
    assert "stored before the failure, and not undone: 2024-01-02" in project.log(result)
    record = project.mirrored("daily")[0]
    assert record.status == "error"
    failed, left = record.outputs
    assert (failed.name, failed.data_hash) == ("daily", None)
    file = tmp_path / "data" / "daily" / "2024-01-02.parquet"
    assert (left.name, left.location, left.hash_scope) == (
        "daily [2024-01-02]",
        str(file),
        "stored_partition",
    )
    assert left.data_hash == fingerprint(pq.read_table(file)).data_hash


def test_one_table_for_a_range_is_refused_with_the_way_out(
    manager: ParquetIOManager, project: Project, tmp_path: Path
) -> None:
    @asset(partitions_def=DAYS, backfill_policy=BackfillPolicy.single_run())
    def daily() -> Any:
        return TABLE

    result = project.run([daily], manager, tags=between("2024-01-02", "2024-01-04"), raise_on_error=False)
    message = str(result.failure_data_for_node("daily"))
    assert "the run stores 3 partitions of daily and got a Table; expected a dict of tables" in message
    assert "BackfillPolicy.multi_run()" in message
    assert not (tmp_path / "data").exists()


class TestSeveralPartitions:
    @pytest.fixture
    def daily(self, manager: ParquetIOManager, project: Project) -> Any:
        @asset(partitions_def=DAYS)
        def daily(context) -> pa.Table:
            day = int(context.partition_key[-2:])
            value = pa.nulls(1) if day == 2 else pa.array(["x"])
            return pa.table({"day": pa.array([day]), "only_null_on_the_second": value})

        for day in (1, 2, 3, 4):
            project.run([daily], manager, partition_key=f"2024-01-0{day}")
        return daily

    def test_a_dict_has_them_by_key(self, daily: Any, manager: ParquetIOManager, project: Project) -> None:
        seen: list[Any] = []

        @asset(ins={"daily": AssetIn(metadata={"allow_missing_partitions": True})})
        def user(daily: dict[str, pa.Table]) -> pa.Table:
            seen.append(daily)
            return TABLE

        project.run([daily, user], manager, selection=[user])
        assert sorted(seen[0]) == [f"2024-01-0{day}" for day in (1, 2, 3, 4)]
        step = project.receipt("user").inputs[0]
        assert step.hash_error == "partitions 2024-01-01 and 2024-01-02 have different columns or types"
        assert step.row_count == 4
        assert step.producer is not None
        made = [(p.partition, p.run_id is not None) for p in step.producer]
        assert made == [(f"2024-01-0{day}", day < 5) for day in (1, 2, 3, 4, 5)]

    def test_without_a_dict_they_are_one_table(
        self, daily: Any, manager: ParquetIOManager, project: Project
    ) -> None:
        seen: list[Any] = []

        @asset(ins={"daily": AssetIn(metadata={"allow_missing_partitions": True})})
        def user(daily: pd.DataFrame) -> pa.Table:
            seen.append(daily)
            return TABLE

        project.run([daily, user], manager, selection=[user])
        assert list(seen[0]["day"]) == [1, 2, 3, 4]
        assert seen[0]["only_null_on_the_second"].isna().sum() == 1

    def test_a_missing_one_is_an_error_that_names_it(
        self, daily: Any, manager: ParquetIOManager, project: Project, tmp_path: Path
    ) -> None:
        @asset
        def user(daily: pd.DataFrame) -> None: ...

        result = project.run([daily, user], manager, selection=[user], raise_on_error=False)
        expected = f"no file {tmp_path}/data/daily/2024-01-05.parquet; expected the table that the upstream"
        assert expected in str(result.failure_data_for_node("user"))

    def test_their_lane_sums_add_up(self, manager: ParquetIOManager, project: Project) -> None:
        @asset(partitions_def=DAYS)
        def even(context) -> pa.Table:
            return pa.table({"day": [context.partition_key] * 2})

        @asset
        def user(even: pa.RecordBatchReader) -> pa.Table:
            return even.read_all()

        for day in (1, 2, 3, 4, 5):
            project.run([even], manager, partition_key=f"2024-01-0{day}")
        project.run([even, user], manager, selection=[user])
        receipt = project.receipt("user")
        assert receipt.inputs[0].data_hash == receipt.outputs[0].data_hash
        assert receipt.inputs[0].hash_scope == "stored_partition"


def test_outputs_of_ops_have_a_place_of_their_run(manager: ParquetIOManager, project: Project) -> None:
    @op
    def make() -> pa.Table:
        return TABLE

    @op
    def use(table: pa.Table) -> pa.Table:
        return table

    @job(resource_defs={"io_manager": manager.get_resource_definition()})
    def by_ops() -> None:
        use(make())

    by_ops.execute_in_process(instance=project.instance)
    (record,) = project.mirrored("by_ops__use__result")
    assert record.inputs[0].data_hash == record.outputs[0].data_hash == TABLE_HASH


@pytest.mark.parametrize("base", ["memory://bucket/tables", "file", "relative", "env"])
def test_the_base_path_may_be_any_fsspec_url(
    base: str, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THE_BASE", str(tmp_path / "env"))
    url: Any = {"file": f"file://{tmp_path}/file", "env": EnvVar("THE_BASE")}.get(base, base)

    @asset
    def table() -> pa.Table:
        return TABLE

    @asset
    def user(table: pa.RecordBatchReader) -> pa.Table:
        return table.read_all()

    project.run([table, user], ParquetIOManager(base_path=url, receipts=project.receipts))
    receipt = project.receipt("user")
    assert receipt.inputs[0].data_hash == receipt.outputs[0].data_hash == TABLE_HASH
    metadata = project.metadata("table")
    if base.startswith("memory"):
        assert metadata["dagster/uri"] == "memory://bucket/tables/table.parquet"
    else:
        assert metadata["path"] == str(tmp_path / base / "table.parquet")


def test_launch_config_and_nested_receipts(project: Project, tmp_path: Path) -> None:
    @asset
    def table() -> pa.Table:
        return TABLE

    config = {
        "resources": {
            "io_manager": {"config": {"base_path": str(tmp_path / "launched")}},
            "receipts": {"config": {"root": str(project.root), "usecase": "shop", "profile": "prod"}},
        }
    }
    receipts = Receipts.configure_at_launch()
    manager = ParquetIOManager.configure_at_launch(receipts=receipts)
    project.run([table], manager, resources={"receipts": receipts}, run_config=config)
    assert files(tmp_path / "launched") == ["table.parquet"]
    (record,) = project.mirrored("table", usecase="shop")
    assert record.profile == "prod"


# --------------------------------------------------------------------------- whole or not at all


class TestWholeOrNotAtAll:
    def failing(self) -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise ValueError("the source broke")

    @pytest.mark.parametrize("base", ["local", "memory://whole"])
    def test_a_source_that_breaks_leaves_the_old_file(
        self, base: str, project: Project, tmp_path: Path
    ) -> None:
        url = str(tmp_path / "data") if base == "local" else base
        manager = ParquetIOManager(base_path=url, receipts=project.receipts)
        broken = False

        @asset
        def table() -> Any:
            return pa.RecordBatchReader.from_batches(TABLE.schema, self.failing()) if broken else TABLE

        project.run([table], manager)
        broken = True
        result = project.run([table], manager, raise_on_error=False)
        assert "ValueError: the source broke" in str(result.failure_data_for_node("table"))
        assert parquet.read_table(UPath(url) / "table.parquet").equals(TABLE)
        if base == "local":
            assert files(tmp_path / "data") == ["table.parquet"]
        assert [r.error for r in project.mirrored("table") if r.status == "error"] == [
            "ValueError: the source broke"
        ]

    def test_a_folder_without_rights_is_the_users_error(
        self, manager: ParquetIOManager, project: Project, tmp_path: Path
    ) -> None:
        (tmp_path / "data").write_text("a file where the folder should be")

        @asset
        def table() -> pa.Table:
            return TABLE

        result = project.run([table], manager, raise_on_error=False)
        assert f"StorageError: {tmp_path}/data/table.parquet cannot be written" in str(
            result.failure_data_for_node("table")
        )

    @pytest.mark.parametrize("content", [b"", b"PAR1 and no more", b"x" * 100])
    def test_a_file_that_is_no_parquet_is_named(
        self, content: bytes, manager: ParquetIOManager, project: Project, tmp_path: Path
    ) -> None:
        @asset
        def table() -> pa.Table:
            return TABLE

        @asset
        def user(table: pd.DataFrame) -> None: ...

        project.run([table], manager)
        (tmp_path / "data" / "table.parquet").write_bytes(content)
        result = project.run([table, user], manager, selection=[user], raise_on_error=False)
        message = str(result.failure_data_for_node("user"))
        assert f"StorageError: {tmp_path}/data/table.parquet is not a readable parquet file" in message

    def test_a_file_changed_behind_its_back_shows_in_the_hash(
        self, manager: ParquetIOManager, project: Project, tmp_path: Path
    ) -> None:
        @asset
        def table() -> pa.Table:
            return TABLE

        @asset
        def user(table: pa.Table) -> pa.Table:
            return table

        project.run([table], manager)
        pq.write_table(TABLE.slice(1), tmp_path / "data" / "table.parquet")
        project.run([table, user], manager, selection=[user])
        assert project.receipt("user").inputs[0].data_hash == fingerprint(TABLE.slice(1)).data_hash


# --------------------------------------------------------------------------- what cannot be hashed or stored

UNHASHED: dict[str, tuple[Callable[[], Any], str]] = {
    "duration": (lambda: pa.table({"d": pa.array([1], pa.duration("s"))}), "column 'd' (duration[s])"),
    "timedelta": (lambda: pd.DataFrame({"d": pd.to_timedelta([1, 2])}), "column 'd' (duration[ns])"),
    "duplicate_names": (
        lambda: pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
        "column 'a'",
    ),
    "mixed": (lambda: pd.DataFrame({"m": ["a", b"b"]}), "column 'm'"),
    "map_key": (
        lambda: pa.table({"m": pa.array([[(b"k", 1)]], pa.map_(pa.binary(), pa.int64()))}),
        "column 'm' (map<binary, int64",
    ),
}


@pytest.mark.parametrize("kind", UNHASHED)
def test_what_rows_v1_cannot_hash_is_stored_and_the_receipt_says_why(
    kind: str, manager: ParquetIOManager, project: Project, tmp_path: Path
) -> None:
    make, reason = UNHASHED[kind]

    @asset
    def table() -> Any:
        return make()

    result = project.run([table], manager)
    assert result.success
    step = project.receipt("table").outputs[0]
    assert step.data_hash is None
    assert step.hash_error is not None
    assert step.hash_error.startswith(reason), step.hash_error
    assert step.row_count == len(make())
    assert project.metadata("table")["ubunye/hash_error"] == step.hash_error
    assert pq.ParquetFile(tmp_path / "data" / "table.parquet").metadata.num_rows == step.row_count
    # No hash, no data version of ours.
    assert "dagster/data_version_is_user_provided" not in project.tags("table")


NOT_STORED: dict[str, tuple[Callable[[], Any], str]] = {
    "interval": (
        lambda: pa.table({"i": pa.array([None], pa.month_day_nano_interval())}),
        "column 'i' (month_day_nano_interval) cannot be stored as parquet",
    ),
    "empty_struct": (
        lambda: pa.table({"s": pa.array([{}])}),
        "column 's' (struct<>) cannot be stored as parquet",
    ),
    "rows_without_columns": (lambda: pd.DataFrame(index=range(3)), "got 3 rows without a column"),
    "mixed": (lambda: pd.DataFrame({"m": ["a", 1]}), "the table cannot be stored: "),
    "dict": (lambda: {"a": 1}, "got a dict; ParquetIOManager stores tables"),
    "series": (lambda: pd.Series([1]), "got a Series; ParquetIOManager stores tables"),
    "none": (lambda: None, "got None; expected a table"),
}


@pytest.mark.parametrize("kind", NOT_STORED)
def test_what_parquet_cannot_hold_is_the_users_error(
    kind: str, manager: ParquetIOManager, project: Project, tmp_path: Path
) -> None:
    make, reason = NOT_STORED[kind]

    @asset
    def table() -> Any:
        return make()

    result = project.run([table], manager, raise_on_error=False)
    assert f"StorageError: {reason}" in str(result.failure_data_for_node("table"))
    assert not (tmp_path / "data").exists() or files(tmp_path / "data") == []
    assert [record.status for record in project.mirrored("table")] == ["error"]


def test_naive_timestamps_may_be_read_as_instants(project: Project, tmp_path: Path) -> None:
    receipts = Receipts(root=str(project.root), naive_timestamps="UTC")

    @asset
    def table() -> pd.DataFrame:
        return pd.DataFrame({"at": pd.to_datetime(["2020-01-01"])})

    @asset
    def user(table: pd.DataFrame) -> pd.DataFrame:
        return table

    project.run([table, user], ParquetIOManager(base_path=str(tmp_path / "data"), receipts=receipts))
    assert project.receipt("table").outputs[0].columns == [("at", "timestamp")]
    assert project.receipt("user").inputs[0].data_hash == project.receipt("table").outputs[0].data_hash


def test_the_index_follows_one_rule_before_writing(manager: ParquetIOManager, project: Project) -> None:
    seen: list[pd.DataFrame] = []

    @asset
    def named() -> pd.DataFrame:
        return pd.DataFrame({"x": [1, 2]}, index=pd.Index(["a", "b"], name="key"))

    @asset
    def unnamed() -> pd.DataFrame:
        return pd.DataFrame({"x": [1, 2]}, index=[7, 9])

    @asset
    def user(named: pd.DataFrame, unnamed: pd.DataFrame) -> None:
        seen.extend([named, unnamed])

    project.run([named, unnamed, user], manager)
    assert [list(frame) for frame in seen] == [["key", "x"], ["x"]]
    assert [list(frame.index) for frame in seen] == [[0, 1], [0, 1]]


def test_small_batches_share_a_row_group(tmp_path: Path) -> None:
    path = UPath(tmp_path / "table.parquet")
    batches = (pa.record_batch({"x": [i]}) for i in range(500))
    stored = parquet.write_table(path, pa.schema([("x", pa.int64())]), batches)
    assert pq.ParquetFile(path).metadata.num_row_groups == 1
    assert stored.row_count == 500


def test_files_are_whole_on_disk_before_they_have_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (steps.append("fsync"), fsync(fd))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append("replace"), replace(a, b))[1])
    parquet.write_table(UPath(tmp_path / "t.parquet"), TABLE.schema, iter(TABLE.to_batches()))
    assert steps == ["fsync", "replace"]


def test_a_table_that_is_not_stored_is_not_said_to_be(manager: Any, project: Project) -> None:
    """What has no exact form is tried as Arrow has it; that may fail too."""

    @asset
    def mixed() -> pd.DataFrame:
        return pd.DataFrame({"a": [1, "x"]})

    @asset
    def other() -> pd.DataFrame:
        return pd.DataFrame({"a": ["text", b"bytes"]})

    failed = project.run([mixed], manager, raise_on_error=False)
    assert not failed.success
    said = "the table is stored without a data hash: column 'a'"
    assert said not in project.log(failed)
    assert said in project.log(project.run([other], manager))
