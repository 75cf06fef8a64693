"""Schemas of pandera's, checked by pandera, never passed unread."""

from __future__ import annotations

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


def test_a_schema_has_no_form_in_metadata_and_anything_else_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"@expect.schema\(…\) below @asset"):
        expect(expect.schema(SCHEMA))
    with pytest.raises(ConfigurationError, match="expected a pandera schema or model"):
        expect.schema({"id": int})
