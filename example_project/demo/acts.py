"""The four acts of the demo: what is changed before each run, and what the sensor has to find after it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import dagster as dg

    from example_project.demo.project import DemoProject
    from example_project.demo.screen import Screen
    from example_project.demo.watch import Found, Watch

__all__ = ["ACTS", "MONTHS", "Act", "Change", "Outcome", "perform", "problems_of"]

MONTHS = ("2013-01-01", "2013-02-01")
"""The partitions of the report that the demo makes; each takes seconds, and two tell the story."""


@dataclass(frozen=True)
class Change:
    """An edit of one place: of a delivered table, or of a module of the pipeline."""

    what: Literal["table", "module"]
    name: str
    old: str
    new: str
    told: str
    """What the demo prints of it."""

    def make(self, project: DemoProject) -> None:
        """Make the change in the project's folder."""
        edit = project.deliver if self.what == "table" else project.edit
        edit(self.name, self.old, self.new)


@dataclass(frozen=True)
class Act:
    """One run of the pipeline, what is changed before it, and what the sensor has to find after it."""

    title: str
    change: Change | None = None
    changed: Mapping[str, str] = field(default_factory=dict)
    """Each table whose data has to have changed -> what has to have changed with it; empty for its source."""
    entered: Mapping[str, str] = field(default_factory=dict)
    """Each of these tables -> where its change has to have entered."""
    alarms: frozenset[str] = frozenset()
    """The tables whose drift check has to fail. New data is no alarm; new code that changes data is."""
    first: bool = False
    """Nothing was stored before: every table has to be a first record."""


ACTS: tuple[Act, ...] = (
    Act("1  A first run", first=True),
    Act("2  Again, with nothing changed"),
    Act(
        "3  Again, with one cell of one input changed",
        Change(
            "table",
            "flights",
            "2041,2125,-44,AS,7,N568AS",
            "2041,2125,44,AS,7,N568AS",
            "A minus sign is lost in flights.csv, in one cell of 6.4 million: Alaska 7 to Seattle was 44 "
            "minutes early on 27 February, and is now 44 minutes late.",
        ),
        {
            "raw_flights": "",
            "clean_flights": "input raw_flights",
            "delays_with_weather": "input clean_flights",
            "carrier_report[2013-02-01]": "input delays_with_weather",
        },
        dict.fromkeys(
            ("raw_flights", "clean_flights", "delays_with_weather", "carrier_report[2013-02-01]"),
            "entered at raw_flights (source changed)",
        ),
    ),
    Act(
        "4  Again, with one line of code changed",
        Change(
            "module",
            "marts",
            "return delay_min >= 15",
            "return delay_min > 15",
            "Someone counts an arrival as late from the 16th minute on, in is_late of marts.py.",
        ),
        {f"carrier_report[{month}]": "code of flights.marts:is_late" for month in MONTHS},
        {
            f"carrier_report[{month}]": f"entered at carrier_report[{month}] (code of flights.marts:is_late)"
            for month in MONTHS
        },
        alarms=frozenset(f"carrier_report[{month}]" for month in MONTHS),
    ),
)


@dataclass(frozen=True)
class Outcome:
    """How an act went."""

    run_ids: Mapping[str, str]
    """Month -> the Dagster run that made its report."""
    problems: Sequence[str]
    """Where the sensor did not find what it had to, or found what it must not; empty when all is well."""


def perform(act: Act, project: DemoProject, watch: Watch, screen: Screen) -> Outcome:
    """Make the act's change, run the pipeline, ask the sensor, and print what it says."""
    screen.heading(act.title)
    if act.change is not None:
        act.change.make(project)
        screen.paragraph(act.change.told)
        screen.difference(act.change.old, act.change.new)
    started = time.monotonic()
    stored: dict[str, int] = {}

    def on_stored(materialization: dg.AssetMaterialization) -> None:
        name = table_name(materialization.asset_key, materialization.partition)
        stored[name] = _rows(materialization)
        screen.word(name)

    definitions = project.definitions(on_stored)
    if act.first:
        watch.look(definitions)  # only notes where the event log ends
    run_ids = project.run(definitions, MONTHS)
    found = watch.look(definitions)
    seconds = time.monotonic() - started
    screen.paragraph(f"{len(stored)} tables, {sum(stored.values()):,} rows, {seconds:.0f} s", style="dim")
    _tell(found, screen)
    problems = problems_of(act, stored.keys(), found)
    for problem in problems:
        screen.paragraph(f"NOT AS EXPECTED: {problem}", style="bold red")
    return Outcome(run_ids, problems)


