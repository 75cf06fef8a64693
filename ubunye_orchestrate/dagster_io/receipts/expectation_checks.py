"""An asset's rules as its declared asset checks, whose results are read from its receipts.

The rules themselves are checked by the IO manager before anything is written; here their results, with their
counts, become visible on the asset.
"""

# Without "from __future__ import annotations": Dagster looks at the class that annotates ``context``.
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetKey,
    AssetRecordsFilter,
    AssetsDefinition,
    AssetSpec,
    EventLogRecord,
    MetadataValue,
    multi_asset_check,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.baseline import receipt_of_event
from ubunye_orchestrate.dagster_io.receipts.completing import completed
from ubunye_orchestrate.dagster_io.receipts.input_names import refuse_unknown_inputs_of
from ubunye_orchestrate.errors import ConfigurationError, InvalidRecordError
from ubunye_orchestrate.expectations.rules import Rule, rules_in, rules_of_function, with_own_names

__all__ = ["broken_rules", "build_expectation_checks"]

# A run over a range stores many partitions; past this the newest stand for all.
_MAX_PARTITIONS = 500

_Results = Sequence[Mapping[str, Any]]


def build_expectation_checks(
    assets: Sequence[AssetsDefinition | AssetSpec], *, blocking: bool = False
) -> list[AssetChecksDefinition]:
    """Return one asset check for each rule of the assets, which reads its result from the newest receipt.

    A failed step materializes nothing: the rules that it broke are reported on their checks at its end. With
    ``blocking``, assets downstream are not run after a rule of severity ``fail``. Raises ConfigurationError
    for an asset without rules, and for a name instead of an asset: the rules stand beside it.
    """
    return [
        _checks(key, rules, blocking)
        for asset in assets
        for key, rules in _rules(asset).items()
        if rules or _refuse(f"asset {key.to_user_string()}, which has no rules")
    ]


def broken_rules(key: AssetKey, results: _Results, declared: Iterable[str]) -> list[AssetCheckEvaluation]:
    """Return the evaluations of the declared checks whose rules a failed step broke."""
    names = set(declared)
    found = []
    for name in dict.fromkeys(str(result.get("rule")) for result in results):
        mine = [result for result in results if result.get("rule") == name]
        if name in names and not all(result.get("passed") for result in mine):
            found.append(
                AssetCheckEvaluation(
                    asset_key=key,
                    check_name=name,
                    passed=False,
                    severity=_severity(mine),
                    description=f"not written: {_words(mine)}",
                    metadata=_counts(mine),
                )
            )
    return found


def _rules(asset: AssetsDefinition | AssetSpec) -> Mapping[AssetKey, tuple[Rule, ...]]:
    if isinstance(asset, AssetSpec):
        return {asset.key: with_own_names(rules_in(asset.metadata, asset.key.to_user_string()))}
    if not isinstance(asset, AssetsDefinition):
        _refuse(repr(asset))
    function = upstream.function_of(asset)
    above = () if function is None else rules_of_function(function)
    found = {
        key: with_own_names([*above, *rules_in(asset.metadata_by_key[key], key.to_user_string())])
        for key in sorted(asset.keys)
    }
    refuse_unknown_inputs_of(asset, [rule for rules in found.values() for rule in rules])
    return found


def _refuse(got: str) -> bool:
    raise ConfigurationError(
        f"build_expectation_checks got {got}; expected assets with rules: @expect.not_null(…) below @asset, "
        "or metadata=expect(…)"
    )


def _checks(key: AssetKey, rules: Sequence[Rule], blocking: bool) -> AssetChecksDefinition:
    specs = [
        AssetCheckSpec(
            rule.name,
            asset=key,
            description=f"The rule {rule.kind} of severity {rule.severity}, checked {_when(rule)}.",
            blocking=blocking,
        )
        for rule in rules
    ]

    @multi_asset_check(name=f"{key.to_python_identifier()}_expectations", specs=specs)
    def expectations(context: AssetCheckExecutionContext) -> Iterable[AssetCheckResult]:
        results, problem = _newest_results(context, key)
        for rule in rules:
            yield _result(key, rule, [one for one in results if one.get("rule") == rule.name], problem)

    return expectations


