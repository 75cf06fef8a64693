"""How rules are written: above a function or in metadata, refused on the spot where they cannot work."""

from __future__ import annotations

import functools
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.expectations.rules import rules_in, rules_of_function, with_own_names

RULES = [
    expect.not_null("id"),
    expect.unique("id", "day"),
    expect.between("day", date(2024, 1, 1), severity="warn", name="in time"),
    expect.between("price", max=Decimal("9.99")),
    expect.one_of("ok", [True, False]),
    expect.matches("code", r"\d+"),
    expect.row_count(1, 10),
    expect.columns({"id": ["Int32", "int64"], "code": "string"}, extra=False),
    expect.reconcile("raw/orders", max_lost=3),
    expect.reconcile("raw/orders", sum="price", tolerance=0.5),
]


def test_metadata_holds_the_rules_as_json_and_gives_them_back() -> None:
    metadata = json.loads(json.dumps(expect(*RULES)))
    assert list(rules_in(metadata, "orders")) == RULES


def test_rules_above_a_function_stand_as_they_are_read_and_shine_through_wrappers() -> None:
    @expect.not_null("id")
    @expect.row_count(min=1)
    def table() -> None: ...

    @functools.wraps(table)
    def wrapped() -> None: ...

    del wrapped.__dict__["__ubunye_expectations__"]
    assert [rule.kind for rule in rules_of_function(table)] == ["not_null", "row_count"]
    assert rules_of_function(wrapped) == rules_of_function(table)
    assert rules_of_function(len) == ()


def test_every_rule_has_a_name_of_its_own_that_a_check_can_have() -> None:
    named = with_own_names([*RULES, expect.row_count(5), expect.row_count(6), expect.not_null("a b/ü")])
    assert [rule.name for rule in named] == [
        "id_not_null",
        "id_day_unique",
        "in_time",
        "price_between",
        "ok_one_of",
        "code_matches",
        "row_count",
        "columns",
        "rows_from_raw_orders",
        "price_sum_from_raw_orders",
        "row_count_2",
        "row_count_3",
        "a_b___not_null",
    ]


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda: expect.unique(), "got no column"),
        (lambda: expect.not_null(""), "expected its name"),
        (lambda: expect.between("a"), "got no bound"),
        (lambda: expect.between("a", float("nan")), "expected a finite number"),
        (lambda: expect.between("a", min=5, max=1), "nothing is between"),
        (lambda: expect.between("a", 5, Decimal("4.9")), "nothing is between"),
        (lambda: expect.between("a", 0.2, 0.1), "nothing is between"),
        (lambda: expect.between("a", "b", "a"), "nothing is between"),
        (lambda: expect.between("a", date(2024, 1, 2), date(2024, 1, 1)), "nothing is between"),
        (lambda: expect.between("a", date(2024, 1, 2), "2024-01-01T23:00:00"), "nothing is between"),
        (lambda: expect.between("a", 1, "b"), "nothing is between"),
        (lambda: expect.row_count(min=5, max=1), "expected min <= max"),
        (lambda: expect.unique("a", "b", "a"), "a column twice"),
        (lambda: expect.one_of("a", [1, "b"]), "of one kind"),
        (lambda: expect.one_of("a", [True, 2]), "of one kind"),
        (lambda: expect.one_of("a", "xy"), "expected a list of values"),
        (lambda: expect.one_of("a", [None]), "for missing values there is expect.not_null"),
        (lambda: expect.row_count(), "expected min=, max= or both"),
        (lambda: expect.row_count(-1), "from 0 on"),
        (lambda: expect.columns("id"), "expected a list"),
        (lambda: expect.columns([]), "got none"),
        (lambda: expect.reconcile("a", max_lost=-1), "a limit below 0"),
        (lambda: expect.not_null("a", severity="quarantine"), "expected one of"),
        (lambda: expect("id"), "expected rules"),
        (lambda: expect.not_null("id")(3), "@asset above @expect.not_null"),
        (lambda: rules_in({"ubunye/expectations": {"id": 1}}, "orders"), "of asset orders"),
    ],
)
def test_what_cannot_work_is_refused_where_it_is_written(write: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        write()


def test_bounds_that_some_column_can_keep_are_taken() -> None:
    zoned = "2024-01-01T12:00:00+05:00"
    for least, most in [
        (1, 1),
        (0.1, Decimal("0.1")),
        ("9", "10"),
        ("10", "9"),
        (Decimal(9), Decimal(10)),
        (date(2024, 1, 1), datetime(2024, 1, 1)),
        (zoned, "2024-01-01T08:00:00+00:00"),
        ("a", "b"),
        (False, True),
    ]:
        expect.between("a", least, most)
    expect.row_count(3, 3)
    expect.one_of("a", [1, 2.5, Decimal("3"), "4"])
    expect.one_of("a", ["2024-01-01", date(2024, 1, 2), datetime(2024, 1, 3)])
