"""From a stored table to what an asset's annotation asks for, hashed and held against its rules."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from dagster import DagsterInstance, InputContext

from ubunye_orchestrate.dagster_io.receipts.expecting import check_input
from ubunye_orchestrate.dagster_io.receipts.panel import harmless
from ubunye_orchestrate.dagster_io.receipts.values import combined
from ubunye_orchestrate.dagster_io.receipts.writer import OpenInput, ReceiptWriter, TableRead
from ubunye_orchestrate.dagster_io.storage.forms import (
    Form,
    concatenated,
    convert,
    form_of_annotation,
    item_annotation,
)
from ubunye_orchestrate.dagster_io.storage.reuse import Reused
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.expectations.in_parts import TableInParts
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.records.budget import fingerprint_within
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.values import not_hashed

__all__ = ["Source", "load"]

_APART = "hashed in a reading of its own, before it was handed over"


class Source(ABC):
    """A table in a store, or some partitions of one, as Arrow data that may be read more than once."""

    format: str
    """As records call it."""
    location: str | None = None
    """For records, credentials masked; None where it is several places."""
    note: str | None = None
    """What there is to say of how it is read, for a record."""
    pinned = False
    """What is read from it is the same however often, whatever is stored meanwhile."""
    reused_note: str
    """What a record says where nothing was read for the hash."""

    @abstractmethod
    def tables(self, *, by_partition: bool) -> dict[str | None, pa.Table]:
        """Read it, by partition or in the pieces that the store keeps; a piece of several is under None."""

    @abstractmethod
    def readers(self, *, by_partition: bool) -> dict[str | None, pa.RecordBatchReader]:
        """Open it for reading in batches, in the same pieces."""

    @abstractmethod
    def in_parts(self, *, by_partition: bool) -> Mapping[str | None, TableInParts]:
        """Return the same pieces for their rules."""

    @abstractmethod
    def version(self) -> dict[str, Any]:
        """Return what tells the state of the store that is read from another one, as ``source_version``."""

    @abstractmethod
    def reusable(self, instance: DagsterInstance, begun: OpenInput) -> Reused | None:
        """Return the hash of the producer's receipt, where the store still holds what that one stored."""


def load(context: InputContext, writer: ReceiptWriter, find: Callable[[], Source]) -> Any:
    """Load a table as the input's annotation asks, and note what was read.

    ``find`` resolves the state of the store that is read. Raises StorageError for what cannot be loaded,
    ExpectationError for what breaks a rule about this input.
    """
    wanted = context.dagster_type.typing_type
    # Outputs of ops are collected one by one; an asset is one table.
    wanted = wanted if context.has_asset_key else item_annotation(wanted)
    form = form_of_annotation(wanted, manager=writer.manager)
    settings = writer.settings
    begun: OpenInput | None = None
    with harmless(context.log, "noting an input"):
        begun = writer.begin_input(context)
    source = find()
    if form.kind == "reader":
        return _load_readers(context, writer, begun, source, form)
    known: Reused | None = None
    if begun is not None and settings.reuse_hashes and settings.hash_inputs:
        with harmless(context.log, "looking for a hash to reuse"):
            known = source.reusable(context.instance, begun)
    started = time.perf_counter()
    tables = source.tables(by_partition=form.by_partition)
    seconds = time.perf_counter() - started
    if begun is not None:
        with harmless(context.log, "noting an input"):
            hashed = _hashed(tables, settings) if known is None else known.fingerprint
            _note(context, writer, begun, seconds, source, hashed, form, reused=known)
    value = _handed_over(tables, form)
    parts: Mapping[str | None, Any] = value if form.by_partition else {None: value}
    if form.kind == "polars_lazy":
        parts = tables
    check_input(context, None if begun is None else begun.entry, parts)
    return value


def _load_readers(
    context: InputContext, writer: ReceiptWriter, begun: OpenInput | None, source: Source, form: Form
) -> Any:
    """Hash the rows in a reading of their own, and hand over readers that have not begun."""
    if begun is not None:
        with harmless(context.log, "noting an input"):
            at_hash = source.version()
            read = _hashed_apart(source, writer.settings)
            _note(context, writer, begun, 0.0, source, read, form, at_hash)
    parts = source.in_parts(by_partition=form.by_partition)
    check_input(context, None if begun is None else begun.entry, parts)
    readers = source.readers(by_partition=form.by_partition)
    if form.by_partition:
        return {name or "": reader for name, reader in readers.items()}
    return next(iter(readers.values())) if len(readers) == 1 else _chained(readers)


def _hashed(tables: Mapping[str | None, pa.Table], settings: ReceiptSettings) -> Fingerprint:
    if not settings.hash_inputs:
        return not_hashed("not hashed: hash_inputs is off", sum(t.num_rows for t in tables.values()))
    zone, budget = settings.naive_timestamps, settings.budget
    return combined({name or "": fingerprint_within(t, zone, budget) for name, t in tables.items()})


def _hashed_apart(source: Source, settings: ReceiptSettings) -> Fingerprint:
    if not settings.hash_inputs:
        return not_hashed("not hashed: hash_inputs is off")
    started = time.perf_counter()
    zone, budget = settings.naive_timestamps, settings.budget
    readers = source.readers(by_partition=False)
    read = combined({name or "": fingerprint_within(one, zone, budget) for name, one in readers.items()})
    return replace(read, seconds=time.perf_counter() - started)


def _note(
    context: InputContext,
    writer: ReceiptWriter,
    begun: OpenInput,
    seconds: float,
    source: Source,
    read: Fingerprint,
    form: Form,
    at_hash: dict[str, Any] | None = None,
    reused: Reused | None = None,
) -> None:
    """``at_hash`` is the version when the rows were hashed, where that was not the reading itself."""
    version = source.version()
    notes = [_APART if form.kind == "reader" else None, source.note]
    if reused is not None:
        at_hash, notes = reused.version, [source.reused_note, source.note]
    elif source.pinned:
        at_hash = version
    writer.end_input(
        begun,
        seconds,
        TableRead(
            fingerprint=read,
            format=source.format,
            scope="stored_partition" if context.has_asset_partitions else "stored_table",
            location=source.location,
            recomputed=form.kind == "reader",
            backend=form.backend,
            source_version=version,
            source_version_at_hash=at_hash,
            note="; ".join(note for note in notes if note is not None) or None,
            reused_from=None if reused is None else reused.run_ids,
        ),
    )


def _handed_over(tables: Mapping[str | None, pa.Table], form: Form) -> Any:
    if form.by_partition:
        return {name or "": convert(table, form.kind) for name, table in tables.items()}
    if not tables:
        return None
    if len(tables) == 1:
        return convert(next(iter(tables.values())), form.kind)
    return convert(concatenated({name or "": table for name, table in tables.items()}), form.kind)


def _chained(readers: Mapping[str | None, pa.RecordBatchReader]) -> pa.RecordBatchReader:
    (first, reader), *others = readers.items()
    for name, other in others:
        if not other.schema.equals(reader.schema):
            raise StorageError(
                f"partitions {first} and {name} have different columns or types; annotate the input "
                "dict[str, pa.RecordBatchReader] to get them one by one"
            )

    def batches() -> Iterator[pa.RecordBatch]:
        for one in readers.values():
            yield from one

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
