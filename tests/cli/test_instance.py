"""The mirror beside a real Dagster instance: sync, accept, and what is said without an instance."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, AssetObservation, DagsterInstance, MetadataValue

from ubunye_orchestrate.dagster_io.receipts.acceptance import ACCEPTANCE, acceptances_in

Run = Callable[..., Any]

LINEAGE = Path(".ubunye/lineage")


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may change; the paths inside of the records stay those of the original."""
    copy = tmp_path / "copy"
    shutil.copytree(made, copy)
    return copy


def files(root: Path) -> dict[str, tuple[bytes, float]]:
    found = sorted((root / LINEAGE).rglob("*.json"))
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime) for path in found}


def test_what_the_runs_left(made: Path) -> None:
    names = sorted(Path(name).parent.name for name in files(made / "root"))
    # Two of flights, two tries of delays, one failure, one month, one range of months.
    assert names == ["broken", "delays", "delays", "monthly", "monthly", "raw__flights", "raw__flights"]


def test_a_mirror_that_is_whole_gains_nothing(run: Run, place: Path) -> None:
    before = files(place / "root")
    done = run("sync", "-d", place / "root", "--instance", place / "home", "--json").json
    assert (done["in_both"], done["written"], done["mirror_only"], done["problems"]) == (7, [], [], [])
    assert files(place / "root") == before


def test_a_lost_mirror_comes_back_as_it_was(run: Run, place: Path) -> None:
    before = files(place / "root")
    shutil.rmtree(place / "root")
    (place / "root").mkdir()
    dry = run("sync", "-d", place / "root", "--instance", place / "home", "--dry-run", "--json").json
    assert len(dry["written"]) == 7
    assert files(place / "root") == {}
    done = run("sync", "-d", place / "root", "--instance", place / "home", "--json").json
    assert done["written"] == dry["written"]
    after = files(place / "root")
    assert after.keys() == before.keys()
    for name, (data, time) in before.items():
        assert after[name][1] == pytest.approx(time, abs=1e-3), name
        then, now = json.loads(data), json.loads(after[name][0])
        if "jan..mar" in name:
            # One number was rounded for each partition before it was added up.
            then["outputs"][0].pop("hash_seconds"), now["outputs"][0].pop("hash_seconds")
        for record in (then, now):
            # Measured to the microsecond, written to the microsecond, subtracted again.
            for timing in record["timings"]:
                if timing["step"].startswith("Step:"):
                    timing["seconds"] = round(timing["seconds"], 4)
        assert now == then, name
        assert list(now) == list(then), name
    again = run("sync", "-d", place / "root", "--instance", place / "home", "--json").json
    assert (again["written"], again["in_both"]) == ([], 7)
    assert files(place / "root") == after


def test_what_is_in_one_only_is_named(run: Run, place: Path, make: Any) -> None:
    from ubunye_orchestrate.records.store import RecordStore

    root = place / "root"
    (lost,) = (root / LINEAGE).rglob("broken/*.json")
    lost.unlink()
    RecordStore(root).save(make.record("elsewhere", 1))
    done = run("sync", "-d", root, "--instance", place / "home")
    assert done.code == 0
    assert done.out.splitlines() == [
        "in both           : 6",
        "in instance only  : 1 (written)",
        f"  default/marts/broken/{lost.stem}",
        "in mirror only    : 1 (not receipts of this instance's assets)",
        "  default/raw/raw__flights/elsewhere",
    ]
    assert lost.exists()
    assert json.loads(lost.read_text())["error"] == "ValueError: no such column"


def test_deep_restores_what_cannot_be_read_and_names_what_differs(run: Run, place: Path) -> None:
    root = place / "root"
    one, two = sorted((root / LINEAGE).rglob("raw__flights/*.json"))
    whole = one.read_bytes()
    one.write_bytes(whole[:100])
    record = json.loads(two.read_text())
    record["outputs"][0]["data_hash"] = "sha256:" + "0" * 64
    two.write_text(json.dumps(record))
    (newer,) = (root / LINEAGE).rglob("broken/*.json")
    newer.write_text(json.dumps({**json.loads(newer.read_text()), "record_version": 3}))
    shallow = run("sync", "-d", root, "--instance", place / "home", "--json").json
    assert (shallow["restored"], shallow["different"]) == ([], [])
    assert one.read_bytes() == whole[:100]
    done = run("sync", "-d", root, "--instance", place / "home", "--deep", "--json")
    assert done.json["restored"] == [f"default/raw/raw__flights/{one.stem}"]
    assert json.loads(one.read_text())["run_id"] == one.stem
    assert done.json["different"] == [f"default/raw/raw__flights/{two.stem}"]
    # A record of a newer version is not ours to replace.
    assert done.code == 1
    assert "record of version 3" in done.json["problems"][0]
    assert json.loads(newer.read_text())["record_version"] == 3


