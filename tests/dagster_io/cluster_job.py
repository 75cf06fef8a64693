"""A project on a cluster, in a process of its own: stores a table, then again while its executors are killed.

Runs as ``python -m tests.dagster_io.cluster_job MASTER JARS SOURCE FOLDER FORMAT`` and prints JSON.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from dagster import DagsterInstance, asset, materialize

from tests.spark.driver import killing
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.storage.spark_io_manager import SparkIOManager
from ubunye_orchestrate.dagster_io.storage.spark_session import SparkResource
from ubunye_orchestrate.records.store import RecordStore

SETTINGS = {
    "spark.ui.enabled": False,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": 1,
    "spark.sql.shuffle.partitions": 2,
    "spark.task.maxFailures": 2,
    "spark.databricks.delta.snapshotPartitions": 1,
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main() -> None:
    """Store the source's table twice; the second time whoever reads its first rows is killed."""
    master, jars, source, folder, format_ = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkResource(master=master, jars=jars.split(","), conf=SETTINGS)
    spark.session.sparkContext.setLogLevel("OFF")
    receipts = Receipts(root=f"{folder}/mirror")
    manager = SparkIOManager(base_path=f"{folder}/tables", format=format_, spark=spark, receipts=receipts)
    frames = [spark.session.read.parquet(source), killing(spark.session, source, attempts=99)]

    @asset
    def table() -> Any:
        return frames.pop(0)

    def there() -> tuple[int, list[str]]:
        rows = spark.session.read.format(format_).load(f"{folder}/tables/table").count()
        return rows, sorted(file.name for file in Path(folder, "tables").iterdir())

    with DagsterInstance.ephemeral(tempdir=folder) as instance:
        resources = {"io_manager": manager}
        done = [materialize([table], instance=instance, resources=resources).success]
        before = there()
        again = materialize([table], instance=instance, resources=resources, raise_on_error=False)
        done.append(again.success)
    record = RecordStore(receipts.root).list_runs("default", "default", "table")[0]
    told = {"done": done, "before": before, "after": there(), "status": record.status, "error": record.error}
    print(json.dumps({**told, "hashes": [output.data_hash for output in record.outputs]}))


if __name__ == "__main__":
    main()
