"""Whatever shape a step has, its assets and outputs leave records that name what was read."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates a context.
import importlib.util
import linecache
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dagster import (
    AssetCheckResult,
    AssetCheckSpec,
    AssetKey,
    AssetOut,
    DynamicOut,
    DynamicOutput,
    FilesystemIOManager,
    InMemoryIOManager,
    Out,
    Output,
    ReexecutionOptions,
    asset,
    asset_check,
    execute_job,
    graph_asset,
    graph_multi_asset,
    job,
    op,
    reconstructable,
)

from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.drift import judge
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.code import code_evidence

from .conftest import Project
from .graph_job import get_job

FRAME = pd.DataFrame({"x": [1, 2, 3]})


@pytest.fixture(params=["parquet", "wrapped"])
def manager(request: pytest.FixtureRequest, project: Project, tmp_path: Path) -> Any:
    if request.param == "parquet":
        return ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
    return with_receipts(FilesystemIOManager(base_dir=str(tmp_path / "data")), project.receipts)


@asset
def raw() -> pd.DataFrame:
    return FRAME


class TestDynamicOutputs:
    def test_each_copy_is_a_run_of_one_task(self, manager: Any, project: Project) -> None:
        @op(out=DynamicOut())
        def split() -> Any:
            for n in (1, 2):
                yield DynamicOutput(pd.DataFrame({"x": [n]}), mapping_key=f"n{n}")

        @op
        def double(piece: pd.DataFrame) -> pd.DataFrame:
            return piece * 2

        @op
        def merge(pieces: list[pd.DataFrame]) -> pd.DataFrame:
            return pd.concat(pieces)

        definition = getattr(manager, "get_resource_definition", lambda: manager)()

        @job(resource_defs={"io_manager": definition})
        def fan() -> None:
            merge(split().map(double).collect())

        result = fan.execute_in_process(instance=project.instance)
        run_id = result.run_id
        split_runs = {r.run_id: r for r in project.mirrored("fan__split__result")}
        doubled = {r.run_id: r for r in project.mirrored("fan__double__result")}
        assert set(split_runs) == set(doubled) == {f"{run_id}--n1", f"{run_id}--n2"}
        for n in (1, 2):
            made, used = split_runs[f"{run_id}--n{n}"], doubled[f"{run_id}--n{n}"]
            assert used.inputs[0].data_hash == made.outputs[0].data_hash
            assert used.outputs[0].data_hash == fingerprint(pd.DataFrame({"x": [2 * n]})).data_hash
        (merged,) = project.mirrored("fan__merge__result")
        assert [step.data_hash for step in merged.inputs] == [
            doubled[f"{run_id}--n{n}"].outputs[0].data_hash for n in (1, 2)
        ]
        assert merged.outputs[0].row_count == 2


def test_checks_in_the_same_step_change_nothing_of_the_receipt(manager: Any, project: Project) -> None:
    spec = AssetCheckSpec("few", asset="checked")

    @asset(check_specs=[spec])
    def checked(raw: pd.DataFrame) -> Any:
        yield Output(raw)
        yield AssetCheckResult(passed=False, check_name="few", asset_key=AssetKey("checked"))

    result = project.run([raw, checked], manager)
    assert result.success
    assert [one.passed for one in result.get_asset_check_evaluations()] == [False]
    record = project.receipt("checked")
    assert [step.name for step in record.outputs] == ["checked"]
    assert record.inputs[0].data_hash == record.outputs[0].data_hash == fingerprint(FRAME).data_hash
    (mirrored,) = project.mirrored("checked")
    assert (mirrored.dagster or {})["step_status"] == "success"
    assert {task[-1] for task in project.store.tasks()} == {"raw", "checked"}


def test_a_check_that_fails_is_no_task(manager: Any, project: Project) -> None:
    @asset_check(asset=raw)
    def broken(raw: pd.DataFrame) -> AssetCheckResult:
        raise ValueError("of the check")

    result = project.run([raw, broken], manager, raise_on_error=False)
    assert not result.success
    assert {task[-1] for task in project.store.tasks()} == {"raw"}
    assert "ubunye" not in project.log(result)


FLOW = """
import json
import os

