"""The mirror: every record as a file, on a local disk or behind any fsspec URL."""

from __future__ import annotations

import itertools
import logging
import operator
import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone

from ubunye_orchestrate.errors import (
    ConfigurationError,
    InvalidRecordError,
    RecordError,
    RecordNotFoundError,
    StoreError,
)
from ubunye_orchestrate.records.codec import MAX_RECORD_BYTES, decode, encode
from ubunye_orchestrate.records.folders import Entry, open_folder
from ubunye_orchestrate.records.model import RunRecord
from ubunye_orchestrate.records.paths import SUFFIX, is_safe_part, record_path, safe_part

__all__ = ["LINEAGE_DIR", "OnInvalid", "RecordStore", "Wanted", "parse_time"]

LINEAGE_DIR = ".ubunye/lineage"

OnInvalid = Callable[[str, RecordError], None]
"""Told about each file or folder that cannot be read: its path or URL, and why."""

Wanted = Callable[[str], bool]
"""Tells by a run id, which is the file's stem, whether the record may be wanted: others are not read."""

_newest = operator.attrgetter("modified", "name")

_FRACTION = re.compile(r"\.\d+")

_logger = logging.getLogger(__name__)


class RecordStore:
    """The records below one root: ``<root>/.ubunye/lineage/<usecase>/<package>/<task>/<run_id>.json``.

    Reading goes on past a file that is no record: ``on_invalid`` is told (without it, a warning is logged).
    A place that cannot be listed or written at all is a StoreError. Files are listed by their time, newest
    first, as the engine does; a local file's time is its record's ``ended_at``.
    """

    def __init__(self, root: str | os.PathLike[str], lineage_dir: str = LINEAGE_DIR) -> None:
        """Take a local folder or an fsspec URL; neither need exist, and nothing is touched yet."""
        # str() and not fspath: a UPath on a remote file system is path-like and has a URL as its text.
        self._folder = open_folder(str(root), lineage_dir)

    def __repr__(self) -> str:
        return f"RecordStore({self._folder.shown('')!r})"

    def save(self, record: RunRecord) -> str:
        """Write a record, whole or not at all, over an older one of the same identity; return where it is.

        A run id that cannot be a file name is made one, in the file too. Raises InvalidRecordError for a
        record that JSON cannot hold and StoreError when it cannot be written.
        """
        run_id = record.run_id if is_safe_part(record.run_id) else safe_part(record.run_id)
        if run_id != record.run_id:
            record = record.model_copy(update={"run_id": run_id})
        path = record_path(record.usecase, record.package, record.task_name, run_id)
        ended = None if record.ended_at is None else parse_time(record.ended_at)
        return self._folder.write(path, encode(record), None if ended is None else ended.timestamp())

    def load(self, usecase: str, package: str, task: str, run_id: str) -> RunRecord:
        """Read one record. Raises RecordNotFoundError, InvalidRecordError or StoreError."""
        for folder in self._task_folders(usecase, package, task):
            for stem in _names(run_id):
                record = self._read(f"{folder}/{stem}{SUFFIX}")
                if record is not None:
                    return record
        path = self._folder.shown(record_path(usecase, package, task, run_id))
        raise RecordNotFoundError(
            f"no record of run {run_id!a} of {f'{usecase}/{package}/{task}'!a}; expected {path}; "
            "check the names and the run id, or list the runs that are there"
        )

    def list_runs(
        self,
        usecase: str,
        package: str,
        task: str,
        limit: int = 10,
        on_invalid: OnInvalid | None = None,
    ) -> list[RunRecord]:
        """Return a task's newest ``limit`` records: one listing, and no more bodies read than are needed."""
        return list(itertools.islice(self.iter_runs(usecase, package, task, on_invalid), max(limit, 0)))

    def iter_runs(
        self,
        usecase: str,
        package: str,
        task: str,
        on_invalid: OnInvalid | None = None,
        wanted: Wanted | None = None,
    ) -> Iterator[RunRecord]:
        """Yield a task's records, newest first, each read when it is asked for.

        A file whose stem ``wanted`` refuses is not read.
        """
        report = on_invalid or _warn
        for folder in self._task_folders(usecase, package, task):
            yield from self._records(folder, self._folder.entries(folder), report, wanted)

    def run_ids(self, usecase: str, package: str, task: str) -> list[str]:
        """Return the run ids of a task by its files' names, newest first: one listing, no file is read.

        Where the store's listing has no times they are sorted by name.
        """
        found: list[str] = []
        for folder in self._task_folders(usecase, package, task):
            files = [entry for entry in self._folder.entries(folder) if _is_record(entry)]
            files.sort(key=lambda entry: (entry.modified or 0.0, entry.name), reverse=True)
            found += [entry.name.removesuffix(SUFFIX) for entry in files]
        return found

    def delete(self, usecase: str, package: str, task: str, run_id: str) -> None:
        """Delete a record's file; a missing one is no error. Raises StoreError when it cannot be deleted."""
        for folder in self._task_folders(usecase, package, task):
            for stem in _names(run_id):
                self._folder.delete(f"{folder}/{stem}{SUFFIX}")

    def search(
        self,
        usecase: str | None = None,
        package: str | None = None,
        task: str | None = None,
        status: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        profile: str | None = None,
        on_invalid: OnInvalid | None = None,
    ) -> Iterator[RunRecord]:
        """Yield the records that match, task by task, the newest of each task first.

        ``since`` and ``until`` bound the start (or, where it is not recorded, the end), both inclusive; a
        time without a zone is UTC. Raises ConfigurationError for a time that cannot be read.
        """
        first, last = _bound("since", since), _bound("until", until)
        report = on_invalid or _warn
        return (
            record
            for names in self.tasks(usecase, package, task, on_invalid)
            for record in self._records("/".join(names), self._entries("/".join(names), report), report)
            if (status is None or record.status == status)
            and (profile is None or record.profile == profile)
            and _within(record, first, last)
        )

    def tasks(
        self,
        usecase: str | None = None,
        package: str | None = None,
        task: str | None = None,
        on_invalid: OnInvalid | None = None,
    ) -> Iterator[tuple[str, str, str]]:
        """Yield (usecase, package, task) of each task that has a folder, sorted; names narrow the search.

        Three levels and no deeper, so that a link in a circle cannot hold it. A folder that cannot be listed
        is reported, the lineage folder itself raises StoreError.
        """
        report = on_invalid or _warn
        for usecase_name in _folders(self._folder.entries(""), usecase):
            for package_name in _folders(self._entries(usecase_name, report), package):
                above = f"{usecase_name}/{package_name}"
                for task_name in _folders(self._entries(above, report), task):
                    yield usecase_name, package_name, task_name

    def _entries(self, folder: str, report: OnInvalid) -> list[Entry]:
        try:
            return self._folder.entries(folder)
        except StoreError as e:
            report(self._folder.shown(folder), e)
            return []

    def _records(
        self, folder: str, entries: list[Entry], report: OnInvalid, wanted: Wanted | None = None
    ) -> Iterator[RunRecord]:
        files = [entry for entry in entries if _is_record(entry)]
        present = files
        if wanted is not None:
            files = [entry for entry in files if wanted(entry.name.removesuffix(SUFFIX))]
        if all(entry.modified is not None for entry in files):
            files = sorted(files, key=_newest, reverse=True)
            yield from self._readable(folder, files, present, report)
        else:
            # The store's listing has no times, so the records have to say.
            records = self._readable(folder, files, present, report)
            yield from sorted(records, key=lambda r: (r.ended_at or "", r.run_id), reverse=True)

    def _readable(
        self, folder: str, files: list[Entry], present: list[Entry], report: OnInvalid
    ) -> Iterator[RunRecord]:
        claimed: dict[str, str] = {}
        stems: set[str] = set()  # made when a file is the first to have another run id than its name
        for entry in files:
            path = f"{folder}/{entry.name}"
            try:
                if entry.problem is not None:
                    raise StoreError(f"{self._folder.shown(path)} cannot be read: {entry.problem}")
                record = self._read(path, entry.size)
                if record is None:
                    continue
                stem = entry.name.removesuffix(SUFFIX)
                if record.run_id != stem and not stems:
                    stems = {other.name.removesuffix(SUFFIX) for other in present}
                if record.run_id != stem and record.run_id in stems:
                    raise InvalidRecordError(
                        f"{self._folder.shown(path)}: found run id {record.run_id!a}, which has a file of "
                        "its own; expected one file for each run id; delete the copy"
                    )
                first = claimed.setdefault(record.run_id, entry.name)
                if first != entry.name:
                    raise InvalidRecordError(
                        f"{self._folder.shown(path)}: found run id {record.run_id!a}, which {first!a} has "
                        "too; expected one file for each run id; delete the copy"
                    )
            except RecordError as e:
                report(self._folder.shown(path), e)
                continue
            yield record

    def _read(self, path: str, size: int | None = None) -> RunRecord | None:
        shown = self._folder.shown(path)
        if size is not None and size > MAX_RECORD_BYTES:
            raise InvalidRecordError(
                f"{shown}: found {size:,} bytes; expected a record of at most {MAX_RECORD_BYTES:,}; delete it"
            )
        data = self._folder.read(path, MAX_RECORD_BYTES)
        return None if data is None else decode(data, source=shown)

    def _task_folders(self, usecase: str, package: str, task: str) -> list[str]:
        """Return where a task's records may be: one folder, or more where names are not safe ones.

        The engine does not encode: a folder of its own may hold a blank, say.
        """
        return ["/".join(names) for names in itertools.product(*map(_names, (usecase, package, task)))]


