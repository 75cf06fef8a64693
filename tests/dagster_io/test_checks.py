"""The check ``drift``: the sensor's comparison inside a run."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dagster import (
    AssetCheckSeverity,
    AssetKey,
    AssetSelection,
    BackfillPolicy,
    InMemoryIOManager,
    StaticPartitionsDefinition,
    asset,
    load_assets_from_modules,
)

from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io.drift.checks import build_drift_checks
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.errors import ConfigurationError

from .conftest import Project

pytestmark = pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")


class World:
    random = False
    rows = 2


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "random", False)
    monkeypatch.setattr(World, "rows", 2)


@asset
def raw() -> pd.DataFrame:
    return pd.DataFrame({"x": [1] * World.rows})


@asset
def clean(raw: pd.DataFrame) -> pd.DataFrame:
    return raw.assign(noise=np.random.default_rng().random(len(raw)) if World.random else 0.0)


@asset
def report(clean: pd.DataFrame) -> pd.DataFrame:
    return clean


@pytest.fixture
def manager(project: Project) -> Any:
    return with_receipts(InMemoryIOManager(), project.receipts)


def run(project: Project, manager: Any, assets: Any = (raw, clean, report), **kwargs: Any) -> Any:
    checks = kwargs.pop("checks", None) or build_drift_checks([raw, clean])
    return project.run([*assets, *checks], manager, raise_on_error=False, **kwargs)


def results(run_result: Any) -> dict[str, Any]:
    return {e.asset_key.to_user_string(): e for e in run_result.get_asset_check_evaluations()}


def test_it_passes_on_a_first_record_and_on_unchanged_data(project: Project, manager: Any) -> None:
    first = results(run(project, manager))
    assert {key: (e.check_name, e.passed) for key, e in first.items()} == {
        "raw": ("drift", True),
        "clean": ("drift", True),
    }
    assert first["clean"].description == "clean: first record, nothing to compare with"
    second = results(run(project, manager))
    assert second["clean"].description == "clean: outputs unchanged"
    assert second["clean"].metadata["ubunye/changes"].value == "outputs unchanged"


def test_an_unexplained_change_fails_it_and_downstream_goes_on_unless_it_blocks(
    project: Project, manager: Any
) -> None:
    World.random = True
    for blocking in (False, True):
        checks = build_drift_checks([clean], blocking=blocking)
        run(project, manager, checks=checks)
        before = project.event("report").storage_id
        evaluation = results(run(project, manager, checks=checks))["clean"]
        assert not evaluation.passed
        assert evaluation.severity is AssetCheckSeverity.ERROR
        assert (project.event("report").storage_id == before) is blocking


def test_policies_of_the_call_and_of_the_asset(project: Project, manager: Any) -> None:
    @asset(metadata={"ubunye/policy": {"min_rows": 2}})
    def bounded() -> pd.DataFrame:
        return pd.DataFrame({"x": [1] * World.rows})

    World.rows = 1
    evaluation = results(run(project, manager, [bounded], checks=build_drift_checks([bounded])))["bounded"]
    assert not evaluation.passed
    assert "fewer than 2" in evaluation.description
    relaxed = build_drift_checks([bounded], policy={"bounded": DriftPolicy()})
    assert results(run(project, manager, [bounded], checks=relaxed))["bounded"].passed


def test_what_was_not_checked_does_not_pass(project: Project) -> None:
    unwrapped = results(run(project, InMemoryIOManager()))["clean"]
    assert not unwrapped.passed
    assert unwrapped.severity is AssetCheckSeverity.WARN
    expected = "its materialization has no receipt (is its IO manager wrapped?)"
    assert unwrapped.description == f"not judged: {expected}"
    assert unwrapped.metadata["ubunye/not_judged"].value == expected


def test_an_asset_that_was_never_materialized(project: Project, manager: Any) -> None:
    (check,) = build_drift_checks([clean])
    result = project.run(
        [raw, clean, check], manager, selection=AssetSelection.checks(check), raise_on_error=False
    )
    assert results(result)["clean"].description == "not judged: it was never materialized"


def test_a_range_of_partitions_is_judged_partition_by_partition(project: Project, manager: Any) -> None:
    @asset(partitions_def=StaticPartitionsDefinition(["a", "b"]), backfill_policy=BackfillPolicy.single_run())
    def parts() -> dict[str, pd.DataFrame]:
        return {"a": pd.DataFrame({"x": [1]}), "b": pd.DataFrame({"x": [1] * World.rows})}

    tags = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}
    checks = build_drift_checks([parts], policy=DriftPolicy(max_row_increase=0.5))
    run(project, manager, [parts], checks=checks, tags=tags)
    World.rows = 9
    evaluation = results(run(project, manager, [parts], checks=checks, tags=tags))["parts"]
    assert not evaluation.passed
    assert evaluation.description.startswith("parts[b]: warn: ")


@pytest.mark.parametrize("assets", [[], "clean"])
def test_what_names_no_list_of_assets_is_refused(assets: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected a list"):
        build_drift_checks(assets)


def test_each_asset_has_its_check() -> None:
    checks = build_drift_checks([raw, "b", AssetKey(["c", "d"])])
    keys = [key for check in checks for key in check.check_keys]
    assert [(key.asset_key.to_user_string(), key.name) for key in keys] == [
        ("raw", "drift"),
        ("b", "drift"),
        ("c/d", "drift"),
    ]


class TestWhichAssets:
    def test_what_a_loader_of_assets_returns(self) -> None:
        checks = build_drift_checks(load_assets_from_modules([_module()]))
        assert sorted(key.asset_key.to_user_string() for one in checks for key in one.check_keys) == [
            "a",
            "b",
        ]

    @pytest.mark.parametrize(
        ("selection", "among"),
        [
            (AssetSelection.assets("raw", "clean"), None),
            (AssetSelection.groups("default") - AssetSelection.assets("report"), [raw, clean, report]),
            (AssetSelection.assets("clean").upstream(), [raw, clean, report]),
        ],
        ids=["by key", "by group", "upstream"],
    )
    def test_a_selection_that_can_be_resolved(self, selection: Any, among: Any) -> None:
        checks = build_drift_checks(selection, among=among)
        keys = {key.asset_key.to_user_string() for one in checks for key in one.check_keys}
        assert keys == {"raw", "clean"}

    def test_one_that_cannot_says_what_it_takes(self) -> None:
        with pytest.raises(ConfigurationError, match=r"goes by the graph of assets.*among="):
            build_drift_checks(AssetSelection.groups("default"))


def _module() -> Any:
    import types

    @asset
    def a() -> int:
        return 1

    @asset
    def b() -> int:
        return 1

    module = types.ModuleType("some_assets")
    module.a, module.b = a, b  # type: ignore[attr-defined]
    return module


def test_an_accepted_run_passes_when_it_is_looked_at_again(project: Project, manager: Any) -> None:
    from .test_baselines import say

    World.random = True
    run(project, manager)
    failed = results(run(project, manager))["clean"]
    assert not failed.passed
    say(project, "clean", "accepted")
    only = AssetSelection.checks(*(key for one in build_drift_checks([clean]) for key in one.check_keys))
    again = results(run(project, manager, selection=only))["clean"]
    assert again.passed
    assert again.description.startswith("clean: accepted by ada (looked at it); error: ")


def test_it_says_where_a_change_entered(project: Project, manager: Any) -> None:
    run(project, manager)
    World.rows = 3
    found = results(run(project, manager))["clean"]
    assert found.metadata["ubunye/path"].value == "entered at raw (source changed)"


def test_a_table_that_is_overdue(project: Project, manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = build_drift_checks([raw], DriftPolicy(expected_hours=24))
    run(project, manager, [raw], checks=checks)
    only = AssetSelection.checks(*(key for one in checks for key in one.check_keys))
    assert results(run(project, manager, [raw], checks=checks, selection=only))["raw"].passed
    later = time.time() + 30 * 3600
    monkeypatch.setattr(
        "ubunye_orchestrate.dagster_io.drift.checks.time", SimpleNamespace(time=lambda: later)
    )
    late = results(run(project, manager, [raw], checks=checks, selection=only))["raw"]
    assert not late.passed
    assert late.severity is AssetCheckSeverity.WARN
    assert "raw was last materialized 30.0 hours ago; one is expected every 24 hours" in late.description
