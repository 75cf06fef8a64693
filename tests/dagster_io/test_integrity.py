"""The check ``integrity``: what is stored now against the last receipt, by real files and real runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster import (
    AssetCheckSeverity,
    AssetMaterialization,
    AssetSelection,
    DynamicPartitionsDefinition,
    FilesystemIOManager,
    IOManager,
    StaticPartitionsDefinition,
    asset,
)

from ubunye_orchestrate.dagster_io.drift import integrity
from ubunye_orchestrate.dagster_io.drift.integrity import build_integrity_checks
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager

from .conftest import Project

FRAME = pd.DataFrame(
    {
        "n": [1, None, 3],
        "at": pd.to_datetime(["2024-01-01"] * 3),
        "s": ["a", None, "c"],
        "x": [0.5, np.nan, 1],
    }
)


@asset
def raw() -> pd.DataFrame:
    return FRAME


@asset(partitions_def=StaticPartitionsDefinition(["eu", "us"]))
def orders() -> pd.DataFrame:
    return FRAME


class Place:
    """An IO manager, where its files are, and the checks alone."""

    def __init__(self, project: Project, manager: Any, files: Path) -> None:
        self.project, self.manager, self.files = project, manager, files

    def store(self, one: Any, **kwargs: Any) -> None:
        self.project.run([one], self.manager, **kwargs)

    def check(self, one: Any, **kwargs: Any) -> Any:
        checks = build_integrity_checks([one], **kwargs)
        only = AssetSelection.checks(*(key for check in checks for key in check.check_keys))
        result = self.project.run([one, *checks], self.manager, selection=only)
        (evaluation,) = result.get_asset_check_evaluations()
        return evaluation


@pytest.fixture
def parquet(project: Project, tmp_path: Path) -> Place:
    files = tmp_path / "files"
    return Place(project, ParquetIOManager(base_path=str(files), receipts=project.receipts), files)


@pytest.fixture
def pickled(project: Project, tmp_path: Path) -> Place:
    files = tmp_path / "pickles"
    return Place(project, with_receipts(FilesystemIOManager(base_dir=str(files)), project.receipts), files)


@pytest.fixture(params=["parquet", "pickled"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found


def test_what_is_stored_as_it_was_passes(place: Place) -> None:
    place.store(raw)
    found = place.check(raw)
    assert found.passed, found.description
    assert found.description == "stored as its receipt says"
    assert len(place.project.events("raw")) == 1


def test_a_table_that_was_changed_behind_dagsters_back(parquet: Place) -> None:
    parquet.store(raw)
    (file,) = parquet.files.rglob("*.parquet")
    table = pq.read_table(file)
    pq.write_table(table.slice(0, 2), file)
    found = parquet.check(raw)
    assert not found.passed
    assert found.severity is AssetCheckSeverity.ERROR
    assert found.description == "raw is not what its receipt says (3 rows in the receipt, 2 stored)"
    assert "| rows of raw | 3 | 2 |" in found.metadata["ubunye/changes"].value
    # One value, all rows there.
    changed = table.set_column(0, "n", pa.array([1.0, None, 4.0]))
    pq.write_table(changed, file)
    assert not parquet.check(raw).passed
    pq.write_table(table, file)
    assert parquet.check(raw).passed


@pytest.mark.parametrize("damage", ["truncated", "empty", "gone"])
def test_a_file_that_cannot_be_read_is_an_error(damage: str, place: Place) -> None:
    place.store(raw)
    (file,) = [one for one in place.files.rglob("*") if one.is_file()]
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(b"" if damage == "empty" else file.read_bytes()[:-20])
    found = place.check(raw)
    assert not found.passed
    assert found.severity is AssetCheckSeverity.ERROR
    assert found.description.startswith("raw cannot be loaded: ")


def test_each_partition_is_held_against_its_own_receipt(place: Place) -> None:
    for partition in ("eu", "us"):
        place.store(orders, partition_key=partition)
    assert place.check(orders).description == "stored as its 2 receipts say"
    files = sorted(one for one in place.files.rglob("*") if one.is_file())
    files[1].write_bytes(files[1].read_bytes()[:10])
    found = place.check(orders)
    assert not found.passed
    assert found.description.startswith("orders[us] cannot be loaded: ")
    assert found.metadata["ubunye/unchanged"].value == 1


def test_a_partition_that_was_deleted_is_not_looked_for(place: Place) -> None:
    instance = place.project.instance
    customers = DynamicPartitionsDefinition(name="customers")
    instance.add_dynamic_partitions("customers", ["ada", "bob"])

    @asset(partitions_def=customers)
    def bills() -> pd.DataFrame:
        return FRAME

    for partition in ("ada", "bob"):
        place.store(bills, partition_key=partition)
    instance.delete_dynamic_partition("customers", "bob")
    for file in place.files.rglob("*bob*"):
        if file.is_file():
            file.unlink()
    found = place.check(bills)
    assert (found.passed, found.description) == (True, "stored as its receipt says")


class TestNotJudged:
    def test_what_was_never_materialized(self, parquet: Place) -> None:
        found = parquet.check(raw)
        assert (found.passed, found.severity) == (False, AssetCheckSeverity.WARN)
        assert found.description == "not judged: it was never materialized"

    def test_without_a_receipt(self, parquet: Place) -> None:
        parquet.project.instance.report_runless_asset_event(AssetMaterialization(asset_key="raw"))
        found = parquet.check(raw)
        assert (found.passed, found.severity) == (False, AssetCheckSeverity.WARN)
        assert found.description.startswith("not judged: raw: its materialization has no receipt")

    def test_rows_that_the_io_manager_may_have_changed(self, project: Project, tmp_path: Path) -> None:
        class Csv(FilesystemIOManager):
            """Loses types on the way, as text files do."""

            def create_io_manager(self, context: Any) -> Any:
                return _CsvFile(tmp_path / "raw.csv")

        place = Place(project, with_receipts(Csv(), project.receipts), tmp_path)
        place.store(raw)
        found = place.check(raw)
        assert (found.passed, found.severity) == (False, AssetCheckSeverity.WARN)
        assert "scope passed_rows" in found.description
        assert "only equal ones can be judged" in found.description

    def test_what_is_stored_while_it_is_read(self, parquet: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        parquet.store(raw)
        hashed = integrity.fingerprint

        def meanwhile(value: Any, **kwargs: Any) -> Any:
            monkeypatch.undo()
            parquet.store(raw)
            return hashed(value.slice(0, 1), **kwargs)

        monkeypatch.setattr(integrity, "fingerprint", meanwhile)
        assert parquet.check(raw).description == "not judged: raw: it was materialized while it was read"


class _CsvFile(IOManager):
    def __init__(self, path: Path) -> None:
        self.path = path

    def handle_output(self, context: Any, obj: pd.DataFrame) -> None:
        obj.to_csv(self.path, index=False)

    def load_input(self, context: Any) -> pd.DataFrame:
        return pd.read_csv(self.path)
