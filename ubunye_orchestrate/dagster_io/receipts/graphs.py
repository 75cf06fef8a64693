"""An asset that a graph makes: its record is of the whole graph, not of the last op alone.

Each op runs in a step of its own, perhaps in another process. What the ops before it have read stands in the
receipts of their outputs, in the run's log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dagster import AssetKey, DagsterInstance, InputContext

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.completing import completed
from ubunye_orchestrate.dagster_io.receipts.ledger import StepEntry
from ubunye_orchestrate.dagster_io.receipts.metadata import receipt_of
from ubunye_orchestrate.errors import InvalidRecordError
from ubunye_orchestrate.records.code import code_evidence
from ubunye_orchestrate.records.evidence import config_hash
from ubunye_orchestrate.records.model import RunRecord, StepRecord
from ubunye_orchestrate.records.store import parse_time

__all__ = ["checked_by_other_ops", "maker_of", "whole_graph"]

_NO_FUNCTION = "the graph has no function of its own (made without a decorator)"
# How far back one looks for what an op stored that a re-execution did not run again.
_MOST_RUNS = 10


def maker_of(context: InputContext) -> str | None:
    """Return the op whose output an input is, as its path in the job; None for an asset."""
    made = context.upstream_output
    if context.has_asset_key or made is None:
        return None
    return upstream.node_of_step_key(made.step_key)


def whole_graph(instance: DagsterInstance, entry: StepEntry, key: AssetKey | None) -> StepEntry:
    """Return what a step knows, and where its asset is made by a graph, what the graph's other ops know.

    The inputs are then the assets that any of the ops has read. What one op hands to another is no input; it
    stays one where the first left no receipt, so that nobody takes the inputs for complete.
    """
    graph = entry.graphs.get(key) if key is not None else None
    if graph is None:
        return entry
    here = upstream.node_of_step_key(entry.key.step_key)
    receipts = _receipts(instance, entry.key.run_id, set(graph.configs) - {here})
    told = {path for path, _ in receipts}
    steps = [step for _, receipt in receipts for step in receipt.inputs] + entry.inputs
    # What an earlier run has read is an input; what it took is not this run's time.
    own = [one for _, one in receipts if (one.dagster or {}).get("run_id") == entry.key.run_id]
    starts = (parse_time(one.started_at) for one in own if one.started_at is not None)
    began = [entry.started_at, *(start.timestamp() for start in starts if start is not None)]
    evidence = None if graph.function is None else code_evidence(graph.function)
    configs = {path: config for path, config in graph.configs.items() if config is not None}
    no_code: dict[str, Any] = {"function": None, "functions": {}, "error": _NO_FUNCTION}
    return replace(
        entry,
        inputs=_distinct(step for step in steps if step.made_by is None or step.made_by not in told),
        timings=[timing for one in own for timing in one.timings] + entry.timings,
        config_hash=config_hash(configs),
        code=no_code if evidence is None else evidence.as_record(),
        code_hash=None if evidence is None else evidence.folder_hash,
        started_at=min(began),
    )


def checked_by_other_ops(
    instance: DagsterInstance, entry: StepEntry, key: AssetKey | None
) -> list[dict[str, Any]]:
    """Return what became of the rules about inputs that the graph's other ops have read; no graph, none."""
    graph = entry.graphs.get(key) if key is not None else None
    if graph is None:
        return []
    others = set(graph.configs) - {upstream.node_of_step_key(entry.key.step_key)}
    receipts = _receipts(instance, entry.key.run_id, others)
    found = [one for _, receipt in receipts for one in receipt.expectations if one.get("side") == "input"]
    return [one for at, one in enumerate(found) if one not in found[:at]]


def _receipts(instance: DagsterInstance, run_id: str, ops: set[str]) -> Sequence[tuple[str, RunRecord]]:
    """Return what the ops stored, in this run or, where it is a re-execution, in the runs before it."""
    found: list[tuple[str, RunRecord]] = []
    missing, wanted = set(ops), run_id
    for _ in range(_MOST_RUNS):
        if not missing:
            break
        for step_key, metadata in upstream.outputs_handled(instance, wanted):
            path = upstream.node_of_step_key(step_key)
            if path in missing and (receipt := _readable(metadata)) is not None:
                found.append((path, receipt))
        missing -= {path for path, _ in found}
        run = instance.get_run_by_id(wanted) if missing else None
        if run is None or run.parent_run_id is None:
            break
        wanted = run.parent_run_id
    return found


def _readable(metadata: Mapping[str, Any]) -> RunRecord | None:
    try:
        receipt = receipt_of(metadata, source="the output of an op")
    except InvalidRecordError:
        return None
    return None if receipt is None else completed(receipt)


def _distinct(steps: Iterable[StepRecord]) -> list[StepRecord]:
    """Keep each reading of an asset once: the copies of a mapped op read the same."""
    kept: dict[Any, StepRecord] = {}
    for step in steps:
        made = tuple((one.partition, one.storage_id) for one in step.producer or ())
        kept.setdefault((step.name, step.made_by, made, step.data_hash), step)
    return list(kept.values())
