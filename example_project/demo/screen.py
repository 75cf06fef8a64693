"""What the demo prints: plain lines of at most 80 columns, in colour only on a terminal that wants it."""

from __future__ import annotations

import textwrap
from typing import IO

from rich.console import Console
from rich.text import Text

__all__ = ["Screen"]

WIDTH = 80
_INDENT = "   "
_TABLE_COLUMN = 30


class Screen:
    """A console of 80 columns. Colour follows the terminal and ``NO_COLOR``."""

    def __init__(self, file: IO[str] | None = None) -> None:
        """Print to ``file``, standard output by default."""
        self._console = Console(file=file, width=WIDTH, soft_wrap=True)
        self._column = 0

    def heading(self, text: str) -> None:
        """Print a heading with an empty line before it."""
        self._print("")
        self._print(text, "bold")

    def paragraph(self, text: str, style: str = "") -> None:
        """Print an indented paragraph, broken at 80 columns."""
        for line in textwrap.wrap(text, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT):
            self._print(line, style)

    def finding(self, table: str, text: str, style: str) -> None:
        """Print what was found about a table: its name in a column of its own, then the text."""
        name = f"{_INDENT}{table}"
        for line in textwrap.wrap(text, WIDTH - len(_INDENT) - _TABLE_COLUMN):
            self._print_parts((f"{name:<{len(_INDENT) + _TABLE_COLUMN}}", ""), (line, style))
            name = ""

    def difference(self, old: str, new: str) -> None:
        """Print an edit as two lines, the way a diff does."""
        self._print(f"{_INDENT}  - {old}", "red")
        self._print(f"{_INDENT}  + {new}", "green")

    def word(self, text: str) -> None:
        """Print a word of a line that grows while work goes on."""
        if self._column + 1 + len(text) > WIDTH:
            self._end_line()
        lead = _INDENT if self._column == 0 else " "
        self._console.print(Text(lead + text, "dim"), end="")
        self._console.file.flush()
        self._column += len(lead) + len(text)

    def as_is(self, text: str) -> None:
        """Print a command or what a program printed, its lines kept as they are."""
        for line in text.splitlines():
            self._print(line)

    def _print(self, text: str, style: str = "") -> None:
        self._print_parts((text, style))

    def _print_parts(self, *parts: tuple[str, str]) -> None:
        self._end_line()
        self._console.print(Text.assemble(*parts))

    def _end_line(self) -> None:
        if self._column:
            self._console.print()
            self._column = 0
