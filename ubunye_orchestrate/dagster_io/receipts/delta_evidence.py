"""What a Delta table's own log says of a version, and what our commits say in it of the run that made them.

The log is read by delta-rs and by Spark; both give a commit as a mapping of the same names (``history()``,
rows of ``DESCRIBE HISTORY``). Nothing here reads a table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ubunye_orchestrate.dagster_io.times import utc_text

__all__ = [
    "USER_METADATA",
    "CommitNote",
    "commit_note",
    "delta_version",
    "is_delta_version",
    "note_of_commit",
]

USER_METADATA = "userMetadata"
"""The commit's field for a text of the writer's own: an option of that name in Spark, custom metadata of that
name in delta-rs; a column of that name in ``DESCRIBE HISTORY``."""

_MAX_PARTITIONS = 100
_FORMAT = 1


def delta_version(commit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``source_version`` of the version that a commit made.

    ``{"kind": "delta", "version": N, "timestamp": ISO 8601 in UTC or None, "operation": …, "metrics": {…}}``.
    ``commit`` is an entry of delta-rs' ``DeltaTable.history()`` or a row of ``DESCRIBE HISTORY`` as a dict
    (``Row.asDict(recursive=True)``). Metrics are those that the writing engine noted, under its names; whole
    numbers are integers, however the log writes them. Readers disagree about the time by milliseconds
    (delta-rs takes what the commit says, Spark the time of its file): compare versions by their number.
    """
    metrics = commit.get("operationMetrics") or {}
    return {
        "kind": "delta",
        "version": int(commit["version"]),
        "timestamp": _utc(commit.get("timestamp")),
        "operation": commit.get("operation"),
        "metrics": {name: _number(metrics[name]) for name in sorted(metrics)},
    }


def is_delta_version(source_version: Mapping[str, Any] | None, number: int) -> bool:
    """Tell whether a ``source_version`` names this version of a Delta table."""
    return (source_version or {}).get("kind") == "delta" and (source_version or {}).get("version") == number


@dataclass(frozen=True)
class CommitNote:
    """What a commit of this package says of where it came from."""

    run_id: str
    """Dagster's."""
    asset: str | None
    """The asset key, its parts joined with ``/``; None for the output of an op."""
    partitions: tuple[str, ...]
    """What was stored, the first hundred; empty for an asset without partitions."""
    receipt: str | None
    """Where the record stands below ``.ubunye/lineage``: usecase, package, task and the record's run id."""


def commit_note(
    run_id: str, asset: str | None, partitions: Sequence[str] = (), receipt: str | None = None
) -> str:
    """Return the text for a commit's ``userMetadata``: compact JSON that names the run and its receipt."""
    said: dict[str, Any] = {"ubunye": _FORMAT, "run_id": run_id}
    if asset is not None:
        said["asset"] = asset
    if partitions:
        said["partitions"] = list(partitions[:_MAX_PARTITIONS])
    if len(partitions) > _MAX_PARTITIONS:
        said["partition_count"] = len(partitions)
    if receipt is not None:
        said["receipt"] = receipt
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def note_of_commit(commit: Mapping[str, Any]) -> CommitNote | None:
    """Return what a commit says of its run; None for a commit that this package did not make.

    ``commit`` is as ``delta_version`` takes it.
    """
    try:
        said = json.loads(commit.get(USER_METADATA) or "null")
    except (TypeError, ValueError):
        return None
    if not isinstance(said, dict) or "ubunye" not in said or not isinstance(said.get("run_id"), str):
        return None
    return CommitNote(
        run_id=said["run_id"],
        asset=said.get("asset"),
        partitions=tuple(str(one) for one in said.get("partitions") or ()),
        receipt=said.get("receipt"),
    )


def _utc(moment: Any) -> str | None:
    """Take milliseconds since the epoch (delta-rs) or a datetime, local or zoned (PySpark)."""
    if isinstance(moment, datetime):
        return moment.astimezone(timezone.utc).isoformat()
    return utc_text(moment / 1000) if isinstance(moment, int | float) else None


def _number(value: Any) -> Any:
    # Spark writes all of them as text.
    if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit():
        return int(value)
    return value
