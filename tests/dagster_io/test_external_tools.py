"""Assets whose work is done by another process: Dagster Pipes, a command, a multi-asset with specs."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates a resource.
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dagster import (
    AssetExecutionContext,
    AssetSpec,
    InMemoryIOManager,
    MaterializeResult,
    PipesSubprocessClient,
    asset,
    materialize,
    multi_asset,
)

from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

ORDERS = pd.DataFrame({"day": [1, 1, 2], "value": [1.0, 2.0, 3.0]})

# What the other process runs. It knows nothing of receipts.
SCRIPT = """
import sys
import pandas as pd
from dagster_pipes import open_dagster_pipes

with open_dagster_pipes() as pipes:
    source, target = pipes.get_extra("source"), pipes.get_extra("target")
    if source is None:
        raise ValueError("no source")
    total = pd.read_pickle(source).groupby("day", as_index=False).sum()
    total.to_pickle(target)
    pipes.log.info("summed")
    pipes.report_asset_materialization(metadata={"tool": "theirs", "dagster/row_count": len(total)})
"""


@asset
def orders() -> pd.DataFrame:
    return ORDERS


def run(project: Project, assets: Any) -> Any:
    resources = {
        "io_manager": with_receipts(InMemoryIOManager(), project.receipts),
        "receipts": project.receipts,
        "pipes": PipesSubprocessClient(),
    }
    return materialize(assets, instance=project.instance, resources=resources, raise_on_error=False)


# Dagster's Pipes call names of Dagster's own that are deprecated or in preview.
@pytest.mark.filterwarnings("ignore:AssetExecutionContext:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Function .PipesMessageReader:dagster.PreviewWarning")
@pytest.mark.parametrize("works", [True, False])
def test_a_process_behind_dagster_pipes(works: bool, project: Project, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    source, target = str(tmp_path / "orders.pkl"), str(tmp_path / "totals.pkl")
    ORDERS.to_pickle(source)

    @asset(deps=[orders])
    @expect.not_null("value").on_input("orders")
    @expect.row_count(min=1)
    def totals(
        context: AssetExecutionContext, receipts: Receipts, pipes: PipesSubprocessClient
    ) -> MaterializeResult:  # type: ignore[type-arg]
        with receipts.run(context) as run:
            run.read("orders", pd.read_pickle(source), location=source)
            done = pipes.run(
                command=[sys.executable, str(tmp_path / "script.py")],
                context=context,
                extras={"source": source if works else None, "target": target},
            )
            run.wrote("totals", run.expect(pd.read_pickle(target)), location=target, scope="stored_table")
        return done.get_materialize_result()

    result = run(project, [orders, totals])
    assert result.success is works
    (record,) = project.mirrored("totals")
    assert record.inputs[0].data_hash == fingerprint(ORDERS).data_hash
    assert record.inputs[0].producer is not None
    assert record.inputs[0].producer[0].storage_id == project.event("orders").storage_id
    if not works:
        assert (record.status, (record.dagster or {})["step_status"]) == ("error", "error")
        assert record.error is not None
        assert "DagsterPipesExecutionError" in record.error
        assert [(one["rule"], one["passed"]) for one in record.expectations] == [
            ("orders_value_not_null", True)
        ]
        return
    total = fingerprint(ORDERS.groupby("day", as_index=False).sum()).data_hash
    assert record.outputs[0].data_hash == total
    assert (record.outputs[0].location, record.outputs[0].hash_scope) == (target, "stored_table")
    assert [one["passed"] for one in record.expectations] == [True, True]
    metadata = project.metadata("totals")
    # What the process reported stays, and the receipt stands beside it.
    assert (metadata["tool"], metadata["dagster/row_count"]) == ("theirs", 2)
    assert metadata["ubunye/receipt"]["outputs"][0]["data_hash"] == total
    assert project.tags("totals")["dagster/data_version"] == total


def test_a_multi_asset_with_specs_around_a_command(project: Project, tmp_path: Path) -> None:
    @multi_asset(
        specs=[
            AssetSpec("good", deps=["orders"], group_name="split"),
            AssetSpec("bad", deps=["orders"], group_name="split", metadata=expect(expect.row_count(max=1))),
        ]
    )
    def split(context: AssetExecutionContext, receipts: Receipts) -> Any:
        code = "import sys; open(sys.argv[1], 'w').write('day,value\\n1,1.0\\n')"
        for name in ("good", "bad"):
            target = str(tmp_path / f"{name}.csv")
            with receipts.run(context, asset=name) as run:
                run.read("orders", ORDERS)
                subprocess.run([sys.executable, "-c", code, target], check=True)
                table = run.expect(pd.read_csv(target))
                metadata = run.wrote(name, table, format="csv", location=target)
            yield MaterializeResult(asset_key=name, metadata=metadata)

    assert run(project, [orders, split]).success
    for name in ("good", "bad"):
        record = project.receipt(name)
        assert record.package == "split"
        assert record.outputs[0].format == "csv"
        assert record.inputs[0].data_hash == fingerprint(ORDERS).data_hash
        assert project.metadata(name)["dagster/row_count"] == 1
        (mirrored,) = project.mirrored(name, "split")
        assert (mirrored.dagster or {})["step_status"] == "success"
    assert [one["passed"] for one in project.receipt("bad").expectations] == [True]
