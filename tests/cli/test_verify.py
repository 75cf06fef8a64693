"""What is stored now, held against the last receipt: real parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.model import StepRecord
from ubunye_orchestrate.records.paths import stored_run_id
from ubunye_orchestrate.records.steps import step_from_fingerprint
from ubunye_orchestrate.records.store import RecordStore

Run = Callable[..., Any]

TABLE = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})


def stored(path: Path, table: pa.Table = TABLE, **fields: Any) -> StepRecord:
    """Write a table to a file; return the receipt's output."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    step = step_from_fingerprint(
        "raw/flights",
        "output",
        fingerprint(table),
        format="parquet",
        location=str(path),
        scope=fields.pop("scope", "stored_table"),
    )
    return step.model_copy(update=fields)


@pytest.fixture
def one_table(tmp_path: Path, make: SimpleNamespace) -> Callable[..., Path]:
    """A mirror with one run of raw/flights, and the file that it stored."""

    def build(**fields: Any) -> Path:
        step = stored(tmp_path / "data" / "flights.parquet", **fields)
        RecordStore(tmp_path).save(make.record("run-1", 1, outputs=[step]))
        return tmp_path

    return build


def states(done: Any) -> dict[str, str]:
    return {one["name"]: one["state"] for one in done.json}


def test_unchanged(run: Run, one_table: Callable[..., Path]) -> None:
    root = one_table()
    done = run("verify", "-d", root)
    assert (done.code, done.out) == (0, "unchanged   raw/flights  (run run-1)\n")
    # Other row groups, another compression, another order of rows and columns: the same table.
    pq.write_table(
        TABLE.take([2, 0, 1]).select(["name", "id"]),
        root / "data/flights.parquet",
        compression="gzip",
        row_group_size=1,
    )
    assert run("verify", "-d", root).code == 0


def test_one_cell_behind_dagster_s_back(run: Run, one_table: Callable[..., Path]) -> None:
    root = one_table()
    other = TABLE.set_column(0, "id", pa.array([1, 2, 4], pa.int64()))
    pq.write_table(other, root / "data/flights.parquet")
    done = run("verify", "-d", root)
    assert done.code == 1
    assert done.out.startswith("changed     raw/flights  (run run-1)\n")
    assert "rows  : 3 in the receipt, 3 stored" in done.out
    found = run("verify", "-d", root, "--json").json[0]
    assert found["stored"]["data_hash"] == fingerprint(other).data_hash
    assert found["receipt"]["data_hash"] == fingerprint(TABLE).data_hash


def test_rows_lost_and_types_moved(run: Run, one_table: Callable[..., Path]) -> None:
    root = one_table()
    pq.write_table(TABLE.slice(0, 2), root / "data/flights.parquet")
    assert "rows  : 3 in the receipt, 2 stored" in run("verify", "-d", root).out
    pq.write_table(
        TABLE.cast(pa.schema([("id", pa.int32()), ("name", pa.string())])), root / "data/flights.parquet"
    )
    done = run("verify", "-d", root, "--allow-unknown")
    assert (done.code, "its types changed, its values did not" in done.out) == (1, True)


@pytest.mark.parametrize("damage", ["truncated", "half written", "not parquet", "empty"])
def test_a_file_that_cannot_be_read_is_never_unchanged(
    run: Run, one_table: Callable[..., Path], damage: str
) -> None:
    root = one_table()
    path = root / "data/flights.parquet"
    whole = path.read_bytes()
    path.write_bytes(
        {"truncated": whole[:-20], "half written": whole[:100], "not parquet": b"a,b\n1,2\n", "empty": b""}[
            damage
        ]
    )
    done = run("verify", "-d", root, "--allow-unknown", "--json")
    assert (done.code, states(done)) == (1, {"raw/flights": "unreadable"})
    assert done.json[0]["why"]


