"""What a receipt costs a step: the same asset with and without, in process, a thousand rows, in pairs.

A step's time is that between its start and its end in the event log. Both sides run the same two assets, in
turn, each in a project of its own on SQLite; what is printed is the median of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from dagster import AssetKey, DagsterInstance, FilesystemIOManager, asset, materialize

from benchmarks.tables import mixed
from ubunye_orchestrate.dagster_io.receipts import Receipts
from ubunye_orchestrate.dagster_io.wrapping import with_receipts

ROWS = 1_000
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_FRAME = mixed(ROWS).to_pandas()


@asset
def orders() -> pd.DataFrame:
    return _FRAME.copy()


@asset
def totals(orders: pd.DataFrame) -> pd.DataFrame:
    return orders.assign(price=orders["price"] * 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pairs, to see that it runs")
    pairs = 5 if parser.parse_known_args()[0].quick else 40
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        plain = FilesystemIOManager(base_dir=str(root / "files"))
        kept = with_receipts(plain, Receipts(root=str(root / "mirror")))
        times = _in_pairs(plain, kept, root, pairs)
    print(f"\nA step of {ROWS:,} rows with a receipt, against the same step without ({pairs} pairs):")
    for step, found in times.items():
        without, with_ = zip(*found, strict=True)
        ratio = statistics.median(b / a for a, b in found)
        print(
            f"  {step}: {statistics.median(without) * 1000:.1f} ms without, "
            f"{statistics.median(with_) * 1000:.1f} ms with; {ratio:.2f} times the time (asked: at most 1.1)"
        )


def _in_pairs(plain: Any, kept: Any, root: Path, pairs: int) -> dict[str, list[tuple[float, float]]]:
    """Run both, who begins changing from pair to pair; the first pair warms up and does not count."""
    times: dict[str, list[tuple[float, float]]] = {"orders": [], "totals": []}
    homes = [root / "plain", root / "kept"]
    for home in homes:
        home.mkdir()
    with DagsterInstance.local_temp(str(homes[0])) as one, DagsterInstance.local_temp(str(homes[1])) as two:
        sides = ((one, plain), (two, kept))
        for number in range(pairs + 1):
            found: dict[int, dict[str, float]] = {}
            for which in (0, 1) if number % 2 else (1, 0):
                found[which] = _step_seconds(*sides[which])
            if number:
                for step, pair in times.items():
                    pair.append((found[0][step], found[1][step]))
    return times


def _step_seconds(instance: DagsterInstance, manager: Any) -> dict[str, float]:
    result = materialize(
        [orders, totals], instance=instance, resources={"io_manager": manager}, run_config=_QUIET
    )
    stats = instance.get_run_step_stats(result.run_id)
    assert instance.get_latest_materialization_event(AssetKey("totals")) is not None
    return {one.step_key: (one.end_time or 0.0) - (one.start_time or 0.0) for one in stats}


if __name__ == "__main__":
    main()
