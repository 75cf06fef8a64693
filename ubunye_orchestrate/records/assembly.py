"""A record put together from what is known of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from ubunye_orchestrate import __version__
from ubunye_orchestrate.masking import mask_variables
from ubunye_orchestrate.records.code import CodeEvidence
from ubunye_orchestrate.records.environment import current_environment, environment_hash
from ubunye_orchestrate.records.model import RunRecord, StepRecord
from ubunye_orchestrate.records.settings import ReceiptSettings

__all__ = ["assemble_record"]


def assemble_record(
    settings: ReceiptSettings,
    *,
    package: str,
    task_name: str,
    run_id: str,
    started_at: datetime | None,
    ended_at: datetime,
    duration_sec: float | None,
    inputs: Sequence[StepRecord] = (),
    outputs: Sequence[StepRecord] = (),
    error: str | None = None,
    code: CodeEvidence | None = None,
    config_hash: str | None = None,
    variables: Mapping[str, Any] | None = None,
    backend: str | None = None,
    timings: Sequence[dict[str, Any]] = (),
    expectations: Sequence[dict[str, Any]] = (),
    version: str = "",
    model: str = "etl",
    time_zone: str | None = None,
    dagster: dict[str, Any] | None = None,
) -> RunRecord:
    """Return the record of a run that has ended: with ``error`` (its masked text) failed, else succeeded.

    Identity, environment and this package's version are filled in; secrets among the variables are masked.
    ``package``, ``task_name`` and ``run_id`` are as ``records.paths`` makes them; times have a zone.
    """
    environment = current_environment()
    return RunRecord(
        run_id=run_id,
        task_path=f"{settings.usecase}/{package}/{task_name}",
        usecase=settings.usecase,
        package=package,
        task_name=task_name,
        profile=settings.profile,
        model=model,
        version=version,
        config_hash=config_hash,
        started_at=None if started_at is None else started_at.astimezone(timezone.utc).isoformat(),
        ended_at=ended_at.astimezone(timezone.utc).isoformat(),
        duration_sec=None if duration_sec is None else round(duration_sec, 6),
        status="success" if error is None else "error",
        inputs=list(inputs),
        outputs=list(outputs),
        error=error,
        engine_version=__version__,
        backend=backend,
        variables=mask_variables(variables or {}),
        code_hash=None if code is None else code.folder_hash,
        environment=environment,
        environment_hash=environment_hash(environment),
        timings=list(timings),
        expectations=list(expectations),
        time_zone=time_zone,
        code=None if code is None else code.as_record(),
        dagster=dagster,
    )
