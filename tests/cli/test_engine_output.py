"""The commands against what the engine's printed of its own records, and the engine on our mirror."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.records.store import RecordStore

Run = Callable[..., Any]


def test_list_json(run: Run, make: SimpleNamespace, any_case: str, tmp_path: Path) -> None:
    text, _, code = make.printed(f"{any_case}__list_json")
    done = run("list", "-d", make.mirror_of(any_case, tmp_path), *make.shop, "--json")
    assert done.json == json.loads(text)
    assert [list(record) for record in done.json] == [list(record) for record in json.loads(text)]
    assert done.code == code


def test_list(run: Run, make: SimpleNamespace, any_case: str, tmp_path: Path) -> None:
    text, _, code = make.printed(f"{any_case}__list")
    done = run("list", "-d", make.mirror_of(any_case, tmp_path), *make.shop)
    assert [line.split() for line in done.out.splitlines()] == [line.split() for line in text.splitlines()]
    assert done.code == code


def test_show(run: Run, make: SimpleNamespace, any_case: str, tmp_path: Path) -> None:
    text, run_ids, code = make.printed(f"{any_case}__show")
    root = make.mirror_of(any_case, tmp_path)
    done = run("show", "-d", root, *make.shop, "--run-id", run_ids[0])
    assert done.json == json.loads(text)
    assert done.code == code
    assert run("show", "-d", root, *make.shop, "--run-id", run_ids[0], "--json").json == json.loads(text)


def test_compare_json(run: Run, make: SimpleNamespace, any_case: str, tmp_path: Path) -> None:
    text, (first, second), code = make.printed(f"{any_case}__compare_json")
    root = make.mirror_of(any_case, tmp_path)
    done = run("compare", "-d", root, *make.shop, "--run-id1", first, "--run-id2", second, "--json")
    expected = json.loads(text)
    assert {name: done.json[name] for name in expected} == expected
    assert done.code == code


def test_compare_without_run_ids_takes_the_two_of_each_case(
    run: Run, make: SimpleNamespace, any_case: str, tmp_path: Path
) -> None:
    _, run_ids, _ = make.printed(f"{any_case}__compare_json")
    done = run("compare", "-d", make.mirror_of(any_case, tmp_path), "--json")
    assert [done.json["a"]["run_id"], done.json["b"]["run_id"]] == run_ids


def test_trace_json(run: Run, make: SimpleNamespace, tmp_path: Path) -> None:
    text, (run_id,), code = make.printed("a_identical__trace_json")
    root = make.mirror_of("a_identical", tmp_path)
    done = run("trace", "-d", root, *make.shop, "--run-id", run_id, "--json")
    expected = json.loads(text)
    assert {name: done.json[name] for name in expected} == expected
    assert {"timings", "environment", "expectations"} <= set(done.json)
    assert done.code == code


def test_trace_says_what_the_engine_s_says(
    run: Run, make: SimpleNamespace, any_case: str, tmp_path: Path
) -> None:
    text, (run_id,), code = make.printed(f"{any_case}__trace")
    done = run("trace", "-d", make.mirror_of(any_case, tmp_path), *make.shop, "--run-id", run_id, "--full")
    said = " ".join(done.out.split())
    for line in text.splitlines():
        assert " ".join(line.split()) in said
    assert done.code == code


def test_trace_fits_80_columns(run: Run, make: SimpleNamespace, any_case: str, tmp_path: Path) -> None:
    done = run("trace", "-d", make.mirror_of(any_case, tmp_path))
    lines = [line for line in done.out.splitlines() if "broken by" not in line and "Hint:" not in line]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("name", "case", "arguments"),
    [
        ("a_identical__search", "a_identical", []),
        ("f_failed_expectation__search_error", "f_failed_expectation", ["--status", "error"]),
        ("i_v1_then_v2__search", "i_v1_then_v2", ["-u", "shop", "--since", "2026-01-01"]),
        ("i_v1_then_v2__search_none", "i_v1_then_v2", ["-u", "nosuch"]),
    ],
)
def test_search(
    run: Run, make: SimpleNamespace, tmp_path: Path, name: str, case: str, arguments: list[str]
) -> None:
    text, _, code = make.printed(name)
    done = run("search", "-d", make.mirror_of(case, tmp_path), *arguments)
    assert [line.split() for line in done.out.splitlines()] == [line.split() for line in text.splitlines()]
    assert done.code == code


def test_search_json(run: Run, make: SimpleNamespace, tmp_path: Path) -> None:
    text, _, code = make.printed("f_failed_expectation__search_error_json")
    root = make.mirror_of("f_failed_expectation", tmp_path)
    done = run("search", "-d", root, "--status", "error", "--json")
    assert (done.json, done.code) == (json.loads(text), code)


def test_an_unknown_task_and_an_unknown_run(run: Run, make: SimpleNamespace, tmp_path: Path) -> None:
    root = make.mirror_of("a_identical", tmp_path)
    text, _, code = make.printed("a_identical__list_unknown_task")
    done = run("list", "-d", root, "-u", "shop", "-p", "sales", "-t", "nosuch")
    assert (done.out, done.code) == (text, code)
    _, (first, missing), code = make.printed("a_identical__compare_missing_run_json")
    done = run("compare", "-d", root, *make.shop, "--run-id1", first, "--run-id2", missing, "--json")
    assert (done.json["ok"], done.code) == (False, code)
    assert missing in done.json["error"]


def engine(*arguments: object) -> Any:
    command = [str(Path(sys.executable).parent / "ubunye"), "lineage", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_engine_reads_our_mirror_and_says_the_same(
    run: Run, make: SimpleNamespace, tmp_path: Path
) -> None:
    store = RecordStore(tmp_path)
    dagster = {"partition_keys": ["2024-01"], "declared_inputs": ["source"]}
    a = make.record("run-a--2024-01", 1, dagster=dagster)
    unhashed = a.inputs[0].model_copy(update={"data_hash": None, "hash_error": "not hashed: over budget"})
    b = make.record(
        "run-b--2024-01", 2, content="y", inputs=[unhashed], dagster=dagster, config_hash="sha256:d"
    )
    store.save(a)
    store.save(b)
    task = ("-d", tmp_path, "-u", "default", "-p", "raw", "-t", "raw__flights")
    runs = ("--run-id1", a.run_id, "--run-id2", b.run_id)
    theirs, ours = engine("compare", *task, *runs), run("compare", *task, *runs, "--json").json
    assert {name: ours[name] for name in theirs} == theirs
    assert theirs["inputs"]["source"]["data_hash"]["why"] == "not hashed: over budget"
    listed = engine("list", *task)
    assert [r["run_id"] for r in listed] == [b.run_id, a.run_id]
    for theirs, ours in zip(listed, run("list", *task, "--json").json, strict=True):
        for side in ("inputs", "outputs"):
            for their_step, our_step in zip(theirs[side], ours.pop(side), strict=True):
                assert {name: our_step[name] for name in their_step} == their_step
            del theirs[side]
        assert {name: ours[name] for name in theirs} == theirs
