"""Monitors under Dagster: told of each asset's start and end, whatever they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dagster import (
    AssetOut,
    DailyPartitionsDefinition,
    DynamicPartitionsDefinition,
    Field,
    InMemoryIOManager,
    Output,
    RetryPolicy,
    asset,
    multi_asset,
)

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.records.recorder import LineageRecorder

from .conftest import Project

told: list[tuple[Any, ...]] = []


class Old:
    """Knows none of the new evidence."""

    def task_start(self, *, context: Any, config: Any) -> None:
        told.append(("start", context.task_name, context.run_id, config))

    def task_end(self, *, context: Any, config: Any, outputs: Any, status: str, duration_sec: float) -> None:
        told.append(("end", context.task_name, context.run_id, status))


class New:
    def task_start(self, **everything: Any) -> None: ...

    def task_end(self, **everything: Any) -> None:
        assert everything["inputs"] is None
        assert everything["outputs"] is None
        told.append(("new", everything["record"].task_name, everything["error"], everything["record"]))


class Raising:
    def task_start(self, **everything: Any) -> None:
        raise RuntimeError("start")

    def task_end(self, **everything: Any) -> None:
        raise RuntimeError("end")


class Watched(Receipts):
    def monitors(self) -> Any:
        return [Raising(), Old(), New()]


@pytest.fixture(params=["parquet", "wrapped"])
def manager(request: pytest.FixtureRequest, project: Project, tmp_path: Path) -> Any:
    told.clear()
    receipts = Watched(root=str(project.root))
    if request.param == "parquet":
        return ParquetIOManager(base_path=str(tmp_path / "data"), receipts=receipts)
    return with_receipts(InMemoryIOManager(), receipts)


@asset
def raw() -> pd.DataFrame:
    return pd.DataFrame({"x": [1]})


def test_each_try_of_each_asset_starts_and_ends(manager: Any, project: Project) -> None:
    @asset(retry_policy=RetryPolicy(max_retries=1))
    def flaky(context, raw: pd.DataFrame) -> pd.DataFrame:  # type: ignore[no-untyped-def]
        if context.retry_number == 0:
            raise ValueError("once")
        return raw

    result = project.run([raw, flaky], manager)
    again = f"{result.run_id}.retry-1"
    assert [one for one in told if one[1] == "flaky" and one[0] != "new"] == [
        ("start", "flaky", result.run_id, {}),
        ("start", "flaky", again, {}),
        ("end", "flaky", result.run_id, "error"),
        ("end", "flaky", again, "success"),
    ]
    news = [one for one in told if one[0] == "new" and one[1] == "flaky"]
    assert [one[2] for one in news] == ["ValueError: once", None]
    assert news[1][3] == next(r for r in project.mirrored("flaky") if r.run_id == again)


def test_a_source_that_is_tried_again_is_told_in_order_and_with_its_config(
    manager: Any, project: Project
) -> None:
    tried: list[int] = []

    @asset(retry_policy=RetryPolicy(max_retries=1), config_schema={"rows": Field(int, default_value=1)})
    def source() -> pd.DataFrame:
        tried.append(1)
        if len(tried) == 1:
            raise ValueError("once")
        return pd.DataFrame({"x": [1]})

    result = project.run([source], manager)
    again = f"{result.run_id}.retry-1"
    assert [one for one in told if one[0] != "new"] == [
        ("start", "source", result.run_id, {"rows": 1}),
        ("start", "source", again, {"rows": 1}),
        ("end", "source", result.run_id, "error"),
        ("end", "source", again, "success"),
    ]


def test_one_that_failed_before_anything_was_read_has_a_start_too(manager: Any, project: Project) -> None:
    @asset
    def broken() -> pd.DataFrame:
        raise ValueError("no")

    result = project.run([broken], manager, raise_on_error=False)
    assert [one[:3] for one in told if one[0] != "new"] == [
        ("start", "broken", result.run_id),
        ("end", "broken", result.run_id),
    ]


def test_partitions_and_the_assets_of_one_step(manager: Any, project: Project) -> None:
    @multi_asset(
        outs={"first": AssetOut(), "second": AssetOut()},
        partitions_def=DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04"),
    )
    def both() -> Any:
        yield Output(pd.DataFrame({"x": [1]}), "first")
        raise ValueError("half-way")

    result = project.run([both], manager, partition_key="2024-01-02", raise_on_error=False)
    run_id = f"{result.run_id}--2024-01-02"
    assert {one[1:4] for one in told if one[0] == "end"} == {
        ("first", run_id, "success"),
        ("second", run_id, "error"),
    }
    assert {one[1:3] for one in told if one[0] == "start"} == {("first", run_id), ("second", run_id)}


def test_partitions_that_are_added_at_run_time(manager: Any, project: Project) -> None:
    project.instance.add_dynamic_partitions("customers", ["ann"])

    @asset(partitions_def=DynamicPartitionsDefinition(name="customers"))
    def orders() -> pd.DataFrame:
        return pd.DataFrame({"x": [1]})

    result = project.run([orders], manager, partition_key="ann")
    assert [one[:3] for one in told if one[0] != "new"] == [
        ("start", "orders", f"{result.run_id}--ann"),
        ("end", "orders", f"{result.run_id}--ann"),
    ]
    assert project.receipt("orders", "ann").status == "success"


def test_a_monitor_that_raises_harms_nothing(
    manager: Any, project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    assert project.run([raw], manager).success
    assert project.mirrored("raw")[0].status == "success"
    assert "task_start of Raising failed" in caplog.text
    assert "task_end of Raising failed" in caplog.text


def test_the_recorder_is_a_monitor_here_too(project: Project, tmp_path: Path) -> None:
    recorder = LineageRecorder(root=str(tmp_path / "other"), usecase="copies")

    class Copied(Receipts):
        def monitors(self) -> Any:
            return [recorder]

    project.run([raw], with_receipts(InMemoryIOManager(), Copied(root=str(project.root))))
    (record,) = recorder.store.list_runs("copies", "default", "raw")
    assert record.status == "success"
