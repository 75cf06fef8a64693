"""Records as text: the lists and the trace, in the engine's layout, within 80 columns where names allow."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from ubunye_orchestrate.cli.address import Task
from ubunye_orchestrate.cli.documents import transform_name
from ubunye_orchestrate.compare.naming import asset_name, keys_in_order
from ubunye_orchestrate.compare.text import printable, short_hash, short_run_id
from ubunye_orchestrate.records.model import RunRecord, StepRecord

__all__ = ["asset_documents", "asset_lines", "run_lines", "search_lines", "trace_lines", "wrapped"]

_RULE = "-" * 60


def run_lines(task: str, records: list[RunRecord]) -> Iterator[str]:
    """Yield the table of ``list``: runs of one task, newest first."""
    width = max([8, *(len(short_run_id(record.run_id)) for record in records)])
    yield _RULE
    yield f"Task: {task}"
    yield _RULE
    yield f"{'RUN_ID':<{width}}  {'STARTED':<19}  {'STATUS':<8} {'DUR':>8}  ROWS"
    yield _RULE
    for record in records:
        yield (
            f"{short_run_id(record.run_id):<{width}}  {_when(record):<19}  {record.status:<8} "
            f"{_duration(record):>8}  in:{_rows(record.inputs)}  out:{_rows(record.outputs)}"
        )


def search_lines(records: Iterable[RunRecord]) -> Iterator[str]:
    """Yield the table of ``search``, each line as soon as its record is there."""
    yield _RULE
    yield f"{'RUN_ID':<8}  {'TASK PATH':<33}  {'STARTED':<19}  {'STATUS':<7} {'DUR':>6}"
    yield _RULE
    for record in records:
        yield (
            f"{short_run_id(record.run_id):<8}  {printable(record.task_path):<33}  {_when(record):<19}  "
            f"{record.status:<7} {_duration(record):>6}"
        )


def asset_lines(tasks: Iterable[Task]) -> Iterator[str]:
    """Yield the table of ``assets``, each line as soon as its newest record is there."""
    yield _RULE
    yield f"{'ASSET':<34}  {'RECORDS':>7}  {'NEWEST RUN':<19}  {'STATUS':<7}  ROWS"
    yield _RULE
    for task in tasks:
        record, count = _newest(task)
        if record is None:
            yield f"{task.path:<34}  {count:>7}  {'-':<19}  {'-':<7}  -"
        else:
            name = printable(asset_name(record) or record.task_path)
            yield (
                f"{name:<34}  {count:>7}  {_when(record):<19}  {record.status:<7}  {_rows(record.outputs)}"
            )


def asset_documents(tasks: Iterable[Task]) -> Iterator[dict[str, Any]]:
    """Yield each asset as a JSON document."""
    for task in tasks:
        record, count = _newest(task)
        key = (record.dagster or {}).get("asset_key") if record is not None else None
        yield {
            "task": "/".join(task.names),
            "asset_key": key,
            "records": count,
            "newest": None
            if record is None
            else {
                "run_id": record.run_id,
                "status": record.status,
                "started_at": record.started_at,
                "outputs": {
                    step.name: {"row_count": step.row_count, "data_hash": step.data_hash}
                    for step in record.outputs
                },
            },
        }


def _newest(task: Task) -> tuple[RunRecord | None, int]:
    return next(task.runs(), None), len(task.store.run_ids(*task.names))


def trace_lines(record: RunRecord, *, full_hashes: bool = False) -> Iterator[str]:
    """Yield the flow of one run: inputs, transform, outputs, code, environment, timings, expectations."""
    version = f" v{printable(record.version)}" if record.version else ""
    yield ""
    yield f"Lineage trace: {printable(record.task_path)}"
    yield f"Run:     {printable(record.run_id)}  [{record.status}]  {_when(record)}"
    yield from _identity(record)
    if record.error:
        first, *rest = record.error.splitlines() or [""]
        yield f"Error:   {printable(first)}"
        yield from (f"  {printable(line.strip())}" for line in rest)
    yield f"Version: {printable(record.model)}{version}"
    yield from _steps("INPUTS", record.inputs, full_hashes)
    yield from ("", "  TRANSFORM", f"    ({printable(transform_name(record))})")
    yield from _steps("OUTPUTS", record.outputs, full_hashes)
    yield from _code_and_environment(record, full_hashes)
    yield from _timings(record)
    yield from _expectations(record)
    yield ""


def _identity(record: RunRecord) -> Iterator[str]:
    dagster = record.dagster or {}
    asset = asset_name(record)
    if asset is not None:
        yield f"Asset:   {printable(asset)}"
    keys = keys_in_order(record)
    if keys:
        yield from wrapped("Partitions: " if len(keys) > 1 else "Partition: ", ", ".join(keys))
    if dagster.get("attempt"):
        yield f"Attempt: {printable(dagster['attempt'])} (counted from 0)"
    if dagster.get("step_status") not in (None, record.status):
        yield f"Step:    {printable(dagster['step_status'])}"


def _steps(title: str, steps: list[StepRecord], full: bool) -> Iterator[str]:
    yield from ("", f"  {title}")
    if not steps:
        yield "    none recorded"
    for step in steps:
        yield f"    [{printable(step.format or '-')}] {printable(step.name)}"
        if step.location:
            yield f"      location : {printable(step.location)}"
        yield f"      rows     : {'-' if step.row_count is None else step.row_count}"
        yield f"      schema   : {_hash(step.schema_hash, full)}"
        if step.data_hash is None:
            yield from wrapped("      data     : ", f"unknown ({step.hash_error or 'not recorded'})")
        else:
            yield f"      data     : {_hash(step.data_hash, full)}"
        if step.hash_scope:
            yield f"      hash of  : {printable(step.hash_scope)}"
        if step.hash_seconds is not None:
            yield f"      hashed in: {step.hash_seconds:.3f}s"
        if step.hash_basis:
            yield f"      hash from: {step.hash_basis}"
        if step.hash_reused_from:
            yield f"      reused   : the hash of run {printable(step.hash_reused_from)}"
        if step.source_changed:
            yield "      source   : moved between read and hash"
        if step.source_note:
            yield from wrapped("      source   : ", step.source_note)
        for producer in step.producer or ():
            partition = "" if producer.partition is None else f"partition {producer.partition}, "
            run = "an unknown run" if producer.run_id is None else f"run {producer.run_id}"
            yield f"      read from: {printable(partition + run)}"


def _code_and_environment(record: RunRecord, full: bool) -> Iterator[str]:
    yield from ("", "  CODE AND ENVIRONMENT")
    yield f"    code        : {_hash(record.code_hash, full)}"
    code = record.code or {}
    functions = code.get("functions")
    if isinstance(functions, dict):
        for name, value in functions.items():
            yield f"    function    : {printable(name)} {_hash(str(value), full)}"
    if code.get("error"):
        yield from wrapped("    functions   : ", f"unknown ({code['error']})")
    environment = record.environment
    if environment is not None and environment.python:
        on = f" on {environment.platform}" if environment.platform else ""
        yield f"    python      : {printable(environment.python + on)}"
        if environment.java:
            yield f"    java        : {printable(environment.java)}"
        for name in sorted(environment.packages):
            yield f"    {printable(name):<12}: {printable(environment.packages[name])}"
    yield f"    environment : {_hash(record.environment_hash, full)}"


def _timings(record: RunRecord) -> Iterator[str]:
    if not record.timings:
        return
    yield from ("", "  STEPS")
    for timing in record.timings:
        of = timing.get("input") or timing.get("output") or ""
        yield f"    {_text(timing, 'step'):<32} {printable(of):<24} {_seconds(timing.get('seconds'))}"


def _expectations(record: RunRecord) -> Iterator[str]:
    if not record.expectations:
        return
    yield from ("", "  EXPECTATIONS")
    for rule in record.expectations:
        passed = "ok" if rule.get("passed") is True else _text(rule, "severity")
        side = "input " if rule.get("side") == "input" else ""
        name = f"{side}{_text(rule, 'output')}.{_text(rule, 'rule')}"
        yield f"    {passed:<10} {name:<44} {_text(rule, 'failed')}/{_text(rule, 'total')}"
        if rule.get("detail"):
            yield from wrapped(" " * 15, str(rule["detail"]))


def _text(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return "-" if value is None else printable(value)


def _seconds(value: object) -> str:
    return f"{value:.3f}s" if isinstance(value, int | float) else "-"


def _hash(value: str | None, full: bool) -> str:
    return "unknown (not recorded)" if value is None else short_hash(value, full=full)


def _when(record: RunRecord) -> str:
    return printable(record.started_at or "-")[:19]


def _duration(record: RunRecord) -> str:
    return "-" if record.duration_sec is None else f"{record.duration_sec:.1f}s"


def _rows(steps: list[StepRecord]) -> str:
    """Add the rows that are known; a step whose rows are not shows as ``-`` and is not counted as 0."""
    known = [step.row_count for step in steps if step.row_count is not None]
    if not known:
        return "-"
    return f"{sum(known)},-" if len(known) < len(steps) else str(sum(known))


def wrapped(lead: str, text: str) -> list[str]:
    """Return text, made printable, in lines of 80 columns; the first begins with ``lead``."""
    return textwrap.wrap(
        printable(text),
        80,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [lead.rstrip()]
