"""What a block of ``receipts.run`` puts on its asset's materialization; the asset's own keys win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dagster import AssetKey

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.metadata import free_names

__all__ = ["Published"]


class Published:
    """Metadata of ours on a materialization that is still to come.

    Dagster lets what a step says of an asset win over what the asset's result says, which comes later. So
    what the result says is put back over ours, and ours beside it under another name.
    """

    def __init__(self, step: upstream.StepContext, key: AssetKey, partitions: Sequence[str]) -> None:
        """Publish nothing yet."""
        self._step = step
        self._key = key
        self._partitions: Sequence[str | None] = tuple(partitions) or (None,)
        self._ours: dict[str, Any] = {}
        self._placed: dict[str | None, dict[str, Any]] = {}

    def publish(self, ours: Mapping[str, Any], result: Mapping[str, Any] | None = None) -> None:
        """Put metadata of ours, in place of an older one of the same name, on each partition.

        ``result`` is what the asset's result says, once it is known.
        """
        self._ours |= ours
        of_all = upstream.asset_metadata_given(self._step, self._key, ())
        for partition in self._partitions:
            of_this = {} if partition is None else self._given(partition)
            placed = self._placed.get(partition, {})
            # What ``run.wrote`` returned is ours too, whichever way it came here.
            theirs = {
                name: value
                for said in (result or {}, of_all, of_this)
                for name, value in said.items()
                if value not in (placed.get(name), self._ours.get(name))
            }
            free = free_names(self._ours, theirs)
            back = {name: theirs[name] for name in self._ours if name in theirs}
            upstream.put_asset_metadata(self._step, self._key, partition, {**back, **free})
            self._placed[partition] = free

    def _given(self, partition: str) -> Mapping[str, Any]:
        return upstream.asset_metadata_given(self._step, self._key, (partition,))
