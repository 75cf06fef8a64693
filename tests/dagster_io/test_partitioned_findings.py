"""Dagster's store takes one check result outside of a run for each asset, check and partition, ever."""

from __future__ import annotations

import dagster as dg
import pandas as pd

from ubunye_orchestrate import ParquetIOManager, Receipts, build_drift_sensor


def test_a_partition_that_is_judged_twice_is_stored_twice(tmp_path) -> None:
    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(["eu", "us"]))
    def orders() -> pd.DataFrame:
        return pd.DataFrame({"id": [1, 2]})

    resources = {
        "io_manager": ParquetIOManager(
            base_path=str(tmp_path / "data"), receipts=Receipts(root=str(tmp_path))
        )
    }
    definitions = dg.Definitions(assets=[orders], resources=resources)
    sensor = build_drift_sensor([orders])
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        cursor = None
        for _ in range(3):
            with dg.build_sensor_context(
                instance=instance, cursor=cursor, definitions=definitions
            ) as context:
                tick = sensor.evaluate_tick(context)
            cursor = tick.cursor
            for evaluation in tick.asset_events:
                instance.report_runless_asset_event(evaluation)  # as the daemon does
                materialization = evaluation.target_materialization_data
                assert materialization is not None
                assert evaluation.metadata["ubunye/partition"].value == "eu"
            assert dg.materialize(
                [orders], instance=instance, resources=resources, partition_key="eu"
            ).success
        stored = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(orders.key, "drift"), limit=10
        )
    assert len(stored) == 2
