"""A hash of Spark's ends when its budget is spent, and the table has none."""

from __future__ import annotations

import pytest

from tests.spark.conftest import NewSession
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.budget import HashBudget, fingerprint_within

pytestmark = pytest.mark.spark


def test_a_table_of_more_rows_is_not_hashed(new_session: NewSession) -> None:
    frame = new_session().range(5)
    within = fingerprint_within(frame, "ntz", HashBudget(rows=5))
    assert within.data_hash == fingerprint(frame).data_hash
    refused = fingerprint_within(frame, "ntz", HashBudget(rows=4))
    assert (refused.data_hash, refused.error) == (None, "not hashed: over budget (more than 4 rows)")


def test_a_query_is_cancelled_when_its_time_is_over(new_session: NewSession) -> None:
    session = new_session()
    if session.version < "4":
        pytest.skip("Spark 3.5 does not cancel what a classic session runs")
    # Hours of work.
    frame = session.range(10**12).selectExpr("cast(id as string) as text")
    refused = fingerprint_within(frame, "ntz", HashBudget(seconds=1.0))
    assert (refused.data_hash, refused.error) == (None, "not hashed: over budget (more than 1 s)")
    # The session goes on, and so does the next hash of the same thread.
    assert fingerprint_within(session.range(3), "ntz", HashBudget(seconds=120.0)).row_count == 3


def test_what_the_query_says_comes_before_the_budget(new_session: NewSession) -> None:
    broken = new_session().range(3).selectExpr("raise_error('no') as x")
    assert "no" in (fingerprint_within(broken, "ntz", HashBudget(rows=10, seconds=60.0)).error or "")
