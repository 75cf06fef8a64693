"""Producer and scope of what is read: whether custody may be judged, and of which materializations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dagster import (
    AssetIn,
    ConfigurableIOManager,
    DailyPartitionsDefinition,
    DynamicPartitionsDefinition,
    InputContext,
    LastPartitionMapping,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    MultiToSingleDimensionPartitionMapping,
    OutputContext,
    StaticPartitionMapping,
    StaticPartitionsDefinition,
    WeeklyPartitionsDefinition,
    asset,
)
from dagster_duckdb_pandas import DuckDBPandasIOManager

from ubunye_orchestrate.compare.custody import judge_custody
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.baseline import receipt_of_event
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager

from .conftest import Project

DAYS = DailyPartitionsDefinition("2024-01-28", end_date="2024-02-04")


def custody(project: Project, asset_name: str, position: int = 0) -> tuple[str, str]:
    """The kind of the finding about an input, and its text: held against the producers that it names."""
    step = project.receipt(asset_name).inputs[position]
    ids = [one.storage_id for one in step.producer or () if one.storage_id is not None]
    events = upstream.materializations_by_id(project.instance, ids)
    records = [receipt_of_event(events[i]) for i in ids]
    finding = judge_custody(step, [record.outputs[0] for record in records if record is not None])
    return finding.kind, finding.text


@pytest.fixture
def parquet(project: Project, tmp_path: Path) -> ParquetIOManager:
    return ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)


def day(context: Any) -> pd.DataFrame:
    return pd.DataFrame({"key": [str(context.partition_key)], "x": [1]})


@asset(partitions_def=DAYS)
def daily(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
    return day(context)


@asset
def whole() -> pd.DataFrame:
    return pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", "c"]})


@asset
def reads(whole: pd.DataFrame) -> pd.DataFrame:
    return whole


def test_a_whole_table(parquet: Any, project: Project) -> None:
    project.run([whole, reads], parquet)
    assert custody(project, "reads")[0] == "custody_held"


@pytest.mark.parametrize("touched", [False, True])
def test_partitions_of_a_week_by_their_time_window(
    touched: bool, parquet: Any, project: Project, tmp_path: Path
) -> None:
    @asset(partitions_def=WeeklyPartitionsDefinition("2024-01-28", end_date="2024-02-04"))
    def weekly(daily: dict[str, pd.DataFrame]) -> pd.DataFrame:
        return pd.concat(daily.values())

    for key in DAYS.get_partition_keys():
        project.run([daily], parquet, partition_key=key)
    if touched:
        pd.DataFrame({"key": ["2024-02-02"], "x": [2]}).to_parquet(tmp_path / "data/daily/2024-02-02.parquet")
    project.run([daily, weekly], parquet, selection=[weekly], partition_key="2024-01-28")
    step = project.receipt("weekly", "2024-01-28").inputs[0]
    assert [(one.partition, one.storage_id) for one in step.producer or ()] == [
        (key, project.event("daily", key).storage_id) for key in DAYS.get_partition_keys()
    ]
    assert step.hash_scope == "stored_partition"
    assert custody(project, "weekly")[0] == ("custody_broken" if touched else "custody_held")


@pytest.mark.filterwarnings("ignore:Class `MultiToSingleDimensionPartitionMapping`")
def test_static_mapped_last_dynamic_and_multi_dimensional_partitions(parquet: Any, project: Project) -> None:
    regions = StaticPartitionsDefinition(["north", "south"])
    shops = DynamicPartitionsDefinition(name="shops")
    grid_of = MultiPartitionsDefinition({"day": DAYS, "region": regions})
    to_region = StaticPartitionMapping({"north": ["a", "b"], "south": ["c"]})

    @asset(partitions_def=regions)
    def region(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
        return day(context)

    @asset(
        partitions_def=StaticPartitionsDefinition(["a", "b", "c"]),
        ins={"region": AssetIn(partition_mapping=to_region)},
    )
    def branch(region: pd.DataFrame) -> pd.DataFrame:
        return region

    @asset(ins={"daily": AssetIn(partition_mapping=LastPartitionMapping())})
    def latest(daily: pd.DataFrame) -> pd.DataFrame:
        return daily

    @asset(partitions_def=shops)
    def shop(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
        return day(context)

    @asset(partitions_def=shops)
    def till(shop: pd.DataFrame) -> pd.DataFrame:
        return shop

    @asset(partitions_def=grid_of)
    def grid(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
        return day(context)

    @asset(
        partitions_def=regions,
        ins={"grid": AssetIn(partition_mapping=MultiToSingleDimensionPartitionMapping("region"))},
    )
    def by_region(grid: dict[str, pd.DataFrame]) -> pd.DataFrame:
        return pd.concat(grid.values())

    project.instance.add_dynamic_partitions("shops", ["s 1"])
    everything = [daily, region, branch, latest, shop, till, grid, by_region]

    def run(one: Any, key: str | None = None) -> None:
        project.run(everything, parquet, selection=[one], partition_key=key)

    for one, key in ((region, "north"), (branch, "b"), (daily, "2024-02-03"), (shop, "s 1"), (till, "s 1")):
        run(one, key)
    run(latest)
    for key in DAYS.get_partition_keys():
        run(grid, str(MultiPartitionKey({"day": key, "region": "north"})))
    run(by_region, "north")
    expected = {"branch": ["north"], "latest": ["2024-02-03"], "till": ["s 1"]}
    expected["by_region"] = [f"{key}|north" for key in DAYS.get_partition_keys()]
    for name, partitions in expected.items():
        producers = project.receipt(name).inputs[0].producer or []
        assert [one.partition for one in producers] == partitions, name
        assert all(one.storage_id for one in producers), name
        assert custody(project, name)[0] == "custody_held", name


def test_a_projection_is_not_judged(project: Project, tmp_path: Path) -> None:
    @asset(ins={"whole": AssetIn(metadata={"columns": ["id"]})})
    def ids(whole: pd.DataFrame) -> pd.DataFrame:
        return whole

    manager = with_receipts(DuckDBPandasIOManager(database=str(tmp_path / "db.duckdb")), project.receipts)
    project.run([whole, ids], manager)
    kind, text = custody(project, "ids")
    assert (kind, "projection" in text) == ("custody_not_judged", True)


class Appending(ConfigurableIOManager):
    """Adds to what is there, as logs are kept."""

    path: str

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        file = Path(self.path) / f"{context.asset_key.path[-1]}.pkl"
        pd.concat([pd.read_pickle(file), obj] if file.exists() else [obj]).to_pickle(file)

    def load_input(self, context: InputContext) -> Any:
        return pd.read_pickle(Path(self.path) / f"{context.asset_key.path[-1]}.pkl")


def test_what_an_append_added_is_not_held_against_what_is_read(project: Project, tmp_path: Path) -> None:
    manager = with_receipts(Appending(path=str(tmp_path)), project.receipts)
    for _ in range(2):
        project.run([whole, reads], manager)
    record = project.receipt("reads")
    assert (record.inputs[0].row_count, record.inputs[0].hash_scope) == (6, "passed_rows")
    assert project.receipt("whole").outputs[0].row_count == 3
    kind, text = custody(project, "reads")
    assert (kind, "passed_rows" in text) == ("custody_not_judged", True)
