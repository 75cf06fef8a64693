"""Anything that exports itself through the Arrow PyCapsule protocol.

https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ubunye_orchestrate.errors import UnsupportedFrameError
from ubunye_orchestrate.foreign import said
from ubunye_orchestrate.hashing.frames.stream import ArrowStream, guarded

__all__ = ["recognises", "row_count", "stream"]


def recognises(frame: object) -> bool:
    """Tell an object (not a class) with ``__arrow_c_stream__`` or ``__arrow_c_array__``."""
    return not isinstance(frame, type) and (
        hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__")
    )


def row_count(frame: object) -> None:
    """Return None: the protocol tells the number of rows only by giving them."""


def stream(frame: Any) -> ArrowStream:
    """Stream the frame's batches without copying. A single-use exporter is consumed.

    Raises UnsupportedFrameError where the export is not a table (a single column, say).
    """
    try:
        if hasattr(frame, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(frame)
            return ArrowStream(reader.schema, guarded(iter(reader)), "capsule")
        batch = pa.record_batch(frame)
    except Exception as e:  # whatever the exporter raises, and Arrow for what is not a table
        raise UnsupportedFrameError(f"not a table ({type(frame).__name__}): {said(e)}") from e
    return ArrowStream(batch.schema, iter([batch]), "capsule")
