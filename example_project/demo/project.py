"""A copy of the example's pipeline in a folder of its own, which the demo may change and run again."""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from example_project.assets import sources
from ubunye_orchestrate import ParquetIOManager, Receipts, build_drift_sensor

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PACKAGE", "USECASE", "DemoProject", "NotADemoFolderError"]

PACKAGE = "flights"
"""Name of the copied package, so that its functions go by ``flights.marts.is_late``."""

USECASE = "new_york_2013"
"""First part of every record's path in the mirror."""

# Nothing is sent anywhere, no newsletter is offered, and what the demo prints is not captured by Dagster.
_DAGSTER_YAML = """\
telemetry:
  enabled: false
nux:
  enabled: false
compute_logs:
  module: dagster.core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""

OnStored = Callable[[dg.AssetMaterialization], None]
"""Called with each materialization as soon as it is stored."""

_MARKER = ".ubunye-demo"


class NotADemoFolderError(Exception):
    """The folder holds files that no earlier demo made, so it is not emptied."""


class DemoProject:
    """The pipeline's source, its deliveries, its Dagster instance and its receipts, under one folder.

    Made afresh every time: what an earlier demo left in the folder is removed first.
    """

    def __init__(self, folder: Path, *, every: int = 1) -> None:
        """Lay the project out in ``folder``; of the flights, take every ``every``-th row only.

        Raises:
            NotADemoFolderError: the folder is in use for something else.
        """
        self.folder = folder.resolve()
        self.source = self.folder / "project" / PACKAGE
        self.deliveries = self.folder / "deliveries"
        home = self.folder / "dagster_home"
        _empty(self.folder)
        shutil.copytree(
            Path(sources.__file__).parent, self.source, ignore=shutil.ignore_patterns("__pycache__")
        )
        self.deliveries.mkdir()
        home.mkdir()
        (home / "dagster.yaml").write_text(_DAGSTER_YAML)
        self.instance = dg.DagsterInstance.from_config(str(home))
        self.sensor = build_drift_sensor(dg.AssetSelection.all())
        if every > 1:
            header, *rows = sources.published_bytes("flights").splitlines(keepends=True)
            (self.deliveries / "flights.csv").write_bytes(header + b"".join(rows[::every]))

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within, the copy can be imported and reads its deliveries; afterwards the process is as before."""
        before = os.environ.get(sources.DELIVERIES_VARIABLE)
        os.environ[sources.DELIVERIES_VARIABLE] = str(self.deliveries)
        sys.path.insert(0, str(self.source.parent))
        try:
            yield
        finally:
            _forget_modules()
            sys.path.remove(str(self.source.parent))
            if before is None:
                del os.environ[sources.DELIVERIES_VARIABLE]
            else:
                os.environ[sources.DELIVERIES_VARIABLE] = before
            self.instance.dispose()

    def deliver(self, table: str, old: str, new: str) -> None:
        """Deliver a table again in which the one place that reads ``old`` reads ``new``."""
        delivery = self.deliveries / f"{table}.csv"
        current = delivery.read_bytes() if delivery.exists() else sources.published_bytes(table)
        delivery.write_bytes(_replace_once(current.decode(), old, new, where=delivery.name).encode())

    def edit(self, module: str, old: str, new: str) -> None:
        """Edit the pipeline's source: in ``module``, the one place that reads ``old`` reads ``new``."""
        file = self.source / f"{module}.py"
        file.write_text(_replace_once(file.read_text(), old, new, where=file.name))

    def definitions(self, on_stored: OnStored) -> dg.Definitions:
        """Import the pipeline as its source stands now, and wire it as ``definitions.py`` does.

        ``on_stored`` is called while a run goes on; nothing else is logged but warnings and errors.
        """
        _forget_modules()
        tables = dg.load_assets_from_package_module(importlib.import_module(PACKAGE))
        receipts = Receipts(root=str(self.folder), usecase=USECASE)
        return dg.Definitions(
            assets=tables,
            resources={
                "io_manager": ParquetIOManager(base_path=str(self.folder / "data"), receipts=receipts)
            },
            sensors=[self.sensor],
            jobs=[dg.define_asset_job("everything")],
            loggers={"console": _quiet_logger(on_stored)},
        )

    def run(self, definitions: dg.Definitions, months: Sequence[str]) -> Mapping[str, str]:
        """Materialize everything in this process: all tables and the report of the first month, then the
        report of each further month. Return the run that made each report, by month.
        """
        job = definitions.resolve_job_def("everything")
        run_ids = {}
        for number, month in enumerate(months):
            result = job.execute_in_process(
                instance=self.instance,
                partition_key=month,
                asset_selection=None if number == 0 else [dg.AssetKey("carrier_report")],
                run_config={"loggers": {"console": {}}},
            )
            run_ids[month] = result.run_id
        return run_ids


def _empty(folder: Path) -> None:
    """Remove what an earlier demo left, and mark the folder as a demo's."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / _MARKER).exists():
            raise NotADemoFolderError(
                f"{folder} holds files that the demo did not make; name a folder that is empty or new"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARKER).touch()


def _replace_once(text: str, old: str, new: str, *, where: str) -> str:
    if text.count(old) != 1:
        raise ValueError(f"{where} holds {old!r} {text.count(old)} times, expected once")
    return text.replace(old, new)


def _forget_modules() -> None:
    """Make the next import of the copied package read its source again."""
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def _quiet_logger(on_stored: OnStored) -> dg.LoggerDefinition:
    class Materializations(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            event = getattr(record, "dagster_meta", {}).get("dagster_event")
            if event is None:
                if record.levelno >= logging.WARNING:
                    print(record.getMessage(), file=sys.stderr)
            elif event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
                on_stored(event.step_materialization_data.materialization)

    def console(_context: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("demo")
        logger.addHandler(Materializations())
        return logger

    return dg.LoggerDefinition(logger_fn=console)
