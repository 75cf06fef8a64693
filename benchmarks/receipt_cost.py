"""What a receipt costs a step: the same assets with and without, in process, in pairs.

A step's time is that between its start and its end in the event log. Both sides run the same assets in turn,
each in a project of its own on SQLite, who begins changing from pair to pair. Printed are the medians, the
median of the pairs' ratios and how far these lie apart (the middle half of them), and the processor time that
the step's own thread took, which a busy disk does not sway. ``--profile`` adds where that time goes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import statistics
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pandas as pd
import pyarrow as pa
from dagster import DagsterInstance, Definitions, EventLogEntry, FilesystemIOManager, asset

from benchmarks.tables import mixed
from ubunye_orchestrate import expect
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.upstream import on_events
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.lines import batch_lines

ROWS = 1_000
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_FRAME = mixed(ROWS).to_pandas()

# Parts of a receipt, as "module:name", each with what it is called in the table.
_PARTS = {
    "dagster_io.receipts.wrapper:ReceiptsIOManager._hash": "a hash",
    "dagster_io.receipts.writer:ReceiptWriter.begin_input": "beginning an input (code, producer)",
    "dagster_io.receipts.writer:ReceiptWriter.begin_output": "beginning an output",
    "dagster_io.receipts.writer:ReceiptWriter.end_output": "ending an output, of which:",
    "dagster_io.receipts.writer:build_record": "  the record",
    "dagster_io.receipts.writer:find_baseline": "  its baseline",
    "dagster_io.receipts.writer:mirror": "  its file",
    "dagster_io.receipts.writer:receipt_metadata": "  its metadata",
}


class _Step(NamedTuple):
    wall: float
    """Seconds."""
    processor: float
    """Seconds of the thread that the step runs on."""


@asset
def orders() -> pd.DataFrame:
    return _FRAME.copy()


@asset
def totals(orders: pd.DataFrame) -> pd.DataFrame:
    return orders.assign(price=orders["price"] * 2)


@asset
@expect.not_null("id")
@expect.unique("id")
def checked(orders: pd.DataFrame) -> pd.DataFrame:
    return orders.assign(price=orders["price"] * 2)


@functools.cache
def _wide_frame() -> pd.DataFrame:
    return pd.concat([_FRAME.add_suffix(f"_{copy}") for copy in range(20)], axis=1)


@functools.cache
def _long_frame() -> pd.DataFrame:
    return mixed(1_000_000).to_pandas()


@asset
def wide() -> pd.DataFrame:
    return _wide_frame().copy()


@asset
def long() -> pd.DataFrame:
    return _long_frame().copy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pairs, to see that it runs")
    parser.add_argument("--pairs", type=int, default=40, help="how many pairs (of large tables a fifth)")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    given = parser.parse_known_args()[0]
    pairs = 5 if given.quick else given.pairs
    print(f"\nA step of {ROWS:,} rows with a receipt, against the same step without ({pairs} pairs):")
    print("                       wall ms           ratio  middle half   processor ms")
    with tempfile.TemporaryDirectory() as folder:
        small = ("orders", "without input"), ("totals", "with an input"), ("checked", "and with two rules")
        _compare([orders, totals, checked], dict(small), pairs, Path(folder) / "small", given.profile)
        large = ("wide", "200 columns"), ("long", "1,000,000 rows")
        _compare([wide, long], dict(large), max(pairs // 5, 2), Path(folder) / "large", given.profile)
    print("asked of a step of 1,000 rows: at most 1.1 times the time")
    _print_what_no_receipt_can_spare()


def _print_what_no_receipt_can_spare() -> None:
    """Print what hashing such a table takes by itself, with nothing of a receipt around it."""
    lines = [line.encode() for line in batch_lines(pa.RecordBatch.from_pandas(_FRAME)).to_pylist()]
    seconds: dict[str, list[float]] = defaultdict(list)
    whole = _timed(lambda: fingerprint(_FRAME), seconds["the hash of one table, warm, outside of a step"])
    digests = _timed(lambda: [sha256(line).digest() for line in lines], seconds["its SHA-256 digests alone"])
    for _ in range(100):
        whole()
        digests()
    for what, each in seconds.items():
        print(f"  {what:55} {_median_ms(each):7.2f} ms")


def _compare(assets: list[Any], names: dict[str, str], pairs: int, root: Path, profile: bool) -> None:
    plain = FilesystemIOManager(base_dir=str(root / "files"))
    kept = with_receipts(plain, Receipts(root=str(root / "mirror")))
    spans: dict[str, list[float]] = defaultdict(list)
    with _watched(spans) if profile else contextlib.nullcontext():
        found = _in_pairs(assets, plain, kept, root, pairs)
    for step, both in found.items():
        ratios = sorted(with_.wall / without.wall for without, with_ in both)
        low, ratio, high = (ratios[round(q * (len(ratios) - 1))] for q in (0.25, 0.5, 0.75))
        (wall, processor), (wall_with, processor_with) = (
            (_median_ms(one.wall for one in side), _median_ms(one.processor for one in side))
            for side in zip(*both, strict=True)
        )
        print(
            f"  {names[step]:18} {wall:7.1f} -> {wall_with:7.1f}  {ratio:5.2f}  {low:5.2f}-{high:<5.2f}  "
            f"{processor:7.1f} -> {processor_with:7.1f}"
        )
    for what, seconds in ((what, seconds) for what, seconds in spans.items() if seconds):
        print(f"    {what:55} {_median_ms(seconds):7.2f} ms each time")


def _median_ms(seconds: Any) -> float:
    return statistics.median(seconds) * 1000


def _in_pairs(
    assets: list[Any], plain: Any, kept: Any, root: Path, pairs: int
) -> dict[str, list[tuple[_Step, _Step]]]:
    """Run both, who begins changing from pair to pair; the first pair warms up and does not count."""
    times: dict[str, list[tuple[_Step, _Step]]] = defaultdict(list)
    homes = [root / "plain", root / "kept"]
    for home in homes:
        home.mkdir(parents=True)
    with DagsterInstance.local_temp(str(homes[0])) as one, DagsterInstance.local_temp(str(homes[1])) as two:
        sides = ((one, plain), (two, kept))
        for number in range(pairs + 1):
            found: dict[int, dict[str, _Step]] = {}
            for which in (0, 1) if number % 2 else (1, 0):
                found[which] = _steps(assets, *sides[which])
            if number:
                for step in found[0]:
                    times[step].append((found[0][step], found[1][step]))
    return times


def _steps(assets: list[Any], instance: DagsterInstance, manager: Any) -> dict[str, _Step]:
    processor: dict[str, float] = {}

    def note(event: EventLogEntry) -> None:
        said = event.dagster_event
        if said is not None and said.event_type_value in ("STEP_START", "STEP_SUCCESS"):
            now = time.thread_time()
            processor[event.step_key or ""] = now - processor.get(event.step_key or "", 0.0)

    run_id = str(uuid.uuid4())
    on_events(instance, run_id, note)
    project = Definitions(assets=assets, resources={"io_manager": manager})
    job = project.resolve_implicit_global_asset_job_def()
    job.execute_in_process(instance=instance, run_id=run_id, run_config=_QUIET)
    stats = instance.get_run_step_stats(run_id)
    return {
        one.step_key: _Step((one.end_time or 0.0) - (one.start_time or 0.0), processor[one.step_key])
        for one in stats
    }


@contextlib.contextmanager
def _watched(spans: dict[str, list[float]]) -> Iterator[None]:
    """Time the parts of a receipt while they run."""
    with contextlib.ExitStack() as patches:
        for part, what in _PARTS.items():
            module, _, name = part.partition(":")
            owner = importlib.import_module(f"ubunye_orchestrate.{module}")
            *path, name = name.split(".")
            for attribute in path:
                owner = getattr(owner, attribute)
            timed = _timed(getattr(owner, name), spans[what])
            patches.enter_context(mock.patch.object(owner, name, timed))
        yield


def _timed(function: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            seconds.append(time.perf_counter() - started)

    return timed


if __name__ == "__main__":
    main()
