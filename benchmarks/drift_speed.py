"""How fast drift is judged: a sensor's tick beside a loop of fetches, and comparisons alone.

The instance is one as users have it, SQLite in files, with a history of every asset. Its newest two runs are
events that were reported one by one; the older ones are copies of such events, which is what the database
holds of them. The tick and the loop read the same databases, one after the other, round after round; so does
the tick as it is where the storage is no database, and Dagster unpacks each event.
"""

from __future__ import annotations

import argparse
import copy
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast
from unittest import mock

import dagster
import pandas as pd
from dagster import (
    AssetCheckEvaluation,
    AssetKey,
    AssetMaterialization,
    AssetRecordsFilter,
    AssetSpec,
    DagsterInstance,
    Definitions,
    InMemoryIOManager,
    MetadataValue,
    SensorResult,
    asset,
    build_sensor_context,
    materialize,
)

from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.drift import judge
from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.drift.cursor import DriftCursor
from ubunye_orchestrate.dagster_io.drift.sensors import build_drift_sensor
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.upstream import asset_events
from ubunye_orchestrate.records.model import RunRecord

__all__ = ["main"]

_RECEIPT = "ubunye/receipt"
_COLUMNS = 20
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def main() -> None:
    """Print the timings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift_speed", description=__doc__)
    parser.add_argument("--assets", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=100, help="materializations of each asset")
    parser.add_argument("--comparisons", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="100 assets of 10 runs, 1,000 comparisons")
    options = parser.parse_args()
    if options.quick:
        options.assets, options.runs, options.comparisons = 100, 10, 1_000
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "yes"
    print(
        f"Python {platform.python_version()}, Dagster {dagster.__version__}, "
        f"SQLite {sqlite3.sqlite_version}; medians of {options.rounds} rounds"
    )
    with tempfile.TemporaryDirectory() as folder, DagsterInstance.local_temp(folder) as instance:
        template = _receipt_of_a_run(instance, folder)
        keys = [AssetKey(["bench", f"table_{number:04}"]) for number in range(options.assets)]
        began = time.perf_counter()
        cursor = _fill(instance, Path(folder), keys, template, options.runs)
        print(
            f"{options.assets} assets, {options.runs} materializations of each, "
            f"made in {time.perf_counter() - began:.0f} s"
        )
        _ticks(instance, keys, cursor, options.rounds)
    _comparisons(template, options.comparisons, options.rounds)


def _ticks(instance: DagsterInstance, keys: Sequence[AssetKey], cursor: str, rounds: int) -> None:
    sensor = build_drift_sensor(list(keys))
    project = Definitions(assets=[AssetSpec(key) for key in keys]).get_repository_def()
    found: dict[str, Any] = {"cursor": cursor}

    def look() -> SensorResult:
        context = build_sensor_context(instance=instance, cursor=found["cursor"], repository_def=project)
        return cast("SensorResult", sensor.evaluate_tick(context))

    def tick() -> None:
        """Judge all that is new, in as many ticks as that takes."""
        found["cursor"], found["judged"], found["failed"], found["ticks"] = cursor, 0, 0, 0
        while True:
            result = look()
            found["cursor"] = result.cursor
            if not result.asset_events:
                return
            found["ticks"] += 1
            found["judged"] += len(result.asset_events)
            found["failed"] += sum(
                not event.passed for event in result.asset_events if isinstance(event, AssetCheckEvaluation)
            )

    def loop() -> None:
        for key in keys:
            instance.fetch_materializations(AssetRecordsFilter(asset_key=key), limit=2)

    def idle() -> None:
        look()

    def unpacking() -> None:
        with mock.patch.object(asset_events, "_database_of", return_value=None):
            tick()

    # What is read first is read from the disk.
    loop()
    timed = [(_seconds(loop), _seconds(tick), _seconds(unpacking)) for _ in range(rounds)]
    loops, ticks, unpacked = (statistics.median(seconds) for seconds in zip(*timed, strict=True))
    print(
        f"judging {found['judged']} new materializations ({found['ticks']} ticks, {found['failed']} did not "
        f"pass): {ticks:.2f} s"
    )
    print(f"fetching the two newest of each asset in a loop, judging nothing: {loops:.2f} s")
    ratios = [a / b for a, b, _ in timed]
    print(f"ratio: {statistics.median(ratios):.1f} (rounds: {', '.join(f'{one:.1f}' for one in ratios)})")
    print(
        f"the same look with each event unpacked by Dagster: {unpacked:.2f} s, "
        f"ratio {statistics.median(a / c for a, _, c in timed):.1f}"
    )
    print(
        f"a tick with nothing new: {1000 * statistics.median(_seconds(idle) for _ in range(rounds)):.1f} ms"
    )


def _comparisons(template: dict[str, Any], count: int, rounds: int) -> None:
    earlier = RunRecord.model_validate(template)
    later = RunRecord.model_validate(_moved(template, "1"))

    def compare() -> None:
        for _ in range(count):
            judge(compare_records(earlier, later))

    print(
        f"{count} comparisons with their verdicts: "
        f"{statistics.median(_seconds(compare) for _ in range(rounds)):.2f} s"
    )


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _receipt_of_a_run(instance: DagsterInstance, folder: str) -> dict[str, Any]:
    """Return the receipt of a real run of an asset that reads another one."""
    frame = pd.DataFrame({f"column_{number}": range(10) for number in range(_COLUMNS)})

    @asset
    def source() -> pd.DataFrame:
        return frame

    @asset
    def table(source: pd.DataFrame) -> pd.DataFrame:
        return source * 2

    inner = InMemoryIOManager()  # type: ignore[no-untyped-call]  # Dagster's own lacks the annotation
    manager = with_receipts(inner, Receipts(root=os.path.join(folder, "mirror")))
    materialize([source, table], instance=instance, resources={"io_manager": manager}, run_config=_QUIET)
    (event,) = instance.fetch_materializations(AssetKey("table"), limit=1).records
    materialization = event.asset_materialization
    assert materialization is not None
    return copy.deepcopy(cast("dict[str, Any]", materialization.metadata[_RECEIPT].value))


def _fill(
    instance: DagsterInstance, folder: Path, keys: Sequence[AssetKey], template: dict[str, Any], runs: int
) -> str:
    """Make the history; return the sensor's cursor before the newest run of each asset."""
    first = _report(instance, keys, template, None)
    with sqlite3.connect(folder / "history" / "runs" / "index.db") as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(event_logs)") if row[1] != "id"]
        names = ", ".join(columns)
        for _ in range(runs - 3):
            database.execute(
                f"INSERT INTO event_logs ({names}) SELECT {names} FROM event_logs WHERE id > ? AND id <= ?",
                (first[0] - 1, first[-1]),
            )
    previous = _report(instance, keys, template, first)
    cursor = DriftCursor(storage_id=previous[-1], observed=previous[-1]).text()
    # One asset in ten has other rows.
    _report(instance, keys, template, previous, changed=10)
    return cursor


