"""Rules as declared asset checks: their results come from receipts, on a failed step from its end."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from dagster import (
    AssetCheckKey,
    AssetCheckSeverity,
    AssetKey,
    AssetSelection,
    AssetSpec,
    BackfillPolicy,
    InMemoryIOManager,
    RetryPolicy,
    StaticPartitionsDefinition,
    asset,
)

from ubunye_orchestrate.dagster_io.receipts.expectation_checks import build_expectation_checks
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.declare import expect

from .conftest import Project

NOW: dict[str, Any] = {}


@asset(metadata=expect(expect.row_count(min=1)))
@expect.unique("id")
@expect.not_null("id", severity="warn")
def orders() -> pd.DataFrame:
    return pd.DataFrame({"id": NOW["id"]})


def run(project: Project, assets: Any, **kwargs: Any) -> Any:
    manager = with_receipts(InMemoryIOManager(), project.receipts)
    return project.run(assets, manager, raise_on_error=False, **kwargs)


def evaluated(project: Project, key: AssetCheckKey) -> list[Any]:
    history = project.instance.event_log_storage.get_asset_check_execution_history(key, limit=9)
    # A run plans its checks first; a failed one leaves it at that.
    return [one for one in history if one.event.dagster_event.event_type_value == "ASSET_CHECK_EVALUATION"]


def test_each_rule_is_a_check_with_its_counts(project: Project) -> None:
    NOW["id"] = [1.0, 2.0, None]
    result = run(project, [orders, *build_expectation_checks([orders])])
    assert result.success
    found = {one.check_name: one for one in result.get_asset_check_evaluations()}
    assert {name: one.passed for name, one in found.items()} == {
        "id_unique": True,
        "id_not_null": False,
        "row_count": True,
    }
    broken = found["id_not_null"]
    assert broken.severity is AssetCheckSeverity.WARN
    assert broken.description == "broken by 1 of 3 rows"
    assert {name: value.value for name, value in broken.metadata.items()} == {
        "ubunye/failed": 1,
        "ubunye/total": 3,
    }
    assert found["id_unique"].severity is AssetCheckSeverity.ERROR
    assert found["id_unique"].description == "holds; 3 rows"


def test_a_failed_step_reports_the_rules_that_it_broke(project: Project) -> None:
    checks = build_expectation_checks([orders])
    NOW["id"] = [1.0]
    assert run(project, [orders, *checks]).success
    NOW["id"] = [2.0, 2.0]
    assert not run(project, [orders, *checks]).success
    key = AssetCheckKey(AssetKey("orders"), "id_unique")
    newest = evaluated(project, key)
    assert len(newest) == 2
    evaluation = newest[0].event.dagster_event.asset_check_evaluation_data
    assert (evaluation.passed, evaluation.severity) == (False, AssetCheckSeverity.ERROR)
    assert evaluation.description == "not written: broken by 2 of 2 rows"
    # The rule that the unwritten rows kept says nothing of the asset.
    kept = AssetCheckKey(AssetKey("orders"), "row_count")
    assert len(evaluated(project, kept)) == 1


def test_an_attempt_that_is_tried_again_reports_nothing(project: Project) -> None:
    tries: list[int] = []

    @asset(retry_policy=RetryPolicy(max_retries=1))
    @expect.row_count(min=1)
    def table() -> pd.DataFrame:
        tries.append(1)
        return pd.DataFrame({"id": range(len(tries) - 1)})

    result = run(project, [table, *build_expectation_checks([table])])
    assert result.success
    key = AssetCheckKey(AssetKey("table"), "row_count")
    assert [one.status.value for one in evaluated(project, key)] == ["SUCCEEDED"]
    assert [record.status for record in project.mirrored("table")] == ["success", "error"]


def test_a_rule_that_came_after_the_materialization_is_not_judged(project: Project) -> None:
    @asset(name="late")
    def before() -> pd.DataFrame:
        return pd.DataFrame({"id": [1]})

    @asset(name="late")
    @expect.row_count(min=1)
    def after() -> pd.DataFrame: ...

    (check,) = build_expectation_checks([after])
    only = AssetSelection.checks(check)
    never = run(project, [after, check], selection=only).get_asset_check_evaluations()[0]
    assert (never.passed, never.description) == (False, "not judged: it was never materialized")
    run(project, [before])
    late = run(project, [after, check], selection=only).get_asset_check_evaluations()[0]
    assert (late.passed, late.description) == (False, "not judged: its receipt holds no result of this rule")
    project.run([before], InMemoryIOManager())
    bare = run(project, [after, check], selection=only).get_asset_check_evaluations()[0]
    assert not bare.passed
    assert bare.description is not None
    assert "has no receipt" in bare.description


@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`")
def test_the_partitions_of_a_range_are_one_result(project: Project) -> None:
    parts = StaticPartitionsDefinition(["p", "q"])

    @asset(partitions_def=parts, backfill_policy=BackfillPolicy.single_run())
    @expect.not_null("id", severity="warn")
    def table() -> Any:
        return {"p": pd.DataFrame({"id": [1, 2]}), "q": pd.DataFrame({"id": [1, None]})}

    manager = ParquetIOManager(base_path=str(project.root / "files"), receipts=project.receipts)
    tags = {"dagster/asset_partition_range_start": "p", "dagster/asset_partition_range_end": "q"}
    result = project.run([table, *build_expectation_checks([table])], manager, tags=tags)
    (found,) = result.get_asset_check_evaluations()
    assert (found.passed, found.description) == (False, "broken by 1 of 4 rows")


def test_an_asset_without_rules_and_a_name_are_refused() -> None:
    @asset
    def bare() -> None: ...

    for given in (bare, "orders", AssetSpec("orders")):
        with pytest.raises(ConfigurationError, match="expected assets with rules"):
            build_expectation_checks([given])


def test_the_rules_of_a_spec_are_those_in_its_metadata() -> None:
    (check,) = build_expectation_checks([AssetSpec("raw", metadata=expect(expect.row_count(1)))])
    assert {key.name for key in check.check_keys} == {"row_count"}
