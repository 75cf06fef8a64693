"""Rules beside an asset: checked before anything is written, on record whether they hold or not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dagster import (
    AssetOut,
    BackfillPolicy,
    FilesystemIOManager,
    InMemoryIOManager,
    StaticPartitionsDefinition,
    asset,
    multi_asset,
)

from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.expectations.declare import expect

from .conftest import Project

GOOD = {"id": [1, 2, 3], "region": ["north", "south", None], "amount": [1.0, 2.5, 4.0]}
BAD = {"id": [1, 2, 2], "region": ["north", "moon", None], "amount": [1.0, float("nan"), 4.0]}
NOW: dict[str, Any] = {"frame": pd.DataFrame(GOOD)}


def reader(columns: Any) -> pa.RecordBatchReader:
    return pa.table(columns).to_reader()


@asset
@expect.not_null("amount")
@expect.unique("id")
@expect.one_of("region", ["north", "south"], severity="warn")
def orders() -> Any:
    return NOW["frame"]


def managers(project: Project) -> dict[str, Any]:
    return {
        "wrapped": with_receipts(FilesystemIOManager(base_dir=str(project.root / "files")), project.receipts),
        "parquet": ParquetIOManager(base_path=str(project.root / "files"), receipts=project.receipts),
    }


@pytest.mark.parametrize("manager", ["wrapped", "parquet"])
@pytest.mark.parametrize("library", [pd.DataFrame, pa.table, pl.DataFrame, pl.LazyFrame, reader])
def test_rules_that_hold_are_on_record(project: Project, manager: str, library: Any) -> None:
    if manager == "wrapped" and library is reader:
        pytest.skip("it can be read once, by the inner IO manager")
    NOW["frame"] = library(GOOD)
    used = managers(project)[manager]
    if manager == "wrapped" and library is pl.LazyFrame:
        used = with_receipts(InMemoryIOManager(), project.receipts)
    assert project.run([orders], used).success
    # Our own checks what it has staged; elsewhere a lazy frame is computed a second time to be stored.
    lazy = {"checked": "plan"} if library is pl.LazyFrame and manager == "wrapped" else {}
    expected = [
        {"output": "orders", "rule": "amount_not_null", "kind": "not_null", "severity": "fail"}
        | {"column": "amount", "failed": 0, "total": 3, "passed": True, **lazy},
        {"output": "orders", "rule": "id_unique", "kind": "unique", "severity": "fail"}
        | {"column": "id", "failed": 0, "total": 3, "passed": True, **lazy},
        {"output": "orders", "rule": "region_one_of", "kind": "one_of", "severity": "warn"}
        | {"column": "region", "failed": 0, "total": 3, "passed": True, **lazy},
    ]
    assert project.receipt("orders").expectations == expected
    assert project.mirrored("orders")[0].expectations == expected
    assert "Expectations:orders" in [timing["step"] for timing in project.receipt("orders").timings]


@pytest.mark.parametrize("manager", ["wrapped", "parquet"])
@pytest.mark.parametrize("library", [pd.DataFrame, pa.table, pl.DataFrame, pl.LazyFrame, reader])
def test_a_broken_rule_stops_the_step_before_anything_is_written(
    project: Project, manager: str, library: Any
) -> None:
    if manager == "wrapped" and library in (reader, pl.LazyFrame):
        pytest.skip("not stored by Dagster's file system")
    NOW["frame"] = library(GOOD)
    project.run([orders], managers(project)[manager])
    stored = {path: path.read_bytes() for path in (project.root / "files").rglob("*") if path.is_file()}
    assert stored
    NOW["frame"] = library(BAD)
    result = project.run([orders], managers(project)[manager], raise_on_error=False)
    assert not result.success
    assert stored == {
        path: path.read_bytes() for path in (project.root / "files").rglob("*") if path.is_file()
    }
    assert len(project.events("orders")) == 1
    record = project.mirrored("orders")[0]
    assert record.status == "error"
    assert record.error is not None
    assert record.error.startswith("ExpectationError: Expectations failed, so nothing was written:")
    assert "orders: amount_not_null (not_null) broken by 1 of 3 rows" in record.error
    assert "orders: id_unique (unique) broken by 2 of 3 rows" in record.error
    assert "region_one_of" not in record.error
    found = {entry["rule"]: (entry["failed"], entry["passed"]) for entry in record.expectations}
    assert found == {"amount_not_null": (1, False), "id_unique": (2, False), "region_one_of": (1, False)}
    observed = project.observations("orders")[0]
    assert observed.metadata["ubunye/receipt"].value["expectations"] == record.expectations


def test_a_rule_of_severity_warn_is_a_warning_and_the_table_is_written(project: Project) -> None:
    NOW["frame"] = pd.DataFrame({**GOOD, "region": ["north", "moon", "sun"]})
    result = project.run([orders], managers(project)["wrapped"])
    assert result.success
    assert project.receipt("orders").status == "success"
    assert project.receipt("orders").expectations[2]["failed"] == 2
    assert "orders: region_one_of (one_of) broken by 2 of 3 rows" in project.log(result)


@pytest.mark.parametrize("manager", ["wrapped", "parquet"])
def test_what_cannot_be_checked_has_not_passed(project: Project, manager: str) -> None:
    @asset(metadata=expect(expect.not_null("absent")))
    def table() -> Any:
        return pd.DataFrame(GOOD)

    @asset
    @expect.row_count(min=1)
    def reader() -> Any:
        return pa.table(GOOD).to_reader()

    result = project.run([table, reader], managers(project)[manager], raise_on_error=False)
    assert not result.success
    stored = [path.name for path in (project.root / "files").rglob("*") if path.is_file()]
    assert stored == ([] if manager == "wrapped" else ["reader.parquet"])
    record = project.mirrored("table")[0]
    assert record.expectations[0]["passed"] is False
    assert record.expectations[0]["failed"] is None
    detail = "not checked: the table has no column 'absent'; it has id, region, amount"
    assert record.expectations[0]["detail"] == detail
    assert record.error is not None
    assert f"absent_not_null (not_null) {detail}" in record.error
    (checked,) = project.mirrored("reader")[0].expectations
    assert (checked["passed"], checked["total"]) == ((False, None) if manager == "wrapped" else (True, 3))
    if manager == "wrapped":
        assert "RecordBatchReader" in checked["detail"]


def test_each_asset_of_a_step_has_its_own_rules_and_results(project: Project) -> None:
    @multi_asset(
        outs={
            "a": AssetOut(metadata=expect(expect.row_count(min=1))),
            "b": AssetOut(metadata=expect(expect.row_count(min=9))),
        }
    )
    @expect.not_null("id")
    def both() -> tuple[Any, Any]:
        return pd.DataFrame(GOOD), pd.DataFrame(GOOD)

    result = project.run([both], managers(project)["wrapped"], raise_on_error=False)
    assert not result.success
    a, b = project.mirrored("a")[0], project.mirrored("b")[0]
    assert (a.status, b.status) == ("success", "error")
    assert [(one["rule"], one["output"], one["passed"]) for one in a.expectations] == [
        ("id_not_null", "a", True),
        ("row_count", "a", True),
    ]
    assert [(one["rule"], one["output"], one["passed"]) for one in b.expectations] == [
        ("id_not_null", "b", True),
        ("row_count", "b", False),
    ]
    assert b.error is not None
    assert "b: row_count (row_count) broken by 3 rows; expected at least 9" in b.error


@pytest.mark.parametrize("manager", ["wrapped", "parquet"])
def test_rows_and_a_sum_are_reconciled_with_an_input(project: Project, manager: str) -> None:
    @asset
    def source() -> pd.DataFrame:
        return pd.DataFrame({"amount": [0.1] * 10, "kept": [True] * 9 + [False]})

    @asset
    @expect.reconcile("source", max_lost=1)
    @expect.reconcile("source", sum="amount", severity="warn")
    def target(source: pd.DataFrame) -> pd.DataFrame:
        return source[source["kept"]]

    @asset
    @expect.reconcile("nothing")
    def lost(source: pd.DataFrame) -> pd.DataFrame:
        return source

    result = project.run([source, target, lost], managers(project)[manager], raise_on_error=False)
    rows, total = project.receipt("target").expectations
    assert rows["passed"]
    assert rows["detail"] == (
        "10 rows read from source, 9 reached target: 1 lost, 0 gained (at most 1 lost, at most 0 gained)"
    )
    assert (total["rule"], total["column"], total["passed"]) == ("amount_sum_from_source", "amount", False)
    assert "sum of amount in source 1.0, of amount in target 0.9: difference -0.1" in total["detail"]
    assert not result.success
    (record,) = project.mirrored("lost")
    assert "rows_from_nothing about input 'nothing', which it does not have" in (record.error or "")
    assert record.expectations[0]["detail"] == "not checked: the step did not run"


@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`")
def test_the_partitions_of_a_range_are_checked_one_by_one(project: Project) -> None:
    parts = StaticPartitionsDefinition(["p", "q"])

    @asset(partitions_def=parts, backfill_policy=BackfillPolicy.single_run())
    @expect.row_count(min=2, severity="warn")
    def table() -> Any:
        return {key: pd.DataFrame({"id": range(n)}) for key, n in (("p", 3), ("q", 1))}

    project.run(
        [table],
        managers(project)["parquet"],
        tags={"dagster/asset_partition_range_start": "p", "dagster/asset_partition_range_end": "q"},
    )
    found = [
        (one["partition"], one["total"], one["passed"]) for one in project.mirrored("table")[0].expectations
    ]
    assert found == [("p", 3, True), ("q", 1, False)]
    assert [one["total"] for one in project.receipt("table", "q").expectations] == [1]


@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`")
def test_a_range_of_lazy_frames_is_stored_whole_or_not_at_all(project: Project) -> None:
    parts = StaticPartitionsDefinition(["p", "q"])
    rows = {"p": 3, "q": 3}
    computed: list[str] = []

    @asset(partitions_def=parts, backfill_policy=BackfillPolicy.single_run())
    @expect.row_count(min=2)
    def table() -> Any:
        def of(key: str) -> pl.LazyFrame:
            def compute(frame: pl.DataFrame) -> pl.DataFrame:
                computed.append(key)
                return frame

            return pl.LazyFrame({"id": range(rows[key])}).map_batches(compute)

        return {key: of(key) for key in rows}

    def run() -> bool:
        tags = {"dagster/asset_partition_range_start": "p", "dagster/asset_partition_range_end": "q"}
        manager = managers(project)["parquet"]
        return bool(project.run([table], manager, tags=tags, raise_on_error=False).success)

    assert run()
    assert computed == ["p", "q"], "a plan was computed twice"
    stored = {path: path.read_bytes() for path in (project.root / "files").rglob("*") if path.is_file()}
    assert len(stored) == 2
    rows.update(p=5, q=1)
    assert not run()
    assert {p: p.read_bytes() for p in (project.root / "files").rglob("*") if p.is_file()} == stored
    failed = project.mirrored("table")[0].expectations
    assert [(one["partition"], one["total"], one["passed"]) for one in failed] == [
        ("p", 5, True),
        ("q", 1, False),
    ]


def test_metadata_that_expect_did_not_make_fails_the_step_with_the_line_to_write(project: Project) -> None:
    @asset(metadata={"ubunye/expectations": [{"not_null": "id"}]})
    def table() -> Any:
        return pd.DataFrame(GOOD)

    result = project.run([table], managers(project)["wrapped"], raise_on_error=False)
    assert not result.success
    error = project.mirrored("table")[0].error
    assert error is not None
    assert error.startswith("ConfigurationError: ")
    assert 'metadata=expect(expect.not_null("id"))' in error


def test_an_asset_without_rules_does_not_load_narwhals(project: Project, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom dagster import asset, materialize, InMemoryIOManager\n"
        "from ubunye_orchestrate import Receipts, with_receipts\n"
        "@asset\ndef a(): return 1\n"
        f"receipts = Receipts(root={str(tmp_path)!r})\n"
        "materialize([a], resources={'io_manager': with_receipts(InMemoryIOManager(), receipts)})\n"
        "assert 'narwhals' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)
