"""Records outside Dagster: the same place, the same identity, and never in the run's way."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from ubunye.core.runtime import EngineContext

from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.paths import task_name_for_asset
from ubunye_orchestrate.records.recorder import LineageRecorder
from ubunye_orchestrate.records.store import RecordStore

FRAME = pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", None]})


def double(frame: pd.DataFrame) -> pd.DataFrame:
    """The work of these tests."""
    return pd.concat([frame, frame])


@pytest.fixture
def recorder(tmp_path: Path) -> LineageRecorder:
    return LineageRecorder(root=str(tmp_path), usecase="shop", package="sales", profile="dev")


def test_a_run_leaves_a_complete_record(recorder: LineageRecorder, tmp_path: Path) -> None:
    with recorder.run(
        "totals", function=double, config={"limit": 5}, variables={"dt": "2024-01-01", "api_token": "t"}
    ) as run:
        with run.timed("read", input="orders"):
            orders = run.read("orders", FRAME, format="parquet", location="s3://k:secret@b/orders")
        assert orders is FRAME
        assert run.wrote("totals", double(orders)) is not None
    record = RecordStore(tmp_path).load("shop", "sales", "totals", run.run_id)
    assert record == run.record
    assert run.path == str(tmp_path / ".ubunye/lineage/shop/sales/totals" / f"{run.run_id}.json")
    assert (record.task_path, record.profile, record.status) == ("shop/sales/totals", "dev", "success")
    assert record.error is None
    (order,), (total,) = record.inputs, record.outputs
    assert order.data_hash == fingerprint(FRAME).data_hash
    assert order.location == "s3://k:***@b/orders"
    assert (order.row_count, total.row_count) == (3, 6)
    assert (total.hash_basis, total.hash_scope) == ("materialised", "passed_rows")
    assert record.backend == "pandas"
    assert record.variables == {"dt": "2024-01-01", "api_token": "***"}
    assert record.code is not None
    assert record.code["function"].endswith("test_recorder:double")
    assert record.code["error"] is None
    assert record.code_hash is not None
    assert record.config_hash is not None
    assert record.environment is not None
    assert record.environment_hash is not None
    assert [(timing["step"], timing["input"]) for timing in record.timings] == [("read", "orders")]
    assert record.started_at is not None
    assert record.ended_at is not None
    assert record.started_at <= record.ended_at


def test_a_failed_run_keeps_what_it_read_and_its_own_exception(recorder: LineageRecorder) -> None:
    run = recorder.run("totals")

    def work() -> None:
        with run:
            run.read("orders", FRAME)
            with run.timed("transform"):
                raise ValueError("cannot reach postgres://u:p4ss@h/db")

    with pytest.raises(ValueError, match="p4ss"):
        work()
    assert run.record is not None
    assert run.record.status == "error"
    assert run.record.error == "ValueError: cannot reach postgres://u:***@h/db"
    assert [step.name for step in run.record.inputs] == ["orders"]
    assert run.record.outputs == []
    assert [timing["step"] for timing in run.record.timings] == ["transform"]


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("totals", "totals"),
        ("raw/flights", "raw__flights"),
        ("raw__flights", "raw__flights"),
        (["raw", "flights"], "raw__flights"),
        (["a__b"], task_name_for_asset(["a__b"])),
        ("my task", "my%20task"),
        ("../x", "%2E%2E__x"),
    ],
)
def test_the_identity_is_that_of_the_asset(
    recorder: LineageRecorder, task: str | list[str], name: str
) -> None:
    with recorder.run(task, run_id="r", partition_keys=["2024-01-01"]) as run:
        pass
    assert (run.task_name, run.run_id) == (name, "r--2024-01-01")
    assert recorder.store.load("shop", "sales", name, "r--2024-01-01") == run.record


def test_inputs_are_left_without_a_hash_when_asked(tmp_path: Path) -> None:
    recorder = LineageRecorder(root=str(tmp_path), hash_inputs=False)
    with recorder.run("t") as run:
        run.read("orders", FRAME)
        run.wrote("out", FRAME)
    assert run.record is not None
    (order,), (out,) = run.record.inputs, run.record.outputs
    assert (order.data_hash, order.hash_error) == (None, "not hashed: hash_inputs is off")
    assert out.data_hash is not None


def test_sample_fraction_is_ignored_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="sample_fraction is ignored"):
        recorder = LineageRecorder(root=str(tmp_path), sample_fraction=0.01)
    with recorder.run("t") as run:
        run.wrote("out", FRAME)
    assert run.record is not None
    assert run.record.outputs[0].row_count == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LineageRecorder(root=str(tmp_path))


def test_naive_timestamps_are_read_as_the_recorder_is_told(tmp_path: Path) -> None:
    frame = pd.DataFrame({"at": pd.to_datetime(["2024-01-01"])})
    for zone, kind in (("ntz", "timestamp_ntz"), ("UTC", "timestamp")):
        with LineageRecorder(root=str(tmp_path), naive_timestamps=zone).run("t") as run:
            run.wrote("out", frame)
        assert run.record is not None
        assert run.record.outputs[0].columns == [("at", kind)]


def test_what_is_no_table_says_so(recorder: LineageRecorder) -> None:
    with recorder.run("t") as run:
        assert run.wrote("model", {"weights": [1]}) == {"weights": [1]}
    assert run.record is not None
    (model,) = run.record.outputs
    assert model.data_hash is None
    assert model.hash_error


UNTOUCHED: dict[str, tuple[Callable[[], Any], Callable[[Any], int], str]] = {
    "reader": (
        lambda: pa.table({"x": [1, 2, 3]}).to_reader(),
        lambda reader: reader.read_all().num_rows,
        "can be read only once",
    ),
    "scanner": (
        lambda: pads.dataset(pa.table({"x": [1, 2, 3]})).scanner(),
        lambda scanner: scanner.to_table().num_rows,
        "is not computed for its hash",
    ),
    "lazy": (
        lambda: pl.LazyFrame({"x": [1, 2, 3]}),
        lambda lazy: lazy.collect().height,
        "is not computed for its hash",
    ),
    "relation": (
        lambda: duckdb.sql("select random() as x from range(3)"),
        lambda relation: len(relation.fetchall()),
        "is not computed for its hash",
    ),
}


@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize("kind", UNTOUCHED)
def test_what_the_run_still_has_to_read_is_not_read_for_it(
    recorder: LineageRecorder, kind: str, side: str
) -> None:
    make, rows, reason = UNTOUCHED[kind]
    with recorder.run("t") as run:
        given = make()
        back = run.read("x", given) if side == "input" else run.wrote("x", given)
        assert back is given
        assert rows(back) == 3
    assert run.record is not None
    (step,) = run.record.inputs + run.record.outputs
    assert step.data_hash is None
    assert step.hash_error is not None
    assert reason in step.hash_error
    assert step.hash_basis is None
    assert run.record.backend == {"lazy": "polars", "relation": "duckdb"}.get(kind, "pyarrow")


def test_a_variable_that_a_record_cannot_hold_is_refused_before_the_run(recorder: LineageRecorder) -> None:
    with pytest.raises(ConfigurationError, match="variables, frame is a pandas"):
        recorder.run("t", variables={"frame": FRAME})


def test_a_mirror_out_of_reach_never_fails_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with LineageRecorder(root=str(tmp_path / "file")).run("t") as run:
        run.wrote("out", FRAME)
    assert run.path is None
    assert run.record is not None
    assert run.record.outputs[0].data_hash is not None
    assert "the record failed; the run is not affected" in caplog.text
    assert "NotADirectoryError" in caplog.text


def test_a_fault_of_the_hash_never_fails_the_run(
    recorder: LineageRecorder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("ubunye_orchestrate.hashing.api.fingerprint", broken)
    with recorder.run("t") as run:
        run.wrote("out", FRAME)
    assert run.record is not None
    assert run.record.outputs[0].hash_error == "hashing failed; see the log"
    assert any(record.exc_info for record in caplog.records)


def test_the_backend_is_the_first_frames(recorder: LineageRecorder) -> None:
    with recorder.run("t") as run:
        run.read("a", pa.table({"x": [1]}))
        run.wrote("b", FRAME)
    assert run.record is not None
    assert run.record.backend == "pyarrow"


class Plain:
    """A monitor of the first kind: it takes what there was then."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def task_start(self, *, context: Any, config: dict[str, Any]) -> None:
        self.calls.append(("start", {"run_id": context.run_id, "config": config}))

    def task_end(
        self,
        *,
        context: Any,
        config: dict[str, Any],
        outputs: dict[str, Any] | None,
        status: str,
        duration_sec: float,
    ) -> None:
        self.calls.append(("end", {"outputs": outputs, "status": status, "seconds": duration_sec}))


