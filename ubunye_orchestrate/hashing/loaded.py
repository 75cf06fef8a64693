"""Libraries that a user may have passed a value of: then they are loaded, and need not be imported."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

__all__ = ["loaded"]


def loaded(name: str) -> ModuleType | None:
    """Return a module that is loaded; None for one that is not.

    One that another thread is just importing stands in ``sys.modules`` without its names: an import waits
    until it has them.
    """
    return importlib.import_module(name) if sys.modules.get(name) is not None else None
