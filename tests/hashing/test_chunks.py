"""How a table is cut into chunks never shows, and thousands of small ones cost no hash each."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from ubunye_orchestrate.hashing import columnar
from ubunye_orchestrate.hashing.api import fingerprint

ROWS = 10_000


def table_of(rows: int) -> pa.Table:
    numbers = np.random.default_rng(7).integers(0, 1000, rows)
    return pa.table(
        {
            "number": numbers,
            "text": [f"row {n}" if n % 7 else None for n in numbers.tolist()],
            "list": [[n] * (n % 3) for n in numbers.tolist()],
        }
    )


def test_five_thousand_tiny_chunks_have_the_hash_of_one() -> None:
    whole = table_of(ROWS)
    tiny = pa.concat_tables([whole.slice(start, 2) for start in range(0, ROWS, 2)])
    assert tiny.column("text").num_chunks == 5_000
    expected = fingerprint(whole.combine_chunks())
    assert expected.data_hash is not None
    assert fingerprint(tiny).data_hash == expected.data_hash
    assert fingerprint(tiny.to_reader()).data_hash == expected.data_hash


def test_tiny_chunks_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    inner = columnar.lines_of_columns

    def counted(batch: pa.RecordBatch, *args: object, **kwargs: object) -> pa.Array:
        written.append(batch.num_rows)
        return inner(batch, *args, **kwargs)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(columnar, "lines_of_columns", counted)
    whole = table_of(ROWS)
    fingerprint(pa.concat_tables([whole.slice(start, 2) for start in range(0, ROWS, 2)]))
    assert sum(written) == ROWS
    assert len(written) < 10


def test_one_huge_chunk_is_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = 0
    inner = columnar.lines_of_columns

    def measured(batch: pa.RecordBatch, *args: object, **kwargs: object) -> pa.Array:
        nonlocal longest
        longest = max(longest, batch.num_rows)
        return inner(batch, *args, **kwargs)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(columnar, "lines_of_columns", measured)
    huge = pa.table({"n": np.arange(1_000_000)}).combine_chunks()
    got = fingerprint(huge)
    assert got.row_count == 1_000_000
    assert longest <= 100_000
    sums = [0, 0]
    for n in range(1_000_000):
        digest = hashlib.sha256(b'{"n":%d}' % n).digest()
        sums[0] += int.from_bytes(digest[:8], "big")
        sums[1] += int.from_bytes(digest[8:16], "big")
    assert got.lane_sums == (sums[0] % 2**64, sums[1] % 2**64)
