"""What is recognised as a table, without reading it or importing anything; and partitions added up."""

from __future__ import annotations

from typing import Any

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from ubunye_orchestrate.dagster_io.receipts.values import combined
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.values import columns_in_order, fingerprint_value, inspect_value, not_hashed

TABLE = pa.table({"b": [1, 2, 3], "a": ["x", "y", None]})


class Exporter:
    """Speaks the Arrow PyCapsule protocol: whether twice, it does not say."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise AssertionError("it must not be read")


KINDS: dict[str, tuple[Any, str, str | None]] = {
    "pandas": (TABLE.to_pandas(), "whole", "pandas"),
    "table": (TABLE, "whole", "pyarrow"),
    "batch": (TABLE.to_batches()[0], "whole", "pyarrow"),
    "reader": (TABLE.to_reader(), "once", "pyarrow"),
    "dataset": (pads.dataset(TABLE), "lazy", "pyarrow"),
    "scanner": (pads.dataset(TABLE).scanner(), "lazy", "pyarrow"),
    "polars": (pl.from_arrow(TABLE), "whole", "polars"),
    "lazy": (pl.LazyFrame({"a": [1]}), "lazy", "polars"),
    "narwhals": (nw.from_native(TABLE.to_pandas()), "whole", "pandas"),
    "narwhals_lazy": (nw.from_native(pl.LazyFrame({"a": [1]})), "lazy", "polars"),
    "relation": (duckdb.sql("select 1 as a"), "lazy", "duckdb"),
    "exporter": (Exporter(), "once", None),
    "series": (pd.Series([1]), "other", None),
    "index": (pd.Index([1]), "other", None),
    "polars_series": (pl.Series([1]), "other", None),
    "chunked_array": (pa.chunked_array([[1]]), "other", None),
    "array": (pa.array([1]), "other", None),
    "class": (Exporter, "other", None),
    "dict": ({}, "other", None),
    "none": (None, "other", None),
    "text": ("a,b\n1,2", "other", None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_value_is(kind: str) -> None:
    value, nature, backend = KINDS[kind]
    seen = inspect_value(value)
    assert (seen.nature, seen.backend) == (nature, backend)
    hashed = fingerprint_value(value, "ntz")
    assert (hashed.data_hash is not None) is (nature == "whole")
    assert (hashed.error is None) is (nature == "whole")


def test_the_order_of_columns_of_tables_in_memory_only() -> None:
    for kind in ("pandas", "table", "polars"):
        assert columns_in_order(KINDS[kind][0]) == ["b", "a"]
    for kind in ("lazy", "relation", "reader", "dict", "none"):
        assert list(columns_in_order(KINDS[kind][0])) == []


class TestCombined:
    def test_disjoint_rows_add_up_to_the_whole(self) -> None:
        parts = {
            "p": fingerprint(TABLE.slice(0, 1)),
            "q": fingerprint(TABLE.slice(1)),
            "r": fingerprint(TABLE.slice(3)),
        }
        whole = combined(parts)
        expected = fingerprint(TABLE)
        assert (whole.data_hash, whole.schema_hash) == (expected.data_hash, expected.schema_hash)
        assert (whole.row_count, whole.lane_sums) == (3, expected.lane_sums)

    def test_one_partition_is_itself(self) -> None:
        assert combined({"p": fingerprint(TABLE)}).data_hash == fingerprint(TABLE).data_hash

    def test_other_columns_are_no_one_table(self) -> None:
        whole = combined({"p": fingerprint(TABLE), "q": fingerprint(TABLE.drop_columns("a"))})
        assert (whole.data_hash, whole.row_count) == (None, 6)
        assert whole.error == "partitions p and q have different columns or types"

    def test_one_without_a_hash_leaves_the_whole_without(self) -> None:
        whole = combined({"p": fingerprint(TABLE), "q": not_hashed("too large", 10)})
        assert (whole.data_hash, whole.row_count, whole.error) == (None, 13, "partition q: too large")
        assert combined({"": not_hashed("too large")}).error == "too large"

    def test_none_at_all_is_said(self) -> None:
        assert combined({}).error == "no partition was read"
