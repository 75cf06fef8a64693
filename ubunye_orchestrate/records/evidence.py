"""Small pieces of evidence: the hash of a configuration, and an exception as text."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any

from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.foreign import is_foreign, said
from ubunye_orchestrate.masking import mask_config, mask_text
from ubunye_orchestrate.records.codec import refuse_foreign_values

__all__ = ["LONGEST_ERROR", "config_hash", "error_text", "held_by_a_record", "split_foreign"]

LONGEST_ERROR = 20_000
"""Characters of an exception's message that are kept."""

_logger = logging.getLogger(__name__)


def config_hash(config: Any) -> str | None:
    """Return ``sha256:`` over a configuration as canonical JSON: keys sorted, compact, secrets masked.

    No configuration (None) is an empty one. A value that JSON cannot hold makes the hash unknown (None), and
    is logged: another text in its place could make two configurations equal that are not.
    """
    masked = mask_config({} if config is None else config)
    try:
        refuse_foreign_values(masked, "the configuration")
    except InvalidRecordError as e:
        _logger.warning("The configuration has no hash: %s", e)
        return None
    text = json.dumps(masked, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def held_by_a_record(entry: Any, where: str) -> dict[str, Any]:
    """Return an entry of the user's as a record can hold it: what it cannot is named in ``left_out``.

    ``where`` is how messages name the entry. Nothing is put in the place of a value.
    """
    held, left_out = split_foreign(entry, where)
    return {**held, "left_out": left_out} if left_out else held


def split_foreign(entry: Any, where: str) -> tuple[dict[str, Any], list[str]]:
    """Return those values of a mapping that a record can hold, and why it cannot hold the others; logged."""
    held: dict[str, Any] = {}
    left_out: list[str] = []
    if not isinstance(entry, Mapping):
        kind = f"{type(entry).__module__}.{type(entry).__qualname__}"
        entry, left_out = {}, [f"{where} has a {kind} in place of a mapping"]
    for name, value in entry.items():
        try:
            refuse_foreign_values({name: value}, where)
        except InvalidRecordError as e:
            left_out.append(str(e))
        else:
            held[name] = value
    for problem in left_out:
        _logger.warning("Left out of the record: %s", problem)
    return held, left_out


def error_text(error: BaseException) -> str:
    """Return an exception as a record has it: ``Type: message``, secrets masked, of bounded length."""
    try:
        message = str(error)
    except Exception as e:  # noqa: BLE001 - a user's exception may fail to say what it is
        message = f"(its message failed with {type(e).__name__})"
    if is_foreign(type(error).__module__):
        # Arrow, Spark and their like quote the cell that they stumble over.
        text = said(error)
    else:
        text = mask_text(f"{type(error).__name__}: {message}" if message else type(error).__name__)
    if len(text) > LONGEST_ERROR:
        text = f"{text[:LONGEST_ERROR]}… ({len(text) - LONGEST_ERROR:,} more characters)"
    return text
