"""What a run ran on, as far as it can change a result."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import platform
import sys

from ubunye_orchestrate import __version__
from ubunye_orchestrate.records.model import Environment

__all__ = ["PACKAGES", "current_environment", "environment_hash"]

PACKAGES = (
    "dagster",
    "pyspark",
    "delta-spark",
    "deltalake",
    "pandas",
    "pyarrow",
    "numpy",
    "polars",
    "duckdb",
    "narwhals",
    "scikit-learn",
    "torch",
    "mlflow",
)
"""The packages whose version can change a result, besides this one."""


@functools.cache
def current_environment() -> Environment:
    """Return this process's environment, read once from the installed packages' metadata.

    No package is imported; one that is not installed is left out. ``java`` is not known here: whoever has a
    Spark session adds it with ``model_copy(update={"java": …})``.
    """
    return Environment(
        python=platform.python_version(),
        implementation=platform.python_implementation(),
        platform=sys.platform,
        machine=platform.machine(),
        packages={
            # This package's own version is the one that runs, whatever was installed.
            "ubunye-orchestrate": __version__,
            **{name: version for name in PACKAGES if (version := _version(name)) is not None},
        },
    )


def environment_hash(environment: Environment) -> str:
    """Return ``sha256:`` and the hash of the environment as its record has it: compact, keys sorted."""
    return _hash_of_this_process() if environment is current_environment() else _hash_of(environment)


@functools.cache
def _hash_of_this_process() -> str:
    return _hash_of(current_environment())


def _hash_of(environment: Environment) -> str:
    text = json.dumps(environment.model_dump(exclude_unset=True), sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _version(name: str) -> str | None:
    try:
        # The metadata of a broken installation has no version; typed as a text, it is None then.
        version: str | None = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    return version
