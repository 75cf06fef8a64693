"""Each private name of Dagster that is used, on a real instance: an upgrade that moves one fails here."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetDep,
    AssetIn,
    AssetKey,
    AssetObservation,
    AssetOut,
    AssetsDefinition,
    AssetSelection,
    AssetSpec,
    BetaWarning,
    DagsterEventType,
    DagsterInstance,
    DailyPartitionsDefinition,
    DataVersion,
    Definitions,
    DynamicOut,
    DynamicOutput,
    DynamicPartitionsDefinition,
    Failure,
    Field,
    FilesystemIOManager,
    In,
    InMemoryIOManager,
    InputContext,
    IOManager,
    MaterializeResult,
    MetadataValue,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    Nothing,
    Output,
    OutputContext,
    RetryPolicy,
    ScheduleDefinition,
    SensorDefinition,
    SourceAsset,
    StaticPartitionsDefinition,
    TimeWindowPartitionMapping,
    asset,
    asset_check,
    build_asset_context,
    build_input_context,
    build_op_context,
    build_output_context,
    build_resources,
    define_asset_job,
    graph,
    graph_asset,
    io_manager,
    job,
    materialize,
    mem_io_manager,
    multi_asset,
    op,
)

from ubunye_orchestrate.dagster_io import upstream

from .conftest import Project


class Probe(IOManager):
    """Runs a function in the middle of a step, as our IO managers run."""

    def __init__(
        self, on_output: Callable[..., Any] | None = None, on_input: Callable[..., Any] | None = None
    ):
        self.on_output, self.on_input = on_output, on_input
        self.seen: list[Any] = []

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        if self.on_output:
            self.seen.append(self.on_output(context))

    def load_input(self, context: InputContext) -> Any:
        if self.on_input:
            self.seen.append(self.on_input(context))
        return 1


@asset
def one() -> int:
    return 1


@pytest.fixture
def instance(project_on_disk: Project) -> DagsterInstance:
    return project_on_disk.instance


def run(assets: Any, probe: IOManager, instance: DagsterInstance, **kwargs: Any) -> Any:
    return materialize(assets, instance=instance, resources={"io_manager": probe}, **kwargs)


def test_every_function_has_a_test_here() -> None:
    source = inspect.getsource(inspect.getmodule(test_every_function_has_a_test_here))  # type: ignore[arg-type]
    for name in upstream.__all__:
        if inspect.isfunction(getattr(upstream, name)):
            assert f"upstream.{name}(" in source or f"upstream.{name})" in source, (
                f"no test calls upstream.{name}"
            )


def test_step_context(instance: DagsterInstance) -> None:
    @asset
    def two(one: int) -> int:
        return one

    probe = Probe(lambda c: upstream.step_context(c), lambda c: upstream.step_context(c))
    run([one, two], probe, instance)
    assert [upstream.step_key(step) for step in probe.seen] == ["one", "two", "two"]
    assert upstream.step_context(build_output_context(asset_key="x")) is None
    assert upstream.step_context(build_input_context(asset_key="x")) is None


def test_instance_of(instance: DagsterInstance) -> None:
    probe = Probe(lambda c: upstream.instance_of(c))
    run([one], probe, instance)
    assert probe.seen == [instance]


def test_attempt_of(instance: DagsterInstance) -> None:
    tries: list[int] = []

    def failing(context: OutputContext) -> None:
        tries.append(upstream.attempt_of(upstream.step_context(context)))
        if len(tries) < 3:
            raise ValueError("again")

    @asset(retry_policy=RetryPolicy(max_retries=2))
    def flaky() -> int:
        return 1

    run([flaky], Probe(failing), instance)
    assert tries == [0, 1, 2]


def test_what_the_step_is(instance: DagsterInstance) -> None:
    @multi_asset(
        outs={"a": AssetOut(group_name="g", code_version="3"), "b": AssetOut()},
        ins={"one": AssetIn("one")},
        internal_asset_deps={"a": {AssetKey("one")}, "b": {AssetKey("a")}},
    )
    def both(one: int):  # type: ignore[no-untyped-def]
        yield Output(1, "a")
        yield Output(1, "b")

    def look(context: OutputContext) -> Any:
        step = upstream.step_context(context)
        return (
            upstream.assets_of_step(step),
            upstream.step_outputs(step),
            upstream.node_of(step),
            dict(upstream.asset_groups(step)),
        )

    probe = Probe(look)
    run([one, both], probe, instance)
    assets, outputs, node, groups = probe.seen[-1]
    assert assets == (
        upstream.AssetOfStep(AssetKey("a"), "g", "3", (AssetKey("one"),)),
        upstream.AssetOfStep(AssetKey("b"), "default", None, ()),
    )
    assert (outputs, node) == (("a", "b"), "both")
    assert groups == {AssetKey("one"): "default", AssetKey("a"): "g", AssetKey("b"): "default"}


def test_compute_function_and_config(instance: DagsterInstance) -> None:
    @asset(config_schema={"limit": int})
    def limited() -> int:
        return 1

    def look(context: OutputContext) -> Any:
        step = upstream.step_context(context)
        return upstream.compute_function(step), upstream.op_config(step)

    probe = Probe(look)
    run([limited], probe, instance, run_config={"ops": {"limited": {"config": {"limit": 3}}}})
    function, config = probe.seen[0]
    assert function.__name__ == "limited"
    assert config == {"limit": 3}
    probe = Probe(look)
    run([one], probe, instance)
    assert probe.seen[0][1] is None


def test_mapping_of(instance: DagsterInstance) -> None:
    @op(out=DynamicOut())
    def fan():  # type: ignore[no-untyped-def]
        yield DynamicOutput(1, "first")

    @op
    def use(x):  # type: ignore[no-untyped-def]
        return x

    probe = Probe(lambda c: upstream.mapping_of(c.step_key))

    @job(resource_defs={"io_manager": io_manager(lambda _: probe)})
    def mapped() -> None:
        fan().map(use)

    mapped.execute_in_process(instance=instance)
    assert probe.seen == [None, "first"]


def test_data_version_given(instance: DagsterInstance) -> None:
    @asset
    def versioned() -> Output[int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BetaWarning)
            return Output(1, data_version=DataVersion("mine"))

    @asset
    def tagged() -> Output[int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BetaWarning)
            return Output(1, tags={"dagster/data_version": "by tag"})

    probe = Probe(lambda c: (c.asset_key.path[0], upstream.data_version_given()))
    run([one, versioned, tagged], probe, instance)
    assert sorted(probe.seen) == [("one", None), ("tagged", "by tag"), ("versioned", "mine")]
    assert upstream.data_version_given() is None


def test_set_data_version(instance: DagsterInstance) -> None:
    def version(context: OutputContext) -> None:
        upstream.set_data_version(upstream.step_context(context), context.asset_key, "sha256:1")

    run([one], Probe(version), instance)
    (event,) = instance.fetch_materializations(AssetKey("one"), limit=1).records
    assert event.asset_materialization is not None
    assert event.asset_materialization.tags is not None
    assert event.asset_materialization.tags["dagster/data_version"] == "sha256:1"
    assert event.asset_materialization.tags["dagster/data_version_is_user_provided"] == "true"


def test_the_data_version_of_an_asset_that_reads_itself(instance: DagsterInstance) -> None:
    before = TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)
    days = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04")

    @asset(partitions_def=days, deps=[AssetDep("grown", partition_mapping=before)])
    def grown() -> int:
        return 1

    def version(context: OutputContext) -> None:
        upstream.set_data_version(upstream.step_context(context), context.asset_key, context.partition_key)

    for day in days.get_partition_keys():
        result = run([grown], Probe(version), instance, partition_key=day)
        (made,) = result.asset_materializations_for_node("grown")
        assert made.tags is not None
        assert made.tags["dagster/data_version"] == day
        warned = [one.user_message for one in instance.all_logs(result.run_id) if one.level >= 30]
        assert warned == [], "Data version mismatch for asset"


def test_asset_metadata_given(instance: DagsterInstance) -> None:
    @asset(partitions_def=DailyPartitionsDefinition("2024-01-01", end_date="2024-01-03"))
    def days(context):  # type: ignore[no-untyped-def]
        context.add_asset_metadata({"of_all": 1})
        context.add_asset_metadata({"of_one": 1}, partition_key="2024-01-01")

    def given(context: OutputContext) -> list[set[str]]:
        step, key = upstream.step_context(context), context.asset_key
        return [
            set(upstream.asset_metadata_given(step, key, partitions))
            for partitions in ([], ["2024-01-02"], ["2024-01-01"])
        ]

    probe = Probe(given)
    run([days], probe, instance, partition_key="2024-01-01")
    assert probe.seen == [[{"of_all"}, {"of_all"}, {"of_all", "of_one"}]]


def test_add_asset_metadata(instance: DagsterInstance) -> None:
    @asset(partitions_def=DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04"))
    def daily(context) -> int:  # type: ignore[no-untyped-def]
        context.add_asset_metadata({"theirs": 1}, partition_key="2024-01-01")
        return 1

    def add(context: OutputContext) -> None:
        for key in context.asset_partition_keys:
            step = upstream.step_context(context)
            upstream.add_asset_metadata(step, context.asset_key, key, {"ours": key, "theirs": 2})

    run([daily], Probe(add), instance, partition_key="2024-01-01")
    (event,) = instance.fetch_materializations(AssetKey("daily"), limit=1).records
    assert event.asset_materialization is not None
    metadata = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    assert metadata == {"theirs": 1, "ours": "2024-01-01"}


def test_the_event_log(instance: DagsterInstance) -> None:
    assert upstream.head_of_event_log(instance) == 0
    partitions = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04")

    @asset(partitions_def=partitions)
    def daily() -> int:
        return 1

    run([one], InMemoryIOManager(), instance)
    between = upstream.head_of_event_log(instance)
    for day in (1, 2, 1):
        run([daily], InMemoryIOManager(), instance, partition_key=f"2024-01-0{day}")
    events = upstream.materializations_after(instance, 0, 10)
    assert [(e.asset_key, e.partition) for e in events] == [
        (AssetKey("one"), None),
        (AssetKey("daily"), "2024-01-01"),
        (AssetKey("daily"), "2024-01-02"),
        (AssetKey("daily"), "2024-01-01"),
    ]
    assert [e.storage_id for e in events] == sorted(e.storage_id for e in events)
    assert list(upstream.materializations_after(instance, between, 10)) == list(events[1:])
    assert list(upstream.materializations_after(instance, 0, 2)) == list(events[:2])
    ids = upstream.latest_materialization_ids(
        instance, AssetKey("daily"), ["2024-01-01", "2024-01-02", "2024-01-03"]
    )
    assert ids == {"2024-01-01": events[3].storage_id, "2024-01-02": events[2].storage_id}
    found = upstream.materializations_by_id(instance, [events[0].storage_id, events[2].storage_id, 10**9])
    assert {storage_id: e.run_id for storage_id, e in found.items()} == {
        events[0].storage_id: events[0].run_id,
        events[2].storage_id: events[2].run_id,
    }
    assert upstream.materializations_by_id(instance, []) == {}
    assert len(upstream.materializations_by_id(instance, range(1_200))) == 4


def test_newest_of_asset(project_on_disk: Project, project: Project) -> None:
    @asset(partitions_def=DailyPartitionsDefinition("2024-01-01", end_date="2024-01-05"))
    def daily() -> int:
        return 1

    for here in (project_on_disk.instance, project.instance):
        upstream.open_log(here)
        assert upstream.newest_of_asset(here, AssetKey("one")) == (None, 0)
        run([one], InMemoryIOManager(), here)
        run([one], InMemoryIOManager(), here)
        for day in (1, 2):
            run([daily], InMemoryIOManager(), here, partition_key=f"2024-01-0{day}")
        here.report_runless_asset_event(AssetObservation(asset_key="one"))
        materialized = upstream.asset_event(here.fetch_materializations(AssetKey("one"), limit=1).records[0])
        observed = here.fetch_observations(AssetKey("one"), limit=1).records[0].storage_id
        assert upstream.newest_of_asset(here, AssetKey("one")) == (materialized, observed)
        of_days = here.fetch_materializations(AssetKey("daily"), limit=2).records
        for event in of_days:
            found = upstream.newest_of_asset(here, AssetKey("daily"), event.partition_key)
            assert found == (upstream.asset_event(event), 0)
        assert upstream.newest_of_asset(here, AssetKey("daily"), "2024-01-04") == (None, 0)
        here.wipe_assets([AssetKey("one")])
        assert upstream.newest_of_asset(here, AssetKey("one")) in (None, (None, 0))
        run([one], InMemoryIOManager(), here)
        after = here.fetch_materializations(AssetKey("one"), limit=2).records
        assert len(after) == 1
        assert upstream.newest_of_asset(here, AssetKey("one")) in (None, (upstream.asset_event(after[0]), 0))
        upstream.close_log(here)


def test_on_events(instance: DagsterInstance) -> None:
    seen: list[Any] = []
    begun: list[float] = []

    @io_manager
    def watching(context) -> IOManager:  # type: ignore[no-untyped-def]  # Dagster reads the class itself
        upstream.on_events(context.instance, context.run.run_id, seen.append)
        return Probe(lambda c: begun.extend(event.timestamp for event in seen if started(event)))

    def started(event: Any) -> bool:
        return event.dagster_event is not None and event.dagster_event.event_type_value == "STEP_START"

    result = materialize([one], instance=instance, resources={"io_manager": watching})
    stats = instance.get_run_step_stats(result.run_id, ["one"])
    assert begun == [stats[0].start_time]
    assert {event.run_id for event in seen} == {result.run_id}


def test_step_being_logged(instance: DagsterInstance) -> None:
    steps: list[tuple[str, Any]] = []

    def note(event: Any) -> None:
        if event.dagster_event is not None and event.dagster_event.step_key is not None:
            steps.append((event.dagster_event.event_type_value, upstream.step_being_logged()))

    @io_manager
    def watching(context) -> IOManager:  # type: ignore[no-untyped-def]  # Dagster reads the class itself
        upstream.on_events(context.instance, context.run.run_id, note)
        return InMemoryIOManager()  # type: ignore[no-untyped-call]  # Dagster's

    @asset(retry_policy=RetryPolicy(max_retries=1))
    def broken() -> int:
        raise ValueError("no")

    materialize([broken], instance=instance, resources={"io_manager": watching}, raise_on_error=False)
    failures = [step for kind, step in steps if kind in ("STEP_UP_FOR_RETRY", "STEP_FAILURE")]
    assert [upstream.step_key(step) for step in failures] == ["broken", "broken"]
    assert [upstream.attempt_of(step) for step in failures] == [0, 1]
    assert [upstream.makes_checks_only(step) for step in failures] == [False, False]
    assert upstream.step_being_logged() is None


def test_is_stored_by_itself(instance: DagsterInstance) -> None:
    keys = ("silent", "told", "plain", "valued", "nothing", "typed", "left", "right")
    stored: list[str] = []
    by_itself: dict[str, bool] = {}

    def note(event: Any) -> None:
        if event.dagster_event is not None and event.dagster_event.event_type_value == "STEP_OUTPUT":
            step, output = upstream.step_being_logged(), event.dagster_event.step_output_data.output_name
            for key in keys:
                if upstream.output_of_asset(step, AssetKey(key)) == output:
                    by_itself[key] = upstream.is_stored_by_itself(step, output)

    @io_manager
    def watching(context) -> IOManager:  # type: ignore[no-untyped-def]  # Dagster reads the class itself
        upstream.on_events(context.instance, context.run.run_id, note)
        return Probe(lambda c: stored.append(c.asset_key.path[0]))

    @asset
    def silent() -> None: ...

    @asset
    def told() -> MaterializeResult:  # type: ignore[type-arg]
        return MaterializeResult()

    @asset
    def plain():  # type: ignore[no-untyped-def]
        return 1

    @asset
    def valued():  # type: ignore[no-untyped-def]
        return MaterializeResult(value=1)

    @asset
    def nothing():  # type: ignore[no-untyped-def]
        return None

    @asset
    def typed() -> int:
        return 1

    @multi_asset(specs=[AssetSpec("left"), AssetSpec("right")])
    def both():  # type: ignore[no-untyped-def]
        yield MaterializeResult(asset_key="left")
        yield MaterializeResult(asset_key="right")

    assets = [silent, told, plain, valued, nothing, typed, both]
    assert materialize(assets, instance=instance, resources={"io_manager": watching}).success
    assert set(by_itself) == set(keys)
    assert {key for key, alone in by_itself.items() if not alone} == set(stored)
    assert {key for key, alone in by_itself.items() if alone} == {"silent", "told", "left", "right"}


def test_is_yielded(instance: DagsterInstance) -> None:
    seen: list[tuple[str, bool]] = []

    @multi_asset(specs=[AssetSpec("left"), AssetSpec("right")])
    def both(context):  # type: ignore[no-untyped-def]
        yield MaterializeResult(asset_key="left")
        step = upstream.step_of(context)
        seen.extend(
            (name, upstream.is_yielded(step, AssetKey(name))) for name in ("left", "right", "elsewhere")
        )
        yield MaterializeResult(asset_key="right")

    run([both], Probe(lambda c: None), instance)
    assert seen == [("left", True), ("right", False), ("elsewhere", False)]


def test_put_asset_metadata(instance: DagsterInstance) -> None:
    @asset
    def told(context) -> None:  # type: ignore[no-untyped-def]
        step, key = upstream.step_of(context), AssetKey("told")
        upstream.add_asset_metadata(step, key, None, {"a": 1, "b": 1})
        upstream.put_asset_metadata(step, key, None, {"a": 2})

    result = run([told], Probe(lambda c: None), instance)
    (materialization,) = result.asset_materializations_for_node("told")
    assert {name: one.value for name, one in materialization.metadata.items()} == {"a": 2, "b": 1}


def test_the_partitions_of_a_dependency_that_a_step_reads(instance: DagsterInstance) -> None:
    days = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04")
    added = DynamicPartitionsDefinition(name="added")
    before = TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)
    instance.add_dynamic_partitions("added", ["b", "a"])
    daily, grown = AssetSpec("daily", partitions_def=days), AssetSpec("grown", partitions_def=added)
    seen: dict[str, Any] = {}

    @asset(deps=[AssetDep(daily, partition_mapping=before), "whole"], partitions_def=days)
    def user(context) -> None:  # type: ignore[no-untyped-def]
        step = upstream.step_of(context)
        for name in ("daily", "whole", "other"):
            seen[name] = upstream.partitions_read_of(step, AssetKey(name))

    @op(ins={"daily": In(Nothing), "grown": In(Nothing)})
    def inner(context) -> None:  # type: ignore[no-untyped-def]
        step = upstream.step_of(context)
        seen.update({name: upstream.partitions_read_of(step, AssetKey(name)) for name in ("daily", "grown")})

    @graph_asset(ins={"daily": AssetIn(dagster_type=Nothing), "grown": AssetIn(dagster_type=Nothing)})
    def in_a_graph(daily, grown):  # type: ignore[no-untyped-def]
        return inner(daily=daily, grown=grown)

    materialize([daily, user], instance=instance, partition_key="2024-01-02")
    assert seen == {"daily": ("2024-01-01",), "whole": None, "other": None}
    materialize([daily, grown, in_a_graph], instance=instance)
    assert seen["daily"] == ("2024-01-01", "2024-01-02", "2024-01-03")
    assert seen["grown"] == ("a", "b")


def test_what_a_check_loads_with(instance: DagsterInstance) -> None:
    partitions = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-03")
    seen: list[InputContext] = []

    @asset(partitions_def=partitions)
    def daily() -> int:
        return 1

    @asset_check(asset=daily, required_resource_keys={"io_manager"})
    def look(context) -> AssetCheckResult:  # type: ignore[no-untyped-def]  # Dagster reads the class itself
        step = upstream.step_of_check(context)
        assert upstream.partitions_in_step(step, AssetKey("daily")) == partitions
        assert upstream.partitions_in_step(step, AssetKey("other")) is None
        for load_as in (None, int):
            seen.append(
                upstream.context_to_load(step, AssetKey("daily"), "2024-01-02", "io_manager", load_as)
            )
        return AssetCheckResult(passed=True)

    only = AssetSelection.checks(*look.check_keys)
    run([daily, look], Probe(), instance, selection=only)
    assert [list(one.asset_partition_keys) for one in seen] == [["2024-01-02"]] * 2
    assert [one.dagster_type.typing_type for one in seen] == [Any, int]
    assert upstream.step_context(seen[0]) is None


def test_partitions_from(instance: DagsterInstance) -> None:
    instance.add_dynamic_partitions("customers", ["ada"])
    with upstream.partitions_from(instance):
        assert DynamicPartitionsDefinition(name="customers").get_partition_keys() == ["ada"]


def test_observations_after(instance: DagsterInstance) -> None:
    for note in ("first", "second"):
        instance.report_runless_asset_event(
            AssetObservation(asset_key="one", metadata={"ubunye/note": MetadataValue.json(note)})
        )
    events = upstream.observations_after(instance, 0, 10)
    assert [e.metadata["ubunye/note"] for e in events] == [b'"first"', b'"second"']
    page = instance.fetch_observations(AssetKey("one"), limit=10, ascending=True)
    assert [upstream.asset_event(record) for record in page.records] == list(events)
    assert list(upstream.observations_after(instance, events[0].storage_id, 10)) == list(events[1:])
    assert list(upstream.observations_after(instance, 0, 1)) == list(events[:1])


def test_json_of() -> None:
    assert upstream.json_of(MetadataValue.json({"a": [1, "b"]})) == b'{"a":[1,"b"]}'
    assert upstream.json_of(MetadataValue.text("a")) == upstream.NotJson("TextMetadataValue")


def test_job_is_both_forms_of_a_job() -> None:
    assert isinstance(define_asset_job("some"), upstream.Job)


def test_group_in_project() -> None:
    @asset(group_name="marts")
    def some() -> int:
        return 1

    repository = Definitions(assets=[some]).get_repository_def()
    assert upstream.group_in_project(repository, AssetKey("some")) == "marts"
    assert upstream.group_in_project(repository, AssetKey("other")) is None


def test_keys_named_by() -> None:
    assert upstream.keys_named_by(AssetSelection.assets("b", ["a", "c"])) == (
        AssetKey("b"),
        AssetKey(["a", "c"]),
    )
    assert upstream.keys_named_by(AssetSelection.assets("b") | AssetSelection.assets("a")) is None
    assert upstream.keys_named_by(AssetSelection.groups("g")) is None


def test_planned_asset_and_error_of(instance: DagsterInstance) -> None:
    class OwnError(Exception):
        pass

    @asset
    def fails() -> int:
        raise OwnError("two\nlines")

    @asset
    def stops() -> int:
        raise Failure("stop")

    @asset
    def mistyped() -> int:
        return "text"  # type: ignore[return-value]

    result = run([fails, stops, mistyped], InMemoryIOManager(), instance, raise_on_error=False)
    planned = instance.all_logs(result.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION_PLANNED)
    assert sorted(upstream.planned_asset(event) for event in planned) == [
        (AssetKey("fails"), []),
        (AssetKey("mistyped"), []),
        (AssetKey("stops"), []),
    ]
    failures = instance.all_logs(result.run_id, of_type=DagsterEventType.STEP_FAILURE)
    errors = {event.step_key: upstream.error_of(event) for event in failures}
    assert errors["fails"] == "OwnError: two\nlines"
    assert errors["stops"] == "Failure: stop"
    assert str(errors["mistyped"]).startswith("DagsterTypeCheckDidNotPass: Type check failed")
    started = instance.all_logs(result.run_id, of_type=DagsterEventType.STEP_START)
    assert upstream.error_of(started[0]) is None


def test_planned_partitions_of_a_range(instance: DagsterInstance) -> None:
    @asset(partitions_def=DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04"))
    def daily() -> int:
        return 1

    result = run([daily], InMemoryIOManager(), instance, partition_key="2024-01-02")
    planned = instance.all_logs(result.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION_PLANNED)
    assert [upstream.planned_asset(event) for event in planned] == [(AssetKey("daily"), ["2024-01-02"])]


def test_report_observation(instance: DagsterInstance) -> None:
    result = run([one], InMemoryIOManager(), instance)
    dagster_run = instance.get_run_by_id(result.run_id)
    assert dagster_run is not None
    observation = AssetObservation("one", description="seen", metadata={"a": 1})
    upstream.report_observation(instance, dagster_run, "one", observation)
    (record,) = instance.fetch_observations(AssetKey("one"), limit=5).records
    assert (record.run_id, record.event_log_entry.step_key) == (result.run_id, "one")
    assert record.asset_observation == observation


def test_default_io_manager(instance: DagsterInstance) -> None:
    with build_resources({"io": upstream.default_io_manager()}, instance=instance) as resources:
        assert upstream.keeps_values_whole(resources.io)


def test_keeps_values_whole(instance: DagsterInstance) -> None:
    kept: list[bool] = []

    @io_manager
    def looks(context):  # type: ignore[no-untyped-def]
        inner = FilesystemIOManager(base_dir=instance.storage_directory())
        kept.append(upstream.keeps_values_whole(inner.create_io_manager(context)))
        return InMemoryIOManager()

    materialize([one], instance=instance, resources={"io_manager": looks})
    assert kept == [True]
    assert upstream.keeps_values_whole(InMemoryIOManager())
    assert not upstream.keeps_values_whole(Probe())
    assert not upstream.keeps_values_whole(type("Mine", (InMemoryIOManager,), {})())


def test_replace_definitions_and_resources(instance: DagsterInstance) -> None:
    @graph
    def nothing() -> None: ...

    defs = Definitions(assets=[one], resources={"x": 1}, metadata={"kept": "yes"})
    replaced = upstream.replace_definitions(defs, resources={"x": 2})
    assert (replaced.resources, replaced.assets, replaced.metadata) == ({"x": 2}, defs.assets, defs.metadata)
    assert defs.resources == {"x": 1}
    probe = Probe(lambda c: "asset")
    own = upstream.replace_resources(one, {"io_manager": io_manager(lambda _: probe)})
    materialize([own], instance=instance)
    assert probe.seen == ["asset"]
    assert own.keys == one.keys

    @op
    def make():  # type: ignore[no-untyped-def]
        return 1

    @job(resource_defs={"io_manager": mem_io_manager})
    def by_ops() -> None:
        make()

    probe = Probe(lambda c: "job")
    replaced_job = upstream.replace_resources(by_ops, {"io_manager": io_manager(lambda _: probe)})
    replaced_job.execute_in_process(instance=instance)
    assert probe.seen == ["job"]


def test_the_project_and_its_assets(instance: DagsterInstance) -> None:
    @asset(metadata={"a": 1})
    def described() -> int:
        return 1

    repository = Definitions(assets=[one, described]).get_repository_def()
    assert upstream.keys_in_project(repository, AssetSelection.all()) == [
        AssetKey("described"),
        AssetKey("one"),
    ]
    assert upstream.metadata_in_project(repository, AssetKey("described"))["a"] in (1, _int(1))
    assert upstream.metadata_in_project(repository, AssetKey("gone")) == {}


def test_metadata_of_checked(instance: DagsterInstance) -> None:
    @asset(metadata={"a": 1})
    def described() -> int:
        return 1

    seen: list[Any] = []

    @asset_check(asset=described)
    def looks(context) -> AssetCheckResult:  # type: ignore[no-untyped-def]
        seen.append(upstream.metadata_of_checked(context, AssetKey("described")))
        return AssetCheckResult(passed=True)

    materialize([described, looks], instance=instance, resources={"io_manager": InMemoryIOManager()})
    assert seen[0]["a"] in (1, _int(1))


def test_check_evaluation_on(instance: DagsterInstance) -> None:
    run([one], InMemoryIOManager(), instance)
    (event,) = instance.fetch_materializations(AssetKey("one"), limit=1).records
    evaluation = upstream.check_evaluation_on(
        AssetKey("one"),
        "drift",
        passed=False,
        severity=AssetCheckSeverity.WARN,
        description="text",
        metadata={},
        storage_id=event.storage_id,
        run_id=event.run_id,
        timestamp=event.timestamp,
    )
    instance.report_runless_asset_event(evaluation)
    assert evaluation.target_materialization_data is not None
    assert evaluation.target_materialization_data.storage_id == event.storage_id


def _int(value: int) -> Any:
    from dagster import MetadataValue

    return MetadataValue.int(value)


def test_what_an_assets_own_context_belongs_to(instance: DagsterInstance) -> None:
    seen: list[Any] = []

    @asset(metadata={"a": 1}, partitions_def=DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04"))
    def daily(context) -> int:  # type: ignore[no-untyped-def]
        step = upstream.step_of(context)
        seen.append((upstream.step_key(step), upstream.partitions_made(step, AssetKey("daily"))[1]))
        seen.append(upstream.metadata_in_step(step, AssetKey("daily"))["a"])
        return 1

    @asset
    def plain(context) -> int:  # type: ignore[no-untyped-def]
        seen.append(upstream.partitions_made(upstream.step_of(context), AssetKey("plain")))
        return 1

    run([daily], InMemoryIOManager(), instance, partition_key="2024-01-02")
    run([plain], InMemoryIOManager(), instance)
    assert seen[0] == ("daily", ("2024-01-02",))
    assert seen[1] in (1, _int(1))
    assert seen[2] == (None, ())
    for context in (build_asset_context(), build_op_context()):
        assert upstream.step_of(context) is None


def test_the_partitions_that_a_step_makes_of_each_asset(instance: DagsterInstance) -> None:
    added = DynamicPartitionsDefinition(name="added")
    both = MultiPartitionsDefinition({"new": added, "old": StaticPartitionsDefinition(["x"])})
    instance.add_dynamic_partitions("added", ["a", "b"])
    seen: dict[str, Any] = {}

    @multi_asset(specs=[AssetSpec("parted", partitions_def=added), AssetSpec("whole")], can_subset=True)
    def mixed(context):  # type: ignore[no-untyped-def]
        for key in sorted(context.selected_asset_keys):
            seen[key.to_user_string()] = upstream.partitions_made(upstream.step_of(context), key)
            yield MaterializeResult(asset_key=key)

    @asset(partitions_def=both)
    def crossed(context) -> None:  # type: ignore[no-untyped-def]
        seen["crossed"] = upstream.partitions_made(upstream.step_of(context), AssetKey("crossed"))

    materialize([mixed], instance=instance, partition_key="a")
    materialize([crossed], instance=instance, partition_key=MultiPartitionKey({"new": "b", "old": "x"}))
    assert seen == {"parted": (added, ("a",)), "whole": (None, ()), "crossed": (both, ("b|x",))}


def test_the_function_behind_an_asset_and_the_checks_declared_for_it() -> None:
    @asset
    def checked() -> int:
        return 1

    @asset_check(asset=checked)
    def fine() -> AssetCheckResult:
        return AssetCheckResult(passed=True)

    function = upstream.function_of(checked)
    assert function is not None
    assert function.__name__ == "checked"
    assert upstream.function_of(AssetsDefinition(specs=[AssetSpec("bare")])) is None
    probe = Probe(on_output=lambda context: upstream.assets_of_step(context.step_context))
    assert materialize([checked, fine], resources={"io_manager": probe}).success
    ((made,),) = [found for found in probe.seen if found]
    assert made.checks == {"fine"}


def test_the_materialization_that_an_input_had_when_the_step_began(project: Project) -> None:
    key = AssetKey("raw")

    def look(context: InputContext) -> int:
        seen.append(upstream.materialization_at_start(context.step_context, key))
        return 1

    seen: list[Any] = []
    manager = Probe(on_input=look)

    @asset
    def raw() -> int:
        return 1

    @asset
    def clean(raw: int) -> int:
        return raw

    first = project.run([raw, clean], manager)
    assert seen == [(project.event("raw").storage_id, first.run_id)]
    with DagsterInstance.ephemeral() as empty:
        materialize([raw, clean], instance=empty, resources={"io_manager": manager}, selection=[clean])
    assert seen[1] is None


def test_the_graph_behind_an_asset_and_what_its_ops_have_stored(instance: DagsterInstance) -> None:
    @op(config_schema={"a": Field(int, default_value=3)})
    def early(one: int) -> int:
        return one

    @op
    def late(value: int) -> int:
        return value

    @graph_asset
    def backed(one: int) -> int:
        return late(early(one))

    def look(context: OutputContext) -> Any:
        context.add_output_metadata({"stored": True})
        step = context.step_context
        return upstream.step_key(step), upstream.graphs_of_step(step)

    probe = Probe(on_output=look)
    result = run([one, backed], probe, instance)
    found = dict(probe.seen)
    assert found["one"] == {}
    for key in ("backed.early", "backed.late"):
        (graph_of_it,) = found[key].values()
        assert graph_of_it.function is not None
        assert graph_of_it.function.__name__ == "backed"
        assert graph_of_it.configs == {"backed.early": {"a": 3}, "backed.late": None}
        assert graph_of_it.reads == {AssetKey("one")}
    handled = upstream.outputs_handled(instance, result.run_id)
    assert [(key, metadata["stored"].value) for key, metadata in handled] == [
        ("one", True),
        ("backed.early", True),
        ("backed.late", True),
    ]


def test_the_node_of_a_step() -> None:
    assert upstream.node_of_step_key("g.inner.op") == "g.inner.op"
    assert upstream.node_of_step_key("g.op[a]") == "g.op"


def test_own_resources(instance: DagsterInstance) -> None:
    @op
    def make():  # type: ignore[no-untyped-def]
        return 1

    @job
    def bare() -> None:
        make()

    @job(resource_defs={"io_manager": mem_io_manager})
    def with_its_own() -> None:
        make()

    assert upstream.own_resources(bare) == {}
    assert upstream.own_resources(with_its_own) == {"io_manager": mem_io_manager}
    assert upstream.own_resources(one) == {}
    # With the default left out the project's counts.
    probe = Probe(lambda c: "project")
    resources = {"io_manager": io_manager(lambda _: probe)}
    again = upstream.replace_resources(bare, upstream.own_resources(bare))
    defs = Definitions(jobs=[again], resources=resources)
    defs.resolve_job_def("bare").execute_in_process(instance=instance)
    assert probe.seen == ["project"]


def test_automations() -> None:
    @op
    def make():  # type: ignore[no-untyped-def]
        return 1

    @job
    def nightly() -> None:
        make()

    @job
    def weekly() -> None:
        make()

    other = upstream.replace_resources(nightly, {"io_manager": mem_io_manager})
    at = ScheduleDefinition(job=nightly, cron_schedule="0 0 * * *")
    named = ScheduleDefinition(job_name="nightly", cron_schedule="0 0 * * *", name="named")
    on = SensorDefinition(name="on", jobs=[weekly, nightly], evaluation_fn=lambda context: None)
    of_assets = ScheduleDefinition(target=[one], cron_schedule="0 0 * * *", name="of_assets")
    assert upstream.jobs_started_by(at) == [nightly]
    assert upstream.jobs_started_by(on) == [weekly, nightly]
    assert upstream.jobs_started_by(named) == []
    assert upstream.started_assets(of_assets) == [one]
    assert upstream.started_assets(at) == upstream.started_assets(on) == []
    for automation, jobs in ((at, [other]), (on, [weekly, other])):
        replaced = upstream.replace_jobs(automation, lambda job: other if job is nightly else job)
        assert replaced is not None
        assert upstream.jobs_started_by(replaced) == jobs
        assert replaced.name == automation.name

    class Mine(SensorDefinition):
        pass

    mine = Mine(name="mine", job=nightly, evaluation_fn=lambda context: None)
    assert upstream.replace_jobs(mine, lambda job: other) is None


@pytest.mark.filterwarnings("ignore:.*`SourceAsset")
def test_replace_resources_of_a_source(instance: DagsterInstance) -> None:
    source = SourceAsset("outside", io_manager_def=mem_io_manager, group_name="others")
    (key,) = upstream.own_resources(source)
    replaced = upstream.replace_resources(source, {key: io_manager(lambda _: Probe())})
    assert (replaced.key, replaced.group_name) == (source.key, "others")

    @asset
    def reads(outside: int) -> int:
        return outside

    # Of the new one: nothing is in memory.
    ran = materialize([reads, replaced], instance=instance, resources={"io_manager": Probe()})
    assert ran.success


def test_what_ops_and_assets_can_read(instance: DagsterInstance) -> None:
    @op
    def first(x):  # type: ignore[no-untyped-def]
        return x

    @op
    def second(y):  # type: ignore[no-untyped-def]
        return y

    @op
    def make():  # type: ignore[no-untyped-def]
        return 1

    @graph_asset
    def composed(outside):  # type: ignore[no-untyped-def]
        return second(first(outside))

    @job
    def steps() -> None:
        second(first(make()))

    @asset(ins={"given": AssetIn(key=["raw", "orders"])}, deps=["noted"])
    def loads(given):  # type: ignore[no-untyped-def]
        return given

    @asset
    def nothing() -> None: ...

    @asset(required_resource_keys={"other"})
    def asks():  # type: ignore[no-untyped-def]
        return 1

    assert [one.name for one in upstream.ops_of(steps)] == ["make", "first", "second"]
    assert {one.name for one in upstream.ops_of(composed)} == {"first", "second"}
    assert [one.name for one in upstream.ops_of(loads)] == ["loads"]
    assert upstream.rules_function_of(upstream.ops_of(loads)[0]) is not None
    assert upstream.names_of_inputs(loads) == {"given", "raw/orders", "noted"}
    assert upstream.names_of_inputs(composed) == {"outside", "x", "y"}
    assert upstream.names_of_inputs(upstream.ops_of(composed)[0]) in ({"x"}, {"y"})
    assert [upstream.may_store_by_itself(one, None) for one in (loads, nothing, asks)] == [False, True, True]
    assert not upstream.may_store_by_itself(asks, {"receipts"})
    assert upstream.may_store_by_itself(asks, {"other"})

    probe = Probe(lambda c: upstream.assets_definition_of(upstream.step_context(c)))
    run([one], probe, instance)
    (found,) = probe.seen
    assert found.keys == one.keys
    probe = Probe(lambda c: upstream.assets_definition_of(upstream.step_context(c)))
    bound = upstream.replace_resources(steps, {"io_manager": io_manager(lambda _: probe)})
    bound.execute_in_process(instance=instance, raise_on_error=False)
    assert probe.seen[0] is None
