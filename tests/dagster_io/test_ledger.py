"""The ledger of running steps: bounded, one entry a try, closed once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from dagster import AssetKey

from ubunye_orchestrate.dagster_io.receipts.ledger import Ledger, StepEntry, StepKey
from ubunye_orchestrate.records.settings import ReceiptSettings


def entry(run: str, step: str = "s", attempt: int = 0) -> StepEntry:
    return StepEntry(
        key=StepKey(run, step, attempt),
        settings=ReceiptSettings(root="/"),
        job="j",
        op=step,
        launch="manual",
        assets=(),
        outputs=("result",),
        config_hash=None,
        code={},
        code_hash=None,
        started_at=0.0,
        mark=0.0,
    )


def test_steps_are_told_apart_by_run_step_and_try() -> None:
    ledger = Ledger()
    entries = [
        ledger.add(entry(*key), {}) for key in (("r", "s", 0), ("r", "s", 1), ("r", "t", 0), ("q", "s", 0))
    ]
    assert len(ledger) == 4
    assert all(ledger.get(one.key) is one for one in entries)
    assert ledger.get(StepKey("r", "s", 2)) is None


def test_the_first_one_added_counts() -> None:
    ledger = Ledger()
    first = ledger.add(entry("r"), {})
    assert ledger.add(entry("r"), {}) is first


def test_the_oldest_are_forgotten() -> None:
    ledger = Ledger(max_steps=10)
    for number in range(1_000):
        ledger.add(entry(f"r{number}"), {AssetKey("a"): "g"})
    assert len(ledger) == 10
    assert ledger.get(StepKey("r999", "s", 0)) is not None
    assert ledger.group_of("r999", AssetKey("a")) == "g"
    assert ledger.group_of("r0", AssetKey("a")) is None
    assert ledger.group_of("r999", AssetKey("b")) is None


def test_a_step_is_closed_by_one_only() -> None:
    ledger = Ledger(max_steps=10)
    key = ledger.add(entry("r"), {}).key
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: ledger.close(key), range(100))) == 1
    assert ledger.take(key) is not None
    assert ledger.take(key) is None
    for number in range(100):
        assert ledger.close(StepKey(f"r{number}", "s", 0))
