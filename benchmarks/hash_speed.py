"""How fast a table is fingerprinted, side by side in one process with what else could be used.

Each pair is run one after the other, round after round, so that whatever else the machine does falls on both;
the figure is the median of the rounds' ratios. The engine, which can hash in helper processes, is held to one
process, as its readers' machines often are; its processor time is comparable with ours only then.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from ubunye.lineage.content_hash import fingerprint_arrow

from benchmarks.tables import TABLES, few_floats
from ubunye_orchestrate.hashing.api import fingerprint

__all__ = ["main"]

Work = Callable[[], object]

_ROWS = {"mixed": 1_000_000, "floats": 200_000, "nested": 100_000}
_QUICK_ROWS = {"mixed": 200_000, "floats": 40_000, "nested": 20_000}
_TARGETS = {("mixed", 2): 1.8, ("mixed", 1): 1.4, ("floats", 1): 3.0, ("nested", 1): 3.0}

_NOT_PROMISED = {
    "pandas.util.hash_pandas_object, summed": (
        "None and NaN of a text column are one; names do not count; nothing nested; other dtypes or units of "
        "the same values, another hash; pandas only"
    ),
    "starfix": "row order counts; units of time count; no maps",
    "DuckDB: sum(hash(t))": (
        "names do not count; -0.0 is 0.0; the order of columns and of a map's entries counts; hash() may "
        "change with DuckDB's version"
    ),
}


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hash_speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller tables and fewer rounds")
    parser.add_argument("--rounds", type=int, default=None, help="rounds of each pair (default 7, quick 3)")
    options = parser.parse_args()
    rounds = options.rounds or (3 if options.quick else 7)
    tables = {n: make((_QUICK_ROWS if options.quick else _ROWS)[n]) for n, make in TABLES.items()}
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(
        f"Python {platform.python_version()}, pyarrow {pa.__version__}, NumPy {np.__version__}, "
        f"{processors} processors; medians of {rounds} rounds"
    )
    _against_engine(tables, rounds)
    _floats_by_range(50_000 if options.quick else 1_000_000, rounds)
    _against_others(tables["mixed"], rounds)


def _against_engine(tables: dict[str, pa.Table], rounds: int) -> None:
    os.environ["UBUNYE_HASH_WORKERS"] = "1"  # the engine's; it looks at each call
    print(
        "\nubunye-engine 0.8.0 in one process beside ubunye-orchestrate, the same Arrow table, the same hash:"
    )
    for (name, processors), target in _TARGETS.items():
        table = tables[name]
        assert fingerprint(table).data_hash == fingerprint_arrow(table).data_hash, name
        with _on_processors(processors) as available:
            if not available:
                print(f"  {name:8} on {processors} processors: not here")
                continue
            engine, ours, processor = _side_by_side(
                lambda t=table: fingerprint_arrow(t), lambda t=table: fingerprint(t), rounds
            )
        print(
            f"  {name:8} {table.num_rows:>9,} rows, {processors} processor{'s' if processors > 1 else ' '}: "
            f"engine {statistics.median(engine):6.2f} s, ours {statistics.median(ours):6.2f} s, "
            f"{_ratio(engine, ours):5.2f} times as fast (asked: {target}), {processor:.2f} in processor time"
        )


def _floats_by_range(rows: int, rounds: int) -> None:
    print(f"\nOne column of {rows:,} doubles, beside the same digits in the plain range:")
    plain = few_floats(rows, 1.0)
    for scale in (1e9, 1e-7):
        other = few_floats(rows, scale)
        first, second, _ = _side_by_side(lambda t=other: fingerprint(t), lambda: fingerprint(plain), rounds)
        print(f"  like {1.2 * scale:g}: {_ratio(first, second):.2f} times the cost (asked: at most 2)")


def _against_others(table: pa.Table, rounds: int) -> None:
    print("\nOthers on the mixed table, each with what it does not promise and rows-v1 does:")
    for name, other in _others(table).items():
        if other is None:
            print(f"  {name}: not installed")
            continue
        theirs, ours, _ = _side_by_side(other, lambda: fingerprint(table), rounds)
        print(
            f"  {name}: {statistics.median(theirs):.2f} s, we {statistics.median(ours):.2f} s, "
            f"{_ratio(theirs, ours):.2f} times as fast\n      not promised: {_NOT_PROMISED[name]}"
        )


def _others(table: pa.Table) -> dict[str, Work | None]:
    frame = table.to_pandas()  # outside the timing: pandas users have a frame
    connection = duckdb.connect()
    connection.register("t", table)
    others: dict[str, Work | None] = {
        "pandas.util.hash_pandas_object, summed": lambda: pd.util.hash_pandas_object(
            frame, index=False
        ).sum(),
        "DuckDB: sum(hash(t))": lambda: connection.sql(
            "SELECT count(*), sum(hash(t)::HUGEINT) FROM t"
        ).fetchall(),
    }
    try:
        from starfix import ArrowDigester
    except ImportError:
        others["starfix"] = None
    else:
        others["starfix"] = lambda: ArrowDigester.hash_table(table)
    return others


def _side_by_side(first: Work, second: Work, rounds: int) -> tuple[list[float], list[float], float]:
    """Time both, one after the other; who begins changes from round to round.

    Returns the seconds of both, and the median ratio of the processor time of this process's threads, which
    whatever else runs on the machine hardly moves.
    """
    times: tuple[list[float], list[float]] = ([], [])
    processor: tuple[list[float], list[float]] = ([], [])
    for i in range(rounds):
        for which in (0, 1) if i % 2 == 0 else (1, 0):
            started, begun = time.perf_counter(), time.process_time()
            (first, second)[which]()
            times[which].append(time.perf_counter() - started)
            processor[which].append(time.process_time() - begun)
        sys.stdout.flush()
    return *times, _ratio(*processor)


def _ratio(first: list[float], second: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(first, second, strict=True))


@contextmanager
def _on_processors(count: int) -> Iterator[bool]:
    """Hold this thread, and those it starts, to ``count`` processors; False where there are not as many."""
    if not hasattr(os, "sched_getaffinity"):
        yield count > 1
        return
    all_of_them = os.sched_getaffinity(0)
    if len(all_of_them) < count:
        yield False
        return
    os.sched_setaffinity(0, set(sorted(all_of_them)[:count]))
    try:
        yield True
    finally:
        os.sched_setaffinity(0, all_of_them)


if __name__ == "__main__":
    main()
