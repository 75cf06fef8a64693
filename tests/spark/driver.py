"""A driver in a process of its own: hashes tables on a cluster and says, as JSON, what came of it.

Runs as ``python -m tests.spark.driver MASTER EXECUTOR_PYTHON TABLE CASE...``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import ubunye_orchestrate.hashing.spark as spark_room
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.spark import aggregate
from ubunye_orchestrate.hashing.spark.session import JsonWriter, json_writer

# Of one task's result; the tables are larger.
_MOST_RESULT = "300k"


def main() -> None:
    """Hash the table in each of the cases that are named."""
    master, python, path, *cases = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = python
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.driver.maxResultSize": _MOST_RESULT,
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "2",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.warehouse.dir": os.path.join(os.getcwd(), "warehouse"),
    }
    builder = SparkSession.builder.master(master).appName("driver")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    for case in cases:
        print(json.dumps({"case": case, **_CASES[case](session, path)}), flush=True)


def _said(frame: Any) -> dict[str, Any]:
    """Hash a frame, noting what comes back to the driver."""
    came: list[list[Any]] = []
    kind = type(frame)
    collect = kind.collect

    def noted(self: Any) -> Any:
        rows = collect(self)
        came.append([list(row) for row in rows])
        return rows

    kind.collect = noted
    try:
        got = fingerprint(frame)
    finally:
        kind.collect = collect
    return dataclasses.asdict(got) | {"came": came}


def _plain(session: SparkSession, path: str) -> dict[str, Any]:
    return _said(session.read.parquet(path))


def _by_python(session: SparkSession, path: str) -> dict[str, Any]:
    """Hash as where SQL may not call Java."""
    writer = dataclasses.replace(json_writer(session), floats=False, java_method=False)
    return _with_writer(writer, session, path)


def _with_writer(writer: JsonWriter, session: SparkSession, path: str) -> dict[str, Any]:
    kept = spark_room.json_writer, aggregate.catalyst_of
    spark_room.json_writer, aggregate.catalyst_of = lambda _: writer, lambda _: None
    try:
        return _plain(session, path)
    finally:
        spark_room.json_writer, aggregate.catalyst_of = kept


def _executors_python(session: SparkSession, path: str) -> dict[str, Any]:
    """Say which modules the executors' Python finds."""
    names = ("ubunye_orchestrate", "pyarrow", "pandas", "pyspark")

    def finds(_: int) -> str:
        import importlib.util

        return ",".join(name for name in names if importlib.util.find_spec(name))

    rows = session.range(2).select(_function(finds, "string")("id").alias("found")).collect()
    return {"finds": sorted({row.found for row in rows})}


def _function(function: Callable[[int], Any], returns: str) -> Any:
    from pyspark.sql.functions import udf

    return udf(function, returns, useArrow=False)


def killing(session: SparkSession, path: str, *, attempts: int) -> DataFrame:
    """Return the table; its first tasks kill the executor that runs them, that often."""

    def kill(partition: int) -> int:
        from pyspark import TaskContext

        context = TaskContext.get()
        if partition == 0 and context is not None and context.attemptNumber() < attempts:
            with open(f"/proc/{os.getppid()}/stat") as stat:  # the daemon, whose parent is the executor
                executor = int(stat.read().rsplit(")", 1)[1].split()[1])
            os.kill(executor, signal.SIGKILL)
        return partition

    killed = _function(kill, "int")("partition")
    frame = session.read.parquet(path).selectExpr("*", "spark_partition_id() as partition")
    return frame.where(killed >= 0).drop("partition")


def _executor_lost_once(session: SparkSession, path: str) -> dict[str, Any]:
    return _said(killing(session, path, attempts=1))


def _executors_lost(session: SparkSession, path: str) -> dict[str, Any]:
    return _said(killing(session, path, attempts=99))


def _driver_lost(session: SparkSession, path: str) -> dict[str, Any]:
    """Hash a frame whose JVM has gone."""
    frame = session.read.parquet(path)
    process = session.sparkContext._gateway.proc
    process.kill()
    process.wait()
    return _said(frame)


def _stopped(session: SparkSession, path: str) -> dict[str, Any]:
    frame = session.read.parquet(path)
    session.stop()
    return _said(frame)


_CASES: dict[str, Callable[[SparkSession, str], dict[str, Any]]] = {
    "plain": _plain,
    "by_python": _by_python,
    "executors_python": _executors_python,
    "executor_lost_once": _executor_lost_once,
    "executors_lost": _executors_lost,
    "stopped": _stopped,
    "driver_lost": _driver_lost,
}


if __name__ == "__main__":
    main()
