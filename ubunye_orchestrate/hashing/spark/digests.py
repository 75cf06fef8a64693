"""All rows to their digests, and to what is to be found in the same pass: in as few queries as it takes.

Each frame that is made of another costs Spark a look at the whole query, which is most of what the hash of a
small table costs. So names are placed, lines written and texts looked at in one step where that serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ubunye_orchestrate.hashing.spark.catalyst import Catalyst
from ubunye_orchestrate.hashing.spark.checks import ValueChecks
from ubunye_orchestrate.hashing.spark.floats import finished, way_of_floats
from ubunye_orchestrate.hashing.spark.lanes import digests_of
from ubunye_orchestrate.hashing.spark.lines import Column, columns_of, line_of, runs_of_floats
from ubunye_orchestrate.hashing.spark.session import SHORTEST_DOUBLE, JsonWriter
from ubunye_orchestrate.hashing.spark.sql import any_of, literal
from ubunye_orchestrate.hashing.spark.types import SparkType, can_be_named
from ubunye_orchestrate.hashing.spark.values import FLOATS

__all__ = [
    "INVALID_TEXT",
    "OTHER_JAVA",
    "Columns",
    "Digests",
    "conditions_of",
    "placed",
    "rows_to_digests",
]

INVALID_TEXT = "invalid_text"
"""The column that says whether a row holds text that is not valid Unicode."""

OTHER_JAVA = "other_java"
"""The column that says whether an executor's JVM writes floats otherwise than the driver's."""

_REPLACEMENT = "\ufffd"

Columns = list[tuple[str, SparkType]]
"""The names and types of a frame's columns, in its order."""


@dataclass(frozen=True)
class Digests:
    """The rows' digests."""

    frame: Any
    """``digest``, null where a map has equal keys and so cannot be written, and the flags."""

    flags: tuple[str, ...]
    """Which of ``INVALID_TEXT`` and ``OTHER_JAVA`` there are; without one, no row can have it."""

    may_be_null: bool
    """Whether there are maps."""

    ways_of_floats: tuple[str, ...]
    """How floats are written that the JVM writes wrong: ``java-method``, ``arrow-udf``, ``python-udf``."""


def rows_to_digests(frame: Any, named: Columns, writer: JsonWriter, catalyst: Catalyst | None) -> Digests:
    """Return the digests of a frame's rows, whose columns have these names and types."""
    checks = ValueChecks(writer.spark_version)
    columns = columns_of(named, writer)
    has_floats = any(t.holds(*FLOATS) for _, t in named)
    look_at_lines = not all(checks.is_quick(c.type) for c in conditions_of(columns, checks.invalid_text))
    by_pieces = has_floats and not writer.floats
    nested_floats = any(t.holds(*FLOATS) and t.kind not in FLOATS for _, t in named)
    has_marks = by_pieces and (catalyst is None or nested_floats)
    if look_at_lines or has_marks or not can_be_named([name for name, _ in named]):
        rows = placed(frame, columns)
    else:
        rows, columns = frame, columns_of(named, writer, by_name=True)
    texts = list(_texts_of_floats(columns, catalyst)) if by_pieces and catalyst is not None else []
    rows = rows.select("*", *texts) if texts else rows
    line = line_of(columns, writer, with_texts=bool(texts))
    equal_keys = conditions_of(columns, checks.equal_keys).values()
    text = f"if({any_of(equal_keys)}, null, {line.text})" if equal_keys else line.text
    ways = {"java-method"} if texts else set()
    flags = {}
    if invalid_text := conditions_of(columns, checks.invalid_text).values():
        flags[INVALID_TEXT] = any_of(invalid_text)
    if has_floats and writer.floats and not writer.one_jvm:
        flags[OTHER_JAVA] = _other_java()
    if look_at_lines or line.has_marks is not None:
        places = (column.place for column in columns)
        marks = [f"{line.has_marks} as has_marks"] if line.has_marks is not None else []
        rows = rows.selectExpr(*places, f"{text} as line", *marks)
        text = "line"
        if INVALID_TEXT in flags:
            # The JSON writer has put a replacement character there: values are looked at only where it has.
            has_replacement = f"coalesce(contains(line, {literal(_REPLACEMENT)}), true)"
            flags[INVALID_TEXT] = f"{has_replacement} and {flags[INVALID_TEXT]}"
    if line.has_marks is not None:
        found = [f"{flags[INVALID_TEXT]} as {INVALID_TEXT}"] if INVALID_TEXT in flags else []
        rows = rows.selectExpr("line", *found, "has_marks")
        ways.add(way_of_floats(rows, writer))
        rows = finished(rows, (INVALID_TEXT,) if found else (), writer)
        flags |= {INVALID_TEXT: INVALID_TEXT} if found else {}
    digests = digests_of(rows, text, flags, catalyst)
    return Digests(digests, tuple(flags), bool(equal_keys), tuple(sorted(ways)))


def placed(frame: Any, columns: list[Column]) -> Any:
    """Return a frame whose columns are named by their places (``Column.place``)."""
    return frame.toDF(*(f"c{n}" for n in range(len(columns))))


def _texts_of_floats(columns: list[Column], catalyst: Catalyst) -> Iterator[Any]:
    """Yield the columns of the texts of the runs of floats. They are computed only where they are used."""
    for name, run in runs_of_floats(columns).items():
        numbers = ", ".join(column.place for column in run)
        texts = (
            catalyst.shortest_texts(f"array({numbers})") if len(run) > 1 else catalyst.shortest_text(numbers)
        )
        yield texts.alias(name)


_Check = Callable[[str, SparkType], "str | None"]


def conditions_of(columns: list[Column], check: _Check) -> dict[Column, str]:
    """Return the condition of each column that has one."""
    conditions = {column: check(column.accessible, column.accessible_type) for column in columns}
    return {column: condition for column, condition in conditions.items() if condition is not None}


def _other_java() -> str:
    """Return whether this is an executor whose JVM writes floats otherwise (asked in its first row)."""
    # The sum keeps the driver from computing the text; a row's number counts from 0 in the low 33 bits.
    text = f"cast({SHORTEST_DOUBLE}D + (spark_partition_id() & 0) as string)"
    first_row = "monotonically_increasing_id() & 8589934591 = 0"
    return f"{first_row} and {text} <> {literal(SHORTEST_DOUBLE)}"
