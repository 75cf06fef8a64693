"""Schemas of pandera's, checked by pandera, never passed unread."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pandera.pandas as pandera
import pandera.polars as pandera_polars
import polars as pl
import pyarrow as pa
import pytest
from pandera.config import config_context

from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.expectations.evaluate import evaluate

SCHEMA = pandera.DataFrameSchema(
    {"id": pandera.Column(int, pandera.Check.gt(1)), "x": pandera.Column(float, nullable=False)}
)
GOOD = {"id": [2, 3, 4], "x": [1.0, 2.0, 3.0]}
BAD = {"id": [1, 2, 0], "x": [1.0, None, 2.0]}


class Model(pandera.DataFrameModel):
    id: int = pandera.Field(gt=1)
    x: float


@pytest.mark.parametrize("schema", [SCHEMA, Model])
def test_a_schema_is_one_rule_among_the_others(schema: Any) -> None:
    rules = [expect.row_count(1), expect.schema(schema), expect.not_null("id")]
    good = evaluate(rules, pd.DataFrame(GOOD))
    assert [(one.rule.kind, one.failed, one.total, one.passed) for one in good] == [
        ("row_count", 0, 3, True),
        ("schema", 0, 3, True),
        ("not_null", 0, 3, True),
    ]
    bad = evaluate(rules, pd.DataFrame(BAD))[1]
    assert (bad.failed, bad.total, bad.passed) == (3, 3, False)
    assert bad.detail == "id: greater_than(1); x: not_nullable"


def test_polars_is_checked_by_its_own_schema() -> None:
    schema = pandera_polars.DataFrameSchema({"id": pandera_polars.Column(int, pandera_polars.Check.gt(1))})
    assert evaluate([expect.schema(schema)], pl.DataFrame(GOOD))[0].passed
    bad = evaluate([expect.schema(schema)], pl.DataFrame(BAD))[0]
    assert not bad.passed
    assert bad.failed == 2


def test_what_pandera_would_pass_unread_has_not_passed() -> None:
    schema = pandera_polars.DataFrameSchema({"id": pandera_polars.Column(int)})
    for frame in (pl.LazyFrame(GOOD), pa.table(GOOD)):
        (outcome,) = evaluate([expect.schema(schema)], frame)
        assert not outcome.passed
        assert str(outcome.detail).startswith("not checked: ")
    with config_context(validation_enabled=False):
        (outcome,) = evaluate([expect.schema(SCHEMA)], pd.DataFrame(BAD))
    assert outcome.detail is not None
    assert "turned off" in outcome.detail


def column(*given: Any, **options: Any) -> Any:
    return {"a": pandera.Column(*given, **options)}


ABOVE = pandera.Check.gt(0)
WARNING = pandera.Check.gt(0, raise_warning=True)
POSITIVE = pd.DataFrame({"a": [1.0, -5.0]})
GAP = pd.DataFrame({"a": [1.0, None]})
SCHEMAS: dict[str, tuple[Any, pd.DataFrame, int, str]] = {
    "drops": (
        pandera.DataFrameSchema(column(float, ABOVE), drop_invalid_rows=True),
        POSITIVE,
        1,
        "rows dropped: 1",
    ),
    "parses": (
        pandera.DataFrameSchema(column(float, parsers=pandera.Parser(lambda one: one.fillna(0)))),
        GAP,
        1,
        "values of column 'a' changed: 1",
    ),
    "parses the frame": (
        pandera.DataFrameSchema(column(float), parsers=pandera.Parser(lambda one: one.assign(a=0.0))),
        POSITIVE,
        2,
        "values of column 'a' changed: 2",
    ),
    "fills": (pandera.DataFrameSchema(column(float, default=1.0)), GAP, 1, "values of column 'a' changed: 1"),
    "adds": (
        pandera.DataFrameSchema(
            {**column(float), "b": pandera.Column(int, default=3)}, add_missing_columns=True
        ),
        POSITIVE,
        1,
        "column 'b' added",
    ),
    "filters": (
        pandera.DataFrameSchema(column(float), strict="filter"),
        POSITIVE.assign(z=1),
        1,
        "column 'z' left out",
    ),
    "coerces": (
        pandera.DataFrameSchema(column(int), coerce=True),
        pd.DataFrame({"a": ["1", "2"]}),
        2,
        "values of column 'a' changed: 2",
    ),
    "coerces its index": (
        pandera.DataFrameSchema(column(int), index=pandera.Index(int), coerce=True),
        pd.DataFrame({"a": [1, 2]}, index=["1", "2"]),
        2,
        "values of the index changed: 2",
    ),
    "warns": (
        pandera.DataFrameSchema(column(float, WARNING)),
        POSITIVE,
        1,
        "only warn (raise_warning=True): 1",
    ),
    "warns and drops": (
        pandera.DataFrameSchema(
            {**column(float, WARNING), "b": pandera.Column(int, ABOVE)}, drop_invalid_rows=True
        ),
        POSITIVE.assign(b=[0, 1]),
        1,
        "",
    ),
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_that_passes_another_table_has_not_passed_this_one(
    schema: str, recwarn: pytest.WarningsRecorder
) -> None:
    its, frame, failed, says = SCHEMAS[schema]
    before = frame.copy()
    (outcome,) = evaluate([expect.schema(its)], frame)
    assert (outcome.passed, outcome.failed, outcome.total) == (False, failed, 2)
    assert says in str(outcome.detail)
    # What pandera warns of quotes the values.
    assert not list(recwarn)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("schema", "frame"),
    [
        (pandera.DataFrameSchema(column(float), coerce=True), pd.DataFrame({"a": [1, 2]})),
        (pandera.DataFrameSchema(column("Float64", nullable=True), coerce=True), GAP),
        (pandera.DataFrameSchema(column("category"), coerce=True), pd.DataFrame({"a": ["x", "y"]})),
        (
            pandera.DataFrameSchema(column(pd.StringDtype(), nullable=True), coerce=True),
            pd.DataFrame({"a": ["x", None]}),
        ),
        (
            pandera.DataFrameSchema(column(float, ABOVE), drop_invalid_rows=True),
            pd.DataFrame({"a": [1.0, 2.0]}),
        ),
        (
            pandera.DataFrameSchema(column(float, parsers=pandera.Parser(abs))),
            pd.DataFrame({"a": [1.0, 2.0]}),
        ),
    ],
)
def test_a_schema_that_changes_no_value_passes(schema: Any, frame: pd.DataFrame) -> None:
    (outcome,) = evaluate([expect.schema(schema)], frame)
    assert (outcome.passed, outcome.failed, outcome.detail) == (True, 0, None)


@pytest.mark.parametrize(
    ("options", "given", "failed"),
    [
        ({"drop_invalid_rows": True}, {"a": [1.0, -5.0]}, 1),
        ({"coerce": True}, {"a": ["1", "2"]}, 2),
        ({"strict": "filter"}, {"a": [1.0, 2.0], "z": [1, 2]}, 1),
        ({"coerce": True}, {"a": [1, 2]}, 0),
    ],
)
def test_polars_is_held_to_the_same(options: dict[str, Any], given: Any, failed: int) -> None:
    schema = pandera_polars.DataFrameSchema(
        {"a": pandera_polars.Column(float, pandera_polars.Check.gt(0))}, **options
    )
    (outcome,) = evaluate([expect.schema(schema)], pl.DataFrame(given))
    assert (outcome.passed, outcome.failed) == (failed == 0, failed)


def test_warnings_that_are_not_panderas_are_still_heard() -> None:
    def noisy(values: Any) -> Any:
        warnings.warn("mind the gap", UserWarning, stacklevel=1)
        return values > 0

    with pytest.warns(UserWarning, match="mind the gap"):
        (outcome,) = evaluate(
            [expect.schema(pandera.DataFrameSchema(column(float, pandera.Check(noisy))))],
            pd.DataFrame({"a": [1.0]}),
        )
    assert outcome.passed


def test_a_schema_has_no_form_in_metadata_and_anything_else_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"@expect.schema\(…\) below @asset"):
        expect(expect.schema(SCHEMA))
    with pytest.raises(ConfigurationError, match="expected a pandera schema or model"):
        expect.schema({"id": int})
