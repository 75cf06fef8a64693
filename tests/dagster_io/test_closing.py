"""How steps end: every try leaves its records, a failure too, and no failure hides the last good receipt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetOut,
    BackfillPolicy,
    DailyPartitionsDefinition,
    Definitions,
    Failure,
    Field,
    InMemoryIOManager,
    IOManager,
    MaterializeResult,
    Output,
    RetryPolicy,
    RetryRequested,
    asset,
    asset_check,
    graph_asset,
    job,
    multi_asset,
    op,
)

from ubunye_orchestrate.dagster_io.receipts.ledger import LEDGER
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager

from .conftest import Project

pytestmark = pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")

FRAME = pd.DataFrame({"x": [1, 2]})


@pytest.fixture(params=["parquet", "wrapped"])
def manager(request: pytest.FixtureRequest, project: Project, tmp_path: Path) -> Any:
    if request.param == "parquet":
        return ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
    return with_receipts(InMemoryIOManager(), project.receipts)


@asset
def raw() -> pd.DataFrame:
    return FRAME


def step_status(record: Any) -> Any:
    return (record.dagster or {})["step_status"]


class TestOneStepFails:
    def test_before_anything_is_read(self, manager: Any, project: Project) -> None:
        @asset(group_name="sources")
        def broken() -> pd.DataFrame:
            raise ValueError("no source; password=geheim")

        result = project.run([broken], manager, raise_on_error=False)
        (record,) = project.mirrored("broken", "sources")
        assert (record.status, record.error) == ("error", "ValueError: no source; password=***")
        assert record.run_id == result.run_id
        assert record.inputs == []
        assert [(step.name, step.data_hash, step.hash_error) for step in record.outputs] == [
            ("broken", None, None)
        ]
        assert record.started_at is not None
        assert record.ended_at is not None

    def test_in_the_transform_the_inputs_are_there_with_their_hashes(
        self, manager: Any, project: Project
    ) -> None:
        @asset
        def broken(raw: pd.DataFrame) -> pd.DataFrame:
            raise KeyError("column")

        project.run([raw, broken], manager, raise_on_error=False)
        (record,) = project.mirrored("broken")
        assert record.error == "KeyError: 'column'"
        assert record.inputs[0].data_hash == project.receipt("raw").outputs[0].data_hash
        assert [timing["step"].split(":")[0] for timing in record.timings] == ["Reader"]
        assert record.code is not None
        assert record.code["functions"]
        assert step_status(project.mirrored("raw")[0]) == "success"

    def test_while_storing(self, project: Project) -> None:
        class Full(IOManager):
            def handle_output(self, context: Any, obj: Any) -> None:
                raise OSError("no space left")

            def load_input(self, context: Any) -> Any: ...

        project.run([raw], with_receipts(Full(), project.receipts), raise_on_error=False)
        (record,) = project.mirrored("raw")
        assert record.error == "OSError: no space left"
        assert project.events("raw") == []

    def test_it_is_logged_on_the_asset_and_in_the_run(self, manager: Any, project: Project) -> None:
        @asset
        def broken() -> pd.DataFrame:
            raise ValueError("no source")

        result = project.run([broken], manager, raise_on_error=False)
        (observation,) = project.observations("broken")
        assert observation.description == "broken was not materialized: ValueError: no source"
        metadata = {name: value.value for name, value in observation.metadata.items()}
        assert metadata["ubunye/error"] == "ValueError: no source"
        assert metadata["ubunye/receipt"]["status"] == "error"
        assert json.loads(Path(metadata["ubunye/record_path"]).read_text())["status"] == "error"
        assert "AssetObservation" in str([e.dagster_event for e in project.instance.all_logs(result.run_id)])

    def test_it_does_not_hide_the_last_good_receipt(self, manager: Any, project: Project) -> None:
        fails = False

        @asset
        def sometimes() -> pd.DataFrame:
            if fails:
                raise ValueError("today not")
            return FRAME

        project.run([sometimes], manager)
        good = project.event("sometimes")
        fails = True
        project.run([sometimes], manager, raise_on_error=False)
        assert project.event("sometimes").storage_id == good.storage_id
        fails = False
        project.run([sometimes], manager)
        record = project.receipt("sometimes")
        assert record.dagster is not None
        assert record.dagster["baseline"]["storage_id"] == good.storage_id
        assert [r.status for r in project.mirrored("sometimes")] == ["success", "error", "success"]

    @pytest.mark.parametrize("kind", ["failure", "type_check", "check"])
    def test_whatever_way_it_fails(self, kind: str, manager: Any, project: Project) -> None:
        @asset
        def broken() -> pd.DataFrame:
            if kind == "failure":
                raise Failure("stop here")
            return "no frame"  # type: ignore[return-value]

        @asset(name="broken", check_specs=[])
        def with_check() -> pd.DataFrame:
            return FRAME

        @asset_check(asset="broken", blocking=True)
        def never() -> AssetCheckResult:
            return AssetCheckResult(passed=False, severity=AssetCheckSeverity.ERROR)

        assets: Any = [with_check, never] if kind == "check" else [broken]
        project.run(assets, manager, raise_on_error=False)
        (record,) = project.mirrored("broken")
        if kind == "check":
            # The check is a step of its own: the asset itself was stored.
            assert (record.status, step_status(record)) == ("success", "success")
        elif kind == "failure":
            assert record.error == "Failure: stop here"
        else:
            assert record.error is not None
            assert 'expected type "DataFrame"' in record.error

    def test_a_step_that_never_started_leaves_nothing(self, manager: Any, project: Project) -> None:
        @asset
        def broken() -> pd.DataFrame:
            raise ValueError("no")

        @asset
        def downstream(broken: pd.DataFrame) -> pd.DataFrame:
            return broken

        project.run([broken, downstream], manager, raise_on_error=False)
        assert project.mirrored("downstream") == []
        assert project.observations("downstream") == []


class TestRetries:
    @pytest.mark.parametrize("how", ["policy", "requested"])
    def test_each_try_keeps_its_evidence(self, how: str, manager: Any, project: Project) -> None:
        policy = RetryPolicy(max_retries=2) if how == "policy" else None

        @asset(retry_policy=policy)
        def flaky(context, raw: pd.DataFrame) -> pd.DataFrame:  # type: ignore[no-untyped-def]
            if context.retry_number < 2:
                error = ValueError(f"try {context.retry_number}")
                if how == "requested":
                    raise RetryRequested(max_retries=2) from error
                raise error
            return raw

        result = project.run([raw, flaky], manager)
        records = {record.run_id: record for record in project.mirrored("flaky")}
        assert sorted(records) == [result.run_id, f"{result.run_id}.retry-1", f"{result.run_id}.retry-2"]
        first, second, third = (records[run_id] for run_id in sorted(records))
        assert [r.status for r in (first, second, third)] == ["error", "error", "success"]
        assert first.error == "ValueError: try 0"
        assert all(len(record.inputs) == 1 for record in (first, second, third))
        assert [o.description for o in project.observations("flaky")] == [
            "flaky was not materialized and is tried again: ValueError: try 1",
            "flaky was not materialized and is tried again: ValueError: try 0",
        ]
        assert project.receipt("flaky").run_id == third.run_id

    def test_when_all_are_used_up(self, manager: Any, project: Project) -> None:
        @asset(retry_policy=RetryPolicy(max_retries=1))
        def hopeless() -> pd.DataFrame:
            raise ValueError("never")

        project.run([hopeless], manager, raise_on_error=False)
        assert [record.status for record in project.mirrored("hopeless")] == ["error", "error"]
        assert [o.description for o in project.observations("hopeless")] == [
            "hopeless was not materialized: ValueError: never",
            "hopeless was not materialized and is tried again: ValueError: never",
        ]


class TestMultiAssets:
    def test_what_was_stored_stays_a_success_of_a_step_that_failed(
        self, manager: Any, project: Project
    ) -> None:
        @multi_asset(outs={"first": AssetOut(), "second": AssetOut(), "third": AssetOut(group_name="other")})
        def three(raw: pd.DataFrame) -> Any:
            yield Output(raw, "first")
            raise ValueError("half-way")

        project.run([raw, three], manager, raise_on_error=False)
        (first,), (second,), (third,) = (
            project.mirrored("first"),
            project.mirrored("second"),
            project.mirrored("third", "other"),
        )
        assert (first.status, step_status(first), first.error) == ("success", "error", None)
        assert (second.status, second.error) == ("error", "ValueError: half-way")
        assert (third.status, step_status(third)) == ("error", "error")
        assert second.inputs[0].data_hash == first.inputs[0].data_hash
        assert len(project.observations("second")) == 1
        assert project.observations("first") == []

    def test_only_what_was_selected_can_be_missing(self, manager: Any, project: Project) -> None:
        @multi_asset(
            outs={"first": AssetOut(is_required=False), "second": AssetOut(is_required=False)},
            can_subset=True,
        )
        def two():  # type: ignore[no-untyped-def]
            raise ValueError("no")

        project.run([two], manager, selection=["first"], raise_on_error=False)
        assert len(project.mirrored("first")) == 1
        assert project.mirrored("second") == []


def test_partitions_of_a_failed_range_are_each_told(manager: Any, project: Project) -> None:
    days = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-05")

    @asset(partitions_def=days, backfill_policy=BackfillPolicy.single_run())
    def daily() -> pd.DataFrame:
        raise ValueError("no days")

    tags = {
        "dagster/asset_partition_range_start": "2024-01-01",
        "dagster/asset_partition_range_end": "2024-01-03",
    }
    result = project.run([daily], manager, tags=tags, raise_on_error=False)
    (record,) = project.mirrored("daily")
    assert record.run_id == f"{result.run_id}--2024-01-01..2024-01-03"
    assert sorted(o.partition for o in project.observations("daily")) == [
        "2024-01-01",
        "2024-01-02",
        "2024-01-03",
    ]


LIMITS = {"password": Field(str, default_value="geheim"), "rows": Field(int, default_value=2)}


def test_a_source_that_fails_has_the_evidence_that_its_success_has(manager: Any, project: Project) -> None:
    fails = [True]

    @asset(code_version="7", config_schema=LIMITS)
    def source(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
        if fails[0]:
            raise ValueError("no source")
        return FRAME.head(context.op_execution_context.op_config["rows"])

    project.run([source], manager, raise_on_error=False)
    fails[0] = False
    project.run([source], manager)
    good, bad = sorted(project.mirrored("source"), key=lambda record: record.status, reverse=True)
    assert (good.status, bad.status) == ("success", "error")
    assert good.config_hash is not None
    assert bad.config_hash == good.config_hash
    assert bad.code_hash == good.code_hash
    assert bad.code is not None
    assert good.code is not None
    assert bad.code["function"] == good.code["function"]
    assert bad.version == "7"
    told = ("op", "launch", "code_version", "declared_inputs")
    assert [(bad.dagster or {})[name] for name in told] == [(good.dagster or {})[name] for name in told]


def test_an_asset_that_an_io_manager_of_others_reads_for_has_its_evidence_too(
    manager: Any, project: Project
) -> None:
    @asset(io_manager_key="plain")
    def lost() -> pd.DataFrame:
        return FRAME

    class Unreadable(InMemoryIOManager):
        def load_input(self, context: Any) -> Any:
            raise OSError("the bucket is gone")

    @asset
    def reads(lost: pd.DataFrame) -> pd.DataFrame:
        return lost

    project.run([lost, reads], manager, resources={"plain": Unreadable()}, raise_on_error=False)  # type: ignore[no-untyped-call]  # Dagster's
    (record,) = project.mirrored("reads")
    assert record.code is not None
    assert record.config_hash is not None


def test_a_check_that_fails_leaves_no_record(manager: Any, project: Project) -> None:
    @asset_check(asset=raw)
    def odd() -> AssetCheckResult:
        raise ValueError("no")

    project.run([raw, odd], manager, raise_on_error=False)
    assert {task for _, _, task in project.store.tasks()} == {"raw"}


def test_a_source_op_that_fails_leaves_a_record_of_its_outputs(manager: Any, project: Project) -> None:
    @op
    def make() -> pd.DataFrame:
        raise ValueError("nothing to make it of")

    definition = manager if not isinstance(manager, ParquetIOManager) else manager.get_resource_definition()

    @job(resource_defs={"io_manager": definition})
    def by_ops() -> None:
        make()

    by_ops.execute_in_process(instance=project.instance, raise_on_error=False)
    (record,) = project.mirrored("by_ops__make__result")
    assert record.error == "ValueError: nothing to make it of"
    assert record.code is not None


def test_an_op_that_fails_leaves_a_record_of_its_outputs(manager: Any, project: Project) -> None:
    @op
    def make() -> pd.DataFrame:
        return FRAME

    @op
    def use(frame: pd.DataFrame) -> pd.DataFrame:
        raise ValueError("no use")

    definition = manager if not isinstance(manager, ParquetIOManager) else manager.get_resource_definition()

    @job(resource_defs={"io_manager": definition})
    def by_ops() -> None:
        use(make())

    by_ops.execute_in_process(instance=project.instance, raise_on_error=False)
    (record,) = project.mirrored("by_ops__use__result")
    assert (record.status, record.error) == ("error", "ValueError: no use")
    assert record.inputs[0].data_hash is not None
    assert step_status(project.mirrored("by_ops__make__result")[0]) == "success"


def test_a_graph_that_fails_in_an_earlier_op_fails_its_asset(manager: Any, project: Project) -> None:
    @op
    def early() -> pd.DataFrame:
        raise ValueError("too early")

    @op
    def late(frame: pd.DataFrame) -> pd.DataFrame:
        return frame

    @graph_asset
    def backed() -> pd.DataFrame:
        return late(early())

    project.run([backed], manager, raise_on_error=False)
    (record,) = project.mirrored("backed")
    assert record.error == "ValueError: too early"
    assert record.dagster is not None
    assert record.dagster["step_key"] == "backed.early"
    assert len(project.observations("backed")) == 1


def test_two_io_managers_close_a_step_once(project: Project, tmp_path: Path) -> None:
    @asset(io_manager_key="other")
    def broken(raw: pd.DataFrame) -> pd.DataFrame:
        raise ValueError("no")

    first = ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
    second = with_receipts(InMemoryIOManager(), project.receipts)
    project.run([raw, broken], first, resources={"other": second}, raise_on_error=False)
    assert len(project.observations("broken")) == 1


def test_nothing_is_left_in_the_ledger(manager: Any, project: Project) -> None:
    before = len(LEDGER)

    @asset
    def broken(raw: pd.DataFrame) -> pd.DataFrame:
        raise ValueError("no")

    @asset
    def reads(raw: pd.DataFrame) -> MaterializeResult:  # type: ignore[type-arg]
        return MaterializeResult()

    project.run([raw, broken, reads], manager, raise_on_error=False)
    assert len(LEDGER) == before


def test_a_mirror_out_of_reach_at_the_end_is_a_warning(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ubunye_orchestrate.errors import StoreError
    from ubunye_orchestrate.records.store import RecordStore

    @asset
    def broken() -> pd.DataFrame:
        raise ValueError("no")

    def save(self: Any, record: Any) -> str:
        raise StoreError("the share is gone")

    monkeypatch.setattr(RecordStore, "save", save)
    result = project.run([broken], with_receipts(InMemoryIOManager(), project.receipts), raise_on_error=False)
    assert "the record of default/default/broken was not mirrored: the share is gone" in project.log(result)
    (observation,) = project.observations("broken")
    assert "ubunye/record_path" not in observation.metadata
    assert observation.metadata["ubunye/receipt"].value["status"] == "error"


def test_the_group_is_known_from_the_last_receipt(manager: Any, project: Project) -> None:
    fails = False

    @asset(group_name="sources")
    def sometimes() -> pd.DataFrame:
        if fails:
            raise ValueError("today not")
        return FRAME

    project.run([sometimes], manager)
    fails = True
    project.run([sometimes], manager, raise_on_error=False)
    assert [record.status for record in project.mirrored("sometimes", "sources")] == ["error", "success"]


def test_a_project_in_process_by_its_definitions(project: Project) -> None:
    @asset(group_name="g")
    def broken() -> pd.DataFrame:
        raise ValueError("no")

    defs = with_receipts(Definitions(assets=[broken]), project.receipts)
    job_def = defs.resolve_implicit_global_asset_job_def()
    job_def.execute_in_process(instance=project.instance, raise_on_error=False)
    assert project.mirrored("broken", "g")[0].status == "error"
