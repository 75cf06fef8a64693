"""Receipts of assets that read and store by themselves: three lines inside the asset."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates a resource.
import contextlib
import gc
import pathlib
import weakref
from typing import Any

import pandas as pd
import polars as pl
import pytest
from dagster import (
    AssetDep,
    AssetExecutionContext,
    AssetOut,
    AssetSpec,
    BackfillPolicy,
    DailyPartitionsDefinition,
    DataVersion,
    DynamicPartitionsDefinition,
    InMemoryIOManager,
    MaterializeResult,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    Output,
    PartitionsDefinition,
    RetryPolicy,
    StaticPartitionsDefinition,
    TimeWindowPartitionMapping,
    asset,
    build_asset_context,
    materialize,
    multi_asset,
)

from ubunye_orchestrate.compare.custody import judge_custody_by_records
from ubunye_orchestrate.dagster_io.receipts.expectation_checks import build_expectation_checks
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.model import Producer
from ubunye_orchestrate.records.values import not_hashed

from .conftest import Project

ORDERS = pd.DataFrame({"day": [1, 1, 2], "value": [1.0, 2.0, 3.0]})


@asset
def orders() -> pd.DataFrame:
    return ORDERS


@asset(deps=[orders], group_name="marts")
def totals(context: AssetExecutionContext, receipts: Receipts) -> MaterializeResult:  # type: ignore[type-arg]
    with receipts.run(context) as run:
        read = run.read("orders", ORDERS, format="sql", location="postgresql://me:geheim@host/db")
        total = read.groupby("day", as_index=False).sum()
        metadata = run.wrote("totals", total)
    return MaterializeResult(metadata=metadata)


def run(project: Project, assets: Any, **kwargs: Any) -> Any:
    manager = with_receipts(InMemoryIOManager(), project.receipts)
    resources = {"io_manager": manager, "receipts": project.receipts}
    return materialize(assets, instance=project.instance, resources=resources, raise_on_error=False, **kwargs)


def error_of(result: Any) -> str:
    """Return the user's error in the step that failed."""
    (event,) = result.get_step_failure_events()
    return str(event.step_failure_data.error_display_string)


def test_it_leaves_what_an_io_manager_leaves(project: Project) -> None:
    assert run(project, [orders, totals]).success
    record = project.receipt("totals")
    step = record.inputs[0]
    assert (step.name, step.data_hash) == ("orders", fingerprint(ORDERS).data_hash)
    assert (step.format, step.location) == ("sql", "postgresql://me:***@host/db")
    assert step.producer is not None
    assert step.producer[0].storage_id == project.event("orders").storage_id
    assert record.outputs[0].data_hash == fingerprint(ORDERS.groupby("day", as_index=False).sum()).data_hash
    assert record.code is not None
    assert f"{__name__}:totals" in record.code["functions"]
    metadata = project.metadata("totals")
    assert metadata["dagster/row_count"] == 2
    assert metadata["ubunye/changes"] == "- first record, nothing to compare with"
    assert project.tags("totals")["dagster/data_version"] == record.outputs[0].data_hash
    (mirrored,) = project.mirrored("totals", "marts")
    assert mirrored.dagster is not None
    assert mirrored.dagster["step_status"] == "success"
    run(project, [orders, totals])
    assert project.metadata("totals")["ubunye/changes"] == "outputs unchanged"


