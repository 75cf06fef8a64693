"""The cursor survives upgrades, and nothing that stands in its place stops the sensor."""

from __future__ import annotations

import pytest

from ubunye_orchestrate.dagster_io.drift.cursor import DriftCursor


def test_it_reads_what_it_wrote() -> None:
    cursor = DriftCursor(7, "sha256:e", ("pandas 1 -> 2",))
    assert DriftCursor.parse(cursor.text()) == cursor


def test_an_older_one_has_fewer_fields_and_a_newer_one_more() -> None:
    assert DriftCursor.parse('{"storage_id": 7}') == DriftCursor(7)
    assert DriftCursor.parse('{"storage_id": 7, "shape": "round"}') == DriftCursor(7)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "7",
        "not json",
        "[]",
        "{}",
        '{"storage_id": "7"}',
        '{"storage_id": true}',
        '{"storage_id": -1}',
    ],
)
def test_what_is_no_cursor_is_none(text: str | None) -> None:
    assert DriftCursor.parse(text) is None


@pytest.mark.parametrize("text", ['{"storage_id": 7, "environment": 3, "reported": "x"}'])
def test_fields_of_another_type_are_passed_over(text: str) -> None:
    assert DriftCursor.parse(text) == DriftCursor(7)


def test_it_never_goes_back() -> None:
    assert DriftCursor(7).moved_to(5) == DriftCursor(7)
    assert DriftCursor(7).moved_to(9) == DriftCursor(9)


def test_another_environment_forgets_what_was_said() -> None:
    cursor = DriftCursor(7).in_environment("a").having_reported("pandas 1 -> 2")
    assert cursor.in_environment("a").reported == ("pandas 1 -> 2",)
    assert cursor.in_environment(None) == cursor
    assert cursor.in_environment("b") == DriftCursor(7, "b", ())


def test_what_is_overdue() -> None:
    cursor = DriftCursor(7).having_looked_for_overdue(5, {3, 1})
    assert (cursor.period, cursor.overdue) == (5, (1, 3))
    assert DriftCursor.parse(cursor.text()) == cursor
    odd = '{"storage_id": 7, "period": "x", "overdue": [1, "2"]}'
    assert DriftCursor.parse(odd) == DriftCursor(7, overdue=(1,))


def test_what_was_said_is_bounded() -> None:
    cursor = DriftCursor(7, "a")
    for number in range(1_000):
        cursor = cursor.having_reported(str(number))
    assert len(cursor.text()) < 2_000
    assert cursor.reported[-1] == "999"
