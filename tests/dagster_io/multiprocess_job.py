"""A job for the multiprocess executor, which finds it by this file: one asset is retried, one fails."""

import os
from pathlib import Path

import pandas as pd
from dagster import (
    Definitions,
    FilesystemIOManager,
    RetryPolicy,
    asset,
    define_asset_job,
    multiprocess_executor,
)

from ubunye_orchestrate.dagster_io.receipts import Receipts
from ubunye_orchestrate.dagster_io.wrapping import with_receipts


@asset(retry_policy=RetryPolicy(max_retries=1), group_name="sources")
def flaky(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
    if context.retry_number == 0:
        raise ValueError("the first try fails")
    return pd.DataFrame({"x": [1, 2]})


@asset
def broken(flaky: pd.DataFrame) -> pd.DataFrame:
    raise RuntimeError(f"broken after {len(flaky)} rows")


def get_job():  # type: ignore[no-untyped-def]
    folder = Path(os.environ["TEST_FOLDER"])
    defs = with_receipts(
        Definitions(
            assets=[flaky, broken],
            resources={"io_manager": FilesystemIOManager(base_dir=str(folder / "stored"))},
            jobs=[define_asset_job("everything", executor_def=multiprocess_executor)],
        ),
        Receipts(root=str(folder / "mirror")),
    )
    return defs.resolve_job_def("everything")
