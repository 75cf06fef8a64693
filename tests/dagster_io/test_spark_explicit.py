"""Assets that append and merge by their own code on Spark, with receipts of what the table then holds."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates a context.
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dagster import AssetExecutionContext, InMemoryIOManager, MaterializeResult, asset

from ubunye_orchestrate.dagster_io.receipts.delta_evidence import note_of_commit
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.storage.spark_session import SparkResource
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_a_merge_of_the_users_own_has_a_receipt_and_names_it_in_the_history(
    project: Project, spark: "SparkSession", request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    path = str(tmp_path / "sales")
    resource = SparkResource.of(spark)
    if kind == "connect":
        resource = SparkResource(remote=request.getfixturevalue("connect_address"))
        request.addfinalizer(resource.session.stop)
    resource.session.range(3).selectExpr("id", "'old' as s").write.format("delta").save(path)

    @asset
    def sales(context: AssetExecutionContext, receipts: Receipts, spark: SparkResource) -> MaterializeResult:
        with receipts.run(context) as run:
            new = run.read("today", spark.session.range(2, 5).selectExpr("id", "'new' as s"))
            new.createOrReplaceTempView("today")
            with spark.commits(run.commit_note) as session:
                session.sql(
                    f"merge into delta.`{path}` as t using today as n on t.id = n.id "
                    "when matched then update set * when not matched then insert *"
                )
            now = spark.pinned(path)
            metadata = run.wrote(
                "sales",
                now.frame,
                format="delta",
                location=now.location,
                scope="stored_table",
                source_version=now.version,
            )
        return MaterializeResult(metadata=metadata)

    result = project.run(
        [sales], InMemoryIOManager(), resources={"receipts": project.receipts, "spark": resource}
    )
    record = project.receipt("sales")
    output = record.outputs[0]
    stored = spark.read.format("delta").load(path)
    assert output.data_hash == fingerprint(stored).data_hash
    assert (output.row_count, output.hash_scope, output.hash_basis) == (5, "stored_table", "recomputed")
    version = output.source_version or {}
    assert (version["version"], version["operation"]) == (1, "MERGE")
    assert (version["metrics"]["numTargetRowsUpdated"], version["metrics"]["numTargetRowsInserted"]) == (1, 2)
    assert (record.inputs[0].row_count, record.inputs[0].hash_scope) == (3, "passed_rows")
    assert (record.backend, record.time_zone) == ("spark", "UTC" if kind == "connect" else "America/New_York")
    note = note_of_commit(spark.sql(f"describe history delta.`{path}`").collect()[0].asDict())
    assert note is not None
    assert (note.run_id, note.asset) == (result.run_id, "sales")
    assert note.receipt == f"{record.task_path}/{record.run_id}"
    # Commits outside of the block do not carry the note.
    resource.session.range(1).selectExpr("id", "'x' as s").write.format("delta").mode("append").save(path)
    assert note_of_commit(spark.sql(f"describe history delta.`{path}`").collect()[0].asDict()) is None
    assert resource.pinned(path, 0).frame.count() == 3
    with pytest.raises(StorageError, match="has no version 9 any more or yet; its history has 0 to 2"):
        resource.pinned(path, 9)
    with pytest.raises(StorageError, match="no Delta table"):
        resource.pinned(path + "x")
