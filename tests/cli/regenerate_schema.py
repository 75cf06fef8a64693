"""Write the shipped JSON Schema anew from the models: ``python -m tests.cli.regenerate_schema``."""

from __future__ import annotations

import ast
import inspect
import json
from importlib import resources
from pathlib import Path
from typing import Any

from ubunye_orchestrate.records import model
from ubunye_orchestrate.records.schema import SCHEMA_FILE

IDENTITY = ["run_id", "task_path", "usecase", "package", "task_name"]
# What every writer of version 2 writes, the engine's 0.7.0 on.
VERSION_2 = (
    *("profile", "model", "version", "config_hash", "started_at", "ended_at", "duration_sec", "status"),
    *("inputs", "outputs", "error", "engine_version", "backend", "variables", "code_hash", "environment"),
    *("environment_hash", "timings", "expectations"),
)


def sentences() -> dict[str, dict[str, str]]:
    """The text below each field of each model."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(model)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        fields = found.setdefault(node.name, {})
        for field, text in zip(node.body, node.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                assert isinstance(field.target, ast.Name)
                assert isinstance(text.value, ast.Constant)
                fields[field.target.id] = " ".join(str(text.value.value).replace("``", "`").split())
    return found


def schema() -> dict[str, Any]:
    """The schema of a record's file, version 1 or 2."""
    made = model.RunRecord.model_json_schema()
    texts = sentences()
    kinds = {"RunRecord": made, **made["$defs"]}
    for name, kind in kinds.items():
        kind["description"] = " ".join(kind["description"].replace("``", "`").split())
        for field, shape in kind["properties"].items():
            shape.pop("title", None)
            # What a reader fills in, not what a file may leave out: that is said by "required".
            shape.pop("default", None)
            _shorten(shape)
            if field in texts[name]:
                shape["description"] = texts[name][field]
    made["properties"]["record_version"] = {
        "enum": [1, model.RECORD_VERSION],
        "description": "A record without it is of version 1.",
    }
    made["required"] = IDENTITY
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:ubunye:run-record:{model.RECORD_VERSION}",
        **made,
        "title": "Run record",
        "if": {"properties": {"record_version": {"const": 2}}, "required": ["record_version"]},
        "then": {"required": list(VERSION_2)},
    }


def _shorten(shape: dict[str, Any]) -> None:
    """Write a choice between a plain type and null as one list of types."""
    choices = shape.get("anyOf", [])
    if choices and all(set(choice) == {"type"} for choice in choices):
        del shape["anyOf"]
        shape["type"] = [choice["type"] for choice in choices]


def text() -> str:
    """The file's text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(str(resources.files("ubunye_orchestrate.records") / SCHEMA_FILE)).write_text(
        text(), encoding="utf-8"
    )
