"""Content hashes and run records for every Dagster asset.

Everything public is importable from here and loaded when it is first used: importing the package loads no
Dagster, pandas, pyarrow or pyspark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ubunye_orchestrate.compare.comparison import compare_records as compare_records
    from ubunye_orchestrate.compare.drift import judge as judge
    from ubunye_orchestrate.compare.policy import DriftPolicy as DriftPolicy
    from ubunye_orchestrate.dagster_io.drift.automation import on_changed_data as on_changed_data
    from ubunye_orchestrate.dagster_io.drift.checks import build_drift_checks as build_drift_checks
    from ubunye_orchestrate.dagster_io.drift.external import build_observed_table as build_observed_table
    from ubunye_orchestrate.dagster_io.drift.integrity import build_integrity_checks as build_integrity_checks
    from ubunye_orchestrate.dagster_io.drift.judging import DriftReport as DriftReport
    from ubunye_orchestrate.dagster_io.drift.killed import (
        build_killed_runs_sensor as build_killed_runs_sensor,
    )
    from ubunye_orchestrate.dagster_io.drift.schedules import build_drift_schedule as build_drift_schedule
    from ubunye_orchestrate.dagster_io.drift.sensors import build_drift_sensor as build_drift_sensor
    from ubunye_orchestrate.dagster_io.receipts.expectation_checks import (
        build_expectation_checks as build_expectation_checks,
    )
    from ubunye_orchestrate.dagster_io.receipts.resource import Receipts as Receipts
    from ubunye_orchestrate.dagster_io.receipts.wrapper import ReceiptsMixin as ReceiptsMixin
    from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts as with_receipts
    from ubunye_orchestrate.dagster_io.storage.io_managers import DeltaIOManager as DeltaIOManager
    from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager as ParquetIOManager
    from ubunye_orchestrate.dagster_io.storage.spark_io_manager import SparkIOManager as SparkIOManager
    from ubunye_orchestrate.dagster_io.storage.spark_session import SparkResource as SparkResource
    from ubunye_orchestrate.errors import UbunyeError as UbunyeError
    from ubunye_orchestrate.expectations.declare import expect as expect
    from ubunye_orchestrate.hashing.api import fingerprint as fingerprint
    from ubunye_orchestrate.hashing.datasets import fingerprint_dataset as fingerprint_dataset
    from ubunye_orchestrate.hashing.difference import Difference as Difference
    from ubunye_orchestrate.hashing.difference import explain_difference as explain_difference
    from ubunye_orchestrate.hashing.fingerprint import Fingerprint as Fingerprint
    from ubunye_orchestrate.records.model import RunRecord as RunRecord
    from ubunye_orchestrate.records.model import StepRecord as StepRecord
    from ubunye_orchestrate.records.recorder import LineageRecorder as LineageRecorder
    from ubunye_orchestrate.records.store import RecordStore as RecordStore

__version__ = "0.1.0"

# Public name -> the module of this package that defines it.
_EXPORTS = {
    "DeltaIOManager": "dagster_io.storage.io_managers",
    "Difference": "hashing.difference",
    "DriftPolicy": "compare.policy",
    "DriftReport": "dagster_io.drift.judging",
    "Fingerprint": "hashing.fingerprint",
    "LineageRecorder": "records.recorder",
    "ParquetIOManager": "dagster_io.storage.io_managers",
    "Receipts": "dagster_io.receipts.resource",
    "ReceiptsMixin": "dagster_io.receipts.wrapper",
    "RecordStore": "records.store",
    "RunRecord": "records.model",
    "SparkIOManager": "dagster_io.storage.spark_io_manager",
    "SparkResource": "dagster_io.storage.spark_session",
    "StepRecord": "records.model",
    "UbunyeError": "errors",
    "build_drift_checks": "dagster_io.drift.checks",
    "build_drift_schedule": "dagster_io.drift.schedules",
    "build_drift_sensor": "dagster_io.drift.sensors",
    "build_expectation_checks": "dagster_io.receipts.expectation_checks",
    "build_integrity_checks": "dagster_io.drift.integrity",
    "build_killed_runs_sensor": "dagster_io.drift.killed",
    "build_observed_table": "dagster_io.drift.external",
    "compare_records": "compare.comparison",
    "expect": "expectations.declare",
    "explain_difference": "hashing.difference",
    "fingerprint": "hashing.api",
    "fingerprint_dataset": "hashing.datasets",
    "judge": "compare.drift",
    "on_changed_data": "dagster_io.drift.automation",
    "with_receipts": "dagster_io.receipts.wrapping",
}

__all__ = [
    "DeltaIOManager",
    "Difference",
    "DriftPolicy",
    "DriftReport",
    "Fingerprint",
    "LineageRecorder",
    "ParquetIOManager",
    "Receipts",
    "ReceiptsMixin",
    "RecordStore",
    "RunRecord",
    "SparkIOManager",
    "SparkResource",
    "StepRecord",
    "UbunyeError",
    "__version__",
    "build_drift_checks",
    "build_drift_schedule",
    "build_drift_sensor",
    "build_expectation_checks",
    "build_integrity_checks",
    "build_killed_runs_sensor",
    "build_observed_table",
    "compare_records",
    "expect",
    "explain_difference",
    "fingerprint",
    "fingerprint_dataset",
    "judge",
    "on_changed_data",
    "with_receipts",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
