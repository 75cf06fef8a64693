from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.cli.address import asset_key_parts
from ubunye_orchestrate.records.paths import stored_run_id
from ubunye_orchestrate.records.store import RecordStore

Run = Callable[..., Any]


def pair(done: Any) -> tuple[str, str]:
    assert done.code == 0, done.err
    return done.json["a"]["run_id"], done.json["b"]["run_id"]


def test_names_may_be_left_out_where_there_is_one_task(run: Run, flights: Path) -> None:
    assert len(run("list", "-d", flights, "--json").json) == 5
    assert len(run("list", "-d", flights, "-p", "raw", "-n", 2, "--json").json) == 2


def test_several_tasks_to_choose_from_are_named(run: Run, flights: Path, make: SimpleNamespace) -> None:
    other = make.record("eeee", 6, task_name="planes", task_path="default/raw/planes")
    RecordStore(flights).save(other)
    done = run("show", "-d", flights)
    assert done.code == 1
    assert "2 tasks fit: default/raw/planes, default/raw/raw__flights; expected one" in done.err
    assert run("show", "-d", flights, "-t", "planes").json["run_id"] == "eeee"


def test_an_asset_by_its_key(run: Run, flights: Path) -> None:
    assert run("show", "-d", flights, "--asset", "raw/flights").json["run_id"] == "dddd5555"
    done = run("show", "-d", flights, "--asset", "raw/planes")
    assert done.code == 1
    assert "no task '*/*/raw__planes'" in done.err
    assert "there is default/raw/raw__flights" in done.err
    assert "expected one of the two" in run("show", "-d", flights, "--asset", "a", "-t", "b").err


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("flights", ["flights"]),
        ("raw/flights", ["raw", "flights"]),
        (r"raw\/flights", ["raw/flights"]),
        (r"a/b\/c/d", ["a", "b/c", "d"]),
    ],
)
def test_asset_keys(text: str, parts: list[str]) -> None:
    assert asset_key_parts(text) == parts


def test_run_ids_by_word(run: Run, flights: Path) -> None:
    for text, run_id in [("latest", "dddd5555"), ("previous", "cccc4444"), ("bbbb3333", "bbbb3333")]:
        assert run("show", "-d", flights, "--run-id", text).json["run_id"] == run_id
    assert run("trace", "-d", flights, "--json").json["run_id"] == "dddd5555"


def test_run_ids_by_their_beginning(run: Run, flights: Path) -> None:
    assert run("show", "-d", flights, "--run-id", "bb").json["run_id"] == "bbbb3333"
    done = run("show", "-d", flights, "--run-id", "aaaa")
    assert done.code == 1
    assert "'aaaa' is the beginning of 2 runs of default/raw/raw__flights: aaaa2222, aaaa1111" in done.err


def test_an_exact_run_id_wins_over_those_that_it_begins(
    run: Run, flights: Path, make: SimpleNamespace
) -> None:
    RecordStore(flights).save(make.record("aaaa", 7))
    assert run("show", "-d", flights, "--run-id", "aaaa").json["run_id"] == "aaaa"


LONG = "2fd153b1-90df-4eea-879c-9087ead017d6"


@pytest.fixture
def shown(tmp_path: Path, run: Run, make: SimpleNamespace) -> tuple[Path, list[str]]:
    """A mirror of a partitioned asset whose runs have ids of Dagster, and how the list shows them."""
    store = RecordStore(tmp_path)
    other = LONG.replace("2fd153b1", "03fa0aa8")
    cases = [(LONG, ["2013-02"], 0), (LONG, ["2013-02"], 1), (LONG, ["2013-02-01"], 0), (LONG, [], 0)]
    for day, (run_id, keys, attempt) in enumerate([*cases, (LONG, [], 1), (other, ["2013-02"], 0)], start=1):
        dagster = {"asset_key": ["raw", "flights"], "partition_keys": keys, "attempt": attempt}
        store.save(make.record(stored_run_id(run_id, keys, attempt), day, str(day), dagster=dagster))
    listed = run("list", "-d", tmp_path).out.splitlines()
    return tmp_path, [line.split()[0] for line in listed if "2024-01-" in line]


def test_run_ids_as_they_are_shown(run: Run, shown: tuple[Path, list[str]]) -> None:
    folder, ids = shown
    assert ids == [
        "03fa0aa8--2013-02",
        "2fd153b1.retry-1",
        "2fd153b1",
        "2fd153b1--2013-02-01",
        "2fd153b1--2013-02.retry-1",
        "2fd153b1--2013-02",
    ]
    whole = [one.replace("2fd153b1", LONG) for one in ids[1:]]
    for text, run_id in zip(ids[1:], whole, strict=True):
        assert run("show", "-d", folder, "--run-id", text).json["run_id"] == run_id
        assert run("trace", "-d", folder, "--run-id", text, "--json").json["run_id"] == run_id
    given = ["-d", folder, "--run-id1", "2fd153b1--2013-02", "--run-id2", "03fa0aa8--2013-02"]
    expected = (f"{LONG}--2013-02", LONG.replace("2fd153b1", "03fa0aa8") + "--2013-02")
    assert pair(run("compare", *given, "--json")) == expected
    path = run("why", *given, "--json").json["path"]
    assert (path["a"], path["b"]) == expected
    # A part of what is shown is a beginning too.
    assert run("show", "-d", folder, "--run-id", "2fd153b1--2013-02-").json["run_id"] == whole[2]


