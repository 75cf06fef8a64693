"""Partitions as rows of one Delta table: only theirs are replaced, only theirs are read."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dagster import (
    AssetIn,
    AssetSpec,
    BackfillPolicy,
    DailyPartitionsDefinition,
    HourlyPartitionsDefinition,
    MonthlyPartitionsDefinition,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    PartitionsDefinition,
    StaticPartitionsDefinition,
    asset,
)

from ubunye_orchestrate.dagster_io.receipts.delta_evidence import note_of_commit
from ubunye_orchestrate.dagster_io.storage import delta_writing
from ubunye_orchestrate.dagster_io.storage.delta_partitions import outside, predicate, rows_of
from ubunye_orchestrate.dagster_io.storage.io_managers import DeltaIOManager
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.hashing.api import fingerprint

from .conftest import Project
from .test_delta_tables import between, history, message, rows

pytestmark = pytest.mark.filterwarnings("ignore:Parameter `backfill_policy` of function `asset`")

DAYS = DailyPartitionsDefinition("2024-01-01", end_date="2024-01-06")
ODD = StaticPartitionsDefinition(["it's", 'a"b/c', "ü"])
BOTH = MultiPartitionsDefinition({"day": DAYS, "shop": StaticPartitionsDefinition(["a", "b"])})
BERLIN = HourlyPartitionsDefinition(
    "2024-10-27-00:00", end_date="2024-10-27-06:00", timezone="Europe/Berlin", fmt="%Y-%m-%d-%H:%M"
)
DAY = dt.date(2024, 1, 2)
UTC = dt.timezone.utc


@pytest.fixture
def manager(project: Project, tmp_path: Path) -> DeltaIOManager:
    return DeltaIOManager(base_path=str(tmp_path / "data"), receipts=project.receipts)


# definition, the column's value for a key, two keys
KINDS: dict[str, tuple[PartitionsDefinition, Callable[[str], Any], str, str]] = {
    "static": (ODD, str, "it's", 'a"b/c'),
    "number": (StaticPartitionsDefinition(["-1", "20"]), int, "-1", "20"),
    "day_as_date": (DAYS, dt.date.fromisoformat, "2024-01-02", "2024-01-03"),
    "day_as_text": (DAYS, str, "2024-01-02", "2024-01-03"),
    "day_as_time": (
        DAYS,
        lambda k: dt.datetime.fromisoformat(k + "T23:59:59.999999"),
        "2024-01-02",
        "2024-01-03",
    ),
    "day_as_instant": (
        DAYS,
        lambda k: dt.datetime.fromisoformat(k).replace(tzinfo=UTC),
        "2024-01-02",
        "2024-01-03",
    ),
    "month": (
        MonthlyPartitionsDefinition("2024-01-01", end_date="2024-05-01"),
        lambda k: dt.date.fromisoformat(k) + dt.timedelta(days=17),
        "2024-02-01",
        "2024-03-01",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_replaces_its_partition_and_no_other_row(
    kind: str, manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    definition, value_of, first, second = KINDS[kind]
    made = {first: [1, 2], second: [3]}

    def frame(key: str) -> pd.DataFrame:
        return pa.table({"v": made[key], 'the "part"': [value_of(key)] * len(made[key])}).to_pandas()

    @asset(partitions_def=definition, metadata={"partition_expr": 'the "part"'})
    def table(context) -> pd.DataFrame:
        return frame(context.partition_key)

    @asset(partitions_def=definition)
    def user(table: pd.DataFrame) -> pd.DataFrame:
        return table

    for key in (first, second):
        project.run([table], manager, partition_key=key)
    made[first] = [5, 6, 7]
    run = project.run([table], manager, partition_key=first)
    assert sorted(row["v"] for row in rows(tmp_path / "data" / "table")) == [3, 5, 6, 7]
    project.run([table, user], manager, partition_key=second, selection=[user])
    for key, number in ((first, 3), (second, 2)):
        stored = project.receipt("table", key).outputs[0]
        assert (stored.hash_scope, stored.row_count) == ("stored_partition", len(made[key]))
        assert stored.data_hash == fingerprint(frame(key)).data_hash
        assert stored.source_version is not None
        assert stored.source_version["version"] == number
    step = project.receipt("user", second).inputs[0]
    assert (step.data_hash, step.hash_scope) == (fingerprint(frame(second)).data_hash, "stored_partition")
    assert step.source_version is not None
    assert step.source_version["version"] == 3
    note = note_of_commit(history(tmp_path / "data" / "table")[0])
    assert note is not None
    assert (note.run_id, note.asset, note.partitions) == (run.run_id, "table", (first,))


def test_dimensions_are_columns_of_their_own(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    columns = {"partition_expr": {"day": "d", "shop": "s"}}

    @asset(partitions_def=BOTH, metadata=columns)
    def table(context) -> pl.DataFrame:
        key = context.partition_key.keys_by_dimension
        day = dt.date.fromisoformat(key["day"])
        return pl.DataFrame({"d": [day], "s": [key["shop"]], "run": [context.run.run_id]})

    @asset(partitions_def=BOTH)
    def user(table: pl.DataFrame) -> pl.DataFrame:
        assert table.height == 1
        return table

    def key(day: int, shop: str) -> MultiPartitionKey:
        return MultiPartitionKey({"day": f"2024-01-0{day}", "shop": shop})

    for day, shop in ((2, "a"), (2, "b"), (3, "a"), (2, "a")):
        project.run([table], manager, partition_key=key(day, shop))
    places = sorted((row["d"].day, row["s"]) for row in rows(tmp_path / "data" / "table"))
    assert places == [(2, "a"), (2, "b"), (3, "a")]
    project.run([table, user], manager, partition_key=key(2, "b"), selection=[user])
    stored = project.receipt("table", "2024-01-02|b").outputs[0]
    assert project.receipt("user", "2024-01-02|b").inputs[0].data_hash == stored.data_hash
    assert deltalake.DeltaTable(str(tmp_path / "data" / "table")).metadata().partition_columns == ["d", "s"]


def test_windows_are_of_the_partitions_zone_also_where_clocks_are_put_back(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    instants = {
        key: BERLIN.time_window_for_partition_key(key).start.astimezone(UTC)
        for key in BERLIN.get_partition_keys()
    }
    assert len(set(instants.values())) == len(instants) == 7, "two hours are called 02:00"

    @asset(partitions_def=BERLIN, metadata={"partition_expr": "at"})
    def table(context) -> pa.Table:
        at = instants[context.partition_key]
        return pa.table({"at": pa.array([at, at + dt.timedelta(minutes=59)], pa.timestamp("us", "UTC"))})

    for key in instants:
        assert project.run([table], manager, partition_key=key).success
    assert len(rows(tmp_path / "data" / "table")) == 14
    assert deltalake.DeltaTable(str(tmp_path / "data" / "table")).metadata().partition_columns == []


def test_a_range_is_one_commit_and_each_partition_has_its_receipt(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    @asset(
        partitions_def=DAYS,
        backfill_policy=BackfillPolicy.single_run(),
        metadata={"partition_expr": "day"},
    )
    def daily(context) -> dict[str, pl.DataFrame]:
        made = {key: pl.DataFrame({"day": [key] * int(key[-2:]), "x": 1}) for key in context.partition_keys}
        if len(made) > 1:
            made["2024-01-03"] = made["2024-01-03"].with_columns(x=None)
        return made

    project.run([daily], manager, partition_key="2024-01-05")
    project.run([daily], manager, tags=between("2024-01-02", "2024-01-04"))
    table = tmp_path / "data" / "daily"
    assert len(rows(table)) == 5 + 2 + 3 + 4
    assert [commit["operation"] for commit in history(table)] == ["WRITE", "WRITE", "CREATE TABLE"]
    note = note_of_commit(history(table)[0])
    assert note is not None
    assert note.partitions == ("2024-01-02", "2024-01-03", "2024-01-04")
    whole = project.mirrored("daily")[0]
    assert (whole.outputs[0].row_count, whole.outputs[0].location) == (9, str(table))
    for day in (2, 3, 4):
        stored = project.receipt("daily", f"2024-01-0{day}").outputs[0]
        assert stored.row_count == day
        assert stored.source_version == whole.outputs[0].source_version
        # Of nothing but nulls, and of the table's type all the same.
        assert dict(stored.columns or ()) == {"day": "string", "x": "int32"}


def test_a_range_may_come_as_one_frame(manager: DeltaIOManager, project: Project, tmp_path: Path) -> None:
    extra: list[str] = []

    @asset(
        partitions_def=DAYS,
        backfill_policy=BackfillPolicy.single_run(),
        metadata={"partition_expr": "day"},
    )
    def daily(context) -> Any:
        days = [dt.date.fromisoformat(key) for key in [*context.partition_keys, *extra]]
        return pl.DataFrame({"day": days}).lazy()

    project.run([daily], manager, tags=between("2024-01-02", "2024-01-04"))
    whole = project.mirrored("daily")[0].outputs[0]
    assert (whole.row_count, whole.hash_scope) == (3, "stored_partition")
    extra.append("2024-01-05")
    result = project.run([daily], manager, tags=between("2024-01-02", "2024-01-04"), raise_on_error=False)
    told = message(result, "daily")
    assert "1 of 4 rows are outside of the run's partitions (day); nothing was stored" in told
    assert "2024-01-05" not in (project.mirrored("daily")[0].error or ""), "a cell"
    assert len(rows(tmp_path / "data" / "daily")) == 3


@pytest.mark.parametrize("lazy", [False, True])
def test_rows_of_another_partition_are_refused_and_nothing_is_committed(
    lazy: bool, manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    days: list[dt.date | None] = [DAY, DAY]

    @asset(partitions_def=DAYS, metadata={"partition_expr": "day"})
    def daily() -> Any:
        frame = pl.DataFrame({"day": days}, schema={"day": pl.Date})
        return frame.lazy() if lazy else frame

    project.run([daily], manager, partition_key="2024-01-02")
    for odd in (dt.date(2024, 1, 3), None):
        days[:] = [DAY, odd]
        result = project.run([daily], manager, partition_key="2024-01-02", raise_on_error=False)
        told = message(result, "daily")
        assert "1 of 2 rows are outside of partition 2024-01-02 (day); nothing was stored" in told
    assert [row["day"] for row in rows(tmp_path / "data" / "daily")] == [DAY, DAY]
    assert len(project.events("daily", "2024-01-02")) == 1


def test_an_empty_partition_is_empty_afterwards(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    size = [2]

    @asset(partitions_def=DAYS, metadata={"partition_expr": "day"})
    def daily(context) -> pa.Table:
        return pa.table({"day": pa.array([context.partition_key] * size[0], pa.string())})

    for key in ("2024-01-02", "2024-01-03"):
        project.run([daily], manager, partition_key=key)
    size[0] = 0
    project.run([daily], manager, partition_key="2024-01-02")
    assert rows(tmp_path / "data" / "daily") == [{"day": "2024-01-03"}] * 2
    stored = project.receipt("daily", "2024-01-02").outputs[0]
    assert (stored.row_count, stored.data_hash) == (
        0,
        fingerprint(pa.table({"day": pa.array([], "string")})).data_hash,
    )


class TestOtherColumns:
    @pytest.fixture
    def run(self, manager: DeltaIOManager, project: Project) -> Callable[[pa.Table], str | None]:
        given: list[pa.Table] = []

        @asset(partitions_def=DAYS, metadata={"partition_expr": "day"})
        def daily() -> pa.Table:
            return given[-1]

        def run(frame: pa.Table) -> str | None:
            given.append(frame.append_column("day", pa.array(["2024-01-02"] * frame.num_rows)))
            result = project.run([daily], manager, partition_key="2024-01-02", raise_on_error=False)
            return None if result.success else message(result, "daily")

        assert run(pa.table({"x": [1], "s": ["a"], "l": [[1]]})) is None
        return run

    def test_nulls_and_other_layouts_of_the_same_fit(
        self, run: Callable[[pa.Table], str | None], project: Project
    ) -> None:
        empty_list = pa.array([[]], pa.list_(pa.null()))
        assert (
            run(pa.table({"l": empty_list, "s": pa.array(["a"]).dictionary_encode(), "x": pa.nulls(1)}))
            is None
        )
        columns = dict(project.receipt("daily", "2024-01-02").outputs[0].columns or ())
        assert columns == {"x": "int64", "s": "string", "l": "list<int64>", "day": "string"}

    @pytest.mark.parametrize(
        ("frame", "told"),
        [
            ({"x": [1], "l": [[1]]}, "the rows lack 's'; expected the columns of"),
            (
                {"x": [1], "s": ["a"], "l": [[1]], "n": [1]},
                "the rows have 'n' besides; expected the columns of",
            ),
            ({"x": [1.5], "s": ["a"], "l": [[1]]}, "column 'x' is double and "),
            ({"x": [1], "s": ["a"], "l": [["b"]]}, "column 'l' is list<item: string> and "),
        ],
    )
    def test_anything_else_is_refused(
        self, frame: dict[str, Any], told: str, run: Callable[[pa.Table], str | None]
    ) -> None:
        assert told in (run(pa.table(frame)) or "")


@pytest.mark.parametrize(
    ("column", "definition", "told"),
    [
        (
            pa.array(["x"]),
            DAYS,
            "the partition is told by 'day' (partition_expr), which the table does not have",
        ),
        (
            pa.array([1.5]),
            DAYS,
            "partition_expr 'day' is double; expected string, date, timestamp or an integer",
        ),
        (pa.array([1]), DAYS, "partition '2024-01-02' is no value of 'day' (partition_expr, int64)"),
        (
            pa.array([DAY]),
            BERLIN,
            "partition_expr 'day' is a date and the partitions are parts of a day (01:00)",
        ),
    ],
)
def test_a_column_that_cannot_tell_the_partitions_apart_is_refused_before_there_is_a_table(
    column: pa.Array, definition: Any, told: str, manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    name = "other" if "does not have" in told else "day"

    @asset(partitions_def=definition, metadata={"partition_expr": "day"})
    def daily() -> pa.Table:
        return pa.table({name: column})

    key = "2024-01-02" if definition is DAYS else "2024-10-27-01:00"
    result = project.run([daily], manager, partition_key=key, raise_on_error=False)
    assert told in message(result, "daily")
    assert not (tmp_path / "data" / "daily").exists()


def test_a_table_of_nothing_but_partition_columns_has_no_folders(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    @asset(partitions_def=DAYS, metadata={"partition_expr": "day"})
    def daily(context) -> pa.Table:
        return pa.table({"day": [context.partition_key]})

    for key in ("2024-01-02", "2024-01-03"):
        project.run([daily], manager, partition_key=key)
    assert [row["day"] for row in rows(tmp_path / "data" / "daily")] == ["2024-01-02", "2024-01-03"]
    assert deltalake.DeltaTable(str(tmp_path / "data" / "daily")).metadata().partition_columns == []


def test_runs_of_different_partitions_do_not_disturb_each_other(
    manager: DeltaIOManager, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked at the table, or found none, before either writes."""
    table = tmp_path / "data" / "daily"
    options: dict[str, str] = {}
    schema = pa.schema([("day", pa.string()), ("v", pa.int64())])
    for by in (["day"], []):
        place = str(table) + "".join(by)
        found = [delta_writing.find(place, options) for _ in range(2)]
        assert found == [None, None]
        threads = [
            threading.Thread(target=delta_writing.create, args=(place, options, schema, by, None))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bases = [delta_writing.open_table(place, options) for _ in range(2)]
        for day, base in zip(("a", "b"), bases, strict=True):
            batches = pa.table({"day": [day], "v": [1]}).to_batches()
            delta_writing.commit(place, options, base, schema, iter(batches), None, f"\"day\" IN ('{day}')")
            assert base.version()["metrics"]["num_added_rows"] == 1
        assert [base.number for base in bases] == [1, 2]
        assert [row["day"] for row in rows(Path(place))] == ["a", "b"]


@pytest.mark.parametrize("t", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()], ids=str)
def test_neither_do_runs_of_different_windows(t: pa.DataType, tmp_path: Path) -> None:
    place = str(tmp_path / "table")
    schema = pa.schema([("at", t), ("v", pa.int64())])
    delta_writing.create(place, {}, schema, [], None)
    keys = ["2024-01-01", "2024-01-02"]
    for value in (1, 2):
        bases = [delta_writing.open_table(place, {}) for _ in keys]
        for key, base in zip(keys, bases, strict=True):
            at = pa.array([dt.date.fromisoformat(key)]).cast(pa.timestamp("us")).cast(t)
            batch = pa.RecordBatch.from_arrays([at, pa.array([value])], schema=schema)
            where = predicate([rows_of(schema, {None: "at"}, DAYS, key)])
            delta_writing.commit(place, {}, base, schema, iter([batch]), None, where)
    assert [row["v"] for row in rows(Path(place))] == [2, 2]


