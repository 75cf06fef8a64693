"""What reaches a terminal, and what is loaded to get there."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.records.store import RecordStore

Run = Callable[..., Any]

NASTY = "x\x1b[2J\x9b1m\u202eevil\x07"


def bare(text: str) -> bool:
    """Whether nothing but text and newlines is in it."""
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture
def hostile(tmp_path: Path, make: SimpleNamespace) -> Path:
    step = make.step(
        name=NASTY,
        direction="input",
        format=NASTY,
        location=NASTY,
        hash_error=NASTY,
        producer=[make.producer(partition=NASTY, run_id=NASTY)],
    )
    for day, run_id in enumerate(["one", "two"], start=1):
        RecordStore(tmp_path).save(
            make.record(
                run_id,
                day,
                inputs=[step],
                version=NASTY + run_id,
                error=f"E: {NASTY}\n{NASTY}",
                status="error",
                started_at=NASTY,
                variables={NASTY: NASTY + run_id},
                timings=[{"step": NASTY, "input": NASTY, "seconds": 1}],
                expectations=[{"output": NASTY, "rule": NASTY, "severity": NASTY, "detail": NASTY}],
                code={"function": NASTY, "functions": {NASTY: NASTY + run_id}, "error": NASTY},
                dagster={"asset_key": [NASTY], "partition_keys": [NASTY], "attempt": NASTY},
            )
        )
    return tmp_path


@pytest.mark.parametrize("command", ["list", "show", "compare", "trace", "search"])
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_nothing_of_a_record_is_printed_raw(run: Run, hostile: Path, command: str, option: list[str]) -> None:
    done = run(command, "-d", hostile, *option)
    assert done.code == 0, done.err
    assert bare(done.out)
    assert "evil" in done.out or command in ("list", "search")
    if option:
        json.loads(done.out)


def test_escapes_in_json_are_those_of_json(run: Run, hostile: Path) -> None:
    done = run("show", "-d", hostile)
    assert done.json["inputs"][0]["name"] == NASTY
    assert "\\u202e" in done.out


def test_an_input_that_was_not_hashed_has_a_dash_for_its_rows(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    hashed = make.step(name="a", direction="input", row_count=3)
    not_hashed = make.step(name="b", direction="input", hash_error="not hashed: over budget")
    store = RecordStore(tmp_path)
    store.save(make.record("one", 1, inputs=[not_hashed]))
    store.save(make.record("two", 2, inputs=[hashed, not_hashed]))
    listed = run("list", "-d", tmp_path).out.splitlines()
    assert [line.split()[-2] for line in listed[-2:]] == ["in:3,-", "in:-"]
    traced = run("trace", "-d", tmp_path, "--run-id", "one").out
    assert "rows     : -" in traced
    assert "data     : unknown (not hashed: over budget)" in traced
    compared = run("compare", "-d", tmp_path, "--run-id1", "one", "--run-id2", "one").out
    assert "row_count: unknown (not recorded)" in compared
    assert "data_hash: unknown (not hashed: over budget)" in compared


def test_trace_names_partition_attempt_functions_and_producers(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    step = make.step(
        name="raw/planes",
        direction="input",
        hash_scope="stored_partition",
        hash_reused_from="run-0",
        source_changed=True,
        producer=[make.producer(partition="2013-01", run_id="run-9", storage_id=4), make.producer()],
    )
    dagster = {
        "asset_key": ["raw", "flights"],
        "partition_keys": ["2013-01"],
        "attempt": 1,
        "step_status": "error",
    }
    RecordStore(tmp_path).save(make.record("one", 1, inputs=[step], dagster=dagster))
    lines = [line.strip() for line in run("trace", "-d", tmp_path).out.splitlines()]
    for line in (
        "Asset:   raw/flights",
        "Partition: 2013-01",
        "Attempt: 1 (counted from 0)",
        "Step:    error",
        "read from: partition 2013-01, run run-9",
        "read from: an unknown run",
        "reused   : the hash of run run-0",
        "source   : moved between read and hash",
        "hash of  : stored_partition",
        "(flights.raw)",
        "function    : flights.raw sha256:1",
    ):
        assert line in lines


def on_a_terminal(*arguments: object, **environment: str) -> str:
    """What a command writes to a terminal."""
    terminal, side = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "UBUNYE_ROOT")}
    env |= {"TERM": "xterm", **environment}
    command = [sys.executable, "-m", "ubunye_orchestrate.cli", "lineage", *map(str, arguments)]
    with subprocess.Popen(command, stdin=side, stdout=side, stderr=side, env=env) as process:
        os.close(side)
        written = b""
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            written += piece
        process.wait()
    os.close(terminal)
    return written.decode()


@pytest.mark.parametrize(
    ("command", "colour"), [(("compare",), "33"), (("gate", "--max-rows", "1"), "31"), (("gate",), "32")]
)
def test_colours_on_a_terminal_only_and_not_where_they_are_unwanted(
    flights: Path, command: tuple[str, ...], colour: str
) -> None:
    arguments = (*command, "-d", flights)
    coloured = on_a_terminal(*arguments)
    assert f"\x1b[{colour}m" in coloured
    plain = on_a_terminal(*arguments, NO_COLOR="1")
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[\d*m", "", coloured) == plain
    assert "\x1b" not in on_a_terminal(*arguments, TERM="dumb")
    whole = [sys.executable, "-m", "ubunye_orchestrate.cli", "lineage", *map(str, arguments)]
    piped = subprocess.run(whole, capture_output=True, text=True, check=False).stdout
    assert piped == plain.replace("\r\n", "\n")


def test_help_has_no_colours(flights: Path) -> None:
    assert "\x1b" not in on_a_terminal("gate", "--help")


def test_a_terminal_that_cannot_show_a_letter_gets_its_escape(tmp_path: Path, make: SimpleNamespace) -> None:
    RecordStore(tmp_path).save(make.record("one", 1, version="Zürich", error="läuft", status="error"))
    for command in ("trace", "show"):
        done = subprocess.run(
            [sys.executable, "-m", "ubunye_orchestrate.cli", "lineage", command, "-d", str(tmp_path)],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )
        assert done.stdout.isascii()
        if command == "show":
            assert json.loads(done.stdout)["version"] == "Zürich"


HEAVY = {"dagster", "pandas", "pyarrow", "numpy", "polars", "duckdb", "pyspark", "fsspec", "upath"}
COMMANDS = {
    "list": (),
    "show": (),
    "compare": (),
    "why": (),
    "trace": (),
    "search": (),
    "assets": (),
    "gate": (),
    "accept": ("--why", "x"),
    "prune": ("--keep", "1"),
}


def loaded_by(*arguments: object) -> set[str]:
    """The modules that a command has loaded when it ends."""
    script = (
        "import sys\n"
        "from ubunye_orchestrate.cli import main\n"
        f"sys.argv = {['x', *map(str, arguments)]!r}\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as e:\n"
        "    assert e.code == 0, e.code\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_neither_dagster_nor_any_frame_library(flights: Path, command: str) -> None:
    loaded = loaded_by("lineage", command, "-d", flights, *COMMANDS[command])
    assert not loaded & HEAVY
    assert "ubunye_orchestrate.records.model" in loaded


@pytest.mark.parametrize("arguments", [("--help",), ("lineage", "--help"), ("lineage", "gate", "--help")])
def test_help_loads_no_model_either(arguments: tuple[str, ...]) -> None:
    loaded = loaded_by(*arguments)
    assert not loaded & {*HEAVY, "rich"}
    assert not {name for name in loaded if name.startswith("ubunye_orchestrate.records")}


@pytest.mark.parametrize("command", [*COMMANDS, "verify", "sync"])
def test_help_has_an_example_and_fits_80_columns(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.code == 0
    assert f"ubunye-orchestrate lineage {command}" in done.out.partition("Examples:")[2]
    assert max(len(line) for line in done.out.splitlines()) <= 80
    # Every option of the help has its text.
    assert not re.search(r"^  -.*>$", done.out, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_fits_80_columns(run: Run, flights: Path, command: str) -> None:
    done = run(command, "-d", flights, *COMMANDS[command])
    lines = [line for line in done.out.splitlines() if "written to" not in line]
    assert max(map(len, lines)) <= 80


# ---------------------------------------------------------------- what a shell offers


def offered(shell: str, line: str) -> str:
    words = line.split(" ")
    environment = {
        **os.environ,
        "_UBUNYE_ORCHESTRATE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    environment.pop("UBUNYE_ROOT", None)
    command = [str(Path(sys.executable).parent / "ubunye-orchestrate")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_tasks_and_runs(flights: Path, shell: str) -> None:
    command = "ubunye-orchestrate lineage"
    assert "compare" in offered(shell, f"{command} com")
    assert "raw__flights" in offered(shell, f"{command} list -d {flights} --task ")
    assert "raw/flights" in offered(shell, f"{command} list -d {flights} --asset r")
    assert "default" in offered(shell, f"{command} list -d {flights} -u ")
    assert "raw" in offered(shell, f"{command} list -d {flights} -p ")
    runs = offered(shell, f"{command} compare -d {flights} --run-id1 ")
    assert all(text in runs for text in ("baseline", "latest", "aaaa1111", "dddd5555"))
    some = offered(shell, f"{command} show -d {flights} --asset raw/flights --run-id aa")
    assert ("aaaa2222" in some, "bbbb3333" in some) == (True, False)


def test_completion_of_a_mirror_that_is_not_there_is_silent(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "nowhere"):
        assert offered("bash", f"ubunye-orchestrate lineage list -d {root} --task ").strip() == ""
        runs = offered("bash", f"ubunye-orchestrate lineage show -d {root} --run-id ").split()
        assert runs == ["accepted", "baseline", "latest", "previous"]


def test_completion_offers_nothing_that_could_steer_a_terminal(tmp_path: Path) -> None:
    (tmp_path / ".ubunye/lineage/u/p/x\x1b[2Jy").mkdir(parents=True)
    (tmp_path / ".ubunye/lineage/u/p/fine").mkdir(parents=True)
    assert offered("bash", f"ubunye-orchestrate lineage list -d {tmp_path} --task ").split() == ["fine"]
