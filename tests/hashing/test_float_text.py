"""Text of doubles and floats against Java's own, and where there is no Java, against Python's digits."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.hashing.float_values import Floats, doubles, floats
from tests.hashing.paths import PATHS
from ubunye_orchestrate.hashing import canonical

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRAWS = {"double": doubles, "float": floats}
AT_ONCE = 500_000


def _lines_of_java(spark: SparkSession, batch: pa.RecordBatch, folder: Path) -> pa.Array:
    """The line of each one-column row by Spark, which writes numbers as ``Double.toString`` does."""
    from pyspark.sql import functions as sql

    path = folder / "numbers.parquet"
    pq.write_table(pa.Table.from_batches([batch]), path)
    lines = spark.read.parquet(str(path)).select(sql.to_json(sql.struct("v"))).toArrow()
    return lines.column(0).combine_chunks().cast(pa.large_string())


def _hold_to_java(spark: SparkSession, folder: Path, kind: str, path: str, count: int, seed: int) -> int:
    seen = 0
    for part in range(max(1, count // AT_ONCE)):
        values: Floats = DRAWS[kind](min(count, AT_ONCE), seed + part)
        batch = pa.record_batch([pa.array(values)], ["v"])
        expected, got = _lines_of_java(spark, batch, folder), PATHS[path](batch)
        assert len(expected) == len(got) == len(values)
        places = np.flatnonzero(~pc.equal(expected, got).to_numpy(zero_copy_only=False))[:10]
        assert [(float(values[i]).hex(), expected[i], got[i]) for i in places.tolist()] == []
        seen += len(values)
    return seen


@pytest.mark.spark
@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize(("path", "count"), [("reference", 30_000), ("pyarrow", AT_ONCE)])
def test_text_is_that_of_java(spark: SparkSession, tmp_path: Path, kind: str, path: str, count: int) -> None:
    assert _hold_to_java(spark, tmp_path, kind, path, count, seed=1) >= count * 0.9


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", DRAWS)
def test_ten_million_texts_are_those_of_java(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    assert _hold_to_java(spark, tmp_path, kind, "pyarrow", 10_500_000, seed=1000) >= 10_000_000


def _python_text(value: float) -> str:
    """Java's text of a double by way of Python's ``repr``, whose digits are the shortest too."""
    magnitude = Decimal(repr(abs(value)))
    if len(magnitude.normalize().as_tuple().digits) == 1:
        # Java starts from two digits: of those that read back, the closest.
        closest_pair = Decimal(f"{abs(value):.1e}")
        if float(closest_pair) == abs(value) and closest_pair != magnitude:
            magnitude = closest_pair
    sign = "-" if math.copysign(1, value) < 0 else ""
    if not value or 1e-3 <= abs(value) < 1e7:
        plain = f"{magnitude:f}"
        return sign + (plain if "." in plain else plain + ".0")
    digits = "".join(map(str, magnitude.normalize().as_tuple().digits))
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{magnitude.adjusted()}"


def test_the_reference_has_the_digits_of_python() -> None:
    values = doubles(30_000, seed=2).tolist()
    assert [canonical.double_text(v) for v in values] == [_python_text(v) for v in values]


@pytest.mark.parametrize("kind", DRAWS)
def test_the_columnar_text_is_that_of_the_reference(kind: str) -> None:
    batch = pa.record_batch([pa.array(DRAWS[kind](20_000, seed=3))], ["v"])
    expected = canonical.batch_lines(batch)
    assert PATHS["pyarrow in bulk"](batch).equals(expected)
    # A handful at a time is written by another way.
    handfuls = [PATHS["pyarrow"](batch.slice(at, 50)) for at in range(0, batch.num_rows, 50)]
    assert pa.concat_arrays(handfuls).equals(expected)


def test_text_reads_back_as_the_value() -> None:
    for value in doubles(5_000, seed=4).tolist():
        assert float(canonical.double_text(value)) == value
    for value in floats(5_000, seed=4).tolist():
        assert np.float32(canonical.float_text(value)) == np.float32(value)
