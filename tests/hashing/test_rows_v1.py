"""Lines to lanes, lanes to sums, sums to hashes: against the steps of the specification, spelt out."""

from __future__ import annotations

import hashlib
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ubunye_orchestrate.hashing.rows_v1 import LaneSums, data_hash, lane_sums_of_lines, schema_hash


def _spelt_out(lines: list[bytes]) -> tuple[int, tuple[int, int]]:
    digests = [hashlib.sha256(line).digest() for line in lines]
    a = sum(int.from_bytes(d[:8], "big") for d in digests) % 2**64
    b = sum(int.from_bytes(d[8:16], "big") for d in digests) % 2**64
    return len(lines), (a, b)


@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(0, 3), st.integers(0, 3))
def test_sums_of_any_container_are_those_of_the_specification(
    lines: list[bytes], head: int, tail: int
) -> None:
    expected = _spelt_out(lines)
    assert lane_sums_of_lines(lines) == expected
    assert lane_sums_of_lines(iter(lines)) == expected
    padded = [b"hidden"] * head + lines + [b"hidden"] * tail
    for t in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        array = pa.array(padded, pa.large_binary() if "large" in str(t) else pa.binary()).view(t)
        part = array.slice(head, len(lines))
        assert lane_sums_of_lines(part) == expected
        assert lane_sums_of_lines(pa.chunked_array([part.slice(0, 2), part.slice(2)], t)) == expected


def test_sums_wrap_at_two_to_the_64() -> None:
    lines = [f"{i}".encode() for i in range(200_000)]  # more than one stretch
    rows, (a, b) = lane_sums_of_lines(pa.array(lines, pa.large_binary()))
    assert (rows, (a, b)) == _spelt_out(lines)
    assert max(a, b) < 2**64


def test_a_running_sum_is_the_sum_of_the_whole() -> None:
    lines = [b"{}", b'{"a":1}', b"{}"]
    total = LaneSums()
    total.add(lines[:1])
    total.add(pa.array(lines[1:], pa.large_binary()))
    assert (total.rows, total.sums) == _spelt_out(lines)
    other = LaneSums()
    other.add_sums(2, _spelt_out(lines[:2])[1])
    other.add([])
    other.add_sums(1, _spelt_out(lines[2:])[1])
    assert (other.rows, other.sums) == (total.rows, total.sums)


def test_lines_that_are_no_lines_are_refused() -> None:
    with pytest.raises(ValueError, match="null"):
        lane_sums_of_lines(pa.array([b"{}", None], pa.large_binary()))
    with pytest.raises(TypeError, match="int64"):
        lane_sums_of_lines(pa.array([1]))


def test_the_hashes_are_of_compact_json_in_ascii() -> None:
    columns = [("\U0001f600", "string"), ("é\x7f", "list<int8>"), ('a"\\\n/', "struct<b:int8>")]
    pairs = sorted([list(c) for c in columns])
    text = json.dumps(pairs, ensure_ascii=True, separators=(",", ":"))
    assert text == (
        r'[["a\"\\\n/","struct<b:int8>"],["\u00e9\u007f","list<int8>"],["\ud83d\ude00","string"]]'
    )
    assert schema_hash(columns) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    assert schema_hash(reversed(columns)) == schema_hash(columns)
    whole = f'{{"method":"rows-v1","rows":3,"schema":{text},"sums":[18446744073709551615,0]}}'
    assert data_hash(3, columns, (2**64 - 1, 0)) == "sha256:" + hashlib.sha256(whole.encode()).hexdigest()


@pytest.mark.parametrize(("rows", "sums"), [(-1, (0, 0)), (0, (2**64, 0)), (0, (0, -1))])
def test_impossible_sums_are_refused(rows: int, sums: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="expected unsigned"):
        data_hash(rows, [], sums)
