"""What each running step has read and stored so far, kept in this process until the step is over.

A step's inputs may come through several IO managers, each with its own instance, and its outputs too: what
one of them saw must reach the record that another one writes. Steps are told apart by run, step key and
attempt, so that runs in one process never mix. The ledger is bounded: a step that is never closed (its thread
died) is forgotten when ``MAX_STEPS`` newer ones came.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dagster import AssetKey

from ubunye_orchestrate.dagster_io.upstream import AssetOfStep, GraphOfAsset
from ubunye_orchestrate.expectations.outcomes import Measure
from ubunye_orchestrate.records.model import RunRecord, StepRecord
from ubunye_orchestrate.records.settings import ReceiptSettings

__all__ = ["LEDGER", "MAX_STEPS", "Checked", "Ledger", "StepEntry", "StepKey", "Stored"]

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
    measured: dict[str, Measure | str] = field(default_factory=dict)
    """What inputs hold in all, by the name that a rule calls them; a text says why it is not known."""
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

    def __len__(self) -> int:
        return len(self._steps)

    def get(self, key: StepKey) -> StepEntry | None:
        """Return the step's entry; None when no IO manager of ours was used in it, or it is over."""
        with self._lock:
            return self._steps.get(key)

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

    def close(self, key: StepKey) -> bool:
        """Take the step for yourself: True for the first caller only, so that a step is closed once."""
        with self._lock:
            if key in self._closed:
                return False
            self._closed[key] = None
            while len(self._closed) > self._max_steps:
                self._closed.popitem(last=False)
            return True

    def take(self, key: StepKey) -> StepEntry | None:
        """Return the step's entry and forget it."""
        with self._lock:
            return self._steps.pop(key, None)


LEDGER = Ledger()
"""The one ledger of this process."""
