"""The shipped JSON Schema: made from the models, and true of every record of the engine and of ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from tests.cli import regenerate_schema
from ubunye_orchestrate.records.codec import encode
from ubunye_orchestrate.records.schema import SCHEMA_FILE, record_schema
from ubunye_orchestrate.records.store import RecordStore

VALIDATOR = jsonschema.Draft202012Validator(record_schema())
GENUINE = sorted((Path(__file__).parent.parent / "data" / "records").glob("*/.ubunye/lineage/*/*/*/*.json"))


def test_the_shipped_file_is_what_the_models_say() -> None:
    shipped = (resources.files("ubunye_orchestrate.records") / SCHEMA_FILE).read_text("utf-8")
    assert json.loads(shipped) == regenerate_schema.schema(), (
        "the models moved; run python -m tests.cli.regenerate_schema"
    )
    VALIDATOR.check_schema(record_schema())


def test_every_field_of_the_record_has_its_sentence() -> None:
    schema = record_schema()
    fields = {**schema["properties"], **schema["$defs"]["StepRecord"]["properties"]}
    plain = {"usecase", "package", "task_name", "status", "inputs", "outputs", "variables", "environment"}
    ours = {"lane_sums", "hash_scope", "producer", "columns", "code", "dagster"}
    assert all("description" in fields[name] for name in ours)
    assert plain <= set(fields)


def test_records_of_the_engine_are_valid() -> None:
    assert len(GENUINE) == 26
    for path in GENUINE:
        VALIDATOR.validate(json.loads(path.read_text("utf-8")))


def valid(document: dict[str, Any]) -> bool:
    return bool(VALIDATOR.is_valid(document))


@pytest.fixture
def document(make: SimpleNamespace) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(encode(make.record("one", 1)))
    assert valid(value)
    return value


@pytest.mark.parametrize(
    "break_it",
    [
        lambda d: d.pop("run_id"),
        lambda d: d.pop("outputs"),
        lambda d: d.pop("environment_hash"),
        lambda d: d.update(record_version=3),
        lambda d: d.update(status="done"),
        lambda d: d.update(duration_sec="long"),
        lambda d: d["inputs"][0].pop("name"),
        lambda d: d["inputs"][0].update(direction="sideways"),
        lambda d: d["outputs"][0].update(row_count="3"),
        lambda d: d["outputs"][0].update(lane_sums=["1"]),
        lambda d: d["outputs"][0].update(hash_scope="some"),
        lambda d: d["environment"].update(packages={"pandas": 2}),
        lambda d: d.update(variables=[]),
    ],
)
def test_what_is_no_record_is_not_valid(
    document: dict[str, Any], break_it: Callable[[dict[str, Any]], Any]
) -> None:
    break_it(document)
    assert not valid(document)


def test_unknown_fields_and_version_1_are_valid(document: dict[str, Any]) -> None:
    document["of a later day"] = {"x": 1}
    document["inputs"][0]["of a later day"] = [1]
    assert valid(document)
    assert valid(
        {"run_id": "r", "task_path": "u/p/t", "usecase": "u", "package": "p", "task_name": "t", "inputs": []}
    )


def test_a_record_that_is_not_valid_would_fail_the_test_that_mirrors_it(
    schema_errors: list[str], tmp_path: Path, make: SimpleNamespace
) -> None:
    RecordStore(tmp_path).save(make.record("one", 1).model_copy(update={"status": "done"}))
    assert schema_errors == [
        "default/raw/raw__flights one: $.status: 'done' is not one of ['running', 'success', 'error']"
    ]
    schema_errors.clear()