class TestSeveralPartitions:
    @pytest.fixture
    def daily(self, manager: DeltaIOManager, project: Project) -> Any:
        @asset(partitions_def=DAYS, metadata={"partition_expr": "day"})
        def daily(context) -> pa.Table:
            return pa.table({"day": [context.partition_key], "n": [int(context.partition_key[-2:])]})

        for day in (1, 2, 4, 5):
            project.run([daily], manager, partition_key=f"2024-01-0{day}")
        return daily

    def test_a_dict_has_them_by_key_and_one_that_was_never_stored_is_empty(
        self, daily: Any, manager: DeltaIOManager, project: Project
    ) -> None:
        @asset
        def user(daily: dict[str, pa.Table]) -> pa.Table:
            sizes = {key: table.num_rows for key, table in daily.items()}
            assert sizes == {f"2024-01-0{day}": int(day != 3) for day in (1, 2, 3, 4, 5)}
            return daily["2024-01-04"]

        project.run([daily, user], manager, selection=[user])
        step = project.receipt("user").inputs[0]
        assert (step.row_count, step.hash_scope) == (4, "stored_partition")
        sums = [project.receipt("daily", f"2024-01-0{day}").outputs[0].lane_sums for day in (1, 2, 4, 5)]
        total = sum(int(lanes[0]) for lanes in sums if lanes) % 2**64
        assert step.lane_sums is not None
        assert step.lane_sums[0] == str(total)

    @pytest.mark.parametrize("annotation", [pd.DataFrame, pa.RecordBatchReader])
    def test_without_a_dict_they_are_one_table(
        self, annotation: Any, daily: Any, manager: DeltaIOManager, project: Project
    ) -> None:
        def user(daily: Any) -> pa.Table:
            numbers = daily.read_all()["n"].to_pylist() if hasattr(daily, "read_all") else daily["n"].tolist()
            assert sorted(numbers) == [1, 2, 4, 5]
            return pa.table({"x": [1]})

        user.__annotations__["daily"] = annotation
        project.run([daily, asset(user)], manager, selection=["user"])
        step = project.receipt("user").inputs[0]
        stored = pa.table({"day": [f"2024-01-0{d}" for d in (1, 2, 4, 5)], "n": [1, 2, 4, 5]})
        assert step.data_hash == fingerprint(stored).data_hash

    def test_a_rule_about_the_input_sees_the_partitions_that_are_read(
        self, daily: Any, manager: DeltaIOManager, project: Project
    ) -> None:
        @asset(partitions_def=DAYS)
        @expect.not_null("n").on_input("daily")
        @expect.row_count(min=1, max=1).on_input("daily")
        def user(daily: pa.RecordBatchReader) -> pa.RecordBatchReader:
            return daily

        project.run([daily, user], manager, partition_key="2024-01-04", selection=[user])
        checked = project.receipt("user", "2024-01-04").expectations
        assert [(one["passed"], one["total"]) for one in checked] == [(True, 1), (True, 1)]


