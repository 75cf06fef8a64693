"""The op jobs of a whole project: by themselves, and behind its schedules and sensors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dagster import (
    AssetCheckResult,
    AssetKey,
    AssetSpec,
    DagsterInstance,
    DagsterRunStatus,
    DailyPartitionsDefinition,
    DefaultScheduleStatus,
    Definitions,
    FilesystemIOManager,
    InMemoryIOManager,
    Out,
    RunRequest,
    ScheduleDefinition,
    SensorDefinition,
    SourceAsset,
    asset,
    asset_check,
    asset_sensor,
    build_schedule_context,
    build_schedule_from_partitioned_job,
    build_sensor_context,
    define_asset_job,
    graph,
    job,
    multi_asset_sensor,
    op,
    run_failure_sensor,
    run_status_sensor,
    schedule,
    sensor,
)

from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.errors import ConfigurationError

from .conftest import Project

FRAME = pd.DataFrame({"x": [1]})


@op
def one() -> pd.DataFrame:
    return FRAME


@op(out=Out(io_manager_key="other"))
def elsewhere() -> pd.DataFrame:
    return FRAME


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def formats(project: Project, job_name: str, node: str = "one") -> list[str | None]:
    records = project.mirrored(f"{job_name}__{node}__result")
    return [record.outputs[0].format for record in records]


class TestStorage:
    """Receipts change nothing about where a job's data goes."""

    def test_a_job_without_an_io_manager_keeps_to_the_projects(
        self, project: Project, tmp_path: Path
    ) -> None:
        @job
        def nightly() -> None:
            one()

        resources = {"io_manager": FilesystemIOManager(base_dir=str(tmp_path / "stored"))}
        defs = with_receipts(Definitions(jobs=[nightly], resources=resources), project.receipts)
        defs.resolve_job_def("nightly").execute_in_process(instance=project.instance)
        assert files_in(tmp_path / "stored") == ["result"]
        assert formats(project, "nightly") == ["FilesystemIOManager"]

    def test_one_that_brings_another_io_manager_keeps_to_both(self, project: Project, tmp_path: Path) -> None:
        @job(resource_defs={"other": FilesystemIOManager(base_dir=str(tmp_path / "other"))})
        def nightly() -> None:
            one()
            elsewhere()

        resources = {"io_manager": FilesystemIOManager(base_dir=str(tmp_path / "stored"))}
        defs = with_receipts(Definitions(jobs=[nightly], resources=resources), project.receipts)
        defs.resolve_job_def("nightly").execute_in_process(instance=project.instance)
        assert files_in(tmp_path / "stored") == files_in(tmp_path / "other") == ["result"]
        assert formats(project, "nightly") == formats(project, "nightly", "elsewhere")

    def test_its_own_wins_over_the_projects(self, project: Project, tmp_path: Path) -> None:
        @job(resource_defs={"io_manager": FilesystemIOManager(base_dir=str(tmp_path / "own"))})
        def nightly() -> None:
            one()

        resources = {"io_manager": InMemoryIOManager()}
        defs = with_receipts(Definitions(jobs=[nightly], resources=resources), project.receipts)
        defs.resolve_job_def("nightly").execute_in_process(instance=project.instance)
        assert files_in(tmp_path / "own") == ["result"]
        assert formats(project, "nightly") == ["FilesystemIOManager"]


@pytest.fixture
def own(tmp_path: Path) -> Any:
    """An IO manager of a job's own, as users give it."""
    return FilesystemIOManager(base_dir=str(tmp_path / "own"))


def scheduled(nightly: Any) -> dict[str, Any]:
    return {"schedules": [ScheduleDefinition(job=nightly, cron_schedule="0 0 * * *", name="auto")]}


def by_function(nightly: Any) -> dict[str, Any]:
    @schedule(job=nightly, cron_schedule="0 0 * * *")
    def auto() -> RunRequest:
        return RunRequest()

    return {"schedules": [auto]}


def by_target(nightly: Any) -> dict[str, Any]:
    return {"schedules": [ScheduleDefinition(target=nightly, cron_schedule="0 0 * * *", name="auto")]}


def sensed(nightly: Any) -> dict[str, Any]:
    @sensor(job=nightly)
    def auto() -> RunRequest:
        return RunRequest()

    return {"sensors": [auto]}


