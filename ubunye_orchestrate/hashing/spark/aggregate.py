"""All rows to a few numbers, where the rows are: one aggregation, of which one row comes back.

A sum of 64-bit lanes does not fit Spark's integers, and a session in ANSI mode fails where one overflows. So
each lane is summed in three pieces of 21 and 22 bits: exact up to 2**41 rows, in either mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.spark.catalyst import catalyst_of
from ubunye_orchestrate.hashing.spark.checks import ValueChecks
from ubunye_orchestrate.hashing.spark.failures import reason
from ubunye_orchestrate.hashing.spark.floats import finished, way_of_floats
from ubunye_orchestrate.hashing.spark.lanes import LANES, lanes_of
from ubunye_orchestrate.hashing.spark.lines import Column, line_of
from ubunye_orchestrate.hashing.spark.session import SHORTEST_DOUBLE, JsonWriter
from ubunye_orchestrate.hashing.spark.sql import any_of, literal
from ubunye_orchestrate.hashing.spark.types import SparkType
from ubunye_orchestrate.hashing.spark.values import FLOATS

__all__ = ["Lines", "Totals", "bad_values", "lines_of", "totals"]

_FLAGS = ("invalid_text", "other_java")
_REPLACEMENT = "\ufffd"
_LOW, _MIDDLE = 22, 21  # bits of a lane's pieces; 21 are left for the highest


@dataclass(frozen=True)
class Totals:
    """The numbers that come back."""

    rows: int
    sums: tuple[int, int]

    equal_keys: int
    """Rows with a map of two keys of the same text; they are not in the sums."""

    invalid_text: int
    """Rows with text that is not valid Unicode."""

    other_java: bool
    """Whether an executor's JVM writes floats otherwise than the driver's."""

    ways_of_floats: tuple[str, ...]
    """How floats were written that the JVM writes wrong: ``java-method``, ``arrow-udf``, ``python-udf``."""


@dataclass(frozen=True)
class Lines:
    """A frame of the rows' lines, and of what is to be found in the same pass."""

    frame: Any
    """``line``, null where a map has equal keys and so cannot be written; ``invalid_text`` and
    ``other_java``, true as ``Totals`` counts them."""

    ways_of_floats: tuple[str, ...]
    """As in ``Totals``."""


def totals(frame: Any, columns: list[Column], writer: JsonWriter) -> Totals:
    """Hash and sum the rows of a frame; HashError with Spark's reason where it cannot compute them."""
    counts = "count(*)", "count(a)", "count_if(invalid_text)", "count_if(other_java)"
    try:
        lines = lines_of(frame, columns, writer)
        lanes = lanes_of(lines.frame, _FLAGS)
        rows, hashed, invalid, other, *pieces = lanes.selectExpr(*counts, *_sums_of_pieces()).collect()[0]
    except Exception as e:
        raise HashError(f"Spark could not compute the rows: {reason(e)}") from e
    return Totals(rows, _sums(pieces), rows - hashed, invalid, bool(other), lines.ways_of_floats)


def lines_of(frame: Any, columns: list[Column], writer: JsonWriter) -> Lines:
    """Return the lines of a frame's rows."""
    checks = ValueChecks(writer.spark_version)
    has_floats = any(column.type.holds(*FLOATS) for column in columns)
    placed = _placed(frame, columns)
    if not writer.floats:
        placed, columns = _with_texts_of_floats(placed, columns)
    line = line_of(columns, writer)
    equal_keys = any_of(_conditions(columns, checks.equal_keys).values())
    invalid_text = any_of(_conditions(columns, checks.invalid_text).values())
    written = placed.selectExpr(
        *(column.place for column in columns),
        f"if({equal_keys}, null, {line.text}) as line",
        f"{_other_java() if has_floats and writer.floats else 'false'} as other_java",
    ).selectExpr(
        "line",
        # The JSON writer has put a replacement character there: the values are looked at only where it has.
        f"coalesce(contains(line, {literal(_REPLACEMENT)}), true) and {invalid_text} as invalid_text",
        "other_java",
        f"{line.has_marks or 'false'} as has_marks",
    )
    ways = {"java-method"} if any(column.shortest_text for column in columns) else set()
    if line.has_marks is None:
        return Lines(written.select("line", *_FLAGS), tuple(ways))
    return Lines(finished(written, _FLAGS, writer), tuple(sorted({*ways, way_of_floats(written, writer)})))


