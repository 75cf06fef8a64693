"""A record to its file and back: nothing is lost, and what is no record is refused in one line."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.samples import GENUINE_FILES, a_record, genuine_id
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.records import codec
from ubunye_orchestrate.records.codec import decode, encode
from ubunye_orchestrate.records.model import RunRecord, StepRecord


def refused(data: bytes, source: str = "runs/x.json") -> str:
    with pytest.raises(InvalidRecordError) as caught:
        decode(data, source=source)
    message = str(caught.value)
    assert message.startswith(source + ": found ")
    assert "; expected " in message
    assert "\n" not in message
    assert message.isprintable()
    assert len(message) < 400
    return message


def as_json(**changes: Any) -> bytes:
    value = json.loads(encode(a_record()))
    value.update(changes)
    return json.dumps(value).encode()


@pytest.mark.parametrize("path", GENUINE_FILES, ids=genuine_id)
def test_a_genuine_record_comes_back_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    assert encode(decode(data, source=str(path))) == data


def test_the_genuine_records_are_there() -> None:
    assert len(GENUINE_FILES) == 26
    versions = [decode(path.read_bytes(), source=path.name).record_version for path in GENUINE_FILES]
    assert (versions.count(1), versions.count(2)) == (3, 23)


def test_a_version_1_record_has_its_version_and_no_later_field() -> None:
    path = next(path for path in GENUINE_FILES if "h_v050_v1" in str(path))
    record = decode(path.read_bytes(), source="h")
    assert record.record_version == 1
    assert record.environment is None
    assert record.code_hash is None
    assert record.timings == []
    assert [step.hash_method for step in record.outputs] == [None]
    assert "record_version" not in json.loads(encode(record))


def test_a_new_record_has_every_field_of_the_engine_in_its_order() -> None:
    newest = next(path for path in GENUINE_FILES if "a_identical" in str(path))
    engine = json.loads(newest.read_bytes())
    ours = json.loads(encode(a_record(dagster=None)))
    assert list(ours) == list(engine)
    step = json.loads(encode(a_record(outputs=[StepRecord(name="x", direction="output")])))["outputs"][0]
    assert list(step) == list(engine["outputs"][0])


def test_our_fields_come_last_and_only_where_they_say_something() -> None:
    value = json.loads(encode(a_record()))
    assert list(value)[-1] == "dagster"
    assert "code" not in value
    assert list(value["outputs"][0])[-3:] == ["lane_sums", "hash_scope", "columns"]


def test_the_text_is_indented_utf8() -> None:
    data = encode(a_record(variables={"città": "Zürich"}))
    assert data.startswith(b'{\n  "run_id": "run-1",\n')
    assert '"città": "Zürich"'.encode() in data


def test_a_record_comes_back_equal() -> None:
    record = a_record(error="ValueError: \x1b[31m\u2028", timings=[{"step": "read", "seconds": 1e-9}])
    assert decode(encode(record), source="x") == record


unknown = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(unknown, unknown, unknown)
def test_unknown_fields_survive_read_then_write(whole: Any, step: Any, environment: Any) -> None:
    value = json.loads(encode(a_record(environment={"python": "3.11.7"})))
    value["later"] = whole
    value["outputs"][0]["later"] = step
    value["environment"]["later"] = environment
    data = json.dumps(value, ensure_ascii=False).encode()
    assert json.loads(encode(decode(data, source="x"))) == value


def test_a_change_to_a_record_that_was_read_is_written() -> None:
    path = next(path for path in GENUINE_FILES if "g_v070-" in genuine_id(path))
    record = decode(path.read_bytes(), source="x")
    changed = record.model_copy(update={"status": "error", "error": "E: e"})
    before, after = json.loads(path.read_bytes()), json.loads(encode(changed))
    assert {name for name in after if after[name] != before.get(name)} == {"status", "error"}
    assert list(after) == list(before)


@pytest.mark.parametrize("data", [b"", b"  \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(data: bytes) -> None:
    assert "an empty file" in refused(data)


@pytest.mark.parametrize("path", GENUINE_FILES[:3], ids=genuine_id)
def test_a_record_cut_anywhere_is_refused(path: Path) -> None:
    data = path.read_bytes()
    for length in range(1, len(data), 97):
        message = refused(data[:length])
        assert "ends too early" in message or "not JSON" in message


def test_binary_is_refused() -> None:
    assert "not UTF-8 text (at byte 0)" in refused(b"\x89PNG\r\n\x1a\n\x00\x00")
    assert "not JSON" in refused(b"PAR1\x00\x00\x00")
    assert "UTF-16" in refused(json.dumps({"a": 1}).encode("utf-16"))


def test_a_byte_order_mark_is_passed_over() -> None:
    assert decode(b"\xef\xbb\xbf" + encode(a_record()), source="x") == a_record()


@pytest.mark.parametrize(
    ("data", "found"),
    [(b"[]", "a list"), (b'"x"', "a text"), (b"null", "null"), (b"1", "a number"), (b"true", "a boolean")],
)
def test_json_that_is_no_object_is_refused(data: bytes, found: str) -> None:
    assert f"JSON that is {found}" in refused(data)


def test_an_object_that_is_no_record_is_refused() -> None:
    message = refused(b'{"name": "package", "version": "1.0", "run_id": "x"}')
    assert "without task_path, usecase, package, task_name" in message


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        (
            {"outputs": [{"name": "x", "direction": "output", "row_count": "forty"}]},
            ["outputs.0.row_count", "'forty'"],
        ),
        ({"outputs": {"name": "x"}}, ["outputs"]),
        ({"status": "fine"}, ["status", "'fine'", "'success'"]),
        ({"run_id": 7}, ["run_id 7"]),
        ({"duration_sec": "5"}, ["duration_sec", "'5'"]),
        ({"variables": []}, ["variables"]),
        ({"environment": "linux"}, ["environment", "'linux'"]),
        ({"usecase": None}, ["usecase None"]),
        ({"error": "x" * 9, "inputs": [None]}, ["inputs.0"]),
    ],
)
def test_a_wrong_type_is_refused_and_named(changes: dict[str, Any], names: list[str]) -> None:
    message = refused(as_json(**changes))
    for name in names:
        assert name in message


def test_a_value_of_a_file_is_never_printed_raw() -> None:
    message = refused(as_json(status="\x1b[2J\n" + "x" * 500))
    assert "\\x1b[2J\\n" in message


@pytest.mark.parametrize("version", [3, 99, 10**30])
def test_a_newer_record_says_what_to_upgrade(version: int) -> None:
    message = refused(as_json(record_version=version))
    assert f"version {str(version)[:40]}" in message
    assert "upgrade ubunye-orchestrate" in message


@pytest.mark.parametrize("version", [0, -1, "2", 2.0, True, None, [2]])
def test_a_version_that_is_none_is_refused(version: object) -> None:
    assert "record_version" in refused(as_json(record_version=version))


def test_a_newer_record_is_refused_for_its_version_even_if_its_fields_changed() -> None:
    assert "version 3" in refused(as_json(record_version=3, outputs="elsewhere"))


@pytest.mark.parametrize("opening", [b'{"a":', b"["])
@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_deep_nesting_is_refused(opening: bytes, depth: int) -> None:
    closing = b"}" if opening.startswith(b"{") else b"]"
    refused(opening * depth + b"1" + closing * depth)
    refused(as_json()[:-1] + b', "deep": ' + opening * depth + b"1" + closing * depth + b"}")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5_000])
def test_a_number_that_json_or_a_float_does_not_hold_is_refused(number: str) -> None:
    data = as_json(later="HERE").replace(b'"HERE"', number.encode())
    assert "number" in refused(data)


def test_a_giant_file_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_RECORD_BYTES", 1_000)
    assert "at most 1,000" in refused(as_json())


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (datetime.date(2024, 1, 1), "datetime.date"),
        (b"bytes", "builtins.bytes"),
        ({1: "x"}, "the key 1"),
        ({"s": {1, 2}}, "builtins.set"),
        (Decimal("1.5"), "decimal.Decimal"),
        ([["\udc80"]], "not valid Unicode"),
        ({"\udc80": 1}, "not valid Unicode"),
        (object(), "builtins.object"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_name(value: object, what: str) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        encode(a_record(variables={"dt": value}))
    assert "variables, dt" in str(caught.value)
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nesting_too_deep_to_be_read_again_is_not_written() -> None:
    value: list[Any] = []
    for _ in range(500):
        value = [value]
    with pytest.raises(InvalidRecordError, match="nested deeper"):
        encode(a_record(variables={"dt": value}))


def test_what_is_written_can_be_read_to_the_deepest_level() -> None:
    value: list[Any] = []
    for _ in range(codec._MAX_DEPTH - 4):
        value = [value]
    record = a_record(variables={"dt": value})
    assert decode(encode(record), source="x") == record


def test_a_record_is_frozen() -> None:
    record: Any = a_record()
    with pytest.raises(ValueError, match="frozen"):
        record.status = "error"
    assert isinstance(record, RunRecord)
