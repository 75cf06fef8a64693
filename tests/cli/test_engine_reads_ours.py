"""The engine's own command, in two versions, on the mirror that real Dagster runs left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.records.store import RecordStore

Run = Callable[..., Any]
Engine = Any

FLIGHTS = ("-u", "default", "-p", "raw", "-t", "raw__flights")
TASKS = {
    "raw__flights": FLIGHTS,
    "delays": ("-u", "default", "-p", "marts", "-t", "delays"),
    "monthly": ("-u", "default", "-p", "marts", "-t", "monthly"),
    "broken": ("-u", "default", "-p", "marts", "-t", "broken"),
}
PEERS = Path(sys.prefix) / "peers"


@pytest.fixture(params=["0.7.0", "0.8.0"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Run ``ubunye``; returns what it printed and its exit code."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("UBUNYE_")}
    if request.param != "0.8.0":
        folder = PEERS / f"ubunye-engine-{request.param}"
        assert folder.is_dir(), f"{folder} is missing: `make test` installs it (scripts/bootstrap.sh)"
        environment["PYTHONPATH"] = str(folder)
    version = subprocess.run(
        [sys.executable, "-c", "import importlib.metadata as m; print(m.version('ubunye-engine'))"],
        capture_output=True, text=True, check=True, env=environment,
    ).stdout.strip()  # fmt: skip
    assert version == request.param

    def call(*arguments: object) -> SimpleNamespace:
        command = [sys.executable, "-c", "from ubunye.cli.main import main; main()", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert "Traceback" not in done.stderr, done.stderr
        is_json = "--json" in arguments
        return SimpleNamespace(
            out=done.stdout, code=done.returncode, json=json.loads(done.stdout) if is_json else None
        )

    call.version = version  # type: ignore[attr-defined]
    return call


def same(theirs: Any, ours: Any) -> None:
    """Everything that the engine says, we say too; lists and objects all the way down."""
    if isinstance(theirs, dict):
        for name, value in theirs.items():
            assert name in ours, name
            same(value, ours[name])
    elif isinstance(theirs, list):
        assert len(theirs) == len(ours)
        for one, other in zip(theirs, ours, strict=True):
            same(one, other)
    else:
        assert theirs == ours


def test_list_and_show(engine: Engine, run: Run, made: Path) -> None:
    root = made / "root"
    for task, names in TASKS.items():
        theirs = engine("lineage", "list", "-d", root, *names, "--json").json
        ours = run("list", "-d", root, *names, "--json").json
        assert len(theirs) == {"raw__flights": 2, "delays": 2, "monthly": 2, "broken": 1}[task]
        same(theirs, ours)
        text = engine("lineage", "list", "-d", root, *names).out.splitlines()
        # The same table, but for rows that are not known: there a zero is theirs, a dash is ours.
        our_text = run("list", "-d", root, *names).out.splitlines()
        # And it shortens `<run>.retry-1` to what the first try has too.
        assert [line.split()[1:4] for line in text] == [line.split()[1:4] for line in our_text]
        for record in ours:
            shown = engine("lineage", "show", "-d", root, *names, "--run-id", record["run_id"], "--json").json
            same(shown, run("show", "-d", root, *names, "--run-id", record["run_id"]).json)


def test_compare(engine: Engine, run: Run, made: Path) -> None:
    root = made / "root"
    for names in TASKS.values():
        run_ids = [r["run_id"] for r in run("list", "-d", root, *names, "--json").json]
        pair = ("--run-id1", run_ids[-1], "--run-id2", run_ids[0])
        theirs = engine("lineage", "compare", "-d", root, *names, *pair, "--json")
        ours = run("compare", "-d", root, *names, *pair, "--json")
        same(theirs.json, ours.json)
        assert theirs.code == ours.code == 0
    assert ours.json["outputs"]["broken"]["data_hash"]["state"] == "unknown"


def test_trace(engine: Engine, run: Run, made: Path) -> None:
    root = made / "root"
    for names in TASKS.values():
        theirs = engine("lineage", "trace", "-d", root, *names, "--json").json
        ours = run("trace", "-d", root, *names, "--json").json
        # The engine names the file that it runs, we name the asset's function.
        theirs.pop("transform")
        same(theirs, ours)


def test_search(engine: Engine, run: Run, made: Path) -> None:
    root = made / "root"
    for options in ([], ["--status", "error"], ["-u", "default"], ["--since", "2999-01-01"]):
        theirs = engine("lineage", "search", "-d", root, *options, "--json").json
        ours = run("search", "-d", root, *options, "--json").json
        if engine.version == "0.7.0":
            # It takes the records of several tasks in one run for one another; 0.8.0 does not.
            assert {record["run_id"] for record in theirs} == {record["run_id"] for record in ours}
        else:
            same(sorted(theirs, key=_identity), sorted(ours, key=_identity))
    assert theirs == []


def _identity(record: dict[str, Any]) -> tuple[str, str]:
    return record["task_path"], record["run_id"]


def test_gate(engine: Engine, run: Run, made: Path, tmp_path: Path) -> None:
    root = made / "root"
    done = engine("gate", "-d", root, *FLIGHTS, "--json")
    assert (done.code, done.json["ok"]) == (0, True)
    done = engine("gate", "-d", root, *TASKS["broken"], "--json")
    assert done.code == 1
    # Another content of the same asset: their gate fails, as ours does when a change of data is an error.
    store = RecordStore(tmp_path)
    for number, record in enumerate(reversed(RecordStore(root).list_runs("default", "raw", "raw__flights"))):
        if number == 1:
            (output,) = record.outputs
            other = output.model_copy(update={"data_hash": "sha256:" + "1" * 64})
            record = record.model_copy(update={"outputs": [other]})
        store.save(record)
    done = engine("gate", "-d", tmp_path, *FLIGHTS, "--json")
    assert (done.code, done.json["ok"]) == (1, False)
    assert run("gate", "-d", tmp_path, "--severity", "data_changed=error").code == 1
    assert engine("gate", "-d", tmp_path, *FLIGHTS, "--allow-data-change", "--json").code == 0


def test_what_was_rebuilt_is_read_as_well(engine: Engine, run: Run, made: Path, tmp_path: Path) -> None:
    assert run("sync", "-d", tmp_path, "--instance", made / "home").code == 0
    for names in TASKS.values():
        theirs = engine("lineage", "list", "-d", tmp_path, *names, "--json").json
        # In the same order: the engine lists by the files' times.
        before = engine("lineage", "list", "-d", made / "root", *names, "--json").json
        assert [r["run_id"] for r in theirs] == [r["run_id"] for r in before]
