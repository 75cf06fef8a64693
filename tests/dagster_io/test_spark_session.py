"""``SparkResource``: whose session it is, how it is reached, and what it says where there is none."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dagster import Definitions, asset

from tests.jvm import DELTA_ARTIFACTS
from ubunye_orchestrate.dagster_io.receipts.delta_evidence import note_of_commit
from ubunye_orchestrate.dagster_io.storage.spark_io_manager import SparkIOManager
from ubunye_orchestrate.dagster_io.storage.spark_session import SparkResource, delta_coordinates
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_a_session_that_is_there_is_taken_as_it_is(spark: SparkSession) -> None:
    before = spark.sql("set").collect()
    assert SparkResource(conf={}, delta=True).session.sparkContext is spark.sparkContext
    assert SparkResource.of(spark).session is spark
    assert SparkResource.of(lambda: spark).session is spark
    assert spark.sql("set").collect() == before


@pytest.mark.spark
def test_a_stopped_session_is_replaced_and_never_collected(
    connect_address: str, request: pytest.FixtureRequest
) -> None:
    remote = SparkResource(remote=connect_address)
    stopped = remote.session
    stopped.stop()
    request.addfinalizer(remote.session.stop)
    assert remote.session is not stopped
    assert remote.session.range(2).count() == 2
    was = weakref.ref(stopped)
    del stopped
    gc.collect()
    assert was() is not None


@pytest.mark.spark
@pytest.mark.parametrize("stored_as", ["delta", "parquet"])
def test_everything_works_over_connect(
    project: Project,
    spark: SparkSession,
    connect_address: str,
    tmp_path: Path,
    stored_as: Any,
    request: pytest.FixtureRequest,
) -> None:
    remote = SparkResource(remote=connect_address)
    # A session that is open when its server is gone is asked for until the client gives up, minutes later.
    request.addfinalizer(remote.session.stop)
    assert remote.session is SparkResource(remote=connect_address).session
    assert remote.session.conf.get("spark.sql.session.timeZone") == "UTC"
    manager = SparkIOManager(
        base_path=str(tmp_path / "tables"), format=stored_as, spark=remote, receipts=project.receipts
    )

    @asset
    def drawn(spark: SparkResource) -> Any:
        assert "connect" in type(spark.session).__module__
        return spark.session.range(3).selectExpr("id", "rand() as x", "timestamp_seconds(id) as t")

    @asset
    def read(drawn: Any) -> Any:
        return drawn

    @asset(metadata={"mode": "append"})
    def log(spark: SparkResource, read: Any) -> Any:
        return spark.session.range(2)

    result = project.run([drawn, read, log], manager, resources={"spark": remote})
    stored = project.receipt("drawn").outputs[0]
    path = str(tmp_path / "tables" / "drawn")
    assert stored.data_hash == fingerprint(spark.read.format(stored_as).load(path)).data_hash
    record = project.receipt("read")
    assert record.inputs[0].data_hash == stored.data_hash
    assert record.inputs[0].source_changed is False
    assert (record.time_zone, record.backend) == ("UTC", "spark")
    assert project.receipt("log").outputs[0].row_count == 2
    kind = "delta" if stored_as == "delta" else "files"
    assert (stored.source_version or {})["kind"] == kind
    if stored_as == "delta":
        commit = spark.sql(f"describe history delta.`{path}`").collect()[0].asDict()
        note = note_of_commit(commit)
        assert note is not None
        assert note.run_id == result.run_id


def test_a_session_nested_in_an_io_manager_is_the_one_that_was_given() -> None:
    given = object()

    class Session:
        sql = read = given

    session = Session()
    manager = SparkIOManager(spark=SparkResource.of(session))
    defs = Definitions(resources={"io_manager": manager, "spark": SparkResource.of(session)})
    Definitions.validate_loadable(defs)
    assert manager.spark.session is session
    assert SparkResource.of(session).session is session


@pytest.mark.parametrize("source", [None, "sc://localhost", 7])
def test_what_is_no_session_is_refused(source: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"expected a SparkSession, SparkSession\.builder"):
        SparkResource.of(source)


def test_the_jars_of_delta_are_named_for_every_spark() -> None:
    assert delta_coordinates("3.5.6") == "io.delta:delta-spark_2.12:3.3.2"
    assert delta_coordinates("4.0.1") == "io.delta:delta-spark_2.13:4.0.0"
    assert delta_coordinates("4.2.0").startswith("io.delta:delta-spark_4.2_2.13:")


START = """
from ubunye_orchestrate import SparkResource, UbunyeError
try:
    SparkResource({arguments}).session