def test_monitors_get_what_they_take(tmp_path: Path) -> None:
    plain = Plain()
    seen: dict[str, Mapping[str, Any]] = {}

    class Some(Plain):
        def task_end(  # type: ignore[override]
            self, *, context: Any, config: Any, outputs: Any, status: str, duration_sec: float, timings: Any
        ) -> None:
            seen["some"] = {"timings": timings}

    class All(Plain):
        def task_end(self, **everything: Any) -> None:
            seen["all"] = everything

    recorder = LineageRecorder(root=str(tmp_path), monitors=[plain, Some(), All()])
    with recorder.run("t", config={"limit": 5}) as run:
        run.read("in", FRAME)
        with run.timed("transform"):
            pass
        run.wrote("out", FRAME)
    assert plain.calls[0] == ("start", {"run_id": run.run_id, "config": {"limit": 5}})
    assert plain.calls[1][1]["status"] == "success"
    assert plain.calls[1][1]["outputs"]["out"] is FRAME
    assert seen["some"]["timings"][0]["step"] == "transform"
    assert seen["all"]["inputs"]["in"] is FRAME
    assert seen["all"]["record"] == run.record
    assert seen["all"]["error"] is None


def test_a_monitor_that_raises_harms_neither_the_run_nor_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Raising(Plain):
        def task_start(self, **everything: Any) -> None:
            raise RuntimeError("start")

        def task_end(self, **everything: Any) -> None:
            raise RuntimeError("end")

    last = Plain()
    with LineageRecorder(root=str(tmp_path), monitors=[Raising(), last]).run("t") as run:
        run.wrote("out", FRAME)
    assert [name for name, _ in last.calls] == ["start", "end"]
    assert run.path is not None
    assert "task_start of Raising failed" in caplog.text
    assert "task_end of Raising failed" in caplog.text


