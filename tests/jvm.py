"""Finding a Java for the tests: the texts of rows-v1 are those of JDK 19 and newer."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

FIRST_JDK_WITH_SHORTEST_TEXT = 19
# Where `scripts/find_jdk.sh .cache/jdk` puts one from the package index.
FETCHED = Path(__file__).parent.parent / ".cache" / "jdk"


def find_jdk() -> Path | None:
    """The home of a Java that is new enough: ``UBUNYE_JDK``, ``JAVA_HOME``, the newest installed, fetched."""
    return next((home for home in _homes() if java_version(home) >= FIRST_JDK_WITH_SHORTEST_TEXT), None)


def _homes() -> Iterator[Path]:
    for variable in ("UBUNYE_JDK", "JAVA_HOME"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    yield from sorted(Path("/usr/lib/jvm").glob("*"), key=java_version, reverse=True)
    yield FETCHED


def java_version(home: Path) -> int:
    """The major version of the Java in ``home``; 0 if there is none that starts."""
    try:
        said = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r'version "(\d+)', said.stderr)
    return int(found.group(1)) if found else 0
