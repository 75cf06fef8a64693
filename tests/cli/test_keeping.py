"""accept in the mirror alone, prune, assets."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.records.baselines import Acceptance, BaselineStore, pinned
from ubunye_orchestrate.records.store import RecordStore

Run = Callable[..., Any]

BASELINES = Path(".ubunye/baselines/default/raw/raw__flights")


def left(root: Path) -> list[str]:
    return sorted(path.stem for path in (root / ".ubunye/lineage").rglob("*.json"))


# ---------------------------------------------------------------- accept


def test_accept_writes_the_mirror_and_says_what_sensors_see(run: Run, flights: Path) -> None:
    done = run("accept", "-d", flights, "--run-id", "cc", "--why", "as meant; token=abcdefgh1234")
    assert done.code == 0, done.err
    (path,) = (flights / BASELINES).iterdir()
    said = json.loads(path.read_text())
    assert done.out.splitlines() == [
        f"accepted: run cccc4444 of default/raw/raw__flights, by {said['by']}",
        f"written to {path}",
        "Not in a Dagster instance: sensors see it after `lineage sync`.",
    ]
    assert {name: value for name, value in said.items() if name not in ("at", "by")} == {
        "kind": "accepted",
        "usecase": "default",
        "package": "raw",
        "task_name": "raw__flights",
        "asset_key": ["raw", "flights"],
        "partition_keys": [],
        "profile": "default",
        "run_id": "cccc4444",
        "storage_id": None,
        # A reason may hold a secret too.
        "why": "as meant; token=***",
    }
    assert said["by"] == getpass.getuser()
    at = datetime.fromisoformat(said["at"])
    assert abs(datetime.now(timezone.utc) - at) < timedelta(minutes=5)
    assert path.stat().st_mtime == pytest.approx(at.timestamp(), abs=1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--why", " "], "--why is empty"),
        (["--why", "x", "--pin", "--unpin"], "expected one of the two"),
        (["--why", "x", "--run-id", "zz"], "no record of run 'zz'"),
        (["--why", "x", "--run-id", "failed"], "has status error; expected one that succeeded"),
        (["--why", "x", "--instance", "/nosuch"], "no Dagster instance in /nosuch"),
    ],
)
def test_what_cannot_be_accepted(
    run: Run, flights: Path, make: SimpleNamespace, options: list[str], told: str
) -> None:
    RecordStore(flights).save(make.record("failed", 1, status="error"))
    done = run("accept", "-d", flights, *options)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert told in done.err
    assert not (flights / BASELINES).exists()


def test_a_reason_is_required(run: Run, flights: Path) -> None:
    assert run("accept", "-d", flights).code == 2


def test_without_a_user_s_name_it_is_asked_for(
    run: Run, flights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", nobody)
    done = run("accept", "-d", flights, "--why", "x")
    assert (done.code, "expected --by" in done.err) == (1, True)
    assert run("accept", "-d", flights, "--why", "x", "--by", "ann").code == 0


def test_statements_of_one_second_keep_their_order(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    for micro, kind in enumerate(("pinned", "unpinned", "pinned", "unpinned")):
        store.save(
            Acceptance(
                kind=kind, usecase="u", package="p", task_name="t", run_id=f"r{micro}", by="a", why="w",
                at=f"2024-01-01T00:00:00.00000{micro}+00:00",
            )
        )  # fmt: skip
    said = store.of_task("u", "p", "t", lambda path, why: pytest.fail(str(why)))
    assert [one.run_id for one in said] == ["r3", "r2", "r1", "r0"]
    assert pinned(said, [], "default") is None
    assert pinned(said[1:], [], "default") == said[1]


def test_a_pin_is_of_its_partition_and_profile(tmp_path: Path) -> None:
    pin = Acceptance(
        kind="pinned", usecase="u", package="p", task_name="t", run_id="r", by="a", why="w",
        at="2024-01-01T00:00:00Z", partition_keys=["b", "a"], profile="prod",
    )  # fmt: skip
    assert pinned([pin], ["a", "b"], "prod") == pin
    assert pinned([pin], ["a"], "prod") is None
    assert pinned([pin], ["a", "b"], "default") is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"kind": "accepted"}', '{"kind": "loved"}', "\x00\x01", "[" * 100_000],
)
def test_a_statement_that_cannot_be_read_is_named_and_passed_over(run: Run, flights: Path, text: str) -> None:
    run("accept", "-d", flights, "--run-id", "aaaa1", "--pin", "--why", "x")
    (flights / BASELINES / "99991231T000000.000000Z-x.json").write_text(text)
    done = run("compare", "-d", flights, "--run-id1", "baseline", "--json")
    assert done.json["a"]["run_id"] == "aaaa1111"
    assert len(done.err.splitlines()) == 1
    assert "99991231T000000.000000Z-x.json" in done.err


def test_a_time_that_is_none_is_refused(run: Run, flights: Path) -> None:
    run("accept", "-d", flights, "--run-id", "aaaa1", "--pin", "--why", "x")
    (path,) = (flights / BASELINES).iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "at": "yesterday"}))
    done = run("compare", "-d", flights, "--run-id1", "baseline", "--json")
    assert done.json["a"]["run_id"] == "cccc4444"
    assert "found the time 'yesterday'" in done.err


# ---------------------------------------------------------------- prune


def test_prune_is_dry_first(run: Run, flights: Path) -> None:
    before = left(flights)
    done = run("prune", "-d", flights, "--keep", 3)
    assert done.code == 0
    assert done.out.splitlines() == [
        "delete  2024-01-01 00:00  default/raw/raw__flights/aaaa1111",
        "delete  2024-01-02 00:00  default/raw/raw__flights/aaaa2222",
        "2 would be deleted, 3 kept",
        "Nothing was deleted: this is a dry run. Give --yes to delete.",
    ]
    assert left(flights) == before
    done = run("prune", "-d", flights, "--keep", 3, "--yes")
    assert done.out.splitlines()[-1] == "2 deleted, 3 kept"
    assert left(flights) == ["bbbb3333", "cccc4444", "dddd5555"]
    assert run("prune", "-d", flights, "--keep", 3, "--yes").out.splitlines() == ["0 deleted, 3 kept"]


def test_prune_keeps_the_baseline_of_the_newest_run(run: Run, flights: Path) -> None:
    run("prune", "-d", flights, "--keep", 1, "--yes")
    # dddd is kept as the newest, cccc as what it was held against.
    assert left(flights) == ["cccc4444", "dddd5555"]


def test_prune_keeps_the_last_success_behind_failures(run: Run, flights: Path, make: SimpleNamespace) -> None:
    store = RecordStore(flights)
    for day in range(10, 15):
        store.save(make.record(f"failed{day}", day, status="error"))
    run("prune", "-d", flights, "--keep", 2, "--yes")
    assert left(flights) == ["dddd5555", "failed13", "failed14"]


def test_prune_keeps_what_the_newest_receipt_names(run: Run, flights: Path, make: SimpleNamespace) -> None:
    dagster = {"asset_key": ["raw", "flights"], "baseline": {"run_id": "aaaa1111", "storage_id": 1}}
    RecordStore(flights).save(make.record("newest", 20, dagster=dagster))
    run("prune", "-d", flights, "--keep", 1, "--yes")
    assert left(flights) == ["aaaa1111", "dddd5555", "newest"]


def test_prune_keeps_pinned_and_accepted_runs(run: Run, flights: Path) -> None:
    run("accept", "-d", flights, "--run-id", "aaaa1", "--pin", "--why", "x")
    run("accept", "-d", flights, "--run-id", "bb", "--why", "x")
    done = run("prune", "-d", flights, "--keep", 1, "--yes", "--json").json
    assert [one["run_id"] for one in done["delete"]] == ["aaaa2222"]
    assert (done["dry_run"], done["kept"], done["protected"]) == (False, 4, 3)
    assert left(flights) == ["aaaa1111", "bbbb3333", "cccc4444", "dddd5555"]


def test_prune_counts_each_partition_and_profile_by_itself(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    store = RecordStore(tmp_path)
    day = 0
    for profile, month in (("prod", "jan"), ("prod", "feb"), ("branch", "jan")):
        for number in range(4):
            day += 1
            dagster = {"asset_key": ["raw", "flights"], "partition_keys": [month]}
            store.save(make.record(f"{profile}-{month}-{number}", day, profile=profile, dagster=dagster))
    run("prune", "-d", tmp_path, "--keep", 2, "--yes")
    assert left(tmp_path) == [
        f"{pair}-{number}" for pair in ("branch-jan", "prod-feb", "prod-jan") for number in (2, 3)
    ]


def test_prune_by_days_and_by_number_keep_what_either_keeps(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    store = RecordStore(tmp_path)
    now = datetime.now(timezone.utc)
    for days in (1, 5, 50, 60, 70):
        store.save(make.record(f"d{days}", 1, ended_at=(now - timedelta(days=days)).isoformat()))
    deleted = [
        [one["run_id"] for one in run("prune", "-d", tmp_path, "--json", *options).json["delete"]]
        for options in (["--keep-days", 10], ["--keep-days", 55], ["--keep", 4, "--keep-days", 10])
    ]
    assert deleted == [["d70", "d60", "d50"], ["d70", "d60"], ["d70"]]


def test_prune_by_days_keeps_the_newest_success_however_old(run: Run, flights: Path) -> None:
    run("prune", "-d", flights, "--keep-days", 1, "--yes")
    assert left(flights) == ["cccc4444", "dddd5555"]


def test_prune_leaves_what_it_cannot_judge(run: Run, flights: Path, make: SimpleNamespace) -> None:
    RecordStore(flights).save(make.record("timeless", 1, started_at=None, ended_at=None))
    task = flights / ".ubunye/lineage/default/raw/raw__flights"
    (task / "bad.json").write_text("{")
    (task / "copy.json").write_text((task / "aaaa1111.json").read_text())
    (task / "notes.txt").write_text("not a record")
    odd = json.loads((task / "aaaa1111.json").read_text())
    (task / "odd.json").write_text(json.dumps({**odd, "run_id": "nowhere"}))
    done = run("prune", "-d", flights, "--keep", 1, "--yes")
    # A record without a time is no newer than one with a time either: dddd is the newest, cccc its baseline.
    assert left(flights) == ["bad", "cccc4444", "copy", "dddd5555", "odd", "timeless"]
    assert "nowhere" not in done.out
    assert (task / "notes.txt").exists()
    assert "bad.json: found" in done.err


def test_prune_of_one_task_leaves_the_others(run: Run, flights: Path, make: SimpleNamespace) -> None:
    for day in range(1, 5):
        make.save_asset(RecordStore(flights), f"other{day}", day, ["other"], "x")
    run("prune", "-d", flights, "--keep", 1, "--asset", "other", "--yes")
    assert left(flights)[-2:] == ["other3", "other4"]
    assert len(left(flights)) == 7


@pytest.mark.parametrize(
    ("options", "code"), [([], 1), (["--keep", "0"], 2), (["--keep", "-1"], 2), (["--keep-days", "-1"], 2)]
)
def test_prune_without_saying_what_to_keep(run: Run, flights: Path, options: list[str], code: int) -> None:
    assert run("prune", "-d", flights, "--yes", *options).code == code
    assert len(left(flights)) == 5


# ---------------------------------------------------------------- assets


def test_assets(run: Run, flights: Path, make: SimpleNamespace) -> None:
    make.save_asset(RecordStore(flights), "one", 1, ["other"], "x", status="error", error="E: x")
    RecordStore(flights).save(
        make.record("foreign", 3, task_name="t", task_path="u/p/t", usecase="u", package="p", dagster=None)
    )
    done = run("assets", "-d", flights)
    assert [line.split() for line in done.out.splitlines()[3:]] == [
        ["other", "1", "2024-01-01T00:00:00", "error", "3"],
        ["raw/flights", "5", "2024-01-05T00:00:00", "success", "3"],
        ["u/p/t", "1", "2024-01-03T00:00:00", "success", "3"],
    ]
    assert max(map(len, done.out.splitlines())) <= 80
    found = run("assets", "-d", flights, "--json").json
    assert [one["task"] for one in found] == ["default/default/other", "default/raw/raw__flights", "u/p/t"]
    assert found[1]["newest"]["outputs"] == {"raw/flights": {"row_count": 3, "data_hash": "sha256:dddd5555"}}
    assert found[2]["asset_key"] is None
    assert len(run("assets", "-d", flights, "-u", "u", "--json").json) == 1


def test_assets_reads_one_record_of_each(run: Run, flights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ubunye_orchestrate.records.folders import LocalFolder

    read: list[str] = []
    original = LocalFolder.read

    def counted(self: LocalFolder, path: str, limit: int) -> bytes | None:
        read.append(path)
        return original(self, path, limit)

    monkeypatch.setattr(LocalFolder, "read", counted)
    run("assets", "-d", flights)
    assert read == ["default/raw/raw__flights/dddd5555.json"]
