"""The Delta IO manager at work: what it hashes is what it commits, and what it reads from one version."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from dagster import DagsterInstance, InputContext, IOManager, OutputContext, PartitionsDefinition

from ubunye_orchestrate.dagster_io.receipts.expecting import check_parts, parts_to_store, rules_of_output
from ubunye_orchestrate.dagster_io.receipts.half_stored import noted_when_half_stored
from ubunye_orchestrate.dagster_io.receipts.panel import harmless
from ubunye_orchestrate.dagster_io.receipts.producers import ordered_partitions
from ubunye_orchestrate.dagster_io.receipts.tasks import note_of_run, task_of_output
from ubunye_orchestrate.dagster_io.receipts.wrapper import WritesReceipts
from ubunye_orchestrate.dagster_io.receipts.writer import OpenInput, OpenOutput, ReceiptWriter, TableStored
from ubunye_orchestrate.dagster_io.storage import delta, delta_writing
from ubunye_orchestrate.dagster_io.storage.delta_partitions import (
    Rows,
    columns_of_folders,
    outside,
    predicate,
    rows_of,
)
from ubunye_orchestrate.dagster_io.storage.delta_types import aligned, as_stored, compact, with_stored_types
from ubunye_orchestrate.dagster_io.storage.loading import Source, load
from ubunye_orchestrate.dagster_io.storage.parquet import row_groups
from ubunye_orchestrate.dagster_io.storage.places import partition_parts, table_parts
from ubunye_orchestrate.dagster_io.storage.reuse import Reused, reusable_hash
from ubunye_orchestrate.dagster_io.storage.spark_partitions import Columns, partition_columns
from ubunye_orchestrate.dagster_io.storage.storing import RowsToStore, spooled, store_exactly, values_to_store
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.expectations.in_parts import TableInParts
from ubunye_orchestrate.hashing.api import HashingStream, hash_stream
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.records.budget import NO_BUDGET, BudgetedStream
from ubunye_orchestrate.records.model import StepRecord
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.steps import step_from_fingerprint
from ubunye_orchestrate.records.values import columns_in_order, inspect_value, not_hashed

__all__ = ["DeltaTables"]

# Of a batch on its way: what is larger is cut before its types are changed.
_PORTION_BYTES = 128 * 2**20


@dataclass(frozen=True)
class _Place:
    """A table, and the partitions whose rows it holds."""

    uri: str
    keys: tuple[str | None, ...]
    """None for an asset without partitions."""
    columns: Columns | None = None
    """What tells the partitions apart; None for a table that holds the rows of one alone, or of none."""
    definition: PartitionsDefinition | None = None

    def rows(self, schema: pa.Schema, key: str | None) -> Rows:
        """Return what a partition's rows are, in a table of these columns."""
        assert self.columns is not None, "a table of one partition is read and written whole"
        assert self.definition is not None, "there are columns, so there are partitions"
        return rows_of(schema, self.columns, self.definition, str(key))


@dataclass(frozen=True)
class _Committed:
    """What a commit left."""

    place: _Place
    snapshot: delta.Snapshot
    prints: Mapping[str | None, Fingerprint]


