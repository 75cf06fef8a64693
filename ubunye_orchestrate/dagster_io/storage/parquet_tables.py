"""The parquet IO manager at work: what it hashes is what it stores, and what it reads."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa
from dagster import (
    DagsterInstance,
    InputContext,
    IOManager,
    OutputContext,
)
from upath import UPath

from ubunye_orchestrate.dagster_io.receipts.expecting import check_parts, parts_to_store
from ubunye_orchestrate.dagster_io.receipts.half_stored import noted_when_half_stored
from ubunye_orchestrate.dagster_io.receipts.panel import harmless
from ubunye_orchestrate.dagster_io.receipts.wrapper import WritesReceipts
from ubunye_orchestrate.dagster_io.receipts.writer import OpenInput, OpenOutput, ReceiptWriter, TableStored
from ubunye_orchestrate.dagster_io.storage import parquet
from ubunye_orchestrate.dagster_io.storage.loading import Source, load
from ubunye_orchestrate.dagster_io.storage.places import partition_parts, table_parts
from ubunye_orchestrate.dagster_io.storage.reuse import Reused, reusable_hash
from ubunye_orchestrate.dagster_io.storage.storing import RowsToStore, store_exactly, values_to_store
from ubunye_orchestrate.expectations.in_parts import TableInParts
from ubunye_orchestrate.records.model import StepRecord
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.steps import step_from_fingerprint
from ubunye_orchestrate.records.values import columns_in_order, inspect_value, not_hashed

__all__ = ["ParquetTables"]

_SUFFIX = ".parquet"


class ParquetTables(IOManager, WritesReceipts):
    """Stores and loads tables below one folder or URL. ``ParquetIOManager`` documents the rules."""

    def __init__(self, base: UPath, settings: ReceiptSettings, name: str) -> None:
        """Take the folder, where receipts go, and the IO manager's name in timings."""
        self._base = base
        self._settings = settings
        self._writer = ReceiptWriter(settings, name)

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        """Store a table (or a range's dict of tables) and write its receipt."""
        begun: OpenOutput | None = None
        with harmless(context.log, "beginning a receipt"):
            begun = self._writer.begin_output(context)
        entry = None if begun is None else begun.entry
        parts = parts_to_store(context, obj)
        # What is not in memory is computed once, into files, and checked there before they have their names.
        in_memory = all(inspect_value(part).nature not in ("lazy", "once") for part in parts.values())
        if in_memory:
            check_parts(context, entry, parts)
        paths = self._paths(context)
        values = values_to_store(context, obj, list(paths))
        tables = {name: (path, values[name]) for name, path in paths.items()}
        started = time.perf_counter()
        with ExitStack() as stack:
            staged = {
                name: self._stage(stack, context, path, value) for name, (path, value) in tables.items()
            }
            checked_at = time.perf_counter()
            if not in_memory:
                check_parts(context, entry, _in_parts(parts, staged))
            checking = time.perf_counter() - checked_at
            in_place: list[str | None] = []
            with noted_when_half_stored(context, entry, lambda: _half_stored(in_place, staged, paths)):
                for name, one in staged.items():
                    one.commit()
                    in_place.append(name)
        prints = {name: one.fingerprint for name, one in staged.items()}
        hashing = sum(part.seconds for part in prints.values())
        seconds = time.perf_counter() - started - hashing - checking
        places = {name: parquet.shown_path(path) for name, (path, _) in tables.items()}
        first = next(iter(tables.values()))[1]
        if begun is None:
            context.add_output_metadata({"path": next(iter(places.values()))})
            return
        with harmless(context.log, "writing the receipt"):
            single = len(tables) == 1
            stored = TableStored(
                parts={None: next(iter(prints.values()))} if single else prints,
                format="parquet",
                scope="stored_partition" if context.has_asset_partitions else "stored_table",
                location=next(iter(places.values())) if single else self._shown_folder(context),
                locations={name: place for name, place in places.items() if name is not None},
                versions=self._versions(tables),
                backend=inspect_value(first).backend,
                columns=columns_in_order(first),
                is_file=True,
            )
            self._writer.end_output(context, begun, max(0.0, seconds), stored)

    def load_input(self, context: InputContext) -> Any:
        """Load a table as the input's annotation asks, and note what was read."""
        return load(context, self._writer, lambda: _Files(context, self._paths(context)))

    # ------------------------------------------------------------------ places

    def _paths(self, context: InputContext | OutputContext) -> dict[str | None, UPath]:
        """Return where the table is, or each partition of it."""
        parts = table_parts(context)
        if not context.has_asset_key or not context.has_asset_partitions:
            return {None: self._file(parts)}
        return {
            str(key): self._file([*parts, *partition_parts(key)])
            for key in sorted(context.asset_partition_keys)
        }

    def _file(self, parts: Sequence[str]) -> UPath:
        *folders, name = parts
        return self._base.joinpath(*folders, name + _SUFFIX)

    def _shown_folder(self, context: OutputContext) -> str:
        return parquet.shown_path(self._base.joinpath(*table_parts(context)))

    # ------------------------------------------------------------------ storing

    def _versions(self, tables: Mapping[str | None, tuple[UPath, Any]]) -> dict[str | None, dict[str, Any]]:
        """Return the version of each file, for readers that may reuse its hash; else one request less."""
        if not self._settings.reuse_hashes:
            return {}
        versions = {name: parquet.files_version([path]) for name, (path, _) in tables.items()}
        return {None: next(iter(versions.values()))} if len(versions) == 1 else dict(versions)

    def _stage(
        self, stack: ExitStack, context: OutputContext, path: UPath, value: Any
    ) -> parquet.StagedTable:
        def store(rows: dict[str | None, RowsToStore]) -> parquet.StagedTable:
            (one,) = rows.values()
            return stack.enter_context(
                parquet.staged_table(path, one.schema, one.batches, self._settings.budget)
            )

        staged, unhashed = store_exactly(context, {None: value}, self._writer, store)
        if None in unhashed:
            rows = staged.fingerprint.row_count
            return replace(staged, fingerprint=not_hashed(unhashed[None], rows))
        return staged


