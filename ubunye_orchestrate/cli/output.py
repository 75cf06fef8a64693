"""What the commands write: text, coloured on a terminal only; JSON; errors in the form that was asked for.

Nothing of a record reaches a terminal raw: text is escaped where it is made (``compare.text``), JSON here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import typer

from ubunye_orchestrate.compare.text import printable
from ubunye_orchestrate.errors import RecordError, UbunyeError

__all__ = ["Invalid", "errors_as", "write_document", "write_documents", "write_text"]

_NOT_PRINTABLE = re.compile(r"[^\n -~]")

# What a line ends with (or begins with, among findings), and the colour that it gets.
_COLOURS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^(PASS|ACCEPTED|unchanged)  "), typer.colors.GREEN),
    (re.compile(r"^(FAIL|missing|unreadable)  "), typer.colors.RED),
    (re.compile(r"CHANGED$|^changed  "), typer.colors.YELLOW),
    (re.compile(r"^  error  |\[error\]|  error( |$)|^    fail  "), typer.colors.RED),
    (re.compile(r"^  warn   |^    (warn|quarantine) "), typer.colors.YELLOW),
    (re.compile(r" (unknown|not comparable)( \(.*)?$|^unknown  "), typer.colors.CYAN),
)


def _coloured() -> bool:
    # https://no-color.org: any value but the empty one.
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write_text(lines: Iterable[str]) -> None:
    """Write lines of text whose parts were made printable."""
    coloured = _coloured()
    for line in lines:
        colour = next((c for pattern, c in _COLOURS if pattern.search(line)), None) if coloured else None
        _write(typer.style(line, fg=colour) if colour else line, color=coloured)


def write_document(document: Any) -> None:
    """Write one JSON document."""
    _write(_json(document))


def write_documents(documents: Iterable[Any]) -> None:
    """Write a JSON list, each of its documents as soon as it is there."""
    first = True
    for document in documents:
        indented = _json(document).replace("\n", "\n  ")
        _write(f"{'[' if first else ','}\n  {indented}", nl=False)
        first = False
    _write("[]" if first else "\n]")


def _json(document: Any) -> str:
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return text if text.isascii() and "\x7f" not in text else _NOT_PRINTABLE.sub(_json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    """Keep a character that a terminal shows as itself; write any other as JSON escapes it."""
    mark = match[0]
    if printable(mark) == mark and _can_write(mark):
        return mark
    return json.dumps(mark)[1:-1] if mark != "\x7f" else "\\u007f"


def _can_write(mark: str) -> bool:
    try:
        mark.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _write(text: str, *, nl: bool = True, err: bool = False, color: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "ascii"
    # A terminal that cannot show a letter gets its escape: no text of a record makes a command fail.
    typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=nl, err=err, color=color)


class Invalid:
    """The files that were passed over: each told once, on standard error, so that the output stays whole."""

    def __init__(self) -> None:
        self.errors: list[RecordError] = []
        self._told: set[str] = set()

    @property
    def first(self) -> RecordError | None:
        """The first error, where there was one."""
        return self.errors[0] if self.errors else None

    def __call__(self, path: str, error: RecordError) -> None:
        """Take a file or folder that cannot be read, and why; the reason names it."""
        self.errors.append(error)
        if path in self._told:
            return
        self._told.add(path)
        _write(f"[WARNING] passed over {printable(error)}", err=True)


@contextlib.contextmanager
def errors_as(as_json: bool) -> Iterator[None]:
    """Turn this package's errors into one line and exit code 1: JSON on standard output where asked for."""
    try:
        yield
    except UbunyeError as e:
        if as_json:
            write_document({"ok": False, "error": str(e)})
        else:
            _write(f"[ERROR] {printable(e)}", err=True)
        raise typer.Exit(1) from e
