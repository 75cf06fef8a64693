"""Identities to file names: safe everywhere, and never two to one."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ubunye_orchestrate.records.paths import (
    MAX_LENGTH,
    is_safe_part,
    record_path,
    safe_part,
    stored_run_id,
    task_name_for_asset,
)

# Text that is likely to meet: the characters that joins, marks and escapes are made of.
tricky = st.text(alphabet="_-.%~a1A /retry", max_size=8)
any_text = st.one_of(
    tricky, st.text(max_size=300), st.sampled_from(["con", "nul.txt", "..", "", "é", "e\u0301"])
)
parts = st.lists(any_text, min_size=1, max_size=4)
DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|\Z)")


def assert_safe(name: str) -> None:
    assert 0 < len(name.encode()) <= MAX_LENGTH
    assert re.fullmatch(r"[A-Za-z0-9_.~%-]+", name)
    assert not name.startswith(".")
    assert not name.endswith(".")
    assert not DEVICE.match(name)
    assert is_safe_part(name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("daily_totals", "daily_totals"),
        ("Orders-2024.v2", "Orders-2024.v2"),
        ("a/b", "a%2Fb"),
        ("a\\b", "a%5Cb"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        (".hidden", "%2Ehidden"),
        ("trailing.", "trailing%2E"),
        ("trailing ", "trailing%20"),
        ("a..b", "a.%2Eb"),
        ("", "~"),
        ("%", "%25"),
        ("100%", "100%25"),
        ("con", "%63on"),
        ("NUL", "%4EUL"),
        ("com1.txt", "%63om1.txt"),
        ("lpt9.a.b", "%6Cpt9.a.b"),
        ("console", "console"),
        ("COM10", "COM10"),
        ("a\nb\0", "a%0Ab%00"),
        ("é", "%C3%A9"),
        ("東京", "%E6%9D%B1%E4%BA%AC"),
        ("a:b*c?", "a%3Ab%2Ac%3F"),
        ("~user", "%7Euser"),
        ("\udc80", "%ED%B2%80"),
    ],
)
def test_a_name_is_percent_encoded(text: str, name: str) -> None:
    assert safe_part(text) == name
    assert_safe(name)


def test_composed_and_decomposed_letters_have_two_names() -> None:
    # A file system that normalises Unicode (macOS) never sees the difference, since it is encoded.
    assert safe_part("\u00e9") != safe_part("e\u0301")


@pytest.mark.parametrize("length", [199, 200, 201, 300, 5_000])
def test_a_long_name_is_cut_and_stays_its_own(length: int) -> None:
    names = {safe_part("x" * length + end) for end in ("a", "b")}
    names |= {safe_part("é" * length + end) for end in ("a", "b")}
    assert len(names) == 4
    for name in names:
        assert_safe(name)
        # No half of an escape is left before the digest.
        assert re.fullmatch(r"(?:[^%]|%[0-9A-F]{2})+", name)


@given(any_text)
def test_every_text_has_a_safe_name(text: str) -> None:
    assert_safe(safe_part(text))


@given(any_text, any_text)
def test_two_texts_never_share_a_name(a: str, b: str) -> None:
    assert (safe_part(a) == safe_part(b)) == (a == b)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (["flights"], "flights"),
        (["raw", "flights"], "raw__flights"),
        (["raw__x", "flights"], "raw%5F%5Fx__flights"),
        (["a_b__c", "d_e"], "a%5Fb%5F%5Fc__d_e"),
        (["a_", "b"], "a%5F__b"),
        (["a", "_b"], "a__%5Fb"),
        (["_private"], "_private"),
        (["_private", "x_"], "_private__x_"),
        (["raw/flights"], "raw%2Fflights"),
        (["a.b", "c d"], "a.b__c%20d"),
        (["con"], "%63on"),
        (["", ""], "~__~"),
    ],
)
def test_an_asset_key_becomes_a_task_name(key: list[str], name: str) -> None:
    assert task_name_for_asset(key) == name
    assert_safe(name)


@given(parts, parts)
@example(["a_", "b"], ["a", "_b"])
@example(["a__b"], ["a", "b"])
@example(["a", "", "b"], ["a", "_", "b"])
@example(["_", "_"], ["__"])
@example(["a%5F", "b"], ["a_", "b"])
@example(["x" * 300, "y"], ["x" * 300 + "__y"])
def test_two_assets_never_share_a_task_name(a: list[str], b: list[str]) -> None:
    assert (task_name_for_asset(a) == task_name_for_asset(b)) == (a == b)


def test_no_two_keys_of_a_small_alphabet_meet() -> None:
    words = ["".join(letters) for n in range(4) for letters in itertools.product("_a%", repeat=n)]
    keys = [[a] for a in words] + [list(pair) for pair in itertools.product(words, repeat=2)]
    assert len({task_name_for_asset(key) for key in keys}) == len(keys)


@given(parts)
def test_every_task_name_is_safe(key: list[str]) -> None:
    assert_safe(task_name_for_asset(key))


UUID = "3a3def55-a8a9-409b-a460-d16f9b3cb2a0"


@pytest.mark.parametrize(
    ("partitions", "attempt", "name"),
    [
        ([], 0, UUID),
        (["2024-01-01"], 0, f"{UUID}--2024-01-01"),
        (["2024-01-01", "2024-01-02", "2024-01-03"], 0, f"{UUID}--2024-01-01..2024-01-03"),
        ([], 1, f"{UUID}.retry-1"),
        (["2024-01-01|us"], 12, f"{UUID}--2024-01-01%7Cus.retry-12"),
        (["../../etc"], 0, f"{UUID}--%2E%2E%2F.%2E%2Fetc"),
        (["a..b"], 0, f"{UUID}--a.%2Eb"),
        (["a.", ".b"], 0, f"{UUID}--a%2E..%2Eb"),
        (["x.retry-1"], 0, f"{UUID}--x%2Eretry-1"),
    ],
)
def test_a_run_id_carries_partition_and_attempt(partitions: list[str], attempt: int, name: str) -> None:
    assert stored_run_id(UUID, partitions, attempt) == name
    assert_safe(name)


identities = st.tuples(
    st.one_of(tricky, st.just(UUID)), st.lists(any_text, max_size=2, unique=True), st.integers(0, 3)
)


@given(identities, identities)
@example(("r-", ["p"], 0), ("r", ["-p"], 0))
@example(("r--p", [], 0), ("r", ["p"], 0))
@example(("r", ["a..b"], 0), ("r", ["a", "b"], 0))
@example(("r", ["a."], 0), ("r", ["a"], 0))
@example(("r.retry-1", [], 0), ("r", [], 1))
@example(("r.retry-1", [], 2), ("r.retry-1.retry-2", [], 0))
@example(("r", ["x" * 300], 0), ("r", ["x" * 300], 1))
def test_two_runs_partitions_or_attempts_never_share_a_run_id(
    a: tuple[str, list[str], int], b: tuple[str, list[str], int]
) -> None:
    assert_safe(stored_run_id(*a))
    assert (stored_run_id(*a) == stored_run_id(*b)) == (a == b)


def test_a_record_path_keeps_what_is_safe_and_encodes_the_rest() -> None:
    task = task_name_for_asset(["raw__x", "flights"])
    run = stored_run_id(UUID, ["2024-01-01", "2024-01-31"], 1)
    assert record_path("shop", "sales", task, run) == (
        f"shop/sales/raw%5F%5Fx__flights/{UUID}--2024-01-01..2024-01-31.retry-1.json"
    )
    assert record_path("..", "/etc", "a b", "con") == "%2E%2E/%2Fetc/a%20b/%63on.json"


@given(any_text, any_text, any_text, any_text)
def test_a_record_path_never_leaves_its_folder(usecase: str, package: str, task: str, run: str) -> None:
    names = record_path(usecase, package, task, run).split("/")
    assert len(names) == 4
    for name in (*names[:3], names[3].removesuffix(".json")):
        assert_safe(name)
