"""A table whose hash would cost too much has none, and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.budget import BudgetedStream, HashBudget, fingerprint_within
from ubunye_orchestrate.records.recorder import LineageRecorder
from ubunye_orchestrate.records.settings import resolve_settings

TABLE = pa.table({"id": range(300_000)})
FRAMES = [TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE), pl.from_arrow(TABLE).lazy(), TABLE.to_reader]  # type: ignore[union-attr]


@pytest.mark.parametrize("frame", FRAMES)
def test_within_its_budget_a_frame_has_its_hash(frame: Any) -> None:
    frame = frame() if callable(frame) else frame
    found = fingerprint_within(frame, "ntz", HashBudget(rows=300_000, seconds=600))
    assert found.data_hash == fingerprint(TABLE).data_hash
    assert found.row_count == 300_000


@pytest.mark.parametrize("frame", FRAMES)
def test_above_it_there_is_none(frame: Any) -> None:
    for budget, says in (
        (HashBudget(rows=299_999), "not hashed: over budget (more than 299,999 rows)"),
        (HashBudget(seconds=0), "not hashed: over budget (more than 0 s)"),
    ):
        found = fingerprint_within(frame() if callable(frame) else frame, "ntz", budget)
        assert (found.data_hash, found.lane_sums, found.error) == (None, None, says)
        assert found.row_count in (None, 300_000)


def test_a_frame_that_is_known_to_be_too_long_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ubunye_orchestrate.hashing.frames.arrow_stream", None)
    assert fingerprint_within(TABLE, "ntz", HashBudget(rows=5)).row_count == 300_000
    assert "over budget" in str(fingerprint_within(TABLE.to_pandas(), "ntz", HashBudget(rows=5)).error)


def test_what_cannot_be_hashed_says_why_with_a_budget_too() -> None:
    budget = HashBudget(seconds=600)
    assert fingerprint_within({"a": 1}, "ntz", budget).error == "not a table (dict)"
    mixed = fingerprint_within(pd.DataFrame({"a": [1, "x", object()]}), "ntz", budget)
    assert mixed.data_hash is None
    assert mixed.error is not None
    assert "'a'" in mixed.error


def test_a_writer_gets_every_row_also_when_hashing_was_given_up() -> None:
    stream = BudgetedStream(TABLE.schema, TABLE.to_batches(), HashBudget(seconds=0))
    assert pa.Table.from_batches(list(stream)).equals(TABLE)
    assert stream.fingerprint().row_count == 300_000
    assert stream.fingerprint().data_hash is None
    empty = BudgetedStream(TABLE.schema, TABLE.slice(0, 0).to_batches(), HashBudget(seconds=9))
    assert not list(empty)
    assert empty.fingerprint().data_hash == fingerprint(TABLE.slice(0, 0)).data_hash


def test_a_recorder_keeps_to_it(tmp_path: Path) -> None:
    recorder = LineageRecorder(root=str(tmp_path), max_hash_rows=2)
    with recorder.run("task") as run:
        run.wrote("small", pd.DataFrame({"a": [1, 2]}))
        run.wrote("large", pd.DataFrame({"a": [1, 2, 3]}))
    assert run.record is not None
    small, large = run.record.outputs
    assert small.data_hash is not None
    assert (large.data_hash, large.row_count) == (None, 3)
    assert large.hash_error == "not hashed: over budget (more than 2 rows)"


@pytest.mark.parametrize("name", ["max_hash_rows", "max_hash_seconds"])
@pytest.mark.parametrize("value", [-1, "5", True, float("nan")])
def test_a_budget_that_cannot_work_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=name):
        resolve_settings(str(tmp_path), **{name: value})
