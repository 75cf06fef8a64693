"""How long hashing may take: above its budget a table has no hash, and says so."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint

if TYPE_CHECKING:
    from ubunye_orchestrate.hashing.api import HashingStream

__all__ = ["NO_BUDGET", "BudgetedStream", "HashBudget", "fingerprint_within"]

# Rows between two looks at the clock.
_PORTION = 131_072


@dataclass(frozen=True)
class HashBudget:
    """The rows and seconds that one table's hash may take; None for no bound."""

    rows: int | None = None
    seconds: float | None = None

    def refuses(self, rows: int, seconds: float) -> str | None:
        """Return why a table of so many rows, hashed for so long, gets no hash; None while it may."""
        if self.rows is not None and rows > self.rows:
            return f"not hashed: over budget (more than {self.rows:,} rows)"
        if self.seconds is not None and seconds > self.seconds:
            return f"not hashed: over budget (more than {self.seconds:g} s)"
        return None


NO_BUDGET = HashBudget()


class BudgetedStream(Iterator[Any]):
    """Record batches on their way to a writer, hashed as they pass until the budget is spent.

    All of them pass, in portions. ``fingerprint`` is asked for after the last one.
    """

    def __init__(self, schema: Any, batches: Iterable[Any], budget: HashBudget) -> None:
        from ubunye_orchestrate.hashing.api import hash_stream

        self._portions = _portions(batches)
        self._hashing: HashingStream | None = hash_stream(schema, self._portions)
        self._budget = budget
        self._rows = 0
        self._seconds = 0.0
        self.refused: str | None = None
        """Why hashing was given up; None while it was not."""

    def __next__(self) -> Any:
        """Return the next portion, hashed while the budget lasts."""
        if self._hashing is None:
            batch = next(self._portions)
            self._rows += batch.num_rows
            return batch
        batch = next(self._hashing)
        self._rows += batch.num_rows
        self._seconds = self._hashing.fingerprint().seconds
        self.refused = self._budget.refuses(self._rows, self._seconds)
        if self.refused is not None:
            self._hashing = None
        return batch

    def fingerprint(self) -> Fingerprint:
        """Return the fingerprint of all that passed; without a hash when the budget was spent."""
        if self._hashing is not None:
            return self._hashing.fingerprint()
        return _without_hash(self.refused, self._rows, self._seconds)


def fingerprint_within(frame: object, naive_timestamps: str, budget: HashBudget) -> Fingerprint:
    """Return the fingerprint of a frame as ``hashing.fingerprint`` does, unless the budget is spent first.

    Of a Spark frame so many rows are counted before it is hashed, and the query that hashes it is cancelled
    when its time is over (Spark 3.5 does not cancel what a classic session runs: time bounds nothing there).
    """
    from ubunye_orchestrate.hashing.api import fingerprint
    from ubunye_orchestrate.hashing.frames import arrow_stream, known_row_count, native, spark

    if budget == NO_BUDGET:
        return fingerprint(frame, naive_timestamps=naive_timestamps)
    if spark.recognises(native(frame)):
        return _spark_within(native(frame), naive_timestamps, budget)
    started = time.perf_counter()
    rows = None
    try:
        rows = known_row_count(frame)
        refused = None if rows is None else budget.refuses(rows, 0.0)
        if refused is not None:
            return _without_hash(refused, rows, time.perf_counter() - started)
        stream = arrow_stream(frame, naive_timestamps=naive_timestamps)
        hashing = BudgetedStream(stream.schema, stream.batches, budget)
        for _ in hashing:
            if hashing.refused is not None:
                return _without_hash(hashing.refused, rows, time.perf_counter() - started)
        return hashing.fingerprint()
    except Exception as e:  # noqa: BLE001 - as hashing.fingerprint, which never raises for what a frame holds
        reason = str(e) if isinstance(e, HashError) else f"{type(e).__name__}: {e}"
        return _without_hash(reason, rows, time.perf_counter() - started)


def _spark_within(frame: Any, naive_timestamps: str, budget: HashBudget) -> Fingerprint:
    from ubunye_orchestrate.hashing.api import fingerprint

    started = time.perf_counter()
    if budget.rows is not None:
        try:
            counted = frame.limit(budget.rows + 1).count()
        except Exception:  # noqa: BLE001 - the query of the hash meets it too, and has the words for it
            counted = 0
        refused = budget.refuses(counted, 0.0)
        if refused is not None:
            return _without_hash(refused, None, time.perf_counter() - started)
    with _cancelled_after(frame.sparkSession, budget.seconds):
        hashed = fingerprint(frame, naive_timestamps=naive_timestamps)
    seconds = time.perf_counter() - started
    refused = budget.refuses(0, seconds)
    if hashed.data_hash is None and refused is not None:
        return _without_hash(refused, None, seconds)
    return hashed


@contextmanager
def _cancelled_after(session: Any, seconds: float | None) -> Iterator[None]:
    """Cancel the queries that this thread starts in the block when the seconds are over."""
    # A classic session finds its tags by the thread that asks; its context finds them from any.
    classic = ".connect." not in type(session).__module__
    if seconds is None or (classic and int(session.version.split(".")[0]) < 4):  # in 3.5 the query goes on
        yield
        return
    if classic:
        add, remove, cancel = (
            getattr(session.sparkContext, name) for name in ("addJobTag", "removeJobTag", "cancelJobsWithTag")
        )
    else:
        add, remove, cancel = session.addTag, session.removeTag, session.interruptTag
    tag = f"ubunye-{uuid.uuid4().hex}"
    timer = threading.Timer(seconds, cancel, [tag])
    timer.daemon = True
    add(tag)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        remove(tag)


def _portions(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        for start in range(0, max(batch.num_rows, 1), _PORTION):
            yield batch.slice(start, _PORTION)


def _without_hash(reason: str | None, rows: int | None, seconds: float) -> Fingerprint:
    return Fingerprint(
        data_hash=None,
        schema_hash=None,
        row_count=rows,
        lane_sums=None,
        columns=(),
        error=reason,
        seconds=seconds,
        path_taken="none",
    )
