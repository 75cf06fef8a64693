"""Run what the README shows and put its output there: nothing in it is typed by hand.

``make docs`` runs it. Blocks are marked ``<!-- output: make demo -->`` and, for the Python block before,
``<!-- output: the example above -->``.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
EXAMPLE = "the example above"
_BLOCK = re.compile(r"<!-- output: (?P<what>[^>]+?) -->\n```text\n(?P<old>.*?)```", re.DOTALL)
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def run_python(source: str) -> str:
    """Run a block of Python in a folder of its own and return what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            [sys.executable, "-c", source], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
        )
    return ran.stdout


def run_demo() -> str:
    """Run the demo as a reader would, without colours, and return what it prints."""
    ran = subprocess.run(
        [sys.executable, "-m", "example_project.demo"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "88"},
    )
    return ran.stdout


def output_of(what: str, text: str, position: int) -> str:
    """Return the output that a block marked ``what`` at ``position`` of the README should show."""
    if what == "make demo":
        return run_demo()
    return run_python(_PYTHON.findall(text[:position])[-1])


def main() -> None:
    """Refresh every block."""
    text = README.read_text(encoding="utf-8")
    for block in reversed(list(_BLOCK.finditer(text))):
        shown = output_of(block["what"], text, block.start()).rstrip() + "\n"
        text = text[: block.start("old")] + shown + text[block.end("old") :]
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
