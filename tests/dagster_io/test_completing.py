"""A receipt that was cut for its size is held against others with what its mirrored record has."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dagster import AssetSelection, BackfillPolicy, StaticPartitionsDefinition, asset

from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.drift import judge
from ubunye_orchestrate.dagster_io.drift.sensors import build_drift_sensor
from ubunye_orchestrate.dagster_io.receipts.completing import completed
from ubunye_orchestrate.dagster_io.receipts.expectation_checks import build_expectation_checks
from ubunye_orchestrate.dagster_io.receipts.metadata import compact_receipt
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.records.store import RecordStore

from .conftest import Project
from .test_metadata import CUTS, HASH, a_record, read_back
from .test_sensors import Watch

NOW: dict[str, Any] = {}


@asset
def wide() -> pd.DataFrame:
    frame = pd.DataFrame(np.zeros((1, 3_000)), columns=[f"a_name_of_some_length_{i}" for i in range(3_000)])
    return frame.astype({"a_name_of_some_length_7": NOW["type"]})


@pytest.mark.parametrize("kind", CUTS)
def test_it_has_again_what_the_record_has(kind: str, tmp_path: Path) -> None:
    record, _ = CUTS[kind]
    path = RecordStore(str(tmp_path)).save(record)
    whole = completed(read_back(compact_receipt(record, path)))
    for field in ("inputs", "outputs", "code", "expectations", "timings", "variables", "error"):
        assert getattr(whole, field) == getattr(record, field), field
    assert (whole.dagster or {})["declared_inputs"] == (record.dagster or {})["declared_inputs"]
    assert "cut" not in (whole.model_extra or {})
    assert judge(compare_records(record, whole)).findings == ()


@pytest.mark.parametrize("why", ["no path", "gone", "elsewhere", "another table", "no record"])
def test_without_its_record_it_stays_as_it_is(why: str, tmp_path: Path) -> None:
    record = a_record(columns=3_000)
    path: str | None = RecordStore(str(tmp_path)).save(record)
    assert path is not None
    if why == "gone":
        Path(path).unlink()
    elif why == "elsewhere":
        path = str(shutil.copy(path, tmp_path / "r.json"))
    elif why == "another table":
        RecordStore(str(tmp_path)).save(a_record(columns=3_000, output_hash=HASH.replace("0", "1")))
    elif why == "no record":
        Path(path).write_text("{")
    receipt = read_back(compact_receipt(record, None if why == "no path" else path))
    assert completed(receipt) is receipt


@pytest.mark.parametrize("mirror", ["there", "gone"])
def test_the_sensor_names_the_column_of_a_wide_table(mirror: str, project: Project) -> None:
    watch = Watch(project, build_drift_sensor(AssetSelection.all()), [wide])
    watch.tick()
    for kind in ("float64", "int64"):
        NOW["type"] = kind
        watch.run()
    assert project.metadata("wide")["ubunye/receipt"]["cut"] == ["columns"]
    panel = project.metadata("wide")["ubunye/changes"]
    if mirror == "gone":
        shutil.rmtree(project.root)
    (told,) = [one.description for one in watch.tick().asset_events if "first record" not in one.description]
    assert "a_name_of_some_length_7" in panel
    assert ("a_name_of_some_length_7" in told) is (mirror == "there")


@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`")
def test_one_partition_among_several_takes_only_what_is_its_own(project: Project, tmp_path: Path) -> None:
    @asset(partitions_def=StaticPartitionsDefinition(["p", "q"]), backfill_policy=BackfillPolicy.single_run())
    @expect.row_count(min=2, severity="warn")
    def table() -> Any:
        columns = {f"a_name_of_some_length_{i}": 0 for i in range(3_000)}
        return {key: pd.DataFrame(columns, index=range(n)) for key, n in (("p", 3), ("q", 1))}

    manager = ParquetIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)
    tags = {"dagster/asset_partition_range_start": "p", "dagster/asset_partition_range_end": "q"}
    project.run([table], manager, tags=tags)
    receipt = project.receipt("table", "q")
    assert receipt.outputs[0].columns is None
    whole = completed(receipt)
    assert whole.outputs[0].columns is not None
    assert len(whole.outputs[0].columns) == 3_000
    assert whole.outputs[0].data_hash == receipt.outputs[0].data_hash
    assert [one["partition"] for one in whole.expectations] == ["q"]


def test_checks_find_results_that_were_cut(project: Project) -> None:
    rules = [expect.not_null("x", name=f"a_rule_with_a_long_name_{'x' * 150}_{i}") for i in range(300)]

    @asset(metadata=expect(*rules))
    def ruled() -> pd.DataFrame:
        return pd.DataFrame({"x": [1]})

    watch = Watch(project, build_drift_sensor(AssetSelection.all()), [ruled])
    watch.run()
    assert "expectations" in project.metadata("ruled")["ubunye/receipt"]["cut"]
    checks = build_expectation_checks([ruled])
    result = project.run([ruled, *checks], watch.manager, selection=AssetSelection.checks(*checks))
    assert {one.passed for one in result.get_asset_check_evaluations()} == {True}
