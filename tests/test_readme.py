"""The README's Python runs, and prints what the README says it prints."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
SHOWN = re.findall(r"<!-- output: the example above -->\n```text\n(.*?)```", TEXT, re.DOTALL)
# Ways 2 and 3 go on with the asset of way 1; each ends in definitions, which have to load and run.
RUN_IT = "\nassert materialize([orders], resources=defs.resources).success\n"


def run(source: str, folder: pathlib.Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", source], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("way", [1, 2, 3])
def test_each_way_into_a_project_leaves_a_record(way: int, tmp_path: pathlib.Path) -> None:
    first = BLOCKS[0]
    run(first + ("" if way == 1 else BLOCKS[way - 1]) + RUN_IT, tmp_path)
    usecase = "shop" if way == 2 else "default"
    records = list((tmp_path / ".ubunye" / "lineage" / usecase / "default" / "orders").glob("*.json"))
    assert len(records) == 1
    assert '"sha256:' in records[0].read_text(encoding="utf-8")


def test_the_hash_example_prints_what_is_shown(tmp_path: pathlib.Path) -> None:
    assert len(BLOCKS) == 4
    printed = run(BLOCKS[3], tmp_path)
    assert [printed] == SHOWN, "run `make docs` to refresh the README"
    assert len(set(printed.split())) == 1, "both frames hold the same rows"
