"""What a synchronisation says."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Protocol

from ubunye_orchestrate.cli.views import wrapped
from ubunye_orchestrate.compare.text import printable

__all__ = ["Report", "synced_document", "synced_lines"]

_NAMED = 20


class Report(Protocol):
    """``dagster_io.drift.sync.SyncReport``, which loads Dagster."""

    written: list[str]
    restored: list[str]
    in_both: int
    mirror_only: list[str]
    different: list[str]
    acceptances_written: int
    acceptances_reported: int
    problems: list[str]


def synced_lines(report: Report, *, dry_run: bool) -> Iterator[str]:
    """Yield the text for a terminal."""
    would = "would be written" if dry_run else "written"
    yield f"in both           : {report.in_both}"
    yield f"in instance only  : {len(report.written)} ({would})"
    yield from _some(report.written)
    yield f"in mirror only    : {len(report.mirror_only)} (not receipts of this instance's assets)"
    yield from _some(report.mirror_only)
    if report.restored:
        yield f"unreadable        : {len(report.restored)} ({would} again)"
        yield from _some(report.restored)
    if report.different:
        yield f"different         : {len(report.different)} (other hashes of one output; neither was changed)"
        yield from _some(report.different)
    if report.acceptances_written or report.acceptances_reported:
        yield (
            f"acceptances, pins : {report.acceptances_written} to the mirror, "
            f"{report.acceptances_reported} to the instance"
        )
    for problem in report.problems:
        yield from wrapped("problem           : ", problem)


def _some(names: list[str]) -> Iterator[str]:
    yield from (f"  {printable(name)}" for name in names[:_NAMED])
    if len(names) > _NAMED:
        yield f"  and {len(names) - _NAMED} more"


def synced_document(report: Any, *, dry_run: bool) -> dict[str, Any]:
    """Return the report as one JSON document."""
    return {"dry_run": dry_run, **dataclasses.asdict(report)}
