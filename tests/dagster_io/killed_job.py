"""A run whose process is killed in the middle: ``python killed_job.py HOME ROOT``."""

from __future__ import annotations

import os
import signal
import sys

import pandas as pd
from dagster import AssetOut, DagsterInstance, InMemoryIOManager, Output, asset, materialize, multi_asset

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts


@asset(group_name="sources")
def raw() -> pd.DataFrame:
    return pd.DataFrame({"x": [1]})


@multi_asset(outs={"first": AssetOut(), "second": AssetOut()}, group_name="marts")
def two(raw: pd.DataFrame):  # type: ignore[no-untyped-def]
    yield Output(raw, "first")
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    home, root = sys.argv[1:]
    with DagsterInstance.local_temp(home) as instance:
        manager = with_receipts(InMemoryIOManager(), Receipts(root=root))
        materialize([raw, two], instance=instance, resources={"io_manager": manager})
