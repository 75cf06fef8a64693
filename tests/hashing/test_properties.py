"""What rows-v1 promises, on random tables: what may not change the hash, and what must."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.types as pat
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.hashing.paths import PATHS, hash_of
from tests.hashing.strategies import NAMES, RandomTable, alike, entries_shuffled, normal, tables, values
from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.types import canonical_columns, canonical_type

each_path = pytest.mark.parametrize("path", PATHS)
some = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
many = settings(some, max_examples=600)


def _hash(table: RandomTable, path: str, *, awkward: bool = False) -> str:
    return hash_of([table.batch(awkward=awkward)], table.schema, PATHS[path])


@pytest.mark.parametrize("path", [p for p in PATHS if p != "reference"])
@many
@given(tables(), st.booleans())
def test_every_path_writes_the_lines_of_the_reference(path: str, table: RandomTable, awkward: bool) -> None:
    _assert_agreed(path, table.batch(awkward=awkward))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", [p for p in PATHS if p != "reference"])
@settings(some, max_examples=20_000)
@given(tables(faulty=True, max_rows=10), st.booleans())
def test_every_path_agrees_with_the_reference_at_length(path: str, table: RandomTable, awkward: bool) -> None:
    _assert_agreed(path, table.batch(awkward=awkward))


@pytest.mark.parametrize("path", [p for p in PATHS if p != "reference"])
@many
@given(tables(faulty=True, min_columns=1, min_rows=1), st.booleans())
def test_every_path_fails_where_the_reference_fails(path: str, table: RandomTable, awkward: bool) -> None:
    _assert_agreed(path, table.batch(awkward=awkward))


def _assert_agreed(path: str, batch: pa.RecordBatch) -> None:
    """The same lines, or a failure that names the same column, type and row."""
    assert _lines_or_failure(path, batch) == _lines_or_failure("reference", batch)


def _lines_or_failure(path: str, batch: pa.RecordBatch) -> object:
    try:
        return PATHS[path](batch).cast(pa.large_binary()).to_pylist()
    except HashError as e:
        return e.column, e.type_name, e.row


@each_path
@some
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_columns_and_map_entries_does_not_show(
    path: str, table: RandomTable, shuffle: random.Random
) -> None:
    rows = [
        tuple(entries_shuffled(v, t, shuffle) for v, t in zip(row, table.types, strict=True))
        for row in table.rows
    ]
    shuffle.shuffle(rows)
    order = list(range(len(table.names)))
    shuffle.shuffle(order)
    other = table.with_rows(rows).with_columns_in_order(order)
    assert _hash(other, path) == _hash(table, path)


@each_path
@some
@given(tables(), st.lists(st.integers(0, 6), max_size=4))
def test_chunks_slices_and_what_nulls_hide_do_not_show(
    path: str, table: RandomTable, cuts: list[int]
) -> None:
    whole = table.batch(awkward=True)
    ends = sorted({0, *(min(cut, len(table.rows)) for cut in cuts), len(table.rows)})
    # An empty batch among them changes nothing either.
    parts = [whole.slice(a, b - a) for a, b in zip([0, *ends], [*ends, len(table.rows)], strict=True)]
    assert hash_of(parts, table.schema, PATHS[path]) == _hash(table, path)


@each_path
@some
@given(st.data(), tables())
def test_the_layout_of_a_type_does_not_show(path: str, data: st.DataObject, table: RandomTable) -> None:
    types = tuple(data.draw(alike(t)) for t in table.types)
    other = RandomTable(table.names, types, table.rows)
    assert canonical_columns(other.schema) == canonical_columns(table.schema)
    assert _hash(other, path, awkward=True) == _hash(table, path)


@each_path
@some
@given(st.data(), tables(min_columns=1, min_rows=1))
def test_one_changed_cell_changes_the_hash(path: str, data: st.DataObject, table: RandomTable) -> None:
    row = data.draw(st.integers(0, len(table.rows) - 1))
    column = data.draw(st.integers(0, len(table.names) - 1))
    t = table.types[column]
    value = data.draw(values(t))
    assume(normal(value, t) != normal(table.rows[row][column], t))
    changed = [list(r) for r in table.rows]
    changed[row][column] = value
    assert _hash(table.with_rows([tuple(r) for r in changed]), path) != _hash(table, path)


@each_path
@some
@given(st.data(), tables(min_columns=1, min_rows=1))
def test_a_dropped_and_a_doubled_row_change_the_hash(
    path: str, data: st.DataObject, table: RandomTable
) -> None:
    rows = list(table.rows)
    row = data.draw(st.sampled_from(range(len(rows))))
    dropped = table.with_rows(rows[:row] + rows[row + 1 :])
    doubled = table.with_rows([*rows, rows[row]])
    assert len({_hash(t, path) for t in (table, dropped, doubled)}) == 3


@each_path
@some
@given(st.data(), st.sampled_from([pa.float16(), pa.float32(), pa.float64()]))
def test_a_null_made_nan_changes_the_hash(path: str, data: st.DataObject, t: pa.DataType) -> None:
    column = data.draw(st.lists(values(t), min_size=1, max_size=5))
    position = data.draw(st.sampled_from(range(len(column))))
    nested = data.draw(st.sampled_from([t, pa.list_(t), pa.struct([("f", t)]), pa.map_(pa.string(), t)]))

    def table(value: float | None) -> RandomTable:
        cells = [value if i == position else v for i, v in enumerate(column)]
        if pat.is_map(nested):
            return RandomTable(("x",), (nested,), tuple(([("k", c)],) for c in cells))
        if pat.is_struct(nested):
            return RandomTable(("x",), (nested,), tuple(((c,),) for c in cells))
        if pat.is_list(nested):
            return RandomTable(("x",), (nested,), tuple(([c],) for c in cells))
        return RandomTable(("x",), (nested,), tuple((c,) for c in cells))

    assert _hash(table(None), path) != _hash(table(float("nan")), path)


@each_path
@some
@given(st.data(), tables(min_columns=1))
def test_a_renamed_column_changes_the_hash(path: str, data: st.DataObject, table: RandomTable) -> None:
    name = data.draw(NAMES.filter(lambda n: n not in table.names))
    renamed = RandomTable((name, *table.names[1:]), table.types, table.rows)
    assert _hash(renamed, path) != _hash(table, path)


@each_path
@some
@given(st.data(), st.lists(st.integers(0, 100), max_size=4))
def test_a_changed_type_changes_the_hash(path: str, data: st.DataObject, numbers: list[int]) -> None:
    kinds = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64(), pa.float32()]
    kinds += [pa.float64(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("s", "UTC")]
    kinds += [pa.list_(pa.int8()), pa.list_(pa.int16())]
    a, b = data.draw(st.sampled_from(kinds)), data.draw(st.sampled_from(kinds))
    assume(canonical_type(a, column="x") != canonical_type(b, column="x"))

    def table(t: pa.DataType) -> RandomTable:
        return RandomTable(("x",), (t,), tuple(([n],) if pat.is_list(t) else (n,) for n in numbers))

    # Also where every text is the same (int8 and int64), and where there is no row at all.
    assert _hash(table(a), path) != _hash(table(b), path)


@each_path
@some
@given(tables(), st.integers(0, 6))
def test_the_sums_of_disjoint_parts_add_up(path: str, table: RandomTable, cut: int) -> None:
    batch = table.batch()
    whole = hash_of([batch], table.schema, PATHS[path])
    assert hash_of([batch.slice(cut), batch.slice(0, cut)], table.schema, PATHS[path]) == whole
