"""Tables that something else writes, observed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pandas as pd
import pytest
from dagster import AssetKey, Definitions, ExecuteInProcessResult, define_asset_job

from ubunye_orchestrate.dagster_io.drift import external
from ubunye_orchestrate.dagster_io.drift.external import build_observed_table
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

pytestmark = pytest.mark.filterwarnings("ignore:Function `multi_observable_source_asset` is")

FRAME = pd.DataFrame({"x": [1, 2, 3]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    folder.mkdir()
    FRAME.to_parquet(folder / "part-0.parquet")
    return folder


def observe(project: Project, table: Any) -> ExecuteInProcessResult:
    definitions = Definitions(assets=[table], jobs=[define_asset_job("look", [table])])
    job = definitions.resolve_job_def("look")
    return job.execute_in_process(instance=project.instance, raise_on_error=False)


def look(project: Project, table: Any) -> dict[str, Any]:
    assert observe(project, table).success
    event = project.instance.fetch_observations(AssetKey("outside"), limit=1).records[0]
    assert event.asset_observation is not None
    version = (event.asset_observation.tags or {}).get("dagster/data_version")
    shown = {name: value.value for name, value in event.asset_observation.metadata.items()}
    return {"version": version, **shown}


def test_its_data_version_is_the_hash_of_its_rows(project: Project, folder: Path) -> None:
    found = look(project, build_observed_table("outside", str(folder)))
    assert found["version"] == fingerprint(FRAME).data_hash
    assert found["dagster/row_count"] == 3


def test_it_is_hashed_again_only_when_its_files_changed(project: Project, folder: Path) -> None:
    table = build_observed_table("outside", str(folder))
    first = look(project, table)
    assert first["ubunye/rehashed"] is True
    again = look(project, table)
    assert (again["ubunye/rehashed"], again["version"]) == (False, first["version"])
    # Touched, with the same rows: looked at, and the same version.
    os.utime(folder / "part-0.parquet", (1, 1))
    touched = look(project, table)
    assert (touched["ubunye/rehashed"], touched["version"]) == (True, first["version"])
    FRAME.to_parquet(folder / "part-1.parquet")
    assert look(project, table)["version"] != first["version"]
    assert look(project, build_observed_table("outside", str(folder), trust_listing=False))["ubunye/rehashed"]


def test_what_was_written_to_while_it_was_read_is_read_again(
    project: Project, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed = external.fingerprint_dataset

    def meanwhile(location: str, **kwargs: Any) -> Any:
        found = hashed(location, **kwargs)
        FRAME.to_parquet(folder / "part-1.parquet")
        monkeypatch.undo()
        return found

    monkeypatch.setattr(external, "fingerprint_dataset", meanwhile)
    table = build_observed_table("outside", str(folder))
    assert "ubunye/listing" not in look(project, table)
    assert look(project, table)["ubunye/rehashed"] is True


def test_what_cannot_be_hashed_fails_the_observation(project: Project, tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    table = build_observed_table("outside", str(tmp_path / "broken.parquet"))
    assert not observe(project, table).success
    assert not project.instance.fetch_observations(AssetKey("outside"), limit=1).records


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="format='xlsx': expected one of 'parquet'"):
        build_observed_table("outside", "somewhere", format="xlsx")


def test_a_delta_table_is_hashed_again_only_when_its_version_changed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "table")
    deltalake.write_deltalake(place, FRAME)
    table = build_observed_table("outside", place, format="delta")
    first = look(project, table)
    assert (first["version"], first["ubunye/rehashed"]) == (fingerprint(FRAME).data_hash, True)
    assert first["ubunye/source_version"]["version"] == 0
    assert first["ubunye/source_version"]["operation"] == "WRITE"
    with monkeypatch.context() as patch:
        patch.setattr(external._DeltaTable, "hashed", None)
        again = look(project, table)
    assert (again["version"], again["ubunye/rehashed"]) == (first["version"], False)
    # Another version of the same rows: read once more, and the same data version.
    deltalake.write_deltalake(place, FRAME, mode="overwrite")
    same = look(project, table)
    assert (same["version"], same["ubunye/rehashed"]) == (first["version"], True)
    deltalake.write_deltalake(place, FRAME.iloc[1:], mode="overwrite")
    assert look(project, table)["version"] == fingerprint(FRAME.iloc[1:]).data_hash
    # Made anew, it is at version 0 once more.
    for _ in range(2):
        shutil.rmtree(place)
        deltalake.write_deltalake(place, FRAME.assign(x=7))
        assert look(project, table)["version"] == fingerprint(FRAME.assign(x=7)).data_hash


def test_a_delta_table_that_is_not_there_fails_the_observation(project: Project, tmp_path: Path) -> None:
    table = build_observed_table("outside", str(tmp_path / "nothing"), format="delta")
    assert not observe(project, table).success