class DeltaTables(IOManager, WritesReceipts):
    """Stores and loads Delta tables below one folder or URL. ``DeltaIOManager`` documents the rules."""

    def __init__(self, base: str, options: Mapping[str, str], settings: ReceiptSettings, name: str) -> None:
        """Take the folder, delta-rs' options for it, where receipts go, and the name in timings."""
        self._base = base
        self._options = options
        self._settings = settings
        self._writer = ReceiptWriter(settings, name)

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        """Commit a table (or a range's dict of tables) and write its receipt."""
        begun: OpenOutput | None = None
        with harmless(context.log, "beginning a receipt"):
            begun = self._writer.begin_output(context)
        places = self._places(context, context.definition_metadata or {})
        values = _values(context, obj, places)
        first = next(iter(values.values()))
        started = time.perf_counter()
        with ExitStack() as stack:
            values = self._checked(stack, context, begun, obj, values)
            note = self._note(context, begun)
            done: list[_Committed] = []
            entry = None if begun is None else begun.entry
            with noted_when_half_stored(context, entry, lambda: _half_stored(done, note)):
                for place in places:
                    done.append(self._commit(context, place, values, note))
        prints = {name: one for part in done for name, one in part.prints.items()}
        seconds = time.perf_counter() - started - sum(one.seconds for one in prints.values())
        if begun is None:
            context.add_output_metadata({"path": delta.shown_uri(places[0].uri)})
            return
        with harmless(context.log, "writing the receipt"):
            stored = self._stored(context, done, prints, note, first)
            self._writer.end_output(context, begun, max(0.0, seconds), stored)

    def load_input(self, context: InputContext) -> Any:
        """Load a table as the input's annotation asks, in the version that is resolved now, and note it."""
        return load(context, self._writer, lambda: self._source(context))

    # ------------------------------------------------------------------ places

    def _places(self, context: InputContext | OutputContext, metadata: Mapping[str, Any]) -> list[_Place]:
        """Return where the table is: one where one holds all partitions, else one for each of them."""
        parts = table_parts(context)
        if not context.has_asset_key or not context.has_asset_partitions:
            return [_Place(self._uri(parts), (None,))]
        keys = ordered_partitions(context)
        definition = context.asset_partitions_def
        columns = partition_columns(metadata, definition)
        if columns is not None:
            return [_Place(self._uri(parts), keys, columns, definition)]
        by_text = {str(key): key for key in context.asset_partition_keys}
        return [_Place(self._uri([*parts, *partition_parts(by_text[key])]), (key,)) for key in keys]

    def _uri(self, parts: Sequence[str]) -> str:
        # delta-rs decodes what is percent-encoded in a path, and then looks elsewhere.
        return "/".join([self._base.rstrip("/"), *(part.replace("%", "@") for part in parts)])

    # ------------------------------------------------------------------ storing

    def _checked(
        self,
        stack: ExitStack,
        context: OutputContext,
        begun: OpenOutput | None,
        obj: Any,
        values: Mapping[str | None, Any],
    ) -> dict[str | None, Any]:
        """Hold the values against the asset's rules; one that is not in memory is computed once, for both."""
        computed = dict(values)
        if rules_of_output(context):
            for name, value in values.items():
                if inspect_value(value).nature in ("lazy", "once"):
                    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ubunye-"))
                    file = os.path.join(folder, "table.arrow")
                    computed[name] = spooled(value, self._settings.naive_timestamps, file)
        given = parts_to_store(context, obj)
        first = next(iter(computed.values()))
        # A partition that was not handed over in a dict is checked without its name.
        parts = {name: computed.get(name, first) for name in given}
        check_parts(context, None if begun is None else begun.entry, parts)
        return computed

    def _note(self, context: OutputContext, begun: OpenOutput | None) -> str | None:
        """Return what the commit says of its run."""
        if begun is None:
            return None
        task = task_of_output(context, begun.entry)
        return note_of_run(begun.entry.key, task, self._settings, task.partitions)

    def _commit(
        self, context: OutputContext, place: _Place, values: Mapping[str | None, Any], note: str | None
    ) -> _Committed:
        mine = {name: value for name, value in values.items() if name in (*place.keys, None)}
        (snapshot, streams), unhashed = store_exactly(
            context, mine, self._writer, lambda rows: self._write(place, rows, note)
        )
        prints: dict[str | None, Fingerprint] = {}
        for name, stream in streams.items():
            prints[name] = stream.fingerprint()
            if name in unhashed:
                prints[name] = not_hashed(unhashed[name], prints[name].row_count)
        return _Committed(place, snapshot, prints)

    def _write(
        self, place: _Place, rows: Mapping[str | None, RowsToStore], note: str | None
    ) -> tuple[delta.Snapshot, dict[str | None, HashingStream | BudgetedStream]]:
        base = delta.find(place.uri, self._options)
        schemas = {name: as_stored(one.schema) for name, one in rows.items()}
        schema = next(iter(schemas.values()))
        where = None
        partitions: dict[str | None, list[Rows]] = {}
        if place.columns is not None:
            shown = delta.shown_uri(place.uri)
            if base is None:
                schema = _together(schemas.values(), shown)
                # Before there is a table: whether its columns tell the partitions apart.
                for key in place.keys:
                    place.rows(schema, key)
                folders = columns_of_folders(schema, place.columns)
                base = delta_writing.create(place.uri, self._options, schema, folders, note)
            for given in schemas.values():
                schema = aligned(given, base.schema, shown)
            of_key = {key: place.rows(schema, key) for key in place.keys}
            where = predicate(of_key.values())
            partitions = {name: list(of_key.values()) if name is None else [of_key[name]] for name in rows}
        streams: dict[str | None, HashingStream | BudgetedStream] = {}
        for name, one in rows.items():
            typed = _typed(one.batches, schema, name, partitions.get(name))
            streams[name] = (
                hash_stream(schema, typed)
                if self._settings.budget == NO_BUDGET
                else BudgetedStream(schema, typed, self._settings.budget)
            )
        batches = (batch for stream in streams.values() for batch in _gathered(schema, stream))
        return delta_writing.commit(place.uri, self._options, base, schema, batches, note, where), streams

    def _stored(
        self,
        context: OutputContext,
        done: Sequence[_Committed],
        prints: Mapping[str | None, Fingerprint],
        note: str | None,
        first: Any,
    ) -> TableStored:
        versions: dict[str | None, dict[str, Any]] = {}
        locations: dict[str, str] = {}
        for one in done:
            version = _version_of(one.snapshot, note)
            versions |= dict.fromkeys(one.prints, version)
            locations |= {name: one.snapshot.shown for name in one.place.keys if name is not None}
        single = len(prints) == 1
        if single:
            versions = {None: next(iter(versions.values()))}
        elif len(done) == 1:
            versions[None] = next(iter(versions.values()))
        shown = done[0].snapshot.shown
        return TableStored(
            parts={None: next(iter(prints.values()))} if single else prints,
            format="delta",
            scope="stored_partition" if context.has_asset_partitions else "stored_table",
            location=shown if len(done) == 1 else delta.shown_uri(self._uri(table_parts(context))),
            locations=locations,
            versions=versions,
            backend=inspect_value(first).backend,
            columns=columns_in_order(first),
            is_file=True,
        )

    # ------------------------------------------------------------------ loading

    def _source(self, context: InputContext) -> _Versions:
        upstream = context.upstream_output
        metadata = (None if upstream is None else upstream.definition_metadata) or {}
        skip_missing = bool((context.definition_metadata or {}).get("allow_missing_partitions"))
        found: list[tuple[_Place, delta.Snapshot]] = []
        for place in self._places(context, metadata):
            try:
                found.append((place, delta.open_table(place.uri, self._options)))
            except delta.MissingTableError as e:
                if place.columns is not None or place.keys == (None,) or not skip_missing:
                    raise
                context.log.warning(f"ubunye: partition {place.keys[0]} is skipped: {e}")
        return _Versions(found)