def problems_of(act: Act, stored: Iterable[str], found: Sequence[Found]) -> list[str]:
    """Hold the sensor's findings against what the act expects."""
    problems = [
        f"{name} was stored and not judged" for name in stored if name not in {f.table for f in found}
    ]
    if act.first:
        problems += [f"expected a first record: {f.text}" for f in found if f.kinds != ("first_record",)]
        return problems
    changed = {f.table: f.changed_with for f in found if "data_changed" in f.kinds}
    for name in sorted({*act.changed, *changed}):
        if name not in changed:
            problems.append(
                f"{name} did not drift; expected a change with {act.changed[name] or 'its source'}"
            )
        elif name not in act.changed:
            problems.append(f"{name} drifted, with {changed[name] or 'nothing recorded'}; expected no change")
        elif changed[name] != act.changed[name]:
            problems.append(f"{name} changed with {changed[name]!r}; expected {act.changed[name]!r}")
    for f in found:
        expected = act.entered.get(f.table, "")
        if f.table in changed and f.table in act.changed and f.path != expected:
            problems.append(f"{f.table}: {f.path or 'no path is told'}; expected {expected or 'none'}")
    # What may be said besides: evidence that moved, where something was changed.
    usual = {"data_changed", "source_changed", "input_changed", "code_changed"} if act.change else set()
    for f in found:
        problems += [f"{f.table}: {kind} was not expected" for kind in f.kinds if kind not in usual]
        if f.passed is (f.table in act.alarms):
            problems.append(f"the check of {f.table} {'passed' if f.passed else 'failed'}: {f.text}")
    return problems


def _tell(found: Sequence[Found], screen: Screen) -> None:
    first = sum(f.kinds == ("first_record",) for f in found)
    changed = [f for f in found if "data_changed" in f.kinds]
    if first == len(found):
        screen.paragraph(f"Drift sensor: {first} first records, nothing to compare with yet.", style="green")
        return
    if not changed:
        screen.paragraph(f"Drift sensor: all {len(found)} data hashes as before.", style="green")
        return
    screen.paragraph(f"Drift sensor: {len(changed)} of {len(found)} data hashes changed.", style="bold")
    for f in changed:
        why = f"changed with {f.changed_with}" if f.changed_with else "its source changed"
        screen.finding(f.table, why, "cyan" if f.passed else "bold yellow")
    for f in found:
        if f not in changed and "input_changed" in f.kinds:
            screen.finding(f.table, "as before, although an input changed", "green")
    rest = [f for f in found if f not in changed and "input_changed" not in f.kinds]
    edited = any("code_changed" in f.kinds for f in rest)
    told = "as before: code in their folder changed, but nothing that they reach" if edited else "as before"
    screen.finding(f"the other {len(rest)}", told, "green")
    for path, tables in _by_path(changed).items():
        if not path:
            continue
        along = "" if len(tables) == 1 else f", by the recorded inputs of all {len(tables)}"
        screen.paragraph(f"{path[0].upper()}{path[1:]}{along}.", style="bold")


def _by_path(changed: Sequence[Found]) -> Mapping[str, Sequence[str]]:
    """Return the tables of each path."""
    paths: dict[str, list[str]] = {}
    for f in changed:
        paths.setdefault(f.path, []).append(f.table)
    return paths


def table_name(key: dg.AssetKey, partition: str | None) -> str:
    """Return how the demo calls a materialization: the asset, a partition in brackets."""
    name = key.to_user_string()
    return f"{name}[{partition}]" if partition else name


def _rows(materialization: dg.AssetMaterialization) -> int:
    rows = [materialization.metadata.get(f"dagster/{kind}row_count") for kind in ("", "partition_")]
    return sum(int(str(value.value)) for value in rows if value is not None)
