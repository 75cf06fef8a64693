"""The files that a Spark frame reads, also where Spark has the same rows in its cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["file_name_of_row", "files_read"]


def files_read(frame: Any) -> Sequence[str]:
    """Return the files of a frame that reads a table, as URIs. Raises what Spark raises."""
    try:
        # Rows that are in the cache have no files; with the name of its file a row is another one.
        return list(frame.select(file_name_of_row(frame)).inputFiles())
    except Exception:  # noqa: BLE001 - a view's rows do not have it, and Spark has several errors for that
        return list(frame.inputFiles())


def file_name_of_row(frame: Any) -> Any:
    """Return the column that says in which file each row of a table is."""
    if all(name.lower() != "_metadata" for name in frame.columns):
        return frame["_metadata.file_name"]
    # A column of the table's own hides the one that Spark has for a row's file.
    if hasattr(frame, "metadataColumn"):
        return frame.metadataColumn("_metadata")["file_name"]
    # Spark 3.5 has it, and its Python has not.
    from pyspark.sql import Column

    return Column(frame._jdf.metadataColumn("_metadata"))["file_name"]
