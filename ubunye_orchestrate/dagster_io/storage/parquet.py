"""One table, one parquet file: written whole or not at all, hashed as it is written, read as it was written.

Parquet changes the unit of a few Arrow types (a time in seconds comes back in milliseconds). A table is
brought to the types that the file will give back before it is hashed, so that the hash of what was stored
equals the hash of what is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from ubunye_orchestrate.dagster_io.storage.parquet_types import (
    WRITER_OPTIONS,
    as_read_back,
    cannot_hold,
    with_types,
)
from ubunye_orchestrate.dagster_io.times import utc_text
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.expectations.in_parts import TableInParts
from ubunye_orchestrate.foreign import said
from ubunye_orchestrate.hashing.api import hash_stream
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.masking import mask_location
from ubunye_orchestrate.records.budget import NO_BUDGET, BudgetedStream, HashBudget, fingerprint_within

__all__ = [
    "MissingFileError",
    "StagedTable",
    "files_version",
    "hash_file",
    "in_parts",
    "open_reader",
    "read_table",
    "row_groups",
    "shown_path",
    "staged_table",
    "write_table",
]

# A row group is what readers skip or read at once; a buffer of that size is held while writing.
_ROW_GROUP_ROWS = 1_048_576
_ROW_GROUP_BYTES = 128 * 1024 * 1024

_LOCAL = ("", "file", "local")
_RIGHTS = "; check the folder's rights"


class MissingFileError(StorageError):
    """There is no file: the asset or partition was never stored here."""


@dataclass(frozen=True)
class StagedTable:
    """A table that is written whole and does not have its name yet."""

    fingerprint: Fingerprint
    """Of what a reader will get."""
    schema: pa.Schema
    """Of the file."""
    file: str
    """Where it is now: a local path."""
    _give_name: Callable[[], None]

    @property
    def in_parts(self) -> TableInParts:
        """The table for its rules, a row group at a time."""
        return TableInParts(lambda: self.schema, lambda columns: _columns_of(self.file, columns))

    def commit(self) -> None:
        """Put it in its place, where it replaces another one at once. Raises StorageError."""
        self._give_name()


@contextlib.contextmanager
def staged_table(
    path: UPath, schema: pa.Schema, batches: Iterator[pa.RecordBatch], budget: HashBudget = NO_BUDGET
) -> Iterator[StagedTable]:
    """Write the batches as one file, which is thrown away unless it is committed inside the block.

    Memory holds one row group. Above ``budget`` the rest is written without being hashed. Raises StorageError
    for what parquet cannot hold and for a place that cannot be written; what the batches' source raises
    passes through.
    """
    kept = as_read_back(schema)
    typed = (with_types(batch, kept) for batch in batches)
    stream = hash_stream(kept, typed) if budget == NO_BUDGET else BudgetedStream(kept, typed, budget)
    with _unfinished(path) as (unfinished, give_name):
        with _written(unfinished, path) as file:
            _write(file, kept, stream)
        yield StagedTable(stream.fingerprint(), kept, unfinished, give_name)


def write_table(
    path: UPath, schema: pa.Schema, batches: Iterator[pa.RecordBatch], budget: HashBudget = NO_BUDGET
) -> Fingerprint:
    """Write the batches as one file and return their fingerprint, of what a reader will get.

    Another file at ``path`` is replaced at once, and only when all rows are written. Raises as
    ``staged_table`` does.
    """
    with staged_table(path, schema, batches, budget) as staged:
        staged.commit()
    return staged.fingerprint


def _write(file: Any, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    try:
        writer = pq.ParquetWriter(file, schema, **WRITER_OPTIONS)
    except pa.ArrowException as e:
        raise cannot_hold(schema, e) from e
    with writer:
        for group in row_groups(schema, batches):
            if not schema.names and group.num_rows:
                raise StorageError(
                    f"got {group.num_rows} rows without a column; parquet keeps rows only in columns; "
                    "return a frame with a column"
                )
            try:
                writer.write_table(group)
            except pa.ArrowException as e:
                raise cannot_hold(schema, e) from e


def read_table(path: UPath) -> pa.Table:
    """Read a whole file. Raises StorageError for one that is missing, unreadable or no parquet."""
    with _readable(path), path.open("rb") as file:
        return pq.ParquetFile(file).read()


def open_reader(path: UPath) -> pa.RecordBatchReader:
    """Open a file as a reader of batches, which closes it after the last one.

    Raises StorageError as ``read_table`` does, also while it is read.
    """
    with _readable(path):
        file = path.open("rb")
        try:
            parquet = pq.ParquetFile(file)
        except BaseException:
            file.close()
            raise
    schema = parquet.schema_arrow

    def batches() -> Iterator[pa.RecordBatch]:
        with file, _readable(path):
            yield from parquet.iter_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def in_parts(path: UPath) -> TableInParts:
    """Return a file for its rules, read a row group at a time; StorageError then, as ``read_table`` does."""

    def schema() -> pa.Schema:
        with _readable(path), path.open("rb") as file:
            return pq.read_schema(file)

    def read(columns: Sequence[str]) -> Iterator[pa.Table]:
        with _readable(path), path.open("rb") as file:
            yield from _columns_of(file, columns)

    return TableInParts(schema, read)


def _columns_of(file: Any, columns: Sequence[str]) -> Iterator[pa.Table]:
    with pq.ParquetFile(file) as opened:
        for group in range(opened.num_row_groups):
            # A name stands for fields of a struct too that are called so.
            yield opened.read_row_group(group, columns=list(columns)).select(list(columns))


def hash_file(path: UPath, naive_timestamps: str, budget: HashBudget = NO_BUDGET) -> Fingerprint:
    """Return the fingerprint of a file's rows, in a reading of its own and memory of a batch."""
    started = time.perf_counter()
    hashed = fingerprint_within(open_reader(path), naive_timestamps, budget)
    return replace(hashed, seconds=time.perf_counter() - started)


