"""A small project that is watched for drift: a source, and totals of it by shop."""

import os
import random

import pandas as pd
from dagster import AssetSelection, DefaultSensorStatus, Definitions, asset

from ubunye_orchestrate import ParquetIOManager, Receipts, build_drift_checks, build_drift_sensor


@asset(group_name="shop", metadata={"ubunye/policy": {"max_row_increase": 0.5}})
def orders() -> pd.DataFrame:
    """The orders so far."""
    rows = int(os.environ.get("WATCHED_ROWS", "0"))
    return pd.DataFrame({"id": range(rows), "shop": [n % 3 for n in range(rows)], "amount": 9.5})


@asset(group_name="shop", metadata={"ubunye/policy": {"severities": {"data_changed": "warn"}}})
def totals(orders: pd.DataFrame) -> pd.DataFrame:
    """The amount of each shop."""
    noise = random.random() if os.environ.get("WATCHED_NOISE") else 0.0
    return orders.groupby("shop", as_index=False)["amount"].sum().assign(noise=noise)


def project(folder: str) -> Definitions:
    tables = [orders, totals]
    sensor = build_drift_sensor(
        AssetSelection.all(), minimum_interval_seconds=1, default_status=DefaultSensorStatus.RUNNING
    )
    manager = ParquetIOManager(base_path=f"{folder}/tables", receipts=Receipts(root=folder))
    return Definitions(
        assets=tables,
        asset_checks=build_drift_checks(tables),
        sensors=[sensor],
        resources={"io_manager": manager},
    )


defs = project(os.environ.get("WATCHED_FOLDER", "."))