except UbunyeError as e:
    print(type(e).__name__, e)
"""


def started(arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", START.format(arguments=arguments)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": "/tmp", **environment},
    )
    return done.stdout


def test_a_spark_without_java_says_what_to_install(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    java = "17 or newer" if pyspark.__version__ >= "4" else "8, 11 or 17"
    said = started("", JAVA_HOME=str(tmp_path))
    assert said.startswith("ConfigurationError Spark ")
    assert f"found no Java that it can start (JAVA_HOME is {tmp_path}); expected Java {java}" in said


def test_an_address_that_is_none_is_named() -> None:
    pytest.importorskip("pyspark")
    said = started("remote='127.0.0.1:1'")
    assert said.startswith("ConfigurationError no Spark Connect session at 127.0.0.1:1: ")
    assert "check that the server runs" in said


WITHOUT_JARS = """
from ubunye_orchestrate import SparkResource, UbunyeError
conf = {"spark.ui.enabled": False, "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
spark = SparkResource(master="local[1]", conf=conf)
print(spark.session.conf.get("spark.sql.session.timeZone"), spark.session.sparkContext.appName)
try:
    spark.pinned("/tmp/no/table")
except UbunyeError as e:
    print(type(e).__name__, e)
"""


@pytest.mark.spark
def test_a_spark_without_the_jars_of_delta_says_which_it_needs(spark_jdk: Path) -> None:
    import pyspark

    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JARS],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": "/tmp", "JAVA_HOME": str(spark_jdk)},
    )
    first, _, said = done.stdout.partition("\n")
    assert first == "UTC ubunye-orchestrate", done.stderr
    assert said.startswith(f"StorageError this Spark ({pyspark.__version__}) has no Delta: ")
    assert f'packages=["{delta_coordinates(pyspark.__version__)}"]' in said


BY_COORDINATES = """
import sys
from ubunye_orchestrate import SparkResource, fingerprint
ivy, coordinates, table = sys.argv[1:]
quiet = {"spark.ui.enabled": False, "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
quick = {"spark.databricks.delta.snapshotPartitions": 1, "spark.sql.shuffle.partitions": 1}
hadoop = ["org.apache.hadoop:hadoop-client-api", "org.apache.hadoop:hadoop-client-runtime"]
# Large, and there; and a folder of its own, in which nothing is.
conf = {**quiet, **quick, "spark.jars.excludes": ",".join(hadoop), "spark.jars.ivy": ivy}
spark = SparkResource(master="local[1]", packages=[coordinates], conf=conf)
spark.session.range(3).write.format("delta").save(table)
print(spark.pinned(table).version["operation"], fingerprint(spark.pinned(table).frame).row_count)
"""


@pytest.mark.spark
def test_packages_are_fetched_by_their_coordinates(spark_jdk: Path, tmp_path: Path) -> None:
    import pyspark

    major_and_minor = ".".join(pyspark.__version__.split(".")[:2])
    coordinates = f"io.delta:{DELTA_ARTIFACTS[major_and_minor]}"
    folders = [str(tmp_path / "ivy"), coordinates, str(tmp_path / "table")]
    done = subprocess.run(
        [sys.executable, "-c", BY_COORDINATES, *folders],
        capture_output=True,
        text=True,
        # Ivy trusts Maven's folder at home, which may have a package's description without its jar.
        env={
            "PATH": "/usr/bin:/bin",
            "JAVA_HOME": str(spark_jdk),
            "JAVA_TOOL_OPTIONS": f"-Duser.home={tmp_path}",
        },
        timeout=240,
    )
    if "packages cannot be fetched" in done.stderr and os.environ.get("UBUNYE_REQUIRE_JVM") != "1":
        pytest.skip("no Maven repository can be reached")
    # Ivy prints to both.
    assert done.stdout.splitlines()[-1:] == ["WRITE 3"], done.stderr[-3000:]
    fetched = {file.name for file in (tmp_path / "ivy" / "jars").iterdir()}
    assert f"{coordinates.replace(':', '_', 1).replace(':', '-')}.jar" in fetched
