"""What each running step has read and stored so far, kept in this process until the step is over.

A step's inputs may come through several IO managers, each with its own instance, and its outputs too: what
one of them saw must reach the record that another one writes. Steps are told apart by run, step key and
attempt, so that runs in one process never mix. The ledger is bounded: a step that is never closed (its thread
died) is forgotten when ``MAX_STEPS`` newer ones came.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from dagster import AssetKey

from ubunye_orchestrate.dagster_io.upstream import AssetOfStep, GraphOfAsset
from ubunye_orchestrate.expectations.outcomes import Measure
from ubunye_orchestrate.expectations.rules import Rule
from ubunye_orchestrate.records.model import RunRecord, StepRecord
from ubunye_orchestrate.records.settings import ReceiptSettings

__all__ = ["LEDGER", "MAX_STEPS", "Block", "Checked", "Ledger", "StepEntry", "StepKey", "Stored"]

MAX_STEPS = 1_000
_MAX_RUNS = 200


class StepKey(NamedTuple):
    """One try of one step of one run."""

    run_id: str
    step_key: str
    attempt: int
    """0 for the first try."""


@dataclass(frozen=True)
class Stored:
    """A record as it was made when its output was stored."""

    record: RunRecord
    settings: ReceiptSettings
    """Of the IO manager that stored it."""


@dataclass(frozen=True)
class Checked:
    """What became of the rules of one output."""

    results: tuple[dict[str, Any], ...]
    """As ``RunRecord.expectations``."""
    seconds: float


@dataclass
class Block:
    """A block of ``receipts.run`` in an asset."""

    error: str | None = None
    """What ended it, as a record has it; None while it runs and when it ended well."""
    on_result: Callable[[str, Mapping[str, Any]], None] | None = None
    """Called with the name and the metadata of each output of the step that comes once the block is over."""


@dataclass
class StepEntry:
    """One step while it runs: what its record is made of. Changed only by the thread that runs the step."""

    key: StepKey
    settings: ReceiptSettings
    """Of the IO manager that the step used first."""
    job: str
    op: str
    """Path of the step's node in its job."""
    launch: str
    """``manual``, ``schedule``, ``sensor``, ``backfill`` or ``automation``."""
    assets: tuple[AssetOfStep, ...]
    outputs: tuple[str, ...]
    config_hash: str | None
    code: dict[str, Any]
    """As ``RunRecord.code``."""
    code_hash: str | None
    started_at: float
    """Seconds since the epoch."""
    mark: float
    """``time.perf_counter`` when the step last left an IO manager; its own work counts from there."""
    config: Any = None
    """The step's run config."""
    graphs: Mapping[AssetKey, GraphOfAsset] = field(default_factory=dict)
    """Of an op in a graph: the graph of each asset that it is part of."""
    inputs: list[StepRecord] = field(default_factory=list)
    timings: list[dict[str, Any]] = field(default_factory=list)
    backend: str | None = None
    java: str | None = None
    """Version of the Java that Spark ran on, where the step used one."""
    time_zone: str | None = None
    """Of the Spark session that the step used."""
    stored: list[Stored] = field(default_factory=list)
    """In the order of their outputs."""
    left_behind: dict[str, list[StepRecord]] = field(default_factory=dict)
    """What a store that failed had put in its place before, by the name of the output's record."""
    measured: dict[str, Measure | str] = field(default_factory=dict)
    """What inputs hold in all, by the name that a rule calls them; a text says why it is not known."""
    rules: Mapping[str, tuple[Rule, ...]] | None = None
    """The rules of what the step makes, by the name of its record; None until they are asked for."""
    blocks: dict[AssetKey, Block] = field(default_factory=dict)
    """Of the assets that record themselves (``receipts.run``)."""
    checked: dict[str, Checked] = field(default_factory=dict)
    """By the asset's name, or the output's."""
    checked_inputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What became of the rules about inputs, by the name of the asset (or output) that has them."""


class Ledger:
    """The steps of this process that are not over. Safe to use from several threads."""

    def __init__(self, max_steps: int = MAX_STEPS) -> None:
        self._max_steps = max_steps
        self._lock = threading.Lock()
        self._steps: OrderedDict[StepKey, StepEntry] = OrderedDict()
        self._closed: OrderedDict[StepKey, None] = OrderedDict()
        self._groups: OrderedDict[str, Mapping[AssetKey, str]] = OrderedDict()
        self._watched: OrderedDict[str, None] = OrderedDict()
        self._starts: OrderedDict[tuple[str, str], float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._steps)

    def get(self, key: StepKey) -> StepEntry | None:
        """Return the step's entry; None when no IO manager of ours was used in it, or it is over."""
        with self._lock:
            return self._steps.get(key)

    def newest(self, run_id: str, step_key: str) -> StepEntry | None:
        """Return the entry of the step's newest try; None as for ``get``."""
        with self._lock:
            found = (key for key in reversed(self._steps) if key[:2] == (run_id, step_key))
            key = next(found, None)
            return None if key is None else self._steps[key]

    def add(self, entry: StepEntry, groups: Mapping[AssetKey, str]) -> StepEntry:
        """Add a step, with the groups of all assets of its run's job; return the entry that counts."""
        with self._lock:
            known = self._steps.setdefault(entry.key, entry)
            self._groups.setdefault(entry.key.run_id, groups)
            while len(self._steps) > self._max_steps:
                self._steps.popitem(last=False)
            while len(self._groups) > _MAX_RUNS:
                self._groups.popitem(last=False)
            return known

    def group_of(self, run_id: str, asset: AssetKey) -> str | None:
        """Return the asset's group if any step of the run was seen here."""
        with self._lock:
            return self._groups.get(run_id, {}).get(asset)

    def watch(self, run_id: str) -> bool:
        """Take the events of a run for yourself: True for the first caller only."""
        with self._lock:
            return _first(self._watched, run_id, _MAX_RUNS)

    def began(self, run_id: str, step_key: str, at: float) -> None:
        """Note when a try of a step began, in seconds since the epoch; the newest counts."""
        with self._lock:
            self._starts.pop((run_id, step_key), None)
            self._starts[run_id, step_key] = at
            while len(self._starts) > self._max_steps:
                self._starts.popitem(last=False)

    def start_of(self, run_id: str, step_key: str) -> float | None:
        """Return when the newest try of a step began; None when it was not seen here."""
        with self._lock:
            return self._starts.get((run_id, step_key))

    def close(self, key: StepKey) -> bool:
        """Take the step for yourself: True for the first caller only, so that a step is closed once."""
        with self._lock:
            return _first(self._closed, key, self._max_steps)

    def take(self, key: StepKey) -> StepEntry | None:
        """Return the step's entry and forget it."""
        with self._lock:
            return self._steps.pop(key, None)


_Key = TypeVar("_Key")


def _first(known: OrderedDict[_Key, None], key: _Key, most: int) -> bool:
    """Note a key among the newest ``most`` ones; tell whether it is new."""
    if key in known:
        return False
    known[key] = None
    while len(known) > most:
        known.popitem(last=False)
    return True


LEDGER = Ledger()
"""The one ledger of this process."""
