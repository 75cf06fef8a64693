"""All rows to a few numbers, where the rows are: one aggregation, of which one row comes back."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.spark.catalyst import Catalyst, catalyst_of
from ubunye_orchestrate.hashing.spark.checks import ValueChecks
from ubunye_orchestrate.hashing.spark.digests import (
    INVALID_TEXT,
    OTHER_JAVA,
    Columns,
    Digests,
    conditions_of,
    placed,
    rows_to_digests,
)
from ubunye_orchestrate.hashing.spark.failures import reason
from ubunye_orchestrate.hashing.spark.lanes import sums_of, totals_of
from ubunye_orchestrate.hashing.spark.lines import columns_of
from ubunye_orchestrate.hashing.spark.session import JsonWriter

__all__ = ["Totals", "bad_values", "totals"]

logger = logging.getLogger(__name__)


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


def totals(frame: Any, named: Columns, writer: JsonWriter) -> Totals:
    """Hash and sum the rows of a frame; HashError with Spark's reason where it cannot compute them."""
    try:
        digests, counts, query = _query(frame, named, writer)
        found, sums = totals_of(query.collect()[0], len(counts))
    except Exception as e:
        raise HashError(f"Spark could not compute the rows: {reason(e)}") from e
    of = dict(zip(counts, found, strict=True))
    rows = of["count(*)"]
    return Totals(
        rows,
        sums,
        equal_keys=rows - of.get(_HASHED, rows),
        invalid_text=of.get(_count_if(INVALID_TEXT), 0),
        other_java=of.get(_count_if(OTHER_JAVA), 0) > 0,
        ways_of_floats=digests.ways_of_floats,
    )


def _query(frame: Any, named: Columns, writer: JsonWriter) -> tuple[Digests, list[str], Any]:
    """Return the digests, the aggregates of them, and the query of these and the lanes' sums, not yet run.

    By Catalyst where the session lets us, else by SQL; both give the same numbers.
    """
    catalyst = catalyst_of(frame)
    if catalyst is not None:
        try:
            return _query_by(catalyst, frame, named, writer)
        except HashError:
            raise
        except Exception:
            logger.debug("Spark does not take its own expressions from us; hashing by SQL", exc_info=True)
    return _query_by(None, frame, named, writer)


def _query_by(
    catalyst: Catalyst | None, frame: Any, named: Columns, writer: JsonWriter
) -> tuple[Digests, list[str], Any]:
    digests = rows_to_digests(frame, named, writer, catalyst)
    counts = ["count(*)", *([_HASHED] if digests.may_be_null else []), *map(_count_if, digests.flags)]
    return digests, counts, sums_of(digests.frame, counts, catalyst)


_HASHED = "count(digest)"


def _count_if(flag: str) -> str:
    return f"count_if({flag})"


def bad_values(frame: Any, named: Columns, writer: JsonWriter) -> HashError:
    """Find the columns whose values rows-v1 does not define, once it is known that there are some."""
    columns, checks = columns_of(named, writer), ValueChecks(writer.spark_version)
    texts = {
        "text that is not valid Unicode; store it as binary": conditions_of(columns, checks.invalid_text),
        "a map with two keys of the same text; its entries cannot be told apart": conditions_of(
            columns, checks.equal_keys
        ),
    }
    found = [(what, column, condition) for what, by in texts.items() for column, condition in by.items()]
    counts = [f"count_if({condition})" for _, _, condition in found]
    for (what, column, _), rows in zip(
        found, placed(frame, columns).selectExpr(*counts).collect()[0], strict=True
    ):
        if rows:
            return HashError(f"{rows} rows hold {what}", column=column.name, type_name=column.type.name)
    return HashError(
        "rows held text that is not valid Unicode, or maps with equal keys; a second look found none"
    )
