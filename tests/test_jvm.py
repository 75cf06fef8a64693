"""The Java that tests run on is the one that was asked for, if it is new enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import jvm


def _fake_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    java.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("version", "major"), [("25.0.3", 25), ("19", 19), ("17.0.15", 17), ("1.8.0_402", 1)]
)
def test_the_version_is_what_java_says(tmp_path: Path, version: str, major: int) -> None:
    assert jvm.java_version(_fake_java(tmp_path, version)) == major


def test_a_folder_without_java_has_none(tmp_path: Path) -> None:
    assert jvm.java_version(tmp_path) == 0


def test_what_was_asked_for_comes_first_unless_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = _fake_java(tmp_path / "old", "17.0.1"), _fake_java(tmp_path / "new", "21.0.1")
    monkeypatch.setenv("UBUNYE_JDK", str(old))
    monkeypatch.setenv("JAVA_HOME", str(new))
    assert jvm.find_jdk() == new
    monkeypatch.setenv("UBUNYE_JDK", str(new))
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert jvm.find_jdk() == new
