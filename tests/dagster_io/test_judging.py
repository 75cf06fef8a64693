"""One materialization judged from the receipts beside it, made by hand where no run makes them so."""

from __future__ import annotations

from typing import Any

import pytest
from dagster import AssetKey, DagsterInstance
from pydantic_core import to_json

from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.dagster_io.drift.judging import judge_event
from ubunye_orchestrate.dagster_io.drift.seen import Seen
from ubunye_orchestrate.dagster_io.upstream import AssetEvent

from .conftest import Project


def step(name: str, direction: str, content: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "direction": direction,
        "row_count": 1,
        "data_hash": f"sha256:{content}",
        "hash_method": "rows-v1",
        "hash_scope": "stored_partition",
        "lane_sums": [str(ord(content[0])), "1"],
        **more,
    }


def event(storage_id: int, name: str, partitions: list[str], run_id: str, **fields: Any) -> AssetEvent:
    """A materialization whose receipt is of ``partitions``."""
    receipt = {
        "run_id": run_id,
        "task_path": f"default/default/{name}",
        "usecase": "default",
        "package": "default",
        "task_name": name,
        "status": "success",
        "record_version": 2,
        "dagster": {"asset_key": [name], "partition_keys": partitions},
        **fields,
    }
    return AssetEvent(storage_id, AssetKey(name), metadata={"ubunye/receipt": to_json(receipt)})


def custody(instance: DagsterInstance, stored: list[AssetEvent], read: dict[str, Any]) -> tuple[str, str]:
    """What is said of the custody of an input; ``custody_held`` where nothing is."""
    reader = event(9, "reader", [], "r9", inputs=[read])
    seen = Seen(instance, [*stored, reader])
    record = seen.receipt(9)
    assert record is not None
    findings = judge_event(reader, record, seen, DriftPolicy()).verdict.findings
    told = [(one.kind, one.text) for one in findings if one.kind.startswith("custody")]
    return told[0] if told else ("custody_held", "")


def read(content: str, *producers: tuple[str, int], **more: Any) -> dict[str, Any]:
    named = [{"partition": partition, "storage_id": i, "run_id": "r1"} for partition, i in producers]
    return step("orders", "input", content, producer=named, **more)


@pytest.fixture
def instance(project: Project) -> DagsterInstance:
    return project.instance


def test_one_partition_of_a_range_that_was_stored_whole_is_not_judged(instance: DagsterInstance) -> None:
    whole = [
        event(i, "orders", ["p", "q"], "r1--p..q", outputs=[step("orders", "output", "w", row_count=2)])
        for i in (1, 2)
    ]
    kind, text = custody(instance, whole, read("a", ("p", 1)))
    assert kind == "custody_not_judged"
    assert "the partitions that were read are not those of the producers' records (q)" in text
    # Both of them are the whole, which one record is of.
    assert custody(instance, whole, read("w", ("p", 1), ("q", 2), row_count=2)) == ("custody_held", "")


def test_partitions_of_a_range_that_were_stored_apart_add_up(instance: DagsterInstance) -> None:
    apart = [
        event(i, "orders", [key], "r1--p..q", outputs=[step("orders", "output", content)])
        for i, key, content in ((1, "p", "a"), (2, "q", "b"))
    ]
    sums = {"row_count": 2, "hash_scope": "stored_table"}
    both = (("p", 1), ("q", 2))
    added = [str(ord("a") + ord("b")), "2"]
    assert custody(instance, apart, read("x", *both, lane_sums=added, **sums))[0] == "custody_held"
    assert custody(instance, apart, read("x", *both, lane_sums=["7", "2"], **sums))[0] == "custody_broken"
    assert custody(instance, apart, read("a", ("p", 1)))[0] == "custody_held"
    assert custody(instance, apart, read("b", ("p", 1)))[0] == "custody_broken"


def test_a_producer_that_is_gone(instance: DagsterInstance) -> None:
    kind, text = custody(instance, [], read("a", ("p", 1)))
    assert kind == "custody_not_judged"
    assert "(p)" in text
