"""The demo: its findings on the real project, and that it fails when a finding is not as expected."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from example_project.demo.__main__ import main, run_demo
from example_project.demo.acts import ACTS, Act, Change, problems_of
from example_project.demo.project import USECASE, DemoProject, NotADemoFolderError
from example_project.demo.screen import Screen
from example_project.demo.watch import Found

FIRST, AGAIN, ONE_CELL, ONE_LINE = ACTS
REPORT = ["-u", USECASE, "-p", "marts", "-t", "carrier_report"]


def played(folder: Path, acts: tuple[Act, ...]) -> tuple[int, str]:
    printed = io.StringIO()
    code = run_demo(DemoProject(folder, every=100), acts, Screen(printed))
    return code, printed.getvalue()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """The whole demo on every hundredth flight: its folder, its exit code, what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    return (folder, *played(folder, ACTS))


def test_the_demo_finds_what_was_changed_and_nothing_else(demo: tuple[Path, int, str]) -> None:
    _, code, printed = demo
    assert code == 0, printed
    assert "9 first records" in printed
    assert "all 9 data hashes as before" in printed
    assert re.search(r"clean_flights +changed with input raw_flights", printed)
    assert re.search(r"carrier_report\[2013-01-01\] +as before, although an input changed", printed)
    assert re.search(r"carrier_report\[2013-02-01\] +changed with code of flights.marts:is_late", printed)
    assert "Entered at raw_flights (source changed), by the recorded inputs of all 4." in printed
    assert "Entered at carrier_report[2013-02-01] (code of flights.marts:is_late)." in printed
    assert "cannot be separated" in printed
    assert re.search(r"raw_flights +\w{8} -> \w{8}\n +entered here: source changed", printed)


def test_the_demo_prints_plain_lines_of_80_columns(demo: tuple[Path, int, str]) -> None:
    folder, _, printed = demo
    lines = [line for line in printed.splitlines() if str(folder) not in line]
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in printed
    assert len(lines) < 110


def test_the_demo_leaves_what_the_web_pages_show(demo: tuple[Path, int, str]) -> None:
    folder, _, _ = demo
    with dg.DagsterInstance.from_config(str(folder / "dagster_home")) as instance:
        newest = instance.get_latest_materialization_event(dg.AssetKey("carrier_report"))
        check = dg.AssetCheckKey(dg.AssetKey("carrier_report"), "drift")
        checked = instance.event_log_storage.get_asset_check_execution_history(check, limit=100)
    assert newest is not None
    assert newest.asset_materialization is not None
    metadata = newest.asset_materialization.metadata
    assert {"ubunye/receipt", "ubunye/data_hash", "ubunye/changes", "ubunye/record_path"} <= metadata.keys()
    assert "code of flights.marts:is_late" in str(metadata["ubunye/changes"].value)
    assert [c.status.value for c in checked] == ["FAILED"] * 2 + ["SUCCEEDED"] * 6


def test_the_demo_can_be_run_again_in_its_folder(tmp_path: Path) -> None:
    left_over = tmp_path / "data" / "left_over.parquet"
    DemoProject(tmp_path).instance.dispose()
    left_over.parent.mkdir()
    left_over.touch()
    DemoProject(tmp_path).instance.dispose()
    assert not left_over.exists()


def engine(*arguments: str) -> str:
    """What the Ubunye engine's own command line prints; it must end with 0."""
    command = [str(Path(sys.executable).parent / "ubunye"), "lineage", *arguments]
    environment = {**os.environ, "COLUMNS": "200"}
    result = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=False, env=environment
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def changed_hashes(comparison: str) -> list[str]:
    """Which hashes the engine's comparison marks as changed (it marks the duration too)."""
    marked = [line.split(":")[0].strip() for line in comparison.splitlines() if line.endswith("CHANGED")]
    return [name for name in marked if name.endswith("_hash")]


