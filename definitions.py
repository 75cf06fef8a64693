"""Wiring of the example: New York's flights of 2013, stored as parquet with receipts, watched for drift."""

import os
from typing import Any

from dagster import AssetsDefinition, AssetSelection, Definitions, load_assets_from_package_module

from example_project import assets
from example_project.on_spark import carrier_report_on_spark
from ubunye_orchestrate import (
    ParquetIOManager,
    SparkIOManager,
    SparkResource,
    build_drift_checks,
    build_drift_sensor,
    with_receipts,
)

DATA = os.environ.get("UBUNYE_EXAMPLE_DATA", ".ubunye/example")

tables = [table for table in load_assets_from_package_module(assets) if isinstance(table, AssetsDefinition)]

resources: dict[str, Any] = {"io_manager": ParquetIOManager(base_path=DATA)}
if os.environ.get("UBUNYE_EXAMPLE_SPARK") == "1":  # off by default: it needs a Java
    tables.append(carrier_report_on_spark)
    spark = SparkResource(master="local[2]", delta=False)
    stored_by_spark = SparkIOManager(base_path=f"{DATA}/spark", format="parquet", spark=spark)
    resources |= {"spark": spark, "spark_io_manager": stored_by_spark}

defs = with_receipts(
    Definitions(
        assets=tables,
        asset_checks=build_drift_checks(tables),
        sensors=[build_drift_sensor(AssetSelection.all())],
        resources=resources,
    )
)
