"""The rules of an asset, held against what it reads and against its table before anything is written."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dagster import AssetKey, DagsterLogManager, InputContext, OutputContext

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.graphs import checked_by_other_ops
from ubunye_orchestrate.dagster_io.receipts.input_names import refuse_unknown_inputs_of
from ubunye_orchestrate.dagster_io.receipts.ledger import Checked, StepEntry
from ubunye_orchestrate.dagster_io.receipts.panel import harmless
from ubunye_orchestrate.dagster_io.receipts.producers import asset_name
from ubunye_orchestrate.errors import ConfigurationError, ExpectationError, UbunyeError
from ubunye_orchestrate.expectations.outcomes import Measure, Outcome
from ubunye_orchestrate.expectations.rules import Rule, rules_in, rules_of_function, with_own_names

__all__ = [
    "check_input",
    "check_output",
    "check_parts",
    "check_read",
    "check_table",
    "not_checked",
    "parts_to_store",
    "rules_of",
    "rules_of_output",
]


_FAULT = "checking failed; the run's log says why"


def rules_of(step: upstream.StepContext, key: AssetKey | None) -> tuple[Rule, ...]:
    """Return the rules of an asset: those above its function, then those in its metadata.

    Without an asset (``key`` is None) those above the op's function.

    Raises ConfigurationError for metadata that ``expect`` did not make.
    """
    function = upstream.compute_function(step)
    above = () if function is None else rules_of_function(function)
    metadata = {} if key is None else upstream.metadata_in_step(step, key)
    return with_own_names([*above, *rules_in(metadata, "" if key is None else key.to_user_string())])


def check_output(context: OutputContext, entry: StepEntry | None, value: object) -> None:
    """Check what an IO manager is about to store. Raises ExpectationError where a rule of ``fail`` is broken.

    Partitions that come as a dict are checked one by one.
    """
    check_parts(context, entry, parts_to_store(context, value))


def parts_to_store(context: OutputContext, value: object) -> Mapping[str | None, object]:
    """Return the tables in a value by partition, where it is a dict of them; else the value under None."""
    if isinstance(value, Mapping) and context.has_asset_partitions:
        keys = {str(one) for one in context.asset_partition_keys}
        if keys == {str(one) for one in value}:
            return {str(name): part for name, part in value.items()}
    return {None: value}


def check_parts(
    context: OutputContext,
    entry: StepEntry | None,
    parts: Mapping[str | None, object],
    *,
    settled: bool = False,
) -> None:
    """Check the tables of an output, each as a frame or as a ``TableInParts``. Raises ExpectationError.

    ``settled``: the frames are read from what is staged, so a lazy one gives the rows that are stored.
    """
    rules: tuple[Rule, ...] = ()
    with _faults_logged(context.log):
        rules = rules_of_output(context)
    if not rules:
        return
    key = context.asset_key if context.has_asset_key else None
    name = context.name if key is None else asset_name(key)
    if entry is not None and any(rule.input for rule in rules):
        with harmless(context.log, "looking for what other ops have checked"):
            checked = checked_by_other_ops(upstream.instance_of(context), entry, key)
            entry.checked_inputs.setdefault(name, []).extend(checked)
    check_table(entry, name, rules, parts, context.log, settled=settled)


def rules_of_output(context: OutputContext) -> tuple[Rule, ...]:
    """Return the rules of what is stored, those about what was read for it among them."""
    step = upstream.step_context(context)
    if step is None:
        return ()
    return rules_of(step, context.asset_key if context.has_asset_key else None)


def check_table(
    entry: StepEntry | None,
    name: str,
    rules: Sequence[Rule],
    parts: Mapping[str | None, object],
    log: DagsterLogManager,
    *,
    settled: bool = False,
) -> None:
    """Check a table, or each of its partitions, and note the results. Raises ExpectationError.

    A rule about an input that was not held against one by now has not passed.
    """
    started = time.perf_counter()
    broken: list[Outcome] = []
    checked = not_checked(name, rules, _FAULT)
    with _faults_logged(log):
        results, broken = _held_against(entry, name, rules, parts, settled=settled)
        checked = Checked(tuple(results), time.perf_counter() - started)
    if entry is not None:
        entry.checked[name] = checked
    _settle(broken, "Expectations failed, so nothing was written", name, log)


def _held_against(
    entry: StepEntry | None,
    name: str,
    rules: Sequence[Rule],
    parts: Mapping[str | None, object],
    *,
    settled: bool,
) -> tuple[list[dict[str, Any]], list[Outcome]]:
    of_output = [rule for rule in rules if not rule.input]
    results, broken = _evaluated(of_output, parts, name, settled=settled)
    for rule in of_output:
        if rule.kind == "reconcile":
            outcome = _reconciled(rule, {} if entry is None else entry.measured, parts, name)
            results.append(outcome.as_record(name))
            broken += [] if outcome.passed else [outcome]
    held = {one["rule"] for one in entry.checked_inputs.get(name, ())} if entry is not None else set()
    for rule in rules:
        if rule.input and rule.name not in held:
            outcome = Outcome(rule, passed=False, detail=f"not checked: no input {rule.input!r} was read")
            results.append(outcome.as_record(rule.input))
            # What another op of a graph has checked may have been cut from its receipt: that fails no run.
            # Without an entry what was held against it is not known: it would have raised by itself.
            broken += [] if entry is None or entry.graphs else [outcome]
    return results, broken


def check_input(context: InputContext, entry: StepEntry | None, parts: Mapping[str | None, object]) -> None:
    """Hold what was read against the rules about this input, of all that the step makes.

    ``parts`` are its partitions where they came one by one, else the input under None. What it holds in all
    is noted, where a rule of an output is held against it. Raises ExpectationError, before the asset's
    function gets the table.
    """
    step = upstream.step_context(context)
    if step is None:
        return
    shown = asset_name(context.asset_key) if context.has_asset_key else context.name
    with _faults_logged(context.log):
        _refuse_unknown_inputs(step, entry)
    check_read(step, entry, (shown, context.name), parts, context.log)


def _refuse_unknown_inputs(step: upstream.StepContext, entry: StepEntry | None) -> None:
    """Raise ConfigurationError where the step would fail at its end, for a rule about an input it has not."""
    asset = upstream.assets_definition_of(step)
    if asset is None:
        return
    declared = _rules_by_task(step, entry)
    rules = [rule for its in declared.values() for rule in its if rule.severity == "fail"]
    if not any(rule.input or rule.kind == "reconcile" for rule in rules):
        return
    try:
        refuse_unknown_inputs_of(asset, rules)
    except ConfigurationError:
        if entry is not None:
            for task, its in declared.items():
                entry.checked_inputs[task] = list(not_checked(task, its, "the step did not run").results)
        raise


def check_read(
    step: upstream.StepContext,
    entry: StepEntry | None,
    names: Sequence[str],
    parts: Mapping[str | None, object],
    log: DagsterLogManager,
) -> None:
    """As ``check_input``. ``names`` are those that a rule may call the table by, that of its record first."""
    declared: Mapping[str, tuple[Rule, ...]] = {}
    broken: list[Outcome] | None = None
    with _faults_logged(log):
        declared = _rules_by_task(step, entry)
        broken = _hold_input(declared, entry, names, parts)
    if broken is None and entry is not None:
        for task, rules in declared.items():
            mine = [rule for rule in rules if rule.input in names]
            entry.checked_inputs.setdefault(task, []).extend(not_checked(names[0], mine, _FAULT).results)
    if entry is not None:
        with harmless(log, "measuring an input"):
            _note_measures(declared, entry, set(names), list(parts.values()))
    problem = f"Expectations on input {names[0]} failed, so the step did not run"
    _settle(broken or (), problem, names[0], log)


def _hold_input(
    declared: Mapping[str, Sequence[Rule]],
    entry: StepEntry | None,
    names: Sequence[str],
    parts: Mapping[str | None, object],
) -> list[Outcome]:
    """Hold an input against the rules about it, note the results, and return what was broken."""
    started = time.perf_counter()
    held: list[tuple[Rule, list[dict[str, Any]]]] = []
    broken: list[Outcome] = []
    for task, rules in declared.items():
        for rule in rules:
            if rule.input not in names:
                continue
            results = next((results for other, results in held if other == rule), None)
            if results is None:
                results, failed = _evaluated([rule], parts, names[0])
                held.append((rule, results))
                broken += failed
            if entry is not None:
                entry.checked_inputs.setdefault(task, []).extend(results)
    if held and entry is not None:
        seconds = round(time.perf_counter() - started, 6)
        entry.timings.append({"step": f"Expectations:{entry.op}", "input": names[0], "seconds": seconds})
        entry.mark = time.perf_counter()
    return broken


@contextmanager
def _faults_logged(log: DagsterLogManager) -> Iterator[None]:
    """Let errors that say what the user can do pass; a fault of ours is logged and fails nobody's run."""
    try:
        yield
    except UbunyeError:
        raise
    except Exception:  # noqa: BLE001 - what it left unchecked is recorded as not checked
        log.warning(f"ubunye: checking rules failed; they count as not checked.\n{traceback.format_exc()}")


