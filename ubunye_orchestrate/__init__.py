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
    from ubunye_orchestrate.hashing.api import fingerprint as fingerprint
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
    "RecordStore": "records.store",
    "RunRecord": "records.model",
    "StepRecord": "records.model",
    "compare_records": "compare.comparison",
    "fingerprint": "hashing.api",
    "judge": "compare.drift",
}

__all__ = [
    "DriftPolicy",
    "Fingerprint",
    "LineageRecorder",
    "RecordStore",
    "RunRecord",
    "StepRecord",
    "__version__",
    "compare_records",
    "fingerprint",
    "judge",
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
