"""``receipts.run`` in an asset that is called directly, as tests do: there is no run to make a record of."""

from __future__ import annotations

from typing import Any, TypeVar

from dagster import AssetExecutionContext, MetadataValue, OpExecutionContext

from ubunye_orchestrate.dagster_io.receipts.explicit import ReceiptRun
from ubunye_orchestrate.dagster_io.receipts.panel import frame_metadata, harmless
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.steps import step_of_frame
from ubunye_orchestrate.records.values import columns_in_order

__all__ = ["UnrecordedRun"]

_Frame = TypeVar("_Frame")


class UnrecordedRun(ReceiptRun):
    """Gives back what it is given, holds no rules against it, and records nothing."""

    def __init__(
        self, context: AssetExecutionContext | OpExecutionContext, settings: ReceiptSettings
    ) -> None:
        """Keep what a table's metadata needs; of a step there is nothing to keep."""
        self._log = context.log
        self._settings = settings

    def __enter__(self) -> UnrecordedRun:
        """Begin the block."""
        return self

    def __exit__(self, *ended: Any) -> None:
        """End the block."""

    def read(self, name: str, frame: _Frame, **_: Any) -> _Frame:
        """Return the frame."""
        return frame

    def expect(self, frame: _Frame) -> _Frame:
        """Return the frame."""
        return frame

    def wrote(self, name: str, frame: object, **_: Any) -> dict[str, MetadataValue]:
        """Return the frame's metadata, as in a run."""
        with harmless(self._log, f"noting output {name}"):
            options: dict[str, Any] = {"format": None, "location": None, "scope": "passed_rows"}
            _step, hashed = step_of_frame(name, "output", frame, self._settings, **options)
            return frame_metadata(hashed, columns_in_order(frame), ())
        return {}

    @property
    def commit_note(self) -> str:
        """Empty: a commit has no run to name."""
        return ""
