"""Schedules and sensors as definitions: what they start, and the same with other jobs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dagster import AssetsDefinition, JobDefinition, ScheduleDefinition, SensorDefinition

__all__ = ["Automation", "jobs_started_by", "replace_jobs", "started_assets"]

Automation: TypeAlias = ScheduleDefinition | SensorDefinition
"""A schedule or a sensor of any kind, but for a schedule whose job is found when the project is loaded."""


def jobs_started_by(automation: Automation) -> Sequence[Any]:
    """Return the jobs that a schedule or a sensor has, in any form; none for one that only names its job."""
    return [target.job_def for target in _targets(automation) if target.has_job_def]


def started_assets(automation: Automation) -> Sequence[AssetsDefinition]:
    """Return the assets that are given to a schedule or a sensor itself (``target=[…]``)."""
    found = [one for target in _targets(automation) for one in target.assets_defs]
    return [one for one in found if isinstance(one, AssetsDefinition)]


def replace_jobs(
    automation: Automation, replaced: Callable[[JobDefinition], JobDefinition]
) -> Automation | None:
    """Return a schedule or a sensor with other jobs, as Dagster binds a project's resources to them.

    None for one that Dagster would make anew as another kind: a class of the user's own.
    """
    jobs = [replaced(job) if isinstance(job, JobDefinition) else job for job in jobs_started_by(automation)]
    with warnings.catch_warnings():
        # Of what the user has written: said when it was, or of a parameter that only Dagster gave.
        warnings.simplefilter("ignore")
        if isinstance(automation, ScheduleDefinition):
            made: Automation = automation.with_updated_job(jobs[0])
        else:
            made = automation.with_updated_jobs(jobs)
    return made if type(made) is type(automation) else None


def _targets(automation: Automation) -> Sequence[Any]:
    return [automation.target] if isinstance(automation, ScheduleDefinition) else automation.targets
