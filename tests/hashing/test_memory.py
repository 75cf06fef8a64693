"""Memory does not grow with the table: the peak of a process that hashes four times the rows is the same.

Measured in processes of their own, as the kernel's high-water mark of this process image (VmHWM; unlike
``ru_maxrss`` it does not remember the process that started it).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ubunye_orchestrate.hashing.api import fingerprint

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="VmHWM is told by Linux only")

MIB = 2**20

_PRELUDE = """
import sys
import numpy as np
import pyarrow as pa
from ubunye_orchestrate.hashing.api import fingerprint, hash_stream
from ubunye_orchestrate.hashing.datasets import fingerprint_dataset

def batch(rows, start=0):
    ids = pa.array(np.arange(start, start + rows))
    return pa.record_batch({"id": ids, "x": pa.array(np.arange(rows) / 7), "text": ids.cast(pa.string())})

def batches(count, rows=50_000):
    return (batch(rows, i * rows) for i in range(count))
"""

_EPILOGUE = """
assert got.error is None, got.error
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(got.row_count, got.data_hash, peak * 1024)
"""


def peak_of(body: str, *arguments: object) -> tuple[int, str, int]:
    """Run ``body`` (it sets ``got``) in its own process; return rows, data hash and peak memory in bytes."""
    run = subprocess.run(
        [sys.executable, "-c", _PRELUDE + body + _EPILOGUE, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    rows, data_hash, peak = run.stdout.split()
    return int(rows), data_hash, int(peak)


READER = "got = fingerprint(pa.RecordBatchReader.from_batches(batch(1).schema, batches(int(sys.argv[1]))))"
STREAM = """
got = hash_stream(batch(1).schema, batches(int(sys.argv[1])))
for _ in got:
    pass
got = got.fingerprint()
"""
PANDAS = """
import pandas as pd
count = int(sys.argv[1])
numbers = np.arange(count)
got = fingerprint(pd.DataFrame({"a": numbers, "b": numbers / 7, "c": ["some text"] * count}))
"""


@pytest.mark.parametrize("body", [READER, STREAM], ids=["reader", "stream"])
def test_a_stream_is_hashed_in_memory_that_does_not_grow(body: str) -> None:
    rows, _, small = peak_of(body, 10)
    more_rows, _, large = peak_of(body, 40)
    assert (rows, more_rows) == (500_000, 2_000_000)
    assert large - small < 24 * MIB  # the rows between are 70 MiB of Arrow data


def test_a_parquet_dataset_is_hashed_in_memory_that_does_not_grow(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = 250_000
    table = pa.table(
        {
            "id": np.arange(rows),
            "x": random.random(rows),
            "text": pa.array(random.integers(0, 2**60, rows)).cast(pa.string()),
        }
    )
    for name, files in (("small", 2), ("large", 8)):
        (tmp_path / name).mkdir()
        for i in range(files):
            pq.write_table(table, tmp_path / name / f"{i}.parquet")
    body = "got = fingerprint_dataset(sys.argv[1])"
    few, _, small = peak_of(body, tmp_path / "small")
    many, _, large = peak_of(body, tmp_path / "large")
    assert (few, many) == (2 * rows, 8 * rows)
    assert large - small < 24 * MIB  # the rows between are 60 MiB
    assert large < 400 * MIB


def test_a_row_group_is_not_decoded_whole(tmp_path: Path) -> None:
    for name, rows in (("small", 300_000), ("large", 3_000_000)):
        table = pa.table({"id": np.arange(rows), "x": np.random.default_rng(0).random(rows)})
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "0.parquet", row_group_size=rows)
    body = "got = fingerprint_dataset(sys.argv[1])"
    _, _, small = peak_of(body, tmp_path / "small")
    _, _, large = peak_of(body, tmp_path / "large")
    assert large - small < 24 * MIB  # the rows between are 41 MiB


def test_no_second_copy_of_a_pandas_frame_is_made() -> None:
    _, _, small = peak_of(PANDAS, 200_000)
    rows, _, large = peak_of(PANDAS, 1_200_000)
    assert rows == 1_200_000
    # Of each of the million rows between pandas holds 24 bytes, and a list had 8; Arrow's form would be 29.
    assert large - small < (24 + 8) * 1_000_000 + 16 * MIB


def test_few_rows_of_much_text_are_hashed_in_pieces() -> None:
    body = """
rows = int(sys.argv[1])
one = pa.array(["0123456789abcdef" * 2**16])  # 1 MiB of text, of which every row is one
got = fingerprint(pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0] * rows), one)}))
"""
    _, _, small = peak_of(body, 160)  # enough for as many pieces in flight as there may be
    rows, _, large = peak_of(body, 400)
    assert rows == 400
    assert large - small < 24 * MIB


def test_a_difference_is_explained_in_memory_that_does_not_grow() -> None:
    body = """
from ubunye_orchestrate.hashing import digests
from ubunye_orchestrate.hashing.difference import explain_difference
digests._IN_MEMORY = 100_000
count = int(sys.argv[1])
both = [pa.RecordBatchReader.from_batches(batch(1).schema, batches(n)) for n in (count, count + 1)]
found = explain_difference(*both)
assert (found.rows_only_in_a, found.rows_only_in_b) == (0, 50_000)
got = fingerprint(pa.table({"a": [1]}))
"""
    _, _, small = peak_of(body, 4)
    _, _, large = peak_of(body, 16)
    assert large - small < 12 * MIB  # each of the two tables is 20 MiB larger


@pytest.mark.long
def test_a_text_column_over_2_gib_in_one_chunk() -> None:
    body = """
rows, row = int(sys.argv[1]), np.frombuffer(b"0123456789abcdef" * 2**16, np.uint8)
offsets, data = np.arange(rows + 1) * len(row), np.tile(row, rows)
text = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(data))
got = fingerprint(pa.table({"text": text}))
"""
    _, _, small = peak_of(body, 2)
    rows, data_hash, large = peak_of(body, 2300)
    assert rows * MIB > 2**31
    piece = pa.table({"text": ["0123456789abcdef" * 2**16]})
    assert data_hash == fingerprint(pa.concat_tables([piece] * rows)).data_hash
    assert large - small < 2300 * MIB + 100 * MIB  # the column itself, and a few of its rows at a time
