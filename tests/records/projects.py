"""Small projects on disk, imported as a user's are, and what their functions' evidence says."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from ubunye_orchestrate.records.code import CodeEvidence, code_evidence

_numbers = itertools.count()


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the files of a project to a folder of its own below ``folder``."""
    root = folder / f"project-{next(_numbers)}"
    for name, text in {"pyproject.toml": "", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@contextmanager
def imported(root: Path, module: str) -> Iterator[ModuleType]:
    """Import a module of a project, and forget all of the project afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(module)
    finally:
        sys.path.remove(str(root))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            paths = [file, *getattr(sys.modules[name], "__path__", [])]
            if any(str(path).startswith(str(root)) for path in paths):
                del sys.modules[name]


def evidence(
    folder: Path, files: Mapping[str, str] | str, target: str = "work", module: str = "job"
) -> CodeEvidence:
    """Return the evidence of ``target`` in a project of these files (or of this one, ``job.py``)."""
    root = write(folder, {"job.py": files} if isinstance(files, str) else files)
    with imported(root, module) as found:
        return code_evidence(getattr(found, target))


def changed(a: CodeEvidence, b: CodeEvidence) -> set[str]:
    """Return the names whose hash differs, or that only one of the two has."""
    assert a.error is None, a.error
    assert b.error is None, b.error
    return {name for name in {*a.functions, *b.functions} if a.functions.get(name) != b.functions.get(name)}
