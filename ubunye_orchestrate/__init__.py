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
    from ubunye_orchestrate.dagster_io.checks import build_drift_checks as build_drift_checks
    from ubunye_orchestrate.dagster_io.io_managers import ParquetIOManager as ParquetIOManager
    from ubunye_orchestrate.dagster_io.receipts import Receipts as Receipts
    from ubunye_orchestrate.dagster_io.sensors import build_drift_sensor as build_drift_sensor
    from ubunye_orchestrate.dagster_io.wrapper import ReceiptsMixin as ReceiptsMixin
    from ubunye_orchestrate.dagster_io.wrapping import with_receipts as with_receipts
    from ubunye_orchestrate.hashing.api import fingerprint as fingerprint
    from ubunye_orchestrate.hashing.datasets import fingerprint_dataset as fingerprint_dataset
    from ubunye_orchestrate.hashing.difference import explain_difference as explain_difference
    from ubunye_orchestrate.hashing.fingerprint import Fingerprint as Fingerprint
    from ubunye_orchestrate.records.model import RunRecord as RunRecord
    from ubunye_orchestrate.records.model import StepRecord as StepRecord
    from ubunye_orchestrate.records.recorder import LineageRecorder as LineageRecorder
    from ubunye_orchestrate.records.store import RecordStore as RecordStore

__version__ = "0.1.0"

# Public name -> the module of this package that defines it.
_EXPORTS = {
    "DriftPolicy": "compare.policy",
    "Fingerprint": "hashing.fingerprint",
    "LineageRecorder": "records.recorder",
    "ParquetIOManager": "dagster_io.io_managers",
    "Receipts": "dagster_io.receipts",
    "ReceiptsMixin": "dagster_io.wrapper",
    "RecordStore": "records.store",
    "RunRecord": "records.model",
    "StepRecord": "records.model",
    "build_drift_checks": "dagster_io.checks",
    "build_drift_sensor": "dagster_io.sensors",
    "compare_records": "compare.comparison",
    "explain_difference": "hashing.difference",
    "fingerprint": "hashing.api",
    "fingerprint_dataset": "hashing.datasets",
    "judge": "compare.drift",
    "with_receipts": "dagster_io.wrapping",
}

__all__ = [
    "DriftPolicy",
    "Fingerprint",
    "LineageRecorder",
    "ParquetIOManager",
    "Receipts",
    "ReceiptsMixin",
    "RecordStore",
    "RunRecord",
    "StepRecord",
    "__version__",
    "build_drift_checks",
    "build_drift_sensor",
    "compare_records",
    "explain_difference",
    "fingerprint",
    "fingerprint_dataset",
    "judge",
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
