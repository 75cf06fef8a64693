"""Pinned and accepted runs as baselines: honoured by receipts, the sensor and the checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dagster import (
    AssetKey,
    AssetObservation,
    BackfillPolicy,
    InMemoryIOManager,
    StaticPartitionsDefinition,
    asset,
)

from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io.drift.checks import build_drift_checks
from ubunye_orchestrate.dagster_io.receipts.acceptance import report_acceptance
from ubunye_orchestrate.dagster_io.receipts.baseline import baseline_named
from ubunye_orchestrate.dagster_io.receipts.rebuilding import rebuilt_record
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.records.baselines import Acceptance

from .conftest import Project

pytestmark = pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")


class World:
    rows = 3


@asset
def raw() -> pd.DataFrame:
    return pd.DataFrame({"x": range(World.rows)})


@asset(metadata={"ubunye/policy": {"baseline": "accepted"}})
def golden() -> pd.DataFrame:
    return pd.DataFrame({"x": range(World.rows)})


@asset(partitions_def=StaticPartitionsDefinition(["eu", "us"]))
def orders() -> pd.DataFrame:
    return pd.DataFrame({"x": range(World.rows)})


@pytest.fixture(autouse=True)
def three_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "rows", 3)


@pytest.fixture
def manager(project: Project) -> Any:
    return with_receipts(InMemoryIOManager(), project.receipts)


def say(project: Project, key: str, kind: Any, partition: str | None = None, **fields: Any) -> Acceptance:
    """Say something of the newest run of an asset."""
    record = project.receipt(key, partition)
    said = Acceptance(
        kind=kind,
        usecase=record.usecase,
        package=record.package,
        task_name=record.task_name,
        asset_key=key.split("/"),
        partition_keys=[] if partition is None else [partition],
        run_id=record.run_id,
        by="ada",
        at="2026-01-01T00:00:00+00:00",
        why="looked at it",
    )
    return report_acceptance(project.instance, said.model_copy(update=fields))


THREE = StaticPartitionsDefinition(["a", "b", "c"])
RANGE = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "c"}


class TestStoredTogether:
    """One frame for several partitions: which rows are whose is not known."""

    @pytest.fixture
    def manager(self, project: Project) -> Any:
        class Frames(InMemoryIOManager):
            def handle_output(self, context: Any, obj: Any) -> None:
                pass

        return with_receipts(Frames(), project.receipts)

    @pytest.fixture
    def together(self) -> Any:
        @asset(partitions_def=THREE, backfill_policy=BackfillPolicy.single_run())
        def together(context):  # type: ignore[no-untyped-def]
            return pd.DataFrame({"p": list(context.partition_keys)})

        return together

    def test_no_partition_shows_the_rows_of_all(self, together: Any, manager: Any, project: Project) -> None:
        project.run([together], manager, tags=RANGE)
        whole = project.receipt("together", "b").outputs[0]
        assert whole.row_count == 3
        for key in "abc":
            metadata = project.metadata("together", key)
            assert "dagster/partition_row_count" not in metadata
            assert "ubunye/data_hash" not in metadata
            assert metadata["ubunye/stored_together"] == (
                f"rows of all 3 partitions: 3; data hash of them: {whole.data_hash}"
            )
        project.run([together], manager, partition_key="b")
        metadata = project.metadata("together", "b")
        assert metadata["dagster/partition_row_count"] == 1
        assert metadata["ubunye/data_hash"] == project.receipt("together", "b").outputs[0].data_hash
        assert "ubunye/stored_together" not in metadata

    @pytest.mark.parametrize("order", ["together_first", "alone_first"])
    def test_what_was_stored_otherwise_is_no_first_record(
        self, order: str, together: Any, manager: Any, project: Project
    ) -> None:
        alone: dict[str, Any] = {"partition_key": "a"}
        ways = [{"tags": RANGE}, alone] if order == "together_first" else [alone, {"tags": RANGE}]
        sides = ["partitions a, b, c together", "partition a"]
        then, now = sides if order == "together_first" else reversed(sides)
        checks = build_drift_checks([together])
        first = project.run([together], manager, **ways[0])
        second = project.run([together, *checks], manager, **ways[1])
        told = f"nothing to compare with: run {first.run_id} stored {then}, this one {now}"
        assert project.metadata("together", "a")["ubunye/changes"] == f"- {told}"
        (check,) = second.get_asset_check_evaluations()
        assert check.passed
        assert told in (check.description or "")
        assert (project.receipt("together", "a").dagster or {})["baseline"] is None
        # The same once more has something to be held against.
        again = project.run([together], manager, **ways[1])
        assert again.success
        assert "nothing to compare" not in project.metadata("together", "a")["ubunye/changes"]


def named(project: Project, key: str, partition: str | None = None) -> dict[str, Any]:
    record = project.receipt(key, partition)
    assert record.dagster is not None
    return dict(record.dagster.get("baseline") or {})


def test_a_pinned_run_is_the_baseline_until_it_is_unpinned(project: Project, manager: Any) -> None:
    project.run([raw], manager)
    pinned = say(project, "raw", "pinned")
    World.rows = 4
    project.run([raw], manager)
    # The second run after it learns of the pin from the receipt before, not from the log.
    project.run([raw], manager)
    assert named(project, "raw")["storage_id"] == pinned.storage_id
    assert named(project, "raw")["kind"] == "pinned"
    changes = project.metadata("raw")["ubunye/changes"]
    assert "| rows of raw | 3 | 4 |" in changes
    assert f"Held against the pinned run {pinned.run_id}" in changes
    previous = project.event("raw").storage_id
    say(project, "raw", "unpinned")
    project.run([raw], manager)
    assert named(project, "raw") == {"storage_id": previous, "run_id": project.events("raw")[1].run_id}


def test_another_pin_takes_its_place(project: Project, manager: Any) -> None:
    project.run([raw], manager)
    say(project, "raw", "pinned")
    project.run([raw], manager)
    second = say(project, "raw", "pinned")
    project.run([raw], manager)
    assert named(project, "raw")["storage_id"] == second.storage_id


def test_the_last_accepted_run_is_the_baseline_where_the_policy_says_so(
    project: Project, manager: Any
) -> None:
    project.run([raw, golden], manager)
    # Until there is one: the previous success.
    project.run([raw, golden], manager)
    assert named(project, "golden")["storage_id"] == project.events("golden")[1].storage_id
    accepted = say(project, "golden", "accepted")
    say(project, "raw", "accepted")
    World.rows = 5
    project.run([raw, golden], manager)
    project.run([raw, golden], manager)
    assert named(project, "golden") == {
        "storage_id": accepted.storage_id,
        "run_id": accepted.run_id,
        "kind": "accepted",
    }
    assert named(project, "raw")["storage_id"] == project.events("raw")[1].storage_id
    # Another policy, given to whoever judges the receipt, finds what it asks for in it.
    kind, other = baseline_named(project.receipt("raw").dagster, "accepted") or ("previous", {})
    assert (kind, other["storage_id"]) == ("accepted", project.events("raw")[2].storage_id)


def test_of_its_partition_and_profile_only(project: Project, manager: Any) -> None:
    for partition in ("eu", "us"):
        project.run([orders], manager, partition_key=partition)
    pinned = say(project, "orders", "pinned", "eu")
    say(project, "orders", "pinned", "us", profile="branch")
    for partition in ("eu", "us", "eu", "us"):
        project.run([orders], manager, partition_key=partition)
    assert named(project, "orders", "eu")["storage_id"] == pinned.storage_id
    assert named(project, "orders", "us")["storage_id"] == project.events("orders", "us")[1].storage_id


def test_a_pinned_run_that_left_the_log_is_said_and_not_replaced(
    project: Project, manager: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ubunye_orchestrate.dagster_io import upstream

    project.run([raw], manager)
    pinned = say(project, "raw", "pinned")
    monkeypatch.setattr(upstream, "materializations_by_id", lambda instance, ids: {})
    project.run([raw], manager)
    assert named(project, "raw")["storage_id"] == pinned.storage_id
    assert project.metadata("raw")["ubunye/changes"].startswith("Not compared: the pinned run ")


def test_other_observations_and_those_that_cannot_be_read_say_nothing(project: Project, manager: Any) -> None:
    project.run([raw], manager)
    first = project.event("raw")
    for metadata in ({"ubunye/acceptance": "a text"}, {"ubunye/acceptance": {"kind": "pinned"}}, {"mine": 1}):
        project.instance.report_runless_asset_event(
            AssetObservation(asset_key=AssetKey("raw"), metadata=metadata)
        )
    project.run([raw], manager)
    assert named(project, "raw") == {"storage_id": first.storage_id, "run_id": first.run_id}


def test_a_receipt_reads_only_what_was_said_since_the_last_one(
    project: Project, manager: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.run([raw], manager)
    say(project, "raw", "pinned")
    project.run([raw], manager)
    read: list[int] = []
    fetch = type(project.instance).fetch_observations

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = fetch(self, *args, **kwargs)
        read.append(len(found.records))
        return found

    monkeypatch.setattr(type(project.instance), "fetch_observations", counted)
    project.run([raw], manager)
    assert read == []
    say(project, "raw", "unpinned")
    project.run([raw], manager)
    assert read == [1]


@pytest.mark.parametrize("value", ["golden", "pinned", ""])
def test_a_policy_names_a_baseline_that_there_is(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected one of previous, accepted"):
        DriftPolicy(baseline=value)


def test_a_record_made_again_of_several_partitions_names_the_baseline_of_none(
    project: Project, tmp_path: Path
) -> None:
    @asset(
        partitions_def=StaticPartitionsDefinition(["eu", "us"]), backfill_policy=BackfillPolicy.single_run()
    )
    def both() -> dict[str, pd.DataFrame]:
        return {key: pd.DataFrame({"x": range(World.rows)}) for key in ("eu", "us")}

    manager = ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
    tags = {"dagster/asset_partition_range_start": "eu", "dagster/asset_partition_range_end": "us"}
    project.run([both], manager, tags=tags)
    pinned = say(project, "both", "pinned", "eu")
    project.run([both], manager, tags=tags)
    receipts = [project.receipt("both", partition) for partition in ("eu", "us")]
    assert [(one.dagster or {}).get("baseline", {}).get("kind") for one in receipts] == ["pinned", None]
    assert named(project, "both", "eu")["storage_id"] == pinned.storage_id
    record = rebuilt_record(receipts, {})
    (written, _) = project.mirrored("both")
    assert record.dagster is not None
    assert written.dagster is not None
    assert "baselines" not in record.dagster
    assert record.dagster.keys() == written.dagster.keys()
