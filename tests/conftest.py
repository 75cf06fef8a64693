"""Fixtures of every room: a Java of the right version, a real Spark on it, and a look at every record."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.jvm import FIRST_JDK_WITH_SHORTEST_TEXT, connect_jar, delta_jars, find_jdk, java_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ubunye_orchestrate.records.model import RunRecord


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    # Of a crash tell the one stack that crashed: those of a dozen idle threads, as pytest has it, bury it.
    faulthandler.enable(file=os.dup(sys.__stderr__.fileno()), all_threads=False)


@pytest.fixture(scope="session")
def schema_errors() -> Iterator[list[str]]:
    """What the shipped JSON Schema has against the records that this process mirrors, as they are written."""
    try:
        import jsonschema
    except ImportError:  # the lanes of other versions go without it
        yield []
        return
    from ubunye_orchestrate.records import store
    from ubunye_orchestrate.records.schema import record_schema

    validator = jsonschema.Draft202012Validator(record_schema())
    errors: list[str] = []
    encode = store.encode

    def encode_and_validate(record: RunRecord) -> bytes:
        data = encode(record)
        errors.extend(
            f"{record.task_path} {record.run_id}: {error.json_path}: {error.message}"
            for error in validator.iter_errors(json.loads(data))
        )
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "encode", encode_and_validate)
        yield errors


@pytest.fixture(autouse=True)
def _every_mirrored_record_is_valid(schema_errors: list[str]) -> Iterator[None]:
    yield
    found = list(schema_errors)
    schema_errors.clear()
    assert not found


@pytest.fixture(scope="session")
def jdk() -> Path:
    """The home of a JDK whose texts are those of rows-v1."""
    home = find_jdk()
    if home is None:
        message = (
            f"no Java {FIRST_JDK_WITH_SHORTEST_TEXT} or newer found: set UBUNYE_JDK, or fetch one with "
            "`sh scripts/find_jdk.sh .cache/jdk`"
        )
        _missing(message)
    return home


def _missing(message: str) -> NoReturn:
    if os.environ.get("UBUNYE_REQUIRE_JVM") == "1":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def spark_jdk(request: pytest.FixtureRequest) -> Path:
    """The home of the JDK that Spark runs on: ``UBUNYE_SPARK_JDK``, which may be old, else as ``jdk``."""
    chosen = os.environ.get("UBUNYE_SPARK_JDK")
    if chosen is None:
        home: Path = request.getfixturevalue("jdk")
        return home
    assert java_version(Path(chosen)), f"UBUNYE_SPARK_JDK={chosen}: no Java there"
    return Path(chosen)


@pytest.fixture(scope="session")
def spark(spark_jdk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark with Delta, whose session is in a time zone that is not UTC, which must never show."""
    import pyspark
    from pyspark.sql import SparkSession

    try:
        jars = delta_jars(pyspark.__version__)
        server = connect_jar(pyspark.__version__)
    except RuntimeError as e:
        _missing(str(e))

    work = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # many short queries
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.default.parallelism": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.caseSensitive": "true",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.local.dir": str(work),
        "spark.jars": jars,
        "spark.driver.extraClassPath": server or "",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(spark_jdk))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[1]").appName("tests")
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def connect_address(spark: SparkSession) -> Iterator[str]:
    """Where a Connect server in the JVM of the tests' Spark listens, on loopback."""
    jvm = spark._jvm
    settings = jvm.org.apache.spark.SparkEnv.get().conf()
    settings.set("spark.connect.grpc.binding.address", "127.0.0.1")
    settings.set("spark.connect.grpc.binding.port", "0")
    service = jvm.org.apache.spark.sql.connect.service
    service.SparkConnectService.start(spark._jsc.sc())
    port = getattr(getattr(service, "SparkConnectService$"), "MODULE$").localPort()
    yield f"sc://127.0.0.1:{port}"
    nothing = jvm.scala.Option.empty()
    service.SparkConnectService.stop(nothing, nothing)