def test_the_engine_reads_the_mirror_that_the_demo_leaves(demo: tuple[Path, int, str]) -> None:
    folder, _, _ = demo
    here = ["-d", str(folder), *REPORT]
    files = sorted((folder / ".ubunye" / "lineage" / USECASE / "marts" / "carrier_report").glob("*.json"))
    assert len(files) == 8
    listed = engine("list", *here, "-n", "20")
    assert f"{USECASE}/marts/carrier_report" in listed
    assert listed.count("success") == 8

    february = sorted((f for f in files if f.stem.endswith("2013-02-01")), key=lambda f: f.stat().st_mtime)
    first, again, _, last = [f.stem for f in february]
    assert changed_hashes(engine("compare", *here, "--run-id1", first, "--run-id2", again)) == []
    assert changed_hashes(engine("compare", *here, "--run-id1", first, "--run-id2", last)) == [
        "code_hash",
        "data_hash",  # of the input delays_with_weather
        "data_hash",  # of the output
    ]

    traced = engine("trace", *here, "--run-id", last)
    assert "[parquet] delays_with_weather" in traced
    assert "[parquet] carrier_report" in traced


NO_OP = replace(
    ONE_LINE,
    change=Change(
        "module", "marts", "return delay_min >= 15", "return delay_min >= 15  # late", "A comment."
    ),
)
SECRET_CHANGE = replace(AGAIN, title="2  Not what it says", change=ONE_CELL.change)


def test_the_demo_fails_when_an_edit_that_should_drift_does_not(tmp_path: Path) -> None:
    code, printed = played(tmp_path, (FIRST, NO_OP))
    assert code == 1
    assert "carrier_report[2013-01-01] did not drift" in printed


def test_the_demo_fails_when_a_run_that_should_be_clean_drifts(tmp_path: Path) -> None:
    code, printed = played(tmp_path, (FIRST, SECRET_CHANGE))
    assert code == 1
    assert "raw_flights drifted, with nothing recorded; expected no change" in " ".join(printed.split())
    assert "clean_flights drifted, with input raw_flights; expected no change" in " ".join(printed.split())


def found(table: str, *kinds: str, changed_with: str = "", passed: bool = True, path: str = "") -> Found:
    return Found(table, kinds, changed_with, f"{table}: …", passed, path)


@pytest.mark.parametrize(
    ("act", "findings", "problem"),
    [
        (AGAIN, [], "a was stored and not judged"),
        (AGAIN, [found("a", "unknown")], "a: unknown was not expected"),
        (AGAIN, [found("a", "code_changed")], "a: code_changed was not expected"),
        (AGAIN, [found("a", passed=False)], "the check of a failed: a: …"),
        (FIRST, [found("a")], "expected a first record: a: …"),
        (
            Act("", ONE_LINE.change, {"a": "code of f"}),
            [found("a", "data_changed", changed_with="code of g")],
            "a changed with 'code of g'; expected 'code of f'",
        ),
        (
            Act("", ONE_LINE.change, {"a": "code of f"}, alarms=frozenset({"a"})),
            [found("a", "data_changed", changed_with="code of f")],
            "the check of a passed: a: …",
        ),
        (
            Act("", ONE_LINE.change, {"a": "code of f"}),
            [found("a", "data_changed", "unexplained", changed_with="code of f")],
            "a: unexplained was not expected",
        ),
        (
            Act("", ONE_LINE.change, {"a": "code of f"}, {"a": "entered at a (code of f)"}),
            [found("a", "data_changed", changed_with="code of f", path="entered at b (code of f)")],
            "a: entered at b (code of f); expected entered at a (code of f)",
        ),
        (
            Act("", ONE_LINE.change, {"a": "code of f"}, {"a": "entered at a (code of f)"}),
            [found("a", "data_changed", changed_with="code of f")],
            "a: no path is told; expected entered at a (code of f)",
        ),
    ],
)
def test_each_way_in_which_a_finding_can_be_wrong(act: Act, findings: list[Found], problem: str) -> None:
    assert problems_of(act, ["a"], findings) == [problem]


def test_a_folder_in_use_for_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("the only copy")
    with pytest.raises(NotADemoFolderError, match="did not make"):
        DemoProject(tmp_path)
    assert main(["--folder", str(tmp_path)]) == 1
    assert "name a folder that is empty or new" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "the only copy"


def test_an_edit_of_a_place_that_is_not_there_says_so(tmp_path: Path) -> None:
    project = DemoProject(tmp_path)
    with pytest.raises(ValueError, match=r"marts\.py holds 'no such line' 0 times, expected once"):
        project.edit("marts", "no such line", "")
