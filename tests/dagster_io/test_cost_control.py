"""Hashes that would cost too much, or were made before."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from dagster import FilesystemIOManager, StaticPartitionsDefinition, asset

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

FRAME = pd.DataFrame({"id": [1, 2, 3]})


@asset
def source() -> pd.DataFrame:
    return FRAME.copy()


@asset
def target(source: pd.DataFrame) -> pd.DataFrame:
    return source.head(2)


@asset
def streamed(source: pa.RecordBatchReader) -> pa.Table:
    return source.read_all().slice(0, 2)


def managers(project: Project, **settings: Any) -> dict[str, Any]:
    receipts = Receipts(root=str(project.root), **settings)
    folder = str(project.root / "files")
    return {
        "wrapped": with_receipts(FilesystemIOManager(base_dir=folder), receipts),
        "parquet": ParquetIOManager(base_path=folder, receipts=receipts),
    }


@pytest.mark.parametrize("manager", ["wrapped", "parquet"])
def test_a_table_over_budget_is_stored_without_a_hash(project: Project, manager: str) -> None:
    assets = [source, target] if manager == "wrapped" else [source, target, streamed]
    result = project.run(assets, managers(project, max_hash_rows=2)[manager])
    assert len(result.asset_value("source")) == 3
    (stored,) = project.receipt("source").outputs
    assert (stored.data_hash, stored.row_count) == (None, 3)
    assert stored.hash_error == "not hashed: over budget (more than 2 rows)"
    for name in [one.key.to_user_string() for one in assets[1:]]:
        (read,) = project.receipt(name).inputs
        assert (read.data_hash, read.hash_error) == (None, stored.hash_error)
        assert project.receipt(name).outputs[0].data_hash is not None


def test_the_hash_of_files_that_did_not_move_is_taken_from_their_receipt(project: Project) -> None:
    manager = managers(project, reuse_hashes=True)["parquet"]
    project.run([source, target], manager)
    stored, read = project.receipt("source").outputs[0], project.receipt("target").inputs[0]
    assert read.hash_reused_from == project.receipt("source").run_id
    assert (read.data_hash, read.row_count, read.lane_sums) == (stored.data_hash, 3, stored.lane_sums)
    assert read.columns == stored.columns
    assert read.hash_seconds == 0.0
    assert read.source_changed is False
    assert read.source_note == "not read for its hash: the files are those that its receipt names"


def test_files_that_somebody_else_wrote_are_hashed(project: Project) -> None:
    manager = managers(project, reuse_hashes=True)["parquet"]
    project.run([source], manager)
    FRAME.assign(id=[7, 8, 9]).to_parquet(project.root / "files" / "source.parquet")
    project.run([source, target], manager, selection=["target"])
    read = project.receipt("target").inputs[0]
    assert read.hash_reused_from is None
    assert read.data_hash == fingerprint(FRAME.assign(id=[7, 8, 9])).data_hash


@pytest.mark.parametrize("settings", [{}, {"reuse_hashes": True, "hash_inputs": False}])
def test_nothing_is_reused_unless_it_was_asked_for(project: Project, settings: dict[str, bool]) -> None:
    project.run([source, target], managers(project, reuse_hashes=True)["parquet"], selection=["source"])
    project.run([source, target], managers(project, **settings)["parquet"], selection=["target"])
    assert project.receipt("target").inputs[0].hash_reused_from is None


def test_partitions_reuse_each_their_own_and_one_without_a_receipt_none(project: Project) -> None:
    parts = StaticPartitionsDefinition(["p", "q"])

    @asset(partitions_def=parts)
    def pieces(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
        return pd.DataFrame({"id": [context.partition_key]})

    @asset
    def whole(pieces: dict[str, pd.DataFrame]) -> pd.DataFrame:
        return pd.concat(pieces.values())

    manager = managers(project, reuse_hashes=True)["parquet"]
    for key in ("p", "q"):
        project.run([pieces], manager, partition_key=key)
    project.run([pieces, whole], manager, selection=["whole"])
    read = project.receipt("whole").inputs[0]
    runs = [project.receipt("pieces", key).run_id for key in ("p", "q")]
    assert read.hash_reused_from == ", ".join(runs)
    assert read.data_hash == fingerprint(pd.DataFrame({"id": ["p", "q"]})).data_hash
    project.run([pieces], managers(project)["parquet"], partition_key="q")
    project.run([pieces, whole], manager, selection=["whole"])
    again = project.receipt("whole").inputs[0]
    assert (again.hash_reused_from, again.data_hash) == (None, read.data_hash)