def _rules_by_task(step: upstream.StepContext, entry: StepEntry | None) -> Mapping[str, tuple[Rule, ...]]:
    """Return the rules of all that a step makes or has part in, by the name of its record; looked up once."""
    if entry is not None and entry.rules is not None:
        return entry.rules
    assets = upstream.assets_of_step(step) if entry is None else entry.assets
    tasks: dict[str, AssetKey | None] = {asset_name(asset.key): asset.key for asset in assets}
    if not tasks:
        # An op: its outputs, and the assets of the graph that it is in.
        tasks.update((name, None) for name in upstream.step_outputs(step))
        tasks.update((asset_name(key), key) for key in upstream.graphs_of_step(step))
    found = {name: rules_of(step, key) for name, key in tasks.items()}
    if entry is not None:
        entry.rules = found
    return found


def _evaluated(
    rules: Sequence[Rule], parts: Mapping[str | None, object], name: str, *, settled: bool = False
) -> tuple[list[dict[str, Any]], list[Outcome]]:
    """Return what became of the rules on each part, as records have it, and what was broken."""
    if not rules:
        return [], []
    # Here and not above: most steps have no rules, and Narwhals takes a while to load.
    from ubunye_orchestrate.expectations.evaluate import evaluate
    from ubunye_orchestrate.expectations.in_parts import TableInParts, evaluate_in_parts

    results: list[dict[str, Any]] = []
    broken: list[Outcome] = []
    for partition, part in parts.items():
        outcomes = evaluate_in_parts(rules, part) if isinstance(part, TableInParts) else evaluate(rules, part)
        if settled:
            outcomes = [replace(outcome, on_plan=False) for outcome in outcomes]
        where = {} if partition is None else {"partition": partition}
        results += [{**outcome.as_record(name), **where} for outcome in outcomes]
        broken += [outcome for outcome in outcomes if not outcome.passed]
    return results, broken