def _with_texts_of_floats(placed: Any, columns: list[Column]) -> tuple[Any, list[Column]]:
    """Add the text of each column of floats, where Catalyst can say it; it is computed only where used."""
    catalyst = catalyst_of(placed)
    floats = {column.place for column in columns if column.type.kind in FLOATS}
    if catalyst is None or not floats:
        return placed, columns
    texts = [catalyst.shortest_text(place).alias(f"text_of_{place}") for place in sorted(floats)]
    return placed.select("*", *texts), [
        replace(column, shortest_text=f"text_of_{column.place}") if column.place in floats else column
        for column in columns
    ]


def bad_values(frame: Any, columns: list[Column], writer: JsonWriter) -> HashError:
    """Find the columns whose values rows-v1 does not define, once it is known that there are some."""
    checks = ValueChecks(writer.spark_version)
    texts = {
        "text that is not valid Unicode; store it as binary": _conditions(columns, checks.invalid_text),
        "a map with two keys of the same text; its entries cannot be told apart": _conditions(
            columns, checks.equal_keys
        ),
    }
    found = [(what, column, condition) for what, by in texts.items() for column, condition in by.items()]
    counts = [f"count_if({condition})" for _, _, condition in found]
    for (what, column, _), rows in zip(
        found, _placed(frame, columns).selectExpr(*counts).collect()[0], strict=True
    ):
        if rows:
            return HashError(f"{rows} rows hold {what}", column=column.name, type_name=column.type.name)
    return HashError(
        "rows held text that is not valid Unicode, or maps with equal keys; a second look found none"
    )


def _placed(frame: Any, columns: list[Column]) -> Any:
    return frame.toDF(*(f"c{n}" for n in range(len(columns))))


_Check = Callable[[str, SparkType], "str | None"]


def _conditions(columns: list[Column], check: _Check) -> dict[Column, str]:
    """Return the condition of each column that has one."""
    conditions = {column: check(column.accessible, column.accessible_type) for column in columns}
    return {column: condition for column, condition in conditions.items() if condition is not None}


def _other_java() -> str:
    """Return whether this is an executor whose JVM writes floats otherwise (asked in its first row)."""
    # The sum keeps the driver from computing the text; a row's number counts from 0 in the low 33 bits.
    text = f"cast({SHORTEST_DOUBLE}D + (spark_partition_id() & 0) as string)"
    first_row = "monotonically_increasing_id() & 8589934591 = 0"
    return f"{first_row} and {text} <> {literal(SHORTEST_DOUBLE)}"


def _sums_of_pieces() -> list[str]:
    return [
        f"sum({piece})"
        for lane in LANES
        for piece in (
            f"{lane} & {2**_LOW - 1}",
            f"shiftrightunsigned({lane}, {_LOW}) & {2**_MIDDLE - 1}",
            f"shiftrightunsigned({lane}, {_LOW + _MIDDLE})",
        )
    ]


def _sums(pieces: list[int | None]) -> tuple[int, int]:
    """Put the sums of pieces together, modulo 2**64; they are null where there are no rows."""
    low_a, middle_a, high_a, low_b, middle_b, high_b = (piece or 0 for piece in pieces)
    return _sum(low_a, middle_a, high_a), _sum(low_b, middle_b, high_b)


def _sum(low: int, middle: int, high: int) -> int:
    return (low + (middle << _LOW) + (high << (_LOW + _MIDDLE))) % 2**64
