"""A record out of an event, read once, beside the same record read as a file is: nothing is told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from tests.records.samples import GENUINE_FILES, a_record, genuine_id
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.records.codec import decode, decode_dumped, encode
from ubunye_orchestrate.records.model import StepRecord

RECORD = json.loads(encode(a_record(outputs=[StepRecord(name="x", direction="output")])))
FIELDS = [*RECORD, "code"]
STEP_FIELDS = [*RECORD["outputs"][0], "lane_sums", "columns", "producer", "hash_scope"]

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["NaN", "Infinity", "success", "1", "\ud800", 10**400, 2, 3, -0.0])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def outcome(read: Any, data: bytes) -> Any:
    """What reading gives: a record with the fields that were set, or the kind of refusal and its words."""
    try:
        record = read(data, source="event 1")
    except InvalidRecordError as e:
        return type(e), str(e)
    return encode(record), record


def same(value: Any) -> None:
    try:
        dumped = to_json(value)
    except ValueError:
        dumped = json.dumps(value).encode()
    assert outcome(decode_dumped, dumped) == outcome(decode, dumped)


@pytest.mark.parametrize("path", GENUINE_FILES, ids=genuine_id)
def test_genuine_records(path: Path) -> None:
    same(json.loads(path.read_bytes()))


@given(st.sampled_from(FIELDS), VALUES)
def test_any_value_in_any_field(field: str, value: Any) -> None:
    same({**RECORD, field: value})


@given(st.sampled_from(STEP_FIELDS), VALUES)
def test_any_value_in_any_field_of_a_step(field: str, value: Any) -> None:
    same({**RECORD, "outputs": [{**RECORD["outputs"][0], field: value}]})


@given(VALUES)
def test_any_value_at_all(value: Any) -> None:
    same(value)
