"""A record to the bytes of its file, and back.

The file is UTF-8 JSON, indented by two, with the engine's fields in the engine's order and ours last. What
a file holds survives reading and writing: unknown fields are kept, and a record that was read is written with
the fields that it had. A file that is not a readable record is refused in one line.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from pydantic import ValidationError

from ubunye_orchestrate.errors import InvalidRecordError, NewerRecordError
from ubunye_orchestrate.records.model import AS_READ, RECORD_VERSION, RunRecord

__all__ = ["MAX_RECORD_BYTES", "decode", "decode_dumped", "encode", "json_object", "refuse_foreign_values"]

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""A file above this is refused unread: 2,000 columns and 500 inputs make a few megabytes."""

_MAX_DIGITS = 4_000
_MAX_DEPTH = 150
_BOM = b"\xef\xbb\xbf"
_IDENTITY = ("run_id", "task_path", "usecase", "package", "task_name")
_REMEDY = "delete it, or restore it from a backup or the run's metadata"


def decode(data: bytes, *, source: str) -> RunRecord:
    """Return the record that a file holds. ``source`` is how messages name the file.

    A record without ``record_version`` is of version 1: it has that version, and the fields that came later
    are empty. Raises InvalidRecordError, in one line, for anything that is no record of version 1 or 2.
    """
    value = json_object(data, source)
    missing = [name for name in _IDENTITY if name not in value]
    if missing:
        _refuse(source, f"a JSON object without {', '.join(missing)}", "the fields of a run record", _REMEDY)
    version = value.get("record_version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        _refuse(source, f"record_version {_shown(version)}", f"a number from 1 to {RECORD_VERSION}", _REMEDY)
    if version > RECORD_VERSION:
        found = f"a record of version {_shown(version)}"
        remedy = "upgrade ubunye-orchestrate to read it"
        raise NewerRecordError(_message(source, found, f"version {RECORD_VERSION} or older", remedy))
    try:
        return _validated(data.removeprefix(_BOM))
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the record"
        found = f"{field} {_shown(first['input'])}"
        raise InvalidRecordError(_message(source, found, first["msg"], _REMEDY)) from e


def decode_dumped(data: bytes, *, source: str) -> RunRecord:
    """Return the same for a text that ``pydantic_core.to_json`` made of a value, in half the time.

    Such a text needs no second reading: a number that JSON does not have stands there by its name.
    """
    if len(data) <= MAX_RECORD_BYTES and b"NaN" not in data and b"Infinity" not in data:
        try:
            record = _validated(data)
        except ValidationError:
            pass
        else:
            if 1 <= record.record_version <= RECORD_VERSION:
                return record
    # It is no record that is read, as a rule, and there it is said why.
    return decode(data, source=source)


def _validated(text: bytes) -> RunRecord:
    # From the JSON text, since only there a strict model takes a list for a tuple.
    record = RunRecord.model_validate_json(text, strict=True, context=AS_READ)
    if "record_version" not in record.model_fields_set:
        record = record.model_copy(update={"record_version": 1})
        record.model_fields_set.discard("record_version")
    return record


def encode(record: RunRecord) -> bytes:
    """Return the bytes of the record's file.

    Raises InvalidRecordError, naming the field, for a value that JSON does not have (a date, bytes, NaN, a
    key that is no text): nothing is put in its place.
    """
    value = record.model_dump(exclude_unset=True)
    refuse_foreign_values(value, f"record {_shown(record.run_id)}")
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False).encode()


def refuse_foreign_values(value: Any, where: str, depth: int = 0) -> None:
    """Raise InvalidRecordError for the first value within ``value`` that JSON cannot hold as it is."""
    if value is None or isinstance(value, (bool, int)):
        return
    if depth > _MAX_DEPTH:
        raise InvalidRecordError(f"{where} is nested deeper than {_MAX_DEPTH}; expected a flatter value")
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as e:
                raise InvalidRecordError(f"{where} is text that is not valid Unicode: {_shown(value)}") from e
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRecordError(
                f"{where} is {value}, which JSON does not have; expected a finite number"
            )
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidRecordError(f"{where} has the key {_shown(key)}; expected a text as key")
            refuse_foreign_values(key, f"{where}, a key")
            refuse_foreign_values(item, f"{where}, {key}", depth + 1)
    elif isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            refuse_foreign_values(item, f"{where}[{position}]", depth + 1)
    else:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise InvalidRecordError(
            f"{where} is a {kind}; expected text, number, boolean, null, list or mapping"
        )


def json_object(data: bytes, source: str, expected: str = "a run record as a JSON object") -> dict[str, Any]:
    """Return the JSON object that a file holds. Raises InvalidRecordError, in one line, for anything else."""
    if len(data) > MAX_RECORD_BYTES:
        _refuse(source, f"{len(data):,} bytes", f"at most {MAX_RECORD_BYTES:,}", _REMEDY)
    if not data.removeprefix(_BOM).strip():
        _refuse(source, "an empty file", expected, _REMEDY)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        _refuse(source, "UTF-16 text", "UTF-8", "save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        found = f"bytes that are not UTF-8 text (at byte {e.start})"
        raise InvalidRecordError(_message(source, found, expected, _REMEDY)) from e
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite_float, parse_int=_bounded_int
        )
    except json.JSONDecodeError as e:
        at_end = e.pos >= len(text.rstrip())
        found = "JSON that ends too early" if at_end else "text that is not JSON"
        found += f" (line {e.lineno}, column {e.colno})"
        raise InvalidRecordError(_message(source, found, expected, _REMEDY)) from e
    except RecursionError as e:
        raise InvalidRecordError(_message(source, "JSON nested too deeply", expected, _REMEDY)) from e
    except _NumberError as e:
        raise InvalidRecordError(_message(source, str(e), "finite numbers", _REMEDY)) from e
    if not isinstance(value, dict):
        _refuse(source, f"JSON that is {_kind(value)}", expected, _REMEDY)
    return value


class _NumberError(Exception):
    """A number that JSON, or a record, does not hold."""


def _no_constant(text: str) -> NoReturn:
    raise _NumberError(f"the number {text}")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _NumberError(f"the number {_shown(text)}, beyond a float64")
    return value


def _bounded_int(text: str) -> int:
    # Reading digits takes quadratic time; Python 3.11 stops at 4,300 by itself.
    if len(text) > _MAX_DIGITS:
        raise _NumberError(f"a number of {len(text):,} digits")
    return int(text)


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _shown(value: object) -> str:
    """A value of a file in a message: escaped, in one line, short."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _message(source: str, found: str, expected: str, remedy: str) -> str:
    return f"{source}: found {found}; expected {expected}; {remedy}"


def _refuse(source: str, found: str, expected: str, remedy: str) -> NoReturn:
    raise InvalidRecordError(_message(source, found, expected, remedy))
