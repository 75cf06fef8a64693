"""What a receipt can do while its step goes on: on a thread beside it.

A step waits for its disk, for its event log's above all. The hash of a small table and a look for the
baseline fit into those waits. What is done here is done on what nobody changes meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["aside"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Threads:
    """The threads of this process, begun when they are first needed."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="ubunye-receipt")


_THREADS = _Threads()
if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads, and would wait for them for ever.
    os.register_at_fork(after_in_child=_THREADS.begin)


def aside(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
    """Call a function on another thread; what it raises comes with the result."""
    return _THREADS.pool.submit(function, *args, **kwargs)
