"""Skipping what reads the same data: Dagster's declarative automation, by the data versions of receipts."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from dagster import (
    AssetKey,
    AutomationCondition,
    Definitions,
    StaticPartitionsDefinition,
    asset,
    evaluate_automation_conditions,
)

from ubunye_orchestrate.dagster_io.drift.automation import on_changed_data
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager

from .conftest import Project

# A warning of the tester's own.
pytestmark = pytest.mark.filterwarnings("ignore:Parameter `include_sources` of function")

REGIONS = StaticPartitionsDefinition(["eu", "us"])


class World:
    rows = 3


@pytest.fixture(autouse=True)
def three_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "rows", 3)


@asset
def raw() -> pd.DataFrame:
    return pd.DataFrame({"x": range(World.rows)})


@asset(automation_condition=on_changed_data())
def clean(raw: pd.DataFrame) -> pd.DataFrame:
    return raw


@asset(automation_condition=AutomationCondition.eager())
def eager(raw: pd.DataFrame) -> pd.DataFrame:
    return raw


class Daemon:
    """Evaluates the conditions as Dagster's daemon does, tick by tick."""

    def __init__(self, project: Project, assets: list[Any]) -> None:
        self.project = project
        self.assets = assets
        self.manager = ParquetIOManager(base_path=str(project.root / "data"), receipts=project.receipts)
        self.cursor: Any = None

    def run(self, **kwargs: Any) -> None:
        self.project.run(self.assets, self.manager, **kwargs)

    def requested(self, key: str) -> int:
        self.result = evaluate_automation_conditions(
            Definitions(assets=self.assets), self.project.instance, cursor=self.cursor
        )
        self.cursor = self.result.cursor
        return self.result.get_num_requested(AssetKey(key))

    def partitions(self, key: str) -> set[Any]:
        return set(self.result.get_requested_partitions(AssetKey(key)))


def test_the_same_rows_again_run_nothing_downstream(project: Project) -> None:
    daemon = Daemon(project, [raw, clean, eager])
    daemon.run()
    assert daemon.requested("clean") == 0
    daemon.run(selection=[raw])
    assert daemon.requested("clean") == 0
    # What Dagster does without it.
    assert daemon.result.get_num_requested(AssetKey("eager")) == 1
    World.rows = 4
    daemon.run(selection=[raw])
    assert daemon.requested("clean") == 1
    daemon.run(selection=[clean])
    assert daemon.requested("clean") == 0


def test_a_change_that_was_seen_is_not_forgotten_by_the_same_rows_again(project: Project) -> None:
    daemon = Daemon(project, [raw, clean])
    daemon.run()
    assert daemon.requested("clean") == 0
    World.rows = 5
    daemon.run(selection=[raw])
    daemon.run(selection=[raw])
    assert daemon.requested("clean") == 1


@asset(partitions_def=REGIONS)
def orders() -> pd.DataFrame:
    return pd.DataFrame({"x": range(World.rows)})


@asset(partitions_def=REGIONS, automation_condition=on_changed_data())
def billed(orders: pd.DataFrame) -> pd.DataFrame:
    return orders


def test_of_partitions_only_those_whose_rows_changed(project: Project) -> None:
    daemon = Daemon(project, [orders, billed])
    for partition in ("eu", "us"):
        daemon.run(partition_key=partition)
    daemon.requested("billed")
    daemon.run(partition_key="eu", selection=[orders])
    assert daemon.requested("billed") == 0
    World.rows = 4
    daemon.run(partition_key="eu", selection=[orders])
    daemon.requested("billed")
    assert daemon.partitions("billed") == {"eu"}
