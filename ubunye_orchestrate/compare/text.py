"""Text of records made fit for a terminal and for Markdown.

Records hold text of users, of their data's column names and of exceptions. None of it is printed raw: a
control sequence could rewrite what the screen says, and bidirectional marks could turn its order round.
"""

from __future__ import annotations

import unicodedata
from typing import Any

__all__ = ["markdown_cell", "printable", "short_hash", "short_run_id"]

# Cc controls, Cf format marks (bidirectional ones, zero-width ones, tags), Cs lone surrogates, Co private
# use, Cn unassigned, Zl and Zp line and paragraph separators.
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKDOWN = str.maketrans({mark: f"\\{mark}" for mark in "\\|`*[]<>~#"} | {"&": "&amp;"})


def printable(value: Any, *, keep_newlines: bool = False) -> str:
    """Write everything that could steer a terminal as an escape (``\\x1b``, ``\\u202e``)."""
    text = value if isinstance(value, str) else str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        mark
        if (mark == "\n" and keep_newlines) or unicodedata.category(mark) not in _UNPRINTABLE
        else _escape(mark)
        for mark in text
    )


def _escape(mark: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return named.get(mark) or mark.encode("unicode_escape").decode("ascii")


def short_hash(value: str | None, *, full: bool = False) -> str:
    """Shorten ``sha256:`` and 64 digits to 12 digits, enough to tell two apart by eye; ``-`` for None."""
    if value is None:
        return "-"
    method, colon, digits = value.partition(":")
    if full or not colon or len(digits) <= 12:
        return printable(value)
    return printable(f"{method}:{digits[:12]}")


def short_run_id(run_id: str) -> str:
    """Shorten a run id to eight characters and keep what tells its records apart: partition and attempt."""
    bare, separator, partition = run_id.partition("--")
    if separator:
        return printable(bare[:8] + separator + partition)
    bare, separator, attempt = run_id.partition(".retry-")
    return printable(bare[:8] + separator + attempt)


def markdown_cell(value: Any) -> str:
    """Return the text as the content of one table cell: one line, and nothing in it read as markup."""
    return printable(value).translate(_MARKDOWN)
