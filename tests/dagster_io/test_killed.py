"""Runs that were killed: a real process that kills itself, and the sensor that closes its records."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dagster import (
    DagsterRunStatus,
    Definitions,
    InMemoryIOManager,
    asset,
    build_run_status_sensor_context,
)

from ubunye_orchestrate.dagster_io.drift.killed import build_killed_runs_sensor, close_killed_run
from ubunye_orchestrate.dagster_io.receipts import closing
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.errors import ConfigurationError

from . import killed_job
from .conftest import Project


@pytest.mark.filterwarnings("ignore:Parameter `repository_def` of function")
def test_a_run_whose_process_was_killed(project_on_disk: Project) -> None:
    project = project_on_disk
    instance = project.instance
    home = Path(instance.root_directory)
    done = subprocess.run(
        [sys.executable, killed_job.__file__, str(home), str(project.root)], capture_output=True, check=False
    )
    assert done.returncode == -9, done.stderr.decode()
    (run,) = instance.get_runs()
    # As Dagster's run monitoring ends it.
    instance.report_run_failed(run, "the run worker is gone")
    definitions = Definitions(assets=[killed_job.raw, killed_job.two])
    event = instance.all_logs(run.run_id)[-1].dagster_event
    assert event is not None
    failed = instance.get_run_by_id(run.run_id)
    assert failed is not None

    def tick() -> str:
        context = build_run_status_sensor_context(
            sensor_name="close_killed_runs",
            dagster_event=event,
            dagster_instance=instance,
            dagster_run=failed,
            repository_def=definitions.get_repository_def(),
        )
        return str(build_killed_runs_sensor(project.receipts)(context).skip_message)

    assert tick() == f"Run {run.run_id} was ended from outside: closed the records of second."
    (record,) = project.mirrored("second", "marts")
    assert record.status == "error"
    assert record.dagster is not None
    assert record.dagster["step_status"] == "killed"
    assert record.error == (
        "killed: the step began and never ended; its run was ended: the run worker is gone"
    )
    assert record.outputs[0].data_hash is None
    # What was stored before stays what it is, and says how its step ended.
    (first,) = project.mirrored("first", "marts")
    assert first.status == "success"
    assert (first.dagster or {})["step_status"] == "killed"
    assert [one.description for one in project.observations("second")] == [
        f"second was not materialized: {record.error}"
    ]
    (raw,) = project.mirrored("raw", "sources")
    assert raw.dagster is not None
    assert raw.dagster["step_status"] is None
    assert tick() == f"Run {run.run_id} left the records that it should."
    assert len(project.observations("second")) == 1


@asset
def broken() -> pd.DataFrame:
    raise ValueError("no")


def test_a_run_that_closed_itself_is_left_alone(project: Project) -> None:
    manager = with_receipts(InMemoryIOManager(), project.receipts)
    result = project.run([broken], manager, raise_on_error=False)
    run = project.instance.get_run_by_id(result.run_id)
    assert run is not None
    assert close_killed_run(project.instance, run, project.receipts.settings(), print) == []
    (record,) = project.mirrored("broken")
    assert (record.dagster or {})["step_status"] == "error"


def test_a_step_that_failed_and_could_not_write_leaves_its_error(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dead:
        dead.setattr(closing, "close_steps", lambda *args: None)
        manager = with_receipts(InMemoryIOManager(), project.receipts)
        result = project.run([broken], manager, raise_on_error=False)
    assert not project.root.exists()
    run = project.instance.get_run_by_id(result.run_id)
    assert run is not None
    assert close_killed_run(project.instance, run, project.receipts.settings(), print) == ["broken"]
    (record,) = project.mirrored("broken")
    assert (record.error, (record.dagster or {})["step_status"]) == ("ValueError: no", "error")


@pytest.mark.parametrize("status", [DagsterRunStatus.SUCCESS, DagsterRunStatus.STARTED])
def test_only_runs_that_did_not_succeed(status: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected one of FAILURE, CANCELED"):
        build_killed_runs_sensor(run_status=status)
