"""Bad input: one line that says what was found, what was expected and what to do; exit code 1."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

TASK = Path(".ubunye/lineage/default/raw/raw__flights")
COMMANDS = ["list", "show", "compare", "trace", "search"]
BAD = {
    "truncated": '{"run_id": "x", "task',
    "empty": "",
    "foreign": '{"name": "package", "version": "1.0.0"}',
    "a list": "[1, 2]",
    "newer": json.dumps(
        {
            "run_id": "bad",
            "task_path": "default/raw/raw__flights",
            "usecase": "default",
            "package": "raw",
            "task_name": "raw__flights",
            "record_version": 3,
        }
    ),
}


def one_line(done: Any) -> str:
    assert done.code == 1
    assert done.out == ""
    assert "Traceback" not in done.err
    *warnings, error = done.err.splitlines()
    assert all(line.startswith("[WARNING] passed over ") for line in warnings)
    assert error.startswith("[ERROR] ")
    return str(error)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_mirror(run: Run, tmp_path: Path, command: str) -> None:
    error = one_line(run(command, "-d", tmp_path))
    assert "no records in" in error
    assert "expected <usecase>/<package>/<task>/<run_id>.json" in error
    assert "give its root with -d" in error


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_mirror_with_json(run: Run, tmp_path: Path, command: str) -> None:
    done = run(command, "-d", tmp_path, "--json")
    assert done.code == 1
    assert done.json["ok"] is False
    assert "no records in" in done.json["error"]
    assert done.err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_root_that_does_not_exist(run: Run, tmp_path: Path, command: str) -> None:
    error = one_line(run(command, "-d", tmp_path / "nowhere"))
    assert "does not exist" in error


@pytest.mark.parametrize("command", ["show", "trace", "compare"])
def test_an_unknown_run_names_those_that_are_there(run: Run, flights: Path, command: str) -> None:
    option = "--run-id2" if command == "compare" else "--run-id"
    error = one_line(run(command, "-d", flights, option, "zzzz"))
    assert "no record of run 'zzzz' of default/raw/raw__flights" in error
    assert "expected one of dddd5555, cccc4444" in error


@pytest.mark.parametrize("command", ["show", "trace"])
def test_an_unknown_task(run: Run, flights: Path, command: str) -> None:
    error = one_line(run(command, "-d", flights, "-u", "default", "-p", "raw", "-t", "nosuch"))
    assert "no record of a run of default/raw/nosuch" in error
    assert "lineage search" in error


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_mirror_with_nothing_but_an_unreadable_file(
    run: Run, tmp_path: Path, command: str, kind: str
) -> None:
    (tmp_path / TASK).mkdir(parents=True)
    (tmp_path / TASK / "bad.json").write_text(BAD[kind])
    error = one_line(run(command, "-d", tmp_path))
    assert "bad.json: found" in error
    assert "expected" in error
    done = run(command, "-d", tmp_path, "--json")
    assert done.code == 1
    assert "bad.json: found" in done.json["error"]


@pytest.mark.parametrize("kind", BAD)
def test_a_run_whose_own_file_is_unreadable(run: Run, flights: Path, kind: str) -> None:
    (flights / TASK / "bad.json").write_text(BAD[kind])
    assert "bad.json: found" in one_line(run("show", "-d", flights, "--run-id", "bad"))


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unreadable_file_beside_others_is_named_and_passed_over(
    run: Run, flights: Path, command: str
) -> None:
    (flights / TASK / "bad.json").write_text(BAD["truncated"])
    done = run(command, "-d", flights, "--json")
    assert done.code == 0
    assert done.json
    assert len(done.err.splitlines()) == 1
    assert "[WARNING] passed over" in done.err
    assert "bad.json" in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--since", "yesterday"], "since is 'yesterday'; expected a date or time"),
        (["--status", "failed"], "--status 'failed'; expected success, error or running"),
    ],
)
def test_filters_that_say_nothing(run: Run, flights: Path, arguments: list[str], told: str) -> None:
    assert told in one_line(run("search", "-d", flights, *arguments))


def test_a_root_that_cannot_be_one(run: Run) -> None:
    assert "NUL" in one_line(run("list", "-d", "a\0b"))


def test_a_file_system_that_is_not_there(run: Run) -> None:
    assert "nosuchprotocol" in one_line(run("list", "-d", "nosuchprotocol://x"))


def test_an_option_that_does_not_exist_is_a_usage_error(run: Run) -> None:
    assert run("list", "--colour").code == 2
