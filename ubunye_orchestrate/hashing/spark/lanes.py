"""A line to its digest, and all digests to the sums of their lanes: by Spark's own expressions, or by SQL.

The lanes are the first and second eight bytes of a digest, as integers. By public functions that goes by way
of text: the digest in hexadecimal, its halves converted to decimal digits, those read as integers; and since
a sum of them does not fit Spark's integers, and fails in ANSI mode where it overflows, each lane is summed in
three pieces of 21 and 22 bits: exact up to 2**41 rows, in either mode. Spark's own expressions, which classic
sessions let us use, do without both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ubunye_orchestrate.hashing.spark.catalyst import Catalyst

__all__ = ["digests_of", "sums_of", "totals_of"]

_LANES = ("a", "b")
_LOW, _MIDDLE = 22, 21  # bits of a lane's pieces; 21 are left for the highest


def digests_of(frame: Any, line: str, others: Mapping[str, str], catalyst: Catalyst | None) -> Any:
    """Return a frame's column ``digest``, the SHA-256 of an expression (null where it is), and others."""
    if catalyst is None:
        # As bytes: to cut a string, Spark counts its characters.
        digest = f"cast(sha2({line}, 256) as binary) as digest"
        return frame.selectExpr(digest, *(f"{x} as {name}" for name, x in others.items()))
    digests = catalyst.sha256(f"cast({line} as binary)").alias("digest")
    return frame.select(digests, *(catalyst.sql(x).alias(name) for name, x in others.items()))


def sums_of(digests: Any, counts: Sequence[str], catalyst: Catalyst | None) -> Any:
    """Return one row of aggregates and, after them, the sums of the lanes of the column ``digest``.

    To be read by ``totals_of``.
    """
    if catalyst is None:
        counted = [name for name in digests.columns if name != "digest"]
        digits = (f"cast(substring(digest, {start}, 16) as string)" for start in (1, 17))
        integers = (f"cast(conv({d}, 16, -10) as bigint) as {n}" for n, d in zip(_LANES, digits, strict=True))
        lanes = digests.selectExpr("digest", *integers, *counted)
        return lanes.selectExpr(*counts, *(f"sum({piece})" for piece in _pieces()))
    halves = "digest", "substring(digest, 9, 8)"
    return digests.select(*map(catalyst.sql, counts), *map(catalyst.sum_of_first_eight_bytes, halves))


def totals_of(row: Sequence[int | None], counts: int) -> tuple[list[int], tuple[int, int]]:
    """Return what a row of ``sums_of`` says: so many aggregates, and the lanes' sums modulo 2**64.

    What is null, as a sum of no rows is, counts as 0.
    """
    numbers = [number or 0 for number in row]
    sums = numbers[counts:]
    if len(sums) == len(_LANES):
        a, b = sums
    else:
        a, b = _put_together(*sums[:3]), _put_together(*sums[3:])
    return numbers[:counts], (a % 2**64, b % 2**64)


def _pieces() -> list[str]:
    return [
        piece
        for lane in _LANES
        for piece in (
            f"{lane} & {2**_LOW - 1}",
            f"shiftrightunsigned({lane}, {_LOW}) & {2**_MIDDLE - 1}",
            f"shiftrightunsigned({lane}, {_LOW + _MIDDLE})",
        )
    ]


def _put_together(low: int, middle: int, high: int) -> int:
    return low + (middle << _LOW) + (high << (_LOW + _MIDDLE))
