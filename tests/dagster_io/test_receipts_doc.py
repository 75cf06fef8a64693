"""The examples in the documentation of receipts run as they stand there."""

# Without "from __future__ import annotations": the examples are run as a file of their own would be.
import importlib.util
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from .conftest import Project

DOC = Path(__file__).parents[2] / "docs" / "receipts.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", DOC.read_text(), re.MULTILINE | re.DOTALL)

SETTING = """
import pandas as pd
from dagster import AssetExecutionContext, Definitions, MaterializeResult, asset, materialize
from ubunye_orchestrate import Receipts, build_expectation_checks, expect, with_receipts

engine = None


class ToStatsd:
    def __init__(self):
        TOLD.append("made")

    def task_start(self, **everything):
        TOLD.append("start")

    def task_end(self, *, status, **everything):
        TOLD.append(status)


TOLD = []


@asset
def orders() -> pd.DataFrame:
    return pd.DataFrame({"order_id": [1, 2, 3], "amount": [1.0, 2.0, -3.0], "day": [1, 1, 2]})
"""


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    path = tmp_path / "receipts_example.py"
    path.write_text("\n\n".join([SETTING, *BLOCKS]))
    monkeypatch.setenv("UBUNYE_ROOT", str(tmp_path / "mirror"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    spec = importlib.util.spec_from_file_location("receipts_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "receipts_example", module)
    spec.loader.exec_module(module)
    return module


def test_the_examples_run(examples: Any, project: Project, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as examples.engine:
        pd.DataFrame({"day": [1, 1, 2], "amount": [1.0, 2.0, 3.0]}).to_sql("orders", examples.engine)
        manager = examples.with_receipts(project_manager(tmp_path), project.receipts)
        result = project.run(
            [
                examples.orders,
                examples.clean_orders,
                examples.totals,
                *examples.build_expectation_checks([examples.clean_orders]),
            ],
            manager,
            resources={"receipts": project.receipts},
        )
    assert result.success
    found = {one["rule"]: one["passed"] for one in project.receipt("clean_orders").expectations}
    assert found == {
        "orders_order_id_not_null": True,
        "order_id_unique": True,
        "amount_between": False,
        "rows_from_orders": True,
    }
    checks = {one.check_name: one.passed for one in result.get_asset_check_evaluations()}
    assert checks == found
    assert project.metadata("totals")["dagster/row_count"] == 2
    job = examples.defs.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=project.instance).success
    assert [one for one in examples.TOLD if one != "made"] == ["start", "success"]


def project_manager(folder: Path) -> Any:
    from dagster import FilesystemIOManager

    return FilesystemIOManager(base_dir=str(folder / "stored"))
