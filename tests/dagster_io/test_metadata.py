"""The compact receipt: small enough for an event log, honest about what was cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dagster import JsonMetadataValue, MetadataValue

from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.drift import judge
from ubunye_orchestrate.dagster_io.receipts.metadata import (
    MAX_RECEIPT_BYTES,
    RECEIPT,
    compact_receipt,
    free_names,
    receipt_of,
    table_metadata,
)
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.records.model import Environment, Producer, RunRecord, StepRecord

HASH = "sha256:" + "0" * 64


def a_step(name: str, direction: Any = "input", columns: int = 0, data_hash: str = HASH) -> StepRecord:
    return StepRecord(
        name=name,
        direction=direction,
        row_count=3,
        data_hash=data_hash,
        schema_hash=HASH,
        lane_sums=("1", "2"),
        hash_method="rows-v1",
        hash_scope="stored_table",
        location=f"/data/{name}.parquet",
        producer=[Producer(storage_id=1, run_id="r")] if direction == "input" else None,
        columns=[(f"column_{i}", "decimal(38,18)") for i in range(columns)] or None,
    )


def a_record(
    inputs: int = 1, columns: int = 2, functions: int = 1, output_hash: str = HASH, **kwargs: Any
) -> RunRecord:
    return RunRecord(
        run_id="r",
        task_path="u/p/t",
        usecase="u",
        package="p",
        task_name="t",
        config_hash=HASH,
        inputs=[a_step(f"input_{i}", columns=columns) for i in range(inputs)],
        outputs=[a_step("t", "output", columns, output_hash)],
        environment=Environment(python="3.11", packages={"pandas": "2"}),
        environment_hash=HASH,
        code={"function": "m:f", "functions": {f"m:f{i}": HASH for i in range(functions)}, "error": None},
        dagster={"declared_inputs": [f"input_{i}" for i in range(inputs)], "partition_keys": []},
        **kwargs,
    )


def read_back(receipt: dict[str, Any]) -> RunRecord:
    record = receipt_of({RECEIPT: MetadataValue.json(receipt)}, source="the event")
    assert record is not None
    return record


def test_a_small_one_is_whole() -> None:
    record = a_record()
    receipt = compact_receipt(record, "/mirror/r.json")
    assert "cut" not in receipt
    assert receipt["record_path"] == "/mirror/r.json"
    back = read_back(receipt)
    assert back.inputs == record.inputs
    assert back.outputs == record.outputs
    assert back.environment == record.environment
    assert judge(compare_records(record, back)).findings == ()


CUTS: dict[str, tuple[RunRecord, list[str]]] = {
    "wide": (a_record(columns=3_000), ["columns"]),
    "expectations": (
        a_record(expectations=[{"rule": f"rule {i}", "detail": "x" * 200} for i in range(500)]),
        ["columns", "expectations"],
    ),
    "many inputs": (a_record(inputs=180), ["columns", "details of inputs"]),
    "much code": (a_record(functions=1_000), ["columns", "details of inputs", "functions"]),
    "500 wide inputs": (
        a_record(inputs=500, columns=20),
        ["columns", "details of inputs", "functions", "inputs"],
    ),
    "a long error": (a_record(inputs=0, functions=0, error="x" * 100_000), ["columns", "functions", "error"]),
}


@pytest.mark.parametrize("kind", CUTS)
def test_columns_and_expectations_are_cut_first_and_it_says_what_was(kind: str) -> None:
    record, cut = CUTS[kind]
    receipt = compact_receipt(record, "/mirror/r.json")
    assert len(json.dumps(receipt, separators=(",", ":"))) <= MAX_RECEIPT_BYTES
    assert receipt["cut"] == cut
    assert receipt["record_path"] == "/mirror/r.json"
    back = read_back(receipt)
    assert back.outputs[0].data_hash == HASH
    assert back.outputs[0].lane_sums == ("1", "2")


@pytest.mark.parametrize("kind", ["much code", "500 wide inputs"])
def test_what_was_cut_is_unknown_and_never_equal(kind: str) -> None:
    record, _ = CUTS[kind]
    before = read_back(compact_receipt(record, None))
    changed = record.model_copy(update={"outputs": [a_step("t", "output", data_hash="sha256:" + "1" * 64)]})
    verdict = judge(compare_records(before, read_back(compact_receipt(changed, None))))
    kinds = {finding.kind for finding in verdict.findings}
    assert "not_attributable" in kinds
    assert "unexplained" not in kinds


def test_no_receipt_is_none_and_another_programs_is_refused() -> None:
    assert receipt_of({}, source="the event") is None
    with pytest.raises(
        InvalidRecordError, match="the event: ubunye/receipt is TextMetadataValue; expected JSON"
    ):
        receipt_of({RECEIPT: MetadataValue.text("x")}, source="the event")
    with pytest.raises(InvalidRecordError, match="the event: found a JSON object without run_id"):
        receipt_of({RECEIPT: JsonMetadataValue({"a": 1})}, source="the event")


def test_the_users_names_stay_theirs() -> None:
    ours = {
        "dagster/row_count": MetadataValue.int(3),
        "ubunye/receipt": MetadataValue.text("r"),
        "path": MetadataValue.path("/"),
    }
    assert free_names(ours, {}) == ours
    assert free_names(ours, {"dagster/row_count": 1, "ubunye/receipt": 2}) == {
        "ubunye/receipt (receipt)": MetadataValue.text("r"),
        "path": MetadataValue.path("/"),
    }
    assert free_names(ours, dict.fromkeys([*ours, "ubunye/receipt (receipt)"])) == {}


def a_print(columns: int) -> Fingerprint:
    names = sorted((f"c{i}", "int64") for i in range(columns))
    return Fingerprint(HASH, HASH, 3, (1, 2), tuple(names), None, 0.1, "pyarrow")


def test_the_schema_is_in_the_frames_order_and_left_out_when_it_is_huge() -> None:
    shown = table_metadata(a_print(3), ["c2", "c0", "c1"], partitioned=False)
    assert [c.name for c in shown["dagster/column_schema"].value.columns] == ["c2", "c0", "c1"]
    # An order that does not name each column once is not the frame's.
    shown = table_metadata(a_print(3), ["c2"], partitioned=True)
    assert [c.name for c in shown["dagster/column_schema"].value.columns] == ["c0", "c1", "c2"]
    assert shown["dagster/partition_row_count"].value == 3
    assert "dagster/column_schema" not in table_metadata(a_print(1_001), [], partitioned=False)
