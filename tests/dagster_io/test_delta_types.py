"""What a Delta table gives back is known before it is hashed: nothing changes in value without a word."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dagster import AssetKey, build_output_context
from hypothesis import HealthCheck, given, settings

from tests.hashing.strategies import RandomTable, tables
from ubunye_orchestrate.dagster_io.storage import delta, delta_writing
from ubunye_orchestrate.dagster_io.storage.delta_types import as_stored, compact, with_stored_types
from ubunye_orchestrate.dagster_io.storage.io_managers import DeltaIOManager
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.testing import ConformanceSuite

from .test_parquet import ARROW

D = decimal.Decimal


def as_typed(table: pa.Table | pa.RecordBatch) -> pa.Table:
    schema = as_stored(table.schema)
    batches = table.to_batches() if isinstance(table, pa.Table) else [table]
    return pa.Table.from_batches([with_stored_types(batch, schema) for batch in batches], schema)


class Store:
    """A folder of tables, each stored under a new name and read again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()

    def through(self, table: pa.Table | pa.RecordBatch) -> pa.Table:
        """What the IO manager does to Arrow data, without a run of Dagster around it."""
        typed = as_typed(table)
        batches = map(compact, typed.to_batches())
        place = str(self._folder / f"t{next(self._numbers)}")
        return delta_writing.commit(place, {}, None, typed.schema, batches, None).reader().read_all()

    def managed(self, value: Any) -> pa.Table:
        """Through the IO manager itself."""
        name = f"m{next(self._numbers)}"
        manager = DeltaIOManager(base_path=str(self._folder))
        manager.handle_output(build_output_context(asset_key=AssetKey(name)), value)
        return delta.open_table(str(self._folder / name), {}).reader().read_all()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


# Types that Delta has by another name; any other one comes back with the hash of what went in.
CHANGED = {"uint8": "int16", "uint32": "int64", "uint64": "decimal(20,0)"}
REFUSED = {
    "decimal256": "holds decimal256(70, 2), for which Delta has no type with the same values",
    "time32_s": "holds time32[s], for which",
    "time32_ms": "holds time32[ms], for which",
    "time64_ns": "holds time64[ns], for which",
    "list_of_time_s": "holds time32[s], for which",
    "timestamp_ns": "(timestamp[ns]) holds a value that Delta cannot, which stores timestamp[us]",
    "timestamp_ns_zone": "(timestamp[ns, tz=Europe/Berlin]) holds a value that Delta cannot",
}


@pytest.mark.parametrize("kind", ARROW)
def test_a_type_comes_back_as_it_was_or_is_refused_by_name(kind: str, store: Store) -> None:
    table = pa.table({"id": pa.array(range(len(ARROW[kind]()))), "value": ARROW[kind]()})
    if kind in REFUSED:
        with pytest.raises(StorageError) as raised:
            store.through(table)
        assert REFUSED[kind] in str(raised.value)
        assert str(raised.value).startswith("column 'value' ")
        return
    back = fingerprint(store.through(table))
    assert back.error is None
    assert back.data_hash == fingerprint(as_typed(table)).data_hash
    if kind in CHANGED:
        assert dict(back.columns)["value"] == CHANGED[kind]
    else:
        assert back.data_hash == fingerprint(table).data_hash


def refusal(act: Callable[[], Any]) -> str | None:
    try:
        act()
    except StorageError as e:
        return str(e)
    return None


few = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(table=tables(min_columns=1))
def test_random_tables_are_read_with_the_hash_that_was_stored(
    tmp_path_factory: pytest.TempPathFactory, table: RandomTable
) -> None:
    _hold(Store(tmp_path_factory.mktemp("random")), table)


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(few, max_examples=5000)
@given(table=tables(min_columns=1))
def test_thousands_of_random_tables_are_read_with_the_hash_that_was_stored(
    tmp_path_factory: pytest.TempPathFactory, table: RandomTable
) -> None:
    _hold(Store(tmp_path_factory.mktemp("random")), table)


def _hold(store: Store, table: RandomTable) -> None:
    batch = table.batch(awkward=True)
    found: list[pa.Table] = []
    told = refusal(lambda: found.append(store.through(batch)))
    if found:
        typed = as_typed(batch)
        typed.validate(full=True)
        assert fingerprint(found[0]).data_hash == fingerprint(typed).data_hash
    elif refusal(lambda: as_typed(batch)) is None:
        # Dates past the year 262,142, and maps of times without a zone.
        assert "cannot be written by delta-rs" in (told or "")
    else:
        assert any(repr(name) in (told or "") for name in batch.schema.names)


