"""A small project in files, run by Dagster, of which a scenario changes one thing between two runs."""

from __future__ import annotations

import importlib.util
import linecache
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from dagster import AssetsDefinition, AssetSelection, Definitions, build_sensor_context

from ubunye_orchestrate.dagster_io.drift.sensors import build_drift_sensor
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.dagster_io.upstream import asset_events
from ubunye_orchestrate.records.environment import current_environment

from .conftest import Project

MODULE = "lab_flow"

FLOW = '''"""Assets of a small project."""
import os

import numpy as np
import pandas as pd
from dagster import (
    Config, StaticPartitionsDefinition, asset,
)

SOURCE = os.environ["LAB_SOURCE"]
RATE = 2


def scaled(frame: pd.DataFrame) -> pd.DataFrame:
    """Scale."""
    return frame.assign(y=frame.x * RATE)


def unused() -> int:
    return 1


@asset(group_name="sources")
def raw() -> pd.DataFrame:
    return pd.read_pickle(SOURCE + "/raw.pkl")


@asset(group_name="sources")
def rates() -> pd.DataFrame:
    return pd.read_pickle(SOURCE + "/rates.pkl")


@asset
def clean(raw: pd.DataFrame) -> pd.DataFrame:
    return scaled(raw)


@asset
def report(clean: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    return clean.merge(rates, how="left", on="s")
'''

RAW = pd.DataFrame({"x": [1, 2, 3], "s": ["a", "b", "c"]})
RATES = pd.DataFrame({"s": ["a", "b"], "rate": [1.5, 2.5]})


class Lab:
    """The project, its instance and its sensor."""

    def __init__(self, project: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = project
        self.monkeypatch = monkeypatch
        self.flow = folder / "flow" / f"{MODULE}.py"
        self.sources = folder / "sources"
        self.tables = folder / "tables"
        self.flow.parent.mkdir()
        self.sources.mkdir()
        (self.flow.parent / "pyproject.toml").write_text("")
        self.flow.write_text(FLOW)
        monkeypatch.setenv("LAB_SOURCE", str(self.sources))
        self.source("raw", RAW)
        self.source("rates", RATES)
        self.manager: Any = ParquetIOManager(base_path=str(self.tables), receipts=project.receipts)
        self.sensor = build_drift_sensor(AssetSelection.all())
        self.cursor: str | None = None

    def source(self, name: str, frame: pd.DataFrame) -> None:
        """Put what an asset reads from outside."""
        frame.to_pickle(self.sources / f"{name}.pkl")

    def edit(self, old: str, new: str) -> None:
        """Change the project's code."""
        text = self.flow.read_text()
        assert text.count(old) >= 1, f"{old!r} is not in the flow"
        self.flow.write_text(text.replace(old, new))

    def table(self, name: str) -> Path:
        """Return the file of a stored table."""
        return self.tables / f"{name}.parquet"

    def packages(self, **versions: str | None) -> None:
        """Install other packages, as far as a record sees it."""
        now = current_environment()
        moved = {k.replace("_", "-"): v for k, v in versions.items()}
        left = {k: v for k, v in {**now.packages, **moved}.items() if v is not None}
        newer = now.model_copy(update={"packages": left})
        self.monkeypatch.setattr(
            "ubunye_orchestrate.dagster_io.receipts.assembly.current_environment", lambda: newer
        )

    def receipts(self, **settings: Any) -> None:
        """Record otherwise from now on."""
        given = {"root": str(self.project.root), **settings}
        self.manager = ParquetIOManager(base_path=str(self.tables), receipts=Receipts(**given))

    def clock(self, seconds: float) -> None:
        """Set the clock of whoever writes records."""
        moved = SimpleNamespace(time=lambda: time.time() + seconds, perf_counter=time.perf_counter)
        for module in ("writer", "tasks"):
            self.monkeypatch.setattr(f"ubunye_orchestrate.dagster_io.receipts.{module}.time", moved)

    def assets(self) -> list[Any]:
        """Import the project as it is now."""
        linecache.clearcache()
        spec = importlib.util.spec_from_file_location(MODULE, self.flow)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        self.monkeypatch.setitem(sys.modules, MODULE, module)
        # Its compiled file would be taken for one of the same second and size.
        code = compile(self.flow.read_text(), str(self.flow), "exec", dont_inherit=True)
        exec(code, module.__dict__)
        names = ("raw", "rates", "clean", "report", "extra")
        found = [module.__dict__.get(name) for name in names]
        return [one for one in found if isinstance(one, AssetsDefinition)]

    def run(self, *only: str, **options: Any) -> Any:
        """Run the project, or some of its assets."""
        if only:
            options["selection"] = AssetSelection.assets(*only)
        return self.project.run(self.assets(), self.manager, raise_on_error=False, **options)

    def tick(self) -> Any:
        """Look at what was materialized since the last look; as in a database and as in any other storage."""
        definitions = Definitions(assets=self.assets(), resources={"io_manager": self.manager})

        def look() -> Any:
            context = build_sensor_context(
                instance=self.project.instance, cursor=self.cursor, definitions=definitions
            )
            return self.sensor.evaluate_tick(context)

        now = time.time()
        stopped = SimpleNamespace(time=lambda: now)
        self.monkeypatch.setattr("ubunye_orchestrate.dagster_io.drift.sensors.time", stopped)
        result = look()
        with self.monkeypatch.context() as patched:
            patched.setattr(asset_events, "_database_of", lambda instance: None)
            other = look()
        assert result == other, "what is read from the table and what Dagster unpacks are told apart"
        self.cursor = result.cursor
        return result


def kinds(evaluation: Any) -> set[str]:
    """Return what a check's result found."""
    return {finding["kind"] for finding in evaluation.metadata["ubunye/findings"].value}
