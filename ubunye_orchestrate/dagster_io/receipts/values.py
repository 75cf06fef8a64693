"""The fingerprint of a table that is stored or read in partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.rows_v1 import data_hash
from ubunye_orchestrate.records.values import not_hashed

__all__ = ["combined"]

_MODULUS = 2**64


def combined(parts: Mapping[str, Fingerprint]) -> Fingerprint:
    """Return the fingerprint of several partitions as one table: their rows are apart, so lane sums add up.

    Partitions of different columns are no one table, and one without a hash leaves the whole without one.
    """
    prints = list(parts.values())
    if not prints:
        return not_hashed("no partition was read")
    seconds = sum(part.seconds for part in prints)
    counts = [part.row_count for part in prints]
    rows = sum(count for count in counts if count is not None) if None not in counts else None
    for name, part in parts.items():
        if part.data_hash is None or part.lane_sums is None or part.row_count is None:
            reason = part.error if len(prints) == 1 else f"partition {name}: {part.error}"
            return replace(not_hashed(reason or "no hash", rows), seconds=seconds)
    first = prints[0]
    odd = next((name for name, part in parts.items() if part.columns != first.columns), None)
    if odd is not None:
        reason = f"partitions {next(iter(parts))} and {odd} have different columns or types"
        return replace(not_hashed(reason, rows), seconds=seconds)
    sums = (
        sum(part.lane_sums[0] for part in prints if part.lane_sums) % _MODULUS,
        sum(part.lane_sums[1] for part in prints if part.lane_sums) % _MODULUS,
    )
    return replace(
        first,
        data_hash=data_hash(rows or 0, first.columns, sums),
        row_count=rows,
        lane_sums=sums,
        seconds=seconds,
    )
