"""Hashes that are made beside the step are of what was read and stored, whatever happens to it meanwhile."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from dagster import FilesystemIOManager, InMemoryIOManager, InputContext, IOManager, OutputContext, asset

from ubunye_orchestrate.dagster_io import values, wrapper
from ubunye_orchestrate.dagster_io.values import snapshot
from ubunye_orchestrate.dagster_io.wrapping import with_receipts
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project

FRAME = pd.DataFrame({"x": range(1000), "name": ["ann", "bob"] * 500})
HASH = fingerprint(FRAME).data_hash


@asset
def raw() -> pd.DataFrame:
    return FRAME.copy()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Hashing beside the step waits until it is told to go on; hashing within it does not."""
    go_on = threading.Event()
    hash_now = values.fingerprint_value

    def waiting(value: object, *args: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            assert go_on.wait(60)
        return hash_now(value, *args)

    monkeypatch.setattr(wrapper, "fingerprint_value", waiting)
    return go_on


def test_an_asset_may_change_what_it_read(project: Project, slow: threading.Event) -> None:
    @asset
    def doubled(raw: pd.DataFrame) -> pd.DataFrame:
        raw["x"] *= 2
        raw.loc[0, "name"] = "cat"
        slow.set()
        return raw

    class Shared(IOManager):
        """Hands over the very frame that it was given to keep."""

        def __init__(self) -> None:
            self.kept: dict[Any, Any] = {}

        def handle_output(self, context: OutputContext, obj: Any) -> None:
            slow.set()
            self.kept[context.asset_key] = obj

        def load_input(self, context: InputContext) -> Any:
            slow.clear()
            return self.kept[context.asset_key]

    project.run([raw, doubled], with_receipts(Shared(), project.receipts))
    assert project.receipt("raw").outputs[0].data_hash == HASH
    assert project.receipt("doubled").inputs[0].data_hash == HASH
    expected = FRAME.assign(x=FRAME["x"] * 2)
    expected.loc[0, "name"] = "cat"
    assert project.receipt("doubled").outputs[0].data_hash == fingerprint(expected).data_hash


def test_an_io_manager_may_change_what_it_stores(project: Project, slow: threading.Event) -> None:
    class Changing(InMemoryIOManager):
        def handle_output(self, context: OutputContext, obj: Any) -> None:
            obj["x"] = 0
            slow.set()
            super().handle_output(context, obj)

    project.run([raw], with_receipts(Changing(), project.receipts))
    assert project.receipt("raw").outputs[0].data_hash == HASH


def test_a_step_that_fails_has_the_hash_of_what_it_read(project: Project, tmp_path: Path) -> None:
    @asset
    def broken(raw: pd.DataFrame) -> pd.DataFrame:
        raise ValueError("no")

    manager = with_receipts(FilesystemIOManager(base_dir=str(tmp_path / "data")), project.receipts)
    project.run([raw, broken], manager, raise_on_error=False)
    (record,) = project.mirrored("broken")
    assert (record.status, [step.data_hash for step in record.inputs]) == ("error", [HASH])


def test_hashing_that_fails_fails_nothing_else(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any) -> Any:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(wrapper, "fingerprint_value", failing)

    @asset
    def copied(raw: pd.DataFrame) -> pd.DataFrame:
        return raw

    result = project.run([raw, copied], with_receipts(InMemoryIOManager(), project.receipts))
    assert result.success
    assert "a fault of ours" in project.log(result)
    record = project.receipt("copied")
    for step in (*record.inputs, *record.outputs):
        assert step.data_hash is None
        assert step.hash_error is not None
        assert step.hash_error.startswith("hashing failed")


@pytest.mark.parametrize(
    "column",
    [
        ["a", None, "b"],
        [1, 2, 3],
        [decimal.Decimal("1.5"), None, decimal.Decimal("2")],
        [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 2)],
        pd.Series(["a", "b", None], dtype="category"),
        pd.Series([1, 2, None], dtype="Int64"),
        pd.date_range("2024-01-01", periods=3, tz="UTC"),
    ],
)
def test_a_snapshot_stays_as_it_was(column: Any) -> None:
    frame = pd.DataFrame({"x": column, "y": [1.5, 2.5, 3.5]})
    before = fingerprint(frame).data_hash
    taken = snapshot(frame)
    frame.loc[0, "y"] = 0.0
    frame.loc[0, "x"] = frame.loc[1, "x"]
    frame.drop(columns="x", inplace=True)
    assert before is not None
    assert fingerprint(taken).data_hash == before


def test_a_snapshot_of_polars_stays_as_it_was() -> None:
    frame = pl.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    before = fingerprint(frame).data_hash
    taken = snapshot(frame)
    frame[0, "x"] = 5
    frame.insert_column(0, pl.Series("z", [0, 0]))
    assert fingerprint(taken).data_hash == before


class Own(pd.DataFrame):
    """Somebody's frame, whose copy may be anything."""


def with_attributes() -> pd.DataFrame:
    frame = FRAME.copy()
    frame.attrs["open"] = threading.Lock()  # cannot be copied
    return frame


@pytest.mark.parametrize(
    "value",
    [
        pd.DataFrame({"x": [[1], [2]]}),
        pd.DataFrame({"x": [{"a": 1}]}),
        pd.DataFrame({"x": [bytearray(b"a")]}),
        pd.DataFrame({"x": range(100_000)}),
        pl.DataFrame({"x": range(100_000)}),
        Own(FRAME),
        with_attributes(),
        FRAME.to_dict(),
        None,
    ],
    ids=["lists", "mappings", "bytes", "large", "large polars", "subclass", "attributes", "dict", "None"],
)
def test_there_is_no_snapshot_of_what_may_change_or_is_large(value: object) -> None:
    assert snapshot(value) is None


def test_a_forked_process_has_threads_of_its_own() -> None:
    script = (
        "import os\n"
        "from ubunye_orchestrate.dagster_io.aside import aside\n"
        "assert aside(int, '5').result() == 5\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(aside(int, '7').result(timeout=30))\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=120)
