"""Writes the golden files of rows-v1 anew by the reference: ``python -m tests.hashing.regenerate_golden``."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from tests.hashing.golden_cases import golden_batches
from tests.hashing.paths import Lines
from ubunye_orchestrate.hashing import canonical, rows_v1
from ubunye_orchestrate.hashing.types import canonical_columns

COMMAND = "python -m tests.hashing.regenerate_golden"
FOLDER = Path(__file__).parent.parent / "data" / "golden"


def golden_bytes(batch: pa.RecordBatch, lines: Lines) -> bytes:
    """The golden file of one table: its columns, lines and hashes."""
    columns = canonical_columns(batch.schema)
    written = lines(batch)
    rows, sums = rows_v1.lane_sums_of_lines(written)
    content = {
        "columns": columns,
        "lines": written.cast(pa.large_string()).to_pylist(),
        "row_count": rows,
        "lane_sums": [str(s) for s in sums],
        "schema_hash": rows_v1.schema_hash(columns),
        "data_hash": rows_v1.data_hash(rows, columns, sums),
    }
    return (json.dumps(content, ensure_ascii=True, indent=1) + "\n").encode("ascii")


def main() -> None:
    """Write every golden file, and say which are new or differ from what was there."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, batch in golden_batches().items():
        path = FOLDER / f"{name}.json"
        before = path.read_bytes() if path.exists() else None
        after = golden_bytes(batch, canonical.batch_lines)
        path.write_bytes(after)
        if before != after:
            print(f"{path.name}: {'new' if before is None else 'CHANGED, so this is no longer rows-v1'}")


if __name__ == "__main__":
    main()
