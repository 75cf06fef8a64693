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
    # Delta 3 does not pad inside of a struct: what Spark hands back is what is hashed.
    rows = sorted(spark.table(stored).collect(), key=lambda row: row.v, reverse=True)
    assert [(row.c, row.v) for row in rows] == [("ab   ", "ab"), (None, "")]
    nested = [None if row.n is None else row.n.asDict() for row in rows]
    columns = {
        "c": [row.c for row in rows],
        "v": [row.v for row in rows],
        "n": pa.array(nested, pa.struct([("c", pa.string())])),
    }
    here, there = fingerprint(pa.table(columns)), fingerprint(spark.table(stored))
    assert there.columns == here.columns
    assert there.data_hash == here.data_hash