import pandas as pd
from dagster import asset, graph_asset, op

FACTOR = 2


@asset
def raw() -> pd.DataFrame:
    return pd.DataFrame({"x": json.loads(os.environ["RAW"])})


@asset
def rates() -> pd.DataFrame:
    return pd.DataFrame({"rate": [2]})


@op(config_schema={"least": int})
def clean(context, raw: pd.DataFrame) -> pd.DataFrame:
    return raw[raw["x"] >= context.op_config["least"]] * FACTOR


@op
def price(frame: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    return frame * rates["rate"][0]


@graph_asset
def priced(raw: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    return price(clean(raw), rates)
"""


class TestGraphBackedAssets:
    @pytest.fixture
    def flow(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        (tmp_path / "pyproject.toml").write_text("")
        monkeypatch.setenv("RAW", "[1, 2, 3]")
        path = tmp_path / "graph_flow.py"

        def load(change: tuple[str, str] = ("", "")) -> list[Any]:
            path.write_text(FLOW.replace(*change))
            linecache.clearcache()
            spec = importlib.util.spec_from_file_location("graph_flow", path)
            assert spec is not None
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, "graph_flow", module)
            exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), module.__dict__)
            return [module.raw, module.rates, module.priced]

        return load

    def run(self, project: Project, assets: list[Any], manager: Any, least: int = 2, **options: Any) -> Any:
        config = {"ops": {"priced": {"ops": {"clean": {"config": {"least": least}}}}}}
        return project.run(assets, manager, run_config=config, **options)

    def test_its_record_is_of_the_whole_graph(self, flow: Any, manager: Any, project: Project) -> None:
        self.run(project, flow(), manager)
        record = project.receipt("priced")
        assert [(step.name, step.made_by) for step in record.inputs] == [("raw", None), ("rates", None)]
        for step in record.inputs:
            assert step.data_hash == project.receipt(step.name).outputs[0].data_hash
            assert step.producer is not None
            assert step.producer[0].storage_id == project.event(step.name).storage_id
        assert record.dagster is not None
        assert record.dagster["declared_inputs"] == ["rates", "raw"]
        assert record.code is not None
        assert record.code["error"] is None
        names = {name.split(":")[1] for name in record.code["functions"]}
        assert names == {"priced", "clean", "price", "FACTOR"}
        assert [timing["step"].split(":")[0] for timing in record.timings] == [
            *("Reader", "Transform", "Writer"),
            *("Reader", "Reader", "Transform", "Writer"),
        ]
        tasks = {task[-1] for task in project.store.tasks()}
        assert [task for task in tasks if "price__" in task] == [], "the last op's output is the asset"
        assert len([task for task in tasks if "clean" in task]) == 1

    @pytest.mark.parametrize(
        ("change", "least", "expected"),
        [
            (("", ""), 2, {}),
            (("FACTOR = 2", "FACTOR = 3"), 2, {"data_changed", "code_changed"}),
            (("", ""), 3, {"data_changed", "configuration_changed"}),
            (("", "[1, 2, 4]"), 2, {"data_changed", "input_changed"}),
            (("price(clean(raw), rates)", "price(clean(rates), raw)"), 2, None),
        ],
        ids=["nothing", "code of an inner op", "config of an inner op", "an input", "the wiring"],
    )
    def test_a_change_is_attributed_to_what_the_graph_read_ran_and_was_given(
        self,
        change: Any,
        least: int,
        expected: Any,
        flow: Any,
        manager: Any,
        project: Project,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.run(project, flow(), manager)
        before = project.receipt("priced")
        if expected is None:
            # It need not run: which op reads what is code too.
            functions = code_evidence(flow(change)[2].node_def.composition_fn).functions
            assert before.code is not None
            changed = {name for name, value in before.code["functions"].items() if functions[name] != value}
            assert changed == {"graph_flow:priced"}
            return
        if change[1].startswith("["):
            monkeypatch.setenv("RAW", change[1])
            change = ("", "")
        self.run(project, flow(change), manager, least)
        verdict = judge(compare_records(before, project.receipt("priced")))
        assert {finding.kind for finding in verdict.findings} == set(expected)

    def test_an_op_without_a_receipt_leaves_the_inputs_unknown(
        self, flow: Any, project: Project, tmp_path: Path
    ) -> None:
        @op(out=Out(io_manager_key="bare"))
        def early(raw: pd.DataFrame) -> pd.DataFrame:
            return raw

        @op
        def late(frame: pd.DataFrame) -> pd.DataFrame:
            return frame * np.random.default_rng().random()

        @graph_asset
        def backed(raw: pd.DataFrame) -> pd.DataFrame:
            return late(early(raw))

        manager = with_receipts(InMemoryIOManager(), project.receipts)
        for _ in range(2):
            project.run([raw, backed], manager, resources={"bare": InMemoryIOManager()})
        record = project.receipt("backed")
        assert record.inputs == []
        first, second = project.mirrored("backed")
        kinds = {finding.kind for finding in judge(compare_records(second, first)).findings}
        assert "not_attributable" in kinds
        assert "unexplained" not in kinds

    def test_what_a_failed_graph_has_read_is_in_its_record(
        self, flow: Any, manager: Any, project: Project
    ) -> None:
        assets = flow(("return frame * rates", "raise ValueError('no price') #"))
        self.run(project, assets, manager, raise_on_error=False)
        (record,) = project.mirrored("priced")
        assert record.error == "ValueError: no price"
        assert [step.name for step in record.inputs] == ["raw", "rates"]
        assert all(step.data_hash for step in record.inputs)

    def test_a_re_execution_from_failure_knows_what_the_first_run_read(
        self, project_on_disk: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project = project_on_disk
        monkeypatch.setenv("TEST_FOLDER", str(tmp_path))
        monkeypatch.setenv("GRAPH_FAILS", "1")
        definition = reconstructable(get_job)
        with execute_job(definition, instance=project.instance) as failed:
            assert not failed.success
        monkeypatch.delenv("GRAPH_FAILS")
        options = ReexecutionOptions.from_failure(failed.run_id, project.instance)
        with execute_job(definition, instance=project.instance, reexecution_options=options) as again:
            assert again.success
        record = project.receipt("backed")
        assert (record.dagster or {})["run_id"] == again.run_id
        assert [(step.name, step.data_hash) for step in record.inputs] == [
            ("raw", project.receipt("raw").outputs[0].data_hash)
        ]
        # The time of the run that failed is not this one's.
        assert [timing["step"] for timing in record.timings if "early" in timing["step"]] == []
        stats = project.instance.get_run_stats(again.run_id)
        assert record.started_at is not None
        assert stats.start_time is not None
        assert datetime.fromisoformat(record.started_at).timestamp() > stats.start_time - 1

    def test_each_asset_of_a_graph_has_the_inputs_on_its_own_way(
        self, manager: Any, project: Project
    ) -> None:
        @asset
        def other() -> pd.DataFrame:
            return FRAME * 2

        @op
        def keep(frame: pd.DataFrame) -> pd.DataFrame:
            return frame

        @graph_multi_asset(outs={"left": AssetOut(), "right": AssetOut()})
        def both(raw: pd.DataFrame, other: pd.DataFrame) -> Any:
            return {"left": keep.alias("k2")(keep.alias("k1")(raw)), "right": keep.alias("k3")(other)}

        project.run([raw, other, both], manager)
        for name, read in (("left", "raw"), ("right", "other")):
            record = project.receipt(name)
            assert [step.name for step in record.inputs] == [read]
            assert (record.dagster or {})["declared_inputs"] == [read]


def test_a_pickle_that_is_no_table_passes_untouched(project: Project, tmp_path: Path) -> None:
    seen: list[Any] = []

    @asset
    def settings() -> dict[str, Any]:
        return {"a": [1, {2}]}

    @asset
    def reads(settings: dict[str, Any]) -> pd.DataFrame:
        seen.append(settings)
        return FRAME

    manager = with_receipts(FilesystemIOManager(base_dir=str(tmp_path / "data")), project.receipts)
    assert project.run([settings, reads], manager).success
    assert seen == [{"a": [1, {2}]}]
    assert project.receipt("settings").outputs[0].hash_error == "not a table (dict)"
    assert project.receipt("reads").inputs[0].hash_error == "not a table (dict)"
