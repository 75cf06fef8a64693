"""Pieces of Spark SQL that mean the same in every session.

Expressions are built as SQL text: one text serves Spark 3.5 and 4, classic and Connect. A literal in quotes
would be read by the session's parser settings (``escapedStringLiterals``, ``doubleQuotedIdentifiers``), so
whatever is not plain is written as hexadecimal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

__all__ = ["any_known", "any_of", "case", "concat", "json_text", "literal"]

_PLAIN = re.compile(r"[A-Za-z0-9_ ,.:+\-\[\]{}]*")

# The formats by which rows-v1 is defined. Everything a session could set otherwise is said.
_JSON_OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "dateFormat": "yyyy-MM-dd",
    "timeZone": "UTC",
    "ignoreNullFields": "true",
}


def literal(text: str) -> str:
    """Return a string literal (the text must be valid Unicode)."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"cast(X'{text.encode().hex()}' as string)"


def concat(*parts: str) -> str:
    """Return the concatenation of string expressions; null if one of them is."""
    return f"concat({', '.join(parts)})"


def case(*branches: tuple[str, str], otherwise: str = "null") -> str:
    """Return the value of the first branch (condition, value) whose condition holds."""
    whens = " ".join(f"when {condition} then {value}" for condition, value in branches)
    return f"case {whens} else {otherwise} end"


def any_of(conditions: Iterable[str]) -> str:
    """Return whether one of some conditions holds; those that are null do not."""
    joined = " or ".join(f"({condition})" for condition in conditions)
    return f"coalesce({joined}, false)" if joined else "false"


def any_known(conditions: Iterable[str | None]) -> str | None:
    """Return whether one of some conditions holds, of which some may be None; None where all are."""
    known = [condition for condition in conditions if condition is not None]
    return any_of(known) if known else None


def json_text(value: str) -> str:
    """Return what Spark's JSON writer writes for a struct, list or map, in the formats of rows-v1."""
    return f"to_json({value}, {_OPTIONS})"


def _map(entries: Mapping[str, str]) -> str:
    return f"map({', '.join(literal(text) for entry in entries.items() for text in entry)})"


_OPTIONS = _map(_JSON_OPTIONS)