class _Versions(Source):
    """A version of a Delta table, or some partitions in it, or partitions in a version of a table each."""

    format = "delta"
    pinned = True
    reused_note = "not read for its hash: its receipt names this version"

    def __init__(self, found: Sequence[tuple[_Place, delta.Snapshot]]) -> None:
        self._found = found
        if len(found) == 1:
            self.location = found[0][1].shown
            self.note = f"pinned to version {found[0][1].number}, for the hash and for the asset"

    def tables(self, *, by_partition: bool) -> dict[str | None, pa.Table]:
        return {name: reader.read_all() for name, reader in self.readers(by_partition=by_partition).items()}

    def readers(self, *, by_partition: bool) -> dict[str | None, pa.RecordBatchReader]:
        return {name: snapshot.reader(where) for name, snapshot, where in self._pieces(by_partition)}

    def in_parts(self, *, by_partition: bool) -> Mapping[str | None, TableInParts]:
        return {name: snapshot.in_parts(where) for name, snapshot, where in self._pieces(by_partition)}

    def version(self) -> dict[str, Any]:
        return self._version

    @cached_property
    def _version(self) -> dict[str, Any]:
        if len(self._found) != 1:
            why = f"read from {len(self._found)} tables, each of a version of its own"
            return {"kind": "none", "reason": why}
        return self._found[0][1].version()

    def reusable(self, instance: DagsterInstance, begun: OpenInput) -> Reused | None:
        places = {key: snapshot for place, snapshot in self._found for key in place.keys}

        def holds(name: str | None, stored: StepRecord) -> bool:
            version = stored.source_version or {}
            same_place = stored.location == places[name].shown and version.get("kind") == "delta"
            return same_place and version == places[name].version()

        return reusable_hash(instance, begun, places, holds, self.version)

    def _pieces(self, by_partition: bool) -> Iterator[tuple[str | None, delta.Snapshot, str | None]]:
        for place, snapshot in self._found:
            if place.columns is None:
                yield place.keys[0], snapshot, None
            elif by_partition:
                for key in place.keys:
                    yield key, snapshot, predicate([place.rows(snapshot.schema, key)])
            elif place.keys:
                where = predicate(place.rows(snapshot.schema, key) for key in place.keys)
                yield place.keys[0] if len(place.keys) == 1 else None, snapshot, where


