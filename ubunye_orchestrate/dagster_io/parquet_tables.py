"""The parquet IO manager at work: what it hashes is what it stores, and what it reads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa
from dagster import (
    InputContext,
    IOManager,
    OutputContext,
)
from upath import UPath

from ubunye_orchestrate.dagster_io import parquet
from ubunye_orchestrate.dagster_io.expecting import check_input, check_parts, parts_to_store
from ubunye_orchestrate.dagster_io.forms import (
    Form,
    concatenated,
    convert,
    form_of_annotation,
    item_annotation,
    pandas_metadata,
)
from ubunye_orchestrate.dagster_io.panel import harmless
from ubunye_orchestrate.dagster_io.places import partition_parts, table_parts
from ubunye_orchestrate.dagster_io.reuse import Reused, reusable_hash
from ubunye_orchestrate.dagster_io.values import columns_in_order, combined, inspect_value, not_hashed
from ubunye_orchestrate.dagster_io.wrapper import WritesReceipts
from ubunye_orchestrate.dagster_io.writer import (
    OpenInput,
    OpenOutput,
    ReceiptWriter,
    TableRead,
    TableStored,
)
from ubunye_orchestrate.errors import HashError, StorageError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.frames import arrow_stream
from ubunye_orchestrate.records.budget import fingerprint_within
from ubunye_orchestrate.records.settings import ReceiptSettings

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
        tables = self._tables_to_store(context, obj)
        started = time.perf_counter()
        with ExitStack() as stack:
            staged = {
                name: self._stage(stack, context, path, value) for name, (path, value) in tables.items()
            }
            checked_at = time.perf_counter()
            if not in_memory:
                check_parts(context, entry, _in_parts(parts, staged))
            checking = time.perf_counter() - checked_at
            for one in staged.values():
                one.commit()
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
        wanted = context.dagster_type.typing_type
        # Outputs of ops are collected one by one; an asset is one table.
        form = form_of_annotation(wanted if context.has_asset_key else item_annotation(wanted))
        begun: OpenInput | None = None
        with harmless(context.log, "noting an input"):
            begun = self._writer.begin_input(context)
        paths = self._paths(context)
        if form.kind == "reader":
            return self._load_readers(context, begun, paths, form)
        known: Reused | None = None
        if begun is not None and self._settings.reuse_hashes and self._settings.hash_inputs:
            with harmless(context.log, "looking for a hash to reuse"):
                known = reusable_hash(context.instance, begun, paths)
        started = time.perf_counter()
        tables = self._read(context, paths)
        seconds = time.perf_counter() - started
        if begun is not None:
            with harmless(context.log, "noting an input"):
                hashed = self._hash(tables) if known is None else known.fingerprint
                self._note(context, begun, seconds, paths, hashed, form, reused=known)
        value = _handed_over(tables, form)
        parts: Mapping[str | None, Any] = value if form.by_partition else {None: value}
        if form.kind == "polars_lazy":
            parts = tables
        check_input(context, None if begun is None else begun.entry, parts)
        return value

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

    def _tables_to_store(self, context: OutputContext, obj: Any) -> dict[str | None, tuple[UPath, Any]]:
        paths = self._paths(context)
        if len(paths) == 1:
            (name, path), *_ = paths.items()
            if isinstance(obj, Mapping) and name is not None and set(obj) == {name}:
                obj = obj[name]
            return {name: (path, obj)}
        if isinstance(obj, Mapping) and {str(key) for key in obj} == set(paths):
            return {name: (paths[name], obj[name]) for name in paths}
        what = f"a dict with the keys {sorted(map(str, obj))[:5]}" if isinstance(obj, Mapping) else _type(obj)
        raise StorageError(
            f"the run stores {len(paths)} partitions of {context.asset_key.to_user_string()} and got {what}; "
            "expected a dict of tables with the partition keys as keys: {key: table for key in "
            "context.partition_keys}, or give the asset BackfillPolicy.multi_run()"
        )

    def _versions(self, tables: Mapping[str | None, tuple[UPath, Any]]) -> dict[str | None, dict[str, Any]]:
        """Return the version of each file, for readers that may reuse its hash; else one request less."""
        if not self._settings.reuse_hashes:
            return {}
        versions = {name: parquet.files_version([path]) for name, (path, _) in tables.items()}
        return {None: next(iter(versions.values()))} if len(versions) == 1 else dict(versions)

    def _stage(
        self, stack: ExitStack, context: OutputContext, path: UPath, value: Any
    ) -> parquet.StagedTable:
        if value is None:
            raise StorageError(
                "got None; expected a table; annotate the asset with '-> None' if it stores its data itself"
            )
        try:
            stream = arrow_stream(value, naive_timestamps=self._settings.naive_timestamps)
            schema = stream.schema
            if stream.library == "pandas":
                schema = schema.with_metadata(pandas_metadata(value))
            staged = parquet.staged_table(path, schema, stream.batches, self._settings.budget)
            return stack.enter_context(staged)
        except HashError as e:
            if inspect_value(value).nature == "other":
                raise StorageError(
                    f"got {_type(value)}; ParquetIOManager stores tables (pandas, Arrow, Polars, DuckDB); "
                    'give the asset another IO manager (io_manager_key="…")'
                ) from e
            if inspect_value(value).nature != "whole":
                # It cannot be read a second time, and the source's own error is the one to see.
                raise (e.__cause__ or e) from None
            return self._stage_unhashed(stack, context, path, value, e)

    def _stage_unhashed(
        self, stack: ExitStack, context: OutputContext, path: UPath, value: Any, reason: HashError
    ) -> parquet.StagedTable:
        """Stage a table that rows-v1 cannot hash, as Arrow converts it."""
        context.log.warning(f"ubunye: the table is stored without a data hash: {reason}")
        table = _as_arrow_has_it(value)
        written = parquet.staged_table(path, table.schema, iter(table.to_batches()))
        staged = stack.enter_context(written)
        return replace(staged, fingerprint=not_hashed(str(reason), table.num_rows))

    # ------------------------------------------------------------------ loading

    def _read(self, context: InputContext, paths: Mapping[str | None, UPath]) -> dict[str | None, pa.Table]:
        tables: dict[str | None, pa.Table] = {}
        skip_missing = bool((context.definition_metadata or {}).get("allow_missing_partitions"))
        for name, path in paths.items():
            try:
                tables[name] = parquet.read_table(path)
            except parquet.MissingFileError as e:
                if name is None or not skip_missing:
                    raise
                context.log.warning(f"ubunye: partition {name} is skipped: {e}")
        return tables

    def _hash(self, tables: Mapping[str | None, pa.Table]) -> Fingerprint:
        if not self._settings.hash_inputs:
            return not_hashed("not hashed: hash_inputs is off", sum(t.num_rows for t in tables.values()))
        zone, budget = self._settings.naive_timestamps, self._settings.budget
        return combined({name or "": fingerprint_within(t, zone, budget) for name, t in tables.items()})

    def _load_readers(
        self,
        context: InputContext,
        begun: OpenInput | None,
        paths: Mapping[str | None, UPath],
        form: Form,
    ) -> Any:
        """Hash the files in a reading of their own, and hand over readers that have not begun."""
        if begun is not None:
            with harmless(context.log, "noting an input"):
                hashed = parquet.files_version(paths.values())
                read = self._hash_files(paths)
                self._note(context, begun, 0.0, paths, read, form, hashed)
        parts = {name: parquet.in_parts(path) for name, path in paths.items()}
        check_input(context, None if begun is None else begun.entry, parts)
        readers = {name: parquet.open_reader(path) for name, path in paths.items()}
        if form.by_partition:
            return {name or "": reader for name, reader in readers.items()}
        if len(readers) == 1:
            return next(iter(readers.values()))
        return _chained(readers)

    def _hash_files(self, paths: Mapping[str | None, UPath]) -> Fingerprint:
        if not self._settings.hash_inputs:
            return not_hashed("not hashed: hash_inputs is off")
        zone, budget = self._settings.naive_timestamps, self._settings.budget
        return combined({name or "": parquet.hash_file(path, zone, budget) for name, path in paths.items()})

    def _note(
        self,
        context: InputContext,
        begun: OpenInput,
        seconds: float,
        paths: Mapping[str | None, UPath],
        read: Fingerprint,
        form: Form,
        hashed: dict[str, Any] | None = None,
        reused: Reused | None = None,
    ) -> None:
        """``hashed`` is the files' version when they were hashed, where that was not the reading itself."""
        note = "hashed in a reading of its own, before it was handed over" if hashed else None
        if reused is not None:
            hashed, note = reused.version, "not read for its hash: the files are those that its receipt names"
        single = len(paths) == 1
        self._writer.end_input(
            begun,
            seconds,
            TableRead(
                fingerprint=read,
                format="parquet",
                scope="stored_partition" if context.has_asset_partitions else "stored_table",
                location=parquet.shown_path(next(iter(paths.values()))) if single else None,
                recomputed=form.kind == "reader",
                backend=form.backend,
                source_version=parquet.files_version(paths.values()),
                source_version_at_hash=hashed,
                note=note,
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


def _in_parts(
    parts: Mapping[str | None, object], staged: Mapping[str | None, parquet.StagedTable]
) -> dict[str | None, object]:
    """Return the staged tables for their rules, named as the parts of the value are."""
    tables = [one.in_parts for one in staged.values()]
    return dict(zip(parts if len(parts) == len(tables) else staged, tables, strict=True))


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


def _as_arrow_has_it(frame: Any) -> pa.Table:
    """Convert a frame in memory as Arrow does by itself. Raises StorageError where it refuses."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    try:
        if inspect_value(frame).backend == "pandas":
            named = [name for name in frame.index.names if name is not None]
            return pa.Table.from_pandas(frame.reset_index(named) if named else frame, preserve_index=False)
        return frame.to_arrow()
    except Exception as e:  # Arrow's, pandas' and Polars' own exceptions
        raise StorageError(
            f"the table cannot be stored as parquet: {e}; convert the column that it names"
        ) from e


def _type(value: object) -> str:
    return f"a {type(value).__name__}"