def sensed_among_others(nightly: Any) -> dict[str, Any]:
    @job
    def weekly() -> None:
        one()

    @sensor(jobs=[weekly, nightly])
    def auto() -> RunRequest:
        return RunRequest(job_name="nightly")

    return {"sensors": [auto]}


def after_an_asset(nightly: Any) -> dict[str, Any]:
    @asset_sensor(asset_key=AssetKey("upstream"), job=nightly)
    def auto() -> RunRequest:
        return RunRequest()

    return {"sensors": [auto]}


def after_assets(nightly: Any) -> dict[str, Any]:
    @multi_asset_sensor(monitored_assets=[AssetKey("upstream")], job=nightly)
    def auto(context: Any) -> RunRequest:
        return RunRequest()

    return {"sensors": [auto], "assets": [AssetSpec("upstream")]}


def after_a_run(nightly: Any) -> dict[str, Any]:
    @run_status_sensor(
        run_status=DagsterRunStatus.SUCCESS,
        request_job=nightly,
        monitored_jobs=[nightly, define_asset_job("x")],
    )
    def auto(context: Any) -> RunRequest:
        return RunRequest()

    return {"sensors": [auto], "assets": [AssetSpec("upstream")], "jobs": [define_asset_job("x")]}


def after_a_failure(nightly: Any) -> dict[str, Any]:
    @run_failure_sensor(request_jobs=[nightly], monitored_jobs=[nightly])
    def auto(context: Any) -> RunRequest:
        return RunRequest()

    return {"sensors": [auto]}


AUTOMATIONS = [
    scheduled,
    by_function,
    by_target,
    sensed,
    sensed_among_others,
    after_an_asset,
    after_assets,
    after_a_run,
    after_a_failure,
]


