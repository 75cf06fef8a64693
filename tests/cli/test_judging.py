"""why, gate, and the words for runs that judging needs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.records.paths import stored_run_id
from ubunye_orchestrate.records.store import RecordStore

Run = Callable[..., Any]


@pytest.fixture
def chain(tmp_path: Path, make: SimpleNamespace) -> Path:
    """raw/flights -> clean -> delays, run three times; the third time with other flights and other code."""
    store = RecordStore(tmp_path)
    for day, (content, code) in enumerate([("a", "1"), ("a", "1"), ("b", "2")], start=1):
        run_id = f"{day}" * 8
        make.save_asset(store, run_id, day, ["raw", "flights"], content)
        make.save_asset(
            store,
            run_id,
            day,
            ["clean"],
            content,
            reads={"raw/flights": content},
            code={"function": "c", "functions": {"c.parse": f"sha256:{code}"}},
        )
        make.save_asset(store, run_id, day, ["delays"], content, reads={"clean": content})
    return tmp_path


# ---------------------------------------------------------------- why


def test_why_goes_to_where_the_change_entered(run: Run, chain: Path) -> None:
    done = run("why", "-d", chain, "--asset", "delays")
    assert done.code == 0, done.err
    assert done.out == (
        "Why 'delays' changed\n"
        "  delays  22222222 -> 33333333\n"
        "    changed together with input clean\n"
        "    clean  22222222 -> 33333333\n"
        "      entered here: code of c.parse\n"
        "      changed together with input raw/flights\n"
        "      raw/flights  22222222 -> 33333333\n"
        "        entered here: source changed\n"
        "\n"
        "Entered at raw/flights (source changed); entered at clean (code of c.parse).\n"
    )


def test_why_as_json(run: Run, chain: Path) -> None:
    done = run("why", "-d", chain, "--asset", "delays", "--json").json
    assert done["outputs_changed"] is True
    assert [one["asset"] for one in done["entered"]] == ["raw/flights", "clean"]
    assert done["path"]["inputs"][0]["path"][0]["inputs"][0]["path"][0]["asset"] == "raw/flights"
    assert (done["path"]["a"], done["path"]["b"]) == ("22222222", "33333333")


def test_why_between_runs_that_are_named(run: Run, chain: Path) -> None:
    done = run("why", "-d", chain, "--asset", "delays", "--run-id1", "1111", "--run-id2", "2222")
    assert "its outputs did not change between these runs" in done.out


def test_why_reports_a_record_that_cannot_be_read_and_goes_on(run: Run, chain: Path) -> None:
    (flights,) = chain.rglob("raw__flights/22222222.json")
    flights.write_text("{")
    done = run("why", "-d", chain, "--asset", "delays")
    assert done.code == 0
    assert "raw__flights/22222222.json: found JSON that ends too early" in done.err
    assert "path of input raw/flights not known: no record of run 22222222" in " ".join(done.out.split())


def test_why_finds_the_try_that_succeeded(run: Run, chain: Path, make: SimpleNamespace) -> None:
    store = RecordStore(chain)
    make.save_asset(
        store,
        stored_run_id("33333333", attempt=1),
        3,
        ["raw", "flights"],
        "b",
        dagster_run="33333333",
        attempt=1,
    )
    (first,) = chain.rglob("raw__flights/33333333.json")
    record = json.loads(first.read_text())
    first.write_text(json.dumps({**record, "status": "error", "error": "E: x"}))
    path = run("why", "-d", chain, "--asset", "clean", "--json").json["path"]
    assert path["inputs"][0]["path"][0]["b"] == "33333333.retry-1"


def test_why_finds_the_record_that_holds_the_partition(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    store = RecordStore(tmp_path)
    for number in (1, 2):
        # One run left two records, whose names do not tell which of them holds mar.
        for day, keys in enumerate((["mar", "may"], ["jan", "feb", "apr"]), start=1):
            run_id = stored_run_id(f"run{number}", keys)
            content = f"{number} {keys[0]}"
            make.save_asset(
                store, run_id, day, ["days"], content, dagster_run=f"run{number}", partitions=keys
            )
        step = make.step(
            name="days",
            direction="input",
            data_hash=f"sha256:{number}",
            hash_method="rows-v1",
            producer=[make.producer(partition="mar", run_id=f"run{number}", storage_id=number)],
        )
        make.save_asset(store, f"mart{number}", number, ["mart"], f"{number}", inputs=[step])
    path = run("why", "-d", tmp_path, "--asset", "mart", "--json").json["path"]
    (hop,) = path["inputs"][0]["path"]
    assert (hop["asset"], hop["a"], hop["b"]) == ("days[mar..may]", "run1--mar..may", "run2--mar..may")


# ---------------------------------------------------------------- words for runs


def ids(done: Any) -> tuple[str, str]:
    assert done.code == 0, done.err
    return done.json["a"]["run_id"], done.json["b"]["run_id"]


def test_baseline_is_the_previous_success_of_partition_and_profile(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    store = RecordStore(tmp_path)
    kinds = [("good", {}), ("branch", {"profile": "branch"}), ("bad", {"status": "error"}), ("new", {})]
    for day, (run_id, fields) in enumerate(kinds, start=1):
        store.save(make.record(run_id, day, **fields))
    arguments = ("compare", "-d", tmp_path, "--json", "--run-id1", "baseline")
    assert ids(run(*arguments)) == ("good", "new")
    assert run("show", "-d", tmp_path, "--run-id", "baseline").json["run_id"] == "good"
    done = run(*arguments, "--run-id2", "branch")
    assert done.code == 1
    assert "no baseline of default/raw/raw__flights for run branch" in done.json["error"]


def test_baseline_is_what_the_receipt_names(run: Run, tmp_path: Path, make: SimpleNamespace) -> None:
    store = RecordStore(tmp_path)
    for day, run_id in enumerate(["one", "two", "new"], start=1):
        named = {"baseline": {"run_id": "one", "storage_id": 1}} if run_id == "new" else {}
        store.save(make.record(run_id, day, dagster={"asset_key": ["raw", "flights"], **named}))
    assert ids(run("compare", "-d", tmp_path, "--json", "--run-id1", "baseline")) == ("one", "new")
    assert ids(run("compare", "-d", tmp_path, "--json", "--run-id1", "previous")) == ("two", "new")


def test_baseline_is_the_pinned_run_until_it_is_unpinned(run: Run, flights: Path) -> None:
    arguments = ("compare", "-d", flights, "--json", "--run-id1", "baseline")
    assert ids(run(*arguments)) == ("cccc4444", "dddd5555")
    assert run("accept", "-d", flights, "--run-id", "aaaa1", "--pin", "--why", "audited").code == 0
    assert ids(run(*arguments)) == ("aaaa1111", "dddd5555")
    assert run("accept", "-d", flights, "--run-id", "bb", "--pin", "--why", "audited anew").code == 0
    assert ids(run(*arguments)) == ("bbbb3333", "dddd5555")
    # An acceptance ends no pin.
    assert run("accept", "-d", flights, "--run-id", "cc", "--why", "as meant").code == 0
    assert ids(run(*arguments)) == ("bbbb3333", "dddd5555")
    assert ids(run("compare", "-d", flights, "--json", "--run-id1", "accepted")) == ("cccc4444", "dddd5555")
    assert run("accept", "-d", flights, "--unpin", "--why", "over").code == 0
    assert ids(run(*arguments)) == ("cccc4444", "dddd5555")
    done = run("accept", "-d", flights, "--unpin", "--why", "over")
    assert (done.code, "nothing to unpin" in done.err) == (1, True)


def test_a_pinned_run_whose_record_is_gone_is_not_replaced_by_another(run: Run, flights: Path) -> None:
    run("accept", "-d", flights, "--run-id", "aaaa1", "--pin", "--why", "audited", "--by", "ann")
    next(flights.rglob("aaaa1111.json")).unlink()
    done = run("compare", "-d", flights, "--run-id1", "baseline")
    assert done.code == 1
    assert "run aaaa1111 of default/raw/raw__flights was pinned by ann, and has no record here" in done.err


def test_a_policy_may_want_the_last_accepted_run(run: Run, flights: Path) -> None:
    policy = flights / "gate.toml"
    policy.write_text('baseline = "accepted"\n')
    arguments = ("gate", "-d", flights, "--json", "--policy", policy)

    def baseline() -> str:
        return str(run(*arguments).json["judged"][0]["baseline"])

    # Until a run is accepted, the previous success.
    assert baseline() == "cccc4444"
    run("accept", "-d", flights, "--run-id", "bb", "--why", "as meant")
    assert baseline() == "bbbb3333"
    run("accept", "-d", flights, "--run-id", "aaaa1", "--pin", "--why", "audited")
    run("accept", "-d", flights, "--run-id", "cc", "--why", "as meant")
    assert baseline() == "aaaa1111"


def test_what_the_receipt_names_as_previous_stands_after_a_pin(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    store = RecordStore(tmp_path)
    for day, run_id in enumerate(["one", "two", "three", "new"], start=1):
        named = {"baseline": {"run_id": "one"}, "baselines": {"previous": {"run_id": "two"}}}
        store.save(make.record(run_id, day, dagster={"asset_key": ["raw", "flights"], **named}))
    assert ids(run("compare", "-d", tmp_path, "--json", "--run-id1", "baseline")) == ("two", "new")


def test_no_accepted_run(run: Run, flights: Path) -> None:
    done = run("compare", "-d", flights, "--run-id1", "accepted")
    assert (done.code, "no accepted run" in done.err) == (1, True)


# ---------------------------------------------------------------- gate


def judged(done: Any) -> dict[str, Any]:
    return {one["asset"]: one for one in done.json["judged"]}


def test_a_gate_over_all_tasks(run: Run, chain: Path) -> None:
    done = run("gate", "-d", chain, "--json")
    found = judged(done)
    # Another source is no fault; other code with other data is a warning, and warnings fail.
    assert {name: one["passed"] for name, one in found.items()} == {
        "raw/flights": True,
        "clean": False,
        "delays": True,
    }
    assert done.code == 1
    assert found["clean"]["baseline"] == "22222222"
    assert found["delays"]["path"].startswith("entered at raw/flights")
    assert run("gate", "-d", chain, "--fail-on", "error").code == 0
    assert run("gate", "-d", chain, "--asset", "delays").code == 0
    assert (
        run("gate", "-d", chain, "--asset", "delays", "--fail-on", "note", "--json").json["fail_on"] == "note"
    )


def test_the_gate_s_text(run: Run, chain: Path) -> None:
    done = run("gate", "-d", chain)
    assert done.out.splitlines()[0] == "FAIL      clean  33333333 against 22222222"
    assert done.out.splitlines()[-1] == "FAIL      1 of 3 failed (fails on warn)"
    assert max(map(len, done.out.splitlines())) <= 80
    assert run("gate", "-d", chain, "--fail-on", "error").out.splitlines()[-1].startswith("PASS      0 of 3")


def test_a_candidate_by_its_beginning_is_every_record_of_that_run(run: Run, chain: Path) -> None:
    done = run("gate", "-d", chain, "--candidate", "22", "--json")
    assert {one["run_id"] for one in done.json["judged"]} == {"22222222"}
    assert (len(done.json["judged"]), done.code) == (3, 0)
    done = run("gate", "-d", chain, "--candidate", "99", "--json")
    assert done.code == 1
    assert "no record of run '99'" in done.json["error"]


def test_a_first_run_passes_and_says_so(run: Run, tmp_path: Path, make: SimpleNamespace) -> None:
    RecordStore(tmp_path).save(make.record("one", 1))
    done = run("gate", "-d", tmp_path)
    assert done.code == 0
    assert "first record, nothing to compare with" in done.out
    done = run("gate", "-d", tmp_path, "--baseline", "previous")
    assert done.code == 1
    assert "not judged: no record of a run before one" in done.out


def test_what_is_no_first_run_and_has_no_baseline_says_why(
    run: Run, tmp_path: Path, make: SimpleNamespace
) -> None:
    why = "nothing to compare with: run r0 stored partitions a, b together, this one partition a"
    RecordStore(tmp_path).save(make.record("one", 1, dagster={"partition_keys": ["a"], "not_compared": why}))
    done = run("gate", "-d", tmp_path)
    assert done.code == 0
    assert why in " ".join(done.out.split())
    assert "first record" not in done.out


def test_what_was_not_judged_never_passes(run: Run, chain: Path, make: SimpleNamespace) -> None:
    RecordStore(chain).save(
        make.record("4" * 8, 4, package="default", task_name="delays", task_path="default/default/delays",
                    status="error", error="E: broke")
    )  # fmt: skip
    done = run("gate", "-d", chain, "--asset", "delays", "--fail-on", "error")
    assert (done.code, "the run failed: E: broke" in done.out) == (1, True)
    (chain / ".ubunye/lineage/default/default/clean/zz.json").write_text("{")
    done = run("gate", "-d", chain, "--asset", "clean", "--fail-on", "error")
    # It may be the newest run: what stands behind it is judged too, and does not make it pass.
    assert done.code == 1
    assert "not judged" in done.out
    assert "zz.json" in done.out
    assert "PASS      clean  33333333" in done.out


def test_an_older_file_that_cannot_be_read_does_not_matter(run: Run, chain: Path) -> None:
    bad = chain / ".ubunye/lineage/default/default/clean/zz.json"
    bad.write_text("{")
    os.utime(bad, (1, 1))
    assert run("gate", "-d", chain, "--asset", "clean", "--fail-on", "error").code == 0


def test_an_accepted_run_passes_and_the_next_one_does_not(
    run: Run, flights: Path, make: SimpleNamespace
) -> None:
    arguments = ("gate", "-d", flights, "--json", "--severity", "data_changed=error")
    assert run(*arguments).code == 1
    assert run("accept", "-d", flights, "--why", "new airline", "--by", "ann").code == 0
    done = run(*arguments)
    (one,) = done.json["judged"]
    assert (done.code, one["passed"], one["accepted"]["by"]) == (0, True, "ann")
    assert one["why"].startswith("accepted by ann, ")
    assert one["verdict"]["passed"] is False
    assert "ACCEPTED" in run(*(a for a in arguments if a != "--json")).out
    RecordStore(flights).save(make.record("eeee6666", 6, content="again"))
    assert run(*arguments).code == 1


@pytest.fixture
def unexplained(tmp_path: Path, make: SimpleNamespace) -> Path:
    """Two runs whose output differs while everything recorded is equal."""
    store = RecordStore(tmp_path)
    for day, content in enumerate(["x", "y"], start=1):
        make.save_asset(store, f"{day}" * 8, day, ["raw", "flights"], content, reads={"source": "same"})
    return tmp_path


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--not-deterministic"], 0),
        (["--severity", "unexplained=none"], 0),
        (["--severity", "unexplained=note", "--severity", "data_changed=error"], 1),
        (["--not-deterministic", "--min-rows", "3"], 0),
        (["--not-deterministic", "--min-rows", "4"], 1),
        (["--not-deterministic", "--max-rows", "2"], 1),
        (["--not-deterministic", "--max-rows", "2", "--fail-on", "error"], 0),
        (["--not-deterministic", "--max-row-decrease", "0", "--max-row-increase", "0"], 0),
    ],
)
def test_the_policy_from_the_command_line(run: Run, unexplained: Path, options: list[str], code: int) -> None:
    assert run("gate", "-d", unexplained, *options).code == code


def test_packages_that_do_not_count(run: Run, tmp_path: Path, make: SimpleNamespace) -> None:
    store = RecordStore(tmp_path)
    for day, version in enumerate(["2.2.3", "2.2.4"], start=1):
        environment = {"python": "3.11.7", "packages": {"pandas": version}}
        make.save_asset(
            store, f"{day}" * 8, day, ["x"], version, reads={"source": "same"},
            environment=environment, environment_hash=f"sha256:{version}",
        )  # fmt: skip
    # With the environment counted the change goes with it; without, there is nothing that it goes with.
    for options, kind in (
        ([], "environment_changed"),
        (["--ignore-package", "pandas"], "unexplained"),
        (["--ignore-patch-versions"], "unexplained"),
    ):
        (one,) = run("gate", "-d", tmp_path, "--json", *options).json["judged"]
        assert kind in {finding["kind"] for finding in one["verdict"]["findings"]}, options


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--fail-on", "never"], "--fail-on is 'never'; expected one of note, warn, error"),
        (["--severity", "unknown"], "--severity 'unknown'; expected a finding and its severity"),
        (["--severity", "nosuch=error"], "names the finding 'nosuch'"),
        (["--severity", "unknown=bad"], "a severity is one of"),
        (["--min-rows", "-1"], "a bound is 0 or more"),
        (["--policy", "nosuch.toml"], "nosuch.toml cannot be read: No such file"),
        (["--summary", "/nosuch/folder/x.md"], "--summary /nosuch/folder/x.md cannot be written"),
        (["--baseline", "nosuch"], "not judged: no record of run 'nosuch'"),
    ],
)
def test_gates_that_cannot_be_meant(run: Run, flights: Path, options: list[str], told: str) -> None:
    done = run("gate", "-d", flights, *options)
    assert done.code == 1
    assert told in " ".join((done.err + done.out).split())


POLICY = """
fail_on = "error"