def _reconciled(
    rule: Rule, read: Mapping[str, Measure | str], parts: Mapping[str | None, object], name: str
) -> Outcome:
    from ubunye_orchestrate.expectations.reconciling import reconcile

    return reconcile(rule, read, _total([_measured(part, rule.columns) for part in parts.values()]), name)


def _measured(part: object, columns: Sequence[str]) -> Measure | str:
    from ubunye_orchestrate.expectations.evaluate import measure
    from ubunye_orchestrate.expectations.in_parts import TableInParts, measure_in_parts

    return measure_in_parts(part, columns) if isinstance(part, TableInParts) else measure(part, columns)


def _settle(broken: Sequence[Outcome], problem: str, name: str, log: DagsterLogManager) -> None:
    """Warn of what may be, and raise ExpectationError for what may not."""
    failing = [outcome for outcome in broken if outcome.rule.severity == "fail"]
    for outcome in broken:
        if outcome.rule.severity == "warn":
            log.warning(f"ubunye: {name}: {_line(outcome)}")
    if failing:
        lines = "".join(f"\n  {outcome.rule.input or name}: {_line(outcome)}" for outcome in failing)
        raise ExpectationError(
            f'{problem}:{lines}\nFix the data or its source, or give the rule severity="warn" if this may be'
        )


def _note_measures(
    declared: Mapping[str, Sequence[Rule]], entry: StepEntry, names: Iterable[str], parts: Sequence[object]
) -> None:
    """Note what a table that was read holds in all, where a rule of an output is held against it."""
    rules = [rule for its in declared.values() for rule in its if rule.kind == "reconcile"]
    for name in names:
        mine = [rule for rule in rules if rule.options["input"] == name]
        if mine:
            columns = sorted({column for rule in mine for column in rule.columns})
            entry.measured[name] = _total([_measured(part, columns) for part in parts])


def not_checked(name: str, rules: Iterable[Rule], reason: str) -> Checked:
    """Return results of rules that nobody checked: none has passed."""
    outcomes = [Outcome(rule, passed=False, detail=f"not checked: {reason}") for rule in rules]
    return Checked(tuple(outcome.as_record(outcome.rule.input or name) for outcome in outcomes), 0.0)


def _total(measures: Sequence[Measure | str]) -> Measure | str:
    total: Measure | None = None
    for one in measures:
        if isinstance(one, str):
            return one
        total = one if total is None else total + one
    return total or "no partition was read"


def _line(outcome: Outcome) -> str:
    rule = outcome.rule
    what = f"{rule.name} ({rule.kind})"
    if outcome.failed is None:
        return f"{what} {outcome.detail}"
    if rule.kind == "row_count":
        return f"{what} broken by {outcome.total:,} rows; expected {_bounds(rule)}"
    if outcome.detail is not None:
        return f"{what} broken: {outcome.detail}"
    return f"{what} broken by {outcome.failed:,} of {outcome.total:,} rows"


def _bounds(rule: Rule) -> str:
    words = {"min": "at least", "max": "at most"}
    return ", ".join(f"{words[side]} {value:,}" for side, value in rule.options.items())