def _report(
    instance: DagsterInstance,
    keys: Sequence[AssetKey],
    template: dict[str, Any],
    baselines: Sequence[int] | None,
    changed: int = 0,
) -> list[int]:
    """Report a materialization of each asset; return their storage ids. Each reads the asset before it."""
    head = upstream.head_of_event_log(instance)
    for number, key in enumerate(keys):
        receipt = _moved(template, str(number)) if changed and number % changed == 0 else template
        receipt = copy.deepcopy(receipt)
        receipt["outputs"][0]["name"] = "/".join(key.path)
        receipt["dagster"]["asset_key"] = list(key.path)
        if baselines is not None:
            receipt["dagster"]["baseline"] = {"run_id": "run", "storage_id": baselines[number]}
            receipt["inputs"][0]["producer"] = [{"storage_id": baselines[number - 1], "run_id": "run"}]
        instance.report_runless_asset_event(
            AssetMaterialization(key, metadata={_RECEIPT: MetadataValue.json(receipt)})
        )
    events = upstream.materializations_after(instance, head, len(keys))
    return [event.storage_id for event in events]


def _moved(template: dict[str, Any], mark: str) -> dict[str, Any]:
    """Return the receipt of other rows."""
    moved = copy.deepcopy(template)
    output = moved["outputs"][0]
    output["data_hash"] = f"sha256:{mark:0>64}"
    output["lane_sums"] = [mark, mark]
    output["row_count"] += 1
    return moved


if __name__ == "__main__":
    main()