def test_a_receipt_that_cannot_be_read_is_named_and_the_rest_goes_on(run: Run, place: Path) -> None:
    with DagsterInstance.from_config(str(place / "home")) as instance:
        instance.report_runless_asset_event(
            AssetObservation(
                "odd", metadata={"ubunye/receipt": MetadataValue.json({"run_id": "x", "record_version": 7})}
            )
        )
        instance.report_runless_asset_event(
            AssetObservation("odder", metadata={"ubunye/receipt": MetadataValue.text("hello")})
        )
    shutil.rmtree(place / "root")
    (place / "root").mkdir()
    done = run("sync", "-d", place / "root", "--instance", place / "home", "--json")
    assert done.code == 1
    assert len(done.json["written"]) == 7
    problems = " ".join(done.json["problems"])
    assert "of odd" in problems
    assert "another program uses this key" in problems


def test_sync_without_an_instance(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    done = run("sync", "-d", place / "root")
    assert (done.code, "--instance" in done.err) == (1, True)
    done = run("sync", "-d", place / "root", "--instance", place / "root")
    assert done.code == 1
    assert "it has no dagster.yaml" in done.err
    assert not (place / "root" / "history").exists(), "no instance may come into being"
    (place / "bad").mkdir()
    (place / "bad" / "dagster.yaml").write_text("storage: [1, 2")
    done = run("sync", "-d", place / "root", "--instance", place / "bad")
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert "cannot be opened" in done.err


def newest(run: Run, root: Path, name: str) -> str:
    return str(run("show", "-d", root, "--asset", name).json["run_id"])


def test_accept_writes_to_the_instance_and_the_mirror(run: Run, place: Path) -> None:
    root, home = place / "root", place / "home"
    done = run(
        "accept", "-d", root, "--asset", "raw/flights", "--why", "a new airline", "--by", "ann",
        "--instance", home, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    said = done.json
    with DagsterInstance.from_config(str(home)) as instance:
        (event,) = instance.fetch_observations(AssetKey(["raw", "flights"]), limit=1).records
        assert event.asset_observation is not None
        logged = event.asset_observation.metadata[ACCEPTANCE].value
        (read,) = acceptances_in(instance, AssetKey(["raw", "flights"]))
        (latest,) = instance.fetch_materializations(AssetKey(["raw", "flights"]), limit=1).records
    assert logged == {name: value for name, value in said.items() if name != "path"}
    assert json.loads(Path(said["path"]).read_text()) == logged
    assert logged["storage_id"] == latest.storage_id
    assert (logged["kind"], logged["by"], logged["why"]) == ("accepted", "ann", "a new airline")
    assert (logged["asset_key"], logged["profile"]) == (["raw", "flights"], "default")
    assert logged["run_id"] == newest(run, root, "raw/flights")
    assert read.run_id == logged["run_id"]


def test_an_acceptance_goes_both_ways_and_once(run: Run, place: Path) -> None:
    root, home = place / "root", place / "home"
    done = run("accept", "-d", root, "--asset", "raw/flights", "--why", "in the mirror only")
    assert "Not in a Dagster instance: sensors see it after `lineage sync`." in done.out
    run("accept", "-d", root, "--asset", "raw/flights", "--pin", "--why", "in both", "--instance", home)
    dry = run("sync", "-d", root, "--instance", home, "--dry-run", "--json").json
    assert (dry["acceptances_written"], dry["acceptances_reported"]) == (0, 1)
    done = run("sync", "-d", root, "--instance", home, "--json").json
    assert (done["acceptances_written"], done["acceptances_reported"]) == (0, 1)
    again = run("sync", "-d", root, "--instance", home, "--json").json
    assert (again["acceptances_written"], again["acceptances_reported"]) == (0, 0)
    with DagsterInstance.from_config(str(home)) as instance:
        said = list(acceptances_in(instance, AssetKey(["raw", "flights"])))
    assert sorted(one.why for one in said) == ["in both", "in the mirror only"]
    assert all(one.storage_id is not None for one in said)
    shutil.rmtree(root)
    root.mkdir()
    fresh = run("sync", "-d", root, "--instance", home, "--json").json
    assert (fresh["acceptances_written"], fresh["acceptances_reported"]) == (2, 0)
    assert len(list((root / ".ubunye/baselines/default/raw/raw__flights").iterdir())) == 2
    kinds = {json.loads(p.read_text())["kind"] for p in (root / ".ubunye/baselines").rglob("*.json")}
    assert kinds == {"accepted", "pinned"}


def test_a_run_that_the_instance_does_not_know_cannot_be_accepted_there(
    run: Run, place: Path, make: Any
) -> None:
    from ubunye_orchestrate.records.store import RecordStore

    RecordStore(place / "root").save(make.record("elsewhere", 28))
    arguments = ("accept", "-d", place / "root", "--asset", "raw/flights", "--run-id", "elsewhere")
    done = run(*arguments, "--why", "x", "--instance", place / "home")
    assert done.code == 1
    assert "no materialization of raw/flights with the receipt of run elsewhere" in done.err
    assert not (place / "root/.ubunye/baselines").exists()
    # In the mirror alone it can be, and stays there when the two are synchronised.
    assert run(*arguments, "--why", "x").code == 0
    done = run("sync", "-d", place / "root", "--instance", place / "home", "--json").json
    assert (done["acceptances_reported"], done["problems"]) == (0, [])


def test_one_partition_is_accepted(run: Run, place: Path) -> None:
    root, home = place / "root", place / "home"
    done = run(
        "accept", "-d", root, "--asset", "monthly", "--partition", "jan", "--why", "x", "--instance", home,
        "--run-id", os.path.basename(next((root / LINEAGE).rglob("*--jan.json")))[:8], "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["partition_keys"] == ["jan"]
    with DagsterInstance.from_config(str(home)) as instance:
        (event,) = instance.fetch_observations(AssetKey("monthly"), limit=1).records
    assert event.partition_key == "jan"


def test_why_and_gate_on_what_runs_left(run: Run, place: Path) -> None:
    done = run("gate", "-d", place / "root", "--json")
    words = {one["asset"]: (one["passed"], one["why"]) for one in done.json["judged"]}
    assert words["raw/flights"] == (True, "outputs unchanged")
    assert words["delays"][0]
    assert words["broken"] == (False, "the run failed: ValueError: no such column")
    assert done.code == 1
    # The try that failed is no baseline.
    assert "no baseline" in run("why", "-d", place / "root", "--asset", "delays").err


def test_verify_against_the_instance(run: Run, place: Path, made: Path) -> None:
    """Without a mirror: the receipts are in the event log, the tables where the runs put them."""
    empty = place / "nothing"
    empty.mkdir()
    arguments = ("verify", "-d", empty, "--instance", place / "home", "--json")
    found = {one["name"]: one["state"] for one in run(*arguments).json}
    assert found == {
        "delays": "unchanged",
        "raw/flights": "unchanged",
        # The newest run stored all three apart, and each has a receipt of its own.
        "monthly[jan]": "unchanged",
        "monthly[feb]": "unchanged",
        "monthly[mar]": "unchanged",
    }
    assert [one["name"] for one in run(*arguments, "--asset", "raw/flights").json] == ["raw/flights"]
    done = run(*arguments, "-t", "monthly", "--partition", "feb")
    assert [one["name"] for one in done.json] == ["monthly[feb]"]
    assert run(*arguments, "-t", "nosuch").code == 1
    other = made / "data" / "raw" / "flights.parquet"
    whole = other.read_bytes()
    try:
        other.write_bytes(whole[:-8])
        done = run(*arguments, "--asset", "raw/flights")
        assert (done.code, done.json[0]["state"]) == (1, "unreadable")
    finally:
        other.write_bytes(whole)
    # The mirror has one hash for all of the run over several months.
    found = {one["name"]: one["state"] for one in run("verify", "-d", place / "root", "--json").json}
    assert found["monthly[jan..mar]"] == "unknown"
    assert found["raw/flights"] == "unchanged"
