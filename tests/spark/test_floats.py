"""Every double and float has the text of JDK 19 and newer, whatever the JVM, and by every way there is."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions
import pytest

import ubunye_orchestrate.hashing.spark as spark_room
from tests.jvm import FIRST_JDK_WITH_SHORTEST_TEXT, java_version
from tests.spark.conftest import NewSession
from ubunye_orchestrate.hashing import canonical
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.spark import aggregate
from ubunye_orchestrate.hashing.spark.floats import quick_double_text
from ubunye_orchestrate.hashing.spark.session import json_writer

pytestmark = pytest.mark.spark

# Of the public reports on JDK 17 and older, and the edges of the ranges that are written otherwise.
KNOWN = [
    *(1e23, 2.0e-3, 2.0e23, 4.9e-324, 1.0e-323, 2.2250738585072014e-308, 2.8319178176563187e17, 2.0**-44),
    *(0.001, 0.00099999999999999998, 1e7, 9999999.999999998, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63)),
    *(0.0, -0.0, 1.7976931348623157e308, float("nan"), float("inf"), float("-inf")),
    *(1234567.8, 1e6, 7654321.0, 2.3271246e10, 1e-7, 9.999999e-8, 2.0**24, 2.0**24 + 2, 1.4e-45),
]


def doubles(seed: int, count: int) -> pa.Array:
    """Any bits, the known ones, powers of two and what is next to them, few digits at all sizes."""
    source = np.random.default_rng(seed)
    any_bits = source.integers(0, 2**64, count, np.uint64).view(np.float64)
    powers = np.ldexp(1.0, np.arange(-1074, 1024)).view(np.int64)
    near = np.concatenate([powers - 1, powers, powers + 1]).view(np.float64)
    few_digits = source.integers(-9999, 9999, count) * 10.0 ** source.integers(-40, 40, count)
    values = np.concatenate([any_bits, np.array(KNOWN), near, few_digits])
    return pa.array(source.choice(values, count, replace=False), mask=source.random(count) < 0.05)


def singles(seed: int, count: int) -> pa.Array:
    source = np.random.default_rng(seed)
    any_bits = source.integers(0, 2**32, count, np.uint32).view(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        known = np.array(KNOWN).astype(np.float32)
        few_digits = (source.integers(-9999, 9999, count) * 10.0 ** source.integers(-40, 36, count)).astype(
            np.float32
        )
    values = np.concatenate([any_bits, known, few_digits])
    return pa.array(source.choice(values, count, replace=False), mask=source.random(count) < 0.05)


def table_of_floats(count: int = 4000) -> pa.Table:
    """Doubles and floats as columns, and in all that can hold them."""
    offsets = pa.array(range(count + 1), pa.int32())
    key = singles(5, count).fill_null(0.5)
    struct = pa.StructArray.from_arrays([doubles(6, count), singles(7, count)], ["d", "f"])
    known = pa.array((KNOWN * (count // len(KNOWN) + 1))[:count])
    return pa.table(
        {
            "d": doubles(1, count),
            "f": singles(2, count),
            "known": known,
            "plain": np.random.default_rng(3).random(count),
            "list": pa.ListArray.from_arrays(offsets, doubles(4, count)),
            "map": pa.MapArray.from_arrays(offsets, key, doubles(8, count)),
            "struct": struct,
            "structs": pa.ListArray.from_arrays(offsets, struct),
            "text": [f"\x01 {n}" if n % 3 else None for n in range(count)],
        }
    )


def table_of_many_columns(count: int = 600) -> pa.Table:
    """Too many columns of floats for the code of a row, in runs of one and of several, some all null."""
    columns: dict[str, Any] = {f'd"{n:02}': doubles(20 + n, count) for n in range(9)}
    columns |= {f"f.{n}": singles(40 + n, count) for n in range(5)}
    columns |= {"d as text": [str(n) for n in range(count)], 'd"04, a number': range(count)}
    columns |= {"e`": doubles(60, count), "f.2, a list": pa.array([[0.002]] * count)}
    columns |= {"f.3, no number": pa.nulls(count, pa.float64()), "n": pa.nulls(count, pa.float32())}
    return pa.table(columns)


def table_of_many_plain_names(count: int = 600) -> pa.Table:
    """As many, by names that are left as they are, some of them what the expressions call their variables."""
    columns: dict[str, Any] = {f"d{n:02}": doubles(70 + n, count) for n in range(11)}
    columns |= {name: singles(90 + n, count) for n, name in enumerate(("number", "start", "text"))}
    return pa.table(columns | {"line": range(count), "texts": [str(n) for n in range(count)]})


TABLE = table_of_floats()
FLAT = TABLE.select(["d", "f", "known", "plain", "text"])
MANY = table_of_many_columns()
PLAIN = table_of_many_plain_names()


def stored(session: Any, table: pa.Table, folder: Path) -> Any:
    pq.write_table(table, folder / "floats.parquet")
    return session.read.parquet(str(folder / "floats.parquet"))


@pytest.mark.parametrize("table", [FLAT, TABLE, MANY, PLAIN], ids=["flat", "nested", "many", "plain"])
def test_on_this_java(new_session: NewSession, spark_jdk: Path, tmp_path: Path, table: pa.Table) -> None:
    got = fingerprint(stored(new_session(), table, tmp_path))
    assert got.error is None
    assert got.data_hash == fingerprint(table).data_hash
    is_old = java_version(spark_jdk) < FIRST_JDK_WITH_SHORTEST_TEXT
    assert got.path_taken == ("spark-sql+java-method" if is_old else "spark-sql")


@pytest.mark.parametrize("table", [TABLE, MANY, PLAIN], ids=["nested", "many", "plain"])
@pytest.mark.parametrize("way", ["catalyst", "java-method", "arrow-udf", "python-udf"])
def test_by_every_way(
    new_session: NewSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, table: pa.Table
) -> None:
    frame = stored(new_session(), table, tmp_path)
    writer = dataclasses.replace(
        json_writer(frame.sparkSession),
        floats=False,
        java_method=way in {"catalyst", "java-method"},
        arrow=way == "arrow-udf",
    )
    monkeypatch.setattr(spark_room, "json_writer", lambda _: writer)
    if way != "catalyst":
        monkeypatch.setattr(aggregate, "catalyst_of", lambda _: None)
    if way == "arrow-udf":
        if not hasattr(pyspark.sql.functions, "arrow_udf"):
            pytest.skip("Spark has no functions on Arrow arrays before 4.1")
        if type(frame).__module__.startswith("pyspark.sql.connect."):
            monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # as where there is no other session
    got = fingerprint(frame)
    assert got.error is None
    assert got.path_taken == f"spark-sql+{way}".replace("catalyst", "java-method")
    assert got.data_hash == fingerprint(table).data_hash


def test_text_by_python_is_that_of_the_reference() -> None:
    edges = [x for power in range(-1074, 1024) for x in (2.0**power, np.nextafter(2.0**power, 0))]
    for x in [*edges, *doubles(9, 4000).drop_null().to_pylist(), *KNOWN]:
        if np.isfinite(x):
            assert quick_double_text(float(x)) == canonical.double_text(float(x))


def test_only_what_needs_it_takes_another_way(new_session: NewSession, tmp_path: Path) -> None:
    table = TABLE.select(["text"])
    got = fingerprint(stored(new_session(), table, tmp_path))
    assert got.path_taken == "spark-sql"
    assert got.data_hash == fingerprint(table).data_hash
