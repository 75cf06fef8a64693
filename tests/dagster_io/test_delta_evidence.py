"""A commit of a Delta table as evidence, in the forms in which its readers give it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from ubunye_orchestrate.dagster_io.receipts.delta_evidence import (
    CommitNote,
    commit_note,
    delta_version,
    is_delta_version,
    note_of_commit,
)

MOMENT = datetime(2024, 3, 1, 11, 30, 0, 250_000, tzinfo=timezone.utc)
BY_DELTA_RS: dict[str, Any] = {
    "timestamp": 1709292600250,
    "operation": "WRITE",
    "operationMetrics": {"num_added_rows": 3, "execution_time_ms": 29},
    "version": 7,
}
BY_SPARK: dict[str, Any] = {
    "version": 7,
    "timestamp": MOMENT.astimezone().replace(tzinfo=None),
    "operation": "WRITE",
    "operationMetrics": {"num_added_rows": "3", "execution_time_ms": "29"},
    "userMetadata": None,
    "userId": None,
}


@pytest.mark.parametrize("commit", [BY_DELTA_RS, BY_SPARK], ids=["delta-rs", "spark"])
def test_both_readers_of_a_log_give_one_version(commit: dict[str, Any]) -> None:
    assert delta_version(commit) == {
        "kind": "delta",
        "version": 7,
        "timestamp": "2024-03-01T11:30:00.250000+00:00",
        "operation": "WRITE",
        "metrics": {"execution_time_ms": 29, "num_added_rows": 3},
    }


def test_a_commit_that_says_little_is_still_a_version() -> None:
    assert delta_version({"version": 0}) == {
        "kind": "delta",
        "version": 0,
        "timestamp": None,
        "operation": None,
        "metrics": {},
    }
    zoned = MOMENT.astimezone(timezone(timedelta(hours=-5)))
    odd = {
        "version": 1,
        "timestamp": zoned,
        "operationMetrics": {"a": "-1", "b": "1.5", "c": '{"d":1}', "e": "²"},
    }
    found = delta_version(odd)
    assert found["timestamp"] == "2024-03-01T11:30:00.250000+00:00"
    assert found["metrics"] == {"a": -1, "b": "1.5", "c": '{"d":1}', "e": "²"}
    assert json.loads(json.dumps(found)) == found


def test_versions_are_told_apart_by_number_and_kind() -> None:
    assert is_delta_version(delta_version(BY_DELTA_RS), 7)
    assert not is_delta_version(delta_version(BY_DELTA_RS), 8)
    assert not is_delta_version({"kind": "files", "version": 7}, 7)
    assert not is_delta_version(None, 7)


def test_a_commit_names_its_run_and_receipt() -> None:
    text = commit_note("0af1", "shop/orders", ["2024-01-01", "ü"], "shop/default/shop__orders/0af1")
    assert note_of_commit({"version": 1, "userMetadata": text}) == CommitNote(
        "0af1", "shop/orders", ("2024-01-01", "ü"), "shop/default/shop__orders/0af1"
    )
    assert note_of_commit({"userMetadata": commit_note("0af1", None)}) == CommitNote("0af1", None, (), None)


def test_a_long_range_is_cut_and_counted() -> None:
    text = commit_note("0af1", "orders", [str(i) for i in range(5000)])
    assert json.loads(text)["partition_count"] == 5000
    note = note_of_commit({"userMetadata": text})
    assert note is not None
    assert len(note.partitions) == 100


@pytest.mark.parametrize(
    "text", [None, "", "by hand", "17", "[]", '{"run_id":"x"}', '{"ubunye":1}', '{"ubunye":1,"run_id":3}', 5]
)
def test_other_commits_name_no_run(text: Any) -> None:
    assert note_of_commit({"version": 1, "userMetadata": text}) is None
    assert note_of_commit({"version": 1}) is None
