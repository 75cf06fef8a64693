"""A mirror on a real S3 API: moto's server on loopback, spoken to by s3fs."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.backends import get_backend
from moto.server import ThreadedMotoServer

from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.codec import encode
from ubunye_orchestrate.records.steps import step_from_fingerprint
from ubunye_orchestrate.records.store import RecordStore

Run = Callable[..., Any]

TASK = ".ubunye/lineage/default/raw/raw__flights"
NAMED = ("-u", "default", "-p", "raw", "-t", "raw__flights")


class Server:
    """The server and the requests that it got: ``GET /bucket?list-type=2&…``."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._log = logging.getLogger("werkzeug")
        self._handler = logging.Handler()
        self._handler.emit = self._note  # type: ignore[method-assign]

    def __enter__(self) -> Server:
        self._log.addHandler(self._handler)
        self._log.setLevel(logging.INFO)
        self._log.propagate = False
        self._moto.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._moto.stop()
        self._log.removeHandler(self._handler)

    def _note(self, entry: logging.LogRecord) -> None:
        line = re.sub(r"\x1b\[\d*m", "", entry.getMessage())
        if '"' in line:
            self.requests.append(line.split('"')[1].removesuffix(" HTTP/1.1"))

    @property
    def environment(self) -> dict[str, str]:
        host, port = self._moto.get_host_and_port()
        return {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def listings(self) -> list[str]:
        return [one for one in self.requests if "list-type=2" in one]

    def bodies(self) -> list[str]:
        return [one for one in self.requests if one.startswith("GET") and "list-type" not in one]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        fsspec.filesystem("s3").clear_instance_cache()
        yield running


@pytest.fixture
def bucket(server: Server) -> str:
    name = f"mirror-{uuid.uuid4().hex[:8]}"
    fsspec.filesystem("s3").mkdir(name)
    server.requests.clear()
    return name


def fill(bucket: str, prefix: str, make: SimpleNamespace, days: range) -> None:
    """Put records as they were written on those days: S3 takes its own time, moto is told another."""
    backend: Any = get_backend("s3")["123456789012"]["aws"]
    for day in days:
        data = encode(make.record(f"run{day:03}", 1 + day % 28, content=str(day)))
        key = backend.put_object(bucket, f"{prefix}{TASK}/run{day:03}.json", data)
        key.last_modified = datetime(2024, 1, 1, day // 3600, day // 60 % 60, day % 60)


def test_list_show_compare_trace_search_assets(run: Run, bucket: str, make: SimpleNamespace) -> None:
    fill(bucket, "below/", make, range(12))
    root = f"s3://{bucket}/below"
    listed = run("list", "-d", root, "--json").json
    assert [record["run_id"] for record in listed] == [f"run{day:03}" for day in range(11, 1, -1)]
    compared = run("compare", "-d", root, "--json").json
    assert (compared["a"]["run_id"], compared["b"]["run_id"]) == ("run010", "run011")
    assert run("show", "-d", root, "--run-id", "run003").json["run_id"] == "run003"
    assert run("trace", "-d", root, "--run-id", "previous", "--json").json["run_id"] == "run010"
    assert len(run("search", "-d", root, "--json").json) == 12
    (asset,) = run("assets", "-d", root, "--json").json
    assert (asset["records"], asset["newest"]["run_id"]) == (12, "run011")


def test_the_newest_n_of_thousands(run: Run, server: Server, bucket: str, make: SimpleNamespace) -> None:
    fill(bucket, "", make, range(2_500, 2_510))
    backend: Any = get_backend("s3")["123456789012"]["aws"]
    for number in range(2_500):
        backend.put_object(bucket, f"{TASK}/old{number:04}.json", b"").last_modified = datetime(2020, 1, 1)
    server.requests.clear()
    listed = run("list", "-d", f"s3://{bucket}", *NAMED, "-n", 4, "--json").json
    assert [record["run_id"] for record in listed] == [f"run{day}" for day in range(2_509, 2_505, -1)]
    # One listing, which S3 gives out a thousand names at a time, and four bodies.
    assert len(server.listings()) == 3
    assert len(server.bodies()) == 4
    assert len(server.requests) == 7


@pytest.mark.long
@pytest.mark.skipif(
    os.environ.get("UBUNYE_LONG") != "1", reason="minutes: moto sorts its bucket for every page"
)
def test_the_newest_n_of_a_hundred_thousand(
    run: Run, server: Server, bucket: str, make: SimpleNamespace
) -> None:
    fill(bucket, "", make, range(10))
    backend: Any = get_backend("s3")["123456789012"]["aws"]
    for number in range(100_000):
        backend.put_object(bucket, f"{TASK}/old{number:06}.json", b"").last_modified = datetime(2020, 1, 1)
    server.requests.clear()
    assert len(run("list", "-d", f"s3://{bucket}", *NAMED, "-n", 5, "--json").json) == 5
    assert (len(server.listings()), len(server.bodies())) == (101, 5)


def test_a_record_is_put_whole_in_one_request(server: Server, bucket: str, make: SimpleNamespace) -> None:
    store = RecordStore(f"s3://{bucket}")
    server.requests.clear()
    path = store.save(make.record("one", 1))
    assert path == f"s3://{bucket}/{TASK}/one.json"
    assert [one for one in server.requests if one.startswith("PUT")] == [f"PUT /{bucket}/{TASK}/one.json"]
    assert store.load("default", "raw", "raw__flights", "one").run_id == "one"


def test_accept_pin_and_prune(run: Run, bucket: str, make: SimpleNamespace) -> None:
    fill(bucket, "", make, range(6))
    root = f"s3://{bucket}"
    assert run("accept", "-d", root, "--run-id", "run000", "--pin", "--why", "audited").code == 0
    compared = run("compare", "-d", root, "--run-id1", "baseline", "--json").json
    assert compared["a"]["run_id"] == "run000"
    assert run("prune", "-d", root, "--keep", 1, "--json").json["dry_run"] is True
    assert len(run("list", "-d", root, "--json").json) == 6
    run("prune", "-d", root, "--keep", 1, "--yes")
    assert [r["run_id"] for r in run("list", "-d", root, "--json").json] == ["run005", "run004", "run000"]


def test_verify_reads_a_table_from_the_bucket(run: Run, bucket: str, make: SimpleNamespace) -> None:
    fs = fsspec.filesystem("s3")
    table = pa.table({"id": [1, 2, 3]})
    url = f"s3://{bucket}/data/flights.parquet"
    step = step_from_fingerprint(
        "raw/flights", "output", fingerprint(table), format="parquet", location=url, scope="stored_table"
    )
    RecordStore(f"s3://{bucket}").save(make.record("one", 1, outputs=[step]))
    for content, state in ((table, "unchanged"), (table.slice(1), "changed")):
        with fs.open(url, "wb") as file:
            pq.write_table(content, file)
        assert run("verify", "-d", f"s3://{bucket}", "--json").json[0]["state"] == state


def test_files_that_are_no_records_are_named_and_passed_over(
    run: Run, bucket: str, make: SimpleNamespace
) -> None:
    fill(bucket, "", make, range(3))
    fs = fsspec.filesystem("s3")
    for name, data in (("cut", b'{"run_id": "c'), ("empty", b""), ("binary", b"\x00\xff" * 50)):
        fs.pipe_file(f"{bucket}/{TASK}/{name}.json", data)
    fs.pipe_file(f"{bucket}/{TASK}/deeper/run.json", b"{}")
    fs.pipe_file(f"{bucket}/.ubunye/lineage/stray.json", b"{}")
    done = run("list", "-d", f"s3://{bucket}", "--json")
    assert (done.code, len(done.json)) == (0, 3)
    assert sorted(line.split(": found")[0].rpartition("/")[2] for line in done.err.splitlines()) == [
        "binary.json",
        "cut.json",
        "empty.json",
    ]


def test_sync_fills_an_empty_bucket_once(run: Run, server: Server, bucket: str, made: Path) -> None:
    arguments = ("sync", "-d", f"s3://{bucket}", "--instance", made / "home", "--json")
    first = run(*arguments)
    assert (first.code, len(first.json["written"])) == (0, 7)
    server.requests.clear()
    again = run(*arguments)
    assert (again.json["written"], again.json["in_both"]) == ([], 7)
    assert not [one for one in server.requests if one.startswith("PUT")]
    local, remote = (
        {(r["task_path"], r["run_id"]): r["outputs"] for r in run("search", "-d", root, "--json").json}
        for root in (made / "root", f"s3://{bucket}")
    )
    assert local.keys() == remote.keys()
    for identity, outputs in local.items():
        assert remote[identity][0]["data_hash"] == outputs[0]["data_hash"]


def one_line(done: Any) -> str:
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1), done.err
    return str(done.err)


def test_buckets_that_are_not_there(run: Run, server: Server) -> None:
    assert "s3://nosuch-bucket" in one_line(run("list", "-d", "s3://nosuch-bucket/x"))
    for command in ("gate", "assets", "search", "verify"):
        assert "there is no bucket 'nosuch-bucket'" in one_line(run(command, "-d", "s3://nosuch-bucket/x"))
    done = run("accept", "-d", "s3://nosuch-bucket/x", "--why", "x")
    assert "there is no bucket" in one_line(done)


def test_an_empty_place_in_a_bucket(run: Run, bucket: str) -> None:
    for command in ("list", "gate", "assets", "search", "verify"):
        assert "no records in" in one_line(run(command, "-d", f"s3://{bucket}/x"))


def test_an_error_shows_no_credentials(bucket: str, server: Server) -> None:
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_MAX_ATTEMPTS": "1",
        "COLUMNS": "80",
    }
    secret = environment["AWS_SECRET_ACCESS_KEY"]
    root = f"s3://{environment['AWS_ACCESS_KEY_ID']}:{secret.replace('/', '%2F')}@{bucket}/x"
    for place in (f"s3://{bucket}/x", root):
        done = subprocess.run(
            [sys.executable, "-m", "ubunye_orchestrate.cli", "lineage", "list", "-d", place],
            capture_output=True, text=True, env=environment, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert "[ERROR]" in done.stderr
        assert "Traceback" not in done.stderr
        assert secret not in done.stderr
        assert secret.replace("/", "%2F") not in done.stderr


def test_newest_first_when_records_are_written_a_second_apart(
    run: Run, bucket: str, make: SimpleNamespace
) -> None:
    store = RecordStore(f"s3://{bucket}")
    for day, run_id in enumerate(["zz", "aa"], start=1):
        store.save(make.record(run_id, day))
        time.sleep(1.1)  # S3 keeps whole seconds
    listed = run("list", "-d", f"s3://{bucket}", "--json").json
    assert [record["run_id"] for record in listed] == ["aa", "zz"]
