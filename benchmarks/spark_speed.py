"""How fast a Spark frame is fingerprinted, beside ubunye-engine in the same session, from parquet.

Each pair is run one after the other, round after round, and who begins changes; the figures are medians of
the rounds' ratios, by the clock and in the JVM's processor time (which other work on the machine moves less).
Where the engine's hash is another one, the line says so: floats on a JVM before 19 are such a case.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from ubunye.adapters.spark.content_hash import fingerprint_spark as engine_fingerprint

from benchmarks import tables
from ubunye_orchestrate.hashing.spark import fingerprint_spark
from ubunye_orchestrate.hashing.spark.catalyst import catalyst_of
from ubunye_orchestrate.hashing.spark.digests import rows_to_digests
from ubunye_orchestrate.hashing.spark.lines import columns_of, line_of
from ubunye_orchestrate.hashing.spark.session import json_writer
from ubunye_orchestrate.hashing.spark.types import spark_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["main"]

Work = Callable[[], object]


def main() -> None:
    """Print the ratios, and where the time goes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller tables and fewer rounds")
    parser.add_argument("--rounds", type=int, default=None, help="rounds of each pair (default 7, quick 3)")
    parser.add_argument("--only", nargs="*", default=None, help="names of tables")
    options = parser.parse_args()
    rounds = options.rounds or (3 if options.quick else 7)
    with tempfile.TemporaryDirectory() as folder:
        session = _session(folder)
        java = session._jvm.java.lang.System.getProperty("java.version")
        print(
            f"Spark {session.version} on Java {java}, local[2]; medians of {rounds} rounds after 3 of warming"
        )
        for name, (make, rows) in _TABLES.items():
            if options.only is None or name in options.only:
                table = make(max(1000, rows // 5) if options.quick else rows)
                _compare(session, name, _stored(session, table, Path(folder) / name), rounds)
        session.stop()


def _compare(session: SparkSession, name: str, frame: DataFrame, rounds: int) -> None:
    right = engine_fingerprint(frame).data_hash == fingerprint_spark(frame).data_hash
    works: dict[str, Work] = {
        "engine": lambda: engine_fingerprint(frame),
        "ours": lambda: fingerprint_spark(frame),
    }
    if name == "mixed":
        works |= _parts(session, frame)
    wall, processor = _in_turns(session, works, rounds)
    ratio, processor_ratio = _ratio(wall), _ratio(processor)
    print(
        f"  {name:9} {frame.count():>9,} rows: engine {_median(wall['engine']):6.2f} s, ours "
        f"{_median(wall['ours']):6.2f} s, {ratio:5.2f} times as fast, {processor_ratio:5.2f} in processors"
        + ("" if right else " (the engine's hash is another one)"),
        flush=True,
    )
    for part in works.keys() - {"engine", "ours"}:
        seconds = _median(wall[part])
        print(
            f"            {part}: {seconds:.2f} s, {_median(processor[part]):.2f} s of processors", flush=True
        )


def _parts(session: SparkSession, frame: DataFrame) -> dict[str, Work]:
    """What our hash is made of, each with what comes before it."""
    writer = json_writer(session)
    columns = spark_columns(frame.schema)
    line = line_of(columns_of(columns, writer, by_name=True), writer).text

    def to_nothing(make: Callable[[], DataFrame]) -> Work:
        return lambda: make().write.format("noop").mode("overwrite").save()

    return {
        "reading": to_nothing(lambda: frame.select("*")),
        "reading and lines": to_nothing(lambda: frame.selectExpr(line)),
        "reading, lines and digests": to_nothing(
            lambda: rows_to_digests(frame, columns, writer, catalyst_of(frame)).frame
        ),
        "reading, lines and digests by SQL": to_nothing(
            lambda: rows_to_digests(frame, columns, writer, None).frame
        ),
    }


def _in_turns(
    session: SparkSession, works: dict[str, Work], rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds of each round of each work: by the clock, and of the JVM's processors."""
    pid = int(session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getName().split("@")[0])
    for _ in range(3):
        for work in works.values():
            work()
    wall: dict[str, list[float]] = {name: [] for name in works}
    processor: dict[str, list[float]] = {name: [] for name in works}
    for i in range(rounds):
        for name in list(works)[:: 1 if i % 2 == 0 else -1]:
            started, begun = time.perf_counter(), _processor_seconds(pid)
            works[name]()
            wall[name].append(time.perf_counter() - started)
            processor[name].append(max(_processor_seconds(pid) - begun, 0.01))
    return wall, processor


def _processor_seconds(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return time.perf_counter()
    user, system = stat.read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _median(times: list[float]) -> float:
    return statistics.median(times)


def _ratio(times: dict[str, list[float]]) -> float:
    return statistics.median(a / b for a, b in zip(times["engine"], times["ours"], strict=True))


def _session(folder: str) -> SparkSession:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.local.dir": folder,
    }
    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _stored(session: SparkSession, table: pa.Table, path: Path) -> DataFrame:
    path.mkdir()
    pq.write_table(table, path / "part.parquet", row_group_size=max(1, table.num_rows // 8))
    return session.read.parquet(str(path))


# --------------------------------------------------------------------------- tables


def _integers(rows: int) -> pa.Table:
    random = np.random.default_rng(11)
    return pa.table({f"i{n}": random.integers(0, 10**n, rows) for n in range(1, 11)})


def _texts(rows: int) -> pa.Table:
    random = np.random.default_rng(12)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz      ", np.uint8)[random.integers(0, 32, rows * 400)]
    offsets = pa.array(np.arange(0, rows * 400 + 1, 400, dtype=np.int32))
    text = pa.StringArray.from_buffers(rows, offsets.buffers()[1], pa.py_buffer(letters.tobytes()))
    return pa.table({"id": np.arange(rows), "text": text})


def _escapes(rows: int) -> pa.Table:
    random = np.random.default_rng(13)
    words = np.array(['he said "no"', "C:\\temp\\new", "tab\there", "naïve café", "日本語", "line\nbreak"])
    return pa.table({f"s{n}": words[random.integers(0, len(words), rows)] for n in range(6)})


def _times(rows: int) -> pa.Table:
    random = np.random.default_rng(14)
    instants = pa.array(random.integers(0, 2 * 10**15, rows))
    days = pa.array(random.integers(-20_000, 30_000, rows).astype(np.int32))
    return pa.table(
        {
            "at": instants.view(pa.timestamp("us", "UTC")),
            "local": instants.view(pa.timestamp("us")),
            "day": days.view(pa.date32()),
        }
    )


def _decimals(rows: int) -> pa.Table:
    random = np.random.default_rng(15)
    cents = pa.array(random.integers(0, 10**9, rows)).cast(pa.decimal128(19, 0))
    return pa.table({"d": cents.cast(pa.decimal128(21, 2)), "e": cents.cast(pa.decimal128(38, 10))})


def _sparse(rows: int) -> pa.Table:
    random = np.random.default_rng(16)
    return pa.table(
        {f"n{n}": pa.array(random.integers(0, 100, rows), mask=random.random(rows) < 0.9) for n in range(20)}
    )


def _wide(rows: int) -> pa.Table:
    blocks = [
        tables.mixed(rows).rename_columns([f"{c}_{n}" for c in tables.mixed(1).column_names])
        for n in range(20)
    ]
    return pa.table({name: block[name] for block in blocks for name in block.column_names})


def _maps(rows: int) -> pa.Table:
    return tables.nested(rows).select(["id", "measures"])


def _lists(rows: int) -> pa.Table:
    return tables.nested(rows).select(["id", "sizes", "lines"])


def _doubles(rows: int) -> pa.Table:
    random = np.random.default_rng(17)
    return pa.table({f"d{n}": np.exp(random.random(rows) * 60 - 30) for n in range(10)})


def _measures(rows: int) -> pa.Table:
    """Twenty doubles as sensors have them: none that a JVM before 19 would write wrong."""
    random = np.random.default_rng(18)
    return pa.table({f"m{n}": np.round(random.standard_normal(rows) * 50 + 100, 3) for n in range(20)})


_TABLES: dict[str, tuple[Callable[[int], pa.Table], int]] = {
    "mixed": (tables.mixed, 1_000_000),
    "integers": (_integers, 1_000_000),
    "floats": (tables.floats, 500_000),
    "doubles": (_doubles, 300_000),
    "measures": (_measures, 200_000),
    "texts": (_texts, 200_000),
    "escapes": (_escapes, 500_000),
    "times": (_times, 1_000_000),
    "decimals": (_decimals, 1_000_000),
    "sparse": (_sparse, 500_000),
    "nested": (tables.nested, 200_000),
    "maps": (_maps, 200_000),
    "lists": (_lists, 200_000),
    "wide": (_wide, 20_000),
    "small": (tables.mixed, 1_000),
}


if __name__ == "__main__":
    main()
