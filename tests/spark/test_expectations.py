"""Rules on Spark's frames: one plan each for row rules, whole values matched as RE2 matches them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.expectations.evaluate import evaluate, measure
from ubunye_orchestrate.expectations.outcomes import Measure

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
