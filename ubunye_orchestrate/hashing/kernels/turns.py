"""How the thread that writes lines and the one that hashes them share Python's global lock.

Hashing holds the lock nearly all of the time. Left to Python, the writing thread would wait five milliseconds
for it after each of the hundred short calls that a portion takes, and two threads would be slower than one.
So they take turns by a lock of their own: the writer keeps its turn from one short call to the next, and
gives it up only while it is in one of Arrow's long loops, which need no Python.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

__all__ = ["in_turn", "out_of_python"]

_own = threading.local()


@contextmanager
def in_turn(turn: threading.Lock) -> Iterator[None]:
    """Have the turn for the block, but for what is ``out_of_python`` in it."""
    with turn:
        _own.turn = turn
        try:
            yield
        finally:
            _own.turn = None


class _OutOfPython:
    # Entered some twenty times a portion, which may be a whole table; a generator costs four times as much.
    def __enter__(self) -> None:
        turn: threading.Lock | None = getattr(_own, "turn", None)
        if turn is not None:
            turn.release()

    def __exit__(self, *_: object) -> None:
        turn: threading.Lock | None = getattr(_own, "turn", None)
        if turn is not None:
            turn.acquire()


_out_of_python = _OutOfPython()


def out_of_python() -> AbstractContextManager[None]:
    """Give up this thread's turn, if it has one, while the block is in a long loop of Arrow's."""
    return _out_of_python