class _Files(Source):
    """A table in a file, or partitions of it in a file each."""

    format = "parquet"
    reused_note = "not read for its hash: the files are those that its receipt names"

    def __init__(self, context: InputContext, paths: Mapping[str | None, UPath]) -> None:
        self._context = context
        self._paths = paths
        if len(paths) == 1:
            self.location = parquet.shown_path(next(iter(paths.values())))

    def tables(self, *, by_partition: bool) -> dict[str | None, pa.Table]:
        tables: dict[str | None, pa.Table] = {}
        skip_missing = bool((self._context.definition_metadata or {}).get("allow_missing_partitions"))
        for name, path in self._paths.items():
            try:
                tables[name] = parquet.read_table(path)
            except parquet.MissingFileError as e:
                if name is None or not skip_missing:
                    raise
                self._context.log.warning(f"ubunye: partition {name} is skipped: {e}")
        return tables

    def readers(self, *, by_partition: bool) -> dict[str | None, pa.RecordBatchReader]:
        return {name: parquet.open_reader(path) for name, path in self._paths.items()}

    def in_parts(self, *, by_partition: bool) -> Mapping[str | None, TableInParts]:
        return {name: parquet.in_parts(path) for name, path in self._paths.items()}

    def version(self) -> dict[str, Any]:
        return parquet.files_version(self._paths.values())

    def reusable(self, instance: DagsterInstance, begun: OpenInput) -> Reused | None:
        def holds(name: str | None, stored: StepRecord) -> bool:
            version = stored.source_version or {}
            return version.get("kind") == "files" and version == parquet.files_version([self._paths[name]])

        return reusable_hash(instance, begun, self._paths, holds, self.version)


def _half_stored(
    in_place: Sequence[str | None],
    staged: Mapping[str | None, parquet.StagedTable],
    paths: Mapping[str | None, UPath],
) -> dict[str, StepRecord]:
    return {
        name: step_from_fingerprint(
            name,
            "output",
            staged[name].fingerprint,
            format="parquet",
            location=parquet.shown_path(paths[name]),
            scope="stored_partition",
        )
        for name in in_place
        if name is not None
    }


def _in_parts(
    parts: Mapping[str | None, object], staged: Mapping[str | None, parquet.StagedTable]
) -> dict[str | None, object]:
    """Return the staged tables for their rules, named as the parts of the value are."""
    tables = [one.in_parts for one in staged.values()]
    return dict(zip(parts if len(parts) == len(tables) else staged, tables, strict=True))
