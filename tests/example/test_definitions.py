"""The project as ``dagster dev`` loads it."""

from __future__ import annotations

import dagster as dg

import definitions
from ubunye_orchestrate import ParquetIOManager

TABLES = {
    "raw": {"raw_flights", "raw_airlines", "raw_airports", "raw_planes", "raw_weather"},
    "staging": {"clean_flights"},
    "marts": {"delays_with_weather", "carrier_report"},
}


def test_the_definitions_can_be_loaded() -> None:
    dg.Definitions.validate_loadable(definitions.defs)
    assert {sensor.name for sensor in definitions.defs.sensors or ()} == {"drift"}


def test_every_table_has_its_group_a_description_an_owner_and_kinds() -> None:
    specs = list(definitions.defs.resolve_all_asset_specs())
    groups: dict[str, set[str]] = {}
    for spec in specs:
        groups.setdefault(str(spec.group_name), set()).add(spec.key.to_user_string())
        assert spec.description
        assert spec.owners
        assert spec.kinds
    assert groups == TABLES


def test_every_table_has_receipts_and_the_drift_check() -> None:
    graph = definitions.defs.resolve_asset_graph()
    assert {key.asset_key.to_user_string() for key in graph.asset_check_keys} == set().union(*TABLES.values())
    assert {key.name for key in graph.asset_check_keys} == {"drift"}
    assert isinstance((definitions.defs.resources or {})["io_manager"], ParquetIOManager)


def test_the_report_has_a_partition_for_each_month_of_2013() -> None:
    partitions = definitions.defs.resolve_asset_graph().get(dg.AssetKey("carrier_report")).partitions_def
    assert partitions is not None
    assert partitions.get_partition_keys() == [f"2013-{month:02}-01" for month in range(1, 13)]
