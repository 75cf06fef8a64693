"""A Spark frame has the hash of the same rows in Arrow: the reference's, and that of the golden tables."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hashing.vectors import arrow_table, table_vectors
from tests.spark.frames import spark_frame
from tests.spark.random_tables import random_table
from ubunye_orchestrate.hashing import canonical, rows_v1
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.types import canonical_columns

pytestmark = pytest.mark.spark

TABLES = list(table_vectors())


@pytest.mark.parametrize("vector", TABLES, ids=[v["name"] for v in TABLES])
def test_golden_tables(spark: Any, vector: dict[str, Any]) -> None:
    got = fingerprint(spark_frame(spark, arrow_table(vector)))
    assert got.error is None
    assert got.data_hash == vector["data_hash"]
    assert got.schema_hash == vector["schema_hash"]
    assert got.path_taken.startswith("spark-sql")


@pytest.mark.parametrize("seed", range(8))
def test_random_tables(spark: Any, seed: int) -> None:
    table = random_table(seed)
    columns = canonical_columns(table.schema)
    total = rows_v1.LaneSums()
    for batch in table.to_batches():
        total.add(canonical.batch_lines(batch))
    got = fingerprint(spark_frame(spark, table))
    assert got.error is None
    assert got.lane_sums == total.sums
    assert got.data_hash == rows_v1.data_hash(total.rows, columns, total.sums)


def test_what_spark_hands_over_to_arrow_is_refused_there_too(spark: Any) -> None:
    if spark.version < "4":
        pytest.skip("Spark has variants from 4.0 on")
    nested = "array(named_struct('v', parse_json('1'))) as odd"
    got = fingerprint(spark.range(3).selectExpr("id", nested).toArrow())
    assert got.data_hash is None
    assert "a variant has no exact canonical text" in (got.error or "")
    if spark.version >= "4.1":
        times = spark.sql("select time'12:30:01.5' as t")
        assert "time(6) of Spark is not hashed: its JSON writer" in (fingerprint(times).error or "")
        assert fingerprint(times.toArrow()).error is None


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("parse_json('{\"a\": 1}')", "variant"),
        ("interval '1' day", "interval"),
        ("map(named_struct('a', 1), 2)", "struct"),
    ],
)
def test_what_has_no_text_is_refused_by_name(spark: Any, expression: str, named: str) -> None:
    if named == "variant" and spark.version < "4":
        pytest.skip("Spark has it from 4.0 on")
    got = fingerprint(spark.range(3).selectExpr("id", f"{expression} as odd"))
    assert got.data_hash is None
    assert got.error is not None
    assert "'odd'" in got.error
    assert named in got.error
