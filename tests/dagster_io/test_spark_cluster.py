"""The Spark IO manager on a real cluster: a lost executor loses no table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.jvm import delta_jars
from tests.spark.cluster import standalone, table_for

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def master(spark_jdk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(spark_jdk, tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.mark.parametrize("stored_as", ["delta", "parquet"])
def test_a_table_stays_as_it_was_where_an_executor_is_lost_during_the_write(
    spark_jdk: Path, master: str, tmp_path: Path, stored_as: str
) -> None:
    import pyspark

    source = tmp_path / "source"
    table_for(source, pa.table({"x": list(range(40))}), files=4)
    arguments = (master, delta_jars(pyspark.__version__), str(source), str(tmp_path), stored_as)
    own = {"JAVA_HOME": str(spark_jdk), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.dagster_io.cluster_job", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | own,
        cwd=tmp_path,
        timeout=280,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-3000:]
    said = json.loads(lines[-1])
    assert said["done"] == [True, False]
    assert said["before"] == [40, ["table"]]
    assert said["after"] == said["before"], "nothing is lost, and nothing is left beside it"
    assert (said["status"], said["hashes"]) == ("error", [None])
    assert "ExecutorLostFailure" in said["error"]
