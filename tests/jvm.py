"""Finding a Java for the tests: the texts of rows-v1 are those of JDK 19 and newer."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

FIRST_JDK_WITH_SHORTEST_TEXT = 19
# Where `scripts/find_jdk.sh .cache/jdk` puts one from the package index.
CACHE = Path(__file__).parent.parent / ".cache"
FETCHED = CACHE / "jdk"
# Spark's major and minor version -> the build of Delta for it, at a version that Maven Central serves.
DELTA_ARTIFACTS = {"4.2": "delta-spark_4.2_2.13:4.4.0", "3.5": "delta-spark_2.12:3.3.2"}


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


def delta_jars(spark_version: str) -> str:
    """The jars that a Spark of this version needs for Delta, separated by commas; fetched when missing.

    Raises RuntimeError with what the script said when they cannot be had.
    """
    artifact = DELTA_ARTIFACTS[".".join(spark_version.split(".")[:2])]
    script = CACHE.parent / "scripts" / "delta_jars.sh"
    said = subprocess.run(["sh", str(script), str(CACHE / "jars"), artifact], capture_output=True, text=True)
    if said.returncode:
        raise RuntimeError(f"no Delta jars: {said.stderr.strip()}")
    return said.stdout.strip()
