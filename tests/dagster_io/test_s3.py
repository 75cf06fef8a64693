"""Tables and receipts on a real S3 API: moto's server on loopback, spoken to by s3fs."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from typing import Any

import fsspec
import pandas as pd
import pytest
from dagster import FilesystemIOManager, StaticPartitionsDefinition, UPathIOManager, asset
from moto.server import ThreadedMotoServer
from upath import UPath

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.store import RecordStore

from .conftest import Project

FRAME = pd.DataFrame({"id": [1, 2, 3], "name": ["a", None, "ü"]})


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        fsspec.filesystem("s3").clear_instance_cache()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def bucket(endpoint: str) -> str:
    name = f"tables-{uuid.uuid4().hex[:8]}"
    fsspec.filesystem("s3").mkdir(name)
    return name


class Pickles(UPathIOManager):
    """An IO manager on UPath as users write them."""

    extension = ".pkl"

    def dump_to_path(self, context: Any, obj: Any, path: UPath) -> None:
        with path.open("wb") as file:
            pd.to_pickle(obj, file)

    def load_from_path(self, context: Any, path: UPath) -> Any:
        with path.open("rb") as file:
            return pd.read_pickle(file)


@asset(partitions_def=StaticPartitionsDefinition(["p q", "ü"]))
@expect.not_null("id")
def pieces() -> pd.DataFrame:
    return FRAME.copy()


@asset
@expect.row_count(min=7)
def whole(pieces: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(pieces.values())


@pytest.mark.parametrize("kind", ["parquet", "upath"])
def test_tables_and_receipts_on_s3(project: Project, bucket: str, kind: str) -> None:
    receipts = Receipts(root=f"s3://{bucket}/mirror", reuse_hashes=True)
    manager: Any = ParquetIOManager(base_path=f"s3://{bucket}/tables", receipts=receipts)
    if kind == "upath":
        manager = with_receipts(Pickles(UPath(f"s3://{bucket}/tables")), receipts)
    for key in ("p q", "ü"):
        assert project.run([pieces], manager, partition_key=key).success
    failed = project.run([pieces, whole], manager, selection=["whole"], raise_on_error=False)
    assert not failed.success
    store = RecordStore(f"s3://{bucket}/mirror")
    records = store.list_runs("default", "default", "pieces", limit=9)
    assert {record.outputs[0].data_hash for record in records} == {fingerprint(FRAME).data_hash}
    assert {(record.dagster or {})["step_status"] for record in records} == {"success"}
    (record,) = store.list_runs("default", "default", "whole", limit=9)
    assert record.status == "error"
    assert record.expectations[0]["total"] == 6
    assert record.inputs[0].data_hash == fingerprint(pd.concat([FRAME, FRAME])).data_hash
    stored = list(fsspec.filesystem("s3").find(f"{bucket}/tables"))
    assert len(stored) == 2, "what broke a rule was stored"
    if kind == "parquet":
        assert record.inputs[0].hash_reused_from == ", ".join(
            project.receipt("pieces", key).run_id for key in ("p q", "ü")
        )
        shown = project.metadata("pieces", "ü")["dagster/uri"]
        assert shown.startswith(f"s3://{bucket}/tables/pieces/")


def test_a_bucket_that_is_not_there_is_a_warning_and_the_run_succeeds(project: Project, bucket: str) -> None:
    manager = with_receipts(
        FilesystemIOManager(base_dir=str(project.root)), Receipts(root="s3://no-such-bucket/mirror")
    )
    result = project.run([pieces], manager, partition_key="ü")
    assert result.success
    assert "the record was not mirrored; its receipt is in the event log" in project.log(result)
    assert project.receipt("pieces", "ü").outputs[0].data_hash == fingerprint(FRAME).data_hash
