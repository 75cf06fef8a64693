"""Wiring of the example: New York's flights of 2013, stored as parquet with receipts, watched for drift."""

import os

from dagster import AssetsDefinition, AssetSelection, Definitions, load_assets_from_package_module

from example_project import assets
from ubunye_orchestrate import ParquetIOManager, build_drift_checks, build_drift_sensor, with_receipts

tables = [table for table in load_assets_from_package_module(assets) if isinstance(table, AssetsDefinition)]

defs = with_receipts(
    Definitions(
        assets=tables,
        asset_checks=build_drift_checks(tables),
        sensors=[build_drift_sensor(AssetSelection.all())],
        resources={
            "io_manager": ParquetIOManager(base_path=os.environ.get("UBUNYE_EXAMPLE_DATA", ".ubunye/example"))
        },
    )
)
