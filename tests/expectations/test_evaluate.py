"""The same table breaks the same rules whatever library holds it, and as the engine counts them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ubunye.core.expectations import ExpectationSet, check_output

from ubunye_orchestrate.expectations import evaluate as evaluating
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.expectations.evaluate import evaluate, measure
from ubunye_orchestrate.expectations.outcomes import Measure
from ubunye_orchestrate.expectations.rules import Rule

LIBRARIES: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow": lambda table: table,
    "record batch": lambda table: table.combine_chunks().to_batches()[0],
    "pyarrow views": lambda table: table.cast(
        pa.schema([f.with_type(pa.string_view()) if f.type == pa.string() else f for f in table.schema])
    ),
    "pandas": lambda table: table.to_pandas(),
    "pandas nullable": lambda table: table.to_pandas().convert_dtypes(),
    "pandas arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas index": lambda table: table.to_pandas().set_index(table.column_names[0]),
    "polars": lambda table: pl.from_arrow(table),
    "polars lazy": lambda table: pl.from_arrow(table).lazy(),
    "duckdb": lambda table: duckdb.from_arrow(table),
}

TABLE = pa.table(
    {
        "id": pa.array([1, 2, 2, 3, 4], pa.int64()),
        "price": pa.array([0.5, float("nan"), None, 5.0, -1.0]),
        "single": pa.array([0.1, 0.2, 0.3, None, float("nan")], pa.float32()),
        "code": pa.array(["a1", "b", None, "a1\n", "é"]),
        "day": pa.array([dt.date(2024, 1, n + 1) for n in range(4)] + [None]),
        "at": pa.array([dt.datetime(2024, 1, n + 1, 12) for n in range(5)], pa.timestamp("us")),
        "exact": pa.array([Decimal("1.10"), Decimal("2.20"), None, Decimal("9.99"), Decimal("0.00")]),
        "ok": pa.array([True, False, True, True, None]),
    }
)
# Rule -> how many rows break it.
CASES: list[tuple[Rule, int]] = [
    (expect.not_null("id"), 0),
    (expect.not_null("price"), 2),
    (expect.not_null("single"), 2),
    (expect.not_null("code"), 1),
    (expect.unique("id"), 2),
    (expect.unique("price"), 2),
    (expect.unique("id", "code"), 0),
    (expect.between("id", 2), 1),
    (expect.between("id", 1.5, 2.5), 3),
    (expect.between("price", 0, 3), 2),
    (expect.between("price", max=5), 0),
    (expect.between("single", 0.1, 0.25), 1),
    (expect.between("single", 0.1, 0.2), 1),
    (expect.between("single", 0.1000000014, 0.3), 0),
    (expect.one_of("single", [0.1, 0.3]), 1),
    (expect.between("code", "a", "b"), 1),
    (expect.between("at", dt.datetime(2024, 1, 2, 12), dt.date(2024, 1, 4)), 3),
    (expect.between("exact", Decimal("1.10"), 5), 2),
    (expect.one_of("id", [1, 2, 9]), 2),
    (expect.one_of("code", ["b", "é"]), 2),
    (expect.one_of("ok", [True]), 1),
    (expect.matches("code", "[a-z][0-9]?"), 2),
    (expect.row_count(5, 5), 0),
    (expect.row_count(max=4), 1),
    (expect.columns(["id", "price", "nope"]), 1),
    (expect.columns({"id": "int64", "code": "string"}), 0),
]


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_breaks_each_rule_as_often(library: str) -> None:
    frame = LIBRARIES[library](TABLE)
    outcomes = evaluate([rule for rule, _ in CASES], frame)
    found = [(outcome.rule.kind, outcome.rule.columns, outcome.failed) for outcome in outcomes]
    assert found == [(rule.kind, rule.columns, failed) for rule, failed in CASES]
    assert [outcome.passed for outcome in outcomes] == [outcome.failed == 0 for outcome in outcomes]
    assert {outcome.total for outcome in outcomes if outcome.rule.kind != "columns"} == {5}
    assert {outcome.on_plan for outcome in outcomes} == {library in ("polars lazy", "duckdb")}


@pytest.mark.parametrize("library", [name for name in LIBRARIES if name != "record batch"])
def test_an_empty_table_breaks_only_its_row_count(library: str) -> None:
    frame = LIBRARIES[library](TABLE.slice(0, 0))
    rules = [rule for rule, _ in CASES if rule.kind not in ("row_count", "columns", "matches", "between")]
    rules = [rule for rule in rules if "code" not in rule.columns]
    assert {(outcome.failed, outcome.total) for outcome in evaluate(rules, frame)} <= {(0, 0), (None, None)}
    assert [outcome.failed for outcome in evaluate([expect.row_count(1)], frame)] == [1]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (expect.not_null("absent"), "the table has no column 'absent'; it has id, price"),
        (expect.matches("id", "a"), "column 'id' is Int64; matches needs text"),
        (expect.between("code", 1), "column 'code' is String; it cannot be held against 1"),
        (expect.one_of("id", ["a"]), "column 'id' is Int64"),
        (expect.between("id", True), "a truth value is no number"),
        (expect.between("at", "2024-01-01T00:00:00+00:00"), "the column has no time zone"),
        (expect.between("day", "yesterday"), "column 'day' is Date; 'yesterday' is none"),
    ],
)
@pytest.mark.parametrize("library", ["pyarrow", "polars", "duckdb", "pandas", "pandas arrow"])
def test_a_rule_that_cannot_be_checked_has_not_passed_and_says_why(
    library: str, rule: Rule, says: str
) -> None:
    outcome = evaluate([rule], LIBRARIES[library](TABLE))[0]
    assert not outcome.passed
    assert outcome.failed is None
    assert outcome.detail is not None
    assert outcome.detail.startswith("not checked: ")
    assert says in outcome.detail


@pytest.mark.parametrize("value", [{"a": 1}, None, TABLE.to_reader(), pd.Series([1])])
def test_no_rule_passes_on_what_is_no_table(value: object) -> None:
    outcomes = evaluate([expect.row_count(0), expect.not_null("a")], value)
    assert [outcome.passed for outcome in outcomes] == [False, False]
    assert isinstance(measure(value, []), str)


def test_labels_that_are_no_text_are_named_as_they_are_stored() -> None:
    assert evaluate([expect.not_null("0")], pd.DataFrame([[1], [None]]))[0].failed == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_sums_of_tables_in_memory_do_not_depend_on_the_order(library: str) -> None:
    table = pa.table({"n": [0, 1, 2, 3], "x": [1e16, 1.0, -1e16, None]})
    measured = measure(LIBRARIES[library](table), ["x", "n"])
    assert isinstance(measured, Measure)
    assert measured.rows == 4
    assert measured.sums["n"] == 6
    if library not in ("polars lazy", "duckdb"):
        assert measured.sums["x"] == 1.0


VALUES = {
    "number": st.one_of(st.none(), st.integers(-3, 3)),
    "float": st.one_of(st.none(), st.floats(-3, 3), st.just(float("nan"))),
    "text": st.one_of(st.none(), st.sampled_from(["", "a", "b", "ab", "zz"])),
}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.fixed_dictionaries(VALUES), max_size=12))
def test_rows_are_counted_as_the_engine_counts_them(rows: list[dict[str, Any]]) -> None:
    types = pa.schema([("number", pa.int64()), ("float", pa.float64()), ("text", pa.string())])
    table = pa.Table.from_pylist(rows, schema=types)
    theirs = ExpectationSet(
        rules=[
            *({"not_null": column, "severity": "warn"} for column in types.names),
            *({"unique": [column], "severity": "warn"} for column in ("number", "text")),
            {"between": {"column": "number", "min": -1, "max": 1}, "severity": "warn"},
            {"between": {"column": "float", "min": -1, "max": 1}, "severity": "warn"},
            {"one_of": {"column": "text", "values": ["a", "zz"]}, "severity": "warn"},
            {"matches": {"column": "text", "pattern": "^a?b$"}, "severity": "warn"},
            {"row_count": {"min": 2, "max": 8}, "severity": "warn"},
        ]
    )
    ours = [
        *(expect.not_null(column) for column in types.names),
        *(expect.unique(column) for column in ("number", "text")),
        expect.between("number", -1, 1),
        expect.between("float", -1, 1),
        expect.one_of("text", ["a", "zz"]),
        expect.matches("text", "a?b"),
        expect.row_count(2, 8),
    ]
    _, _, expected = check_output("table", table, theirs)
    for frame in (table, pl.from_arrow(table)):
        found = [(o.rule.kind, o.failed, o.total, o.passed) for o in evaluate(ours, frame)]
        assert found == [(one.kind, one.failed, one.total, one.passed) for one in expected]


_NAN = float("nan")
# Plans are always grouped; a batch is checked as a table.
_OTHERS = ("polars lazy", "duckdb", "record batch")


class TestAtAGlance:
    """A column of which no two values are alike is not grouped: what comes out is as if it were."""

    @pytest.mark.parametrize("library", [one for one in LIBRARIES if one not in _OTHERS])
    @pytest.mark.parametrize(
        "values",
        [
            pa.array([], pa.int64()),
            pa.array([3, 1, 2]),
            pa.array([3, 1, 3]),
            pa.array([3, None, 1]),
            pa.array([3, None, None]),
            pa.array([2**53, 2**53 + 1, None]),
            pa.array([1.5, _NAN, 2.5]),
            pa.array([1.5, _NAN, None]),
            pa.array([_NAN, _NAN]),
            pa.array([0.0, -0.0]),
            pa.array([0.0, 1.0], pa.float32()),
            pa.array(["a", "A", None]),
            pa.array(["a", "b", "a"]),
            pa.array(["é", "e\u0301", ""]),
            pa.array([True, False, None]),
            pa.array([True, True]),
            pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2), None]),
            pa.array([dt.datetime(2024, 1, 1, 12), dt.datetime(2024, 1, 1, 13)], pa.timestamp("us", "UTC")),
            pa.array([Decimal("1.1"), Decimal("1.10"), None]),
            pa.array([dt.timedelta(1), dt.timedelta(2)]),
            pa.array([b"a", b"b", b"b"]),
            pa.array([[1], [1], None]),
            pa.array([{"a": 1}, {"a": 2}]),
            pa.array(["a", "b", "a"]).dictionary_encode(),
            pa.array(["a", "b"]).dictionary_encode(),
        ],
        ids=str,
    )
    def test_as_grouped(self, library: str, values: pa.Array, monkeypatch: pytest.MonkeyPatch) -> None:
        table = pa.table({"key": values, "other": pa.nulls(len(values), pa.int64())})
        self.compare(LIBRARIES[library](table), monkeypatch)

    @pytest.mark.parametrize(
        "values",
        [
            [None, _NAN],
            ["a", None, _NAN],
            ["a", pd.NA, None],
            [1, 1.0, True],
            [1, "1"],
            [(1,), (1,)],
            [[1], [2]],
        ],
        ids=str,
    )
    def test_as_grouped_whatever_pandas_holds(
        self, values: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.compare(pd.DataFrame({"key": pd.Series(values, dtype=object)}), monkeypatch)

    def test_two_columns_of_one_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compare(pd.DataFrame([[1, 2], [1, 3]], columns=["key", "key"]), monkeypatch)

    @given(data=st.data())
    @settings(max_examples=150, deadline=None)
    def test_as_grouped_whatever_is_drawn(self, data: st.DataObject) -> None:
        kind, one = data.draw(
            st.sampled_from(
                [
                    (pa.int64(), st.integers(-3, 3)),
                    (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, _NAN])),
                    (pa.string(), st.sampled_from(["", "a", "b", "c", "nan", "None"])),
                    (pa.bool_(), st.booleans()),
                ]
            )
        )
        table = pa.table(
            {"key": pa.array(data.draw(st.lists(st.none() | one, min_size=1, max_size=5)), kind)}
        )
        with pytest.MonkeyPatch.context() as patched:
            for library in ("pyarrow", "pandas", "pandas nullable", "pandas arrow", "polars"):
                self.compare(LIBRARIES[library](table), patched)

    def compare(self, frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        rules = [expect.unique("key"), expect.not_null("key")]
        found = evaluate(rules, frame)
        assert {type(one.failed) for one in found} <= {int, type(None)}
        with monkeypatch.context() as patched:
            patched.setattr(evaluating, "_all_different", lambda values: False)
            patched.setattr(
                evaluating,
                "_missing_among",
                lambda values: evaluating._count(
                    values.to_frame(), evaluating._missing(nw.col(values.name), values.dtype)
                ),
            )
            patched.setattr(
                evaluating,
                "_rows",
                lambda table: evaluating._scalars(table.rows, {"rows": nw.len()})["rows"],
            )
            assert found == evaluate(rules, frame)
