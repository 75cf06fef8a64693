"""The Spark variant of the monthly report: the rows of the pandas one, and off unless asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from dagster import build_asset_context

from example_project.assets.marts import carrier_report
from example_project.on_spark import carrier_report_on_spark
from ubunye_orchestrate import SparkResource, fingerprint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_both_engines_report_the_same(spark: SparkSession) -> None:
    rng = np.random.default_rng(7)
    count = 400
    delay = pd.Series(rng.integers(-20, 90, count), dtype="Int32").where(rng.random(count) > 0.1)
    flights = pd.DataFrame(
        {
            "carrier": rng.choice(["AA", "B6", "ZZ"], count),
            "planned_departure_local": pd.Timestamp("2013-01-20")
            + pd.to_timedelta(rng.integers(0, 60, count), "D"),
            "cancelled": rng.random(count) < 0.05,
            "diverted": rng.random(count) < 0.02,
            "arrival_delay_min": delay,
            "precip": np.where(rng.random(count) < 0.3, 0.1, np.where(rng.random(count) < 0.1, np.nan, 0.0)),
        }
    )
    flights.loc[flights.carrier == "ZZ", "arrival_delay_min"] = pd.NA
    airlines = pd.DataFrame({"carrier": ["AA", "B6"], "name": ["American", "JetBlue"]})
    context = build_asset_context(partition_key="2013-02-01")
    by_pandas = carrier_report(context, flights, airlines)
    by_spark = carrier_report_on_spark(
        context,
        pa.Table.from_pandas(flights),
        pa.Table.from_pandas(airlines),
        spark=SparkResource.of(spark),
    )
    assert fingerprint(by_spark).columns == fingerprint(by_pandas).columns
    assert fingerprint(by_spark).data_hash == fingerprint(by_pandas).data_hash
    assert by_spark.count() == 3


@pytest.mark.parametrize("asked", ["", "1"])
def test_it_is_off_unless_asked_for(asked: str) -> None:
    code = (
        "import sys, definitions, dagster; dagster.Definitions.validate_loadable(definitions.defs); "
        "keys = str(definitions.defs.resolve_all_asset_keys()); "
        "print('carrier_report_on_spark' in keys, 'pyspark' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "UBUNYE_EXAMPLE_SPARK": asked},
    )
    assert done.stdout.split() == [str(asked == "1"), "False"], done.stderr