def _when(rule: Rule) -> str:
    return f"on input {rule.input}, before the step runs" if rule.input else "before it is written"


def _newest_results(context: AssetCheckExecutionContext, key: AssetKey) -> tuple[_Results, str]:
    """Return the results in the newest receipts, and why a rule may have none there."""
    results: list[Mapping[str, Any]] = []
    problem = "it was never materialized"
    for event in _newest_events(context, key):
        try:
            record = receipt_of_event(event)
        except InvalidRecordError as e:
            problem = str(e)
            continue
        if record is None:
            problem = "its materialization has no receipt (is its IO manager wrapped?)"
            continue
        record = completed(record)
        results += record.expectations
        cut = "expectations" in ((record.model_extra or {}).get("cut") or ())
        problem = "its receipt holds no result of this rule"
        if cut:
            problem = "the results were cut from the receipt for its size; the whole record has them"
    # Stored together, each partition has the results of all.
    return [one for at, one in enumerate(results) if one not in results[:at]], problem


def _newest_events(context: AssetCheckExecutionContext, key: AssetKey) -> Sequence[EventLogRecord]:
    """Return what this run materialized of the asset; its newest materialization where it was nothing."""
    fetch = context.instance.fetch_materializations
    newest: Sequence[EventLogRecord] = fetch(AssetRecordsFilter(asset_key=key), limit=1).records
    if not newest or newest[0].run_id != context.run.run_id or newest[0].partition_key is None:
        return newest
    recent = fetch(AssetRecordsFilter(asset_key=key), limit=_MAX_PARTITIONS).records
    return [event for event in recent if event.run_id == context.run.run_id]


def _result(key: AssetKey, rule: Rule, results: _Results, problem: str) -> AssetCheckResult:
    if not results:
        # What was not checked must not look as if it had passed.
        return AssetCheckResult(
            asset_key=key,
            check_name=rule.name,
            passed=False,
            severity=AssetCheckSeverity.WARN,
            description=f"not judged: {problem}",
        )
    return AssetCheckResult(
        asset_key=key,
        check_name=rule.name,
        passed=all(bool(result.get("passed")) for result in results),
        severity=_severity(results),
        description=_words(results),
        metadata=_counts(results),
    )


def _severity(results: _Results) -> AssetCheckSeverity:
    warns = all(result.get("severity") == "warn" for result in results)
    return AssetCheckSeverity.WARN if warns else AssetCheckSeverity.ERROR


def _words(results: _Results) -> str:
    details = [str(result["detail"]) for result in results if result.get("detail")]
    if details:
        return "; ".join(details)
    counts = _sums(results)
    what = "columns" if results[0].get("kind") == "columns" else "rows"
    if not counts:
        return "no counts"
    if counts["failed"] == 0:
        return f"holds; {counts['total']:,} {what}"
    return f"broken by {counts['failed']:,} of {counts['total']:,} {what}"


def _counts(results: _Results) -> dict[str, MetadataValue]:
    shown: dict[str, MetadataValue] = {
        f"ubunye/{name}": MetadataValue.int(count) for name, count in _sums(results).items()
    }
    other = sorted({str(result["checked"]) for result in results if result.get("checked")})
    if other:
        shown["ubunye/checked"] = MetadataValue.text(", ".join(other))
    return shown


def _sums(results: _Results) -> dict[str, int]:
    counts = [(result.get("failed"), result.get("total")) for result in results]
    if any(not isinstance(count, int) for pair in counts for count in pair):
        return {}
    return {
        "failed": sum(int(failed or 0) for failed, _ in counts),
        "total": sum(int(total or 0) for _, total in counts),
    }