[severities]
code_changed = "error"

[assets."raw/flights"]
severities = { source_changed = "error" }

[assets."default/default/clean"]
severities = { code_changed = "none" }
"""


def test_a_policy_file_with_a_table_for_an_asset(run: Run, chain: Path) -> None:
    policy = chain / "gate.toml"
    policy.write_text(POLICY)
    found = judged(run("gate", "-d", chain, "--policy", policy, "--json"))
    assert {name: one["passed"] for name, one in found.items()} == {
        "raw/flights": False,
        "clean": True,
        "delays": True,
    }
    # The command line comes on top of the file, for all assets.
    done = run("gate", "-d", chain, "--policy", policy, "--json", "--min-rows", "99", "--fail-on", "warn")
    assert not any(one["passed"] for one in done.json["judged"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("fail_on = ", "is no TOML"),
        ("\udcff", "is no TOML"),
        ("fail_on = 3", "fail_on is 3"),
        ("colour = 1", "has 'colour'; expected one of severities, min_rows"),
        ("assets = 1", "assets is no table of tables"),
        ("[assets.x]\nmin_row = 1", "assets.\"x\" has 'min_row'"),
        ("min_rows = true", "min_rows is True; expected a whole number"),
        ("x = " + "[" * 5000, "is no TOML"),
        ("#" * 2_000_000, "above 1,048,576 bytes"),
    ],
)
def test_policy_files_that_cannot_be_meant(run: Run, flights: Path, text: str, told: str) -> None:
    policy = flights / "gate.toml"
    policy.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = run("gate", "-d", flights, "--policy", policy)
    assert (done.code, done.out) == (1, "")
    assert len(done.err.splitlines()) == 1
    assert told in done.err


def test_the_summary_is_appended_as_markdown(run: Run, chain: Path) -> None:
    summary = chain / "summary.md"
    summary.write_text("# before\n")
    run("gate", "-d", chain, "--summary", summary)
    text = summary.read_text()
    assert text.startswith("# before\n### Data gate: 1 of 3 failed\n")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows[0] == "| | asset | run | against | what was found |"
    assert rows[1].startswith(
        "| FAIL | clean | 33333333 | 22222222 | warn: output clean changed, together with"
    )
    assert "#### clean" in text
    assert "| code of c.parse |" in text
    # Every row has as many cells as the head.
    assert {line.replace("\\|", "").count("|") for line in rows[:4]} == {6}


def test_names_cannot_break_the_summary(run: Run, tmp_path: Path, make: SimpleNamespace) -> None:
    store = RecordStore(tmp_path)
    nasty = "a|b\n# <img src=x>`"
    for day in (1, 2):
        make.save_asset(store, f"{day}" * 8, day, [nasty], f"{day}", reads={nasty: f"{day}"})
    run("gate", "-d", tmp_path, "--summary", tmp_path / "s.md")
    text = (tmp_path / "s.md").read_text()
    assert "<img" not in text.replace("\\<img", "")
    rows = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows[:3]} == {6}
    assert "\n# " not in text


def test_custody_is_judged_with_the_producers_records(run: Run, chain: Path) -> None:
    (clean,) = chain.rglob("clean/33333333.json")
    record = json.loads(clean.read_text())
    record["inputs"][0]["data_hash"] = "sha256:" + "9" * 64
    clean.write_text(json.dumps(record))
    done = run("gate", "-d", chain, "--asset", "clean", "--fail-on", "error", "--json")
    kinds = {finding["kind"] for finding in judged(done)["clean"]["verdict"]["findings"]}
    assert (done.code, "custody_broken" in kinds) == (1, True)
