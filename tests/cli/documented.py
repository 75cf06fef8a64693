"""The mirror that ``docs/cli.md`` shows, and the commands in it run for real.

A block marked ``console`` has lines that begin with ``$``: commands. What follows each is what it printed.
``python -m tests.cli.documented`` writes the page anew; a test holds it to what the commands print.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from ubunye_orchestrate.cli.app import app
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.model import Environment, Producer, RunRecord, StepRecord
from ubunye_orchestrate.records.steps import step_from_fingerprint
from ubunye_orchestrate.records.store import RecordStore

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
SHOWN_ROOT = "/data/project"

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUNS = ("8c1d6f0e-5a3b-4f7e-9d21-0b6a4e7c1f01", "3e9a7b42-1c5d-4e8f-a6b0-7d2f9c8e5a02",
         "b71f2c9d-6e4a-4b3c-8f5d-2a9e0c7d4b03")  # fmt: skip
_TABLES = [pa.table({"id": pa.array(ids, pa.int64())}) for ids in ([1, 2, 3], [1, 2, 3], [1, 2, 3, 4])]


def sha(text: object) -> str:
    return f"sha256:{hashlib.sha256(str(text).encode()).hexdigest()}"


def build(root: Path) -> None:
    """Three nightly runs of three assets: the third with a row more, and with another transform."""
    (root / "data").mkdir(parents=True)
    store = RecordStore(root)
    for day, (run, table) in enumerate(zip(_RUNS, _TABLES, strict=True), start=1):
        pq.write_table(table, root / "data" / "flights.parquet")
        flights = step_from_fingerprint(
            "raw/flights",
            "output",
            fingerprint(table),
            format="parquet",
            location=str(root / "data" / "flights.parquet"),
            scope="stored_table",
        ).model_copy(update={"hash_seconds": 0.002})
        # Only raw/flights is stored here for real; the others' contents follow from their inputs and code.
        code = "1" if day < 3 else "2"
        clean = _table("clean_flights", (table.num_rows, code), table.num_rows)
        delays = _table("marts/delays", (table.num_rows, code), 1)
        _save(store, day, run, "raw", ["raw", "flights"], "assets.raw.flights", "1", [], flights)
        _save(store, day, run, "staging", ["clean_flights"], "assets.staging.clean", code, [flights], clean)
        _save(store, day, run, "marts", ["marts", "delays"], "assets.marts.delays", "1", [clean], delays)


def _table(name: str, content: object, rows: int) -> StepRecord:
    return StepRecord(
        name=name,
        direction="output",
        format="DuckDBPandasIOManager",
        location=f"warehouse.{name.replace('/', '.')}",
        row_count=rows,
        schema_hash=sha(f"schema of {name}"),
        data_hash=sha((name, content)),
        hash_method="rows-v1",
        hash_basis="materialised",
        hash_scope="stored_table",
    )


def _save(
    store: RecordStore,
    day: int,
    run: str,
    group: str,
    key: list[str],
    function: str,
    code: str,
    read: list[StepRecord],
    output: StepRecord,
) -> None:
    task = "__".join(key)
    inputs = [
        step.model_copy(
            update={"direction": "input", "producer": [Producer(run_id=run, storage_id=day * 10)]}
        )
        for step in read
    ]
    seconds = len(key) + len(read) * 1.5
    store.save(
        RunRecord(
            run_id=run,
            task_path=f"default/{group}/{task}",
            usecase="default",
            package=group,
            task_name=task,
            config_hash=sha("config"),
            started_at=f"2024-01-{day:02}T03:00:0{len(read)}+00:00",
            ended_at=f"2024-01-{day:02}T03:00:0{len(read) + 2}+00:00",
            duration_sec=seconds,
            inputs=inputs,
            outputs=[output],
            engine_version="0.1.0",
            backend="pandas",
            code_hash=sha(("folder", code)),
            environment=Environment(
                python="3.11.7",
                implementation="CPython",
                platform="linux",
                machine="x86_64",
                packages={"dagster": "1.13.27", "pandas": "2.3.3", "pyarrow": "26.0.0"},
            ),
            environment_hash=sha("environment"),
            timings=[{"step": f"Transform:{task}", "output": output.name, "seconds": seconds}],
            code={"function": function, "functions": {function: sha((function, code))}},
            dagster={
                "run_id": run,
                "asset_key": key,
                "partition_keys": [],
                "attempt": 0,
                "declared_inputs": [step.name for step in read],
            },
        )
    )


def build_instance(home: Path, root: Path) -> None:
    """A Dagster instance whose event log has the receipts of the mirror's records."""
    from dagster import AssetMaterialization, DagsterInstance, MetadataValue

    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    with DagsterInstance.from_config(str(home)) as instance:
        for path in sorted((root / ".ubunye/lineage").rglob("*.json")):
            receipt = json.loads(path.read_text(encoding="utf-8"))
            key = receipt["dagster"]["asset_key"]
            instance.report_runless_asset_event(
                AssetMaterialization(key, metadata={"ubunye/receipt": MetadataValue.json(receipt)})
            )


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class Shell:
    """Runs the commands of the page in one folder, one after the other."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._code = 0

    def run(self, command: str) -> str:
        """Return what a command prints: ours, ``cat``, ``rm`` or ``echo $?``; ``| head -n N`` cuts it."""
        command, _, cut = command.partition(" | head -n ")
        words = shlex.split(command)
        if command == "echo $?":
            text = f"{self._code}\n"
        elif words[0] == "cat":
            text = (self._root / words[1]).read_text(encoding="utf-8")
        elif words[0] == "rm":
            (self._root / words[1]).unlink()
            text = ""
        else:
            assert words[0] == "ubunye-orchestrate", command
            environment: dict[str, Any] = dict.fromkeys(("UBUNYE_ROOT", "NO_COLOR", "DAGSTER_HOME"))
            environment["COLUMNS"] = "80"
            done = CliRunner().invoke(app, words[1:], env=environment)
            text, self._code = done.output, done.exit_code
        lines = self._as_shown(text).splitlines()
        if cut and len(lines) > int(cut):
            lines = [*lines[: int(cut)], "..."]
        return "".join(f"{line}\n" for line in lines)

    def _as_shown(self, text: str) -> str:
        text = text.replace(str(self._root), SHOWN_ROOT)
        text = re.sub(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{16}", "20240103T091500.000000Z-5b1f0c2d7e9a4c38", text)
        return re.sub(r"(?<=by ann, )\d{4}-\d\d-\d\d", "2024-01-03", text)


def page_as_run(page: str, folder: Path) -> str:
    """Return the page with what its commands print now."""
    root = folder / "project"
    build(root)
    build_instance(root / "dagster_home", root)
    shell = Shell(root)

    def block(match: re.Match[str]) -> str:
        commands = [line[2:] for line in match[1].splitlines() if line.startswith("$ ")]
        shown = []
        for command in commands:
            shown.append(f"$ {command}\n{shell.run(command)}")
        return f"```console\n{''.join(shown)}```"

    with _working_in(root):
        return _BLOCK.sub(block, page)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(
            page_as_run(PAGE.read_text(encoding="utf-8"), Path(folder).resolve()), encoding="utf-8"
        )
