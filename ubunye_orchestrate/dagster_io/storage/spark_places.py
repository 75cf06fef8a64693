"""Where a table of Spark's is: a path or a name in a catalog, and which of its rows are meant."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dagster import PartitionsDefinition

from ubunye_orchestrate.dagster_io.storage.spark_partitions import Columns, condition, folders_of, quoted
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.hashing.spark.sql import literal
from ubunye_orchestrate.masking import mask_location

__all__ = [
    "OUTSIDE",
    "MissingTableError",
    "Part",
    "Place",
    "Rows",
    "Staged",
    "Stored",
    "base_of",
    "below",
    "outside_error",
    "staged_plan",
]

OUTSIDE = "ubunye: rows outside of the partition"
"""How the error begins that a frame raises, while it is written, at the first row of another partition."""


class MissingTableError(StorageError):
    """There is no table: the asset or partition was never stored here."""


@dataclass(frozen=True)
class Place:
    """A table, by path or by name; exactly one of the two is there."""

    path: str | None = None
    """As Spark takes it."""
    table: tuple[str, ...] = ()
    """The parts of its name: catalog, schema, table, as many as were given."""

    @property
    def name(self) -> str:
        """The table's name in SQL."""
        return ".".join(quoted(part) for part in self.table)

    @property
    def shown(self) -> str:
        """For records and messages, credentials masked."""
        return ".".join(self.table) if self.path is None else mask_location(self.path)


@dataclass(frozen=True)
class Rows:
    """The rows of some partitions inside of a table that holds more."""

    columns: Columns
    definition: PartitionsDefinition
    keys: tuple[str, ...]

    def condition(self, frame: Any) -> str:
        """Return the SQL condition of the rows; ``frame`` has the table's columns. Raises StorageError."""
        return condition(frame, self.columns, self.definition, self.keys)

    def of(self, frame: Any) -> Any:
        """Return the frame's rows that are of these partitions."""
        return frame.where(self.condition(frame))

    def guarded(self, frame: Any) -> Any:
        """Return the frame, which fails while it is computed at the first row of another partition.

        Inside of the plan that is written, since a plan that is computed twice may give other rows.
        """
        named = ", ".join(self.keys[:3]) + (" …" if len(self.keys) > 3 else "")
        columns = ", ".join(self.columns.values())
        message = literal(f"{OUTSIDE} {named} ({columns}); filter them out, or store them with their own")
        rows = self.condition(frame)
        # Not deterministic to Spark, which so leaves it behind the frame's own joins and filters.
        kept = f"{rows} or spark_partition_id() < 0"
        return frame.where(f"case when {kept} then true else raise_error({message}) end")

    def folders(self, frame: Any) -> list[str]:
        """Return the columns by which a new table is laid out."""
        return folders_of(frame, self.columns)

    def one_by_one(self) -> dict[str, Rows]:
        """Return the rows of each partition."""
        return {key: Rows(self.columns, self.definition, (key,)) for key in self.keys}


@dataclass(frozen=True)
class Part:
    """A table, or the rows of some partitions of one, that is written or read in one piece."""

    keys: tuple[str, ...]
    """Of the partitions; empty for an asset without."""
    place: Place
    rows: Rows | None

    def one_by_one(self) -> list[Part]:
        """Return its partitions, each alone."""
        if len(self.keys) <= 1 or self.rows is None:
            return [self]
        return [Part((key,), self.place, rows) for key, rows in self.rows.one_by_one().items()]


@dataclass(frozen=True)
class Stored:
    """What a write left in the storage."""

    frame: Any
    """What was stored, read from there; None where it cannot be told from other rows, with the reason."""
    version: dict[str, Any]
    """As ``source_version``."""
    note: str | None = None
    """Where the hashed rows are from, in words."""
    recomputed: bool = False
    """The frame is the plan that was handed over, which is computed again."""
    counted: int | None = None
    """Rows that the frame must have, as the storage counted them while they were written."""
    whole: Any = None
    """After an append all rows of the table, or of its partitions."""


@dataclass(frozen=True)
class Staged:
    """A write that is prepared."""

    frame: Any
    """To be checked before the commit."""
    settled: bool
    """It is read from what is staged; else it is the plan, which the commit computes anew."""
    commit: Callable[[], Stored]
    """Store it. Raises StorageError; what Spark says of the plan passes through."""


@contextmanager
def staged_plan(frame: Any, commit: Callable[[], Stored]) -> Iterator[Staged]:
    """Stage nothing: the plan is computed by the commit."""
    yield Staged(frame, False, commit)


def outside_error(error: Exception) -> StorageError | None:
    """Return what the guard of ``Rows`` said, where an error of Spark's is its; else None."""
    _, found, said = str(error).partition(OUTSIDE)
    return StorageError(found + re.split(r" SQLSTATE|\n", said, maxsplit=1)[0]) if found else None


def base_of(base: str) -> str:
    """Return a base path as Spark takes it: a local one absolute, since its processes may stand elsewhere."""
    return base.rstrip("/") if "://" in base or ":/" in base else os.path.abspath(base)


def below(base: str, parts: Sequence[str]) -> Place:
    """Return the place of a table in a folder below a base."""
    return Place(path="/".join((base_of(base), *parts)))
