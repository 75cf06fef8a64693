"""A small project whose pages are looked at: a table that grows from run to run."""

import os
import time

import pandas as pd
from dagster import Definitions, FilesystemIOManager, asset

from ubunye_orchestrate import Receipts, with_receipts


@asset(group_name="shop")
def orders() -> pd.DataFrame:
    """The orders so far."""
    rows = int(os.environ["SHOP_ROWS"])
    time.sleep(rows / 20_000)
    return pd.DataFrame({"id": range(rows), "amount": [n % 7 + 0.5 for n in range(rows)]})


def project(folder: str) -> Definitions:
    manager = FilesystemIOManager(base_dir=f"{folder}/tables")
    return with_receipts(
        Definitions(assets=[orders], resources={"io_manager": manager}), Receipts(root=folder)
    )


defs = project(os.environ.get("SHOP_FOLDER", "."))
