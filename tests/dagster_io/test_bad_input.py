"""What users do that nobody planned for: it works, or is refused with the line to change."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from dagster import (
    AssetKey,
    AssetOut,
    AssetSpec,
    Definitions,
    FilesystemIOManager,
    InMemoryIOManager,
    MetadataValue,
    Output,
    asset,
    multi_asset,
)

from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.declare import expect

from .conftest import Project

FRAME = pd.DataFrame({"id": [1, 2, 3]})

KEYS = {
    "slashes": ["with/slash", "x"],
    "dots": ["a.b", "..", "c.json"],
    "spaces": ["two words", " x "],
    "unicode": ["größe", "数据", "🦆"],
    "long": ["x" * 300],
    "long in Unicode": ["ü" * 150, "y" * 200],
    "underscores": ["a__b", "__c"],
    "reserved": ["con", "nul.txt"],
    "signs": ["a:b*c?", 'q"<>|', "back\\slash"],
    "case": ["A", "a"],
}


@pytest.mark.parametrize("manager", ["wrapped", "parquet"])
@pytest.mark.parametrize("parts", KEYS.values(), ids=list(KEYS))
def test_whatever_an_asset_is_called_it_has_a_receipt_and_a_file_of_its_own(
    project: Project, parts: list[str], manager: str
) -> None:
    key = AssetKey(parts)

    @multi_asset(outs={"it": AssetOut(key=key)})
    def made() -> pd.DataFrame:
        return FRAME

    folder = str(project.root / "files")
    managers = {
        # Dagster's own file system one cannot store every name; one in memory can.
        "wrapped": with_receipts(InMemoryIOManager(), project.receipts),
        "parquet": ParquetIOManager(base_path=folder, receipts=project.receipts),
    }
    assert project.run([made], managers[manager]).success
    (task,) = project.store.tasks()
    (record,) = project.store.list_runs(*task)
    assert record.dagster is not None
    assert record.dagster["asset_key"] == parts
    assert record.dagster["step_status"] == "success"
    assert record.outputs[0].name == "/".join(parts)
    inside = [path for path in project.root.rglob("*") if path.is_file()]
    assert len(inside) == (1 if manager == "wrapped" else 2)


def test_one_io_manager_under_two_keys_leaves_one_record_for_each_asset(project: Project) -> None:
    @asset(io_manager_key="a")
    def first() -> pd.DataFrame:
        return FRAME

    @asset(io_manager_key="b")
    def second(first: pd.DataFrame) -> pd.DataFrame:
        return first

    shared = FilesystemIOManager(base_dir=str(project.root / "files"))
    defs = with_receipts(
        Definitions(assets=[first, second], resources={"a": shared, "b": shared}), project.receipts
    )
    job = defs.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=project.instance).success
    for name in ("first", "second"):
        (record,) = project.mirrored(name)
        assert record.dagster is not None
        assert record.dagster["step_status"] == "success"
        assert len(record.outputs) == 1
    assert len(project.mirrored("second")[0].inputs) == 1


def test_a_multi_asset_that_yields_only_some_outputs_has_records_of_those(project: Project) -> None:
    @multi_asset(outs={"a": AssetOut(is_required=False), "b": AssetOut(is_required=False)})
    @expect.row_count(min=1)
    def some() -> Any:
        yield Output(FRAME, "a")

    manager = with_receipts(FilesystemIOManager(base_dir=str(project.root / "files")), project.receipts)
    assert project.run([some], manager).success
    assert [task[-1] for task in project.store.tasks()] == ["a"]
    assert [one["output"] for one in project.mirrored("a")[0].expectations] == ["a"]


def test_the_users_metadata_wins_and_ours_is_renamed(project: Project) -> None:
    @asset
    def table():  # type: ignore[no-untyped-def]
        return Output(FRAME, metadata={"ubunye/data_hash": "mine", "dagster/row_count": 7})

    manager = with_receipts(FilesystemIOManager(base_dir=str(project.root / "files")), project.receipts)
    assert project.run([table], manager).success
    metadata = project.metadata("table")
    assert (metadata["ubunye/data_hash"], metadata["dagster/row_count"]) == ("mine", 7)
    assert metadata["ubunye/data_hash (receipt)"] == project.receipt("table").outputs[0].data_hash


def test_rules_on_the_asset_instead_of_its_function_are_refused_with_the_line_to_write() -> None:
    @asset
    def table() -> pd.DataFrame:
        return FRAME

    with pytest.raises(Exception, match=r"write @asset above @expect.not_null\(…\)"):
        expect.not_null("id")(table)


def test_rules_in_metadata_stand_beside_the_users_own(project: Project) -> None:
    @asset(metadata={**expect(expect.not_null("id")), "owner": MetadataValue.text("me")})
    def table() -> pd.DataFrame:
        return FRAME

    manager = with_receipts(FilesystemIOManager(base_dir=str(project.root / "files")), project.receipts)
    assert project.run([table], manager).success
    assert project.receipt("table").expectations[0]["passed"]


_POLICY = 'metadata "ubunye/policy" of asset (table|outside): '


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"ubunye/expectations": [{"not_null": "id"}]}, r'metadata=expect\(expect.not_null\("id"\)\)'),
        ({"ubunye/policy": {"max_row_decreese": 0.1}}, "max_row_decreese"),
        (
            {"ubunye/policy": {"max_row_decrease": "x"}},
            _POLICY + "max_row_decrease is 'x'; expected a",
        ),
        ({"ubunye/policy": {"min_rows": 1.5}}, _POLICY + "min_rows is 1.5; expected a whole number"),
        ({"ubunye/policy": {"severities": ["warn"]}}, _POLICY + "severities is .*; expected a table"),
        ({"ubunye/policy": {"ignore_packages": 3}}, _POLICY + "ignore_packages is 3; expected a list"),
        (
            {"ubunye/policy": {"deterministic": "no"}},
            _POLICY + "deterministic is 'no'; expected true",
        ),
        ({"ubunye/policy": {"max_rows": -1}}, _POLICY + r"DriftPolicy\(max_rows=-1\): a bound is 0 or more"),
        ({"ubunye/policy": {1: 2}}, _POLICY.removesuffix(": ") + " has 1; expected one of severities"),
        ({"ubunye/policy": "strict"}, _POLICY.removesuffix(": ") + " is str; expected a mapping"),
    ],
)
def test_metadata_that_no_run_could_use_is_refused_when_the_project_is_wrapped(
    metadata: dict[str, Any], says: str
) -> None:
    @asset(metadata=metadata)
    def table() -> pd.DataFrame:
        return FRAME

    with pytest.raises(ConfigurationError, match=says):
        with_receipts(Definitions(assets=[table]))
    with pytest.raises(ConfigurationError, match=says):
        with_receipts(Definitions(assets=[AssetSpec("outside", metadata=metadata)]))