class TestConformance(ConformanceSuite):
    """The suite of every frame, on what is read back from Delta."""

    unsupported = frozenset(
        {
            *("uint*", "time32*", "time64*", "decimal256*"),  # other types, or none
            *("timestamp?ns?*", "timestamp_ntz?ns?*"),  # with nanoseconds
            "names that differ in case",
            "no columns",
            "rows without columns",
            *("duration", "list of duration", "interval", "columns of one name"),  # refused
            "text that is not Unicode",
        }
    )

    @pytest.fixture
    def to_frame(self, store: Store) -> Any:
        return store.through


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_names_that_differ_in_case_are_refused_and_both_named(make: Callable[..., Any], store: Store) -> None:
    with pytest.raises(
        StorageError, match="the table has 'sf_gsp' and 'SF_GSP', which are one column to Delta"
    ):
        store.managed(make({"sf_gsp": [1], "SF_GSP": [2]}))


def test_names_inside_of_a_struct_are_looked_at_too(store: Store) -> None:
    inner = pa.array([{"a": 1, "A": 2}])
    with pytest.raises(StorageError, match="a struct in column 's' has 'a' and 'A', which are one column"):
        store.through(pa.table({"s": pa.array([[inner[0]]])}))


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (pa.table({}), "a Delta table has one at least"),
        (pa.Table.from_arrays([pa.array([1])] * 2, ["c", "c"]), "the table has 'c' and 'c'"),
        (pa.table({"a\x00b": [1]}), "delta-rs cuts a name at its NUL"),
        (
            pa.table({"s": pa.array([{}], pa.struct([]))}),
            "column 's' holds struct<>, for which Delta has no type",
        ),
    ],
)
def test_tables_that_delta_cannot_have_are_refused(table: pa.Table, told: str, store: Store) -> None:
    with pytest.raises(StorageError) as raised:
        store.through(table)
    assert told in str(raised.value)


def test_the_largest_unsigned_integer_keeps_its_digits(store: Store) -> None:
    numbers = [11069825858223412227, 2**64 - 1, 0, None]
    back = store.through(pa.table({"u": pa.array(numbers, pa.uint64())}))
    assert [None if n is None else int(n) for n in back["u"].to_pylist()] == numbers
    exact = pa.table({"u": pa.array([None if n is None else D(n) for n in numbers], pa.decimal128(20, 0))})
    assert fingerprint(back).data_hash == fingerprint(exact).data_hash


def test_a_slice_of_structs_of_structs_does_not_end_the_process(store: Store) -> None:
    table = pa.table({"c": pa.array([{"s": {"a": i}} for i in range(6)])}).slice(1, 2)
    assert store.managed(table).to_pylist() == table.to_pylist()


def test_one_text_has_one_hash_in_every_layout(store: Store) -> None:
    texts = ["a", None, "longer than twelve bytes", "a"]
    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
    found = {fingerprint(store.through(pa.table({"c": pa.array(texts, kind)}))).data_hash for kind in kinds}
    assert found == {fingerprint(pa.table({"c": texts})).data_hash}


def test_nanoseconds_that_are_whole_microseconds_are_stored(store: Store) -> None:
    frame = pd.DataFrame({"at": pd.to_datetime(["2024-01-01 00:00:00.000001", None])})
    assert fingerprint(store.managed(frame)).data_hash == fingerprint(frame).data_hash
    assert store.managed(frame)["at"].to_pylist() == [dt.datetime(2024, 1, 1, 0, 0, 0, 1), None]


def test_rows_are_read_in_the_order_in_which_they_were_stored(store: Store) -> None:
    table = pa.table({"i": range(100_000), "s": [str(i % 1000) for i in range(100_000)]})
    assert store.managed(table)["i"].to_pylist() == list(range(100_000))
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=5_000))
    assert store.managed(reader)["i"].to_pylist() == list(range(100_000))


def test_a_version_is_told_by_its_own_commit_also_when_there_are_newer_ones(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    schema = pa.schema([("x", pa.int64())])
    base = None
    for size in (1, 2, 3):
        batches = pa.table({"x": range(size)}, schema=schema).to_batches()
        base = delta_writing.commit(place, {}, base, schema, iter(batches), None)
        if size == 1:
            old = delta.open_table(place, {})
    new = delta.open_table(place, {})
    told = [(one.version()["version"], one.version()["metrics"]["num_added_rows"]) for one in (old, new)]
    assert told == [(0, 1), (2, 3)]
    assert old.reader().read_all()["x"].to_pylist() == [0]
