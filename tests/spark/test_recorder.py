"""What the recorder says of a Spark frame: it is computed for its hash, and the record tells so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ubunye_orchestrate.records.recorder import LineageRecorder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_plan_is_computed_for_its_hash_and_the_record_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with LineageRecorder(root=str(tmp_path)).run("t") as run:
        run.read("drawn", spark.range(3).selectExpr("rand() as x"))
        run.wrote("stored", spark.range(3))
    assert run.record is not None
    steps = run.record.inputs + run.record.outputs
    assert [step.hash_basis for step in steps] == ["recomputed"] * 2
    assert [step.row_count for step in steps] == [3, 3]
    assert run.record.backend == "spark"
