"""Any supported frame to a schema and record batches, without importing the frame's library.

A frame of a library is an object of one of its classes, so the library is in ``sys.modules`` already. Known
libraries come first, the protocols after them, the port last: the lazy frames of Spark, Polars and Narwhals
have ``collect`` and ``schema`` too.
"""

from __future__ import annotations

from typing import Protocol

from ubunye_orchestrate.errors import UnsupportedFrameError
from ubunye_orchestrate.hashing.frames import arrow, capsule, duckdb, pandas, polars, port, spark
from ubunye_orchestrate.hashing.frames.stream import ArrowStream
from ubunye_orchestrate.hashing.frames.timestamps import NTZ, checked_zone, in_zone
from ubunye_orchestrate.hashing.loaded import loaded

__all__ = ["NTZ", "ArrowStream", "arrow_stream", "checked_zone", "is_table", "known_row_count", "native"]


class _Library(Protocol):
    """What a module knows of one library's frames."""

    def recognises(self, frame: object, /) -> bool: ...
    def row_count(self, frame: object, /) -> int | None: ...
    def stream(self, frame: object, /) -> ArrowStream: ...


_LIBRARIES: tuple[_Library, ...] = (arrow, pandas, polars, duckdb, spark, capsule)


def is_table(frame: object) -> bool:
    """Tell whether ``frame`` is a table of a kind that can be recognised (reading it may still fail)."""
    frame = native(frame)
    return any(library.recognises(frame) for library in _LIBRARIES) or port.recognises(frame)


def known_row_count(frame: object) -> int | None:
    """Return the number of rows where the frame knows it without being read or computed."""
    frame = native(frame)
    return next((library.row_count(frame) for library in _LIBRARIES if library.recognises(frame)), None)


def arrow_stream(frame: object, *, naive_timestamps: str = NTZ) -> ArrowStream:
    """Open any supported frame as a stream of record batches, by the rules of each library's module.

    ``naive_timestamps`` is ``ntz`` or the zone in which timestamps without one are read as instants. A
    single-use reader is consumed by iterating the stream; a lazy frame or relation is computed once. Raises
    HashError for a frame (and, while it is iterated, for a value) that cannot be converted exactly,
    UnsupportedFrameError for what is not a table, ConfigurationError for a zone that does not exist.
    """
    zone = checked_zone(naive_timestamps)
    frame = native(frame)
    stream = _open_known(frame)
    if stream is None and port.recognises(frame):
        stream = port.stream(frame, lambda collected: _open_known(native(collected)))
    if stream is None:
        raise UnsupportedFrameError(f"not a table ({type(frame).__name__})")
    return in_zone(stream, zone)


def _open_known(frame: object) -> ArrowStream | None:
    return next((library.stream(frame) for library in _LIBRARIES if library.recognises(frame)), None)


def native(frame: object) -> object:
    """Unwrap a Narwhals frame to the frame that it wraps."""
    narwhals = loaded("narwhals")
    if narwhals is not None and isinstance(frame, narwhals.DataFrame | narwhals.LazyFrame):
        return narwhals.to_native(frame)
    return frame
