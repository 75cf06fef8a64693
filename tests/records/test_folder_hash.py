"""The hash of a task's folder: the engine's, byte for byte."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest
from ubunye.lineage.evidence import code_hash as engine_hash

from tests.records.rights import without_rights
from tests.records.samples import GENUINE, GENUINE_FILES
from ubunye_orchestrate.errors import RecordError
from ubunye_orchestrate.records.code import folder_hash
from ubunye_orchestrate.records.codec import decode

# Which folder of sources each case was run from.
SOURCES = {"c_code_changed": {"base", "code"}, "f_failed_transform": {"base", "raise"}}


def put(base: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(data)
    return base


def by_hand(files: dict[str, bytes]) -> str:
    text = b"".join(name.encode() + b"\0" + data + b"\0" for name, data in files.items())
    return "sha256:" + hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    "case", sorted(path.name for path in GENUINE.iterdir() if (path / ".ubunye").exists())
)
def test_the_code_hash_of_every_genuine_record_is_reproduced(case: str) -> None:
    names = SOURCES.get(case, {path.name for path in (GENUINE / "sources").iterdir()})
    known = {folder_hash(GENUINE / "sources" / n / "pipelines/shop/sales/daily_totals") for n in names}
    records = [
        decode(path.read_bytes(), source=path.name)
        for path in GENUINE_FILES
        if path.relative_to(GENUINE).parts[0] == case
    ]
    hashes = {record.code_hash for record in records if record.record_version == 2}
    assert hashes <= known
    if case in SOURCES:
        assert hashes == known
        assert len(hashes) == 2


def test_each_file_counts_with_its_path_and_windows_line_ends_do_not(tmp_path: Path) -> None:
    put(tmp_path, {"a.py": b"x = 1\r\ny = 2\rz\n", "sub/b.py": b"", "notes.txt": b"no"})
    assert folder_hash(tmp_path) == by_hand({"a.py": b"x = 1\ny = 2\rz\n", "sub/b.py": b""})


ODD = {
    "a.py": b"1",
    "a/b.py": b"2",
    "a-b.py": b"3",
    "B.py": b"4",
    "\u00e9.py": b"5",
    "a/c/d.py": b"6",
    ".hidden.py": b"7",
    ".git/x.py": b"8",
    "a/.ipynb_checkpoints/c.py": b"9",
    "__pycache__/x.py": b"10",
    "a/__pycache__/x.py": b"11",
    "UPPER.PY": b"12",
    "build/z.py": b"13",
    "stub.pyi": b"14",
}


def test_the_engine_has_the_same_hash(tmp_path: Path) -> None:
    put(tmp_path, ODD)
    assert folder_hash(tmp_path) == engine_hash(str(tmp_path))
    for name, data in ODD.items():
        (tmp_path / name).write_bytes(data + b" changed")
        assert folder_hash(tmp_path) == engine_hash(str(tmp_path))


def test_environments_do_not_count(tmp_path: Path) -> None:
    before = folder_hash(put(tmp_path, {"a.py": b"1"}))
    put(
        tmp_path,
        {
            "venv/pyvenv.cfg": b"",
            "venv/lib/x.py": b"x",
            "conda/conda-meta/history": b"",
            "conda/x.py": b"x",
            "node_modules/x.py": b"x",
            "lib/site-packages/x.py": b"x",
            "__pypackages__/x.py": b"x",
        },
    )
    assert folder_hash(tmp_path) == before
    # The folder itself may be an environment's root: a project beside its own pyvenv.cfg.
    assert folder_hash(put(tmp_path, {"pyvenv.cfg": b""})) == before


def test_a_folder_without_python_has_no_hash(tmp_path: Path) -> None:
    assert folder_hash(put(tmp_path, {"a.txt": b""})) is None


def test_a_change_shows_and_its_undoing_too(tmp_path: Path) -> None:
    first = folder_hash(put(tmp_path, {"a.py": b"1"}))
    os.utime(tmp_path / "a.py", (1, 1))
    assert folder_hash(tmp_path) == first
    second = folder_hash(put(tmp_path, {"a.py": b"2"}))
    assert second != first
    assert folder_hash(put(tmp_path, {"a.py": b"1"})) == first


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_to_folders_are_not_followed_and_those_to_files_are(tmp_path: Path) -> None:
    put(tmp_path, {"task/a.py": b"1", "other/b.py": b"2"})
    before = folder_hash(tmp_path / "task")
    (tmp_path / "task/loop").symlink_to(tmp_path / "task")
    (tmp_path / "task/other").symlink_to(tmp_path / "other")
    assert folder_hash(tmp_path / "task") == before
    (tmp_path / "task/b.py").symlink_to(tmp_path / "other/b.py")
    assert folder_hash(tmp_path / "task") == by_hand({"a.py": b"1", "b.py": b"2"})


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_a_file_that_cannot_be_read_leaves_no_hash_but_a_reason(open_path: Path) -> None:
    put(open_path, {"a.py": b"1", "b.py": b"2"})
    (open_path / "b.py").chmod(0)
    with without_rights(), pytest.raises(RecordError, match=r"b\.py cannot be read: Permission denied"):
        folder_hash(open_path)
    (open_path / "b.py").unlink()
    (open_path / "b.py").symlink_to(open_path / "nothing.py")
    with pytest.raises(RecordError, match=r"b\.py cannot be read: No such file"):
        folder_hash(open_path)
    with pytest.raises(RecordError, match="missing cannot be read"):
        folder_hash(open_path / "missing")
