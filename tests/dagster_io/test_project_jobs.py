"""The op jobs of a whole project: by themselves, and behind its schedules and sensors."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from dagster import (
    Definitions,
    FilesystemIOManager,
    InMemoryIOManager,
    Out,
    job,
    op,
)

from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts

from .conftest import Project

FRAME = pd.DataFrame({"x": [1]})


@op
def one() -> pd.DataFrame:
    return FRAME


@op(out=Out(io_manager_key="other"))
def elsewhere() -> pd.DataFrame:
    return FRAME


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def formats(project: Project, job_name: str, node: str = "one") -> list[str | None]:
    records = project.mirrored(f"{job_name}__{node}__result")
    return [record.outputs[0].format for record in records]


class TestStorage:
    """Receipts change nothing about where a job's data goes."""

    def test_a_job_without_an_io_manager_keeps_to_the_projects(
        self, project: Project, tmp_path: Path
    ) -> None:
        @job
        def nightly() -> None:
            one()

        resources = {"io_manager": FilesystemIOManager(base_dir=str(tmp_path / "stored"))}
        defs = with_receipts(Definitions(jobs=[nightly], resources=resources), project.receipts)
        defs.resolve_job_def("nightly").execute_in_process(instance=project.instance)
        assert files_in(tmp_path / "stored") == ["result"]
        assert formats(project, "nightly") == ["FilesystemIOManager"]

    def test_one_that_brings_another_io_manager_keeps_to_both(self, project: Project, tmp_path: Path) -> None:
        @job(resource_defs={"other": FilesystemIOManager(base_dir=str(tmp_path / "other"))})
        def nightly() -> None:
            one()
            elsewhere()

        resources = {"io_manager": FilesystemIOManager(base_dir=str(tmp_path / "stored"))}
        defs = with_receipts(Definitions(jobs=[nightly], resources=resources), project.receipts)
        defs.resolve_job_def("nightly").execute_in_process(instance=project.instance)
        assert files_in(tmp_path / "stored") == files_in(tmp_path / "other") == ["result"]
        assert formats(project, "nightly") == formats(project, "nightly", "elsewhere")

    def test_its_own_wins_over_the_projects(self, project: Project, tmp_path: Path) -> None:
        @job(resource_defs={"io_manager": FilesystemIOManager(base_dir=str(tmp_path / "own"))})
        def nightly() -> None:
            one()

        resources = {"io_manager": InMemoryIOManager()}
        defs = with_receipts(Definitions(jobs=[nightly], resources=resources), project.receipts)
        defs.resolve_job_def("nightly").execute_in_process(instance=project.instance)
        assert files_in(tmp_path / "own") == ["result"]
        assert formats(project, "nightly") == ["FilesystemIOManager"]
