"""How fast the command line starts and lists: ``python -m benchmarks.cli_speed [--quick]``.

Every figure is of whole processes, run in turn, round after round, so that whatever else the machine does
falls on all of them. Ratios are medians of the rounds' own ratios, of processor time (user and system, of the
process), which other work disturbs less than the clock; the clock's median stands beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["main"]

_TASK = ".ubunye/lineage/default/raw/flights"
_NAMED = ("-u", "default", "-p", "raw", "-t", "flights")
_START_TARGET = 1.5

_IMPORTED = "import typer, pydantic"
# The smallest program that uses both: one command, one model.
_IN_USE = """
import typer
from pydantic import BaseModel
class Model(BaseModel):
    name: str
app = typer.Typer()
@app.command()
def hello(name: str = "x") -> None:
    typer.echo(Model(name=name).name)
app()
"""


@dataclass(frozen=True)
class Times:
    """One process."""

    processor: float
    """Seconds, user and system."""
    clock: float
    """Seconds."""


def main() -> None:
    """Print start-up ratios, then listings of many records beside the engine's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cli_speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 records and fewer rounds")
    parser.add_argument("--rounds", type=int, default=None, help="rounds (default 15, quick 5)")
    options = parser.parse_args()
    rounds = options.rounds or (5 if options.quick else 15)
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors; medians of {rounds} rounds")
    with tempfile.TemporaryDirectory(prefix="ubunye-bench-") as folder:
        few = Path(folder) / "few"
        _records(few, 5)
        _start(few, rounds)
        count = 10_000 if options.quick else 100_000
        many = Path(folder) / "many"
        print(f"\nwriting {count:,} records ...", flush=True)
        _records(many, count)
        _lists(many, count, max(3, rounds // 3))
        shutil.rmtree(many)


def _start(root: Path, rounds: int) -> None:
    ours = [sys.executable, "-m", "ubunye_orchestrate.cli"]
    commands = {
        "typer and pydantic imported": [sys.executable, "-c", _IMPORTED],
        "typer and pydantic in use": [sys.executable, "-c", _IN_USE],
        "ours, lineage --help": [*ours, "lineage", "--help"],
        "ours, lineage list": [*ours, "lineage", "list", "-d", str(root), *_NAMED],
        "engine 0.8.0, lineage list": [
            *(sys.executable, "-c", "from ubunye.cli.main import main; main()"),
            *("lineage", "list", "-d", str(root), *_NAMED),
        ],
    }
    times = _in_turn(commands, rounds)
    print("\nstart, whole processes")
    _table(times, "typer and pydantic in use")
    ratio = _ratio(times["ours, lineage list"], times["typer and pydantic in use"])
    word = "met" if ratio <= _START_TARGET else "MISSED"
    print(f"  target: list at most {_START_TARGET} times typer and pydantic alone: {ratio:.2f}, {word}")


def _lists(root: Path, count: int, rounds: int) -> None:
    commands = {
        "ours": [sys.executable, "-m", "ubunye_orchestrate.cli", "lineage", "list", "-d", str(root), *_NAMED],
        "engine 0.8.0": [
            *(sys.executable, "-c", "from ubunye.cli.main import main; main()"),
            *("lineage", "list", "-d", str(root), *_NAMED),
        ],
    }
    times = _in_turn(commands, rounds)
    print(f"\nnewest 10 of {count:,} records of one task, local folder")
    _table(times, "engine 0.8.0")


def _in_turn(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, list[Times]]:
    times: dict[str, list[Times]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            one = _run(command)
            if number:  # the first round only warms caches
                times[name].append(one)
    return times


def _run(command: Sequence[str]) -> Times:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UBUNYE_")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    clock = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Times((after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime), clock)


def _table(times: Mapping[str, Sequence[Times]], beside: str) -> None:
    for name, found in times.items():
        processor = statistics.median(one.processor for one in found)
        clock = statistics.median(one.clock for one in found)
        ratio = _ratio(found, times[beside])
        print(f"  {name:<28}  {processor:6.3f} s processor  {clock:6.3f} s clock  x{ratio:.2f}")


def _ratio(times: Sequence[Times], beside: Sequence[Times]) -> float:
    return statistics.median(a.processor / b.processor for a, b in zip(times, beside, strict=True))


def _records(root: Path, count: int) -> None:
    folder = root / _TASK
    folder.mkdir(parents=True)
    step = {
        "row_count": 1_000,
        "schema_hash": "sha256:" + "1" * 64,
        "data_hash": "sha256:" + "2" * 64,
        "hash_method": "rows-v1",
    }
    record = {
        "run_id": "",
        "task_path": "default/raw/flights",
        "usecase": "default",
        "package": "raw",
        "task_name": "flights",
        "profile": "default",
        "model": "etl",
        "version": "",
        "config_hash": "sha256:" + "3" * 64,
        "started_at": "2024-01-01T00:00:00+00:00",
        "ended_at": "2024-01-01T00:00:05+00:00",
        "duration_sec": 5.0,
        "status": "success",
        "inputs": [{"name": "source", "direction": "input", "format": "csv", "location": "x", **step}],
        "outputs": [{"name": "flights", "direction": "output", "format": "csv", "location": "y", **step}],
        "error": None,
        "record_version": 2,
    }
    for number in range(count):
        run_id = f"{number:08x}-0000-4000-8000-000000000000"
        path = f"{folder}/{run_id}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**record, "run_id": run_id}, file)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


if __name__ == "__main__":
    main()