def test_frames_are_let_go_without_monitors(recorder: LineageRecorder) -> None:
    with recorder.run("t") as run:
        run.read("in", FRAME)
        run.wrote("out", FRAME)
    assert run._frames == {"input": {}, "output": {}}


@pytest.mark.parametrize("status", ["success", "error"])
def test_it_serves_another_engine_as_a_monitor(recorder: LineageRecorder, status: str) -> None:
    context = EngineContext(run_id="r-1", profile="DEV", task_name="daily_totals", variables={"mode": "DEV"})
    recorder.task_start(context=context, config={"CONFIG": {}})
    recorder.task_end(
        context=context,
        config={"CONFIG": {}},
        outputs={"sales": FRAME} if status == "success" else None,
        status=status,
        duration_sec=1.0,
        inputs={"orders": FRAME},
        expectations=[{"output": "sales", "rule": "r", "passed": True}],
        timings=[{"step": "Reader:s3", "input": "orders", "seconds": 0.5}],
        error=None if status == "success" else "ValueError: password=x1",
        llm_calls=[],
    )
    record = recorder.store.load("shop", "sales", "daily_totals", "r-1")
    assert record.status == status
    assert record.inputs[0].data_hash == fingerprint(FRAME).data_hash
    assert record.expectations[0]["rule"] == "r"
    assert record.timings[0]["seconds"] == 0.5
    assert record.duration_sec == 1.0
    assert record.error == (None if status == "success" else "ValueError: password=***")
    assert record.variables == {"mode": "DEV"}