class TestAutomations:
    """A job is the same wherever it is named, and writes records there."""

    @pytest.mark.parametrize("listed", [True, False], ids=["listed", "only_there"])
    @pytest.mark.parametrize("automation", AUTOMATIONS, ids=lambda made: made.__name__)
    @pytest.mark.filterwarnings("ignore:.* `multi_asset_sensor`", "ignore:Parameter `owners`")
    @pytest.mark.filterwarnings("ignore:Class `MultiAssetSensorDefinition`")
    def test_its_job_writes_records(
        self, automation: Callable[[Any], dict[str, Any]], listed: bool, own: Any, project: Project
    ) -> None:
        @job(resource_defs={"io_manager": own})
        def nightly() -> None:
            one()

        given = automation(nightly)
        given["jobs"] = [*given.get("jobs", ()), *([nightly] if listed else ())]
        Definitions(**given).get_repository_def()
        defs = with_receipts(Definitions(**given), project.receipts)
        started = defs.resolve_job_def("nightly").execute_in_process(instance=project.instance)
        assert started.success
        assert formats(project, "nightly") == ["FilesystemIOManager"]
        # The schedule or the sensor has the very job that the project has.
        repository = defs.get_repository_def()
        (found,) = [*repository.schedule_defs, *repository.sensor_defs]
        targets = [found.job] if isinstance(found, ScheduleDefinition) else found.jobs
        mine = next(one for one in targets if one.name == "nightly")
        assert mine.resource_defs["io_manager"] is repository.get_job("nightly").resource_defs["io_manager"]
        before = next(iter(given.get("schedules") or given["sensors"]))
        assert type(found) is type(before)
        assert found.name == "auto"

    def test_one_job_in_a_schedule_and_two_sensors(self, own: Any, project: Project) -> None:
        @job(resource_defs={"io_manager": own})
        def nightly() -> None:
            one()

        @sensor(job=nightly)
        def other() -> RunRequest:
            return RunRequest()

        given = {**scheduled(nightly), "sensors": [other, *after_a_run(nightly)["sensors"]]}
        given["sensors"][1]._name = "third"
        jobs = [nightly, define_asset_job("x")]
        defs = with_receipts(Definitions(jobs=jobs, assets=[AssetSpec("u")], **given))
        assert defs.get_repository_def().has_job("nightly")

    @pytest.mark.parametrize("automation", AUTOMATIONS, ids=lambda made: made.__name__)
    @pytest.mark.filterwarnings("ignore:.* `multi_asset_sensor`", "ignore:Parameter `owners`")
    @pytest.mark.filterwarnings("ignore:Class `MultiAssetSensorDefinition`")
    def test_a_job_of_the_projects_io_manager_writes_records_too(
        self, automation: Callable[[Any], dict[str, Any]], own: Any, project: Project
    ) -> None:
        @job
        def nightly() -> None:
            one()

        resources = {"io_manager": own}
        defs = with_receipts(Definitions(**automation(nightly), resources=resources), project.receipts)
        defs.resolve_job_def("nightly").execute_in_process(instance=project.instance)
        assert formats(project, "nightly") == ["FilesystemIOManager"]

    def test_a_schedule_keeps_what_it_says(self, own: Any, project: Project) -> None:
        @job(resource_defs={"io_manager": own}, config={"ops": {}})
        def nightly() -> None:
            one()

        plain = ScheduleDefinition(
            job=nightly,
            name="auto",
            cron_schedule=["0 1 * * *", "0 2 * * *"],
            run_config={"ops": {}},
            tags={"team": "blue"},
            should_execute=lambda context: True,
            execution_timezone="Europe/Berlin",
            description="at night",
            default_status=DefaultScheduleStatus.RUNNING,
            metadata={"a": 1},
        )
        defs = with_receipts(Definitions(schedules=[plain]), project.receipts)
        found = defs.resolve_schedule_def("auto")
        names = ("cron_schedule", "tags", "execution_timezone", "description", "default_status", "metadata")
        assert [getattr(found, name) for name in names] == [getattr(plain, name) for name in names]
        tick = found.evaluate_tick(build_schedule_context(instance=project.instance))
        (request,) = tick.run_requests or ()
        assert request.tags["team"] == "blue"
        assert request.run_config == {"ops": {}}

    @pytest.mark.filterwarnings("ignore:Function `JobDefinition.run_request_for_partition`")
    def test_a_partitioned_schedule(self, own: Any, project: Project) -> None:
        days = DailyPartitionsDefinition(start_date="2024-01-01")

        @job(resource_defs={"io_manager": own}, partitions_def=days)
        def nightly() -> None:
            one()

        auto = build_schedule_from_partitioned_job(nightly, name="auto")
        defs = with_receipts(Definitions(schedules=[auto]), project.receipts)
        context = build_schedule_context(
            instance=project.instance,
            scheduled_execution_time=datetime(2024, 1, 3),
            repository_def=defs.get_repository_def(),
        )
        (request,) = defs.resolve_schedule_def("auto").evaluate_tick(context).run_requests or ()
        assert request.partition_key == "2024-01-02"
        defs.resolve_job_def("nightly").execute_in_process(
            instance=project.instance, partition_key=request.partition_key
        )
        assert formats(project, "nightly") == ["FilesystemIOManager"]

    def test_a_partitioned_schedule_of_an_asset_job_stays_as_it_is(self, project: Project) -> None:
        days = DailyPartitionsDefinition(start_date="2024-01-01")

        @asset(partitions_def=days)
        def daily() -> pd.DataFrame:
            return FRAME

        auto = build_schedule_from_partitioned_job(define_asset_job("all_of_it", [daily]))
        defs = with_receipts(Definitions(assets=[daily], schedules=[auto]), project.receipts)
        defs.resolve_job_def("all_of_it").execute_in_process(
            instance=project.instance, partition_key="2024-01-02"
        )
        assert project.receipt("daily", "2024-01-02").outputs[0].row_count == 1

    def test_a_sensor_reacts_to_runs_of_the_job_with_receipts(
        self, own: Any, project_on_disk: Project
    ) -> None:
        instance = project_on_disk.instance

        @job(resource_defs={"io_manager": own})
        def nightly() -> None:
            one()

        seen: list[str] = []

        @run_status_sensor(run_status=DagsterRunStatus.SUCCESS, monitored_jobs=[nightly], request_job=nightly)
        def auto(context: Any) -> None:
            seen.append(context.dagster_run.job_name)

        defs = with_receipts(Definitions(jobs=[nightly], sensors=[auto]), project_on_disk.receipts)
        cursor = tick(defs, instance, None)
        defs.resolve_job_def("nightly").execute_in_process(instance=instance)
        tick(defs, instance, cursor)
        assert seen == ["nightly"]

    def test_a_graph_that_a_sensor_runs(self, own: Any, project: Project) -> None:
        @graph
        def steps() -> None:
            one()

        nightly = steps.to_job(name="nightly", resource_defs={"io_manager": own})
        defs = with_receipts(Definitions(jobs=[nightly], **sensed(nightly)), project.receipts)
        defs.resolve_job_def("nightly").execute_in_process(instance=project.instance)
        assert formats(project, "nightly") == ["FilesystemIOManager"]

    def test_a_class_of_the_users_own_is_refused(self, own: Any, project: Project) -> None:
        class Mine(SensorDefinition):
            pass

        class Fixed(ScheduleDefinition):
            pass

        @job(resource_defs={"io_manager": own})
        def nightly() -> None:
            one()

        wanted = r'nightly with receipts; expected .*resource_defs={"io_manager": with_receipts\(Filesys'
        given = Mine(name="auto", evaluation_fn=lambda context: None, job=nightly)
        with pytest.raises(ConfigurationError, match="got Mine auto, .*" + wanted):
            with_receipts(Definitions(sensors=[given]), project.receipts)
        at = Fixed(name="auto", cron_schedule="0 0 * * *", job=nightly)
        with pytest.raises(ConfigurationError, match="got Fixed auto, .*" + wanted):
            with_receipts(Definitions(schedules=[at]), project.receipts)

        # As the message says.
        @job(resource_defs={"io_manager": with_receipts(own, project.receipts)})
        def by_hand() -> None:
            one()

        given = Mine(name="auto", evaluation_fn=lambda context: None, job=by_hand)
        defs = with_receipts(Definitions(sensors=[given]))
        defs.resolve_job_def("by_hand").execute_in_process(instance=project.instance)
        assert formats(project, "by_hand") == ["FilesystemIOManager"]


