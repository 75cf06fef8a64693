"""Which policy an asset is judged by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dagster import AssetKey, JsonMetadataValue

from ubunye_orchestrate.compare.policy import DriftPolicy, policy_from
from ubunye_orchestrate.errors import ConfigurationError

__all__ = ["POLICY", "Policies", "PolicyGiven", "policies", "policy_in"]

POLICY = "ubunye/policy"
"""The key in an asset's metadata under which its policy stands, as a mapping of ``DriftPolicy``'s fields."""

PolicyGiven = DriftPolicy | Mapping[AssetKey | str | Sequence[str], DriftPolicy] | None
Policies = Callable[[AssetKey, Mapping[str, Any]], DriftPolicy]


def policies(given: PolicyGiven) -> Policies:
    """Return what tells an asset's policy, from its key and its definition's metadata.

    A mapping's entry for the asset comes first, then the asset's own metadata, then the one policy given for
    all, then the defaults.
    """
    if given is None or isinstance(given, DriftPolicy):
        by_key: dict[AssetKey, DriftPolicy] = {}
        for_all = given or DriftPolicy()
    else:
        by_key = {AssetKey.from_coercible(key): policy for key, policy in given.items()}
        for_all = DriftPolicy()

    def policy_of(key: AssetKey, metadata: Mapping[str, Any]) -> DriftPolicy:
        return by_key.get(key) or policy_in(metadata, key) or for_all

    return policy_of


def policy_in(metadata: Mapping[str, Any], key: AssetKey) -> DriftPolicy | None:
    """Return the policy in an asset's metadata; None when there is none. Raises ConfigurationError."""
    value = metadata.get(POLICY)
    if isinstance(value, JsonMetadataValue):
        value = value.data
    if value is None or isinstance(value, DriftPolicy):
        return value
    asset = key.to_user_string()
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f'metadata "{POLICY}" of asset {asset} is {type(value).__name__}; expected a mapping such as '
            '{"max_row_decrease": 0.1}'
        )
    return policy_from(value, where=f'metadata "{POLICY}" of asset {asset}')
