"""Rules on Spark's frames: one plan each for row rules, whole values matched as RE2 matches them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from tests.expectations.awkward import NAMES, by_name, named_rules, named_sums, values_table
from tests.spark.conftest import NewSession
from tests.spark.frames import spark_frame
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.expectations.evaluate import evaluate, measure
from ubunye_orchestrate.expectations.outcomes import Measure
from ubunye_orchestrate.expectations.rules import Rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_rules_are_counted_on_spark_as_elsewhere(spark: SparkSession) -> None:
    rows = [
        (1, 0.5, "a1"),
        (2, float("nan"), "b"),
        (2, None, None),
        (3, 5.0, "a1\n"),
        (None, -1.0, "\u0663"),
    ]
    frame = spark.createDataFrame(rows, "id bigint, price double, code string")
    cases = [
        (expect.not_null("id"), 1),
        (expect.not_null("price"), 2),
        (expect.unique("id"), 2),
        (expect.unique("price"), 2),
        (expect.between("price", 0, 3), 2),
        (expect.between("id", max=2.5), 1),
        (expect.one_of("code", ["b"]), 3),
        (expect.matches("code", r"[a-z]\d?"), 2),
        (expect.matches("code", r"(?s)..?.?"), 0),
        (expect.matches("code", r"\d"), 4),
        (expect.row_count(5, 5), 0),
        (expect.columns({"id": "int64", "price": "float64", "code": "string"}, extra=False), 0),
    ]
    outcomes = evaluate([rule for rule, _ in cases], frame)
    assert [(one.rule.kind, one.failed, one.detail) for one in outcomes] == [
        (rule.kind, failed, None) for rule, failed in cases
    ]
    assert all(one.on_plan for one in outcomes)
    assert measure(frame, ["id", "price"]) == Measure(5, {"id": 8, "price": 4.5})


def _compare(cases: list[tuple[Rule, int]], frame: Any, total: int) -> None:
    outcomes = evaluate([rule for rule, _ in cases], frame)
    found = [(one.rule.kind, one.rule.columns, one.rule.options, one.failed, one.detail) for one in outcomes]
    assert found == [(rule.kind, rule.columns, rule.options, failed, None) for rule, failed in cases]
    assert {one.total for one in outcomes} == {total}


def test_a_name_means_its_column_and_no_other(new_session: NewSession) -> None:
    frame = spark_frame(new_session(), by_name()).toDF(*NAMES)
    # Each is a query; no two columns have as many values above a bound, and as many below.
    _compare([case for case in named_rules() if case[0].kind in ("between", "one_of")], frame, 8)
    some = ("*", "a.b", "A", "x`y")
    _compare([case for case in named_rules() if set(case[0].columns) & set(some)], frame, 8)
    assert measure(frame, list(named_sums())) == Measure(8, named_sums())
    (columns,) = evaluate([expect.columns(NAMES, extra=False)], frame)
    assert columns.passed, columns.detail


def test_a_name_that_only_looks_like_a_column_is_none(new_session: NewSession) -> None:
    frame = new_session().sql("select named_struct('b', 1) as a, 1 as X, 2 as y")
    outcomes = evaluate([expect.not_null(name) for name in ("a.b", "x", "*", "`y`", "c0", "Y")], frame)
    assert [one.passed for one in outcomes] == [False] * 6
    assert {str(one.detail).partition("has no")[0] for one in outcomes} == {"not checked: the table "}


def test_spark_counts_as_every_engine_does(new_session: NewSession) -> None:
    # Moments are in microseconds, in Spark.
    table, cases = values_table("millis", "seconds")
    session = new_session(
        **{"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Kathmandu"}
    )
    _compare(cases, spark_frame(session, table), 8)
    twice = session.sql("select 9223372036854775807 as x union all select 9223372036854775807")
    assert measure(twice, ["x"]) == Measure(2, {"x": 2**64 - 2})
    some = [(rule, 0) for rule, _ in cases if rule.columns[0] in ("void", "int64", "decimal")]
    _compare(some, spark_frame(session, table.slice(0, 0)), 0)


def test_what_spark_says_of_a_failure_is_its_kind_and_no_value(new_session: NewSession) -> None:
    session = new_session(**{"spark.sql.ansi.enabled": "true"})
    # Not by SQL alone: the Connect server of Spark 3.5 computes constants when it is given them.
    texts = session.createDataFrame([("ann@secret.example",)], "a string")
    cells = texts.selectExpr("cast(a as int) as x")
    (cast,) = evaluate([expect.not_null("x")], cells)
    of_cast, of_raise = r" \[CAST_INVALID_INPUT\]", r" \[USER_RAISED_EXCEPTION\]"
    if pyspark.__version__ < "4":  # which does not name what fails on an executor
        of_cast = of_raise = ""
    assert re.fullmatch(rf"not checked: \w+{of_cast} at column 'x'", str(cast.detail))
    assert re.fullmatch(rf"\w+{of_cast} at column 'x'", str(measure(cells, ["x"])))
    (raised,) = evaluate([expect.not_null("x")], texts.selectExpr("raise_error('password=hunter2') as x"))
    assert re.fullmatch(rf"not checked: \w+{of_raise} at column 'x'", str(raised.detail))
