"""The daily look: the checks of this package, run on a schedule without materializing anything."""

from __future__ import annotations

from collections.abc import Sequence

from dagster import (
    AssetCheckKey,
    AssetSelection,
    DefaultScheduleStatus,
    ScheduleDefinition,
    define_asset_job,
)

from ubunye_orchestrate.dagster_io.drift.judging import CHECK_NAME
from ubunye_orchestrate.dagster_io.drift.selection import AssetGiven, AssetsGiven, keys_in
from ubunye_orchestrate.errors import ConfigurationError

__all__ = ["build_drift_schedule"]


def build_drift_schedule(
    assets: AssetsGiven,
    cron_schedule: str = "0 6 * * *",
    *,
    name: str = "drift_daily",
    checks: Sequence[str] = (CHECK_NAME,),
    execution_timezone: str | None = None,
    default_status: DefaultScheduleStatus = DefaultScheduleStatus.STOPPED,
    among: Sequence[AssetGiven] | None = None,
) -> ScheduleDefinition:
    """Return a schedule that runs the checks of ``assets``: the newest materialization of each, judged again.

    The checks must be declared (``build_drift_checks``). Add ``"integrity"`` to ``checks``, with
    ``build_integrity_checks`` declared, to hash each night what is stored. ``among`` are the project's assets
    where ``assets`` is a selection that goes by the graph. Raises ConfigurationError for no check.
    """
    if not checks or isinstance(checks, str):
        raise ConfigurationError(f'checks={checks!r}; expected a list of names, such as ["{CHECK_NAME}"]')
    selected = [AssetCheckKey(key, check) for key in keys_in(assets, among) for check in checks]
    return ScheduleDefinition(
        name=name,
        cron_schedule=cron_schedule,
        job=define_asset_job(f"{name}_job", AssetSelection.checks(*selected)),
        execution_timezone=execution_timezone,
        default_status=default_status,
        description="Holds the newest materialization of each asset against its baseline.",
    )
