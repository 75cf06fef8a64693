"""Rules about an input that a step does not have: refused before anything runs, with the line to change."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from dagster import AssetsDefinition

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.expectations.rules import Rule

__all__ = ["refuse_unknown_inputs", "refuse_unknown_inputs_of"]


def refuse_unknown_inputs_of(
    asset: AssetsDefinition, rules: Sequence[Rule], receipts_keys: Collection[str] | None = None
) -> None:
    """Raise ConfigurationError for a rule about an input that the asset neither loads nor depends on.

    One that may read by itself (``receipts.run``) is left alone: it calls what it reads as it likes.
    ``receipts_keys`` are the keys of ``Receipts`` among the resources; None where they are not known, so that
    any resource may be one.
    """
    if asset.is_executable and not upstream.may_store_by_itself(asset, receipts_keys):
        names = ", ".join(key.to_user_string() for key in sorted(asset.keys))
        refuse_unknown_inputs(f"asset {names}", rules, upstream.names_of_inputs(asset))


def refuse_unknown_inputs(what: str, rules: Sequence[Rule], known: Collection[str]) -> None:
    """Raise ConfigurationError for a rule about an input that is not among the ``known`` ones."""
    for rule in rules:
        name = rule.options.get("input") if rule.kind == "reconcile" else rule.input
        if not name or name in known:
            continue
        close = difflib.get_close_matches(str(name), sorted(known), 1) or sorted(known)
        if not close:
            raise ConfigurationError(
                f"{what} has rule {rule.name} about input {name!r}, and has no inputs; expected the rule on "
                "an asset that has this input"
            )
        line = f'expect.reconcile("{close[0]}")' if rule.kind == "reconcile" else f'.on_input("{close[0]}")'
        raise ConfigurationError(
            f"{what} has rule {rule.name} about input {name!r}, which it does not have; expected one of "
            f"{', '.join(sorted(known))}: {line}"
        )