def files_version(paths: Iterable[UPath]) -> dict[str, Any]:
    """Return what tells one state of some files from another without reading them, as ``source_version``."""
    listing: list[str] = []
    total = 0
    latest: float | None = None
    try:
        for path in paths:
            info = path.fs.info(path.path)
            size, changed = info.get("size"), _changed_at(info)
            listing.append(f"{path.path}\0{size}\0{changed}\0{info.get('ETag', '')}")
            total += size or 0
            latest = changed if latest is None or (changed or 0.0) > latest else latest
    except OSError as e:
        return {"kind": "none", "reason": f"the state of the files cannot be read: {e}"}
    digest = hashlib.sha256("\n".join(listing).encode()).hexdigest()
    return {
        "kind": "files",
        "files": len(listing),
        "bytes": total,
        "latest_modified": None if latest is None else utc_text(latest),
        "listing_hash": f"sha256:{digest}",
    }


def _changed_at(info: Mapping[str, Any]) -> float | None:
    """Return seconds since the epoch of a file's last change, under the name that its store gives it."""
    for name in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, float | int):
            return float(value)
    return None


def shown_path(path: UPath) -> str:
    """Return the absolute path or URL for records and messages, credentials masked."""
    if path.protocol in _LOCAL:
        return os.path.abspath(path.path)
    return mask_location(str(path))


def row_groups(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Gather small batches, so that a file does not have a row group for each."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROW_GROUP_ROWS or size >= _ROW_GROUP_BYTES:
            yield pa.Table.from_batches(held, schema)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held, schema)


@contextlib.contextmanager
def _unfinished(path: UPath) -> Iterator[tuple[str, Callable[[], None]]]:
    """Give the name of a local file to write, and what puts it at ``path``; it is removed at the end."""
    if path.protocol not in _LOCAL:
        # An object appears when its upload is complete. Spooled, since closing half an upload completes it.
        with tempfile.TemporaryDirectory(prefix="ubunye-") as folder:
            spooled = os.path.join(folder, "table.parquet")
            yield spooled, lambda: _upload(spooled, path)
        return
    target = os.path.abspath(path.path)
    folder = os.path.dirname(target)
    # Short, so that a long name still has room for it.
    unfinished = os.path.join(folder, f".{uuid.uuid4().hex}.tmp")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as e:
        raise StorageError(_cannot_write(path, e, _RIGHTS)) from e
    try:
        yield unfinished, lambda: _rename(unfinished, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)


@contextlib.contextmanager
def _written(unfinished: str, path: UPath) -> Iterator[Any]:
    """Give the file to write to; at the end it is whole on disk."""
    try:
        file = open(unfinished, "xb")  # noqa: SIM115 - closed below, when it is on disk
    except OSError as e:
        raise StorageError(_cannot_write(path, e, _RIGHTS)) from e
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as e:
        raise StorageError(_cannot_write(path, e)) from e


def _rename(unfinished: str, target: str) -> None:
    try:
        os.replace(unfinished, target)
    except OSError as e:
        raise StorageError(f"{target} cannot be written: {e.strerror or e}") from e


def _upload(spooled: str, path: UPath) -> None:
    try:
        path.fs.makedirs(path.parent.path, exist_ok=True)
        path.fs.put_file(spooled, path.path)
    except Exception as e:  # each store has its own exceptions
        raise StorageError(f"{shown_path(path)} cannot be written: {said(e)}") from e


def _cannot_write(path: UPath, error: OSError, hint: str = "") -> str:
    return f"{shown_path(path)} cannot be written: {error.strerror or error}{hint}"


@contextlib.contextmanager
def _readable(path: UPath) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as e:
        raise MissingFileError(
            f"no file {shown_path(path)}; expected the table that the upstream asset stored; materialize it "
            "first"
        ) from e
    except pa.ArrowException as e:
        raise StorageError(
            f"{shown_path(path)} is not a readable parquet file ({said(e)}); expected what this IO manager "
            "stored; materialize the upstream asset again"
        ) from e
    except OSError as e:
        raise StorageError(f"{shown_path(path)} cannot be read: {e.strerror or e}") from e
