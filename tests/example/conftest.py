"""The example's tables, read and cleaned once for all its tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from example_project.assets import marts, raw, staging

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@pytest.fixture(scope="session")
def raw_tables() -> dict[str, pa.Table]:
    names = ("flights", "airlines", "airports", "planes", "weather")
    return {f"raw_{name}": getattr(raw, f"raw_{name}")() for name in names}


@pytest.fixture(scope="session")
def frames(raw_tables: dict[str, pa.Table]) -> dict[str, pd.DataFrame]:
    """As pandas hands over what an Arrow table holds: numbers with nulls are floats."""
    return {name: table.to_pandas() for name, table in raw_tables.items()}


@pytest.fixture(scope="session")
def clean(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return staging.clean_flights(frames["raw_flights"], frames["raw_airports"])


@pytest.fixture(scope="session")
def delays(clean: pd.DataFrame, frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return marts.delays_with_weather(clean, frames["raw_weather"], frames["raw_planes"])