def test_a_block_that_fails_leaves_the_record_of_a_failure(project: Project) -> None:
    @asset(retry_policy=RetryPolicy(max_retries=1))
    def broken(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.read("anything", ORDERS)
            run.wrote("broken", ORDERS)
            raise ValueError("half-way")

    assert not run(project, [broken]).success
    records = project.mirrored("broken")
    assert [(r.status, r.error) for r in records] == [("error", "ValueError: half-way")] * 2
    assert records[0].inputs[0].data_hash is not None
    assert len(project.observations("broken")) == 2


def test_several_tables_of_one_asset(project: Project) -> None:
    @asset
    def sales(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.wrote("rejected", ORDERS.iloc[:0])
            context.add_output_metadata(run.wrote("sales", ORDERS))

    assert run(project, [sales]).success
    record = project.receipt("sales")
    assert [step.name for step in record.outputs] == ["rejected", "sales"]
    assert project.metadata("sales")["ubunye/data_hash"] == fingerprint(ORDERS).data_hash
    assert project.metadata("sales")["dagster/row_count"] == 3


def test_a_second_block_of_an_asset_is_refused(project: Project) -> None:
    @asset
    def twice(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.wrote("twice", ORDERS)
        with receipts.run(context) as run:
            run.wrote("twice", ORDERS.iloc[:1])

    result = run(project, [twice])
    assert not result.success
    assert "receipts.run got a second block of twice in one step" in error_of(result)
    (record,) = project.mirrored("twice")
    assert record.dagster is not None
    assert (record.outputs[0].row_count, record.dagster["step_status"]) == (3, "error")


def test_a_block_within_a_block_of_the_same_asset_is_refused(project: Project) -> None:
    @asset
    def nested(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.read("orders", ORDERS)
            with receipts.run(context):
                pass

    result = run(project, [nested])
    assert not result.success
    assert "receipts.run got a second block of nested in one step" in error_of(result)


def test_a_block_is_entered_once(project: Project) -> None:
    @asset
    def again(context: AssetExecutionContext, receipts: Receipts) -> None:
        block = receipts.run(context)
        with block as run:
            run.wrote("again", ORDERS)
        with block as run:
            run.wrote("again", ORDERS)

    assert not run(project, [again]).success
    (record,) = project.mirrored("again")
    assert [step.name for step in record.outputs] == ["again"]


def test_after_a_result_that_an_io_manager_has_stored_a_block_is_refused(project: Project) -> None:
    @multi_asset(outs={"left": AssetOut(), "right": AssetOut()})
    def both(context: AssetExecutionContext, receipts: Receipts):  # type: ignore[no-untyped-def]
        yield Output(ORDERS, "left")
        with receipts.run(context, asset="left") as run:
            run.wrote("left", ORDERS)
        yield Output(ORDERS, "right")

    result = run(project, [both])
    assert not result.success
    assert "left has a record already" in error_of(result)


def test_a_block_that_failed_may_be_tried_again(project: Project) -> None:
    @asset
    def patient(context: AssetExecutionContext, receipts: Receipts) -> None:
        for attempt in range(2):
            with contextlib.suppress(TimeoutError), receipts.run(context) as run:
                if attempt == 0:
                    raise TimeoutError("busy")
                run.wrote("patient", ORDERS)

    assert run(project, [patient]).success
    (record,) = project.mirrored("patient")
    assert (record.status, record.outputs[0].row_count) == ("success", 3)


@pytest.mark.parametrize("call", ["read", "wrote", "expect"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_is_noted_outside_of_a_block_is_refused(project: Project, call: str, when: str) -> None:
    @asset
    def loose(context: AssetExecutionContext, receipts: Receipts) -> None:
        run = receipts.run(context)
        if when == "after":
            with run:
                run.wrote("loose", ORDERS)
        getattr(run, call)(*(["x"] if call != "expect" else []), ORDERS)

    result = run(project, [loose])
    assert not result.success
    assert f"run.{call} of loose was called {when} its block" in error_of(result)


def test_a_block_that_only_reads_leaves_what_was_read(project: Project) -> None:
    @asset(deps=[orders])
    def sent(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.read("orders", ORDERS)

    assert run(project, [orders, sent]).success
    record = project.receipt("sent")
    assert [step.data_hash for step in record.inputs] == [fingerprint(ORDERS).data_hash]
    assert (record.status, record.outputs) == ("success", [])
    assert project.metadata("sent")["ubunye/changes"] == "- first record, nothing to compare with"
    (mirrored,) = project.mirrored("sent")
    assert mirrored.inputs == record.inputs
    assert mirrored.dagster is not None
    assert mirrored.dagster["step_status"] == "success"
    run(project, [orders, sent])
    assert "changed" not in project.metadata("sent")["ubunye/changes"].replace("unchanged", "")


def test_a_result_without_a_type_and_a_value_needs_no_outputs_either(project: Project) -> None:
    @asset
    def sent(context: AssetExecutionContext, receipts: Receipts) -> MaterializeResult:  # type: ignore[type-arg]
        with receipts.run(context) as run:
            run.read("orders", ORDERS)
        return MaterializeResult(metadata={"rows": 3}, data_version=DataVersion("mine"))

    assert run(project, [sent]).success
    record = project.receipt("sent")
    assert ([step.name for step in record.inputs], record.outputs) == (["orders"], [])
    assert project.metadata("sent")["rows"] == 3
    for one in (record, *project.mirrored("sent")):
        assert one.dagster is not None
        assert one.dagster["data_version"] == "mine"


def test_a_data_version_of_the_assets_own_is_the_records(project: Project) -> None:
    @asset
    def versioned(context: AssetExecutionContext, receipts: Receipts) -> MaterializeResult:  # type: ignore[type-arg]
        with receipts.run(context) as run:
            metadata = run.wrote("versioned", ORDERS)
        return MaterializeResult(metadata=metadata, data_version=DataVersion("mine"))

    assert run(project, [versioned]).success
    assert project.tags("versioned")["dagster/data_version"] == "mine"
    (mirrored,) = project.mirrored("versioned")
    for record in (project.receipt("versioned"), mirrored):
        assert record.dagster is not None
        assert record.dagster["data_version"] == "mine"
        assert record.outputs[0].data_hash == fingerprint(ORDERS).data_hash


MINE = {"ubunye/receipt": "mine", "ubunye/data_hash": "mine", "ubunye/changes": "mine"}


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("way", ["result", "output", "output before", "asset", "asset before"])
def test_keys_of_the_assets_own_win_and_ours_stand_beside_them(
    project: Project, way: str, partitioned: bool
) -> None:
    days = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-03") if partitioned else None

    @asset(partitions_def=days)
    def table(context: AssetExecutionContext, receipts: Receipts) -> MaterializeResult:  # type: ignore[type-arg]
        def say(when: str) -> None:
            if way == f"output{when}":
                context.add_output_metadata(MINE)
            if way == f"asset{when}":
                context.add_asset_metadata(MINE)

        say(" before")
        with receipts.run(context) as run:
            metadata = run.wrote("table", ORDERS)
        say("")
        return MaterializeResult(metadata={**metadata, **(MINE if way == "result" else {})})

    for _ in range(2):
        result = run(project, [table], partition_key="2024-01-02" if partitioned else None)
        assert result.success, error_of(result)
    partition = "2024-01-02" if partitioned else None
    metadata = project.metadata("table", partition)
    assert {name: metadata[name] for name in MINE} == MINE
    data_hash = fingerprint(ORDERS).data_hash
    assert metadata["ubunye/data_hash (receipt)"] == data_hash
    assert metadata["ubunye/receipt (receipt)"]["outputs"][0]["data_hash"] == data_hash
    # The receipt of the run before was found under the name that it had.
    assert metadata["ubunye/changes (receipt)"] == "outputs unchanged"
    assert metadata["ubunye/record_path"]
    assert "ubunye/record_path (receipt)" not in metadata


def test_what_run_wrote_returned_is_no_key_of_the_assets_own(project: Project) -> None:
    @asset
    def table(context: AssetExecutionContext, receipts: Receipts) -> MaterializeResult:  # type: ignore[type-arg]
        with receipts.run(context) as run:
            metadata = run.wrote("table", ORDERS)
            context.add_asset_metadata(metadata)
        context.add_asset_metadata(metadata)
        return MaterializeResult(metadata=metadata)

    assert run(project, [table]).success
    assert not [name for name in project.metadata("table") if name.endswith("(receipt)")]


def test_frames_are_let_go_when_the_block_is_over(project: Project) -> None:
    alive: list[Any] = []

    @asset
    @expect.not_null("value")
    def table(context: AssetExecutionContext, receipts: Receipts) -> None:
        frame = ORDERS.copy()
        alive.append(weakref.ref(frame))
        with receipts.run(context) as run:
            run.wrote("table", run.expect(run.read("table", frame)))

    @asset(deps=[table])
    def later() -> None:
        gc.collect()
        alive.append(alive[0]() is None)

    assert run(project, [table, later]).success
    assert alive[1] is True


def test_a_block_that_only_reads_adds_to_the_record_of_the_io_manager(project: Project) -> None:
    @asset
    def table(context: AssetExecutionContext, receipts: Receipts) -> pd.DataFrame:
        with receipts.run(context) as run:
            read = run.read("a table elsewhere", ORDERS)
        return read.head(1)

    assert run(project, [table]).success
    (record,) = project.mirrored("table")
    assert [step.name for step in record.inputs] == ["a table elsewhere"]
    assert [step.row_count for step in record.outputs] == [1]


def test_where_nobody_else_records_it_what_a_block_read_is_in_the_mirror(project: Project) -> None:
    @asset(io_manager_key="plain", partitions_def=DailyPartitionsDefinition("2024-01-01"))
    def table(context: AssetExecutionContext, receipts: Receipts) -> pd.DataFrame:
        with receipts.run(context) as run:
            run.read("a table elsewhere", ORDERS)
        return ORDERS

    resources = {"plain": InMemoryIOManager(), "receipts": project.receipts}  # type: ignore[no-untyped-call]  # Dagster's
    result = materialize([table], instance=project.instance, resources=resources, partition_key="2024-01-02")
    (record,) = project.mirrored("table")
    assert record.run_id == f"{result.run_id}--2024-01-02"
    assert (record.status, record.outputs) == ("success", [])
    assert [step.name for step in record.inputs] == ["a table elsewhere"]
    assert "table: run.wrote was not called, and no IO manager has recorded what was stored" in project.log(
        result
    )


def test_a_block_whose_error_the_asset_swallows_leaves_a_record_of_it(project: Project) -> None:
    @asset
    def swallows(context: AssetExecutionContext, receipts: Receipts) -> None:
        with contextlib.suppress(ValueError), receipts.run(context) as run:
            run.read("orders", ORDERS)
            raise ValueError("password=geheim")

    result = run(project, [swallows])
    assert result.success
    (record,) = project.mirrored("swallows")
    assert (record.status, record.error) == ("error", "ValueError: password=***")
    assert [step.name for step in record.inputs] == ["orders"]
    assert record.dagster is not None
    assert record.dagster["step_status"] == "success"
    assert "swallows: its block of receipts.run failed, and the asset went on" in project.log(result)


def test_an_asset_without_a_block_leaves_a_record_of_its_failures_only(project: Project) -> None:
    fails = [False]

    @asset(deps=[orders])
    def alone(receipts: Receipts) -> None:
        if fails[0]:
            raise OSError("the table is locked")

    assert run(project, [orders, alone]).success
    assert {task for _, _, task in project.store.tasks()} == {"orders"}
    assert "ubunye/receipt" not in project.metadata("alone")
    fails[0] = True
    run(project, [orders, alone])
    (record,) = project.mirrored("alone")
    assert (record.status, record.error) == ("error", "OSError: the table is locked")
    assert (record.inputs, [step.data_hash for step in record.outputs]) == ([], [None])
    assert record.code is not None
    assert record.config_hash is not None
    assert record.environment is not None
    (observation,) = project.observations("alone")
    assert observation.metadata["ubunye/receipt"].value["status"] == "error"


def test_a_result_that_is_yielded_inside_its_block_is_told(project: Project) -> None:
    @asset
    def hasty(context: AssetExecutionContext, receipts: Receipts):  # type: ignore[no-untyped-def]
        with receipts.run(context) as run:
            yield MaterializeResult(metadata=run.wrote("hasty", ORDERS))

    result = run(project, [hasty])
    assert result.success
    assert "ubunye/receipt" not in project.metadata("hasty")
    assert len(project.mirrored("hasty")) == 1
    assert "hasty was yielded inside its block of receipts.run" in project.log(result)


def test_in_a_step_of_several_assets_it_says_which(project: Project) -> None:
    @multi_asset(outs={"left": AssetOut(dagster_type=type(None)), "right": AssetOut(dagster_type=type(None))})
    def both(context: AssetExecutionContext, receipts: Receipts):  # type: ignore[no-untyped-def]
        with pytest.raises(
            ConfigurationError, match=r"receipts\.run got no asset in a step that makes left, right"
        ):
            receipts.run(context)
        with pytest.raises(ConfigurationError, match=r"receipts\.run got asset middle in a step"):
            receipts.run(context, asset="middle")
        for name in ("left", "right"):
            with receipts.run(context, asset=name) as run:
                run.read("source", ORDERS)
                run.wrote(name, ORDERS)
        return None, None

    assert run(project, [both]).success
    assert project.receipt("left").outputs[0].name == "left"
    assert project.receipt("right").outputs[0].name == "right"


def test_partitions(project: Project) -> None:
    @asset(partitions_def=DailyPartitionsDefinition("2024-01-01", end_date="2024-01-03"))
    def daily(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.wrote("daily", ORDERS)

    result = run(project, [daily], partition_key="2024-01-02")
    record = project.receipt("daily", "2024-01-02")
    assert record.run_id == f"{result.run_id}--2024-01-02"
    assert record.variables == {"dt": "2024-01-02", "dtf": "%Y-%m-%d"}


@pytest.mark.parametrize(
    ("mapping", "partition", "named", "expected"),
    [
        (None, "2024-01-02", None, ["2024-01-02"]),
        (TimeWindowPartitionMapping(start_offset=-1), "2024-01-02", None, ["2024-01-01", "2024-01-02"]),
        (TimeWindowPartitionMapping(start_offset=-1, end_offset=-1), "2024-01-01", None, None),
        (None, None, None, ["2024-01-01", "2024-01-02", "2024-01-03"]),
        (None, None, ["2024-01-03"], ["2024-01-03"]),
    ],
)
def test_of_an_asset_with_partitions_those_are_named_that_dagster_maps_or_the_asset_says(
    project: Project, mapping: Any, partition: Any, named: Any, expected: Any
) -> None:
    days = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04")

    @asset(partitions_def=days)
    def daily(context: AssetExecutionContext) -> pd.DataFrame:
        return pd.DataFrame({"day": [context.partition_key]})

    @asset(
        deps=[AssetDep(daily, partition_mapping=mapping)], partitions_def=None if partition is None else days
    )
    def reader(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            frame = pd.DataFrame({"day": expected or []})
            run.read("daily", frame, scope="stored_partition", partitions=named)

    for key in days.get_partition_keys():
        run(project, [daily], partition_key=key)
    assert run(project, [daily, reader], selection=[reader], partition_key=partition).success
    (step,) = project.receipt("reader", partition).inputs
    if expected is None:
        assert step.producer is None, "not the newest partition, which was not read"
        return
    assert step.producer == [
        Producer(partition=key, storage_id=event.storage_id, run_id=event.run_id)
        for key in expected
        for event in [project.event("daily", key)]
    ]
    stored = [project.receipt("daily", key) for key in expected]
    assert judge_custody_by_records(step, stored).kind == "custody_held"


@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")
def test_of_one_frame_for_several_partitions_only_what_is_known_of_each_is_shown(project: Project) -> None:
    @asset(partitions_def=StaticPartitionsDefinition(["a", "b"]), backfill_policy=BackfillPolicy.single_run())
    def both(context: AssetExecutionContext, receipts: Receipts) -> MaterializeResult:  # type: ignore[type-arg]
        with receipts.run(context) as run:
            metadata = run.wrote("both", ORDERS)
        return MaterializeResult(metadata=metadata)

    tags = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}
    assert run(project, [both], tags=tags).success
    for partition in ("a", "b"):
        metadata = project.metadata("both", partition)
        assert "dagster/partition_row_count" not in metadata
        assert "ubunye/data_hash" not in metadata
        assert metadata["ubunye/stored_together"].startswith("rows of all 2 partitions: 3; ")


def test_what_a_hash_failed_with_is_masked(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = not_hashed("HashError: cannot reach postgres://u:geheim@h/db")
    monkeypatch.setattr("ubunye_orchestrate.records.steps.fingerprint_value", lambda *_, **__: failed)

    @asset
    def table(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            context.add_output_metadata(run.wrote("table", ORDERS))

    assert run(project, [table]).success
    assert project.metadata("table")["ubunye/hash_error"] == "HashError: cannot reach postgres://u:***@h/db"


def test_beside_an_io_manager_there_is_one_receipt(project: Project) -> None:
    @asset
    def table(context: AssetExecutionContext, receipts: Receipts) -> pd.DataFrame:
        with receipts.run(context) as run:
            run.wrote("table", ORDERS)
        return ORDERS

    result = run(project, [table])
    assert result.success
    assert len(project.mirrored("table")) == 1
    assert "table has a receipt of its own (receipts.run); its IO manager adds none" in project.log(result)


def test_inputs_are_not_hashed_when_that_is_off(project: Project) -> None:
    @asset
    def reads(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.wrote("reads", run.read("orders", ORDERS))

    receipts = Receipts(root=str(project.root), hash_inputs=False)
    materialize([reads], instance=project.instance, resources={"receipts": receipts})
    assert project.receipt("reads").inputs[0].hash_error == "not hashed: hash_inputs is off"


def test_a_location_may_be_a_path_and_a_version_hold_what_no_record_can(project: Project) -> None:
    @asset
    def table(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.read("orders", ORDERS, location=pathlib.Path("/data/orders"))
            run.wrote("table", ORDERS, source_version={"kind": "delta", "version": 3, "by": object()})

    assert run(project, [table]).success
    (record,) = project.mirrored("table")
    assert record.inputs[0].location == "/data/orders"
    version = record.outputs[0].source_version
    assert version is not None
    assert (version["kind"], version["version"]) == ("delta", 3)
    assert set(version) == {"kind", "version", "left_out"}


def test_a_fault_of_ours_does_not_fail_the_asset(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("broke")

    for name in ("step_of_frame", "build_record", "entry_of_step"):
        with monkeypatch.context() as patched:
            patched.setattr(f"ubunye_orchestrate.dagster_io.receipts.explicit.{name}", fail)
            result = run(project, [orders, totals])
            assert result.success
            assert "RuntimeError: broke" in project.log(result)


@pytest.mark.parametrize("calls", [True, False])
def test_rules_are_checked_where_the_asset_asks_for_it_and_else_have_not_passed(
    project: Project, calls: bool
) -> None:
    written: list[Any] = []

    @asset(deps=[orders])
    @expect.reconcile("orders")
    @expect.not_null("value")
    def stored(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            table = run.read("orders", ORDERS)
            if calls:
                run.expect(table)
            written.append(table)
            run.wrote("stored", table)

    assert run(project, [orders, stored]).success
    assert [one["passed"] for one in project.receipt("stored").expectations] == [calls, calls]
    if not calls:
        assert "call run.expect(frame)" in project.receipt("stored").expectations[0]["detail"]


def test_results_say_when_another_frame_was_checked_than_was_written(project: Project) -> None:
    @asset
    @expect.not_null("value")
    @expect.not_null("value", severity="warn", name="read").on_input("orders")
    def stored(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            table = run.read("orders", ORDERS)
            run.expect(table)
            run.wrote("stored", table.assign(value=None))

    result = run(project, [stored])
    (of_output,) = [one for one in project.receipt("stored").expectations if one.get("side") is None]
    assert (of_output["passed"], of_output["checked"]) == (True, "another frame")
    assert [one.get("checked") for one in project.receipt("stored").expectations].count("another frame") == 1
    assert "run.expect got another frame than run.wrote" in project.log(result)


def test_a_frame_that_changed_after_its_check_is_another_one(project: Project) -> None:
    @asset
    @expect.not_null("value")
    def stored(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            table = run.expect(ORDERS.copy())
            table.loc[9] = [9, None]
            run.wrote("stored", table)

    run(project, [stored])
    assert project.receipt("stored").expectations[0]["checked"] == "another frame"


def test_of_several_frames_that_were_checked_the_written_one_counts(project: Project) -> None:
    @asset
    @expect.not_null("value", severity="warn")
    def stored(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.expect(ORDERS.assign(value=None))
            table = run.expect(ORDERS.copy())
            run.expect(table.assign(value=None))
            run.wrote("stored", table)

    result = run(project, [stored])
    (one,) = project.receipt("stored").expectations
    assert (one["passed"], one.get("checked")) == (True, None)
    assert "another frame" not in project.log(result)


def test_what_was_checked_piece_by_piece_is_all_in_the_record(project: Project) -> None:
    @asset
    @expect.not_null("value", severity="warn")
    def stored(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.expect(ORDERS.assign(value=None))
            run.expect(ORDERS)
            run.wrote("stored", ORDERS.copy())

    checks = build_expectation_checks([stored])
    result = run(project, [stored, *checks])
    found = project.receipt("stored").expectations
    assert [(one["passed"], one["checked"]) for one in found] == [
        (False, "another frame"),
        (True, "another frame"),
    ]
    (evaluation,) = result.get_asset_check_evaluations()
    assert not evaluation.passed
    assert evaluation.metadata["ubunye/checked"].value == "another frame"


def test_a_plan_that_was_checked_and_a_table_read_back_stay_a_plan(project: Project) -> None:
    @asset
    @expect.not_null("value")
    def stored(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            run.expect(pl.LazyFrame({"value": [1]}))
            run.wrote("stored", pl.DataFrame({"value": [1]}))

    result = run(project, [stored])
    assert project.receipt("stored").expectations[0]["checked"] == "plan"
    assert "another frame" not in project.log(result)


def test_a_rule_that_is_broken_stops_the_asset_before_it_stores(project: Project) -> None:
    written: list[Any] = []

    @asset
    @expect.row_count(min=9)
    def stored(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            written.append(run.expect(ORDERS))

    assert not run(project, [stored]).success
    assert not written
    (record,) = project.mirrored("stored")
    assert record.status == "error"
    assert record.expectations[0]["passed"] is False
    assert record.error is not None
    assert record.error.startswith("ExpectationError: ")


@pytest.mark.parametrize("crossed", [False, True])
def test_partitions_that_are_added_at_run_time(project: Project, crossed: bool) -> None:
    added: PartitionsDefinition = DynamicPartitionsDefinition(name="customers")  # type: ignore[type-arg]
    if crossed:
        added = MultiPartitionsDefinition(
            {"customer": added, "day": DailyPartitionsDefinition("2024-01-01", end_date="2024-01-03")}
        )
    project.instance.add_dynamic_partitions("customers", ["ann"])
    key = MultiPartitionKey({"customer": "ann", "day": "2024-01-02"}) if crossed else "ann"

    @asset(partitions_def=added)
    def totals(context: AssetExecutionContext, receipts: Receipts) -> MaterializeResult:  # type: ignore[type-arg]
        with receipts.run(context) as run:
            metadata = run.wrote("totals", ORDERS)
        return MaterializeResult(metadata=metadata)

    assert run(project, [totals], partition_key=key).success
    record = project.receipt("totals", str(key))
    assert record.outputs[0].data_hash == fingerprint(ORDERS).data_hash
    assert (record.dagster or {})["partition_keys"] == [str(key)]
    assert record.variables == ({"dt": "2024-01-02", "dtf": "%Y-%m-%d"} if crossed else {})


def test_of_the_assets_of_a_step_only_those_with_partitions_have_one(project: Project) -> None:
    parts = StaticPartitionsDefinition(["a", "b"])

    @multi_asset(specs=[AssetSpec("parted", partitions_def=parts), AssetSpec("whole")], can_subset=True)
    def mixed(context: AssetExecutionContext, receipts: Receipts) -> Any:
        for key in sorted(context.selected_asset_keys):
            with receipts.run(context, asset=key) as run:
                metadata = run.wrote(key.to_user_string(), ORDERS)
            yield MaterializeResult(asset_key=key, metadata=metadata)

    result = run(project, [mixed], partition_key="a")
    assert project.receipt("parted", "a").run_id == f"{result.run_id}--a"
    whole = project.receipt("whole")
    assert whole.run_id == result.run_id
    assert (whole.dagster or {})["partition_keys"] == []
    assert project.metadata("whole")["dagster/row_count"] == 3


def test_an_asset_that_fails_after_its_block_has_the_record_of_a_failure(project: Project) -> None:
    @asset
    def totals(context: AssetExecutionContext, receipts: Receipts) -> MaterializeResult:  # type: ignore[type-arg]
        with receipts.run(context) as run:
            run.read("source", ORDERS)
            run.wrote("totals", ORDERS)
        raise ValueError("the load job was refused")

    assert not run(project, [totals]).success
    (record,) = project.mirrored("totals")
    assert (record.status, record.error) == ("error", "ValueError: the load job was refused")
    assert (record.dagster or {})["step_status"] == "error"
    # What it wrote before it failed stands where it was written.
    assert [step.data_hash for step in record.outputs] == [fingerprint(ORDERS).data_hash]
    assert [step.name for step in record.inputs] == ["source"]
    (observation,) = project.observations("totals")
    assert "ValueError: the load job was refused" in (observation.description or "")


def test_of_several_assets_the_one_that_was_not_made_has_the_record_of_a_failure(project: Project) -> None:
    @multi_asset(specs=[AssetSpec("one"), AssetSpec("two")], retry_policy=RetryPolicy(max_retries=1))
    def both(context: AssetExecutionContext, receipts: Receipts) -> Any:
        for name in ("one", "two"):
            with receipts.run(context, asset=name) as run:
                metadata = run.wrote(name, ORDERS)
            if name == "two" and not context.retry_number:
                raise ValueError("not yet")
            yield MaterializeResult(asset_key=name, metadata=metadata)

    assert run(project, [both]).success
    states = {
        name: [(one.status, (one.dagster or {})["step_status"]) for one in project.mirrored(name)]
        for name in ("one", "two")
    }
    assert states["one"] == [("success", "success"), ("success", "error")]
    assert states["two"] == [("success", "success"), ("error", "error")]


def test_of_an_asset_that_is_called_directly_nothing_is_recorded(
    project: Project, tmp_path: pathlib.Path
) -> None:
    @asset
    @expect.row_count(min=10)
    def totals(context: AssetExecutionContext, receipts: Receipts) -> MaterializeResult:  # type: ignore[type-arg]
        with receipts.run(context) as run:
            assert run.read("orders", ORDERS, scope="stored_table") is ORDERS
            metadata = run.wrote("totals", run.expect(ORDERS))
            assert run.commit_note == ""
        return MaterializeResult(metadata=metadata)

    result = totals(build_asset_context(), receipts=project.receipts)
    assert result.metadata["dagster/row_count"].value == 3
    assert result.metadata["ubunye/data_hash"].value == fingerprint(ORDERS).data_hash
    assert not (tmp_path / "mirror").exists()
