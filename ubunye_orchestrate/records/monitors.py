"""Monitors: told when a task starts and ends, in Dagster and outside of it. None of them can harm a run."""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

__all__ = ["Monitor", "kept_from_the_run", "tell_end", "tell_start"]

_logger = logging.getLogger(__name__)

# The arguments that every monitor's task_end takes; whatever came later goes to those that take it.
_FIRST_ARGUMENTS = ("context", "config", "outputs", "status", "duration_sec")


class Monitor(Protocol):
    """Told when a task starts and ends.

    ``task_end`` may also take ``inputs``, ``expectations``, ``timings``, ``error`` and ``record``, each by
    name or all as ``**kwargs``; it gets those that it takes.
    """

    def task_start(self, *, context: Any, config: dict[str, Any]) -> None:
        """A task starts; ``context`` has ``run_id``, ``task_name``, ``profile`` and ``variables``."""

    def task_end(
        self,
        *,
        context: Any,
        config: dict[str, Any],
        outputs: dict[str, Any] | None,
        status: str,
        duration_sec: float,
    ) -> None:
        """A task has ended with ``status`` success or error; ``outputs`` are its frames by name."""


def tell_start(monitors: Iterable[Monitor], *, context: Any, config: dict[str, Any]) -> None:
    """Tell each monitor that a task starts."""
    for monitor in monitors:
        with kept_from_the_run(f"task_start of {type(monitor).__name__}"):
            monitor.task_start(context=context, config=config)


def tell_end(monitors: Iterable[Monitor], **evidence: Any) -> None:
    """Tell each monitor that a task has ended, with the evidence that its ``task_end`` takes."""
    for monitor in monitors:
        with kept_from_the_run(f"task_end of {type(monitor).__name__}"):
            taken = inspect.signature(monitor.task_end).parameters
            takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values())
            monitor.task_end(
                **{
                    name: value
                    for name, value in evidence.items()
                    if takes_all or name in taken or name in _FIRST_ARGUMENTS
                }
            )


@contextlib.contextmanager
def kept_from_the_run(what: str) -> Iterator[None]:
    """Log what goes wrong in keeping a record, with its traceback; the run goes on."""
    try:
        yield
    except Exception:
        _logger.exception("Keeping the record: %s failed; the run is not affected", what)
