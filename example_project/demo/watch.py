"""The drift sensor, asked the way Dagster's daemon asks it, and its answer in a form that can be checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Found", "Watch"]


@dataclass(frozen=True)
class Found:
    """What the sensor says of one materialization."""

    table: str
    """The asset, its partition in brackets."""
    kinds: tuple[str, ...]
    """The kinds of its findings, in the order of the verdict."""
    changed_with: str
    """What changed together with its data, as the verdict lists it; empty when nothing did."""
    text: str
    """The verdict in one line."""
    passed: bool
    path: str = ""
    """Where its change entered, by the recorded producers; empty when its data did not change."""


class Watch:
    """A drift sensor on an instance, with its cursor kept from look to look."""

    def __init__(self, instance: dg.DagsterInstance, sensor: dg.SensorDefinition) -> None:
        """Watch ``instance`` from the first ``look`` on."""
        self._instance = instance
        self._sensor = sensor
        self._cursor: str | None = None

    def look(self, definitions: dg.Definitions) -> Sequence[Found]:
        """Evaluate the sensor once; return what it found.

        The results are stored as the daemon would store them, so that the web pages show them.
        """
        with dg.build_sensor_context(
            instance=self._instance, cursor=self._cursor, definitions=definitions
        ) as context:
            tick = self._sensor.evaluate_tick(context)
        self._cursor = tick.cursor
        evaluations = [event for event in tick.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
        for evaluation in evaluations:
            self._instance.report_runless_asset_event(evaluation)
        return [_found(evaluation) for evaluation in evaluations]


def _found(evaluation: dg.AssetCheckEvaluation) -> Found:
    findings: Any = evaluation.metadata["ubunye/findings"].value
    changed_with = evaluation.metadata.get("ubunye/changed_with")
    path = evaluation.metadata.get("ubunye/path")
    text = evaluation.description or ""
    return Found(
        table=text.partition(": ")[0],
        kinds=tuple(finding["kind"] for finding in findings),
        changed_with=str(changed_with.value) if changed_with else "",
        text=text,
        passed=evaluation.passed,
        path=str(path.value) if path else "",
    )