def test_a_file_that_is_gone(run: Run, one_table: Callable[..., Path]) -> None:
    root = one_table()
    (root / "data/flights.parquet").unlink()
    done = run("verify", "-d", root, "--allow-unknown")
    assert (done.code, done.out.split()[0]) == (1, "missing")
    assert "it was moved or deleted, or this is another machine" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"scope": "passed_rows"}, "the receipt is of passed_rows, not of all that is stored"),
        ({"scope": "projection"}, "the receipt is of projection"),
        ({"hash_scope": None}, "rows whose scope is not recorded"),
        ({"data_hash": None, "hash_error": "over budget"}, "the receipt has no hash (over budget)"),
        ({"hash_method": "sample"}, "made by sample, not rows-v1"),
        ({"format": "FilesystemIOManager"}, "it is stored as FilesystemIOManager"),
        ({"location": None}, "does not say where it is stored"),
        ({"location": "s3://***@bucket/x"}, "its location has a secret"),
    ],
)
def test_what_cannot_be_checked_is_unknown_and_fails_unless_that_is_allowed(
    run: Run, one_table: Callable[..., Path], fields: dict[str, Any], why: str
) -> None:
    root = one_table(**fields)
    done = run("verify", "-d", root)
    assert (done.code, done.out.split()[0]) == (1, "unknown")
    assert why in " ".join(done.out.split())
    assert run("verify", "-d", root, "--allow-unknown").code == 0


def test_only_the_newest_success_counts(
    run: Run, one_table: Callable[..., Path], make: SimpleNamespace
) -> None:
    root = one_table()
    other = TABLE.slice(0, 1)
    store = RecordStore(root)
    store.save(make.record("run-2", 2, outputs=[stored(root / "data/flights.parquet", other)]))
    store.save(make.record("run-3", 3, status="error", outputs=[]))
    done = run("verify", "-d", root, "--json")
    assert [(one["run_id"], one["state"]) for one in done.json] == [("run-2", "unchanged")]
    # An append after a whole table: what is stored is not what the older receipt says, and nobody knows more.
    step = stored(root / "data/flights.parquet", TABLE, scope="passed_rows")
    store.save(make.record("run-4", 4, outputs=[step]))
    assert states(run("verify", "-d", root, "--json")) == {"raw/flights": "unknown"}


def test_each_partition_against_its_own_receipt(run: Run, tmp_path: Path, make: SimpleNamespace) -> None:
    store = RecordStore(tmp_path)
    for day, (number, month) in enumerate([(1, "jan"), (1, "feb"), (2, "jan")], start=1):
        step = stored(
            tmp_path / f"data/flights/{month}.parquet", TABLE.slice(0, number), scope="stored_partition"
        )
        dagster = {"asset_key": ["raw", "flights"], "partition_keys": [month]}
        store.save(make.record(stored_run_id(f"run-{number}", [month]), day, outputs=[step], dagster=dagster))
    done = run("verify", "-d", tmp_path, "--json")
    assert states(done) == {"raw/flights[jan]": "unchanged", "raw/flights[feb]": "unchanged"}
    assert [one["run_id"] for one in done.json] == ["run-2--jan", "run-1--feb"]
    pq.write_table(TABLE, tmp_path / "data/flights/feb.parquet")
    assert states(run("verify", "-d", tmp_path, "--json"))["raw/flights[feb]"] == "changed"
    assert run("verify", "-d", tmp_path, "--partition", "jan").code == 0
    # A later run over several partitions at once has one hash for all of them.
    dagster = {"asset_key": ["raw", "flights"], "partition_keys": ["feb", "mar"]}
    run_id = stored_run_id("run-3", ["feb", "mar"])
    store.save(make.record(run_id, 9, outputs=[stored(tmp_path / "x.parquet")], dagster=dagster))
    found = states(run("verify", "-d", tmp_path, "--json"))
    assert found == {"raw/flights[feb..mar]": "unknown", "raw/flights[jan]": "unchanged"}


def test_a_mirror_without_a_success(run: Run, tmp_path: Path, make: SimpleNamespace) -> None:
    RecordStore(tmp_path).save(make.record("run-1", 1, status="error"))
    done = run("verify", "-d", tmp_path)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "no run that succeeded" in done.err


def test_a_folder_of_files(run: Run, tmp_path: Path, make: SimpleNamespace) -> None:
    for part in range(3):
        stored(tmp_path / f"data/flights/part-{part}.parquet", TABLE.slice(part, 1))
    step = stored(tmp_path / "whole.parquet").model_copy(update={"location": str(tmp_path / "data/flights")})
    RecordStore(tmp_path).save(make.record("run-1", 1, outputs=[step]))
    assert run("verify", "-d", tmp_path).code == 0
    os.unlink(tmp_path / "data/flights/part-1.parquet")
    assert run("verify", "-d", tmp_path).code == 1
