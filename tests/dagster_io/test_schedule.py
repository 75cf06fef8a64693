"""The daily look: the checks alone, by a schedule's job."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from dagster import AssetSelection, Definitions, asset, build_schedule_context

from ubunye_orchestrate.dagster_io.drift.checks import build_drift_checks
from ubunye_orchestrate.dagster_io.drift.schedules import build_drift_schedule
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.errors import ConfigurationError

from .conftest import Project


class World:
    rows = 3


@asset
def raw() -> pd.DataFrame:
    return pd.DataFrame({"x": range(World.rows)})


@asset(metadata={"ubunye/policy": {"max_row_decrease": 0.5}})
def clean(raw: pd.DataFrame) -> pd.DataFrame:
    return raw


def test_it_judges_what_is_there_and_materializes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager: Any = ParquetIOManager(base_path=str(project.root / "data"), receipts=project.receipts)
    schedule = build_drift_schedule([raw, clean], "30 5 * * *")
    definitions = Definitions(
        assets=[raw, clean],
        asset_checks=build_drift_checks([raw, clean]),
        schedules=[schedule],
        resources={"io_manager": manager},
    )
    project.run([raw, clean], manager)
    monkeypatch.setattr(World, "rows", 1)
    project.run([raw, clean], manager)
    tick = schedule.evaluate_tick(build_schedule_context(instance=project.instance))
    assert len(tick.run_requests or ()) == 1
    result = definitions.resolve_job_def("drift_daily_job").execute_in_process(instance=project.instance)
    found = {one.asset_key.to_user_string(): one for one in result.get_asset_check_evaluations()}
    assert {key: one.passed for key, one in found.items()} == {"raw": True, "clean": False}
    assert "down from 3, more than 0.5 of it" in found["clean"].description
    assert len(project.events("raw")) == 2


def test_what_it_selects_must_be_named() -> None:
    assert build_drift_schedule(AssetSelection.assets("raw")).cron_schedule == "0 6 * * *"
    with pytest.raises(ConfigurationError, match="among="):
        build_drift_schedule(AssetSelection.all())


@pytest.mark.parametrize("checks", [(), "drift"])
def test_checks_are_a_list_of_names(checks: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected a list of names"):
        build_drift_schedule([raw], checks=checks)
