"""All rows to a few numbers, where the rows are: one aggregation, of which one row comes back.

A sum of 64-bit lanes does not fit Spark's integers, and a session in ANSI mode fails where one overflows. So
each lane is summed in three pieces of 21 and 22 bits: exact up to 2**41 rows, in either mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.spark.checks import ValueChecks
from ubunye_orchestrate.hashing.spark.failures import reason
from ubunye_orchestrate.hashing.spark.floats import finished
from ubunye_orchestrate.hashing.spark.lanes import LANES, lanes_of
from ubunye_orchestrate.hashing.spark.lines import Column, line_of
from ubunye_orchestrate.hashing.spark.session import SHORTEST_DOUBLE, JsonWriter
from ubunye_orchestrate.hashing.spark.sql import any_of, literal
from ubunye_orchestrate.hashing.spark.types import SparkType
from ubunye_orchestrate.hashing.spark.values import FLOATS

__all__ = ["Totals", "bad_values", "totals"]

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


def totals(frame: Any, columns: list[Column], writer: JsonWriter) -> Totals:
    """Hash and sum the rows of a frame; HashError with Spark's reason where it cannot compute them."""
    checks = ValueChecks(writer.spark_version)
    has_floats = any(column.type.holds(*FLOATS) for column in columns)
    line = line_of(columns, writer)
    equal_keys = any_of(_conditions(columns, checks.equal_keys).values())
    invalid_text = any_of(_conditions(columns, checks.invalid_text).values())
    other_java = _other_java() if has_floats and writer.floats else "false"
    try:
        lines = _placed(frame).selectExpr(
            # A map with equal keys cannot be written: such a row has no line.
            f"if({equal_keys}, null, {line.text}) as line",
            f"{line.has_marks} as has_marks",
            f"{invalid_text} as invalid_text",
            f"{other_java} as other_java",
        )
        if line.has_marks != "false":
            lines = finished(lines, writer)
        counts = "count(*)", "count(a)", "count_if(invalid_text)", "count_if(other_java)"
        rows, hashed, invalid, other, *pieces = (
            lanes_of(lines).selectExpr(*counts, *_sums_of_pieces()).collect()[0]
        )
    except Exception as e:
        raise HashError(f"Spark could not compute the rows: {reason(e)}") from e
    return Totals(rows, _sums(pieces), rows - hashed, invalid, bool(other))


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
    for (what, column, _), rows in zip(found, _placed(frame).selectExpr(*counts).collect()[0], strict=True):
        if rows:
            return HashError(f"{rows} rows hold {what}", column=column.name, type_name=column.type.name)
    return HashError(
        "rows held text that is not valid Unicode, or maps with equal keys; a second look found none"
    )


def _placed(frame: Any) -> Any:
    return frame.toDF(*(f"c{n}" for n in range(len(frame.columns))))


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
