"""What a receipt says, and where it stands: record, mirror, metadata of the materialization, data version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dagster import (
    AssetKey,
    AssetOut,
    BackfillPolicy,
    DailyPartitionsDefinition,
    DataVersion,
    Definitions,
    EnvVar,
    Field,
    FilesystemIOManager,
    InMemoryIOManager,
    MaterializeResult,
    MonthlyPartitionsDefinition,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    Output,
    OutputContext,
    StaticPartitionsDefinition,
    asset,
    multi_asset,
)

from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.drift import judge
from ubunye_orchestrate.dagster_io.drift.checks import build_drift_checks
from ubunye_orchestrate.dagster_io.receipts.ledger import Ledger
from ubunye_orchestrate.dagster_io.receipts.metadata import MAX_RECEIPT_BYTES
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.dagster_io.times import utc_text
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

pytestmark = [
    pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`"),
    pytest.mark.filterwarnings("ignore:Parameter `data_version` of initializer `Output"),
]


@pytest.fixture(params=["parquet", "wrapped"])
def manager(request: pytest.FixtureRequest, project: Project, tmp_path: Path) -> Any:
    """Both ways of writing receipts leave the same."""
    if request.param == "parquet":
        return ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
    return with_receipts(FilesystemIOManager(base_dir=str(tmp_path / "data")), project.receipts)


class Source:
    """What the asset ``raw`` gives: a test changes it."""

    rows = 3


@asset(group_name="sources", code_version="7")
def raw() -> pd.DataFrame:
    return pd.DataFrame({"b": range(Source.rows), "a": ["x"] * Source.rows})


@asset(deps=["elsewhere"])
def clean(raw: pd.DataFrame) -> pd.DataFrame:
    return raw.assign(c=1.5)


class TestRecord:
    def test_it_knows_when_its_step_began(
        self, manager: Any, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Without inputs the step has worked before its IO manager is asked for anything.
        asked: list[Any] = []
        stats_of = project.instance.get_run_step_stats

        def get_run_step_stats(self: Any, *args: Any) -> Any:
            asked.append(args)
            return stats_of(*args)

        monkeypatch.setattr(type(project.instance), "get_run_step_stats", get_run_step_stats)
        for queries in (0, 1):
            if queries:  # as where nobody watched the run in this process
                monkeypatch.setattr(Ledger, "start_of", lambda *args: None)
            result = project.run([raw], manager)
            assert len(asked) == queries
            (stats,) = stats_of(result.run_id, ["raw"])
            assert project.receipt("raw").started_at == utc_text(stats.start_time or 0.0)

    def test_it_says_what_was_read_written_and_with_what(self, manager: Any, project: Project) -> None:
        result = project.run([raw, clean], manager)
        source, record = project.receipt("raw"), project.receipt("clean")
        assert (source.package, source.task_path, source.version) == ("sources", "default/sources/raw", "7")
        assert (record.run_id, record.task_name, record.status) == (result.run_id, "clean", "success")
        assert record.profile == "default"
        step = record.inputs[0]
        assert (step.name, step.data_hash) == ("raw", source.outputs[0].data_hash)
        assert step.producer is not None
        assert [(p.storage_id, p.run_id, p.partition) for p in step.producer] == [
            (project.event("raw").storage_id, result.run_id, None)
        ]
        assert [t["step"].split(":")[0] for t in record.timings] == ["Reader", "Transform", "Writer"]
        assert all(0 <= t["seconds"] < 60 for t in record.timings)
        assert record.duration_sec is not None
        assert record.duration_sec >= sum(t["seconds"] for t in record.timings[1:]) - 0.01
        assert record.code is not None
        assert list(record.code["functions"]) == [f"{__name__}:clean"]
        assert record.code["error"] is None
        assert record.code_hash is not None
        assert record.environment is not None
        assert record.environment.packages["dagster"]
        assert record.config_hash is not None
        assert record.dagster is not None
        assert {
            k: record.dagster[k] for k in ("step_key", "asset_key", "attempt", "launch", "partition_keys")
        } == {
            "step_key": "clean",
            "asset_key": ["clean"],
            "attempt": 0,
            "launch": "manual",
            "partition_keys": [],
        }
        assert record.dagster["declared_inputs"] == ["elsewhere", "raw"]

    def test_the_mirror_has_it_too_and_gains_the_outcome(self, manager: Any, project: Project) -> None:
        project.run([raw, clean], manager)
        receipt, (mirrored,) = project.receipt("clean"), project.mirrored("clean")
        assert receipt.dagster is not None
        assert mirrored.dagster is not None
        assert receipt.dagster.get("step_status") is None
        assert mirrored.dagster["step_status"] == "success"
        assert [t["step"] for t in mirrored.timings[len(receipt.timings) :]] == ["Step:clean"]
        whole = mirrored.timings[-1]["seconds"]
        assert whole >= (receipt.duration_sec or 0)
        # Nothing else: not even the time of its end.
        changed = {
            name
            for name, value in mirrored.model_dump().items()
            if value != receipt.model_dump()[name] and name not in ("dagster", "timings")
        }
        assert changed == set()

    def test_inputs_of_several_io_managers_meet_in_one_record(self, project: Project, tmp_path: Path) -> None:
        @asset(io_manager_key="other")
        def second() -> pd.DataFrame:
            return pd.DataFrame({"z": [1]})

        @asset
        def both(raw: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
            return second

        parquet = ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
        wrapped = with_receipts(InMemoryIOManager(), project.receipts)
        project.run([raw, second, both], parquet, resources={"other": wrapped})
        assert [(step.name, step.format) for step in project.receipt("both").inputs] == [
            ("raw", "parquet"),
            ("second", "InMemoryIOManager"),
        ]

    def test_a_multi_asset_leaves_a_record_for_each_and_they_share_inputs(
        self, manager: Any, project: Project
    ) -> None:
        @multi_asset(
            outs={
                "left": AssetOut(),
                "right": AssetOut(is_required=False),
                "never": AssetOut(is_required=False),
            },
            internal_asset_deps={"left": {AssetKey("raw")}, "right": {AssetKey("left")}, "never": set()},
        )
        def split(raw: pd.DataFrame) -> Any:
            yield Output(raw[["a"]], "left")
            yield Output(raw[["b"]], "right")

        project.run([raw, split], manager)
        left, right = project.receipt("left"), project.receipt("right")
        assert left.inputs == right.inputs
        assert left.inputs[0].name == "raw"
        assert left.outputs[0].columns == [("a", "string")]
        # Each with the reading, and its own transform and write.
        for record in (left, right):
            assert [t["step"].split(":")[0] for t in record.timings] == ["Reader", "Transform", "Writer"]
            assert record.timings[1]["output"] == record.outputs[0].name
        assert left.dagster is not None
        assert right.dagster is not None
        # What the step made itself is no input that is missing.
        assert (left.dagster["declared_inputs"], right.dagster.get("declared_inputs", [])) == (["raw"], [])
        assert project.mirrored("never") == []

    def test_config_and_variables(self, manager: Any, project: Project) -> None:
        @asset(config_schema={"limit": int, "api_token": Field(str, default_value="sehr geheim")})
        def limited(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
            return pd.DataFrame({"x": range(context.op_execution_context.op_config["limit"])})

        hashes = []
        for limit in (1, 1, 2):
            config = {"ops": {"limited": {"config": {"limit": limit}}}}
            project.run([limited], manager, run_config=config)
            hashes.append(project.receipt("limited").config_hash)
        assert hashes[0] == hashes[1] != hashes[2]
        assert "sehr geheim" not in json.dumps(project.metadata("limited")["ubunye/receipt"])

    def test_an_asset_without_inputs_is_timed_from_its_start(self, manager: Any, project: Project) -> None:
        import time

        @asset
        def slow() -> pd.DataFrame:
            time.sleep(0.3)
            return pd.DataFrame({"x": [1]})

        project.run([slow], manager)
        timings = {t["step"]: t["seconds"] for t in project.receipt("slow").timings}
        assert timings["Transform:slow"] >= 0.3

    def test_the_step_that_only_reads_leaves_no_record(self, manager: Any, project: Project) -> None:
        @asset
        def reads(raw: pd.DataFrame) -> None: ...

        project.run([raw, reads], manager)
        assert project.mirrored("reads") == []

    def test_a_runs_launch_is_told_from_its_tags(self, manager: Any, project: Project) -> None:
        project.run([raw], manager, tags={"dagster/schedule_name": "nightly"})
        record = project.receipt("raw")
        assert record.dagster is not None
        assert record.dagster["launch"] == "schedule"


class TestBaseline:
    def test_it_is_the_previous_success_of_the_profile(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def run(profile: str) -> dict[str, Any]:
            receipts = Receipts(root=str(project.root), profile=profile)
            project.run([raw], ParquetIOManager(base_path=str(tmp_path / "data"), receipts=receipts))
            record = project.receipt("raw")
            assert record.dagster is not None
            return {"event": project.event("raw"), "baseline": record.dagster.get("baseline")}

        first, branch, second = run("prod"), run("branch"), run("prod")
        assert first["baseline"] is None
        assert branch["baseline"] is None
        expected = {"run_id": first["event"].run_id, "storage_id": first["event"].storage_id}
        assert second["baseline"] == expected

    def test_what_changed_since_then_is_a_table(
        self, manager: Any, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.run([raw, clean], manager)
        assert project.metadata("clean")["ubunye/changes"] == "- first record, nothing to compare with"
        project.run([raw, clean], manager)
        assert project.metadata("clean")["ubunye/changes"] == "outputs unchanged"
        monkeypatch.setattr(Source, "rows", 4)
        project.run([raw, clean], manager)
        changes = project.metadata("clean")["ubunye/changes"]
        assert "| rows of clean | 3 | 4 | input raw |" in changes

    def test_a_run_without_a_receipt_in_between_does_not_hide_it(
        self, manager: Any, project: Project
    ) -> None:
        project.run([raw], manager)
        first = project.event("raw")
        project.run([raw], InMemoryIOManager())
        project.run([raw], manager)
        record = project.receipt("raw")
        assert record.dagster is not None
        assert record.dagster["baseline"]["storage_id"] == first.storage_id


class TestDataVersion:
    def test_it_is_the_data_hash_and_downstream_knows_it(self, manager: Any, project: Project) -> None:
        project.run([raw, clean], manager)
        data_hash = project.receipt("raw").outputs[0].data_hash
        tags = project.tags("raw")
        assert tags["dagster/data_version"] == data_hash
        assert tags["dagster/data_version_is_user_provided"] == "true"
        assert project.tags("clean")["dagster/input_data_version/raw"] == data_hash
        record = project.receipt("raw")
        assert record.dagster is not None
        assert record.dagster["data_version"] == data_hash

    @pytest.mark.filterwarnings("ignore:Parameter `tags` of initializer `Output")
    @pytest.mark.parametrize("way", ["output", "tag", "result", "no_hash"])
    def test_the_users_own_wins_and_the_record_says_so(self, way: str, project: Project) -> None:
        frame = pd.DataFrame({"x": [1]})
        mine = DataVersion("mine")
        given: dict[str, Any] = {
            "output": lambda: Output(frame, data_version=mine),
            "tag": lambda: Output(frame, tags={"dagster/data_version": "mine"}),
            "result": lambda: MaterializeResult(value=frame, data_version=mine),
            "no_hash": lambda: Output({"no": "table"}, data_version=mine),
        }

        @asset
        def versioned():  # type: ignore[no-untyped-def]
            return given[way]()

        project.run([versioned], with_receipts(InMemoryIOManager(), project.receipts))
        assert project.tags("versioned")["dagster/data_version"] == "mine"
        for record in (project.receipt("versioned"), *project.mirrored("versioned")):
            assert record.dagster is not None
            assert record.dagster["data_version"] == "mine"
        if way != "no_hash":
            assert project.metadata("versioned")["ubunye/data_hash"] == fingerprint(frame).data_hash

    def test_downstream_is_stale_only_when_the_data_changed(
        self, project_on_disk: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus

        project = project_on_disk
        manager = ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
        graph = Definitions(assets=[raw, clean]).resolve_asset_graph()

        def status() -> StaleStatus:
            from dagster._core.loader import LoadingContextForTest

            context = LoadingContextForTest(project.instance)
            return CachingStaleStatusResolver(project.instance, graph, context).get_status(AssetKey("clean"))

        project.run([raw, clean], manager)
        project.run([raw, clean], manager, selection=[raw])
        assert status() is StaleStatus.FRESH
        monkeypatch.setattr(Source, "rows", 5)
        project.run([raw, clean], manager, selection=[raw])
        assert status() is StaleStatus.STALE


DAYS = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-05")


class TestPartitions:
    def test_time_partitions_have_their_start_and_its_format(self, manager: Any, project: Project) -> None:
        @asset(partitions_def=MonthlyPartitionsDefinition("2024/01", fmt="%Y/%m"))
        def monthly(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
            return pd.DataFrame({"month": [context.partition_key]})

        result = project.run([monthly], manager, partition_key="2024/02")
        record = project.receipt("monthly", "2024/02")
        assert record.variables == {"dt": "2024/02", "dtf": "%Y/%m"}
        assert record.run_id == f"{result.run_id}--2024%2F02"
        assert [r.run_id for r in project.mirrored("monthly")] == [record.run_id]
        assert project.metadata("monthly", "2024/02")["dagster/partition_row_count"] == 1
        assert "dagster/row_count" not in project.metadata("monthly", "2024/02")

    def test_each_partition_has_its_own_baseline(self, manager: Any, project: Project) -> None:
        @asset(partitions_def=DAYS)
        def daily(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
            return pd.DataFrame({"day": [context.partition_key]})

        for key in ("2024-01-01", "2024-01-02", "2024-01-01"):
            project.run([daily], manager, partition_key=key)
        record = project.receipt("daily", "2024-01-01")
        assert record.dagster is not None
        first = project.events("daily", "2024-01-01")[1]
        assert record.dagster["baseline"]["storage_id"] == first.storage_id
        other = project.receipt("daily", "2024-01-02")
        assert other.dagster is not None
        assert other.dagster.get("baseline") is None

    def test_multi_dimensional_keys_and_inputs_of_many_partitions(
        self, manager: Any, project: Project
    ) -> None:
        both = MultiPartitionsDefinition({"day": DAYS, "kind": StaticPartitionsDefinition(["u", "v"])})

        @asset(partitions_def=both)
        def grid(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
            return pd.DataFrame({"key": [str(context.partition_key)]})

        @asset
        def total(grid: dict[str, pd.DataFrame]) -> pd.DataFrame:
            return pd.concat(grid.values())

        keys = [MultiPartitionKey({"day": f"2024-01-0{d}", "kind": k}) for d in (1, 2, 3, 4) for k in "uv"]
        for key in keys:
            project.run([grid], manager, partition_key=key)
        project.run([grid, total], manager, selection=[total])
        assert project.receipt("grid", str(keys[0])).variables == {"dt": "2024-01-01", "dtf": "%Y-%m-%d"}
        record = project.receipt("total")
        step = record.inputs[0]
        assert step.producer is not None
        assert len(step.producer) == 8
        assert all(producer.storage_id for producer in step.producer)
        # Disjoint sets of rows: the sums of the partitions are the whole's.
        assert step.data_hash == record.outputs[0].data_hash

    def test_a_range_in_one_frame_is_one_record_of_all_its_partitions(
        self, project: Project, tmp_path: Path
    ) -> None:
        @asset(partitions_def=DAYS, backfill_policy=BackfillPolicy.single_run())
        def daily() -> pd.DataFrame:
            return pd.DataFrame({"x": [1, 2]})

        manager = with_receipts(InMemoryIOManager(), project.receipts)
        tags = {
            "dagster/asset_partition_range_start": "2024-01-01",
            "dagster/asset_partition_range_end": "2024-01-03",
        }
        project.run([daily], manager, tags=tags)
        project.run([daily], manager, tags=tags)
        for key in ("2024-01-01", "2024-01-02", "2024-01-03"):
            record = project.receipt("daily", key)
            assert record.dagster is not None
            assert record.dagster["partition_keys"] == ["2024-01-01", "2024-01-02", "2024-01-03"]
            assert record.dagster["baseline"] is not None

    def test_a_partition_that_reads_the_one_before(self, manager: Any, project: Project) -> None:
        from dagster import AssetIn, TimeWindowPartitionMapping

        mapping = TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)

        @asset(
            partitions_def=DAYS,
            ins={"running": AssetIn(partition_mapping=mapping, metadata={"allow_missing_partitions": True})},
        )
        def running(context, running: Any) -> pd.DataFrame:  # type: ignore[no-untyped-def]
            return pd.DataFrame({"days": [1 if running is None else 1 + running["days"][0]]})

        for key in ("2024-01-01", "2024-01-02", "2024-01-03"):
            project.run([running], manager, partition_key=key)
        record = project.receipt("running", "2024-01-03")
        step = record.inputs[0]
        assert step.producer is not None
        assert [(p.partition, p.storage_id) for p in step.producer] == [
            ("2024-01-02", project.event("running", "2024-01-02").storage_id)
        ]
        assert step.data_hash == project.receipt("running", "2024-01-02").outputs[0].data_hash


class TestMetadata:
    def test_the_standard_keys_and_ours(self, manager: Any, project: Project) -> None:
        project.run([raw], manager)
        metadata = project.metadata("raw")
        frame = pd.DataFrame({"b": range(3), "a": ["x"] * 3})
        assert metadata["dagster/row_count"] == 3
        # In the frame's order, which a hash does not know.
        schema = metadata["dagster/column_schema"]
        assert [(column.name, column.type) for column in schema.columns] == [("b", "int64"), ("a", "string")]
        assert metadata["ubunye/data_hash"] == fingerprint(frame).data_hash
        assert isinstance(metadata["ubunye/hash_seconds"], float)
        assert json.loads(Path(metadata["ubunye/record_path"]).read_text())["task_name"] == "raw"
        assert Path(metadata["path"]).exists()

    def test_the_users_keys_win_and_ours_are_renamed(self, manager: Any, project: Project) -> None:
        @asset
        def own(context):  # type: ignore[no-untyped-def]
            context.add_output_metadata({"ubunye/changes": "my changes"})
            return Output(
                pd.DataFrame({"x": [1]}), metadata={"dagster/row_count": 99, "ubunye/data_hash": "mine"}
            )

        assert project.run([own], manager).success
        metadata = project.metadata("own")
        assert metadata["dagster/row_count"] == 99
        assert metadata["ubunye/data_hash"] == "mine"
        assert metadata["ubunye/changes"] == "my changes"
        assert metadata["ubunye/data_hash (receipt)"].startswith("sha256:")

    @pytest.mark.parametrize("given", ["mine", {"mine": 1}, "a receipt"], ids=["text", "json", "a_receipt"])
    @pytest.mark.parametrize("way", ["output", "context", "asset", "manager"])
    def test_a_renamed_receipt_is_read_back(self, given: Any, way: str, project: Project) -> None:
        counts = iter([1, 2])
        if given == "a receipt":
            # Copied from the event of another asset.
            project.run([raw], with_receipts(InMemoryIOManager(), project.receipts))
            given = project.metadata("raw")["ubunye/receipt"]
        theirs = {"ubunye/receipt": given}

        class Manager(InMemoryIOManager):
            def handle_output(self, context: OutputContext, obj: Any) -> None:
                super().handle_output(context, obj)
                if way == "manager":
                    context.add_output_metadata(theirs)

        @asset
        def own(context):  # type: ignore[no-untyped-def]
            if way == "context":
                context.add_output_metadata(theirs)
            if way == "asset":
                context.add_asset_metadata(theirs)
            return Output(
                pd.DataFrame({"x": range(next(counts))}), metadata=theirs if way == "output" else {}
            )

        manager = with_receipts(Manager(), project.receipts)
        checks = [*build_drift_checks([own])]
        project.run([own, *checks], manager)
        ran = project.run([own, *checks], manager)
        metadata = project.metadata("own")
        assert metadata["ubunye/receipt"] == given
        assert metadata["ubunye/receipt (receipt)"]["task_name"] == "own"
        assert "| rows of own | 1 | 2 |" in metadata["ubunye/changes"]
        receipt = project.receipt("own")
        assert (receipt.task_name, receipt.outputs[0].row_count) == ("own", 2)
        (check,) = ran.get_asset_check_evaluations()
        assert "not judged" not in (check.description or "")
        assert "first record" not in (check.description or "")
        # Its file gained the step's end.
        assert [(r.dagster or {})["step_status"] for r in project.mirrored("own")] == ["success"] * 2

    def test_the_users_keys_of_one_partition_win(self, project: Project) -> None:
        both = StaticPartitionsDefinition(["a", "b"])

        @asset(partitions_def=both, backfill_policy=BackfillPolicy.single_run())
        def parts(context):  # type: ignore[no-untyped-def]
            context.add_asset_metadata({"ubunye/receipt": "of a"}, partition_key="a")
            context.add_asset_metadata({"dagster/partition_row_count": 99})
            return {key: pd.DataFrame({"x": [1]}) for key in context.partition_keys}

        tags = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}
        project.run([parts], with_receipts(InMemoryIOManager(), project.receipts), tags=tags)
        for key in ("a", "b"):
            assert project.metadata("parts", key)["dagster/partition_row_count"] == 99
            assert (project.receipt("parts", key).dagster or {})["partition_keys"] == [key]
        assert project.metadata("parts", "a")["ubunye/receipt"] == "of a"

    def test_a_wide_table_has_a_capped_receipt_that_points_to_the_whole(
        self, manager: Any, project: Project
    ) -> None:
        @asset
        def wide() -> pd.DataFrame:
            return pd.DataFrame(
                np.zeros((1, 2_000)), columns=[f"a_name_of_some_length_{i}" for i in range(2_000)]
            )

        project.run([wide], manager)
        receipt = project.metadata("wide")["ubunye/receipt"]
        assert len(json.dumps(receipt)) <= MAX_RECEIPT_BYTES * 1.1
        assert receipt["cut"] == ["columns"]
        assert "columns" not in receipt["outputs"][0]
        whole = json.loads(Path(receipt["record_path"]).read_text())
        assert len(whole["outputs"][0]["columns"]) == 2_000
        assert project.receipt("wide").outputs[0].data_hash == whole["outputs"][0]["data_hash"]

    def test_what_cannot_be_hashed_is_said_with_column_and_type(self, manager: Any, project: Project) -> None:
        @asset
        def waits() -> pd.DataFrame:
            return pd.DataFrame({"wait": pd.to_timedelta([1, 2])})

        assert project.run([waits], manager).success
        metadata = project.metadata("waits")
        assert metadata["ubunye/hash_error"].startswith("column 'wait' (duration[ns])")
        assert metadata["dagster/row_count"] == 2
        assert "ubunye/data_hash" not in metadata


class TestNamesThatDifferOnlyInCase:
    @pytest.fixture
    def assets(self) -> list[Any]:
        @asset(name="Table", group_name="g")
        def upper() -> pd.DataFrame:
            return pd.DataFrame({"x": [1]})

        @asset(name="table", group_name="g")
        def lower() -> pd.DataFrame:
            return pd.DataFrame({"x": [1, 2]})

        return [upper, lower]

    def test_they_never_share_a_folder(self, assets: list[Any], project: Project) -> None:
        project.run(assets, with_receipts(InMemoryIOManager(), project.receipts))
        for key, rows in (("Table", 1), ("table", 2)):
            (record,) = project.mirrored(key, "g")
            assert (record.task_name, record.outputs[0].row_count) == (key, rows)
            assert project.metadata(key)["ubunye/record_path"].endswith(f"/g/{key}/{record.run_id}.json")

    def test_where_the_disk_takes_both_for_one_the_second_is_refused_and_kept_in_the_event(
        self, assets: list[Any], project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ubunye_orchestrate.records.folders._ignores_case", lambda folder: True)
        ran = project.run(assets, with_receipts(InMemoryIOManager(), project.receipts))
        assert ran.success
        shown = {key: project.metadata(key) for key in ("Table", "table")}
        (kept,) = [key for key in shown if "ubunye/record_path" in shown[key]]
        (other,) = set(shown) - {kept}
        assert (
            f"{other!r} and {kept!r} are one name on this file system" in shown[other]["ubunye/mirror_error"]
        )
        assert [record.task_name for record in project.mirrored(kept, "g")] == [kept]
        assert project.mirrored(other, "g") == []
        for key, rows in (("Table", 1), ("table", 2)):
            assert project.receipt(key).outputs[0].row_count == rows


class TestMirrorOutOfReach:
    @pytest.fixture(params=["a file in the way", "no such store"])
    def root(self, request: pytest.FixtureRequest, tmp_path: Path) -> str:
        if request.param == "no such store":
            return "nosuchprotocol://bucket/records"
        (tmp_path / "blocked").write_text("a file")
        return str(tmp_path / "blocked")

    @pytest.mark.parametrize("kind", ["parquet", "wrapped"])
    def test_the_run_goes_on_and_the_receipt_is_in_the_event_log(
        self, kind: str, root: str, project: Project, tmp_path: Path
    ) -> None:
        receipts = Receipts(root=root)
        manager: Any = (
            ParquetIOManager(base_path=str(tmp_path / "data"), receipts=receipts)
            if kind == "parquet"
            else with_receipts(InMemoryIOManager(), receipts)
        )
        result = project.run([raw, clean], manager)
        assert result.success
        metadata = project.metadata("clean")
        assert "ubunye/record_path" not in metadata
        assert metadata["ubunye/mirror_error"]
        assert project.receipt("clean").inputs[0].data_hash == project.receipt("raw").outputs[0].data_hash
        assert "the record was not mirrored; its receipt is in the event log" in project.log(result)


class TestFaultsOfOurs:
    """A receipt never fails a run that succeeded, whatever breaks in it."""

    @pytest.mark.parametrize(
        "broken",
        [
            "ubunye_orchestrate.dagster_io.receipts.tasks.code_evidence",
            "ubunye_orchestrate.dagster_io.receipts.writer.find_baseline",
            "ubunye_orchestrate.dagster_io.receipts.writer.producers_of",
            "ubunye_orchestrate.dagster_io.receipts.panel.compact_receipt",
            "ubunye_orchestrate.dagster_io.receipts.writer.step_from_fingerprint",
            "ubunye_orchestrate.dagster_io.upstream.set_data_version",
            "ubunye_orchestrate.dagster_io.receipts.closing.close_steps",
        ],
    )
    def test_the_run_succeeds_and_the_log_has_the_traceback(
        self, broken: str, manager: Any, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(f"{broken} broke")

        monkeypatch.setattr(broken, fail)
        result = project.run([raw, clean], manager)
        assert result.success
        assert list(result.asset_value("clean")["c"]) == [1.5] * 3
        log = project.log(result)
        assert f"RuntimeError: {broken} broke" in log
        assert "Traceback" in log

    def test_what_changed_is_not_needed_for_the_rest(
        self, manager: Any, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ubunye_orchestrate.dagster_io.receipts.panel.markdown", None)
        project.run([raw], manager)
        assert "ubunye/changes" not in project.metadata("raw")
        assert project.receipt("raw").outputs[0].data_hash is not None


class TestSettings:
    def test_from_the_environment(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("UBUNYE_ROOT", str(project.root))
        monkeypatch.setenv("UBUNYE_USECASE", "shop")
        monkeypatch.setenv("UBUNYE_PROFILE", "prod")
        project.run([raw], ParquetIOManager(base_path=str(tmp_path / "data")))
        (record,) = project.mirrored("raw", "sources", "shop")
        assert record.profile == "prod"

    def test_env_var_fields(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MIRROR", str(project.root))
        project.run([raw], with_receipts(InMemoryIOManager(), Receipts(root=EnvVar("MIRROR"))))
        assert len(project.mirrored("raw", "sources")) == 1

    def test_an_env_var_that_is_not_set_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("MIRROR", raising=False)
        with pytest.raises(
            ConfigurationError, match=r'Receipts\(root=EnvVar\("MIRROR"\)\): MIRROR is not set'
        ):
            Receipts(root=EnvVar("MIRROR")).settings()

    def test_a_setting_that_cannot_work_is_named(self) -> None:
        with pytest.raises(ConfigurationError, match="naive_timestamps is 'Mars/Base'"):
            Receipts(naive_timestamps="Mars/Base").settings()


def test_runs_that_follow_one_another_are_judged_unexplained_only_when_all_is_known(
    manager: Any, project: Project
) -> None:
    """The receipts alone carry a verdict: an asset with a random output."""

    @asset
    def random_output(raw: pd.DataFrame) -> pd.DataFrame:
        return raw.assign(r=np.random.default_rng().random(len(raw)))

    project.run([raw, random_output], manager)
    before = project.receipt("random_output")
    project.run([raw, random_output], manager)
    verdict = judge(compare_records(before, project.receipt("random_output")))
    assert "unexplained" in {finding.kind for finding in verdict.findings}
    assert not verdict.passed


def test_several_runs_in_one_process_do_not_mix(project_on_disk: Project, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    @asset
    def start() -> pd.DataFrame:
        return pd.DataFrame({"x": [1]})

    @asset
    def end(start: pd.DataFrame) -> pd.DataFrame:
        return start

    project = project_on_disk
    manager = ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
    project.run([start], manager)
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: project.run([start, end], manager, selection=[end]).run_id, range(4)))
    for event in project.events("end"):
        materialization = event.asset_materialization
        assert materialization is not None
        receipt = materialization.metadata["ubunye/receipt"].value
        assert len(receipt["inputs"]) == 1
        assert receipt["run_id"] == event.run_id
    assert {record.run_id for record in project.mirrored("end")} == set(runs)
