"""Every frame that this package supports, held to the reference by the suite that other authors use too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from ubunye_orchestrate.hashing.types import canonical_columns
from ubunye_orchestrate.testing import ConformanceSuite
from ubunye_orchestrate.testing.cases import FAILURES, TABLES


class TestTable(ConformanceSuite):
    @pytest.fixture
    def to_frame(self) -> Any:
        return lambda table: table


class TestRecordBatchReader(ConformanceSuite):
    @pytest.fixture
    def to_frame(self) -> Any:
        return lambda table: pa.RecordBatchReader.from_batches(
            table.schema, table.to_batches(max_chunksize=7)
        )


class TestDataset(ConformanceSuite):
    # An in-memory dataset reads no columns by giving no rows.
    unsupported = frozenset({"columns of one name", "rows without columns", "text that is not Unicode"})

    @pytest.fixture
    def to_frame(self) -> Any:
        return ds.dataset


class TestCapsule(ConformanceSuite):
    @pytest.fixture
    def to_frame(self) -> Any:
        class Exporter:
            def __init__(self, table: pa.Table) -> None:
                self._table = table

            def __arrow_c_stream__(self, requested_schema: object = None) -> object:
                return self._table.__arrow_c_stream__(requested_schema)

        return Exporter


class TestPort(ConformanceSuite):
    unsupported = frozenset({f.name for f in FAILURES})

    @pytest.fixture
    def to_frame(self) -> Any:
        class Port:
            def __init__(self, table: pa.Table) -> None:
                self.schema = dict(canonical_columns(table.schema))
                self.collect = table.to_reader

        return Port


class TestArrowBackedPandas(ConformanceSuite):
    @pytest.fixture
    def to_frame(self) -> Any:
        def frame(table: pa.Table) -> pd.DataFrame:
            columns = [pd.Series(pd.arrays.ArrowExtensionArray(column)) for column in table.columns]
            made = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(table.num_rows))
            made.columns = pd.Index(table.schema.names, dtype=object)
            return made

        return frame


class TestPandas(ConformanceSuite):
    """NumPy types and objects, as most users have them."""

    unsupported = frozenset(
        {
            *("int* with nulls", "uint* with nulls", "rows of nulls", "null"),  # floats, objects
            *("float* not a number*", "text that is not Unicode"),
            *("time32*", "time64[[]ns]*", "decimal*"),  # what Arrow infers of objects is another type
            *(
                "list",
                "list with nulls",
                "list of list*",
                "fixed_size_list*",
                "struct*",
                "list of struct*",
                "map*",
            ),
        }
    )

    @pytest.fixture
    def to_frame(self) -> Any:
        return lambda table: table.to_pandas()


class TestNullablePandas(ConformanceSuite):
    """pandas' own nullable types."""

    unsupported = frozenset(
        {
            *(TestPandas.unsupported - {"int* with nulls", "uint* with nulls", "rows of nulls"}),
            "float16*",  # has no nullable form
        }
    )

    @pytest.fixture
    def to_frame(self) -> Any:
        types = {
            pa.int8(): pd.Int8Dtype(),
            pa.int16(): pd.Int16Dtype(),
            pa.int32(): pd.Int32Dtype(),
            pa.int64(): pd.Int64Dtype(),
            pa.uint8(): pd.UInt8Dtype(),
            pa.uint16(): pd.UInt16Dtype(),
            pa.uint32(): pd.UInt32Dtype(),
            pa.uint64(): pd.UInt64Dtype(),
            pa.float32(): pd.Float32Dtype(),
            pa.float64(): pd.Float64Dtype(),
            pa.bool_(): pd.BooleanDtype(),
            pa.string(): pd.StringDtype("python"),
        }
        return lambda table: table.to_pandas(types_mapper=types.get)


class TestPolars(ConformanceSuite):
    unsupported = frozenset(
        {
            "date64*",
            "time32*",
            "time64[[]us]*",
            "decimal256*",
            "interval",
            "columns of one name",
            "an empty name",
        }
        | {"fixed_size_list with nulls"}  # Polars refuses a slice of these
    )

    @pytest.fixture
    def to_frame(self) -> Any:
        return pl.from_arrow


class TestLazyPolars(TestPolars):
    @pytest.fixture
    def to_frame(self) -> Any:
        return lambda table: pl.from_arrow(table).lazy()  # type: ignore[union-attr]  # a table gives a frame


class TestDuckDB(ConformanceSuite):
    unsupported = frozenset(
        {"float16*", "time32*", "decimal256*", "no columns", "rows without columns", "map with equal keys"}
        # A relation made of Arrow data renames these; one made by a query keeps them.
        | {"names that differ in case", "columns of one name", "an empty name"}
    )

    @pytest.fixture
    def to_frame(self) -> Iterator[Any]:
        with duckdb.connect() as connection:
            yield connection.from_arrow


def test_the_suite_is_for_pytest_alone() -> None:
    code = "import sys, ubunye_orchestrate; assert not {'pytest', 'pyarrow', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_slip_in_unsupported_is_found() -> None:
    class Slip(TestTable):
        unsupported = frozenset({"flaot64"})

    with pytest.raises(AssertionError, match="no case is named 'flaot64'"):
        Slip().test_what_is_declared_unsupported_names_cases()


def test_every_case_has_its_own_name() -> None:
    names = [case.name for case in (*TABLES, *FAILURES)]
    assert len(set(names)) == len(names)


def test_a_backend_that_changes_a_value_fails_the_suite(tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text(
        """
import pyarrow as pa
import pytest
from ubunye_orchestrate.testing import ConformanceSuite

class TestBad(ConformanceSuite):
    @pytest.fixture
    def to_frame(self):
        # Nulls of integers become zeros, as some libraries make them.
        def frame(table):
            columns = [c.fill_null(0) if pa.types.is_integer(c.type) else c for c in table.columns]
            return pa.Table.from_arrays(columns, table.schema.names) if columns else table
        return frame
"""
    )
    arguments = ["-q", "-p", "no:cacheprovider", "-k", "references and (int32 or string)", str(tmp_path)]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "[int32 with nulls]" in run.stdout
    assert "2 failed" in run.stdout  # uint32 with nulls too
