"""A job of a graph-backed asset whose last op fails while ``GRAPH_FAILS`` is set."""

import os
from pathlib import Path
from typing import Any

import pandas as pd
from dagster import (
    Definitions,
    FilesystemIOManager,
    asset,
    define_asset_job,
    graph_asset,
    in_process_executor,
    op,
)

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts


@asset
def raw() -> pd.DataFrame:
    return pd.DataFrame({"x": [1, 2]})


@op
def early(raw: pd.DataFrame) -> pd.DataFrame:
    return raw


@op
def late(frame: pd.DataFrame) -> pd.DataFrame:
    if os.environ.get("GRAPH_FAILS"):
        raise ValueError("not yet")
    return frame


@graph_asset
def backed(raw: pd.DataFrame) -> pd.DataFrame:
    return late(early(raw))


def get_job() -> Any:
    folder = Path(os.environ["TEST_FOLDER"])
    defs = with_receipts(
        Definitions(
            assets=[raw, backed],
            resources={"io_manager": FilesystemIOManager(base_dir=str(folder / "stored"))},
            jobs=[define_asset_job("everything", executor_def=in_process_executor)],
        ),
        Receipts(root=str(folder / "mirror")),
    )
    return defs.resolve_job_def("everything")
