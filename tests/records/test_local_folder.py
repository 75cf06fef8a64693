"""What can go wrong on a local disk: rights, links, names, two writers at once, a process that is killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.records.rights import without_rights
from tests.records.samples import a_record
from ubunye_orchestrate.errors import InvalidRecordError, RecordError, RecordNotFoundError, StoreError
from ubunye_orchestrate.records import folders
from ubunye_orchestrate.records.store import RecordStore

TASK = ("shop", "sales", "totals")
FOLDER = Path(".ubunye/lineage/shop/sales/totals")


def one_line(error: RecordError) -> str:
    text = str(error)
    assert "\n" not in text
    assert text.isprintable()
    return text


def test_a_missing_root_is_an_error_and_an_empty_root_is_not(tmp_path: Path) -> None:
    assert RecordStore(tmp_path).list_runs(*TASK) == []
    missing = RecordStore(tmp_path / "typo")
    for action in (
        lambda: missing.list_runs(*TASK),
        lambda: list(missing.tasks()),
        lambda: list(missing.search()),
    ):
        with pytest.raises(StoreError) as caught:
            action()
        assert "typo does not exist; expected the folder that holds .ubunye" in one_line(caught.value)


def test_writing_makes_a_missing_root(tmp_path: Path) -> None:
    RecordStore(tmp_path / "new/place").save(a_record())
    assert (tmp_path / "new/place" / FOLDER / "run-1.json").is_file()


def test_a_root_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    store = RecordStore(file)
    for action in (
        lambda: store.list_runs(*TASK),
        lambda: list(store.tasks()),
        lambda: store.load(*TASK, "run-1"),
        lambda: store.save(a_record()),
    ):
        with pytest.raises(StoreError) as caught:
            action()
        assert "Not a directory (NotADirectoryError)" in one_line(caught.value)


def test_a_name_with_control_characters_is_shown_escaped(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "a\x1b[2J\nb")
    store.save(a_record())
    (tmp_path / "a\x1b[2J\nb" / FOLDER / "x\n.json").write_bytes(b"")
    found: list[str] = []
    store.list_runs(*TASK, on_invalid=lambda path, error: found.append(one_line(error)))
    assert "a\\x1b[2J\\nb" in found[0]


@pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")
def test_folders_and_files_without_rights(open_path: Path) -> None:
    store = RecordStore(open_path)
    store.save(a_record())
    store.save(a_record(task_name="closed"))
    store.save(a_record("secret"))
    (open_path / FOLDER / "secret.json").chmod(0)
    closed = open_path / FOLDER.parent / "closed"
    closed.chmod(0)
    try:
        with without_rights():
            found: list[str] = []
            runs = list(store.search(on_invalid=lambda path, error: found.append(one_line(error))))
            assert [run.run_id for run in runs] == ["run-1"]
            assert len(found) == 2
            assert "closed cannot be listed: Permission denied" in found[0]
            assert "secret.json cannot be read: Permission denied" in found[1]
            for action in (
                lambda: store.list_runs("shop", "sales", "closed"),
                lambda: store.load("shop", "sales", "closed", "run-1"),
                lambda: store.load(*TASK, "secret"),
                lambda: store.save(a_record(task_name="closed")),
                lambda: store.save(a_record(task_name="new")),
            ):
                with pytest.raises(StoreError) as caught:
                    action()
                assert "Permission denied (PermissionError)" in one_line(caught.value)
    finally:
        closed.chmod(0o755)
    assert [path.name for path in closed.iterdir()] == ["run-1.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_in_a_circle_do_not_hold_it(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    store.save(a_record())
    lineage = tmp_path / ".ubunye/lineage"
    (lineage / "loop").symlink_to(lineage)
    (lineage / "shop" / "loop").symlink_to(lineage)
    (lineage / "shop/sales" / "loop").symlink_to("loop")
    (tmp_path / FOLDER / "loop.json").symlink_to("loop.json")
    (tmp_path / FOLDER / "void.json").symlink_to("nothing")
    found: list[str] = []
    runs = list(store.search(usecase="shop", on_invalid=lambda path, error: found.append(one_line(error))))
    assert [run.run_id for run in runs] == ["run-1"]
    assert len(found) == 2
    assert any("loop.json cannot be read: Too many levels of symbolic links" in text for text in found)
    assert any("void.json cannot be read: No such file or directory" in text for text in found)
    assert len(list(store.tasks())) < 20


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.timeout(20)
def test_a_pipe_and_a_folder_named_as_records_are_not_opened(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    store.save(a_record())
    os.mkfifo(tmp_path / FOLDER / "pipe.json")
    (tmp_path / FOLDER / "folder.json").mkdir()
    found: list[str] = []
    runs = store.list_runs(*TASK, on_invalid=lambda path, error: found.append(one_line(error)))
    assert [run.run_id for run in runs] == ["run-1"]
    assert [text.rpartition("/")[2] for text in found] == ["pipe.json cannot be read: no regular file"]
    for name in ("pipe", "folder"):
        with pytest.raises(StoreError, match="no regular file"):
            store.load(*TASK, name)


def test_a_giant_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RecordStore(tmp_path)
    store.save(a_record())
    with (tmp_path / FOLDER / "giant.json").open("wb") as stream:
        stream.truncate(10 * 1024**3)  # sparse
    found: list[RecordError] = []
    assert len(store.list_runs(*TASK, on_invalid=lambda path, error: found.append(error))) == 1
    assert isinstance(found[0], InvalidRecordError)
    assert "found 10,737,418,240 bytes" in one_line(found[0])
    # Its size is not asked for first here: no more than the limit is read.
    for module in ("store", "codec"):
        monkeypatch.setattr(f"ubunye_orchestrate.records.{module}.MAX_RECORD_BYTES", 1000)
    with pytest.raises(InvalidRecordError, match="found 1,001 bytes"):
        store.load(*TASK, "giant")


def test_a_file_that_vanishes_while_it_is_listed_is_no_error(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    for minute in range(3):
        store.save(a_record(f"r{minute}", minute))
    runs = store.iter_runs(*TASK)
    assert next(runs).run_id == "r2"
    (tmp_path / FOLDER / "r1.json").unlink()
    assert [run.run_id for run in runs] == ["r0"]


def test_a_failed_write_leaves_the_old_record_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RecordStore(tmp_path)
    store.save(a_record())

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError) as caught:
        store.save(a_record(error="new", status="error"))
    assert "run-1.json cannot be written: No space left on device" in one_line(caught.value)
    assert store.load(*TASK, "run-1").error is None
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["run-1.json"]


def test_the_whole_is_on_the_disk_before_the_name_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (events.append("fsync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append("replace"), replace(a, b)))
    RecordStore(tmp_path).save(a_record())
    assert events == ["fsync", "replace"]


def write_over_and_over(root: str, name: str, size: int, times: int, together: Any = None) -> None:
    store = RecordStore(root)
    if together is not None:
        together.wait()
    for count in range(times):
        store.save(a_record(error=name * size, status="error", variables={"count": count}))


@pytest.mark.timeout(120)
def test_two_processes_that_write_one_record_never_tear_it(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    together = spawn.Barrier(2)
    writers = [
        spawn.Process(target=write_over_and_over, args=(str(tmp_path), name, size, 300, together))
        for name, size in (("a", 20_000), ("b", 90_000))
    ]
    store = RecordStore(tmp_path)
    store.save(a_record(error="a", status="error"))
    for writer in writers:
        writer.start()
    seen: set[str] = set()
    while any(writer.is_alive() for writer in writers):
        record = store.load(*TASK, "run-1")  # raises when the file is torn or away for a moment
        assert record.error is not None
        assert len(set(record.error)) == 1
        assert len(record.error) in (1, 20_000, 90_000)
        seen.add(f"{record.error[0]}{record.variables.get('count')}")
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert len(seen) > 10
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["run-1.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.timeout(120)
def test_a_process_killed_while_it_writes_leaves_a_whole_record(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    store = RecordStore(tmp_path)
    writer = spawn.Process(target=write_over_and_over, args=(str(tmp_path), "k", 2_000_000, 10_000))
    writer.start()
    while not (tmp_path / FOLDER / "run-1.json").exists():
        time.sleep(0.01)
    time.sleep(0.3)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    assert store.load(*TASK, "run-1").error == "k" * 2_000_000
    assert len(store.list_runs(*TASK)) == 1


def test_names_that_differ_in_case_have_two_folders_where_the_disk_tells_them_apart(tmp_path: Path) -> None:
    if folders._ignores_case(str(tmp_path)):
        pytest.skip("this disk does not tell them apart")
    store = RecordStore(tmp_path)
    store.save(a_record(task_name="Totals"))
    store.save(a_record())
    assert list(store.tasks()) == [("shop", "sales", "Totals"), ("shop", "sales", "totals")]


def test_names_that_differ_in_case_never_share_a_folder_where_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What macOS and Windows answer; the names are then compared as they stand on the disk.
    monkeypatch.setattr(folders, "_ignores_case", lambda folder: True)
    store = RecordStore(tmp_path)
    store.save(a_record(task_name="Totals"))
    store.save(a_record(task_name="Totals", status="error", error="E"))
    with pytest.raises(StoreError) as caught:
        store.save(a_record())
    assert "'totals' and 'Totals' are one name on this file system" in one_line(caught.value)
    with pytest.raises(StoreError, match=r"'RUN-1\.json' and 'run-1\.json'"):
        store.save(a_record("RUN-1", task_name="Totals"))
    assert store.load("shop", "sales", "Totals", "run-1").error == "E"


def test_a_record_beside_a_broken_name_is_found(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / ".json").write_text("{}")
    assert RecordStore(tmp_path).list_runs(*TASK) == []
    with pytest.raises(RecordNotFoundError):
        RecordStore(tmp_path).load(*TASK, "")


def test_files_have_the_rights_that_the_user_gives_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        path = Path(RecordStore(tmp_path).save(a_record()))
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert json.loads(path.read_text())["run_id"] == "run-1"