def test_an_end_without_a_start_is_logged(
    recorder: LineageRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        recorder.task_end(context=object(), config={}, outputs=None, status="success", duration_sec=0)
    assert "had not started" in caplog.text


def test_what_is_read_twice_under_one_name_is_in_the_record_twice(recorder: LineageRecorder) -> None:
    with recorder.run("t") as run:
        for rows in (1, 2):
            run.read("orders", FRAME.head(rows))
            run.wrote("out", FRAME.head(rows))
    assert run.record is not None
    assert [(step.name, step.row_count) for step in run.record.inputs] == [("orders", 1), ("orders", 2)]
    assert [(step.name, step.row_count) for step in run.record.outputs] == [("out", 1), ("out", 2)]


def test_a_run_of_the_same_id_is_another_try_of_it(tmp_path: Path) -> None:
    expected = ["r-1", "r-1.retry-1", "r-1.retry-2"]
    for rows, run_id in enumerate(expected):
        # The first one's record is found by another recorder too.
        recorder = LineageRecorder(root=str(tmp_path), usecase="shop", package="sales")
        with recorder.run("t", run_id="r-1") as run:
            run.wrote("out", FRAME.head(rows))
        assert run.run_id == run_id
        with recorder.run("another task", run_id="r-1") as other:
            pass
    assert other.run_id == expected[-1]
    found = recorder.store.list_runs("shop", "sales", "t")
    assert sorted((one.run_id, one.outputs[0].row_count) for one in found) == [
        (run_id, rows) for rows, run_id in enumerate(expected)
    ]


def test_runs_of_the_same_id_that_are_open_together_are_two(recorder: LineageRecorder) -> None:
    with recorder.run("t", run_id="r") as first, recorder.run("t", run_id="r") as second:
        pass
    assert [first.run_id, second.run_id] == ["r", "r.retry-1"]
    with recorder.run("t", run_id="r", partition_keys=["p"]) as third:
        pass
    assert third.run_id == "r--p"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"partition_keys": "abc"}, r"partition_keys got 'abc'; expected a list of texts: \['abc'\]"),
        ({"partition_keys": [date(2024, 1, 1)]}, "partition_keys got .*date"),
        ({"version": 3}, "version got 3; expected a text: '3'"),
        ({"run_id": 7}, "run_id got 7; expected a text: '7'"),
        ({"model": "other"}, "model got 'other'; expected 'etl' or 'ml'"),
        ({"config": ["geheim"]}, "config got a list; expected a dict"),
        ({"function": "double"}, "function got 'double'; expected a function"),
    ],
)
def test_what_a_record_cannot_hold_is_refused_before_the_run(
    recorder: LineageRecorder, given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        recorder.run("t", **given)


@pytest.mark.parametrize("task", [5, ["a", 5], [], ""])
def test_what_is_no_task_is_refused(recorder: LineageRecorder, task: Any) -> None:
    with pytest.raises(ConfigurationError, match="task got"):
        recorder.run(task)


def test_a_value_that_a_record_cannot_hold_does_not_cost_the_record(
    recorder: LineageRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    with recorder.run("t", variables={"mode": "full"}) as run:
        run.variables["spark"] = object()
        run.expectations.append({"rule": "few", "passed": True, "limit": float("nan"), "frame": FRAME})
        run.expectations.append("few rows")  # type: ignore[arg-type]
        run.timings.append({"step": "read", "seconds": 0.5, "by": object()})
    assert run.path is not None
    record = recorder.store.load("shop", "sales", "t", run.run_id)
    assert record.variables == {"mode": "full"}
    few, odd = record.expectations
    assert (few["rule"], few["passed"]) == ("few", True)
    assert set(few) == {"rule", "passed", "left_out"}
    assert [text.split(" is ")[0] for text in few["left_out"]] == [
        "expectations, limit",
        "expectations, frame",
    ]
    assert odd == {"left_out": ["expectations has a builtins.str in place of a mapping"]}
    assert record.timings[0]["seconds"] == 0.5
    assert set(record.timings[0]) == {"step", "seconds", "left_out"}
    assert "variables, spark is a builtins.object" in caplog.text
    assert "expectations, frame is a pandas" in caplog.text


def test_an_engines_own_values_do_not_cost_the_record(recorder: LineageRecorder) -> None:
    context = EngineContext(
        run_id="r-1", profile="DEV", task_name="t", variables={"mode": "DEV", "day": date(2024, 1, 1)}
    )
    recorder.task_start(context=context, config={})
    recorder.task_end(
        context=context,
        config={},
        outputs={"out": FRAME},
        status="error",
        duration_sec=1.0,
        inputs={"in": object()},
        expectations=[{"rule": "r", "passed": True, "bad": object()}],
        error=ValueError("password=x1"),  # type: ignore[arg-type]
    )
    record = recorder.store.load("shop", "sales", "t", "r-1")
    assert record.variables == {"mode": "DEV"}
    assert record.expectations[0]["passed"] is True
    assert record.error == "password=***"


def test_an_engine_may_run_several_tasks_of_one_run_at_once(recorder: LineageRecorder) -> None:
    contexts = [EngineContext(run_id="r-1", profile="DEV", task_name=name) for name in ("a", "b")]
    for context in contexts:
        recorder.task_start(context=context, config={})
    for context in contexts:
        recorder.task_end(context=context, config={}, outputs={}, status="success", duration_sec=1.0)
    assert [recorder.store.run_ids("shop", "sales", name) for name in ("a", "b")] == [["r-1"], ["r-1"]]


def test_a_location_may_be_a_path_and_no_name_reaches_the_run(recorder: LineageRecorder) -> None:
    odd: Any = 5
    with recorder.run("t") as run:
        run.read("a", FRAME, location=Path("/data/a"))
        run.read(odd, FRAME, format=odd)
        run.wrote("b", FRAME, scope=odd)
    assert run.record is not None
    assert [step.location for step in run.record.inputs] == ["/data/a", None]
    assert [step.data_hash for step in run.record.inputs] == [fingerprint(FRAME).data_hash] * 2
    assert [(step.name, step.format) for step in run.record.inputs] == [("a", None), ("5", "5")]
    assert run.path is not None


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["read", "wrote"])
def test_what_is_noted_outside_of_the_run_is_refused(recorder: LineageRecorder, call: str, when: str) -> None:
    run = recorder.run("t")
    if when == "after":
        with run:
            pass
    with pytest.raises(ConfigurationError, match=f"run.{call} of t was called {when} its block"):
        getattr(run, call)("x", FRAME)


def test_a_run_is_entered_once(recorder: LineageRecorder) -> None:
    with recorder.run("t") as run:
        pass
    with pytest.raises(ConfigurationError, match="a run of t was entered a second time"), run:
        pass


def test_closing_twice_changes_nothing(recorder: LineageRecorder) -> None:
    with recorder.run("t") as run:
        run.close()
        first = run.record
    run.close(error="late")
    assert run.record is first


def test_nothing_heavy_is_loaded_until_a_frame_is_hashed(tmp_path: Path) -> None:
    code = (
        "import sys; from ubunye_orchestrate.records.recorder import LineageRecorder\n"
        f"with LineageRecorder(root={str(tmp_path)!r}).run('t'): pass\n"
        "print([name for name in ('pandas', 'pyarrow', 'dagster', 'fsspec') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    (path,) = tmp_path.rglob("*.json")
    assert json.loads(path.read_text())["status"] == "success"


def test_a_function_is_anything_that_is_called(recorder: LineageRecorder) -> None:
    functions: list[Callable[..., object]] = [len, double]
    errors = []
    for function in functions:
        with recorder.run("t", function=function) as run:
            pass
        assert run.record is not None
        assert run.record.code is not None
        errors.append(run.record.code["error"])
    assert errors == ["a builtins.builtin_function_or_method has no Python source", None]
