"""Real Dagster instances (SQLite in a folder of the test), and what reads receipts back from them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dagster import (
    AssetKey,
    AssetRecordsFilter,
    DagsterInstance,
    EventLogRecord,
    ExecuteInProcessResult,
    materialize,
)

from ubunye_orchestrate.dagster_io.receipts.baseline import receipt_of_event
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.records.model import RunRecord
from ubunye_orchestrate.records.store import RecordStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Project:
    """One instance, one mirror, and short ways to ask what was left in them."""

    def __init__(self, instance: DagsterInstance, root: Path) -> None:
        self.instance = instance
        self.root = root
        self.store = RecordStore(str(root))

    @property
    def receipts(self) -> Receipts:
        return Receipts(root=str(self.root))

    def run(self, assets: Any, io_manager: Any, **kwargs: Any) -> ExecuteInProcessResult:
        resources = {"io_manager": io_manager, **kwargs.pop("resources", {})}
        return materialize(assets, instance=self.instance, resources=resources, **kwargs)

    def events(self, key: str, partition: str | None = None, limit: int = 100) -> list[EventLogRecord]:
        wanted = AssetRecordsFilter(
            asset_key=AssetKey(key.split("/")), asset_partitions=None if partition is None else [partition]
        )
        return list(self.instance.fetch_materializations(wanted, limit=limit).records)

    def event(self, key: str, partition: str | None = None) -> EventLogRecord:
        return self.events(key, partition, limit=1)[0]

    def metadata(self, key: str, partition: str | None = None) -> dict[str, Any]:
        materialization = self.event(key, partition).asset_materialization
        assert materialization is not None
        return {name: value.value for name, value in materialization.metadata.items()}

    def tags(self, key: str, partition: str | None = None) -> dict[str, str]:
        materialization = self.event(key, partition).asset_materialization
        assert materialization is not None
        return dict(materialization.tags or {})

    def receipt(self, key: str, partition: str | None = None) -> RunRecord:
        record = receipt_of_event(self.event(key, partition))
        assert record is not None, f"{key} has no receipt"
        return record

    def mirrored(self, task: str, package: str = "default", usecase: str = "default") -> list[RunRecord]:
        return self.store.list_runs(usecase, package, task, limit=100)

    def observations(self, key: str) -> list[Any]:
        records = self.instance.fetch_observations(AssetKey(key.split("/")), limit=100).records
        return [record.asset_observation for record in records]

    def log(self, result: ExecuteInProcessResult) -> str:
        return "\n".join(entry.user_message for entry in self.instance.all_logs(result.run_id))


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "yes")
    for name in ("UBUNYE_ROOT", "UBUNYE_USECASE", "UBUNYE_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """An instance whose SQLite databases live in memory: a tenth of the time."""
    with DagsterInstance.ephemeral(tempdir=str(tmp_path)) as instance:
        yield Project(instance, tmp_path / "mirror")


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose databases have their tables: making them takes a second."""
    home = tmp_path_factory.mktemp("dagster") / "home"
    home.mkdir()
    with DagsterInstance.local_temp(str(home)) as instance:
        instance.get_runs_count()
    return home


# Dagster follows a step's output with processes of its own, which hang where two runs share a process.
NO_OUTPUT_FOLLOWED = {
    "compute_logs": {
        "module": "dagster.core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}


@pytest.fixture
def project_on_disk(empty_home: Path, tmp_path: Path) -> Iterator[Project]:
    """An instance as users have it: SQLite files, one of events for each run."""
    home = tmp_path / "dagster_home"
    shutil.copytree(empty_home, home)
    with DagsterInstance.local_temp(str(home), overrides=NO_OUTPUT_FOLLOWED) as instance:
        yield Project(instance, tmp_path / "mirror")


@pytest.fixture(scope="session")
def spark(spark: SparkSession) -> SparkSession:
    """A session of the tests' Spark that compiles no queries: each runs once, on a few rows."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session
