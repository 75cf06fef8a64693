"""A hash is one job over the table: no row is collected, nothing is persisted, no plan runs twice."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ubunye_orchestrate.hashing.spark as spark_room
from tests.spark.conftest import NewSession
from tests.spark.frames import spark_frame
from tests.spark.test_floats import FLAT, stored
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.spark.catalyst import catalyst_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCES = sorted(Path(spark_room.__file__).parent.glob("*.py"))
# What Spark offers only to classic sessions, by the one module that asks for it where there is one.
CLASSIC_ONLY = {"_jdf", "_jsparkSession", "_sc", "_jsc", "_jvm", "sparkContext", "rdd"}
# What brings rows here, or keeps them.
ROWS = {"toPandas", "toArrow", "toLocalIterator", "take", "head", "first", "show", "foreach"}
KEPT = {"persist", "cache", "checkpoint", "localCheckpoint", "createTempView", "createOrReplaceTempView"}


def test_one_job_a_table(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.functions import spark_partition_id

    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")  # which counts the stages of a query as jobs
    frame = stored(session, FLAT, tmp_path)
    fingerprint(frame)  # what a session is asked once
    context = session.sparkContext
    read = context.accumulator(0)

    def noted(value: int) -> int:
        read.add(1)
        return value

    persisted = set(context._jsc.getPersistentRDDs())  # Delta keeps some of its own
    counted = session.udf.register("noted", noted, "int")
    context.setJobGroup("hash", "one hash")
    try:
        got = fingerprint(frame.withColumn("n", counted(spark_partition_id())))
    finally:
        context._jsc.clearJobGroup()
    assert got.error is None
    assert got.row_count == FLAT.num_rows
    assert len(context.statusTracker().getJobIdsForGroup("hash")) == 1
    assert read.value == FLAT.num_rows
    assert set(context._jsc.getPersistentRDDs()) <= persisted
    assert not session._jsparkSession.sharedState().cacheManager().lookupCachedData(frame._jdf).isDefined()


def test_what_the_user_persisted_stays_so(spark: SparkSession) -> None:
    frame = spark.range(100).selectExpr("id", "cast(id as string) as text").persist()
    try:
        fingerprint(frame)
        assert frame.storageLevel.useMemory
    finally:
        frame.unpersist(blocking=True)


def test_only_one_row_of_numbers_is_collected(
    new_session: NewSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark_frame(new_session(), FLAT)
    fingerprint(frame)
    came: list[Any] = []
    collect = type(frame).collect

    def noted(self: Any) -> Any:
        rows = collect(self)
        came.extend(rows)
        return rows

    monkeypatch.setattr(type(frame), "collect", noted)
    fingerprint(frame)
    assert len(came) == 1
    assert all(isinstance(value, int) for value in came[0])


def test_sparks_own_expressions_are_as_known(spark: SparkSession) -> None:
    """Or a classic session would be hashed by SQL alone: right, but slower, and nobody would notice."""
    catalyst = catalyst_of(spark.range(1))
    assert catalyst is not None
    largest = "X'7fffffffffffffff'"
    digests = spark.sql(f"select {largest} as a from values (1), (2)")  # their sum does not fit
    texts = catalyst.shortest_texts("array(2.0E-3D, null, double('-Infinity'))")
    row = digests.select(catalyst.sha256("a"), texts, catalyst.sql("1")).first()
    assert row is not None
    assert bytes(row[0]) == hashlib.sha256(bytes.fromhex("7f" + "ff" * 7)).digest()
    assert row[1:] == (["0.002", None, "-Infinity"], 1)
    assert digests.select(catalyst.sum_of_first_eight_bytes("a")).collect()[0][0] == -2


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_sources_use_nothing_that_connect_lacks(source: Path) -> None:
    names = {node.attr for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Attribute)}
    assert not names & (ROWS | KEPT)
    assert names & CLASSIC_ONLY <= ({"_jvm"} if source.stem == "catalyst" else set())
