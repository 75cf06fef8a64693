"""The JSON Schema (draft 2020-12) of a record's file, shipped beside this module.

It says what a reader may rely on, in versions 1 and 2; fields that it does not know are allowed, as in
reading. What JSON Schema cannot say (``run_id`` equals the file's stem) is in ``records.codec``.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

__all__ = ["SCHEMA_FILE", "record_schema"]

SCHEMA_FILE = "run-record.schema.json"


def record_schema() -> dict[str, Any]:
    """Return the schema, as a new value each time."""
    text = (resources.files("ubunye_orchestrate.records") / SCHEMA_FILE).read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
