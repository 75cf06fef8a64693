"""Runs that the drift sensor requests for what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from dagster import DagsterInstance, RunRequest, RunsFilter

from ubunye_orchestrate.dagster_io.drift.judging import DriftReport

__all__ = [
    "DRIFT_ASSET",
    "DRIFT_PARTITION",
    "DRIFT_RUN",
    "Remediation",
    "request_for",
    "runs_that_remediate",
    "with_key_and_tags",
]

Remediation: TypeAlias = Callable[[DriftReport], RunRequest | None]
"""Returns the run to request for a report that did not pass; None for none."""

DRIFT_RUN = "ubunye/drift_run"
"""Tag of a requested run: the run that drifted."""
DRIFT_ASSET = "ubunye/drift_asset"
"""Tag of a requested run: the asset that drifted."""
DRIFT_PARTITION = "ubunye/drift_partition"
"""Tag of a requested run: the partition that drifted, where there is one."""


def request_for(report: DriftReport) -> RunRequest | None:
    """Request a run for an error, of the job as it is: for what stands in its tags."""
    return RunRequest() if report.verdict.severity == "error" else None


def with_key_and_tags(request: RunRequest, report: DriftReport) -> RunRequest:
    """Return the request with what tells its runs apart: once for each materialization, and why."""
    tags = {**request.tags, DRIFT_RUN: report.run_id, DRIFT_ASSET: report.asset_key.to_user_string()}
    if report.partition is not None:
        tags[DRIFT_PARTITION] = report.partition
    what = "overdue" if all(one.kind == "overdue" for one in report.verdict.findings) else "drift"
    # A tick that is done again (the daemon was killed) requests nothing twice.
    return request.with_replaced_attrs(run_key=request.run_key or f"{what}-{report.storage_id}", tags=tags)


def runs_that_remediate(instance: DagsterInstance, run_ids: Iterable[str]) -> set[str]:
    """Return which runs were requested by a drift sensor: one query."""
    wanted = sorted(set(run_ids))
    if not wanted:
        return set()
    found = instance.get_run_records(RunsFilter(run_ids=wanted))
    return {one.dagster_run.run_id for one in found if DRIFT_RUN in one.dagster_run.tags}
