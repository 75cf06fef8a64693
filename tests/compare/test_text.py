from __future__ import annotations

import sys
import unicodedata

import pytest

from ubunye_orchestrate.compare.text import printable, short_hash, short_run_id


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, 100 %", "plain text, 100 %"),
        ("Zürich 北京 é", "Zürich 北京 é"),
        ("two\nlines\tand\r", "two\\nlines\\tand\\r"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x7f\x9b", "\\x7f\\x9b"),
        ("a\u202eb\u2066c\u200bd", "a\\u202eb\\u2066c\\u200bd"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_text_is_shown_and_steers_nothing(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_no_code_point_but_letters_marks_and_blanks_gets_through() -> None:
    shown = printable("".join(map(chr, range(sys.maxunicode + 1))))
    assert {unicodedata.category(mark)[0] for mark in shown} == set("LMNPSZ")
    assert shown.isascii() is False
    shown.encode()


def test_short_forms() -> None:
    assert short_hash("sha256:" + "0123456789abcdef" * 4) == "sha256:0123456789ab"
    assert short_hash(None) == "-"
    assert short_hash("odd\x1b") == "odd\\x1b"
    assert short_run_id("506800f2-6003-4f48-8d16-9f0dfab8a203") == "506800f2"
    assert short_run_id("506800f2-6003-4f48-8d16-9f0dfab8a203--2024-01-01") == "506800f2--2024-01-01"
    assert short_run_id("506800f2-6003-4f48-8d16-9f0dfab8a203--01.retry-2") == "506800f2--01.retry-2"
    assert short_run_id("506800f2-6003-4f48-8d16-9f0dfab8a203.retry-1") == "506800f2.retry-1"
    assert short_run_id("run") == "run"
