"""The engine's own command line on records that this package wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import Result
from typer.testing import CliRunner
from ubunye.cli.main import app

from tests.records.samples import a_record
from ubunye_orchestrate.records.model import Producer, StepRecord
from ubunye_orchestrate.records.paths import stored_run_id, task_name_for_asset
from ubunye_orchestrate.records.recorder import LineageRecorder
from ubunye_orchestrate.records.store import RecordStore

FIRST = pd.DataFrame({"id": [1, 2, 3], "price": [1.5, 2.5, None]})
SECOND = pd.DataFrame({"id": [1, 2, 3], "price": [1.5, 2.5, 9.0]})


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one task, the second on other data, and a failed one of another task."""
    root = tmp_path_factory.mktemp("mirror")
    recorder = LineageRecorder(root=str(root), usecase="shop", package="sales")
    for run_id, frame in (("run-a", FIRST), ("run-b", SECOND)):
        with recorder.run("raw/flights", run_id=run_id, variables={"mode": "DEV"}) as run:
            run.read("orders", FIRST, format="parquet", location="/data/orders")
            with run.timed("write", output="flights"):
                run.wrote("flights", frame, format="parquet", location="/data/flights")
    failing = recorder.run("other", run_id="run-c")
    with pytest.raises(ValueError, match="no rate"):
        fail(failing)
    return root


def fail(run: Any) -> None:
    with run:
        run.read("orders", FIRST)
        raise ValueError("no rate")


def engine(root: Path, command: str, *arguments: str, task: str = "raw__flights") -> Result:
    address = [] if command == "search" else ["-u", "shop", "-p", "sales", "-t", task]
    return CliRunner().invoke(app, ["lineage", command, "-d", str(root), *address, *arguments])


def output(result: Result) -> str:
    assert result.exception is None, result.output
    assert result.exit_code == 0
    return result.output


def test_list_is_newest_first_with_rows(mirror: Path) -> None:
    text = output(engine(mirror, "list"))
    assert text.index("run-b") < text.index("run-a")
    assert "in:3  out:3" in text
    listed = json.loads(output(engine(mirror, "list", "--json")))
    assert [run["run_id"] for run in listed] == ["run-b", "run-a"]


def test_show_gives_the_file(mirror: Path) -> None:
    record = RecordStore(mirror).load("shop", "sales", "raw__flights", "run-a")
    shown = json.loads(output(engine(mirror, "show", "--run-id", "run-a", "--json")))
    assert shown["run_id"] == record.run_id
    assert shown["record_version"] == 2
    assert shown["outputs"][0]["data_hash"] == record.outputs[0].data_hash
    assert shown["environment_hash"] == record.environment_hash


def test_compare_says_what_changed(mirror: Path) -> None:
    text = output(engine(mirror, "compare", "--run-id1", "run-a", "--run-id2", "run-b"))
    lines = [line.strip() for line in text.splitlines()]
    order, flights = lines.index("Input 'orders':"), lines.index("Output 'flights':")
    assert all("unchanged" in line for line in lines[order + 1 : flights])
    assert any(line.startswith("data_hash") and line.endswith("CHANGED") for line in lines[flights:])
    assert any(line.startswith("code_hash") for line in lines)
    assert any(line.startswith("environment_hash") and "(unchanged)" in line for line in lines)


def test_trace_shows_inputs_outputs_and_environment(mirror: Path) -> None:
    text = output(engine(mirror, "trace", "--run-id", "run-b"))
    assert "[parquet] orders" in text
    assert "location : /data/flights" in text
    assert "hash from: materialised" in text
    assert "pandas" in text
    json.loads(output(engine(mirror, "trace", "--run-id", "run-b", "--json")))


def test_search_finds_the_failed_run(mirror: Path) -> None:
    assert "run-c" in output(engine(mirror, "search", "--status", "error"))
    found = output(engine(mirror, "search", "--json"))
    assert {run["run_id"] for run in json.loads(found)} == {"run-a", "run-b", "run-c"}


def test_a_failed_run_is_traced_without_its_outputs(mirror: Path) -> None:
    text = output(engine(mirror, "trace", "--run-id", "run-c", task="other"))
    assert "[error]" in text


def test_names_that_are_encoded_are_found_as_they_stand(tmp_path: Path) -> None:
    task = task_name_for_asset(["raw/x", "a__b", "été"])
    run_id = stored_run_id("3a3def55-a8a9-409b-a460-d16f9b3cb2a0", ["2024-01-01|us"], 2)
    RecordStore(tmp_path).save(a_record(run_id, task_name=task, task_path=f"shop/sales/{task}"))
    assert run_id[:8] in output(engine(tmp_path, "list", task=task))
    shown = json.loads(output(engine(tmp_path, "show", "--run-id", run_id, "--json", task=task)))
    assert (shown["run_id"], shown["task_name"]) == (run_id, task)


def test_every_field_of_ours_is_passed_over(tmp_path: Path) -> None:
    step = StepRecord(
        name="raw/x",
        direction="input",
        lane_sums=("1", "2"),
        hash_scope="stored_partition",
        producer=[Producer(partition="p", storage_id=1, run_id="r")],
        columns=[("id", "int64")],
    )
    record = a_record(
        inputs=[step],
        code={"function": "m:f", "functions": {"m:f": "sha256:x"}, "error": None},
        dagster={"run_id": "r", "asset_key": ["totals"]},
        later={"unknown": True},
    )
    RecordStore(tmp_path).save(record)
    for command, arguments in (
        ("list", []),
        ("show", ["--run-id", "run-1"]),
        ("trace", ["--run-id", "run-1"]),
        ("compare", ["--run-id1", "run-1", "--run-id2", "run-1"]),
        ("search", []),
    ):
        output(engine(tmp_path, command, *arguments, task="totals"))


def test_what_a_killed_writer_left_is_not_listed(tmp_path: Path) -> None:
    path = Path(RecordStore(tmp_path).save(a_record()))
    (path.parent / f".{path.name}.0123456789ab.tmp").write_text("{")
    listed = json.loads(output(engine(tmp_path, "list", "--json", task="totals")))
    assert [run["run_id"] for run in listed] == ["run-1"]
