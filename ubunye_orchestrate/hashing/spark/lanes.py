"""A line to its two lanes: the SHA-256 of its bytes, and the first and second eight of those as integers.

By public functions that goes by way of text: the digest in hexadecimal, its halves converted to decimal
digits, those read as integers. It is a quarter of the cost of a hash, and spared in classic sessions.
"""

from __future__ import annotations

import logging
from typing import Any

from ubunye_orchestrate.hashing.spark.catalyst import Catalyst, catalyst_of

__all__ = ["LANES", "lanes_by_catalyst", "lanes_by_sql", "lanes_of"]

logger = logging.getLogger(__name__)

LANES = ("a", "b")
"""The columns of the lanes, as signed 64-bit integers."""


def lanes_of(lines: Any, others: tuple[str, ...] = ()) -> Any:
    """Return the lanes of the lines in a frame's column ``line`` (null where that is), and other columns.

    By Catalyst where the session lets us, else by SQL; both give the same numbers.
    """
    catalyst = catalyst_of(lines)
    if catalyst is None:
        return lanes_by_sql(lines, others)
    try:
        return lanes_by_catalyst(lines, others, catalyst)
    except Exception:
        logger.debug("Spark does not take its own expressions from us; hashing by SQL", exc_info=True)
        return lanes_by_sql(lines, others)


def lanes_by_sql(lines: Any, others: tuple[str, ...]) -> Any:
    """Return what ``lanes_of`` does, by public functions."""
    # Of bytes: to cut a string, Spark counts its characters.
    digests = lines.selectExpr("cast(sha2(line, 256) as binary) as digest", *others)
    digits = (f"cast(substring(digest, {start}, 16) as string)" for start in (1, 17))
    lanes = [f"cast(conv({d}, 16, -10) as bigint) as {lane}" for lane, d in zip(LANES, digits, strict=True)]
    return digests.selectExpr(*lanes, *others)


def lanes_by_catalyst(lines: Any, others: tuple[str, ...], catalyst: Catalyst) -> Any:
    """Return what ``lanes_of`` does, by Spark's own expressions."""
    digests = lines.withColumn("digest", catalyst.sha256("cast(line as binary)"))
    halves = "digest", "substring(digest, 9, 8)"
    lanes = (catalyst.first_eight_bytes(half).alias(lane) for lane, half in zip(LANES, halves, strict=True))
    return digests.select(*lanes, *others)
