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
# At a version that Maven Central serves; it works in the other patch versions of Spark, too.
CONNECT_ARTIFACT = "spark-connect_2.12:3.5.7"


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
    return _jars("io.delta,io.unitycatalog", DELTA_ARTIFACTS[".".join(spark_version.split(".")[:2])])


def connect_jar(spark_version: str) -> str | None:
    """The jar of the Connect server of a Spark before 4, fetched when missing; None where Spark brings it.

    Raises RuntimeError as ``delta_jars`` does.
    """
    return None if spark_version >= "4" else _jars("org.apache.spark", CONNECT_ARTIFACT)


def _jars(groups: str, artifact: str) -> str:
    script = CACHE.parent / "scripts" / "spark_jars.sh"
    arguments = ["sh", str(script), str(CACHE / "jars"), groups, artifact]
    said = subprocess.run(arguments, capture_output=True, text=True)
    if said.returncode:
        raise RuntimeError(f"no jars of {artifact}: {said.stderr.strip()}")
    return said.stdout.strip()
