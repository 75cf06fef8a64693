"""What is known of a table's content: the value that every other room passes around."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["METHOD", "Fingerprint"]

METHOD = "rows-v1"


@dataclass(frozen=True)
class Fingerprint:
    """The rows-v1 fingerprint of one table, or the reason why it has none.

    A frame that cannot be hashed has ``data_hash`` None and ``error`` set; whatever else is known (schema,
    number of rows) is kept. Nothing is ever substituted for a hash.
    """

    data_hash: str | None
    """``sha256:`` and 64 hex digits over rows, schema and lane sums; None when the table was not hashed."""

    schema_hash: str | None
    """``sha256:`` and 64 hex digits over the sorted names and canonical types; None when not known."""

    row_count: int | None
    """Number of rows read; None when they could not all be read."""

    lane_sums: tuple[int, int] | None
    """The two sums of the rows' lanes, modulo 2**64. Those of disjoint sets of rows add up."""

    columns: tuple[tuple[str, str], ...]
    """Name and canonical type of each column, sorted by name (by code point); empty when not known."""

    error: str | None
    """Why there is no data hash: names the column, its type and, where it is about a value, the row."""

    seconds: float
    """Wall time spent converting and hashing."""

    path_taken: str
    """How it was computed: ``reference``, ``pyarrow``, ``spark-sql`` (later ``native``)."""

    method: str = METHOD
    """The name of the method; hashes of different methods are not comparable."""
