"""The data version of an asset that is being stored: the one that it gives itself, and ours."""

from __future__ import annotations

import sys
from types import FrameType

from dagster import AssetKey, DataVersion, Output
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from dagster._core.execution.plan import execute_step

from ubunye_orchestrate.dagster_io.upstream.steps import StepContext

__all__ = ["data_version_given", "set_data_version"]


def data_version_given() -> str | None:
    """Return the data version that an asset gives its output itself, while an IO manager stores it.

    Dagster tells the IO manager nothing of it, but calls it from where it has the output.
    """
    output = _output_being_stored()
    if output is None:
        return None
    version = (output.tags or {}).get(DATA_VERSION_TAG)
    return version or (None if output.data_version is None else output.data_version.value)


def set_data_version(step: StepContext, key: AssetKey, version: str) -> None:
    """Make ``version`` the data version of the asset's materialization that follows.

    A version that the asset gives itself (``Output(data_version=…)``, or the tag) still wins.
    """
    output = _output_being_stored() if key in step.job_def.asset_layer.get(key).parent_keys else None
    if output is not None:
        # Of an asset that reads itself Dagster holds what the step says against what was read, and warns.
        output._data_version = output.data_version or DataVersion(version)
        return
    step.set_data_version(key, DataVersion(version))


def _output_being_stored() -> Output | None:  # type: ignore[type-arg]  # of any value
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        output = frame.f_locals.get("output") if frame.f_code.co_filename == execute_step.__file__ else None
        if isinstance(output, Output):
            return output
        frame = frame.f_back
    return None
