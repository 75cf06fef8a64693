"""Receipts around the IO managers of dagster-deltalake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from dagster import DailyPartitionsDefinition, Definitions, asset
from dagster_deltalake import LocalConfig
from dagster_deltalake_pandas import DeltaLakePandasIOManager
from dagster_deltalake_polars import DeltaLakePolarsIOManager

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapper import ReceiptsMixin
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

# dagster-deltalake 0.29 calls them; the second to log that it could not count what delta-rs 1.6 stored.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The `dict` method is deprecated"),
    pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated"),
]

DAYS = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-06")
ROWS = {"id": [1, 2, None], "name": ["a", None, "ü"]}
KINDS: dict[str, tuple[Any, Any]] = {
    "pandas": (DeltaLakePandasIOManager, pd.DataFrame),
    "polars": (DeltaLakePolarsIOManager, pl.DataFrame),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_handed_over_and_what_was_read_is_hashed(
    kind: str, project: Project, tmp_path: Path
) -> None:
    manager, frame = KINDS[kind]

    def orders() -> Any:
        return frame(ROWS)

    def user(orders: Any) -> Any:
        return orders

    orders.__annotations__["return"] = user.__annotations__["return"] = frame
    user.__annotations__["orders"] = frame
    inner = manager(root_uri=str(tmp_path), storage_options=LocalConfig())
    project.run([asset(orders), asset(user)], with_receipts(inner, project.receipts))
    expected = fingerprint(frame(ROWS)).data_hash
    stored, read = project.receipt("orders").outputs[0], project.receipt("user").inputs[0]
    assert stored.data_hash == read.data_hash == expected
    # They append where they are told to, and take what they keep from a schema: no table is claimed.
    assert {stored.hash_scope, read.hash_scope} == {"passed_rows"}
    assert (stored.format, stored.location) == (manager.__name__, "deltalake.public.orders")
    assert stored.row_count == 3


def test_its_partitions_have_a_receipt_each(project: Project, tmp_path: Path) -> None:
    class Mine(ReceiptsMixin, DeltaLakePandasIOManager):
        def receipts_settings(self) -> Receipts:
            return project.receipts

    @asset(partitions_def=DAYS, metadata={"partition_expr": "day"})
    def daily(context) -> pd.DataFrame:
        day = pd.Timestamp(context.partition_key).date()
        return pd.DataFrame({"day": [day], "n": [day.day]})

    @asset(partitions_def=DAYS, metadata={"partition_expr": "day"})
    def user(daily: pd.DataFrame) -> pd.DataFrame:
        return daily

    manager = Mine(root_uri=str(tmp_path), storage_options=LocalConfig())
    for key in ("2024-01-02", "2024-01-03"):
        project.run([daily], manager, partition_key=key)
    project.run([daily, user], with_receipts(manager), partition_key="2024-01-02", selection=[user])
    stored = project.receipt("daily", "2024-01-02").outputs[0]
    read = project.receipt("user", "2024-01-02").inputs[0]
    assert stored.row_count == read.row_count == 1
    assert stored.data_hash == read.data_hash
    assert stored.data_hash != project.receipt("daily", "2024-01-03").outputs[0].data_hash


def test_a_whole_project_is_wrapped(project: Project, tmp_path: Path) -> None:
    @asset(io_manager_key="delta")
    def orders() -> pd.DataFrame:
        return pd.DataFrame(ROWS)

    inner = DeltaLakePandasIOManager(root_uri=str(tmp_path), storage_options=LocalConfig())
    definitions = with_receipts(Definitions(assets=[orders], resources={"delta": inner}), project.receipts)
    job = definitions.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=project.instance).success
    assert project.receipt("orders").outputs[0].data_hash == fingerprint(pd.DataFrame(ROWS)).data_hash
