"""Text of doubles and floats against Java's own, and where there is no Java, against Python's digits."""

from __future__ import annotations

import math
import subprocess
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.hashing.float_values import Floats, doubles, floats
from tests.hashing.paths import PATHS
from tests.jvm import has_compiler
from ubunye_orchestrate.hashing import canonical

ORACLE = Path(__file__).with_name("JavaText.java")
DRAWS = {"double": doubles, "float": floats}
AT_ONCE = 500_000


def _java_lines(jdk: Path, kind: str, values: Floats) -> pa.Array:
    """The line of a one-column row for each value, by ``Double.toString`` or ``Float.toString``."""
    command = [str(jdk / "bin" / "java"), "-Xshare:auto", "-XX:TieredStopAtLevel=1", str(ORACLE), kind]
    big_endian = values.astype(values.dtype.newbyteorder(">")).tobytes()
    text = subprocess.run(command, input=big_endian, stdout=subprocess.PIPE, check=True).stdout
    # A line with the newline that ends it, since nothing is copied here: both sides have one.
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_string(), len(ends), buffers)


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _differences(expected: pa.Array, got: pa.Array, values: Floats) -> list[tuple[str, str, str]]:
    """Bits, expected line and line of the first few values that differ."""
    assert len(expected) == len(got) == len(values)
    got = pc.binary_join_element_wise(got.cast(pa.large_string()), *map(_large, ("", "\n")))
    places = np.flatnonzero(~pc.equal(expected, got).to_numpy(zero_copy_only=False))[:10]
    return [(float(values[i]).hex(), expected[i].as_py(), got[i].as_py()) for i in places.tolist()]


def _hold_to_java(jdk: Path, kind: str, path: str, count: int, seed: int) -> int:
    if not has_compiler(jdk):
        pytest.skip(f"{jdk} cannot run a source file: it has no compiler")
    seen = 0
    for part in range(max(1, count // AT_ONCE)):
        values = DRAWS[kind](min(count, AT_ONCE), seed + part)
        lines = PATHS[path](pa.record_batch([pa.array(values)], ["v"]))
        assert _differences(_java_lines(jdk, kind, values), lines, values) == []
        seen += len(values)
    return seen


@pytest.mark.spark
@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize(("path", "count"), [("reference", 30_000), ("pyarrow", AT_ONCE)])
def test_text_is_that_of_java(jdk: Path, kind: str, path: str, count: int) -> None:
    assert _hold_to_java(jdk, kind, path, count, seed=1) >= count * 0.9


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", DRAWS)
def test_ten_million_texts_are_those_of_java(jdk: Path, kind: str) -> None:
    assert _hold_to_java(jdk, kind, "pyarrow", 10_500_000, seed=1000) >= 10_000_000


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
    assert PATHS["pyarrow"](batch).equals(canonical.batch_lines(batch))


def test_text_reads_back_as_the_value() -> None:
    for value in doubles(5_000, seed=4).tolist():
        assert float(canonical.double_text(value)) == value
    for value in floats(5_000, seed=4).tolist():
        assert np.float32(canonical.float_text(value)) == np.float32(value)
