"""The drift sensor on real runs: each materialization is judged once, from the event log alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlalchemy
from dagster import (
    AssetCheckSeverity,
    AssetKey,
    AssetMaterialization,
    AssetSelection,
    Definitions,
    DynamicPartitionsDefinition,
    InMemoryIOManager,
    JsonMetadataValue,
    RunRequest,
    SensorResult,
    StaticPartitionsDefinition,
    asset,
    build_sensor_context,
    job,
    op,
)

from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io.drift.cursor import DriftCursor
from ubunye_orchestrate.dagster_io.drift.judging import DriftReport
from ubunye_orchestrate.dagster_io.drift.sensors import build_drift_sensor
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.records.environment import current_environment

from .conftest import Project


class World:
    """What the assets compute with: a test changes it between two runs."""

    rows = 3
    random = False


@asset(group_name="sources")
def raw() -> pd.DataFrame:
    return pd.DataFrame({"x": range(World.rows)})


@asset
def clean(raw: pd.DataFrame) -> pd.DataFrame:
    noise = np.random.default_rng().random(len(raw)) if World.random else 0.0
    return raw.assign(noise=noise)


class Watch:
    """A project, a sensor over it, and the cursor between two ticks."""

    def __init__(self, project: Project, sensor: Any, assets: Any = (raw, clean)) -> None:
        self.project = project
        self.sensor = sensor
        self.assets = list(assets)
        self.manager = with_receipts(InMemoryIOManager(), project.receipts)
        self.definitions = Definitions(assets=self.assets, resources={"io_manager": self.manager})
        self.cursor: str | None = None

    def run(self, **kwargs: Any) -> None:
        self.project.run(self.assets, self.manager, **kwargs)

    def tick(self) -> SensorResult:
        context = build_sensor_context(
            instance=self.project.instance, cursor=self.cursor, definitions=self.definitions
        )
        result = self.sensor.evaluate_tick(context)
        self.cursor = result.cursor
        return result

    def found(self) -> dict[str, Any]:
        """Tick, and return the evaluations by asset."""
        return {event.asset_key.to_user_string(): event for event in self.tick().asset_events}


@pytest.fixture
def watch(project: Project, monkeypatch: pytest.MonkeyPatch) -> Watch:
    monkeypatch.setattr(World, "rows", 3)
    monkeypatch.setattr(World, "random", False)
    return Watch(project, build_drift_sensor([raw, clean]))


def test_the_first_tick_judges_nothing_historic(watch: Watch) -> None:
    watch.run()
    tick = watch.tick()
    assert not tick.asset_events
    assert str(tick.skip_message).startswith("First look: what is materialized from now on is judged")
    head = watch.project.instance.event_log_storage.get_maximum_record_id() or 0
    assert DriftCursor.parse(watch.cursor) == DriftCursor(head, observed=head)
    assert watch.tick().skip_message == "Nothing was materialized since the last look."


def test_every_materialization_is_judged_once_on_itself(watch: Watch) -> None:
    watch.tick()
    watch.run()
    first = watch.found()
    assert sorted(first) == ["clean", "raw"]
    evaluation = first["clean"]
    assert (evaluation.check_name, evaluation.passed) == ("drift", True)
    event = watch.project.event("clean")
    target = evaluation.target_materialization_data
    assert (target.storage_id, target.run_id, target.timestamp) == (
        event.storage_id,
        event.run_id,
        event.timestamp,
    )
    assert not watch.tick().asset_events
    watch.run()
    watch.run()
    assert len(watch.tick().asset_events) == 4


def test_unchanged_data_passes_and_is_said_so(watch: Watch) -> None:
    watch.run()
    watch.tick()
    watch.run()
    tick = watch.tick()
    assert all(event.passed for event in tick.asset_events)
    assert tick.skip_message == "2 materializations without drift."


def test_what_changed_together_is_named_and_passes(watch: Watch) -> None:
    watch.run()
    watch.tick()
    World.rows = 4
    watch.run()
    evaluation = watch.found()["clean"]
    assert evaluation.passed
    assert "| rows of clean | 3 | 4 | input raw |" in evaluation.metadata["ubunye/changes"].value
    assert evaluation.metadata["ubunye/changed_with"].value == "input raw"
    runs = watch.project.events("clean")
    assert evaluation.metadata["ubunye/run"].value == runs[0].run_id
    assert evaluation.metadata["ubunye/baseline_run"].value == runs[1].run_id


def test_an_unexplained_change_fails_with_an_error(watch: Watch) -> None:
    World.random = True
    watch.run()
    watch.tick()
    watch.run()
    tick = watch.tick()
    evaluation = {event.asset_key.to_user_string(): event for event in tick.asset_events}["clean"]
    assert not evaluation.passed
    assert evaluation.severity is AssetCheckSeverity.ERROR
    assert "unexplained" in [finding["kind"] for finding in evaluation.metadata["ubunye/findings"].value]
    assert "clean: error: " in str(tick.skip_message)
    assert "1 materialization without drift." in str(tick.skip_message)


def test_a_changed_input_that_was_not_stored_so_breaks_custody(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = InMemoryIOManager.load_input
    # Of Dagster's own class, which is known to give back what it was given: a subclass may do as it likes.
    monkeypatch.setattr(
        InMemoryIOManager, "load_input", lambda self, context: load(self, context).assign(x=0)
    )
    watch = Watch(project, build_drift_sensor([raw, clean]))
    watch.manager = with_receipts(InMemoryIOManager(), project.receipts)
    watch.tick()
    watch.run()
    evaluation = watch.found()["clean"]
    kinds = {f["kind"]: f["severity"] for f in evaluation.metadata["ubunye/findings"].value}
    assert kinds["custody_broken"] == "error"
    assert not evaluation.passed


class TestPolicies:
    def drifted(self, project: Project, sensor: Any, assets: Any = (raw, clean)) -> dict[str, Any]:
        watch = Watch(project, sensor, assets)
        watch.run()
        watch.tick()
        World.rows = 1
        watch.run()
        return watch.found()

    @pytest.fixture(autouse=True)
    def three_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(World, "rows", 3)

    def test_one_for_all(self, project: Project) -> None:
        found = self.drifted(
            project, build_drift_sensor([raw, clean], policy=DriftPolicy(max_row_decrease=0.5))
        )
        assert [found[key].passed for key in ("raw", "clean")] == [False, False]
        assert found["raw"].severity is AssetCheckSeverity.WARN

    def test_one_for_each(self, project: Project) -> None:
        policies = {"clean": DriftPolicy(min_rows=2, severities={"rows_out_of_bounds": "error"})}
        found = self.drifted(project, build_drift_sensor([raw, clean], policy=policies))
        assert [found[key].passed for key in ("raw", "clean")] == [True, False]
        assert found["clean"].severity is AssetCheckSeverity.ERROR

    @pytest.mark.parametrize(
        "value", [{"min_rows": 2}, JsonMetadataValue({"min_rows": 2})], ids=["dict", "json"]
    )
    def test_declared_on_the_asset_and_overridden_on_the_sensor(self, value: Any, project: Project) -> None:
        @asset(metadata={"ubunye/policy": value})
        def bounded() -> pd.DataFrame:
            return pd.DataFrame({"x": range(World.rows)})

        found = self.drifted(project, build_drift_sensor([bounded]), [bounded])
        assert not found["bounded"].passed
        World.rows = 3
        override = build_drift_sensor([bounded], policy={"bounded": DriftPolicy()})
        assert self.drifted(project, override, [bounded])["bounded"].passed
        # The panel is judged by the asset's own policy.
        assert "| rows of bounded | 3 | 1 |  |" in project.metadata("bounded")["ubunye/changes"]

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (
                {"min_row": 2},
                r'metadata "ubunye/policy" of asset odd has .min_row.; expected one of severities, min_rows',
            ),
            ("strict", r'metadata "ubunye/policy" of asset odd is .*; expected a mapping'),
            ({"min_rows": -1}, "a bound is 0 or more"),
        ],
    )
    def test_one_that_cannot_be_read_is_named_and_the_others_are_judged(
        self, value: Any, message: str, project: Project
    ) -> None:
        import re

        @asset(metadata={"ubunye/policy": value})
        def odd() -> pd.DataFrame:
            return pd.DataFrame({"x": [1]})

        watch = Watch(project, build_drift_sensor([odd, raw]), [odd, raw])
        watch.tick()
        watch.run()
        tick = watch.tick()
        assert [event.asset_key for event in tick.asset_events] == [AssetKey("raw")]
        assert re.search(r"Not judged: odd: .*" + message, str(tick.skip_message))

    def test_deterministic_false_is_never_unexplained(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(World, "random", True)
        watch = Watch(project, build_drift_sensor([clean], policy=DriftPolicy(deterministic=False)))
        watch.run()
        watch.tick()
        watch.run()
        assert watch.found()["clean"].passed


class TestSelections:
    @pytest.mark.parametrize(
        "assets",
        [
            [clean],
            ["clean"],
            [AssetKey("clean")],
            AssetSelection.assets("clean"),
            AssetSelection.groups("default"),
        ],
        ids=["definition", "text", "key", "selection", "group"],
    )
    def test_only_the_selected_are_judged(self, assets: Any, project: Project) -> None:
        watch = Watch(project, build_drift_sensor(assets))
        watch.tick()
        watch.run()
        assert list(watch.found()) == ["clean"]

    def test_others_alone_are_nothing_new(self, project: Project) -> None:
        watch = Watch(project, build_drift_sensor(["elsewhere"]))
        watch.tick()
        watch.run()
        tick = watch.tick()
        assert tick.skip_message == "None of the selected assets was materialized since the last look."
        assert DriftCursor.parse(tick.cursor).storage_id == watch.project.event("clean").storage_id  # type: ignore[union-attr]

    @pytest.mark.parametrize("assets", [[], "clean", clean], ids=["none", "a text", "one asset"])
    def test_what_selects_nothing_is_refused(self, assets: Any) -> None:
        with pytest.raises(ConfigurationError, match="expected a list"):
            build_drift_sensor(assets)


class TestCannotBeJudged:
    def test_without_a_receipt(self, watch: Watch) -> None:
        watch.tick()
        watch.project.instance.report_runless_asset_event(AssetMaterialization(asset_key="clean"))
        watch.run(selection=[raw])
        tick = watch.tick()
        assert [event.asset_key for event in tick.asset_events] == [AssetKey("raw")]
        assert "Not judged: clean: its materialization has no receipt (is its IO manager wrapped?)" in str(
            tick.skip_message
        )

    @pytest.mark.parametrize(
        ("receipt", "message"),
        [
            ({"no": "record"}, "a JSON object without run_id"),
            ("a text", "JSON that is a text"),
            (
                {
                    "run_id": "r",
                    "task_path": "a/b/c",
                    "usecase": "a",
                    "package": "b",
                    "task_name": "c",
                    "record_version": 3,
                },
                "a record of version 3; expected version 2 or older; upgrade ubunye-orchestrate",
            ),
        ],
    )
    def test_a_foreign_or_newer_receipt(self, receipt: Any, message: str, watch: Watch) -> None:
        watch.tick()
        foreign = AssetMaterialization(
            asset_key="clean", metadata={"ubunye/receipt": JsonMetadataValue(receipt)}
        )
        watch.project.instance.report_runless_asset_event(foreign)
        watch.run(selection=[raw])
        tick = watch.tick()
        assert [event.asset_key for event in tick.asset_events] == [AssetKey("raw")]
        assert message in str(tick.skip_message)

    def test_a_baseline_that_is_gone(self, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
        from ubunye_orchestrate.dagster_io import upstream

        watch.run()
        watch.tick()
        watch.run()
        monkeypatch.setattr(upstream, "materializations_by_id", lambda instance, ids: {})
        tick = watch.tick()
        assert not tick.asset_events
        assert "Not judged: raw: its baseline, materialization" in str(tick.skip_message)
        assert "is no longer in the event log" in str(tick.skip_message)

    def test_an_event_that_dagster_cannot_read(self, watch: Watch) -> None:
        from .test_asset_events import overwritten

        watch.tick()
        watch.run()
        overwritten(watch.project, "raw", lambda event: "[")
        tick = watch.tick()
        assert [event.asset_key for event in tick.asset_events] == [AssetKey("clean")]
        assert "Not judged: raw: materialization " in str(tick.skip_message)
        assert "of raw cannot be read (JSONDecodeError" in str(tick.skip_message)
        assert "custody of input raw not judged" in str(
            tick.asset_events[0].metadata["ubunye/findings"].value
        )
        assert not watch.tick().asset_events

    def test_a_partition_that_was_deleted_since(self, project: Project) -> None:
        @asset(partitions_def=DynamicPartitionsDefinition(name="customers"))
        def bills() -> pd.DataFrame:
            return pd.DataFrame({"x": [1]})

        @asset
        def sums(bills: dict[str, pd.DataFrame]) -> pd.DataFrame:
            return pd.concat(bills.values())

        folder = str(project.root / "tables")
        watch = Watch(project, build_drift_sensor(AssetSelection.all()), [bills, sums])
        watch.manager = ParquetIOManager(base_path=folder, receipts=project.receipts)
        project.instance.add_dynamic_partitions("customers", ["ada", "bob"])
        for name in ("ada", "bob"):
            watch.run(selection=[bills], partition_key=name)
        watch.run(selection=[sums])
        watch.tick()
        watch.run(selection=[bills], partition_key="bob")
        project.instance.delete_dynamic_partition("customers", "bob")
        watch.run(selection=[sums])
        tick = watch.tick()
        assert "Not judged" not in str(tick.skip_message)
        told = {event.asset_key.to_user_string(): event for event in tick.asset_events}
        assert told["bills"].description == "bills[bob]: outputs unchanged"
        assert told["sums"].passed
        assert "partitions no longer read: bob" in str(told["sums"].metadata["ubunye/findings"].value)

    def test_a_fault_of_ours_is_one_assets_fault(self, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
        from ubunye_orchestrate.dagster_io.drift import sensors

        judge_event = sensors.judge_event

        def fail_on_raw(event: Any, *args: Any) -> Any:
            if event.asset_key == AssetKey("raw"):
                raise RuntimeError("a bug")
            return judge_event(event, *args)

        monkeypatch.setattr(sensors, "judge_event", fail_on_raw)
        watch.tick()
        watch.run()
        tick = watch.tick()
        assert [event.asset_key for event in tick.asset_events] == [AssetKey("clean")]
        assert "Not judged: raw: RuntimeError: a bug." in str(tick.skip_message)


class TestCallbacks:
    def test_they_get_what_did_not_pass_and_never_the_past(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(World, "random", True)
        told: list[DriftReport] = []

        def broken(report: DriftReport) -> None:
            raise RuntimeError("the messenger is down")

        callbacks: list[Callable[[DriftReport], None]] = [broken, told.append]
        watch = Watch(project, build_drift_sensor([raw, clean], on_finding=callbacks))
        watch.run()
        watch.run()
        watch.tick()
        assert told == []
        watch.run()
        assert len(watch.tick().asset_events) == 2
        assert [report.asset_key for report in told] == [AssetKey("clean")]
        assert told[0].text.startswith("clean: error: ")
        assert told[0].baseline is not None

    def test_one_alone(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(World, "random", True)
        told: list[DriftReport] = []
        watch = Watch(project, build_drift_sensor([clean], on_finding=told.append))
        watch.run()
        watch.tick()
        watch.run()
        watch.tick()
        assert len(told) == 1


def test_a_new_environment_is_said_once_for_all_assets(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    watch.run()
    watch.tick()
    now = current_environment()
    newer = now.model_copy(update={"packages": {**now.packages, "pandas": "99.0"}})
    monkeypatch.setattr("ubunye_orchestrate.dagster_io.receipts.assembly.current_environment", lambda: newer)

    def told() -> list[str]:
        return [
            finding["text"]
            for event in watch.tick().asset_events
            for finding in event.metadata["ubunye/findings"].value
            if finding["kind"] == "environment_changed"
        ]

    watch.run()
    (text,) = told()
    assert "pandas" in text
    watch.run()
    assert told() == []
    # Back again is another change.
    monkeypatch.undo()
    watch.run()
    assert len(told()) == 1


def test_partitions_are_judged_by_their_own_past(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "rows", 3)

    @asset(partitions_def=StaticPartitionsDefinition(["eu", "us"]))
    def orders() -> pd.DataFrame:
        return pd.DataFrame({"x": range(World.rows)})

    watch = Watch(project, build_drift_sensor([orders]), [orders])
    watch.run(partition_key="eu")
    watch.tick()
    World.rows = 4
    watch.run(partition_key="us")
    watch.run(partition_key="eu")
    us, eu = watch.tick().asset_events
    assert "first record" in us.description
    assert "orders[eu]: " in eu.description
    assert "| rows of orders | 3 | 4 |" in eu.metadata["ubunye/changes"].value


def test_queries_do_not_grow_with_the_number_of_assets(project: Project) -> None:
    def tables(count: int) -> list[Any]:
        def make(number: int) -> Any:
            @asset(name=f"table_{number}")
            def table() -> pd.DataFrame:
                return pd.DataFrame({"x": [number]})

            return table

        return [make(number) for number in range(count)]

    def queries(count: int) -> int:
        watch = Watch(project, build_drift_sensor(AssetSelection.all()), tables(count))
        watch.run()
        watch.tick()
        watch.run()
        asked: list[str] = []

        def note(connection: Any, cursor: Any, statement: str, *args: Any) -> None:
            if not statement.startswith("PRAGMA"):
                asked.append(statement)

        sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", note)
        try:
            assert len(watch.tick().asset_events) == count
        finally:
            sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", note)
        assert all("FROM event_logs" in statement for statement in asked), asked
        return len(asked)

    assert queries(2) == queries(12) == 3


def test_more_than_one_tick_can_take_is_left_for_the_next(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ubunye_orchestrate.dagster_io.drift.sensors._EVENTS_PER_TICK", 3)
    watch.tick()
    for _ in range(3):
        watch.run()
    assert [len(watch.tick().asset_events) for _ in range(3)] == [3, 3, 0]


def test_a_cursor_of_another_program_begins_anew(watch: Watch) -> None:
    watch.run()
    watch.cursor = "12345-not-json"
    tick = watch.tick()
    assert "(the cursor could not be read)" in str(tick.skip_message)
    assert not tick.asset_events
    watch.run()
    assert len(watch.tick().asset_events) == 2


def test_the_daemon_can_store_what_a_tick_found(project_on_disk: Project) -> None:
    from dagster import AssetCheckKey

    watch = Watch(project_on_disk, build_drift_sensor([raw, clean]))
    watch.tick()
    watch.run()
    for event in watch.tick().asset_events:
        watch.project.instance.report_runless_asset_event(event)
    history = watch.project.instance.event_log_storage.get_asset_check_execution_history(
        AssetCheckKey(AssetKey("clean"), "drift"), limit=5
    )
    assert len(history) == 1


class TestPath:
    def test_the_finding_says_where_the_change_entered(self, watch: Watch) -> None:
        watch.run()
        watch.tick()
        World.rows = 4
        watch.run()
        found = watch.found()
        assert found["clean"].metadata["ubunye/path"].value == "entered at raw (source changed)"
        assert found["clean"].description.endswith("; entered at raw (source changed)")
        watch.run()
        assert "ubunye/path" not in watch.found()["clean"].metadata

    def test_upstream_of_what_was_materialized_since_the_last_look(self, watch: Watch) -> None:
        folder = str(watch.project.root / "tables")
        watch.manager = ParquetIOManager(base_path=folder, receipts=watch.project.receipts)
        watch.run()
        World.rows = 4
        watch.run(selection=[raw])
        watch.tick()
        # ``clean`` alone reads, by its key, what was made before this look.
        watch.run(selection=[clean])
        assert watch.found()["clean"].metadata["ubunye/path"].value == "entered at raw (source changed)"

    def test_a_path_that_breaks_is_said_and_the_findings_stand(
        self, watch: Watch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watch.run()
        watch.tick()
        World.rows = 4
        watch.run()

        def broken(*args: Any) -> Any:
            raise RuntimeError("a bug")

        monkeypatch.setattr("ubunye_orchestrate.dagster_io.drift.paths.follow", broken)
        assert sorted(watch.found()) == ["clean", "raw"]


class TestAcceptance:
    @pytest.fixture
    def failing(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> Watch:
        monkeypatch.setattr(World, "random", True)
        watch = Watch(project, build_drift_sensor([raw, clean], on_finding=self.told.append))
        watch.run()
        watch.tick()
        watch.run()
        return watch

    told: list[DriftReport]

    @pytest.fixture(autouse=True)
    def nothing_told(self) -> None:
        self.told = []

    def accept(self, watch: Watch) -> None:
        from .test_baselines import say

        say(watch.project, "clean", "accepted")

    def test_before_the_look_it_passes_and_says_who_said_so(self, failing: Watch) -> None:
        self.accept(failing)
        evaluation = failing.found()["clean"]
        assert evaluation.passed
        assert evaluation.description.startswith("clean: accepted by ada (looked at it); error: ")
        assert self.told == []

    def test_after_the_look_the_check_is_reported_anew(self, failing: Watch) -> None:
        assert not failing.found()["clean"].passed
        self.accept(failing)
        tick = failing.tick()
        (evaluation,) = tick.asset_events
        assert evaluation.passed
        assert evaluation.description == "accepted by ada (looked at it); not judged anew"
        event = failing.project.event("clean")
        assert evaluation.target_materialization_data.storage_id == event.storage_id
        assert "clean: run " in str(tick.skip_message)
        assert not failing.tick().asset_events

    def test_a_cursor_of_before_knows_how_far_it_was(self, failing: Watch) -> None:
        failing.tick()
        cursor = DriftCursor.parse(failing.cursor)
        assert cursor is not None
        failing.cursor = f'{{"storage_id": {cursor.storage_id}}}'
        self.accept(failing)
        assert [event.passed for event in failing.tick().asset_events] == [True]

    def test_a_pinned_run_is_what_later_ones_are_held_against(self, watch: Watch) -> None:
        from .test_baselines import say

        watch.run()
        say(watch.project, "raw", "pinned")
        World.rows = 4
        watch.run()
        watch.tick()
        watch.run()
        metadata = watch.found()["raw"].metadata
        assert "| rows of raw | 3 | 4 |" in metadata["ubunye/changes"].value
        assert metadata["ubunye/baseline"].value == "pinned"
        assert metadata["ubunye/baseline_run"].value == watch.project.events("raw")[2].run_id


class TestOverdue:
    """An asset that is expected so and so often, and a clock that a test moves."""

    @pytest.fixture
    def watch(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> Watch:
        monkeypatch.setattr(World, "rows", 3)
        monkeypatch.setattr(World, "random", False)
        self.told: list[DriftReport] = []
        policy = {"clean": DriftPolicy(expected_hours=24)}
        watch = Watch(project, build_drift_sensor([raw, clean], policy=policy, on_finding=self.told.append))
        self.after(0, monkeypatch)
        watch.run()
        watch.tick()
        return watch

    def after(self, hours: float, monkeypatch: pytest.MonkeyPatch) -> None:
        now = time.time() + hours * 3600
        moved = SimpleNamespace(time=lambda: now)
        monkeypatch.setattr("ubunye_orchestrate.dagster_io.drift.sensors.time", moved)

    def test_it_is_said_once_for_each_materialization(
        self, watch: Watch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.after(23, monkeypatch)
        assert watch.tick().skip_message == "Nothing was materialized since the last look."
        self.after(25, monkeypatch)
        tick = watch.tick()
        (evaluation,) = tick.asset_events
        words = "clean was last materialized 25.0 hours ago; one is expected every 24 hours"
        assert tick.skip_message == f"clean: warn: {words}."
        assert (evaluation.asset_key, evaluation.passed) == (AssetKey("clean"), False)
        assert evaluation.severity is AssetCheckSeverity.WARN
        assert evaluation.target_materialization_data.storage_id == watch.project.event("clean").storage_id
        assert [report.text for report in self.told] == [f"clean: warn: {words}"]
        for hours in (25, 26, 60):
            self.after(hours, monkeypatch)
            assert not watch.tick().asset_events
        watch.run()
        self.after(0, monkeypatch)
        assert all(event.passed for event in watch.tick().asset_events)
        self.after(90, monkeypatch)
        assert len(watch.tick().asset_events) == 1
        assert len(self.told) == 2

    def test_the_look_is_not_made_at_every_tick(self, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
        self.after(25, monkeypatch)
        assert watch.tick().asset_events
        monkeypatch.setattr(type(watch.project.instance), "get_asset_records", None)
        assert watch.tick().skip_message == "Nothing was materialized since the last look."

    def test_what_was_found_of_the_materialization_stays_in_its_check(
        self, watch: Watch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        World.random = True
        for _ in range(2):
            watch.run()
        assert not watch.tick().asset_events[-1].passed
        self.after(25, monkeypatch)
        evaluation = watch.found()["clean"]
        kinds = [finding["kind"] for finding in evaluation.metadata["ubunye/findings"].value]
        assert kinds[0] == "overdue"
        assert "unexplained" in kinds
        assert evaluation.severity is AssetCheckSeverity.ERROR
        assert evaluation.description.startswith("clean: warn: clean was last materialized 25.0 hours ago")
        assert [f.kind for f in self.told[-1].verdict.findings] == ["overdue"]

    def test_what_was_accepted_does_not_come_back(
        self, watch: Watch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from .test_baselines import say

        World.random = True
        for _ in range(2):
            watch.run()
        watch.tick()
        say(watch.project, "clean", "accepted")
        watch.tick()
        self.after(25, monkeypatch)
        evaluation = watch.found()["clean"]
        assert [f["kind"] for f in evaluation.metadata["ubunye/findings"].value] == ["overdue"]
        assert evaluation.severity is AssetCheckSeverity.WARN

    def test_without_a_receipt_it_is_named(self, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
        watch.project.instance.report_runless_asset_event(AssetMaterialization(asset_key="clean"))
        watch.tick()
        self.after(25, monkeypatch)
        tick = watch.tick()
        assert not tick.asset_events
        assert str(tick.skip_message).startswith("Not judged: clean: clean was last materialized 25.0 hours")
        assert watch.tick().skip_message == "Nothing was materialized since the last look."

    def test_a_clock_that_jumped_back_and_assets_that_were_never_made(
        self, watch: Watch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.after(-1000, monkeypatch)
        assert not watch.tick().asset_events
        watch.project.instance.wipe_assets([AssetKey("clean")])
        self.after(25, monkeypatch)
        assert not watch.tick().asset_events

    def test_more_than_a_tick_takes_are_left_for_the_next(
        self, watch: Watch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ubunye_orchestrate.dagster_io.drift.sensors._LATE_PER_TICK", 1)
        watch.sensor = build_drift_sensor([raw, clean], policy=DriftPolicy(expected_hours=24))
        self.after(25, monkeypatch)
        assert [len(watch.tick().asset_events) for _ in range(3)] == [1, 1, 0]


class TestRemediation:
    def failing(self, project: Project, monkeypatch: pytest.MonkeyPatch, **kwargs: Any) -> Watch:
        monkeypatch.setattr(World, "random", True)
        watch = Watch(project, build_drift_sensor([raw, clean], remediation_job="repair", **kwargs))

        @op
        def look() -> None: ...

        @job
        def repair() -> None:
            look()

        watch.definitions = Definitions(
            assets=watch.assets,
            jobs=[repair],
            sensors=[watch.sensor],
            resources={"io_manager": watch.manager},
        )
        watch.run()
        watch.tick()
        return watch

    def test_a_run_is_requested_once_for_each_error(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watch = self.failing(project, monkeypatch)
        watch.run()
        tick = watch.tick()
        (request,) = tick.run_requests or ()
        event = project.event("clean")
        assert request.run_key == f"drift-{event.storage_id}"
        assert request.tags["ubunye/drift_asset"] == "clean"
        assert request.tags["ubunye/drift_run"] == event.run_id
        assert len(tick.asset_events) == 2
        assert not watch.tick().run_requests

    def test_a_run_that_was_requested_requests_no_other(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watch = self.failing(project, monkeypatch)
        watch.run(tags={"ubunye/drift_run": "some-run"})
        tick = watch.tick()
        assert not tick.run_requests
        assert "No further run is requested for clean" in str(tick.skip_message)

    def test_the_user_says_for_what_and_with_which_config(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def only_raw(report: DriftReport) -> RunRequest | None:
            if report.asset_key == AssetKey("raw"):
                raise RuntimeError("a bug of the user's")
            return RunRequest(run_key="mine", tags={"team": "data"})

        policy = {"raw": DriftPolicy(min_rows=10)}
        watch = self.failing(project, monkeypatch, policy=policy, remediation=only_raw)
        watch.run()
        (request,) = watch.tick().run_requests or ()
        assert (request.run_key, request.tags["team"]) == ("mine", "data")
