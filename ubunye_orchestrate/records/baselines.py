"""Runs that somebody accepted or pinned, mirrored below ``<root>/.ubunye/baselines``.

One file for each statement, ``<usecase>/<package>/<task>/<time>-<digest>.json``; none is ever changed in what
it says, and the newest one counts. The authoritative copy is an AssetObservation in Dagster's event log.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import timezone
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ubunye_orchestrate.errors import InvalidRecordError, RecordError
from ubunye_orchestrate.records.codec import json_object
from ubunye_orchestrate.records.folders import open_folder
from ubunye_orchestrate.records.paths import SUFFIX, is_safe_part, safe_part
from ubunye_orchestrate.records.store import OnInvalid, RecordStore, parse_time

__all__ = [
    "BASELINES_DIR",
    "Acceptance",
    "BaselineStore",
    "acceptance_of",
    "decode_acceptance",
    "last_accepted",
    "pinned",
]

BASELINES_DIR = ".ubunye/baselines"

_MAX_BYTES = 1024 * 1024


class Acceptance(BaseModel):
    """What somebody said of one run of an asset, in one set of partitions and one profile."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: Literal["accepted", "pinned", "unpinned"]
    """``accepted``: the run's changes are right. ``pinned``: later runs are held against this one, until
    another is pinned or this one is ``unpinned``."""
    usecase: str
    package: str
    task_name: str
    asset_key: list[str] | None = None
    """None for a record of another writer."""
    partition_keys: list[str] = Field(default_factory=list)
    """Sorted; empty for an unpartitioned asset."""
    profile: str = "default"
    run_id: str
    """Of the record: with partitions and attempt."""
    storage_id: int | None = None
    """Storage id of the run's materialization in the event log; None where no instance was at hand."""
    by: str
    at: str
    """ISO 8601, UTC."""
    why: str

    @property
    def file_name(self) -> str:
        """Sorts by time, and is the same for the same statement with and without its storage id."""
        said = self.model_dump(mode="json", exclude={"storage_id"})
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
        time = parse_time(self.at)
        if time is None:
            raise InvalidRecordError(
                f"acceptance of run {self.run_id!a}: found the time {self.at!a}; expected ISO 8601"
            )
        return f"{time.astimezone(timezone.utc):%Y%m%dT%H%M%S.%fZ}-{digest}{SUFFIX}"


class BaselineStore:
    """The acceptances and pins below one root, a local folder or an fsspec URL."""

    def __init__(self, root: str | os.PathLike[str], baselines_dir: str = BASELINES_DIR) -> None:
        """Take the root that holds the mirror; nothing is touched yet."""
        self._folder = open_folder(str(root), baselines_dir)
        self._tree = RecordStore(root, baselines_dir)

    def save(self, acceptance: Acceptance) -> str:
        """Write one, whole or not at all, and return where it is; the same again is the same file.

        Raises StoreError when it cannot be written.
        """
        names = (acceptance.usecase, acceptance.package, acceptance.task_name)
        path = f"{'/'.join(_safe(name) for name in names)}/{acceptance.file_name}"
        data = json.dumps(acceptance.model_dump(mode="json"), indent=2, ensure_ascii=False).encode()
        time = parse_time(acceptance.at)
        return self._folder.write(path, data, None if time is None else time.timestamp())

    def of_task(self, usecase: str, package: str, task: str, on_invalid: OnInvalid) -> list[Acceptance]:
        """Return everything that was said of a task's runs, newest first; ``on_invalid`` gets bad files."""
        return list(self._read("/".join(map(_safe, (usecase, package, task))), on_invalid))

    def all(self, on_invalid: OnInvalid) -> Iterator[Acceptance]:
        """Yield everything that was said, task by task, the newest of each first."""
        for names in self._tree.tasks(on_invalid=on_invalid):
            yield from self._read("/".join(names), on_invalid)

    def _read(self, folder: str, on_invalid: OnInvalid) -> Iterator[Acceptance]:
        try:
            entries = self._folder.entries(folder)
        except RecordError as e:
            on_invalid(self._folder.shown(folder), e)
            return
        names = [e.name for e in entries if e.name.endswith(SUFFIX) and not e.is_folder and not e.problem]
        for name in sorted(names, reverse=True):
            path = f"{folder}/{name}"
            shown = self._folder.shown(path)
            try:
                data = self._folder.read(path, _MAX_BYTES)
                if data is not None:
                    yield decode_acceptance(data, source=shown)
            except RecordError as e:
                on_invalid(shown, e)


def decode_acceptance(data: bytes, *, source: str) -> Acceptance:
    """Return the acceptance or pin that a file (or an event's metadata) holds.

    ``source`` is how messages name it. Raises InvalidRecordError, in one line, for anything else.
    """
    value = json_object(data, source, "an acceptance as a JSON object")
    try:
        found = Acceptance.model_validate(value, strict=True)
        found.file_name  # noqa: B018 - a time that cannot be read is refused here
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidRecordError(f"{source}: found no acceptance ({field}: {first['msg']})") from e
    return found


def pinned(said: Iterable[Acceptance], partition_keys: Sequence[str], profile: str) -> Acceptance | None:
    """Return the pin in force for an asset's partitions and profile; ``said`` is the newest first."""
    for one in said:
        if one.kind != "accepted" and _about(one, partition_keys, profile):
            return one if one.kind == "pinned" else None
    return None


def last_accepted(
    said: Iterable[Acceptance], partition_keys: Sequence[str], profile: str
) -> Acceptance | None:
    """Return the newest acceptance (a pin is one too) for an asset's partitions and profile."""
    return next(
        (one for one in said if one.kind != "unpinned" and _about(one, partition_keys, profile)), None
    )


def acceptance_of(said: Iterable[Acceptance], run_id: str) -> Acceptance | None:
    """Return the newest acceptance or pin of exactly this run."""
    return next((one for one in said if one.kind != "unpinned" and one.run_id == run_id), None)


def _about(one: Acceptance, partition_keys: Sequence[str], profile: str) -> bool:
    return one.profile == profile and sorted(one.partition_keys) == sorted(partition_keys)


def _safe(name: str) -> str:
    return name if is_safe_part(name) else safe_part(name)
