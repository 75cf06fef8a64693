"""One suite of tests for every backend: the same rows have the same hash, whatever frame holds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from ubunye_orchestrate.hashing import canonical
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.rows_v1 import LaneSums, data_hash, schema_hash
from ubunye_orchestrate.hashing.types import canonical_columns
from ubunye_orchestrate.testing.cases import FAILURES, TABLES, Failure, Table

__all__ = ["ConformanceSuite", "ToFrame"]

ToFrame = Callable[[pa.Table], Any]
"""Makes the backend's frame of an Arrow table, with the same rows, names and types."""


class ConformanceSuite:
    """Tests of a frame backend, for pytest: subclass it, and give the fixture ``to_frame``.

    ::

        class TestMyFrames(ConformanceSuite):
            unsupported = frozenset({"map*", "decimal256*"})

            @pytest.fixture
            def to_frame(self):
                return my_library.from_arrow

    Each table of ``testing.cases`` that the backend can hold must have the hash that the reference (the
    row-at-a-time specification in code) gives the Arrow table; each that has no hash must fail honestly.
    """

    unsupported: ClassVar[frozenset[str]] = frozenset()
    """Names of the cases that the backend cannot hold without changing them; ``*`` stands for anything."""

    @pytest.fixture
    def to_frame(self) -> ToFrame:
        """Return what makes a frame of an Arrow table; every subclass gives its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture to_frame: Arrow table -> frame")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test the cases that the backend supports."""
        given: dict[str, Sequence[Table]] = {
            "table_case": TABLES,
            "case_with_rows": _with_rows(),
            "failure_case": FAILURES,
        }
        for argument, cases in given.items():
            if argument in metafunc.fixturenames:
                supported = [case for case in cases if not self._is_unsupported(case.name)]
                metafunc.parametrize(argument, supported, ids=[case.name for case in supported])

    def test_the_hash_is_the_references(self, to_frame: ToFrame, table_case: Table) -> None:
        """Columns, rows and hash are those of the Arrow table by the reference."""
        got, expected = fingerprint(to_frame(table_case.build())), _reference(table_case)
        assert got.error is None
        assert got.columns == expected.columns
        assert got.row_count == expected.row_count
        assert got.lane_sums == expected.lane_sums
        assert got.data_hash == expected.data_hash
        assert got.schema_hash == expected.schema_hash

    def test_the_order_of_rows_and_columns_does_not_show(self, to_frame: ToFrame, table_case: Table) -> None:
        """The frame of the table upside down and from right to left has the same hash."""
        table = table_case.build()
        turned = table.select(table.schema.names[::-1])
        if table.num_columns:
            pieces = [turned.slice(row, 1) for row in reversed(range(min(table.num_rows, 100)))]
            turned = pa.concat_tables([*pieces, turned.slice(len(pieces))]).combine_chunks()
        assert fingerprint(to_frame(turned)).data_hash == _reference(table_case).data_hash

    def test_a_row_less_shows(self, to_frame: ToFrame, case_with_rows: Table) -> None:
        """The frame of the table without its first row has the hash of these rows, another one."""
        got = fingerprint(to_frame(case_with_rows.build().slice(1)))
        assert got.data_hash == _reference(case_with_rows, first_row=1).data_hash
        assert got.data_hash != _reference(case_with_rows).data_hash

    def test_what_has_no_hash_fails_honestly(self, to_frame: ToFrame, failure_case: Failure) -> None:
        """There is no hash, and an error that names the column."""
        got = fingerprint(to_frame(failure_case.build()))
        assert got.data_hash is None
        assert got.lane_sums is None
        assert got.error is not None
        assert f"column {failure_case.column!r}" in got.error
        assert "internal error" not in got.error

    def test_what_is_declared_unsupported_names_cases(self) -> None:
        """Every entry of ``unsupported`` leaves out something; a slip of the pen would leave out nothing."""
        names = [case.name for case in (*TABLES, *FAILURES)]
        for pattern in self.unsupported:
            assert any(fnmatchcase(name, pattern) for name in names), f"no case is named {pattern!r}"

    @classmethod
    def _is_unsupported(cls, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in cls.unsupported)


@cache
def _with_rows() -> tuple[Table, ...]:
    tables = ((case, case.build()) for case in TABLES)
    return tuple(case for case, table in tables if table.num_rows and table.num_columns)


@cache
def _reference(case: Table, first_row: int = 0) -> Fingerprint:
    table = case.build().slice(first_row)
    total = LaneSums()
    for batch in table.to_batches():
        total.add(canonical.batch_lines(batch))
    columns = canonical_columns(table.schema)
    return Fingerprint(
        data_hash=data_hash(total.rows, columns, total.sums),
        schema_hash=schema_hash(columns),
        row_count=total.rows,
        lane_sums=total.sums,
        columns=columns,
        error=None,
        seconds=0.0,
        path_taken="reference",
    )
