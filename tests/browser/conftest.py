"""The script that takes the documentation's pictures, which these tests look through too."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def script() -> ModuleType:
    """``scripts/screenshot_panel.py``, which also takes the README's picture."""
    path = Path(__file__).parents[2] / "scripts" / "screenshot_panel.py"
    spec = importlib.util.spec_from_file_location("screenshot_panel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.chromium() is None:
        if os.environ.get("UBUNYE_REQUIRE_BROWSER"):
            pytest.fail("no chromium on this machine, and UBUNYE_REQUIRE_BROWSER is set")
        pytest.skip("no chromium on this machine")
    return module
