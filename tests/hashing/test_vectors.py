"""Every golden vector: each value's text, each table's lines, sums and hashes."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tests.hashing.paths import PATHS
from tests.hashing.vectors import arrow_table, arrow_type, arrow_value, table_vectors, value_vectors
from ubunye_orchestrate.hashing import canonical, rows_v1
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.types import canonical_columns, canonical_type

each_path = pytest.mark.parametrize("path", PATHS)
TABLES = table_vectors()
each_table = pytest.mark.parametrize("vector", TABLES, ids=[v["name"] for v in TABLES])


def _values_by_type() -> dict[str, list[dict[str, Any]]]:
    by_type: dict[str, list[dict[str, Any]]] = {}
    for vector in value_vectors():
        by_type.setdefault(vector["type"], []).append(vector)
    return by_type


VALUES = _values_by_type()


def test_the_vectors_are_all_there() -> None:
    assert sum(map(len, VALUES.values())) == 707
    assert len(TABLES) == 41


@pytest.mark.parametrize("name", VALUES)
def test_the_reference_writes_each_value(name: str) -> None:
    t = arrow_type(name)
    assert canonical_type(t, column="x") == name
    values = pa.array([arrow_value(v["value"], t) for v in VALUES[name]], t)
    texts = [canonical.text_at(values, i) for i in range(len(values))]
    assert texts == [v["text"] for v in VALUES[name]]


@each_path
@pytest.mark.parametrize("name", VALUES)
def test_each_path_writes_each_value_in_its_line(name: str, path: str) -> None:
    t = arrow_type(name)
    values = pa.array([arrow_value(v["value"], t) for v in VALUES[name]], t)
    lines = PATHS[path](pa.record_batch([values], ["x"])).cast(pa.string()).to_pylist()
    assert lines == ["{}" if v["text"] is None else f'{{"x":{v["text"]}}}' for v in VALUES[name]]


@each_path
@each_table
def test_each_path_gives_the_lines_sums_and_hashes_of_each_table(vector: dict[str, Any], path: str) -> None:
    table = arrow_table(vector)
    columns = canonical_columns(table.schema)
    total = rows_v1.LaneSums()
    lines: list[str] = []
    for batch in table.to_batches():
        batch_lines = PATHS[path](batch)
        total.add(batch_lines)
        lines += batch_lines.cast(pa.string()).to_pylist()
    assert lines == vector["lines"]
    assert (total.rows, [str(s) for s in total.sums]) == (vector["row_count"], vector["lane_sums"])
    assert rows_v1.schema_hash(columns) == vector["schema_hash"]
    assert rows_v1.data_hash(total.rows, columns, total.sums) == vector["data_hash"]


def _numpy_frame(table: pa.Table) -> pd.DataFrame | None:
    """The table in pandas' oldest column types, if those hold it as it is."""
    if any(map(pa.types.is_null, table.schema.types)):
        return None  # a column of objects that are all null is a string column
    frame = table.to_pandas()
    try:
        back = pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException:
        return None
    # By canonical names: pandas 3 gives its own text type back as large_string.
    same_types = canonical_columns(back.schema) == canonical_columns(table.schema)
    return frame if same_types and back.cast(table.schema).equals(table) else None


@each_table
def test_pandas_gives_the_hashes_of_each_table(vector: dict[str, Any]) -> None:
    table = arrow_table(vector)
    if not vector["schema"]:
        pytest.skip("a pandas frame without columns has no rows either")
    frames = {"arrow": table.to_pandas(types_mapper=pd.ArrowDtype), "numpy": _numpy_frame(table)}
    for kind, frame in frames.items():
        if frame is None:
            continue
        got = fingerprint(frame)
        assert (got.error, got.data_hash) == (None, vector["data_hash"]), kind
        assert got.schema_hash == vector["schema_hash"], kind


def test_most_tables_were_tried_in_both_kinds_of_pandas_columns() -> None:
    assert sum(_numpy_frame(arrow_table(v)) is not None for v in TABLES) >= 25


def test_tables_that_differ_only_in_order_or_session_hash_alike() -> None:
    by_name = {v["name"]: v for v in TABLES}
    alike = [
        n for n in by_name if n == "basic" or (n.startswith("basic_") and ("permuted" in n or "session" in n))
    ]
    assert len(alike) == 5
    assert len({by_name[n]["data_hash"] for n in alike}) == 1
    assert by_name["basic"]["data_hash"] != by_name["basic_one_value_changed"]["data_hash"]
