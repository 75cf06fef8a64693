"""What the demo prints: plain lines of at most 80 columns, in colour only on a terminal that wants it."""

from __future__ import annotations

import textwrap
from typing import IO

from rich.console import Console
from rich.markup import escape

__all__ = ["Screen"]

WIDTH = 80
_INDENT = "   "


class Screen:
    """A console of 80 columns. Colour follows the terminal and ``NO_COLOR``."""

    def __init__(self, file: IO[str] | None = None) -> None:
        """Print to ``file``, standard output by default."""
        self._console = Console(file=file, width=WIDTH, highlight=False, soft_wrap=True)
        self._column = 0

    def heading(self, text: str) -> None:
        """Print a heading with an empty line before it."""
        self._print(f"\n[bold]{escape(text)}[/bold]")

    def paragraph(self, text: str, style: str = "") -> None:
        """Print an indented paragraph, broken at 80 columns."""
        for part in textwrap.wrap(text, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT):
            self._print(f"[{style}]{escape(part)}[/]" if style else escape(part))

    def finding(self, table: str, text: str, style: str) -> None:
        """Print what was found about a table: its name in a column of its own, then the text."""
        column = 33
        lines = textwrap.wrap(text, WIDTH - column)
        for position, part in enumerate(lines):
            name = f"{_INDENT}{table}" if position == 0 else ""
            self._print(f"{escape(name):<{column}}[{style}]{escape(part)}[/]")

    def difference(self, old: str, new: str) -> None:
        """Print an edit as two lines, the way a diff does."""
        self._print(f"{_INDENT}  [red]- {escape(old)}[/]")
        self._print(f"{_INDENT}  [green]+ {escape(new)}[/]")

    def word(self, text: str) -> None:
        """Print a word of a line that grows while work goes on."""
        if self._column + len(text) + 1 > WIDTH:
            self._console.print()
            self._column = 0
        lead = _INDENT if self._column == 0 else " "
        self._console.print(f"[dim]{lead}{escape(text)}[/]", end="")
        self._console.file.flush()
        self._column += len(lead) + len(text)

    def as_is(self, text: str) -> None:
        """Print a command or what a program printed, its lines kept as they are."""
        for part in text.splitlines():
            self._print(escape(part))

    def _print(self, markup: str) -> None:
        if self._column:
            self._console.print()
            self._column = 0
        self._console.print(markup)
