from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from ubunye_orchestrate.cli.app import app
from ubunye_orchestrate.records.model import Environment, Producer, RunRecord, StepRecord
from ubunye_orchestrate.records.store import RecordStore

RECORDS = Path(__file__).parent.parent / "data" / "records"
CASES = sorted(path.name.partition("__")[0] for path in RECORDS.glob("cli/*__compare_json.txt"))
SHOP = ("-u", "shop", "-p", "sales", "-t", "daily_totals")


@dataclass(frozen=True)
class Result:
    out: str
    err: str
    code: int

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run a ``lineage`` command in this process."""

    def call(*arguments: object) -> Result:
        environment = {"COLUMNS": "80", "UBUNYE_ROOT": None, "NO_COLOR": None}
        done = CliRunner().invoke(app, ["lineage", *map(str, arguments)], env=environment)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        return Result(done.stdout, done.stderr, done.exit_code)

    return call


def printed(name: str) -> tuple[str, list[str], int]:
    """What the engine's command printed, the run ids that it was given, and its exit code."""
    command, _, rest = (RECORDS / "cli" / f"{name}.txt").read_text(encoding="utf-8").partition("\n")
    text, _, code = rest.rpartition("[exit ")
    return text, re.findall(r"--run-id[12]? (\S+)", command), int(code.strip().rstrip("]"))


def mirror_of(case: str, folder: Path) -> Path:
    """A copy of a case whose files' times follow the engine's list, as they did when it was printed."""
    root = folder / case
    shutil.copytree(RECORDS / case, root)
    listed = json.loads(printed(f"{case}__list_json")[0])
    for age, record in enumerate(listed):
        (path,) = root.glob(f".ubunye/lineage/*/*/*/{record['run_id']}.json")
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return root


def record(run_id: str, day: int, content: str = "x", **fields: Any) -> RunRecord:
    """A record of the asset ``raw/flights``, ended on that day of January 2024."""
    step = {
        "row_count": 3,
        "schema_hash": "sha256:s",
        "data_hash": f"sha256:{content}",
        "hash_method": "rows-v1",
        "hash_scope": "stored_table",
    }
    given: dict[str, Any] = {
        "run_id": run_id,
        "task_path": "default/raw/raw__flights",
        "usecase": "default",
        "package": "raw",
        "task_name": "raw__flights",
        "config_hash": "sha256:c",
        "started_at": f"2024-01-{day:02}T00:00:00+00:00",
        "ended_at": f"2024-01-{day:02}T00:00:05+00:00",
        "duration_sec": 5.0,
        "inputs": [StepRecord(name="source", direction="input", **step)],
        "outputs": [StepRecord(name="raw/flights", direction="output", **step)],
        "environment": Environment(python="3.11.7", packages={"pandas": "2.2.3"}),
        "environment_hash": "sha256:e",
        "code_hash": "sha256:f",
        "code": {"function": "flights.raw", "functions": {"flights.raw": "sha256:1"}},
        "dagster": {"asset_key": ["raw", "flights"], "partition_keys": [], "attempt": 0},
    }
    return RunRecord(**{**given, **fields})


def save_asset(
    store: RecordStore,
    run_id: str,
    day: int,
    key: list[str],
    content: str,
    *,
    reads: dict[str, str] | None = None,
    dagster_run: str | None = None,
    attempt: int = 0,
    partitions: list[str] | None = None,
    **fields: Any,
) -> None:
    """Save a run of an asset whose output has a content, and which read the same run of other assets.

    ``reads``: the content of each asset that was read.
    """

    def step(name: str, direction: str, of: str, **more: Any) -> StepRecord:
        digest = hashlib.sha256(f"{name} {of}".encode()).hexdigest()
        return StepRecord(
            name=name,
            direction=direction,
            row_count=3,
            schema_hash="sha256:s",
            data_hash=f"sha256:{digest}",
            hash_method="rows-v1",
            hash_scope="stored_table",
            **more,
        )

    run = dagster_run or run_id
    task = "__".join(key)
    store.save(
        record(
            run_id,
            day,
            package="default",
            task_name=task,
            task_path=f"default/default/{task}",
            inputs=fields.pop("inputs", None)
            or [
                step(name, "input", of, producer=[Producer(run_id=run, storage_id=day)])
                for name, of in (reads or {}).items()
            ],
            outputs=[step("/".join(key), "output", content)],
            dagster={"run_id": run, "asset_key": key, "partition_keys": partitions or [], "attempt": attempt},
            **fields,
        )
    )


@pytest.fixture
def make() -> SimpleNamespace:
    return SimpleNamespace(
        save_asset=save_asset,
        cases=CASES,
        printed=printed,
        mirror_of=mirror_of,
        record=record,
        shop=SHOP,
        step=StepRecord,
        producer=Producer,
        records=RECORDS,
    )


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    """A mirror with five runs of one asset."""
    store = RecordStore(tmp_path)
    for day, run_id in enumerate(["aaaa1111", "aaaa2222", "bbbb3333", "cccc4444", "dddd5555"], start=1):
        store.save(record(run_id, day, content=run_id))
    return tmp_path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a Dagster instance (``home``) and the mirror (``root``) that its runs left."""
    # Loads Dagster, which few of these tests need.
    from tests.cli.project import build

    folder = tmp_path_factory.mktemp("made")
    build(folder)
    return folder


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "any_case" in metafunc.fixturenames:
        assert len(CASES) == 13, f"expected the engine's records in {RECORDS}"
        metafunc.parametrize("any_case", CASES)
