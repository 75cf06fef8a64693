"""Whether the columnar path still writes what it wrote when it was made; asked once per process.

The path leans on the text that Arrow's casts write. Should an upgrade of a library ever change one, hashes
must not change with it: a small batch that passes through every kernel is hashed before the first table, and
where it does not come to the sums known here, tables are hashed by the reference instead.
"""

from __future__ import annotations

import logging
from decimal import Decimal
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa

from ubunye_orchestrate.hashing.lines import batch_lines
from ubunye_orchestrate.hashing.rows_v1 import lane_sums_of_lines

__all__ = ["check_batch", "columnar_is_trusted"]

logger = logging.getLogger(__name__)

_EXPECTED: Final = (16, (8_338_173_549_189_508_759, 2_500_173_178_328_816_852))
_MANY: Final = 8  # times the batch, so that it has more numbers with an exponent than are written one by one
_DAY: Final = 86_400


@cache
def columnar_is_trusted() -> bool:
    """Return whether the columnar path gives the sums of a known batch; if not, log a warning once."""
    batch = check_batch()
    try:
        got = [lane_sums_of_lines(batch_lines(pa.concat_batches([batch] * n))) for n in (1, _MANY)]
    except Exception:
        logger.exception("the columnar hash path failed on its check batch")
        got = None
    rows, sums = _EXPECTED
    if got == [_EXPECTED, (rows * _MANY, tuple(lane * _MANY % 2**64 for lane in sums))]:
        return True
    logger.warning(
        "the columnar hash path (pyarrow %s, NumPy %s) does not give the known sums of its check batch; "
        "tables are hashed by the reference, which is right but slow. Use other versions, and report this",
        pa.__version__,
        np.__version__,
    )
    return False


def check_batch() -> pa.RecordBatch:
    """Return sixteen rows in which each of Arrow's text kernels meets the values that are hard for it."""
    floats = [1.0, 1234567.8, 1e7, 9.99e-4, -3e-07, 1e23, float("nan"), 0.001]
    floats += [5e-324, 2**-44, 1e-5, 123456789012345.6, 1e15, 1e16, -0.0, float("-inf")]
    singles = [0.1, 1234567.8, 1e7, 9.99e-4, -3e-07, 3.4e38, 7654321.0, 2.3271246e10] * 2
    integers = [0, -1, 2**63 - 1, -(2**63), 7, 10, 2, 3] * 2
    decimals = [Decimal(text) for text in ("0E-8", "1E-8", "-5E-7", "12.34000000")] * 4
    texts = ["plain", 'a"b', "back\\slash", "\x00\x1f\t", "é\u2028\U0001f600", "", None, "x"] * 2
    days = [0, -1, 18_262, -719_529, 2_932_897, 59, -719_528, 2_932_896] * 2
    ticks = [0, -1, _DAY * 10**6 - 1, -62_135_596_800_000_000, 1_767_254_523_456_789, 1, 1000, 2] * 2
    times = [0, 1, 1000, _DAY * 10**9 - 1, 4, 5, 6, 7] * 2
    lists = [[1, None], [], None, [2], [], [3, 4, 5], None, [6]] * 2
    return pa.record_batch(
        {
            "double": pa.array(floats, pa.float64()),
            "float": pa.array(singles, pa.float32()),
            "integer": pa.array(integers, pa.int64()),
            "bool": pa.array([True, False, False, True] * 4),
            "decimal": pa.array(decimals, pa.decimal128(10, 8)),
            "string": pa.array(texts, pa.string()),
            "binary": pa.array([bytes(range(250, 250 + n)) for n in range(6)] + [b""] * 10, pa.binary()),
            "date": pa.array(days, pa.int32()).view(pa.date32()),
            "timestamp": pa.array(ticks, pa.int64()).view(pa.timestamp("us", "UTC")),
            "nanoseconds": pa.array(ticks, pa.int64()).view(pa.timestamp("ns")),
            "time": pa.array(times, pa.int64()).view(pa.time64("ns")),
            "list": pa.array(lists, pa.list_(pa.int64())),
        }
    )
