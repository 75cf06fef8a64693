"""A small project of Dagster assets, run in every way that leaves a record of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dagster import AssetIn, DagsterInstance, RetryPolicy, StaticPartitionsDefinition, asset, materialize

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.storage.io_managers import ParquetIOManager

MONTHS = StaticPartitionsDefinition(["jan", "feb", "mar"])


@asset(key_prefix="raw", group_name="raw")
def flights() -> pd.DataFrame:
    return pd.DataFrame({"id": [1, 2, 3]})


READS_FLIGHTS = {"flights": AssetIn(key=["raw", "flights"])}


@asset(group_name="marts", retry_policy=RetryPolicy(max_retries=1), ins=READS_FLIGHTS)
def delays(context, flights: pd.DataFrame) -> pd.DataFrame:
    if context.retry_number == 0:
        raise ValueError("not yet")
    return flights.assign(delay=1.5)


@asset(group_name="marts", partitions_def=MONTHS)
def monthly(context) -> Any:
    keys = context.partition_keys
    frames = {key: pd.DataFrame({"month": [key], "n": [len(key)]}) for key in keys}
    return frames if len(keys) > 1 else frames[keys[0]]


@asset(group_name="marts", ins=READS_FLIGHTS)
def broken(flights: pd.DataFrame) -> pd.DataFrame:
    raise ValueError("no such column")


def build(folder: Path) -> None:
    """Make an instance on disk (``home``), and the mirror (``root``) that its runs left."""
    home = folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    manager = ParquetIOManager(base_path=str(folder / "data"), receipts=Receipts(root=str(folder / "root")))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("UBUNYE_ROOT", "UBUNYE_USECASE", "UBUNYE_PROFILE"):
            patch.delenv(name, raising=False)
        with DagsterInstance.from_config(str(home)) as instance:

            def run(assets: list[Any], **kwargs: Any) -> None:
                materialize(
                    assets,
                    instance=instance,
                    resources={"io_manager": manager},
                    raise_on_error=False,
                    **kwargs,
                )

            run([flights])
            run([flights, delays, broken])
            run([monthly], partition_key="jan")
            ends = {"start": "jan", "end": "mar"}
            run([monthly], tags={f"dagster/asset_partition_range_{end}": key for end, key in ends.items()})
