"""The check of the columnar path before it is trusted."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
import pytest

from ubunye_orchestrate.hashing import canonical, selfcheck
from ubunye_orchestrate.hashing.kernels import numbers
from ubunye_orchestrate.hashing.rows_v1 import lane_sums_of_lines


@pytest.fixture(autouse=True)
def _each_asks_anew() -> Iterator[None]:
    selfcheck.columnar_is_trusted.cache_clear()
    yield
    selfcheck.columnar_is_trusted.cache_clear()


def test_the_installed_libraries_are_trusted(caplog: pytest.LogCaptureFixture) -> None:
    assert selfcheck.columnar_is_trusted()
    assert not caplog.records


def test_the_known_sums_are_those_of_the_reference() -> None:
    lines = canonical.batch_lines(selfcheck.check_batch())
    assert lane_sums_of_lines(lines) == selfcheck._EXPECTED


@pytest.mark.parametrize("way", ["_few_scientific", "_scientific"])
def test_both_ways_to_write_an_exponent_are_checked(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(numbers, way)
    monkeypatch.setattr(numbers, way, lambda texts, *others, **named: right(texts[::-1], *others, **named))
    assert not selfcheck.columnar_is_trusted()


def test_a_text_that_changed_is_found_and_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(numbers._TWO_DIGITS, numbers.np.dtype("f8"), {1: "5.0E-324"})
    with caplog.at_level(logging.WARNING):
        assert not selfcheck.columnar_is_trusted()
        assert not selfcheck.columnar_is_trusted()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert pa.__version__ in record.getMessage()
    assert "hashed by the reference" in record.getMessage()


def test_a_kernel_that_fails_is_not_trusted_and_its_traceback_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(batch: pa.RecordBatch) -> pa.Array:
        raise pa.ArrowNotImplementedError("no such cast")

    monkeypatch.setattr(selfcheck, "batch_lines", gone)
    assert not selfcheck.columnar_is_trusted()
    assert [r.levelname for r in caplog.records] == ["ERROR", "WARNING"]
    assert caplog.records[0].exc_info is not None
