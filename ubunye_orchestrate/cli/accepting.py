"""Statements about runs: accepted, pinned, unpinned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from ubunye_orchestrate.cli.address import Task
from ubunye_orchestrate.compare.comparison import partition_keys
from ubunye_orchestrate.compare.text import printable
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.masking import mask_text
from ubunye_orchestrate.records.baselines import Acceptance, pinned
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["accepted_document", "accepted_lines", "statement"]


def statement(
    task: Task,
    record: RunRecord,
    *,
    kind: Literal["accepted", "pinned", "unpinned"],
    by: str,
    at: str,
    why: str,
) -> Acceptance:
    """Return what is said of a run. Raises ConfigurationError for what makes no sense to say.

    To unpin is said of the run that is pinned for the partition and profile of ``record``.
    """
    if not why.strip():
        raise ConfigurationError("--why is empty; expected the reason, for those who read it later")
    keys = partition_keys(record)
    run_id = record.run_id
    if kind == "unpinned":
        pin = pinned(task.said, keys, record.profile)
        if pin is None:
            raise ConfigurationError(f"no run of {task.path} is pinned; there is nothing to unpin")
        run_id = pin.run_id
    elif record.status != "success":
        raise ConfigurationError(
            f"run {run_id} of {task.path} has status {record.status}; expected one that succeeded; name it "
            "with --run-id"
        )
    key = (record.dagster or {}).get("asset_key")
    return Acceptance(
        kind=kind,
        usecase=task.usecase,
        package=task.package,
        task_name=task.name,
        asset_key=[str(part) for part in key] if isinstance(key, list) else None,
        partition_keys=list(keys),
        profile=record.profile,
        run_id=run_id,
        by=by,
        at=at,
        why=mask_text(why.strip()),
    )


def accepted_lines(said: Acceptance, path: str) -> Iterator[str]:
    """Yield the text for a terminal."""
    task = printable(f"{said.usecase}/{said.package}/{said.task_name}")
    yield f"{said.kind}: run {printable(said.run_id)} of {task}, by {printable(said.by)}"
    yield f"written to {printable(path)}"
    if said.storage_id is None:
        yield "Not in a Dagster instance: sensors see it after `lineage sync`."
    else:
        yield f"and to the event log, for materialization {said.storage_id}"


def accepted_document(said: Acceptance, path: str) -> dict[str, Any]:
    """Return the statement as a JSON document, with where it was written."""
    return {**said.model_dump(mode="json"), "path": path}
