from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.drift import DriftPolicy, Verdict, judge
from ubunye_orchestrate.records.codec import decode
from ubunye_orchestrate.records.model import Environment, Producer, RunRecord, StepRecord

RECORDS = Path(__file__).parent.parent / "data" / "records"


def sha(text: object) -> str:
    return "sha256:" + hashlib.sha256(str(text).encode()).hexdigest()


def step(name: str, content: object = "content", *, output: bool = False, **fields: Any) -> StepRecord:
    """A step whose hashes follow from its content and columns."""
    columns = fields.pop("columns", [("id", "int64"), ("text", "string")])
    given: dict[str, Any] = {
        "name": name,
        "direction": "output" if output else "input",
        "row_count": 10,
        "schema_hash": sha(columns),
        "data_hash": sha((content, columns, fields.get("row_count", 10))),
        "hash_method": "rows-v1",
        "hash_basis": "materialised",
        "hash_scope": "stored_table",
        "lane_sums": (str(int(sha(content)[7:19], 16)), str(int(sha(content)[19:31], 16))),
        "columns": columns,
    }
    return StepRecord(**{**given, **fields})


def record(**fields: Any) -> RunRecord:
    """A complete record of an asset ``orders_clean`` that reads ``orders``."""
    given_dagster = fields.pop("dagster", {})
    dagster = {"partition_keys": [], "attempt": 0, "declared_inputs": ["orders"]}
    code = {"function": "shop.clean", "functions": {"shop.clean": sha("clean"), "shop.parse": sha("parse")}}
    given: dict[str, Any] = {
        "run_id": "run-1",
        "task_path": "default/shop/orders_clean",
        "usecase": "default",
        "package": "shop",
        "task_name": "orders_clean",
        "config_hash": sha("config"),
        "started_at": "2024-01-01T00:00:00+00:00",
        "ended_at": "2024-01-01T00:00:01+00:00",
        "duration_sec": 1.0,
        "inputs": [step("orders")],
        "outputs": [step("orders_clean", "out", output=True)],
        "backend": "pandas",
        "code_hash": sha("folder"),
        "environment": Environment(
            python="3.11.7", platform="linux", packages={"pandas": "2.2.3", "dagster": "1.13.1"}
        ),
        "environment_hash": sha("environment"),
        "code": code,
        "dagster": None if given_dagster is None else {**dagster, **given_dagster},
    }
    return RunRecord(**{**given, **fields})


def changed(**fields: Any) -> RunRecord:
    """The later record, whose output differs from ``record()``'s."""
    return record(**{"run_id": "run-2", "outputs": [step("orders_clean", "other", output=True)], **fields})


def verdict(a: RunRecord, b: RunRecord, **policy: Any) -> Verdict:
    return judge(compare_records(a, b), DriftPolicy(**policy))


def genuine(case: str, run_id: str) -> RunRecord:
    """A record that an Ubunye engine wrote."""
    (path,) = (RECORDS / case).glob(f".ubunye/lineage/*/*/*/{run_id}.json")
    return decode(path.read_bytes(), source=path.name)


def printed(name: str) -> tuple[str, list[str]]:
    """What the engine's command printed, and the run ids that it was given."""
    command, _, rest = (RECORDS / "cli" / f"{name}.txt").read_text(encoding="utf-8").partition("\n")
    return rest[: rest.rindex("[exit")], re.findall(r"--run-id[12]? (\S+)", command)


def printed_json(name: str) -> tuple[Any, list[str]]:
    text, run_ids = printed(name)
    return json.loads(text), run_ids


CASES = sorted(path.name.partition("__")[0] for path in RECORDS.glob("cli/*__compare_json.txt"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "any_case" in metafunc.fixturenames:
        assert len(CASES) == 13, f"expected the engine's records in {RECORDS}"
        metafunc.parametrize("any_case", CASES)


@pytest.fixture
def make() -> SimpleNamespace:
    """The builders above: test modules cannot import each other under importlib's import mode."""
    return SimpleNamespace(
        sha=sha,
        step=step,
        record=record,
        changed=changed,
        verdict=verdict,
        genuine=genuine,
        printed=printed,
        printed_json=printed_json,
        producer=Producer,
        environment=Environment,
    )
