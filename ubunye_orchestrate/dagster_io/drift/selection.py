"""The assets that a sensor or checks look at, in every form in which a user names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dagster import (
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    AssetSpec,
    SensorEvaluationContext,
    SourceAsset,
)

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.errors import ConfigurationError

__all__ = ["AssetGiven", "AssetsGiven", "Selection", "keys_in", "keys_of", "selection_of"]

# The last is never seen in practice, but is among what ``load_assets_from_package_module`` says to return.
AssetGiven: TypeAlias = (
    AssetKey | str | Sequence[str] | AssetsDefinition | AssetSpec | SourceAsset | upstream.LegacyAssets
)
AssetsGiven: TypeAlias = AssetSelection | Sequence[AssetGiven]


@dataclass(frozen=True)
class Selection:
    """A selection of assets."""

    keys: tuple[AssetKey, ...] | None
    """None when they are known only with the project's graph."""
    shown: AssetSelection
    """As Dagster takes it."""

    def resolve(self, context: SensorEvaluationContext) -> Mapping[AssetKey, Mapping[str, Any]]:
        """Return the metadata of each asset's definition. Raises ConfigurationError without a project."""
        repository = context.repository_def
        if repository is None:
            if self.keys is None:
                raise ConfigurationError(
                    "the sensor selects assets by an AssetSelection and runs outside of a project; expected "
                    "Definitions around it (in a test: build_sensor_context(definitions=…))"
                )
            return {key: {} for key in self.keys}
        keys = upstream.keys_in_project(repository, self.shown) if self.keys is None else self.keys
        return {key: upstream.metadata_in_project(repository, key) for key in keys}


def selection_of(assets: AssetsGiven) -> Selection:
    """Return the selection that a user means. Raises ConfigurationError for what names no asset."""
    if isinstance(assets, AssetSelection):
        return Selection(None, assets)
    keys = keys_of(assets)
    return Selection(keys, AssetSelection.assets(*keys))


def keys_in(assets: AssetsGiven, among: Sequence[AssetGiven] | None = None) -> tuple[AssetKey, ...]:
    """Return the keys that a user means, where no project is at hand.

    A selection that goes by the graph (``groups``, ``upstream``, ``|``) is looked up in ``among``, the
    project's assets. Raises ConfigurationError for one without these, and for what names no asset.
    """
    if not isinstance(assets, AssetSelection):
        return keys_of(assets)
    if among is not None:
        definitions = [one for one in among if isinstance(one, AssetsDefinition | SourceAsset)]
        return keys_of(sorted(assets.resolve(definitions)))
    named = upstream.keys_named_by(assets)
    if named is None:
        raise ConfigurationError(
            f"the selection {assets} goes by the graph of assets, which is not at hand here; expected a list "
            "of assets, or the project's assets too: among=[...]"
        )
    return keys_of(named)


def keys_of(assets: Iterable[AssetGiven]) -> tuple[AssetKey, ...]:
    """Return the keys of assets, in their order, each once."""
    if isinstance(assets, str | AssetKey | AssetsDefinition | AssetSpec | SourceAsset):
        raise ConfigurationError(
            f"got one asset ({assets!r}); expected a list of assets or an AssetSelection"
        )
    keys: dict[AssetKey, None] = {}
    for asset in assets:
        if isinstance(asset, AssetsDefinition):
            keys.update(dict.fromkeys(asset.keys))
        elif isinstance(asset, AssetSpec | SourceAsset):
            keys[asset.key] = None
        elif isinstance(asset, upstream.LegacyAssets):
            raise ConfigurationError(
                f"got {asset!r}, whose assets are known only with the project; expected its assets by key"
            )
        else:
            keys[AssetKey.from_coercible(asset)] = None
    if not keys:
        raise ConfigurationError("got no asset; expected a list of assets or an AssetSelection")
    return tuple(keys)