def _values(context: OutputContext, obj: Any, places: Sequence[_Place]) -> dict[str | None, Any]:
    """Return the value of each partition; of a table that holds several also one for all, under None."""
    keys = [key for place in places for key in place.keys]
    in_one = len(keys) > 1 and places[0].columns is not None and not isinstance(obj, Mapping)
    return values_to_store(context, obj, [None] if in_one else keys)


def _together(schemas: Iterable[pa.Schema], shown: str) -> pa.Schema:
    """Return the schema of a new table that is to hold all of these rows."""
    first, *others = schemas
    merged = first
    for other in others:
        fields = [
            other.field(field.name) if pa.types.is_null(field.type) and field.name in other.names else field
            for field in merged
        ]
        merged = pa.schema(fields)
    for one in (first, *others):
        aligned(one, merged, shown)
    return merged


def _typed(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, name: str | None, partitions: list[Rows] | None
) -> Iterator[pa.RecordBatch]:
    """Bring batches to the table's types. Raises StorageError at a row that is of no partition of these."""
    for batch in batches:
        step = max(1, batch.num_rows * _PORTION_BYTES // max(batch.nbytes, _PORTION_BYTES))
        for start in range(0, max(batch.num_rows, 1), step):
            typed = with_stored_types(batch.slice(start, step), schema)
            if partitions is not None:
                _refuse_others(typed, partitions, name)
            yield typed


def _refuse_others(batch: pa.RecordBatch, partitions: Sequence[Rows], name: str | None) -> None:
    odd = outside(batch, partitions)
    if not odd.num_rows:
        return
    columns = sorted({condition.column for rows in partitions for condition in rows})
    which = "the run's partitions" if name is None else f"partition {name}"
    raise StorageError(
        f"{odd.num_rows} of {batch.num_rows} rows are outside of {which} ({', '.join(columns)}); nothing was "
        "stored. Filter them out, or store them with their own partition"
    )


def _gathered(schema: pa.Schema, stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches: delta-rs hands them out to threads, so rows keep their order only within one."""
    for group in row_groups(schema, stream):
        yield from map(compact, group.combine_chunks().to_batches())


def _half_stored(done: Sequence[_Committed], note: str | None) -> dict[str, StepRecord]:
    return {
        key: step_from_fingerprint(
            key,
            "output",
            hashed,
            format="delta",
            location=one.snapshot.shown,
            scope="stored_partition",
            source_version=_version_of(one.snapshot, note),
        )
        for one in done
        for key, hashed in one.prints.items()
        if key is not None
    }


def _version_of(snapshot: delta.Snapshot, note: str | None) -> dict[str, Any]:
    try:
        if note is not None and snapshot.noted() != note:
            return {"kind": "none", "reason": f"version {snapshot.number} is not the commit of this run"}
        return snapshot.version()
    except StorageError as e:
        return {"kind": "none", "reason": str(e)}
