"""A job in which every asset fails in a way of its own, for both executors.

The multiprocess one finds it by this file, and only there an asset kills its process.
"""

import os
import signal
from pathlib import Path
from typing import Any

import pandas as pd
from dagster import (
    AssetExecutionContext,
    AssetIn,
    AssetOut,
    Definitions,
    FilesystemIOManager,
    InMemoryIOManager,
    Output,
    RetryPolicy,
    asset,
    define_asset_job,
    graph_asset,
    in_process_executor,
    multi_asset,
    multiprocess_executor,
    op,
)

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.expectations.declare import expect

FORKED = {"start_method": {"forkserver": {"preload_modules": [__name__]}}, "max_concurrent": 2}


class Unreadable(InMemoryIOManager):
    def load_input(self, context: Any) -> Any:
        raise OSError("the bucket is gone")


class Full(InMemoryIOManager):
    def handle_output(self, context: Any, obj: Any) -> None:
        raise OSError("no space left")


@asset
def raw() -> pd.DataFrame:
    return pd.DataFrame({"x": [1, 2]})


@asset(group_name="sources")
def before_reading() -> pd.DataFrame:
    raise ValueError("no source; password=geheim")


@asset(ins={"raw": AssetIn(input_manager_key="unreadable")})
def while_reading(raw: pd.DataFrame) -> pd.DataFrame:
    return raw


@asset
def in_transform(raw: pd.DataFrame) -> pd.DataFrame:
    raise KeyError("column")


@asset(io_manager_key="full")
@expect.not_null("x")
def while_storing(raw: pd.DataFrame) -> pd.DataFrame:
    return raw


@asset
@expect.row_count(min=9)
@expect.not_null("x")
def broken_rule(raw: pd.DataFrame) -> pd.DataFrame:
    return raw


@asset
@expect.row_count(min=9).on_input("raw")
def broken_input_rule(raw: pd.DataFrame) -> pd.DataFrame:
    return raw


@asset(retry_policy=RetryPolicy(max_retries=1))
def flaky(context, raw: pd.DataFrame) -> pd.DataFrame:  # type: ignore[no-untyped-def]
    if context.retry_number == 0:
        raise ValueError("the first try fails")
    return raw


@multi_asset(outs={"first": AssetOut(), "second": AssetOut()})
def half_way(raw: pd.DataFrame):  # type: ignore[no-untyped-def]
    yield Output(raw, "first")
    raise RuntimeError("half-way")


@op
def early(raw: pd.DataFrame) -> pd.DataFrame:
    return raw


@op
def late(frame: pd.DataFrame) -> pd.DataFrame:
    raise ValueError("the second op fails")


@graph_asset
def in_a_graph(raw: pd.DataFrame) -> pd.DataFrame:
    return late(early(raw))


@asset
def after_its_block(context: AssetExecutionContext, receipts: Receipts, raw: pd.DataFrame) -> None:
    with receipts.run(context) as run:
        run.wrote("after_its_block", raw)
    raise RuntimeError("the load was refused")


@asset
def downstream(in_transform: pd.DataFrame) -> pd.DataFrame:
    return in_transform


@asset
def killed(raw: pd.DataFrame) -> pd.DataFrame:
    os.kill(os.getpid(), signal.SIGKILL)
    return raw


@multi_asset(outs={"kept": AssetOut(), "lost": AssetOut()})
def killed_half_way(raw: pd.DataFrame):  # type: ignore[no-untyped-def]
    yield Output(raw, "kept")
    os.kill(os.getpid(), signal.SIGKILL)


ASSETS = [
    raw,
    before_reading,
    while_reading,
    in_transform,
    while_storing,
    broken_rule,
    broken_input_rule,
    flaky,
    half_way,
    in_a_graph,
    after_its_block,
    downstream,
]


def job_in(folder: Path, *, forked: bool) -> Any:
    executor = multiprocess_executor.configured(FORKED) if forked else in_process_executor
    receipts = Receipts(root=str(folder / "mirror"))
    defs = with_receipts(
        Definitions(
            assets=[*ASSETS, killed, killed_half_way] if forked else ASSETS,
            resources={
                "io_manager": FilesystemIOManager(base_dir=str(folder / "stored")),
                "unreadable": Unreadable(),
                "full": Full(),
                "receipts": receipts,
            },
            jobs=[define_asset_job("everything", executor_def=executor)],
        ),
        receipts,
    )
    return defs.resolve_job_def("everything")


def get_job() -> Any:
    return job_in(Path(os.environ["TEST_FOLDER"]), forked=True)
