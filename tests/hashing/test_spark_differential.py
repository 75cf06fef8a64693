"""Both paths against real Spark's ``to_json``, which defines the text of rows-v1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from tests.hashing.float_values import doubles, floats
from tests.hashing.paths import PATHS
from tests.hashing.spark_json import spark_lines
from tests.hashing.strategies import SPARK, RandomTable, tables
from tests.hashing.vectors import arrow_table, table_vectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

each_path = pytest.mark.parametrize("path", PATHS)
few = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
spark_tables = tables(kinds=SPARK, min_columns=1, min_rows=1, max_rows=30)


def _assert_lines_of_spark(spark: SparkSession, batch: pa.RecordBatch) -> None:
    expected = spark_lines(spark, batch)
    for path, lines in PATHS.items():
        assert lines(batch).cast(pa.large_string()).to_pylist() == expected, path


@few
@given(table=spark_tables)
def test_random_tables(spark: SparkSession, table: RandomTable) -> None:
    _assert_lines_of_spark(spark, table.batch())


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(few, max_examples=1000)
@given(table=spark_tables)
def test_a_thousand_random_tables(spark: SparkSession, table: RandomTable) -> None:
    _assert_lines_of_spark(spark, table.batch())


def test_doubles_and_floats(spark: SparkSession) -> None:
    wide, narrow = doubles(20_000, seed=5), floats(20_000, seed=5)
    rows = min(len(wide), len(narrow))
    _assert_lines_of_spark(
        spark, pa.record_batch([pa.array(wide[-rows:]), pa.array(narrow[-rows:])], ["d", "f"])
    )


@pytest.mark.parametrize(
    "vector", [v for v in table_vectors() if v["rows"] and v["schema"]], ids=lambda v: v["name"]
)
def test_the_vectors_are_still_what_spark_writes(spark: SparkSession, vector: dict) -> None:
    (batch,) = arrow_table(vector).combine_chunks().to_batches()
    assert spark_lines(spark, batch) == vector["lines"]