def tick(defs: Definitions, instance: DagsterInstance, cursor: str | None) -> str | None:
    context = build_sensor_context(instance=instance, cursor=cursor, definitions=defs)
    return defs.resolve_sensor_def("auto").evaluate_tick(context).cursor


class TestOwnResources:
    """What else may bring an IO manager along itself."""

    @pytest.mark.filterwarnings("ignore:Parameter `resource_defs` of")
    def test_a_check_shares_that_of_its_asset(self, own: Any, project: Project) -> None:
        mine = {"mine": own.get_resource_definition()}

        @asset(io_manager_key="mine", resource_defs=mine)
        def made() -> pd.DataFrame:
            return FRAME

        @asset_check(asset=made, resource_defs=mine)
        def looked_at(made: pd.DataFrame) -> AssetCheckResult:
            return AssetCheckResult(passed=len(made) == 1)

        defs = with_receipts(Definitions(assets=[made], asset_checks=[looked_at]), project.receipts)
        job_def = defs.resolve_implicit_global_asset_job_def()
        ran = job_def.execute_in_process(instance=project.instance)
        assert [one.passed for one in ran.get_asset_check_evaluations()] == [True]
        assert project.receipt("made").outputs[0].row_count == 1

    @pytest.mark.filterwarnings("ignore:Parameter `.*` of", "ignore:Class `SourceAsset`")
    def test_what_a_source_asset_loads_is_noted(self, own: Any, project: Project) -> None:
        source = SourceAsset("outside", io_manager_def=own.get_resource_definition(), group_name="others")

        @asset
        def made(outside: pd.DataFrame) -> pd.DataFrame:
            return outside

        Path(own.base_dir).mkdir()
        FRAME.to_pickle(Path(own.base_dir) / "outside")
        defs = with_receipts(Definitions(assets=[source, made]), project.receipts)
        job_def = defs.resolve_implicit_global_asset_job_def()
        job_def.execute_in_process(instance=project.instance)
        (step,) = project.receipt("made").inputs
        assert (step.name, step.row_count, step.format) == ("outside", 1, "FilesystemIOManager")
        assert defs.get_repository_def().asset_graph.get(AssetKey("outside")).group_name == "others"

    @pytest.mark.filterwarnings("ignore:Parameter `resource_defs` of")
    def test_an_asset_that_only_a_schedule_has(self, own: Any, project: Project) -> None:
        @asset(io_manager_key="mine", resource_defs={"mine": own})
        def made() -> pd.DataFrame:
            return FRAME

        auto = ScheduleDefinition(name="auto", target=[made], cron_schedule="0 0 * * *")
        defs = with_receipts(Definitions(schedules=[auto]), project.receipts)
        name = defs.resolve_schedule_def("auto").job_name
        defs.resolve_job_def(name).execute_in_process(instance=project.instance)
        assert project.receipt("made").outputs[0].format == "FilesystemIOManager"