def test_what_is_shown_of_two_runs_alike_is_the_beginning_of_both(
    run: Run, shown: tuple[Path, list[str]], make: SimpleNamespace
) -> None:
    folder, _ = shown
    twin = LONG[:-1] + "0"
    RecordStore(folder).save(make.record(twin, 9))
    done = run("show", "-d", folder, "--run-id", "2fd153b1")
    assert done.code == 1
    assert "is the beginning of 6 runs" in done.err
    assert twin in done.err
    assert LONG in done.err


def test_compare_takes_the_newest_two_or_fills_in_the_one_that_is_missing(run: Run, flights: Path) -> None:
    assert pair(run("compare", "-d", flights, "--json")) == ("cccc4444", "dddd5555")
    assert pair(run("compare", "-d", flights, "--run-id1", "aaaa1", "--json")) == ("aaaa1111", "dddd5555")
    assert pair(run("compare", "-d", flights, "--run-id2", "cc", "--json")) == ("bbbb3333", "cccc4444")
    assert pair(run("compare", "-d", flights, "--run-id1", "latest", "--run-id2", "previous", "--json")) == (
        "dddd5555",
        "cccc4444",
    )


def test_compare_of_a_single_run_has_nothing_before_it(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    RecordStore(tmp_path).save(make.record("only", 1))
    done = run("compare", "-d", tmp_path)
    assert done.code == 1
    assert "no record of a run before only" in done.err


def test_the_earlier_run_stands_first_though_a_copy_lost_the_files_times(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    store = RecordStore(tmp_path)
    store.save(make.record("later", 2, ended_at=None))
    store.save(make.record("earlier", 1, ended_at="2030-01-01T00:00:00+00:00"))
    assert pair(run("compare", "-d", tmp_path, "--json")) == ("earlier", "later")


@pytest.fixture
def partitioned(tmp_path: Path, make: SimpleNamespace) -> Path:
    store = RecordStore(tmp_path)
    day = 0
    for run_id in ("run-1", "run-2"):
        for month in ("2013-01", "2013-02"):
            day += 1
            dagster = {"asset_key": ["raw", "flights"], "partition_keys": [month]}
            store.save(make.record(stored_run_id(run_id, [month]), day, f"{run_id}{month}", dagster=dagster))
    return tmp_path


def test_the_run_before_is_of_the_same_partition(run: Run, partitioned: Path) -> None:
    assert pair(run("compare", "-d", partitioned, "--json")) == ("run-1--2013-02", "run-2--2013-02")
    assert run("show", "-d", partitioned, "--run-id", "previous").json["run_id"] == "run-1--2013-02"


def test_only_runs_of_a_partition(run: Run, partitioned: Path) -> None:
    done = run("compare", "-d", partitioned, "--partition", "2013-01", "--json")
    assert pair(done) == ("run-1--2013-01", "run-2--2013-01")
    listed = run("list", "-d", partitioned, "--partition", "2013-01", "--json").json
    assert [record["run_id"] for record in listed] == ["run-2--2013-01", "run-1--2013-01"]
    found = run("search", "-d", partitioned, "--partition", "2013-02", "--json").json
    assert len(found) == 2
    assert run("list", "-d", partitioned, "--partition", "2099-01", "--json").json == []


def test_one_dagster_run_of_several_partitions_is_told_apart(run: Run, partitioned: Path) -> None:
    done = run("show", "-d", partitioned, "--run-id", "run-2")
    assert done.code == 1
    assert "run-2--2013-02, run-2--2013-01; give more of it, or --partition" in done.err
    shown = run("show", "-d", partitioned, "--run-id", "run-2", "--partition", "2013-01")
    assert shown.json["run_id"] == "run-2--2013-01"


def test_the_run_before_is_of_the_same_profile_where_there_is_one(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    store = RecordStore(tmp_path)
    for day, (run_id, profile) in enumerate([("one", "prod"), ("two", "branch"), ("three", "prod")], start=1):
        store.save(make.record(run_id, day, profile=profile))
    assert pair(run("compare", "-d", tmp_path, "--json")) == ("one", "three")
    assert pair(run("compare", "-d", tmp_path, "--run-id2", "two", "--json")) == ("one", "two")


def test_the_root_comes_from_the_environment(flights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from ubunye_orchestrate.cli.app import app

    done = CliRunner().invoke(app, ["lineage", "list"], env={"UBUNYE_ROOT": str(flights)})
    assert done.exit_code == 0
    assert "dddd5555" in done.stdout
    monkeypatch.chdir(flights)
    assert CliRunner().invoke(app, ["lineage", "list"], env={"UBUNYE_ROOT": None}).exit_code == 0


def test_a_mirror_behind_a_url(run: Run, make: SimpleNamespace) -> None:
    root = "memory://cli-mirror/below"
    for day, run_id in enumerate(["one", "two"], start=1):
        RecordStore(root).save(make.record(run_id, day))
    assert {record["run_id"] for record in run("list", "-d", root, "--json").json} == {"one", "two"}
    assert run("compare", "-d", root, "--run-id1", "one", "--run-id2", "two").code == 0
    empty = run("list", "-d", "memory://user:secret@cli-mirror/nothing")
    assert empty.code == 1
    assert "secret" not in empty.err


def test_another_lineage_folder(run: Run, flights: Path) -> None:
    shutil.move(flights / ".ubunye" / "lineage", flights / "receipts")
    assert run("list", "-d", flights, "--lineage-dir", "receipts").code == 0
    done = run("list", "-d", flights)
    assert done.code == 1
    assert (
        f"no records in {flights}/.ubunye/lineage; expected <usecase>/<package>/<task>/<run_id>.json"
        in done.err
    )
