"""Delta tables on a real S3 API, spoken to by delta-rs itself."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator

import fsspec
import pandas as pd
import pyarrow as pa
import pytest
from dagster import DailyPartitionsDefinition, asset

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import DeltaIOManager
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.store import RecordStore

from .conftest import Project

# In a process of its own: delta-rs keeps Python's lock while it waits for some answers.
SERVER = """
import sys, time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        host, port = server.stdout.readline().split()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
            patch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
            patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            fsspec.filesystem("s3").clear_instance_cache()
            yield f"http://{host}:{port}"
        server.communicate("")


@pytest.fixture
def bucket(endpoint: str) -> str:
    name = f"tables-{uuid.uuid4().hex[:8]}"
    fsspec.filesystem("s3").mkdir(name)
    return name


@pytest.mark.timeout(120)
def test_partitions_of_a_table_on_s3(project: Project, bucket: str, endpoint: str) -> None:
    options = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AWS_REGION": "us-east-1",
    }
    receipts = Receipts(root=f"s3://{bucket}/mirror")
    manager = DeltaIOManager(base_path=f"s3://{bucket}/tables", storage_options=options, receipts=receipts)
    days = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-03")

    @asset(key_prefix="raw", partitions_def=days, metadata={"partition_expr": "day"})
    def daily(context) -> pd.DataFrame:
        return pd.DataFrame({"day": [context.partition_key] * 2, "name": ["a", None]})

    @asset
    def whole(daily: dict[str, pa.Table]) -> pa.Table:
        return pa.concat_tables(daily.values())

    for key in ("2024-01-01", "2024-01-02", "2024-01-01"):
        assert project.run([daily], manager, partition_key=key).success
    assert project.run([daily, whole], manager, selection=[whole]).success
    (record,) = RecordStore(f"s3://{bucket}/mirror").list_runs("default", "default", "whole", limit=9)
    read, stored = record.inputs[0], record.outputs[0]
    frame = pd.DataFrame({"day": ["2024-01-01", "2024-01-02"] * 2, "name": ["a", "a", None, None]})
    assert read.data_hash == stored.data_hash == fingerprint(frame).data_hash
    assert (read.location, stored.location) == (
        f"s3://{bucket}/tables/raw/daily",
        f"s3://{bucket}/tables/whole",
    )
    assert read.source_version is not None
    assert read.source_version["version"] == 3
    assert project.metadata("whole")["dagster/uri"] == f"s3://{bucket}/tables/whole"
    logs = fsspec.filesystem("s3").ls(f"{bucket}/tables/raw/daily/_delta_log")
    assert len([one for one in logs if one.endswith(".json")]) == 4
