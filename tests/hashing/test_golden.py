"""Golden files of our own: bytes that stay the same for ever, by every path."""

from __future__ import annotations

import pytest

from tests.hashing.golden_cases import golden_batches
from tests.hashing.paths import PATHS
from tests.hashing.regenerate_golden import COMMAND, FOLDER, golden_bytes

CASES = golden_batches()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", CASES)
def test_each_case_gives_its_golden_file(name: str, path: str) -> None:
    golden = FOLDER / f"{name}.json"
    same = golden.exists() and golden_bytes(CASES[name], PATHS[path]) == golden.read_bytes()
    assert same, (
        f"the {path} path no longer gives {golden}; if the case is new, or rows-v1 was wrong and that is "
        f"recorded, write it anew with: {COMMAND}"
    )


def test_every_golden_file_has_its_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)
