"""The rules of an asset, held against its table before anything is written."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dagster import AssetKey, DagsterLogManager, InputContext, OutputContext

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.ledger import Checked, StepEntry
from ubunye_orchestrate.dagster_io.producers import asset_name
from ubunye_orchestrate.errors import ExpectationError
from ubunye_orchestrate.expectations.outcomes import Measure, Outcome
from ubunye_orchestrate.expectations.rules import Rule, rules_in, rules_of_function, with_own_names

__all__ = ["check_output", "check_table", "measure_input", "measure_read", "not_checked", "rules_of"]


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
    step = upstream.step_context(context)
    if step is None:
        return
    key = context.asset_key if context.has_asset_key else None
    rules = rules_of(step, key)
    if not rules:
        return
    parts: Mapping[str | None, object] = {None: value}
    if isinstance(value, Mapping) and context.has_asset_partitions:
        keys = {str(one) for one in context.asset_partition_keys}
        if keys == {str(one) for one in value}:
            parts = {str(name): part for name, part in value.items()}
    name = context.name if key is None else asset_name(key)
    check_table(entry, name, rules, parts, context.log)


def check_table(
    entry: StepEntry | None,
    name: str,
    rules: Sequence[Rule],
    parts: Mapping[str | None, object],
    log: DagsterLogManager,
) -> None:
    """Check a table, or each of its partitions, and note the results. Raises ExpectationError."""
    # Here and not above: most steps have no rules, and Narwhals takes a while to load.
    from ubunye_orchestrate.expectations.evaluate import evaluate, measure
    from ubunye_orchestrate.expectations.reconciling import reconcile

    started = time.perf_counter()
    results: list[dict[str, Any]] = []
    broken: list[Outcome] = []
    for partition, part in parts.items():
        outcomes = evaluate(rules, part)
        for outcome in outcomes:
            where = {} if partition is None else {"partition": partition}
            results.append({**outcome.as_record(name), **where})
        broken += [outcome for outcome in outcomes if not outcome.passed]
    read = entry.measured if entry is not None else {}
    for rule in rules:
        if rule.kind == "reconcile":
            outcome = reconcile(rule, read, _total([measure(p, rule.columns) for p in parts.values()]), name)
            results.append(outcome.as_record(name))
            broken += [] if outcome.passed else [outcome]
    if entry is not None:
        entry.checked[name] = Checked(tuple(results), time.perf_counter() - started)
    failing = [outcome for outcome in broken if outcome.rule.severity == "fail"]
    for outcome in broken:
        if outcome.rule.severity == "warn":
            log.warning(f"ubunye: {name}: {_line(outcome)}")
    if failing:
        lines = "".join(f"\n  {name}: {_line(outcome)}" for outcome in failing)
        raise ExpectationError(
            f"Expectations failed, so nothing was written:{lines}\n"
            'Fix the data or its source, or give the rule severity="warn" if this may be'
        )


def measure_input(context: InputContext, entry: StepEntry, parts: Sequence[object]) -> None:
    """Note what an input holds in all, where a rule of the step's outputs is held against it.

    ``parts`` are its partitions where they came one by one, else the input alone.
    """
    names = {context.name}
    if context.has_asset_key:
        names.add(asset_name(context.asset_key))
    measure_read(upstream.step_context(context), entry, names, parts)


def measure_read(
    step: upstream.StepContext, entry: StepEntry, names: Iterable[str], parts: Sequence[object]
) -> None:
    """Note what a table that was read holds in all; ``names`` are those that a rule may call it by."""
    keys: list[AssetKey | None] = [asset.key for asset in entry.assets]
    rules = [rule for key in keys or [None] for rule in rules_of(step, key)]
    for name in names:
        mine = [rule for rule in rules if rule.kind == "reconcile" and rule.options["input"] == name]
        if mine:
            from ubunye_orchestrate.expectations.evaluate import measure

            columns = sorted({column for rule in mine for column in rule.columns})
            entry.measured[name] = _total([measure(part, columns) for part in parts])


def not_checked(name: str, rules: Iterable[Rule], reason: str) -> Checked:
    """Return results of rules that nobody checked: none has passed."""
    outcomes = [Outcome(rule, passed=False, detail=f"not checked: {reason}") for rule in rules]
    return Checked(tuple(outcome.as_record(name) for outcome in outcomes), 0.0)


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
