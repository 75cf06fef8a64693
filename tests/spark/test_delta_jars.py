"""The session of the tests reads and writes Delta tables: no Delta test is skipped for want of jars."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_session_writes_and_reads_delta(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    spark.range(3).write.format("delta").save(path)
    assert (tmp_path / "table" / "_delta_log").is_dir()
    assert spark.read.format("delta").load(path).count() == 3