def parse_time(text: str) -> datetime | None:
    """Return an ISO 8601 time, in UTC where it has no zone; None when the text is no time."""
    try:
        # Python 3.10 reads neither a Z nor fractions of any length but three and six.
        text = _FRACTION.sub(
            lambda found: f"{found[0]:0<7}"[:7], text.upper().replace("Z", "+00:00"), count=1
        )
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)


def _is_record(entry: Entry) -> bool:
    return entry.name.endswith(SUFFIX) and entry.name != SUFFIX and not entry.is_folder


def _names(name: str) -> list[str]:
    """Return the file names that a name may have: as it stands where that is one name, and made safe."""
    if is_safe_part(name):
        return [name]
    as_it_stands = name.isprintable() and name.strip(". ") != "" and not set(name) & set('/\\:*?"<>|')
    return [name, safe_part(name)] if as_it_stands else [safe_part(name)]


def _folders(entries: list[Entry], wanted: str | None) -> list[str]:
    names = None if wanted is None else _names(wanted)
    return sorted(
        entry.name
        for entry in entries
        if entry.is_folder and not entry.name.startswith(".") and (names is None or entry.name in names)
    )


def _bound(name: str, given: datetime | str | None) -> datetime | None:
    if given is None:
        return None
    if isinstance(given, datetime):
        return given if given.tzinfo is not None else given.replace(tzinfo=timezone.utc)
    time = parse_time(given)
    if time is None:
        raise ConfigurationError(f"{name} is {given!r}; expected a date or time such as 2024-01-31T12:00:00")
    return time


def _within(record: RunRecord, first: datetime | None, last: datetime | None) -> bool:
    if first is None and last is None:
        return True
    text = record.started_at or record.ended_at
    time = None if text is None else parse_time(text)
    return time is not None and (first is None or time >= first) and (last is None or time <= last)


def _warn(path: str, error: RecordError) -> None:
    _logger.warning("Passed over %s: %s", path, error)
