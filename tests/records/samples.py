"""Records to store, and the engine's genuine ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ubunye_orchestrate.records.model import RunRecord, StepRecord

GENUINE = Path(__file__).parent.parent / "data" / "records"
GENUINE_FILES = sorted(GENUINE.glob("*/.ubunye/lineage/*/*/*/*.json"))


def genuine_id(path: Path) -> str:
    """``a_identical-506800f2``: how a test names one of the engine's files."""
    return f"{path.relative_to(GENUINE).parts[0]}-{path.stem[:8]}"


def a_record(run_id: str = "run-1", minute: int = 0, **fields: Any) -> RunRecord:
    """A record as one run of this package leaves it; ``minute`` orders several."""
    values: dict[str, Any] = {
        "run_id": run_id,
        "task_path": "shop/sales/totals",
        "usecase": "shop",
        "package": "sales",
        "task_name": "totals",
        "started_at": f"2024-01-01T10:{minute:02}:00.250000+00:00",
        "ended_at": f"2024-01-01T10:{minute:02}:05.750000+00:00",
        "duration_sec": 5.5,
        "outputs": [
            StepRecord(
                name="totals",
                direction="output",
                format="parquet",
                location="/data/totals.parquet",
                row_count=40,
                schema_hash="sha256:" + "a" * 64,
                data_hash="sha256:" + "b" * 64,
                hash_method="rows-v1",
                hash_seconds=0.25,
                hash_basis="materialised",
                lane_sums=("18446744073709551615", "1"),
                hash_scope="stored_table",
                columns=[("id", "int64"), ("née", "string")],
            )
        ],
        "variables": {"mode": "DEV"},
        "dagster": {"run_id": run_id, "asset_key": ["totals"]},
    }
    values.update(fields)
    return RunRecord(**values)
