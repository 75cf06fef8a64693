"""CHAR and VARCHAR columns are hashed as Spark hands them back: CHAR padded to its length."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ubunye_orchestrate.hashing.api import fingerprint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(params=["parquet", "delta"])
def stored(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    name = f"padded_{uuid.uuid4().hex}"
    spark.sql(f"create table {name} (c char(5), v varchar(5), n struct<c: char(3)>) using {request.param}")
    spark.sql(f"insert into {name} values ('ab', 'ab', struct('x')), (null, '', null)")
    yield name
    spark.sql(f"drop table {name}")


def test_char_and_varchar(spark: SparkSession, stored: str) -> None:
    rows = [(row.c, row.v, row.n and row.n.c) for row in spark.table(stored).collect()]
    assert sorted(rows, key=str) == [("ab   ", "ab", "x  "), (None, "", None)]
    columns = {
        "c": ["ab   ", None],
        "v": ["ab", ""],
        "n": pa.array([{"c": "x  "}, None], pa.struct([("c", pa.string())])),
    }
    here, there = fingerprint(pa.table(columns)), fingerprint(spark.table(stored))
    assert there.columns == here.columns
    assert there.data_hash == here.data_hash
