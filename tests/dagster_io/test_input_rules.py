"""Rules about what an asset reads: held against it before the asset's function runs."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates a context.
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dagster import (
    AssetCheckSeverity,
    AssetExecutionContext,
    AssetIn,
    AssetOut,
    Definitions,
    FilesystemIOManager,
    InMemoryIOManager,
    MaterializeResult,
    StaticPartitionsDefinition,
    asset,
    graph_asset,
    job,
    materialize,
    multi_asset,
    op,
)

from ubunye_orchestrate.dagster_io.receipts.expectation_checks import build_expectation_checks
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.declare import expect

from .conftest import Project

NOW: dict[str, Any] = {}


@pytest.fixture(params=["parquet", "wrapped"])
def manager(request: pytest.FixtureRequest, project: Project, tmp_path: Path) -> Any:
    if request.param == "parquet":
        return ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
    return with_receipts(FilesystemIOManager(base_dir=str(tmp_path / "data")), project.receipts)


@asset(key_prefix="raw")
def orders() -> pd.DataFrame:
    return pd.DataFrame({"id": NOW["id"]})


ran: list[str] = []


@asset(ins={"orders": AssetIn(key=["raw", "orders"])})
@expect.row_count(min=1)
@expect.not_null("id").on_input("orders")
@expect.unique("id", severity="warn").on_input("raw/orders")
def totals(orders: pd.DataFrame) -> pd.DataFrame:
    ran.append("totals")
    return orders


def test_what_holds_is_on_record_with_its_side(manager: Any, project: Project) -> None:
    NOW["id"] = [1.0, 2.0]
    assert project.run([orders, totals], manager).success
    record = project.receipt("totals")
    assert record.expectations == [
        {"output": "raw/orders", "rule": "orders_id_not_null", "kind": "not_null", "severity": "fail"}
        | {"column": "id", "failed": 0, "total": 2, "passed": True, "side": "input"},
        {"output": "raw/orders", "rule": "raw_orders_id_unique", "kind": "unique", "severity": "warn"}
        | {"column": "id", "failed": 0, "total": 2, "passed": True, "side": "input"},
        {"output": "totals", "rule": "row_count", "kind": "row_count", "severity": "fail"}
        | {"column": None, "failed": 0, "total": 2, "passed": True},
    ]
    assert {"step": "Expectations:totals", "input": "raw/orders"}.items() <= record.timings[1].items()


def test_what_is_broken_fails_the_step_before_the_function_runs(manager: Any, project: Project) -> None:
    NOW["id"] = [1.0, None]
    ran.clear()
    result = project.run([orders, totals], manager, raise_on_error=False)
    assert not result.success
    assert ran == []
    (record,) = project.mirrored("totals")
    assert record.status == "error"
    assert record.error is not None
    assert record.error.startswith(
        "ExpectationError: Expectations on input raw/orders failed, so the step did not run:\n"
        "  orders: orders_id_not_null (not_null) broken by 1 of 2 rows"
    )
    assert [(one["rule"], one["failed"]) for one in record.expectations] == [
        ("orders_id_not_null", 1),
        ("raw_orders_id_unique", 0),
    ]
    assert record.inputs[0].data_hash == project.receipt("raw/orders").outputs[0].data_hash


def test_a_warning_lets_the_step_run(manager: Any, project: Project) -> None:
    NOW["id"] = [1.0, 1.0]
    result = project.run([orders, totals], manager)
    assert "raw/orders: raw_orders_id_unique (unique) broken by 2 of 2 rows" in project.log(result)
    assert project.receipt("totals").status == "success"


def test_they_are_declared_checks_with_their_counts(manager: Any, project: Project) -> None:
    NOW["id"] = [1.0, 1.0]
    result = project.run([orders, totals, *build_expectation_checks([totals])], manager)
    found = {one.check_name: one for one in result.get_asset_check_evaluations()}
    assert {name: one.passed for name, one in found.items()} == {
        "orders_id_not_null": True,
        "raw_orders_id_unique": False,
        "row_count": True,
    }
    assert found["raw_orders_id_unique"].severity is AssetCheckSeverity.WARN
    assert found["raw_orders_id_unique"].description == "broken by 2 of 2 rows"


@pytest.mark.parametrize(
    "wanted",
    [pd.DataFrame, pa.Table, pa.RecordBatchReader, pl.DataFrame, pl.LazyFrame, dict[str, pl.LazyFrame]],
)
@pytest.mark.parametrize("good", [True, False])
def test_whatever_the_input_is_handed_over_as(
    wanted: Any, good: bool, project: Project, tmp_path: Path
) -> None:
    parts = StaticPartitionsDefinition(["p", "q"])

    @asset(partitions_def=parts)
    def pieces(context: AssetExecutionContext) -> pd.DataFrame:
        return pd.DataFrame({"id": [1.0, 2.0] if good or context.partition_key == "p" else [None, 3.0]})

    def use(pieces):  # type: ignore[no-untyped-def]
        if isinstance(pieces, pa.RecordBatchReader):
            assert pieces.read_all().num_rows == 4
        return pd.DataFrame({"x": [1]})

    use.__annotations__ = {"pieces": wanted}
    used = asset(name="used")(expect.not_null("id").on_input("pieces")(use))
    manager = ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
    for key in ("p", "q"):
        project.run([pieces], manager, partition_key=key)
    result = project.run([pieces, used], manager, selection=[used], raise_on_error=False)
    assert result.success is good
    found = project.mirrored("used")[0].expectations
    assert sum(one["failed"] for one in found) == (0 if good else 1)
    assert sum(one["total"] for one in found) == 4
    assert {one.get("checked") for one in found} == {None}


def test_an_input_that_was_not_read_is_not_checked_and_fails(manager: Any, project: Project) -> None:
    @asset(deps=[orders])
    @expect.not_null("id").on_input("raw/orders")
    def blind() -> pd.DataFrame:
        return pd.DataFrame({"x": [1]})

    NOW["id"] = [1.0]
    assert not project.run([orders, blind], manager, raise_on_error=False).success
    (found,) = project.mirrored("blind")[0].expectations
    assert found["detail"] == "not checked: no input 'raw/orders' was read"
    assert found["side"] == "input"


def test_each_asset_of_a_step_has_its_own(manager: Any, project: Project) -> None:
    @multi_asset(
        outs={
            "a": AssetOut(metadata=expect(expect.row_count(1).on_input("orders"))),
            "b": AssetOut(metadata=expect(expect.not_null("id", severity="warn").on_input("orders"))),
        },
        ins={"orders": AssetIn(key=["raw", "orders"])},
    )
    def both(orders: pd.DataFrame) -> tuple[Any, Any]:
        return orders, orders

    NOW["id"] = [1.0, None]
    assert project.run([orders, both], manager).success
    assert [(one["rule"], one["passed"]) for one in project.receipt("a").expectations] == [
        ("orders_row_count", True)
    ]
    assert [(one["rule"], one["passed"]) for one in project.receipt("b").expectations] == [
        ("orders_id_not_null", False)
    ]


@pytest.mark.parametrize("good", [True, False])
def test_an_asset_of_a_graph_has_them_held_where_its_op_reads(
    good: bool, manager: Any, project: Project
) -> None:
    @asset
    def source() -> pd.DataFrame:
        return pd.DataFrame({"id": [1.0, 2.0 if good else None]})

    @op
    def early(source: pd.DataFrame) -> pd.DataFrame:
        return source

    @op
    def late(frame: pd.DataFrame) -> pd.DataFrame:
        return frame

    @graph_asset(metadata=expect(expect.not_null("id").on_input("source"), expect.row_count(1)))
    def backed(source: pd.DataFrame) -> pd.DataFrame:
        return late(early(source))

    assert project.run([source, backed], manager, raise_on_error=False).success is good
    (record,) = project.mirrored("backed")
    found = [(one["rule"], one["passed"]) for one in record.expectations]
    assert found == [("source_id_not_null", good), *([("row_count", True)] if good else [])]


@pytest.mark.parametrize("good", [True, False])
def test_what_an_asset_reads_by_itself(good: bool, project: Project) -> None:
    written: list[int] = []

    @asset
    @expect.not_null("id").on_input("source")
    @expect.row_count(1)
    def own(context: AssetExecutionContext, receipts: Receipts) -> None:
        with receipts.run(context) as run:
            table = run.read("source", pd.DataFrame({"id": [1.0, 2.0 if good else None]}))
            run.expect(table)
            written.append(1)
            run.wrote("own", table)

    resources = {
        "receipts": project.receipts,
        "io_manager": with_receipts(InMemoryIOManager(), project.receipts),
    }
    result = materialize([own], instance=project.instance, resources=resources, raise_on_error=False)
    assert result.success is good
    assert bool(written) is good
    (record,) = project.mirrored("own")
    found = [(one["rule"], one["passed"]) for one in record.expectations]
    assert found == [("source_id_not_null", good), *([("row_count", True)] if good else [])]


@pytest.mark.parametrize(
    "broken",
    ["upstream.step_outputs", "receipts.expecting._hold_input", "receipts.expecting._evaluated"],
)
def test_a_fault_of_ours_fails_no_run_and_nothing_counts_as_checked(
    broken: str, manager: Any, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{broken} broke")

    monkeypatch.setattr(f"ubunye_orchestrate.dagster_io.{broken}", fail)
    NOW["id"] = [1.0]
    result = project.run([orders, totals], manager, raise_on_error=False)
    assert f"RuntimeError: {broken} broke" in project.log(result)
    assert result.success
    if broken.startswith("expecting"):
        found = project.receipt("totals").expectations
        assert [one["passed"] for one in found[:2]] == [False, False]
        assert found[0]["detail"] == "not checked: checking failed; the run's log says why"


class TestUnknownInputs:
    """What a rule about an input that is not there would only say once the asset's function is through."""

    LINE = r"totals has rule .* about input 'odrers', which it does not have; expected one of .*: "

    @pytest.fixture
    def totals(self, request: pytest.FixtureRequest) -> Any:
        rule = getattr(request, "param", None) or expect.not_null("id").on_input("odrers")

        @asset(ins={"orders": AssetIn(key=["raw", "orders"])})
        @rule
        def totals(orders: pd.DataFrame) -> pd.DataFrame:
            ran.append("totals")
            return orders

        return totals

    @pytest.mark.parametrize(
        ("totals", "line"),
        [
            (expect.not_null("id").on_input("odrers"), r'\.on_input\("orders"\)'),
            (expect.not_null("id", severity="warn").on_input("odrers"), r'\.on_input\("orders"\)'),
            (expect.reconcile("odrers"), r'expect.reconcile\("orders"\)'),
        ],
        indirect=["totals"],
    )
    def test_is_refused_when_the_project_is_wrapped(self, totals: Any, line: str) -> None:
        with pytest.raises(ConfigurationError, match=self.LINE + line):
            with_receipts(Definitions(assets=[orders, totals]))

    def test_is_refused_when_its_checks_are_built(self, totals: Any) -> None:
        with pytest.raises(ConfigurationError, match=self.LINE):
            build_expectation_checks([totals])

    def test_at_the_latest_before_the_function_runs(
        self, totals: Any, manager: Any, project: Project
    ) -> None:
        NOW["id"] = [1.0]
        ran.clear()
        failed = project.run([orders, totals], manager, raise_on_error=False)
        assert not failed.success
        assert ran == []
        (record,) = project.mirrored("totals")
        assert (record.error or "").startswith("ConfigurationError: asset totals has rule odrers_id_not_null")

    def test_in_metadata_in_graphs_and_of_ops_too(self) -> None:
        @op
        @expect.not_null("id").on_input("rows")
        def keep(rows: pd.DataFrame) -> pd.DataFrame:
            return rows

        @op
        @expect.not_null("id").on_input("row")
        def wrong(rows: pd.DataFrame) -> pd.DataFrame:
            return rows

        @op
        def make() -> pd.DataFrame:
            return pd.DataFrame({"id": [1]})

        def graph_of(name: str, rule: Any) -> Any:
            @graph_asset(name=name, metadata=expect(rule), ins={"orders": AssetIn(key=["raw", "orders"])})
            def composed(orders):  # type: ignore[no-untyped-def]
                return keep(orders)

            return composed

        for called in ("orders", "raw/orders", "rows"):
            right = graph_of("right", expect.not_null("id").on_input(called))
            with_receipts(Definitions(assets=[orders, right])).get_repository_def()
        with pytest.raises(ConfigurationError, match=r"asset bad has rule .* about input 'source'"):
            with_receipts(Definitions(assets=[graph_of("bad", expect.not_null("id").on_input("source"))]))

        @job
        def fine() -> None:
            keep(make())

        @job
        def broken() -> None:
            wrong(make())

        with_receipts(Definitions(jobs=[fine])).get_repository_def()
        with pytest.raises(ConfigurationError, match=r'op wrong has .* .row., .*\.on_input\("rows"\)'):
            with_receipts(Definitions(jobs=[broken]))

    def test_is_no_matter_to_what_reads_by_itself(self, project: Project) -> None:
        @asset
        @expect.not_null("id").on_input("anything")
        def with_resource(context: AssetExecutionContext, receipts: Receipts):  # type: ignore[no-untyped-def]
            ...

        @asset
        @expect.not_null("id").on_input("anything")
        def nothing() -> None: ...

        @asset
        @expect.not_null("id").on_input("anything")
        def told() -> MaterializeResult:  # type: ignore[type-arg]
            return MaterializeResult()

        @asset(deps=[orders])
        @expect.not_null("id").on_input("raw/orders")
        def depends() -> pd.DataFrame:
            return pd.DataFrame({"id": [1]})

        assets = [orders, with_resource, nothing, told, depends]
        with_receipts(Definitions(assets=assets, resources={"receipts": project.receipts}))
        build_expectation_checks([with_resource, nothing, told, depends])

        @asset
        @expect.not_null("id").on_input("anything")
        def alone() -> pd.DataFrame:
            return pd.DataFrame({"id": [1]})

        with pytest.raises(ConfigurationError, match="about input 'anything', and has no inputs"):
            with_receipts(Definitions(assets=[alone]))


def test_a_rule_of_both_sides_or_of_no_input_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="expected a rule about one table"):
        expect.reconcile("orders").on_input("orders")
    with pytest.raises(ConfigurationError, match="the name of an input"):
        expect.not_null("id").on_input("")
