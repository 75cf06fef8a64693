"""Content hashes and run records for every Dagster asset.

Everything public is importable from here and loaded when it is first used: importing the package loads no
Dagster, pandas, pyarrow or pyspark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ubunye_orchestrate.hashing.fingerprint import Fingerprint as Fingerprint
    from ubunye_orchestrate.records.model import RunRecord as RunRecord
    from ubunye_orchestrate.records.model import StepRecord as StepRecord

__version__ = "0.1.0"

# Public name -> module that defines it.
_EXPORTS = {
    "Fingerprint": "ubunye_orchestrate.hashing.fingerprint",
    "RunRecord": "ubunye_orchestrate.records.model",
    "StepRecord": "ubunye_orchestrate.records.model",
}

__all__ = ["Fingerprint", "RunRecord", "StepRecord", "__version__"]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
