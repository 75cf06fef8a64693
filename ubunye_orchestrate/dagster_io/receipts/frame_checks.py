"""Which frames a block of ``receipts.run`` has checked, and whether it wrote one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from ubunye_orchestrate.dagster_io.receipts.ledger import Checked
from ubunye_orchestrate.records.values import columns_in_order, inspect_value

__all__ = ["ANOTHER_FRAME", "FrameChecks"]

ANOTHER_FRAME = "another frame"
"""What ``checked`` is in a result that is not of the frame that was written."""


class _Check(NamedTuple):
    frame: object
    shape: object
    """As the frame had it when it was checked: it may have been changed in place since."""
    checked: Checked


class FrameChecks:
    """The results of each frame that was checked, in their order."""

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def add(self, frame: object, checked: Checked) -> Checked:
        """Note the results of a frame, and return those of all frames until now."""
        self._checks.append(_Check(frame, _shape(frame), checked))
        return _together(check.checked for check in self._checks)

    def of_written(self, frame: object) -> Checked | None:
        """Return the results of the frame that was written, and let all frames go.

        Where none of those that were checked was written, as it was then, these are all results, and each
        says so. None where nothing was checked.
        """
        checks, self._checks = self._checks, []
        if not checks:
            return None
        its = [one.checked for one in checks if one.frame is frame and one.shape == _shape(frame)]
        return _together(its or (_of_another_frame(one.checked) for one in checks))


def _shape(frame: object) -> object:
    """Return what shows at a glance that a table in memory was changed; None for anything else."""
    if inspect_value(frame).nature != "whole":
        return None
    table: Any = frame
    return len(table), columns_in_order(frame)


def _together(several: Iterable[Checked]) -> Checked:
    found = list(several)
    results = [one for checked in found for one in checked.results]
    distinct = [one for at, one in enumerate(results) if one not in results[:at]]
    return Checked(tuple(distinct), sum(checked.seconds for checked in found))


def _of_another_frame(checked: Checked) -> Checked:
    """Say so in each result but those of inputs, and of a plan: that already says that rows may differ."""
    marked = (
        one if one.get("side") or one.get("checked") else {**one, "checked": ANOTHER_FRAME}
        for one in checked.results
    )
    return replace(checked, results=tuple(marked))
