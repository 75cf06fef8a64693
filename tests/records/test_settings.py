"""Settings: as given, else as the environment has them, else their defaults; resolved once."""

from __future__ import annotations

import dataclasses
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.records import settings as module
from ubunye_orchestrate.records.settings import is_url, resolve_settings


def test_what_is_given_wins_over_the_environment_and_that_over_the_default(tmp_path: Path) -> None:
    env = {"UBUNYE_ROOT": str(tmp_path / "env"), "UBUNYE_USECASE": "shop", "UBUNYE_PROFILE": "prod"}
    given = resolve_settings(str(tmp_path), "mine", "branch", False, "UTC", env)
    assert (given.root, given.usecase, given.profile) == (str(tmp_path), "mine", "branch")
    assert (given.hash_inputs, given.naive_timestamps) == (False, "UTC")
    from_env = resolve_settings(env=env)
    assert (from_env.root, from_env.usecase, from_env.profile) == (str(tmp_path / "env"), "shop", "prod")
    default = resolve_settings(env={})
    assert (default.root, default.usecase, default.profile) == (os.getcwd(), "default", "default")
    assert (default.hash_inputs, default.naive_timestamps) == (True, "ntz")


def test_a_deployment_of_dagster_plus_is_a_profile() -> None:
    env = {"UBUNYE_ROOT": "x", "DAGSTER_CLOUD_DEPLOYMENT_NAME": "branch-7"}
    assert resolve_settings(env=env).profile == "branch-7"
    assert resolve_settings(env={**env, "UBUNYE_PROFILE": " "}).profile == "branch-7"
    assert resolve_settings(env={**env, "UBUNYE_PROFILE": "mine"}).profile == "mine"


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UBUNYE_ROOT", str(tmp_path))
    assert resolve_settings().root == str(tmp_path)


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_text_is_not_given(empty: str, tmp_path: Path) -> None:
    env = {"UBUNYE_ROOT": str(tmp_path), "UBUNYE_USECASE": empty, "UBUNYE_PROFILE": empty}
    found = resolve_settings(empty, empty, empty, env=env)
    assert (found.root, found.usecase, found.profile) == (str(tmp_path), "default", "default")


def test_the_working_directory_is_named_once_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.INFO):
        assert resolve_settings(env={}).root == str(tmp_path)
        resolve_settings(env={})
        resolve_settings(root="elsewhere", env={})
    assert caplog.text.count(f"Records go to {tmp_path}/.ubunye") == 1


@pytest.mark.parametrize(
    "url", ["s3://bucket/x", "memory://", "file:///data", "simplecache::s3://b/x", "abfss://c@a.dfs/x"]
)
def test_a_url_is_kept(url: str) -> None:
    assert resolve_settings(url, env={}).root == url


@pytest.mark.parametrize("path", ["C:\\data", "C:/data", "data", "/data", "a:b", "c://x"])
def test_a_path_is_no_url(path: str) -> None:
    assert not is_url(path)


def test_a_local_root_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert resolve_settings("data/../mirror", env={}).root == str(tmp_path / "mirror")
    assert resolve_settings("~/mirror", env={}).root == os.path.expanduser("~/mirror")
    assert resolve_settings(Path("x"), env={}).root == str(tmp_path / "x")


def test_a_upath_keeps_its_url() -> None:
    assert resolve_settings(UPath("memory://x/y"), env={}).root.startswith("memory:")


def test_a_usecase_is_made_safe_as_a_folder_name() -> None:
    assert resolve_settings("x", "my shop/eu", env={}).usecase == "my%20shop%2Feu"


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"hash_inputs": "no"}, ["hash_inputs", "'no'", "True or False"]),
        ({"naive_timestamps": "Mars/Olympus"}, ["naive_timestamps", "Mars/Olympus", "ntz"]),
        ({"naive_timestamps": "../etc"}, ["naive_timestamps"]),
        ({"usecase": 7}, ["usecase", "7"]),
        ({"profile": ["x"]}, ["profile", "list"]),
        ({"root": "a\0b"}, ["root", "NUL"]),
    ],
)
def test_a_value_that_cannot_work_is_refused(changes: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_settings(**{"root": "x", "env": {}, **changes})
    for name in names:
        assert name in str(caught.value)


@pytest.mark.parametrize("zone", ["ntz", "UTC", "Europe/Berlin", "America/New_York"])
def test_time_zones_are_taken(zone: str) -> None:
    assert resolve_settings("x", naive_timestamps=zone, env={}).naive_timestamps == zone


def test_a_working_directory_that_is_gone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(module.os, "getcwd", gone)
    with pytest.raises(ConfigurationError, match="set UBUNYE_ROOT"):
        resolve_settings(env={})


def test_credentials_are_not_shown() -> None:
    settings = resolve_settings("s3://key:pa55word@bucket/x?token=abc", env={})
    assert settings.shown_root == "s3://key:***@bucket/x?token=***"
    assert "pa55word" not in repr(settings)


def test_settings_are_frozen() -> None:
    settings: Any = resolve_settings("x", env={})
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.root = "y"
