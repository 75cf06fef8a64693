"""The newest n of 100,000 records read n bodies and one listing; a search says what it finds as it goes."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest

from ubunye_orchestrate.records.codec import encode
from ubunye_orchestrate.records.folders import LocalFolder, RemoteFolder
from ubunye_orchestrate.records.store import RecordStore

Run = Callable[..., Any]

MANY = 100_000
TASK = ".ubunye/lineage/default/raw/raw__flights"


class Counted:
    """The listings and readings of folders, by class, while a command runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listed: list[str] = []
        self.read: list[str] = []
        for folder in (LocalFolder, RemoteFolder):
            monkeypatch.setattr(folder, "entries", self.noting(self.listed, folder.entries))
            monkeypatch.setattr(folder, "read", self.noting(self.read, folder.read))

    def noting(self, seen: list[str], original: Any) -> Any:
        def noted(folder: Any, path: str, *rest: Any) -> Any:
            seen.append(folder.shown(path))
            return original(folder, path, *rest)

        return noted

    def of(self, run: Run, *arguments: object) -> tuple[list[str], int]:
        """Run a command; return the listings of the task's folder, and how many bodies were read."""
        self.listed.clear(), self.read.clear()
        done = run(*arguments)
        assert done.code == 0, done.err
        bodies = [path for path in self.read if f"{TASK}/" in path]
        return [path for path in self.listed if path.endswith(TASK)], len(bodies)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """100,000 files of one task: the newest twenty are records, the others are empty, and are never read."""
    root = tmp_path_factory.mktemp("many")
    folder = root / TASK
    folder.mkdir(parents=True)
    for number in range(MANY):
        path = f"{folder}/old{number:06}.json"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        os.utime(path, (number, number))
    yield root
    shutil.rmtree(root)


@pytest.fixture
def newest(many: Path, make: SimpleNamespace) -> Path:
    store = RecordStore(many)
    for day in range(1, 21):
        store.save(make.record(f"new{day:02}aaaa", day, content=str(day % 2)))
    return many


NAMED = ("-u", "default", "-p", "raw", "-t", "raw__flights")


@pytest.mark.parametrize(
    ("arguments", "listings", "bodies"),
    [
        (("list", "-n", 1), 1, 1),
        (("list", "-n", 7, "--json"), 1, 7),
        (("list",), 1, 10),
        (("compare",), 1, 2),
        (("show",), 1, 1),
        (("trace",), 1, 1),
        (("show", "--run-id", "new03aaaa"), 0, 1),
        # A beginning is looked for among names.
        (("show", "--run-id", "new03"), 1, 2),
        (("show", "--run-id", "previous"), 3, 2),
        (("show", "--run-id", "baseline"), 3, 2),
        (("compare", "--run-id2", "new03"), 4, 3),
    ],
)
def test_no_more_is_read_than_is_shown(
    run: Run, newest: Path, counted: Counted, arguments: tuple[Any, ...], listings: int, bodies: int
) -> None:
    listed, read = counted.of(run, *arguments, "-d", newest, *NAMED)
    assert len(listed) <= listings
    assert read <= bodies


def test_the_newest_come_first(run: Run, newest: Path) -> None:
    listed = run("list", "-d", newest, *NAMED, "-n", 3, "--json").json
    assert [record["run_id"] for record in listed] == ["new20aaaa", "new19aaaa", "new18aaaa"]


def test_behind_a_url_too(run: Run, make: SimpleNamespace, counted: Counted) -> None:
    root = "memory://many"
    store = RecordStore(root)
    for day in range(1, 4):
        store.save(make.record(f"new{day}", day))
    # Put there by hand: this file system's own functions take quadratic time.
    files = fsspec.filesystem("memory").store
    (first, *_) = [path for path in files if path.startswith("/many/")]
    old = copy.copy(files[first])
    old.modified = datetime(1990, 1, 1, tzinfo=timezone.utc)
    old.created = old.modified
    files.update({f"/many/{TASK}/old{number:06}.json": old for number in range(MANY)})
    try:
        listed, read = counted.of(run, "list", "-d", root, *NAMED, "-n", 3)
        assert (len(listed), read) == (1, 3)
    finally:
        for path in [path for path in files if path.startswith("/many/")]:
            del files[path]


def test_partitions_are_told_by_names(
    run: Run, tmp_path: Path, make: SimpleNamespace, counted: Counted
) -> None:
    store = RecordStore(tmp_path)
    for day in range(1, 21):
        for month in ("jan", "feb", "mar"):
            dagster = {"asset_key": ["raw", "flights"], "partition_keys": [month]}
            store.save(make.record(f"run{day:02}--{month}", day, dagster=dagster))
    for command, bodies in (("list", 5), ("compare", 2)):
        more = ("-n", 5) if command == "list" else ()
        listed, read = counted.of(run, command, "-d", tmp_path, *NAMED, "--partition", "feb", *more)
        assert (len(listed), read) == (1, bodies)


def test_the_run_before_is_looked_for_among_a_bounded_number(
    run: Run, tmp_path: Path, make: SimpleNamespace, counted: Counted
) -> None:
    RecordStore(tmp_path).save(make.record("newest", 28, profile="prod"))
    data = json.loads(encode(make.record("x", 1, profile="branch")))
    for number in range(300):
        path = tmp_path / TASK / f"old{number:03}.json"
        path.write_text(json.dumps({**data, "run_id": path.stem}))
        os.utime(path, (number, number))
    done = run("show", "-d", tmp_path, *NAMED, "--run-id", "previous")
    assert done.json["run_id"] == "old299", "of the same partition at least"
    _, read = counted.of(run, "show", "-d", tmp_path, *NAMED, "--run-id", "previous")
    assert read <= 201


def test_search_says_each_record_before_it_reads_the_next(
    tmp_path: Path, make: SimpleNamespace, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from ubunye_orchestrate.cli import output
    from ubunye_orchestrate.cli.app import app

    data = json.loads(encode(make.record("x", 1)))
    for task in range(20):
        for number in range(5):
            path = tmp_path / f".ubunye/lineage/default/raw/task{task:02}/run{number}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({**data, "run_id": f"run{number}", "task_name": f"task{task:02}"}))
    read_when_written: list[int] = []
    original = output._write

    def written(text: str, **options: Any) -> None:
        if "run" in text:
            read_when_written.append(len(counted.read))
        original(text, **options)

    monkeypatch.setattr(output, "_write", written)
    for options in ([], ["--json"]):
        counted.read.clear(), read_when_written.clear()
        done = CliRunner().invoke(app, ["lineage", "search", "-d", str(tmp_path), *options])
        assert done.exit_code == 0
        assert len(counted.read) == 100
        # The first is read before the head of the table, to tell whether there is any.
        assert read_when_written == list(range(1, 101)), options
