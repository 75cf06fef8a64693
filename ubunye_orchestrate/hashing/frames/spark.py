"""Spark frames, classic and Connect: told apart here, so that no other way of reading is tried on them."""

from __future__ import annotations

from ubunye_orchestrate.errors import UnsupportedFrameError
from ubunye_orchestrate.hashing.frames.stream import ArrowStream

__all__ = ["recognises", "row_count", "stream"]


def recognises(frame: object) -> bool:
    """Tell a Spark DataFrame, without importing pyspark."""
    return any(
        t.__name__ == "DataFrame" and t.__module__.startswith("pyspark.sql.") for t in type(frame).__mro__
    )


def row_count(frame: object) -> None:
    """Return None: counting would run the plan."""


def stream(frame: object) -> ArrowStream:
    """Raise UnsupportedFrameError: a Spark frame's rows are not brought here behind the user's back."""
    raise UnsupportedFrameError(
        "a Spark DataFrame is hashed where its rows are, and they are not brought here; take "
        "frame.toArrow() where they fit into memory"
    )
