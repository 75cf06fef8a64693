"""The commit that a task's code is at, from real Git repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ubunye_orchestrate.records import repository
from ubunye_orchestrate.records.code import code_evidence
from ubunye_orchestrate.records.repository import git_state

from .projects import imported


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "_known", {})


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "pipelines").mkdir(parents=True)
    (folder / "pipelines" / "job.py").write_text("def work():\n    return 1\n")
    (folder / ".gitignore").write_text("__pycache__\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_the_commit_and_whether_files_differ_from_it(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setattr(repository, "_KEPT_SECONDS", -1.0)
    (checkout / "unknown.txt").write_text("Git does not keep it")
    assert git_state(str(checkout / "pipelines")) == {"commit": commit, "dirty": False}
    (checkout / "pipelines" / "job.py").write_text("def work():\n    return 2\n")
    assert git_state(str(checkout / "pipelines")) == {"commit": commit, "dirty": True}
    git(checkout, "commit", "-q", "-a", "-m", "second")
    assert git_state(str(checkout)) == {"commit": git(checkout, "rev-parse", "HEAD"), "dirty": False}


def test_a_repository_is_asked_once_in_a_while(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = git_state(str(checkout))
    assert first is not None
    monkeypatch.setattr(repository.subprocess, "run", None)
    assert git_state(str(checkout / "pipelines")) == first


def test_another_repository_in_the_environment_is_not_taken_for_it(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert git_state(str(checkout)) == {"commit": commit, "dirty": False}


def test_without_a_repository_a_commit_or_git_nothing_is_known(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert git_state(str(tmp_path)) is None
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    assert git_state(str(tmp_path / "empty")) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(str(checkout)) is None


def test_a_git_that_takes_too_long_is_left(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:/usr/bin:/bin")
    monkeypatch.setattr(repository, "_TIMEOUT_SECONDS", 0.2)
    assert git_state(str(checkout)) is None


def test_the_evidence_of_code_holds_it(checkout: Path) -> None:
    with imported(checkout / "pipelines", "job") as module:
        evidence = code_evidence(module.work)
    expected = {"commit": git(checkout, "rev-parse", "HEAD"), "dirty": False}
    assert evidence.git == expected
    assert evidence.as_record()["git"] == expected
