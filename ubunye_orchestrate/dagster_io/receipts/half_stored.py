"""What stands in its place though its step failed: partitions are stored one by one, and none is undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from dagster import OutputContext

from ubunye_orchestrate.dagster_io.receipts.ledger import StepEntry
from ubunye_orchestrate.dagster_io.receipts.panel import harmless
from ubunye_orchestrate.dagster_io.receipts.tasks import task_of_output
from ubunye_orchestrate.records.model import StepRecord

__all__ = ["noted_when_half_stored"]


@contextmanager
def noted_when_half_stored(
    context: OutputContext, entry: StepEntry | None, stored: Callable[[], Mapping[str, StepRecord]]
) -> Iterator[None]:
    """Store inside; where that fails, the run's log and the record of the failure name what stands by then.

    ``stored`` gives the step of each partition that is in its place, by its key. The error passes through.
    """
    try:
        yield
    except Exception:
        with harmless(context.log, "noting what was stored before the failure"):
            left = stored()
            if entry is not None and left:
                context.log.error(f"ubunye: stored before the failure, and not undone: {', '.join(left)}")
                name = task_of_output(context, entry).name
                entry.left_behind[name] = [
                    step.model_copy(update={"name": f"{name} [{key}]"}) for key, step in left.items()
                ]
        raise
