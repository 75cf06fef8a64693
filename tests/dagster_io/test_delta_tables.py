"""The Delta IO manager: what was committed is what is read, version by version."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dagster import (
    AssetIn,
    AssetOut,
    AssetSelection,
    InMemoryIOManager,
    StaticPartitionsDefinition,
    asset,
    job,
    multi_asset,
    op,
)

from ubunye_orchestrate.dagster_io.drift.integrity import build_integrity_checks
from ubunye_orchestrate.dagster_io.receipts.delta_evidence import note_of_commit
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapping import with_receipts
from ubunye_orchestrate.dagster_io.storage import delta
from ubunye_orchestrate.dagster_io.storage.io_managers import DeltaIOManager
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.hashing.api import arrow_table, fingerprint

from .conftest import Project

pytestmark = pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")

RANGE_TAGS = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def between(first: str, last: str) -> dict[str, str]:
    return dict(zip(RANGE_TAGS, (first, last), strict=True))


@pytest.fixture
def manager(project: Project, tmp_path: Path) -> DeltaIOManager:
    return DeltaIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)


def history(folder: Path) -> list[dict[str, Any]]:
    return deltalake.DeltaTable(str(folder)).history()


def rows(folder: Path) -> list[dict[str, Any]]:
    found = pa.RecordBatchReader.from_stream(deltalake.DeltaTable(str(folder)).scan()).read_all()
    return sorted(found.to_pylist(), key=lambda row: sorted((k, str(v)) for k, v in row.items()))


def message(result: Any, node: str) -> str:
    return str(result.failure_data_for_node(node))


# --------------------------------------------------------------------------- forms

TABLE = pa.table({"x": [1, 2, 3], "y": ["a", None, "c"]})
TABLE_HASH = fingerprint(TABLE).data_hash


def a_reader() -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=1))


STORED: dict[str, tuple[Callable[[], Any], str]] = {
    "pandas": (lambda: pd.DataFrame({"x": [1, 2, 3], "y": ["a", None, "c"]}), "pandas"),
    "table": (lambda: TABLE, "pyarrow"),
    "reader": (a_reader, "pyarrow"),
    "polars": (lambda: pl.from_arrow(TABLE), "polars"),
    "lazy": (lambda: pl.from_arrow(TABLE).lazy(), "polars"),  # type: ignore[union-attr]
    "relation": (lambda: duckdb.from_arrow(TABLE), "duckdb"),
}


@pytest.mark.parametrize("kind", STORED)
def test_every_kind_of_table_is_committed_and_hashed_on_its_way(
    kind: str, manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    make, backend = STORED[kind]

    @asset
    def table() -> Any:
        return make()

    project.run([table], manager)
    receipt = project.receipt("table")
    stored = receipt.outputs[0]
    assert (stored.data_hash, stored.row_count, stored.hash_basis) == (TABLE_HASH, 3, "materialised")
    assert (stored.format, stored.hash_scope, receipt.backend) == ("delta", "stored_table", backend)
    assert stored.location == str(tmp_path / "data" / "table")
    assert rows(tmp_path / "data" / "table") == TABLE.to_pylist()
    assert project.metadata("table")["path"] == stored.location


LOADED: dict[str, tuple[Any, type, str]] = {
    "none": (Any, pd.DataFrame, "materialised"),
    "pandas": (pd.DataFrame, pd.DataFrame, "materialised"),
    "table": (pa.Table, pa.Table, "materialised"),
    "reader": (pa.RecordBatchReader, pa.RecordBatchReader, "recomputed"),
    "polars": (pl.DataFrame, pl.DataFrame, "materialised"),
    "lazy": (pl.LazyFrame, pl.LazyFrame, "materialised"),
}


@pytest.mark.parametrize("kind", LOADED)
def test_the_annotation_decides_what_is_loaded(kind: str, manager: DeltaIOManager, project: Project) -> None:
    annotation, expected, basis = LOADED[kind]
    seen: list[Any] = []

    @asset
    def table() -> pa.Table:
        return TABLE

    def user(table: Any) -> pd.DataFrame:
        seen.append(arrow_table(table))
        assert isinstance(table, expected)
        return pd.DataFrame({"rows": [1]})

    # Dagster reads the annotation when it makes the asset.
    user.__annotations__["table"] = annotation
    plain = with_receipts(InMemoryIOManager(), project.receipts)
    project.run([table, asset(io_manager_key="plain")(user)], manager, resources={"plain": plain})
    assert seen[0].to_pylist() == TABLE.to_pylist()
    step = project.receipt("user").inputs[0]
    assert (step.data_hash, step.hash_basis, step.row_count) == (TABLE_HASH, basis, 3)
    assert (step.format, step.hash_scope, step.source_changed) == ("delta", "stored_table", False)
    assert step.source_version == project.receipt("table").outputs[0].source_version
    assert step.source_note is not None
    assert step.source_note.endswith("pinned to version 0, for the hash and for the asset")


def test_an_annotation_that_it_does_not_make_is_refused(manager: DeltaIOManager, project: Project) -> None:
    @asset
    def table() -> pa.Table:
        return TABLE

    @asset
    def user(table: int) -> None: ...

    result = project.run([table, user], manager, raise_on_error=False)
    assert "DeltaIOManager loads pd.DataFrame" in message(result, "user")


def test_whole_numbers_beside_nulls_keep_their_digits_in_pandas(
    manager: DeltaIOManager, project: Project
) -> None:
    seen: list[pd.DataFrame] = []

    @asset
    def first() -> pd.DataFrame:
        return pd.DataFrame({"big": pd.array([2**63 - 1, None], dtype="Int64"), "f": [1.5, None]})

    @asset
    def second(first: pd.DataFrame) -> pd.DataFrame:
        seen.append(first)
        return first

    project.run([first, second], manager)
    assert seen[0]["big"].tolist()[0] == 2**63 - 1
    assert seen[0].dtypes.astype(str).to_dict() == {"big": "Int64", "f": "float64"}
    assert project.receipt("second").outputs[0].data_hash == project.receipt("first").outputs[0].data_hash


def test_indexes_become_columns_by_one_rule(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    named = pd.DataFrame({"x": [1, 2]}, index=pd.Index(["a", "b"], name="key"))
    levels = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", "n"])
    odd = pd.DataFrame({"x": [1, 2]}, index=[7, 9])

    @multi_asset(outs={"named": AssetOut(), "levels": AssetOut(), "odd": AssetOut()})
    def three() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        return named, pd.DataFrame({"x": [1, 2]}, index=levels), odd

    project.run([three], manager)
    assert rows(tmp_path / "data" / "named") == [{"key": "a", "x": 1}, {"key": "b", "x": 2}]
    assert rows(tmp_path / "data" / "levels") == [{"k": "a", "n": 1, "x": 1}, {"k": "b", "n": 2, "x": 2}]
    assert rows(tmp_path / "data" / "odd") == [{"x": 1}, {"x": 2}]


def test_what_is_no_table_is_refused(manager: DeltaIOManager, project: Project, tmp_path: Path) -> None:
    @asset
    def number() -> Any:
        return 17

    @asset
    def nothing() -> Any:
        return None

    result = project.run([number, nothing], manager, raise_on_error=False)
    assert "got a int; DeltaIOManager stores tables" in message(result, "number")
    assert "got None; expected a table" in message(result, "nothing")
    assert not (tmp_path / "data" / "number").exists()


def test_a_table_without_a_hash_is_committed_and_says_why(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    @asset
    def table() -> pa.Table:
        keys = pa.array([[(b"k", 1)]], pa.map_(pa.binary(), pa.int8()))
        return pa.table({"odd": keys})

    project.run([table], manager)
    stored = project.receipt("table").outputs[0]
    assert stored.data_hash is None
    assert stored.hash_error is not None
    assert stored.hash_error.startswith("column 'odd' (map<binary, int8>)")
    assert len(rows(tmp_path / "data" / "table")) == 1


def test_the_users_own_error_in_a_lazy_table_is_the_runs_error(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    class OwnError(Exception): ...

    def batches() -> Any:
        yield TABLE.to_batches()[0]
        raise OwnError("the source is gone")

    @asset
    def table() -> Any:
        return pa.RecordBatchReader.from_batches(TABLE.schema, batches())

    result = project.run([table], manager, raise_on_error=False)
    assert not result.success
    assert "the source is gone" in message(result, "table")
    assert not deltalake.DeltaTable.is_deltatable(str(tmp_path / "data" / "table"))


def test_a_lazy_table_may_read_another_delta_table_while_it_is_written(
    manager: DeltaIOManager, project: Project
) -> None:
    @asset
    def first() -> pa.Table:
        return TABLE

    @asset
    def second(first: pa.RecordBatchReader) -> pa.RecordBatchReader:
        made_in = threading.get_ident()

        def batches() -> Any:
            for batch in first:
                assert threading.get_ident() == made_in
                yield batch

        return pa.RecordBatchReader.from_batches(first.schema, batches())

    project.run([first, second], manager)
    assert project.receipt("second").outputs[0].data_hash == TABLE_HASH


# --------------------------------------------------------------------------- versions


def test_each_run_is_a_commit_that_names_it_and_the_receipt_names_the_version(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    frames = [pd.DataFrame({"x": [1]}), pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"other": ["a"]})]

    @asset(key_prefix="shop", group_name="sales")
    def orders() -> pd.DataFrame:
        return frames.pop(0)

    for number in range(3):
        run = project.run([orders], manager)
        stored = project.receipt("shop/orders").outputs[0]
        commit = history(tmp_path / "data" / "shop" / "orders")[0]
        assert stored.source_version is not None
        assert stored.source_version["version"] == commit["version"] == number
        assert stored.source_version["operation"] == "WRITE"
        assert stored.source_version["metrics"]["num_added_rows"] == stored.row_count
        note = note_of_commit(commit)
        assert note is not None
        assert (note.run_id, note.asset) == (run.run_id, "shop/orders")
        # The receipt that the commit names can be opened.
        usecase, package, task, record = (note.receipt or "").split("/")
        assert project.store.load(usecase, package, task, record).outputs[0].data_hash == stored.data_hash


def test_the_hash_and_the_asset_get_the_version_that_was_there_when_it_was_loaded(
    manager: DeltaIOManager, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "data" / "table")
    opened = delta.open_table

    def and_then_someone_writes(*args: Any) -> Any:
        found = opened(*args)
        for more in range(2):
            deltalake.write_deltalake(place, pa.table({"x": [more], "y": ["new"]}), mode="overwrite")
        return found

    @asset
    def table() -> pa.Table:
        return TABLE

    seen: list[pa.Table] = []

    @asset
    def user(table: pa.Table) -> pa.Table:
        seen.append(table)
        return table

    project.run([table], manager)
    monkeypatch.setattr(delta, "open_table", and_then_someone_writes)
    project.run([table, user], manager, selection=[user])
    assert seen[0].to_pylist() == TABLE.to_pylist()
    step = project.receipt("user").inputs[0]
    assert step.data_hash == TABLE_HASH
    assert step.source_version is not None
    assert (step.source_version["version"], step.source_version["metrics"]["num_added_rows"]) == (0, 3)
    assert deltalake.DeltaTable(place).version() == 2


@pytest.mark.parametrize("is_new", [True, False])
def test_a_commit_of_another_writer_in_between_is_the_runs_error_and_nothing_is_claimed(
    is_new: bool, manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    place = str(tmp_path / "data" / "table")
    meanwhile: list[pa.Table] = []

    def batches() -> Any:
        for other in meanwhile:
            deltalake.write_deltalake(place, other, mode="overwrite")
        yield from TABLE.to_batches()

    @asset
    def table() -> Any:
        return pa.RecordBatchReader.from_batches(TABLE.schema, batches())

    if not is_new:
        assert project.run([table], manager).success
    meanwhile.append(pa.table({"x": [9], "y": ["other"]}))
    result = project.run([table], manager, raise_on_error=False)
    told = message(result, "table")
    # The first version of another writer delta-rs may find at its start, too.
    assert f"cannot be written by delta-rs ({'' if is_new else 'Failed to commit transaction'}" in told
    assert "nothing was committed: run it again after the other writer" in told
    assert rows(tmp_path / "data" / "table") == [{"x": 9, "y": "other"}]
    assert len(project.events("table")) == int(not is_new)
    newest = project.mirrored("table")[0]
    assert (newest.status, newest.outputs[0].data_hash) == ("error", None)


def test_a_commit_that_is_not_ours_is_never_taken_for_ours(
    manager: DeltaIOManager, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta.Snapshot, "noted", lambda self: "somebody else's")

    @asset
    def table() -> pa.Table:
        return TABLE

    project.run([table], manager)
    stored = project.receipt("table").outputs[0]
    assert stored.source_version == {
        "kind": "none",
        "reason": "version 0 is not the commit of this run",
    }
    assert stored.data_hash == TABLE_HASH


def test_a_history_that_is_gone_leaves_the_number_of_the_version(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    place = tmp_path / "data" / "table"

    @asset
    def table() -> pa.Table:
        return TABLE

    @asset
    def user(table: pa.Table) -> pa.Table:
        return table

    project.run([table], manager)
    deltalake.DeltaTable(str(place)).create_checkpoint()
    (place / "_delta_log" / f"{0:020d}.json").unlink()
    project.run([table, user], manager, selection=[user])
    step = project.receipt("user").inputs[0]
    assert step.source_version == {
        "kind": "delta",
        "version": 0,
        "timestamp": None,
        "operation": None,
        "metrics": {},
    }
    assert step.data_hash == TABLE_HASH


def test_a_hash_is_reused_while_the_table_is_in_the_version_of_its_receipt(
    project: Project, tmp_path: Path
) -> None:
    receipts = Receipts(root=str(project.root), reuse_hashes=True)
    manager = DeltaIOManager(base_path=str(tmp_path / "data"), receipts=receipts)

    @asset
    def table() -> pa.Table:
        return TABLE

    @asset
    def user(table: pa.Table) -> pa.Table:
        return table

    first = project.run([table, user], manager)
    step = project.receipt("user").inputs[0]
    assert (step.hash_reused_from, step.data_hash) == (first.run_id, TABLE_HASH)
    assert step.source_note is not None
    assert step.source_note.startswith("not read for its hash: its receipt names this version")
    deltalake.write_deltalake(str(tmp_path / "data" / "table"), TABLE.slice(1), mode="overwrite")
    project.run([table, user], manager, selection=[user])
    step = project.receipt("user").inputs[0]
    assert (step.hash_reused_from, step.data_hash) == (None, fingerprint(TABLE.slice(1)).data_hash)


def test_a_table_that_is_not_there_says_what_to_do(manager: DeltaIOManager, project: Project) -> None:
    @asset
    def table() -> pa.Table:
        return TABLE

    @asset
    def user(table: pa.Table) -> None: ...

    result = project.run([table, user], manager, selection=[user], raise_on_error=False)
    assert "expected the table that the upstream asset stored; materialize it first" in message(
        result, "user"
    )


def test_outputs_of_ops_are_tables_too(manager: DeltaIOManager, project: Project, tmp_path: Path) -> None:
    @op
    def make() -> pa.Table:
        return TABLE

    @op
    def take(table: pa.Table) -> pa.Table:
        return table

    @job(resource_defs={"io_manager": manager})
    def both() -> None:
        take(make())

    assert both.execute_in_process(instance=project.instance).success
    (record,) = project.mirrored("both__take__result")
    assert record.inputs[0].data_hash == record.outputs[0].data_hash == TABLE_HASH


@pytest.mark.parametrize("name", ["a/b ü", "100%", "x|y^[z]", "..", "con"])
def test_any_asset_key_has_a_place_that_delta_rs_can_work_with(
    name: str, manager: DeltaIOManager, project: Project
) -> None:
    @multi_asset(outs={"out": AssetOut(key=["raw", name])})
    def odd() -> pa.Table:
        return TABLE

    @asset(ins={"table": AssetIn(key=["raw", name])})
    def user(table: pa.Table) -> pa.Table:
        return table

    for _ in range(2):
        assert project.run([odd, user], manager).success
    assert project.receipt("user").inputs[0].data_hash == TABLE_HASH


def test_a_base_path_that_delta_rs_cannot_work_with_is_refused(project: Project, tmp_path: Path) -> None:
    manager = DeltaIOManager(base_path=str(tmp_path / "a|[b]"), receipts=project.receipts)

    @asset
    def table() -> pa.Table:
        return TABLE

    result = project.run([table], manager, raise_on_error=False)
    assert "has [ ] | in its name, with which delta-rs cannot work" in message(result, "table")


# --------------------------------------------------------------------------- rules


@pytest.mark.parametrize("kind", STORED)
def test_a_broken_rule_commits_nothing_and_what_is_lazy_is_computed_once(
    kind: str, manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    calls: list[int] = []

    @asset
    @expect.not_null("y")
    def broken() -> Any:
        calls.append(1)
        return STORED[kind][0]()

    @asset
    @expect.not_null("x")
    def kept() -> Any:
        return STORED[kind][0]()

    result = project.run([broken, kept], manager, raise_on_error=False)
    assert "nothing was written" in message(result, "broken")
    assert not (tmp_path / "data" / "broken").exists()
    stored = project.receipt("kept")
    assert (stored.outputs[0].data_hash, stored.expectations[0]["total"]) == (TABLE_HASH, 3)
    assert calls == [1]


# --------------------------------------------------------------------------- integrity


@pytest.mark.parametrize("metadata", [{}, {"partition_expr": "day"}], ids=["apart", "together"])
def test_a_change_behind_dagsters_back_is_found_in_its_partition(
    metadata: dict[str, Any], manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    @asset(partitions_def=StaticPartitionsDefinition(["a", "b"]), metadata=metadata)
    def table(context) -> pa.Table:
        return pa.table({"day": [context.partition_key], "x": [1]})

    checks = build_integrity_checks([table])
    only = AssetSelection.checks(*(key for check in checks for key in check.check_keys))

    def look() -> Any:
        result = project.run([table, *checks], manager, selection=only)
        (evaluation,) = result.get_asset_check_evaluations()
        return evaluation

    for key in ("a", "b"):
        project.run([table], manager, partition_key=key)
    found = look()
    assert (found.passed, found.description) == (True, "stored as its 2 receipts say")
    place = tmp_path / "data" / "table" / ("" if metadata else "b")
    deltalake.DeltaTable(str(place)).update({"x": "2"}, predicate="day = 'b'")
    found = look()
    assert not found.passed
    assert found.description == "table[b] is not what its receipt says (1 rows in the receipt, 1 stored)"
