"""Both paths against ubunye-engine 0.8.0, an independent implementation; where it differs is listed here."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ubunye.lineage.content_hash import fingerprint_arrow

from tests.hashing.arrays import plain_array
from tests.hashing.paths import PATHS, hash_of
from tests.hashing.strategies import Kinds, RandomTable, tables
from ubunye_orchestrate.hashing.rows_v1 import schema_hash
from ubunye_orchestrate.hashing.types import canonical_columns

each_path = pytest.mark.parametrize("path", PATHS)
some = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

AGREED_KEYS = (
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()),
    *(pa.string(), pa.large_string()),
)
AGREED = Kinds(
    (
        *AGREED_KEYS,
        *(pa.uint16(), pa.uint32(), pa.float16(), pa.float64(), pa.binary(), pa.large_binary()),
        *(pa.decimal32(7, 3), pa.decimal64(12, 9), pa.decimal128(10, 2), pa.decimal128(38, 38)),
        *(pa.decimal128(6, -3), pa.decimal256(76, 76), pa.null()),
    ),
    AGREED_KEYS,
    layouts=False,
)
_SECONDS_FROM_1000_TO_9999 = st.integers(-30_610_224_000, 253_402_300_799)
_QUOTED = set(":,<>`")


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UBUNYE_HASH_WORKERS", "1")


def _engine(batch: pa.RecordBatch) -> Any:
    return fingerprint_arrow(pa.Table.from_batches([batch]))


def _assert_agreed(batch: pa.RecordBatch, path: str) -> None:
    theirs = _engine(batch)
    assert theirs.error is None
    assert theirs.schema_hash == schema_hash(canonical_columns(batch.schema))
    assert theirs.data_hash == hash_of([batch], batch.schema, PATHS[path])


def _no_quoted_name(t: pa.DataType) -> bool:
    if pa.types.is_struct(t):
        fields = [t.field(i) for i in range(t.num_fields)]
        return all(_QUOTED.isdisjoint(f.name) and _no_quoted_name(f.type) for f in fields)
    if pa.types.is_map(t):
        return _no_quoted_name(t.item_type)
    return _no_quoted_name(t.value_type) if pa.types.is_list(t) else True


@each_path
@some
@given(table=tables(kinds=AGREED).filter(lambda table: all(map(_no_quoted_name, table.types))))
def test_random_tables_hash_alike(path: str, table: RandomTable) -> None:
    _assert_agreed(table.batch(), path)


@each_path
def test_decimals_as_map_keys_hash_alike(path: str) -> None:
    keys = [Decimal(0), Decimal("1.5"), Decimal("-0.00000001")]
    maps = plain_array([[(k, "x") for k in keys], None], pa.map_(pa.decimal128(20, 8), pa.string()))
    _assert_agreed(pa.record_batch([maps], ["m"]), path)


@each_path
@some
@given(
    st.lists(
        st.tuples(
            st.integers(-719_162, 2_932_896),
            _SECONDS_FROM_1000_TO_9999,
            st.integers(0, 999_999),
            st.floats(width=32).filter(lambda x: not 1e6 <= abs(x) < 1e7),
        )
    )
)
def test_dates_modern_timestamps_and_floats_hash_alike(
    path: str, rows: list[tuple[int, int, int, float]]
) -> None:
    micros = [seconds * 10**6 + fraction for _, seconds, fraction, _ in rows]
    columns = {
        "date32": pa.array([d for d, *_ in rows], pa.date32()),
        "date64": pa.array([d * 86_400_000 for d, *_ in rows], pa.date64()),
        "s": pa.array([s for _, s, *_ in rows], pa.timestamp("s")),
        "us": pa.array(micros, pa.timestamp("us")),
        "instant": pa.array(micros, pa.timestamp("us", "Africa/Johannesburg")),
        "float": pa.array([f for *_, f in rows], pa.float32()),
    }
    _assert_agreed(pa.RecordBatch.from_pydict(columns), path)


def _keys(t: pa.DataType, key: Any) -> pa.Array:
    return plain_array([[(key, 1)]], pa.map_(t, pa.int8()))


# What the engine is known to get wrong, or to name in another way. When it is put right this test says so.
DATA_DIFFERS = {
    "float32 from 1e6 to below 1e7": pa.array([1234567.8], pa.float32()),
    "float32 1e6 in a list": pa.array([[1e6]], pa.list_(pa.float32())),
    "a timestamp in year 1": pa.array([-62135596800], pa.timestamp("s")),
    "an instant in year 999": pa.array([-30_610_224_001], pa.timestamp("s", "UTC")),
    "nanoseconds": pa.array([1], pa.timestamp("ns")),
    "nanoseconds of an instant": pa.array([1_700_000_000_000_000_001], pa.timestamp("ns", "UTC")),
    "time of day": pa.array([1], pa.time32("s")),
    "a date as map key": _keys(pa.date32(), 18262),
    "a timestamp as map key": _keys(pa.timestamp("us"), 0),
    "an instant as map key": _keys(pa.timestamp("us", "UTC"), 0),
    "a float as map key": _keys(pa.float32(), 0.1),
    "a map in a map whose keys are decimals": plain_array(
        [[(Decimal("1.5"), [(1, 1)])]], pa.map_(pa.decimal128(7, 3), pa.map_(pa.int8(), pa.int8()))
    ),
}
NAME_DIFFERS = {
    "string_view": pa.array(["a"], pa.string_view()),
    "binary_view": pa.array([b"a"], pa.binary_view()),
    "fixed_size_binary": pa.array([b"a"], pa.binary(1)),
    "dictionary": pa.array(["a"]).dictionary_encode(),
    "fixed_size_list": pa.array([[1]], pa.list_(pa.int8(), 1)),
    "list_view": plain_array([[1]], pa.list_view(pa.int8())),
    "a field name with a colon": pa.array([{"x:y": 1}], pa.struct([("x:y", pa.int8())])),
}


@each_path
@pytest.mark.parametrize("case", DATA_DIFFERS)
def test_known_faults_of_the_engine_in_values(case: str, path: str) -> None:
    batch = pa.record_batch([DATA_DIFFERS[case]], ["x"])
    theirs = _engine(batch)
    assert theirs.schema_hash == schema_hash(canonical_columns(batch.schema))
    assert theirs.data_hash != hash_of([batch], batch.schema, PATHS[path])


@pytest.mark.parametrize("case", NAME_DIFFERS)
def test_types_that_the_engine_names_otherwise(case: str) -> None:
    batch = pa.record_batch([NAME_DIFFERS[case]], ["x"])
    assert _engine(batch).schema_hash != schema_hash(canonical_columns(batch.schema))


@each_path
def test_the_engine_cuts_nanoseconds_and_we_do_not(path: str) -> None:
    batches = [pa.record_batch([pa.array([n], pa.timestamp("ns"))], ["t"]) for n in (1000, 1001)]
    assert len({_engine(b).data_hash for b in batches}) == 1
    assert len({hash_of([b], b.schema, PATHS[path]) for b in batches}) == 2
