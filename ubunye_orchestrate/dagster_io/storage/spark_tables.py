"""The Spark IO manager at work: what it stored is read from the storage and hashed there, by Spark.

A Spark frame is a plan. Computed a second time for its hash it may give other rows (a random number, the
clock, an input that moved), so the plan is computed once, by the write, and the hash is of what that stored.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import reduce
from typing import Any, Literal, Protocol

from dagster import InputContext, IOManager, OutputContext

from ubunye_orchestrate.dagster_io.receipts.expecting import check_input, check_parts
from ubunye_orchestrate.dagster_io.receipts.half_stored import noted_when_half_stored
from ubunye_orchestrate.dagster_io.receipts.panel import harmless
from ubunye_orchestrate.dagster_io.receipts.producers import ordered_partitions
from ubunye_orchestrate.dagster_io.receipts.spark_evidence import note_session
from ubunye_orchestrate.dagster_io.receipts.tasks import note_of_run, task_of_output
from ubunye_orchestrate.dagster_io.receipts.values import combined
from ubunye_orchestrate.dagster_io.receipts.wrapper import WritesReceipts
from ubunye_orchestrate.dagster_io.receipts.writer import OpenInput, OpenOutput, ReceiptWriter
from ubunye_orchestrate.dagster_io.storage.forms import Form, convert, form_of_annotation, item_annotation
from ubunye_orchestrate.dagster_io.storage.places import partition_parts, table_parts
from ubunye_orchestrate.dagster_io.storage.reuse import Reused, reusable_hash
from ubunye_orchestrate.dagster_io.storage.spark_partitions import partition_columns
from ubunye_orchestrate.dagster_io.storage.spark_places import (
    MissingTableError,
    Part,
    Place,
    Rows,
    Staged,
    Stored,
    below,
)
from ubunye_orchestrate.dagster_io.storage.spark_receipts import table_read, table_stored
from ubunye_orchestrate.errors import StorageError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.frames import native
from ubunye_orchestrate.records.budget import fingerprint_within
from ubunye_orchestrate.records.model import StepRecord
from ubunye_orchestrate.records.paths import task_name_for_asset
from ubunye_orchestrate.records.settings import ReceiptSettings
from ubunye_orchestrate.records.steps import step_without_hash
from ubunye_orchestrate.records.values import inspect_value, not_hashed

__all__ = ["Mode", "SparkTables", "Storage"]

Mode = Literal["overwrite", "append"]

_MANAGER = "SparkIOManager"
_NAME = re.compile(r"\w+", re.ASCII)


class Storage(Protocol):
    """One way of storing tables, as this module needs it."""

    format: str
    one_table: bool
    """All partitions of an asset may be in one table."""

    def stage(
        self, frame: Any, place: Place, note: str | None, rows: Rows | None, *, append: bool
    ) -> AbstractContextManager[Staged]:
        """Prepare to store a frame."""

    def resolve(self, session: Any, place: Place) -> dict[str, Any]:
        """Return the version of a table as it is now, as ``source_version``."""

    def read(self, session: Any, place: Place, version: Mapping[str, Any]) -> Any:
        """Return the table, in that version where the storage keeps versions."""


class SparkTables(IOManager, WritesReceipts):
    """Stores and loads Spark frames. ``SparkIOManager`` documents the rules."""

    def __init__(
        self,
        storage: Storage,
        session: Callable[[], Any],
        settings: ReceiptSettings,
        *,
        base_path: str,
        database: str | None,
        mode: Mode,
        hash_table: bool,
        name: str = _MANAGER,
    ) -> None:
        """Take the storage, how to get a session, where receipts go and where tables are."""
        self._storage = storage
        self._session = session
        self._settings = settings
        self._base = base_path
        self._database = database
        self._mode = mode
        self._hash_table = hash_table
        self._writer = ReceiptWriter(settings, name)

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        """Store a frame (or a range's dict of frames) and write its receipt."""
        begun: OpenOutput | None = None
        with harmless(context.log, "beginning a receipt"):
            begun = self._writer.begin_output(context)
        entry = None if begun is None else begun.entry
        parts = self._to_store(context, obj)
        append = self._mode_of(context) == "append"
        names = [part.keys[0] if isinstance(obj, Mapping) else None for part, _ in parts]
        started = time.perf_counter()
        with ExitStack() as stack:
            staged = [
                (part, stack.enter_context(self._stage(context, begun, part, frame, append=append)))
                for part, frame in parts
            ]
            frames = dict(zip(names, (one.frame for _, one in staged), strict=True))
            checking = time.perf_counter()
            check_parts(context, entry, frames, settled=all(one.settled for _, one in staged))
            checking = time.perf_counter() - checking
            stored: list[tuple[Part, Stored]] = []
            with noted_when_half_stored(context, entry, lambda: self._half_stored(stored)):
                for part, one in staged:
                    stored.append((part, one.commit()))
        seconds = time.perf_counter() - started - checking
        if begun is None:
            return
        with harmless(context.log, "writing the receipt"):
            frame = parts[0][1]
            note_session(begun.entry, frame.sparkSession)
            table = table_stored(
                stored,
                task_of_output(context, begun.entry).name,
                format=self._storage.format,
                partitioned=context.has_asset_partitions,
                append=append,
                hash_table=self._hash_table,
                hash_rows=self._hash,
                location=self._place(context).shown,
                columns=list(frame.columns),
                is_file=self._database is None,
            )
            self._writer.end_output(context, begun, seconds, table)

    def load_input(self, context: InputContext) -> Any:
        """Load a table as the input's annotation asks, in the version that is resolved now, and note it."""
        wanted = context.dagster_type.typing_type
        # Outputs of ops are collected one by one; an asset is one table.
        wanted = wanted if context.has_asset_key else item_annotation(wanted)
        form = form_of_annotation(wanted, manager=_MANAGER, otherwise="spark")
        begun: OpenInput | None = None
        with harmless(context.log, "noting an input"):
            begun = self._writer.begin_input(context)
        started = time.perf_counter()
        session = self._session()
        frames, versions = self._read(context, session, form)
        values = {name: _brought(frame, form) for name, frame in frames.items()}
        seconds = time.perf_counter() - started
        if begun is not None:
            with harmless(context.log, "noting an input"):
                note_session(begun.entry, session)
                self._note_input(context, begun, seconds, form, values, versions)
        check_input(context, None if begun is None else begun.entry, values)
        given = {name or "": _as(value, form) for name, value in values.items()}
        return given if form.by_partition else next(iter(given.values()), None)

    # ------------------------------------------------------------------ places

    def _place(self, context: InputContext | OutputContext, partition: Sequence[str] = ()) -> Place:
        if self._database is None:
            return below(self._base, [*table_parts(context), *partition])
        path = context.asset_key.path if context.has_asset_key else context.get_identifier()
        name = task_name_for_asset(path)
        if not _NAME.fullmatch(name):
            raise StorageError(
                f"{'/'.join(path)} is no name of a table (got {name}; expected letters, digits and single "
                "underscores); rename the asset, or store it by path"
            )
        return Place(table=(*self._database.split("."), name))

    def _parts(self, context: InputContext | OutputContext, metadata: Mapping[str, Any]) -> list[Part]:
        """Return where the table is: in one piece where one table holds all partitions, else one by one."""
        if not context.has_asset_key or not context.has_asset_partitions:
            return [Part((), self._place(context), None)]
        keys = ordered_partitions(context)
        columns = partition_columns(metadata, context.asset_partitions_def)
        rows = None if columns is None else Rows(columns, context.asset_partitions_def, keys)
        if rows is not None and self._storage.one_table:
            return [Part(keys, self._place(context), rows)]
        if self._database is not None:
            raise StorageError(
                f"{context.asset_key.to_user_string()} has partitions, and one table of a catalog holds them "
                'all; expected the column that tells them apart: metadata={"partition_expr": "day"}'
            )
        by_text = {str(key): key for key in context.asset_partition_keys}
        alone = {} if rows is None else rows.one_by_one()
        return [
            Part((key,), self._place(context, partition_parts(by_text[key])), alone.get(key)) for key in keys
        ]

    # ------------------------------------------------------------------ storing

    def _to_store(self, context: OutputContext, obj: Any) -> list[tuple[Part, Any]]:
        parts = self._parts(context, context.definition_metadata or {})
        keys = [key for part in parts for key in part.keys]
        # Keys may be given as what they stand for: dates, numbers.
        by_key = {str(key): value for key, value in obj.items()} if isinstance(obj, Mapping) else {}
        if by_key and by_key.keys() == set(keys):
            alone = [one for part in parts for one in part.one_by_one()]
            return [(part, _frame(by_key[part.keys[0]])) for part in alone]
        if len(parts) == 1:
            return [(parts[0], _frame(obj))]
        got = f"a dict with the keys {sorted(map(str, obj))[:5]}" if isinstance(obj, Mapping) else _type(obj)
        raise StorageError(
            f"the run stores {len(parts)} partitions of {context.asset_key.to_user_string()} and got {got}; "
            "expected a dict of frames with the partition keys as keys; or say which column tells the "
            'partitions apart (metadata={"partition_expr": "day"}) to store them as one frame'
        )

    def _stage(
        self, context: OutputContext, begun: OpenOutput | None, part: Part, frame: Any, *, append: bool
    ) -> AbstractContextManager[Staged]:
        note = self._note(context, begun, part)
        return self._storage.stage(frame, part.place, note, part.rows, append=append)

    def _half_stored(self, stored: Sequence[tuple[Part, Stored]]) -> dict[str, StepRecord]:
        reason = "not hashed: the step failed after it was stored"
        return {
            key: step_without_hash(
                key, "output", reason=reason, format=self._storage.format, location=part.place.shown
            ).model_copy(update={"source_version": one.version})
            for part, one in stored
            for key in part.keys
        }

    def _mode_of(self, context: OutputContext) -> Mode:
        mode: Any = (context.definition_metadata or {}).get("mode", self._mode)
        if mode not in ("overwrite", "append"):
            raise StorageError(f'the asset\'s metadata "mode" is {mode!r}; expected "overwrite" or "append"')
        return "append" if mode == "append" else "overwrite"

    def _note(self, context: OutputContext, begun: OpenOutput | None, part: Part) -> str | None:
        note = None
        with harmless(context.log, "naming the receipt in the commit"):
            if begun is not None:
                task = task_of_output(context, begun.entry)
                note = note_of_run(begun.entry.key, task, self._settings, part.keys)
        return note

    # ------------------------------------------------------------------ loading

    def _read(
        self, context: InputContext, session: Any, form: Form
    ) -> tuple[dict[str | None, Any], dict[Place, dict[str, Any]]]:
        """Return the frames, by partition where they were asked for so, and the version of each place."""
        upstream = context.upstream_output
        metadata = (None if upstream is None else upstream.definition_metadata) or {}
        skip_missing = bool((context.definition_metadata or {}).get("allow_missing_partitions"))
        frames: dict[str | None, Any] = {}
        versions: dict[Place, dict[str, Any]] = {}
        for part in self._parts(context, metadata):
            try:
                version = self._storage.resolve(session, part.place)
                table = self._storage.read(session, part.place, version)
            except MissingTableError as e:
                if not (part.keys and skip_missing):
                    raise
                context.log.warning(f"ubunye: partition {', '.join(part.keys)} is skipped: {e}")
                continue
            versions[part.place] = version
            if part.rows is None or not self._storage.one_table:
                frames[part.keys[0] if part.keys else None] = table
            elif form.by_partition:
                frames.update({key: rows.of(table) for key, rows in part.rows.one_by_one().items()})
            else:
                frames[None] = part.rows.of(table)
        if not form.by_partition and len(frames) > 1:
            frames = {None: reduce(lambda a, b: a.unionByName(b), frames.values())}
        return frames, versions

    def _hash(self, frame: Any) -> Fingerprint:
        return fingerprint_within(frame, self._settings.naive_timestamps, self._settings.budget)

    def _note_input(
        self,
        context: InputContext,
        begun: OpenInput,
        seconds: float,
        form: Form,
        values: Mapping[str | None, Any],
        versions: Mapping[Place, dict[str, Any]],
    ) -> None:
        hashed = not_hashed("not hashed: hash_inputs is off")
        known = self._known(context, begun, versions)
        if known is not None:
            hashed = known.fingerprint
        elif self._settings.hash_inputs:
            hashed = combined({name or "": self._hash(value) for name, value in values.items()})
        at_hash = {
            place: version if version["kind"] == "delta" else self._storage.resolve(self._session(), place)
            for place, version in versions.items()
        }
        read = table_read(
            hashed,
            versions,
            at_hash,
            format=self._storage.format,
            partitioned=context.has_asset_partitions,
            form=form,
        )
        if known is not None:
            note = f"{read.note}; not read for its hash: its receipt is of this version"
            read = replace(read, reused_from=known.run_ids, recomputed=False, note=note)
        self._writer.end_input(begun, seconds, read)

    def _known(
        self, context: InputContext, begun: OpenInput, versions: Mapping[Place, dict[str, Any]]
    ) -> Reused | None:
        """Return the hash of the producer's receipt, where that is of the very version that is read."""
        if not (self._settings.reuse_hashes and self._settings.hash_inputs) or context.has_asset_partitions:
            return None
        place, version = next(iter(versions.items()))
        return reusable_hash(
            context.instance,
            begun,
            [None],
            lambda _, stored: (
                stored.location == place.shown
                and stored.hash_scope == "stored_table"
                and version["kind"] == "delta"
                and stored.source_version == version
            ),
            lambda: version,
        )


def _frame(value: Any) -> Any:
    if inspect_value(value).backend == "spark":
        return native(value)
    if value is None:
        raise StorageError(
            "got None; expected a Spark DataFrame; annotate the asset with '-> None' if it stores its data "
            "itself"
        )
    raise StorageError(
        f"got {_type(value)}; {_MANAGER} stores Spark DataFrames; make one of it (spark.createDataFrame), or "
        'give the asset another IO manager (io_manager_key="…")'
    )


def _brought(frame: Any, form: Form) -> Any:
    """Return the frame, or its rows as an Arrow table where the asset wants them in memory."""
    if form.kind == "spark":
        return frame
    if not hasattr(frame, "toArrow"):
        raise StorageError(
            f"an input that is no Spark DataFrame ({form.kind}) needs PySpark 4, which brings rows over as "
            "Arrow; annotate it as a Spark DataFrame"
        )
    return frame.toArrow()


def _as(value: Any, form: Form) -> Any:
    return value if form.kind == "spark" else convert(value, form.kind)


def _type(value: object) -> str:
    return f"a {type(value).__name__}"
