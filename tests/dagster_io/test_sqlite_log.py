"""The event log in SQLite files: open between two questions in each process, closed with the run."""

from __future__ import annotations

import os
import sqlite3
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
from dagster import AssetKey, DagsterInstance, Definitions, InMemoryIOManager, asset

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.upstream import sqlite_log

from .conftest import Project


@asset
def one() -> int:
    return 1


def opened(instance: DagsterInstance) -> dict[int, sqlite3.Connection]:
    storage = sqlite_log.sqlite_log_of(instance)
    assert storage is not None
    return sqlite_log._opened.get(storage, {})


def test_it_is_opened_once_and_again_when_it_was_closed(project_on_disk: Project) -> None:
    here = project_on_disk.instance
    upstream.close_log(here)  # nothing to close
    upstream.open_log(here)
    first = opened(here)[os.getpid()]
    project_on_disk.run([one], InMemoryIOManager())
    assert upstream.newest_of_asset(here, AssetKey("one")) != (None, 0)
    assert opened(here) == {os.getpid(): first}
    upstream.close_log(here)
    assert opened(here) == {}
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        first.execute("SELECT 1")
    assert upstream.newest_of_asset(here, AssetKey("one")) != (None, 0)
    upstream.close_log(here)


def test_nothing_is_written_by_it(project_on_disk: Project) -> None:
    storage = sqlite_log.sqlite_log_of(project_on_disk.instance)
    assert storage is not None
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        sqlite_log.ask_sqlite_log(storage, "DELETE FROM event_logs", {})
    upstream.close_log(project_on_disk.instance)


def test_a_forked_process_opens_its_own_and_leaves_the_other(
    project_on_disk: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = project_on_disk.instance
    upstream.newest_of_asset(here, AssetKey("one"))
    parent = dict(opened(here))
    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: -1)
        assert upstream.newest_of_asset(here, AssetKey("one")) == (None, 0)
        assert set(opened(here)) == {-1, *parent}
        upstream.close_log(here)
    assert opened(here) == parent
    assert parent[os.getpid()].execute("SELECT 1").fetchall() == [(1,)]
    upstream.close_log(here)


def test_steps_on_other_threads_ask_it_too(project_on_disk: Project) -> None:
    here = project_on_disk.instance
    project_on_disk.run([one], InMemoryIOManager())
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: upstream.newest_of_asset(here, AssetKey("one")), range(40)))
    assert len(set(map(str, found))) == 1
    assert len(opened(here)) == 1
    upstream.close_log(here)


def test_a_log_that_is_not_there_is_not_made(
    project_on_disk: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = project_on_disk.instance
    storage = sqlite_log.sqlite_log_of(here)
    monkeypatch.setattr(storage, "path_for_shard", lambda shard: str(tmp_path / "gone.db"))
    assert upstream.newest_of_asset(here, AssetKey("one")) is None
    assert not (tmp_path / "gone.db").exists()


@pytest.mark.parametrize("fails", [False, True])
def test_it_is_open_during_a_run_and_not_after_it(fails: bool, project_on_disk: Project) -> None:
    @asset
    def table() -> pd.DataFrame:
        return pd.DataFrame({"id": [1]})

    @asset(deps=[table])
    def second() -> None:
        if fails:
            raise ValueError("the run fails")

    here, run_id = project_on_disk.instance, str(uuid.uuid4())
    seen: list[bool] = []
    upstream.on_events(
        here, run_id, lambda event: seen.append(bool(opened(here))) if event.step_key else None
    )
    project = Definitions(
        assets=[table, second], resources={"io_manager": with_receipts(InMemoryIOManager())}
    )
    job = project.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=here, run_id=run_id, raise_on_error=False).success is not fails
    assert seen
    assert any(seen)
    assert opened(here) == {}
