"""Fixtures of this room."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """A temporary folder that anybody may reach and write to."""
    for folder in tmp_path.parents:
        if "pytest" in folder.name and folder.stat().st_uid == os.getuid():
            folder.chmod(0o755)
    tmp_path.chmod(0o777)
    return tmp_path
