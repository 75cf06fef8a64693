"""A library that another thread is just importing counts as loaded once it has its names."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

import pytest

from ubunye_orchestrate.hashing.loaded import loaded

SLOW = """
import builtins, time
builtins.slow_library_began.set()
time.sleep(0.3)
class DataFrame: ...
"""


def test_what_is_not_loaded_is_not_imported() -> None:
    assert loaded("turtledemo") is None
    assert "turtledemo" not in sys.modules


def test_one_that_is_being_imported_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    (tmp_path / "slow_library.py").write_text(SLOW)
    monkeypatch.syspath_prepend(str(tmp_path))
    began = threading.Event()
    monkeypatch.setattr(builtins, "slow_library_began", began, raising=False)
    other = threading.Thread(target=importlib.import_module, args=["slow_library"])
    other.start()
    try:
        assert began.wait(10)
        assert not hasattr(sys.modules["slow_library"], "DataFrame")
        module = loaded("slow_library")
        assert module is not None
        assert hasattr(module, "DataFrame")
    finally:
        other.join()
        sys.modules.pop("slow_library", None)