def test_a_table_that_something_else_writes_is_read_by_its_spec(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    place = str(tmp_path / "data" / "outside")
    days = [dt.date(2024, 1, 2), dt.date(2024, 1, 3)]
    deltalake.write_deltalake(place, pa.table({"day": days, "x": [1, 2]}))
    outside_table = AssetSpec("outside", partitions_def=DAYS, metadata={"partition_expr": "day"})

    @asset(partitions_def=DAYS)
    def user(outside: pa.Table) -> pa.Table:
        return outside

    project.run([outside_table, user], manager, partition_key="2024-01-03")
    step = project.receipt("user", "2024-01-03").inputs[0]
    assert step.data_hash == fingerprint(pa.table({"day": days[1:], "x": [2]})).data_hash


def test_without_a_column_each_partition_is_a_table_of_its_own(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    @asset(partitions_def=ODD, backfill_policy=BackfillPolicy.single_run())
    def table(context) -> dict[str, pa.Table]:
        return {key: pa.table({"k": [key]}) for key in context.partition_keys}

    @asset(ins={"table": AssetIn(metadata={"allow_missing_partitions": True})})
    def user(table: dict[str, pa.Table]) -> pa.Table:
        return pa.table({"got": sorted(table)})

    project.run([table], manager, tags=between("it's", 'a"b/c'))
    project.run([table, user], manager, selection=[user])
    assert rows(tmp_path / "data" / "user") == [{"got": 'a"b/c'}, {"got": "it's"}]
    step = project.receipt("user").inputs[0]
    assert step.source_version == {
        "kind": "none",
        "reason": "read from 2 tables, each of a version of its own",
    }
    for key in ("it's", 'a"b/c'):
        stored = project.receipt("table", key).outputs[0]
        assert stored.source_version is not None
        assert (stored.source_version["version"], stored.row_count) == (0, 1)

    @asset
    def strict(table: dict[str, pa.Table]) -> None: ...

    result = project.run([table, strict], manager, selection=[strict], raise_on_error=False)
    assert "materialize it first" in message(result, "strict")


def test_partitions_committed_before_a_failure_stand_in_its_record(
    manager: DeltaIOManager, project: Project, tmp_path: Path
) -> None:
    @asset(partitions_def=DAYS, backfill_policy=BackfillPolicy.single_run())
    def daily(context) -> dict[str, pa.Table]:
        return {key: pa.table({"day": [key]}) for key in context.partition_keys}

    (tmp_path / "data" / "daily").mkdir(parents=True)
    (tmp_path / "data" / "daily" / "2024-01-03").write_text("in the way")
    result = project.run([daily], manager, tags=between("2024-01-02", "2024-01-04"), raise_on_error=False)
    assert not result.success
    assert "stored before the failure, and not undone: 2024-01-02" in project.log(result)
    failed, left = project.mirrored("daily")[0].outputs
    assert (failed.name, failed.data_hash) == ("daily", None)
    assert (left.name, left.hash_scope) == ("daily [2024-01-02]", "stored_partition")
    assert left.data_hash == fingerprint(pa.table({"day": ["2024-01-02"]})).data_hash
    assert (left.source_version or {})["version"] == 0


def test_a_partition_column_that_is_not_named_for_each_dimension_is_refused(
    manager: DeltaIOManager, project: Project
) -> None:
    @asset(partitions_def=BOTH, metadata={"partition_expr": "day"})
    def table() -> pa.Table:
        return pa.table({"day": ["x"]})

    key = MultiPartitionKey({"day": "2024-01-02", "shop": "a"})
    result = project.run([table], manager, partition_key=key, raise_on_error=False)
    assert 'expected the column of each dimension: {"partition_expr": {"day": "…", "shop": "…"}}' in message(
        result, "table"
    )


# --------------------------------------------------------------------------- conditions


def test_conditions_of_many_partitions_are_short() -> None:
    schema = pa.schema([("d", pa.date32()), ("s", pa.string()), ("t", pa.timestamp("us", "UTC"))])
    days = [rows_of(schema, {None: "d"}, DAYS, f"2024-01-0{day}") for day in (1, 2, 3, 5)]
    assert predicate(days) == (
        "((\"d\" >= DATE '2024-01-01' AND \"d\" < DATE '2024-01-04') OR "
        "(\"d\" >= DATE '2024-01-05' AND \"d\" < DATE '2024-01-06'))"
    )
    columns = {"day": "t", "shop": "s"}
    square = [f"2024-01-0{day}|{shop}" for day in (1, 2) for shop in ("a", "b")]
    told = predicate(rows_of(schema, columns, BOTH, key) for key in square)
    assert told.endswith(" AND \"s\" IN ('a', 'b')")
    assert told.count("arrow_cast") == 2
    corner = predicate(rows_of(schema, columns, BOTH, key) for key in square[:3])
    assert corner.count(" OR ") == 2


def test_rows_outside_are_told_as_delta_rs_tells_them(tmp_path: Path) -> None:
    """The mask in Arrow and the predicate in delta-rs agree on every row, nulls and edges among them."""
    edges = [dt.datetime(2024, 1, 2) + dt.timedelta(microseconds=m) for m in (-1, 0, 1, 86_399_999_999)]
    edges += [dt.datetime(2024, 1, 3)]
    table = pa.table(
        {
            "id": range(6),
            "naive": pa.array([*edges, None], pa.timestamp("us")),
            "utc": pa.array([*edges, None], pa.timestamp("us", "UTC")),
            "date": pa.array([*(edge.date() for edge in edges), None]),
            "text": ["2024-01-02", "2024-01-2", "", None, "2024-01-02 ", "2024-01-02"],
        }
    )
    place = str(tmp_path / "table")
    deltalake.write_deltalake(place, table)
    (batch,) = table.to_batches()
    for column in ("naive", "utc", "date", "text"):
        wanted = [rows_of(table.schema, {None: column}, DAYS, "2024-01-02")]
        found = deltalake.DeltaTable(place).scan(predicate=predicate(wanted))
        inside = set(pa.RecordBatchReader.from_stream(found).read_all()["id"].to_pylist())
        assert inside
        assert inside == set(range(6)) - set(outside(batch, wanted)["id"].to_pylist())


def test_a_key_that_no_date_is_is_refused() -> None:
    schema = pa.schema([("d", pa.date32())])
    with pytest.raises(
        StorageError, match=r"partition 'x' is no value of 'd' \(partition_expr, date32\[day\]\)"
    ):
        rows_of(schema, {None: "d"}, StaticPartitionsDefinition(["x"]), "x")
