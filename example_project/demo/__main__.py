"""The command line of the demo."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from example_project.demo.acts import ACTS, MONTHS, perform
from example_project.demo.project import DemoProject, NotADemoFolderError
from example_project.demo.screen import Screen
from example_project.demo.watch import Watch
from ubunye_orchestrate.compare.text import short_run_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from example_project.demo.acts import Act, Outcome


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 when every run drifted as it should, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m example_project.demo", description=__doc__)
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(".ubunye/demo"),
        help="where everything goes; emptied first when an earlier demo made it (default: %(default)s)",
    )
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="take every N-th flight only: quicker"
    )
    chosen = parser.parse_args(arguments)
    try:
        project = DemoProject(chosen.folder, every=chosen.every)
    except NotADemoFolderError as e:
        print(e, file=sys.stderr)
        return 1
    return run_demo(project, ACTS, Screen())


def run_demo(project: DemoProject, acts: Sequence[Act], screen: Screen) -> int:
    """Perform the acts on a fresh project, then ask the command line about a first and a last one."""
    started = time.monotonic()
    screen.heading("New York's flights of 2013, run four times")
    screen.paragraph(
        "Each table leaves a receipt: hashes of what was read and stored, the code, the environment. After "
        "each run the drift sensor holds the new receipts against the ones before."
    )
    watch = Watch(project.instance, project.sensor)
    with project.active():
        outcomes = [perform(act, project, watch, screen) for act in acts]
    problems = [problem for outcome in outcomes for problem in outcome.problems]
    problems += _from_files(project, outcomes, screen)

    screen.heading("Summary")
    if problems:
        screen.paragraph(f"{len(problems)} findings are not as expected:", style="bold red")
        for problem in problems:
            screen.paragraph(f"- {problem}", style="red")
        return 1
    where = _shown(project.folder)
    screen.paragraph(f"Every finding as expected, in {time.monotonic() - started:.0f} s.", style="bold green")
    screen.paragraph(f"The records are in {where}/.ubunye/lineage. To see the receipts in Dagster:")
    home = where if where.is_absolute() else f"$PWD/{where}"
    screen.as_is(f'   DAGSTER_HOME="{home}/dagster_home" \\')
    screen.as_is(f"     {_shown(Path(sys.executable).with_name('dagster'))} dev")
    return 0


def _from_files(project: DemoProject, outcomes: Sequence[Outcome], screen: Screen) -> list[str]:
    """Let the command line tool tell a month's first report from its last, from their files alone."""
    month = MONTHS[-1]
    runs = [short_run_id(f"{outcome.run_ids[month]}--{month}") for outcome in (outcomes[0], outcomes[-1])]
    screen.heading("From the files alone: February's first report and its last")
    problems = _command(
        ("compare", runs, project, screen),
        ("input delays_with_weather", "code of flights.marts:is_late", "cannot be separated"),
    )
    screen.heading("Along the recorded inputs: where the change between these two entered")
    return problems + _command(
        ("why", runs, project, screen),
        (
            "entered at raw_flights (source changed)",
            f"entered at carrier_report[{month}] (code of flights.marts:is_late)",
        ),
    )


def _command(asked: tuple[str, Sequence[str], DemoProject, Screen], expected: Sequence[str]) -> list[str]:
    """Print a command about two runs of the report and what it says; return what it does not say."""
    command, (first, last), project, screen = asked
    screen.as_is(f"$ ubunye-orchestrate lineage {command} -d {_shown(project.folder)} \\")
    screen.as_is(f"    --asset carrier_report --run-id1 {first} \\")
    screen.as_is(f"    --run-id2 {last}")
    arguments = [
        "-d",
        str(project.folder),
        "--asset",
        "carrier_report",
        "--run-id1",
        first,
        "--run-id2",
        last,
    ]
    result = subprocess.run(
        [sys.executable, "-m", "ubunye_orchestrate.cli", "lineage", command, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    screen.as_is(result.stdout + result.stderr)
    if result.returncode:
        return [f"lineage {command} ended with {result.returncode}"]
    said = " ".join(result.stdout.split()).lower()
    return [f"lineage {command} does not say {text!r}" for text in expected if text.lower() not in said]


def _shown(folder: Path) -> Path:
    """Return the folder as one would type it here."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


if __name__ == "__main__":
    sys.exit(main())
