"""On a real cluster, whose executors have nothing of ours: a master and two workers on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.jvm import FIRST_JDK_WITH_SHORTEST_TEXT, java_version
from tests.spark.cluster import bare_python, standalone, table_for
from tests.spark.test_floats import table_of_floats
from ubunye_orchestrate.hashing.api import fingerprint

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def master(spark_jdk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(spark_jdk, tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str | None]:
    """Where a table is stored that is larger than what may come back, and its hash."""
    folder = tmp_path_factory.mktemp("data") / "table"
    table = table_of_floats(8_000)
    table_for(folder, table, files=4)
    assert sum(file.stat().st_size for file in folder.iterdir()) > 500_000
    return str(folder), fingerprint(table).data_hash


def run(jdk: Path, folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """What a driver says of each case."""
    environment = os.environ | {"JAVA_HOME": str(jdk), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    said = subprocess.run(
        [sys.executable, "-m", "tests.spark.driver", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        timeout=240,
    )
    cases = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]
    assert said.returncode == 0 or cases, said.stderr[-3000:]
    return {case.pop("case"): case for case in cases}


def test_by_sql_and_by_python_with_nothing_of_ours_there(
    spark_jdk: Path, master: str, stored: tuple[str, str | None], tmp_path: Path
) -> None:
    path, data_hash = stored
    python = str(bare_python(tmp_path / "bare", "pyarrow"))
    cases = ("executors_python", "plain", "by_python", "executor_lost_once", "executors_lost")
    said = run(spark_jdk, tmp_path, master, python, path, *cases)
    assert said["executors_python"]["finds"] == ["pyarrow,pyspark"]
    is_old = java_version(spark_jdk) < FIRST_JDK_WITH_SHORTEST_TEXT
    ways = {
        "plain": {"spark-sql+java-method" if is_old else "spark-sql"},
        "by_python": {"spark-sql+arrow-udf", "spark-sql+python-udf"},
        "executor_lost_once": {"spark-sql+java-method" if is_old else "spark-sql"},
    }
    for case, paths in ways.items():
        assert said[case]["error"] is None
        assert said[case]["data_hash"] == data_hash
        assert said[case]["path_taken"] in paths
        only_numbers(said[case]["came"])
    assert said["executors_lost"]["data_hash"] is None
    assert "ExecutorLostFailure" in said["executors_lost"]["error"]


def only_numbers(came: list[list[list[Any]]]) -> None:
    """One row of the rows' numbers is all that came; before it, at most what the session was asked."""
    *_, numbers = came
    assert len(numbers) == 1
    assert all(isinstance(number, int) for number in numbers[0])
    counts, pieces_of_sums = (
        4,
        2 * 3,
    )  # of rows, digests, bad text, another Java; by SQL a sum has three pieces
    assert len(numbers[0]) <= counts + pieces_of_sums


def test_without_pyarrow_there(
    spark_jdk: Path, master: str, stored: tuple[str, str | None], tmp_path: Path
) -> None:
    path, data_hash = stored
    python = str(bare_python(tmp_path / "bare"))
    said = run(spark_jdk, tmp_path, master, python, path, "executors_python", "by_python", "stopped")
    assert said["executors_python"]["finds"] == ["pyspark"]
    assert said["by_python"]["path_taken"] == "spark-sql+python-udf"
    assert said["by_python"]["data_hash"] == data_hash
    assert said["stopped"]["data_hash"] is None
    assert "was it stopped?" in said["stopped"]["error"]


def test_a_driver_whose_java_has_gone(spark_jdk: Path, tmp_path: Path) -> None:
    table_for(tmp_path / "table", pa.table({"a": [1]}), files=1)
    said = run(spark_jdk, tmp_path, "local[1]", sys.executable, str(tmp_path / "table"), "driver_lost")
    assert said["driver_lost"]["data_hash"] is None
    assert "Spark cannot say what the frame holds" in said["driver_lost"]["error"]


def test_executors_of_another_java_than_the_driver(
    spark_jdk: Path, stored: tuple[str, str | None], tmp_path: Path
) -> None:
    is_old = java_version(spark_jdk) < FIRST_JDK_WITH_SHORTEST_TEXT
    other = next(
        (
            home
            for home in sorted(Path("/usr/lib/jvm").glob("*"))
            if java_version(home) >= 17 and (java_version(home) < FIRST_JDK_WITH_SHORTEST_TEXT) != is_old
        ),
        None,
    )
    if other is None:
        pytest.skip("one Java here, or several that write alike")
    driver, executors = (other, spark_jdk) if is_old else (spark_jdk, other)
    path, data_hash = stored
    with standalone(executors, tmp_path, workers=1) as address:
        said = run(driver, tmp_path, address, sys.executable, path, "plain")
    assert said["plain"]["error"] is None
    assert said["plain"]["path_taken"] == "spark-sql+java-method"
    assert said["plain"]["data_hash"] == data_hash
