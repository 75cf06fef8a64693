"""The documentation of drift and of Delta is run, and what it prints is what the text says."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "---- next block"


@pytest.mark.filterwarnings("ignore:Parameter `include_sources` of function")
@pytest.mark.parametrize("name", ["drift", "delta"])
def test_each_example_prints_what_the_text_says(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    doc = DOCS / f"{name}.md"
    text = doc.read_text()
    blocks = [body for kind, body in BLOCK.findall(text) if kind == "python"]
    # A file, as users have it: what an asset's code is stands there.
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / f"{name}_example.py").write_text(f"\nprint({_MARK!r})\n".join(blocks))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            module = importlib.import_module(f"{name}_example")
        module.instance.dispose()
    finally:
        sys.modules.pop(f"{name}_example", None)
    printed = iter(out.getvalue().split(f"{_MARK}\n"))
    last = ""

    def as_run(block: re.Match[str]) -> str:
        nonlocal last
        if block[1] == "python":
            last = next(printed)
            return block[0]
        return f"```text\n{last}```"

    shown = BLOCK.sub(as_run, text)
    if os.environ.get("UPDATE_DOCS"):
        doc.write_text(shown)
    assert shown == text, "UPDATE_DOCS=1 pytest tests/dagster_io/test_drift_doc.py writes what is printed"
