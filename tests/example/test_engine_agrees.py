"""The Ubunye engine, whose records these are, hashes the example's tables to the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from ubunye.lineage.content_hash import fingerprint_arrow

from ubunye_orchestrate.hashing.api import arrow_table, fingerprint

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RAW = ["raw_airlines", "raw_airports", "raw_flights", "raw_planes", "raw_weather"]


def assert_same_hash(table: pa.Table) -> None:
    ours, theirs = fingerprint(table), fingerprint_arrow(table)
    assert ours.error is None
    assert (ours.data_hash, ours.schema_hash) == (theirs.data_hash, theirs.schema_hash)
    assert ours.row_count == table.num_rows


@pytest.mark.parametrize("name", RAW)
def test_raw_tables(raw_tables: dict[str, pa.Table], name: str) -> None:
    assert_same_hash(raw_tables[name])


def test_cleaned_flights(clean: pd.DataFrame) -> None:
    assert_same_hash(arrow_table(clean))


def test_delays_with_weather(delays: pd.DataFrame) -> None:
    assert_same_hash(arrow_table(delays))


def test_carrier_report(delays: pd.DataFrame, frames: dict[str, pd.DataFrame]) -> None:
    from dagster import build_asset_context

    from example_project.assets.marts import carrier_report

    context = build_asset_context(partition_key="2013-02-01")
    assert_same_hash(arrow_table(carrier_report(context, delays, frames["raw_airlines"])))
