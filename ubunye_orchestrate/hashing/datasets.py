"""Stored datasets: files under a path or URL, hashed from where they are in bounded memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.types as pat

from ubunye_orchestrate.errors import ConfigurationError, HashError
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.frames.stream import ROWS_AT_ONCE, from_source, guarded
from ubunye_orchestrate.hashing.tally import Tally
from ubunye_orchestrate.hashing.types import canonical_columns

__all__ = ["FORMATS", "Progress", "fingerprint_dataset"]

FORMATS = ("parquet", "ipc", "arrow", "feather", "orc", "csv")

Progress = Callable[[int, "int | None"], None]
"""Called with the rows hashed so far and, where it is known, the number of all rows."""

_BATCH_BYTES = 16 * 2**20  # of the rows decoded at once, about
_READ_BYTES = 32 * 2**20  # read ahead at once, shared by the columns; at most a thirty-second of it for one


def fingerprint_dataset(
    path_or_url: str | os.PathLike[str],
    *,
    format: str = "parquet",  # noqa: A002 - pyarrow's name for it
    progress: Progress | None = None,
) -> Fingerprint:
    """Return the rows-v1 fingerprint of a dataset in files; memory does not grow with the dataset.

    ``path_or_url`` is a file or a folder, local, a ``upath.UPath``, or an fsspec URL (``s3://...``). Below a
    folder hidden files (a leading ``.`` or ``_``) are left out, and folders named ``key=value`` give columns,
    as ``pyarrow.dataset`` presents them. The columns of all files count: one that a file lacks is null there.
    ``format`` is one of ``FORMATS``. ``progress`` is called after every batch with the rows done and the rows
    in all (None where the format does not tell); what it raises passes through.

    Never raises for what the path holds: where there is no data hash, ``error`` says why (no files, a file
    that is cut off, files that disagree about a column's type, a Delta table, whose files hold rows that the
    table no longer has). Raises ConfigurationError for an unknown format or setting.
    """
    started = time.perf_counter()
    if format not in FORMATS:
        raise ConfigurationError(f"format={format!r}: expected one of {', '.join(map(repr, FORMATS))}")
    tally = Tally()
    batches: Iterator[pa.RecordBatch] = iter(())
    total = None
    try:
        dataset = _Dataset(path_or_url, format)
        total = dataset.rows
        tally.open(dataset.schema)
        batches = dataset.batches()
    except Exception as e:  # noqa: BLE001 - noted by fail, and logged where it is not about the data
        tally.fail(e)
    while not tally.failed:
        try:
            batch = next(batches, None)
        except Exception as e:  # noqa: BLE001 - noted by fail, and logged where it is not about the data
            tally.fail(e)
            break
        if batch is None:
            tally.finish()
            break
        tally.add(batch)
        if progress is not None and not tally.failed:
            progress(tally.rows_passed, total)
    tally.seconds = time.perf_counter() - started
    return tally.fingerprint(total)


class _Dataset:
    """The files of a dataset, each looked at once for its schema and number of rows before any is read."""

    def __init__(self, path_or_url: str | os.PathLike[str], format_name: str) -> None:
        self._parquet = format_name == "parquet"
        arrow_dataset, root = _discovered(path_or_url, format_name)
        self._fragments = list(arrow_dataset.get_fragments())
        if not self._fragments:
            raise HashError(f"no {format_name} files under {root}")
        self._in_folders = _fields_in_folders(arrow_dataset, self._fragments)
        self._fields: dict[str, pa.Field] = {}
        self.rows: int | None = 0 if self._parquet else None
        for fragment in self._fragments:
            self._look_at(fragment)
        self.schema = pa.schema([*self._fields.values(), *self._in_folders])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows with every column of the dataset; a column's layout may differ from file to file."""
        rows = 0
        for fragment in self._fragments:
            constants = ds.get_partition_keys(fragment.partition_expression)
            for batch in guarded(self._read(fragment), what=fragment.path, rows=rows):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                columns |= {
                    field.name: pa.repeat(pa.scalar(constants.get(field.name), field.type), batch.num_rows)
                    for field in self._in_folders
                }
                absent = [name for name in self.schema.names if name not in columns]
                columns |= {name: pa.nulls(batch.num_rows, self._fields[name].type) for name in absent}
                rows += batch.num_rows
                # Rows without columns: such a batch knows their number, one made of no arrays does not.
                yield pa.RecordBatch.from_pydict(columns) if columns else batch
            # What a file needed is not what the next one needs.
            pa.default_memory_pool().release_unused()

    def _look_at(self, fragment: Any) -> None:
        if self._parquet:
            with from_source(fragment.open, what=fragment.path) as file:
                metadata = from_source(lambda: pq.ParquetFile(file), what=fragment.path)
                schema = metadata.schema_arrow
                self.rows = (self.rows or 0) + metadata.metadata.num_rows
        else:
            schema = from_source(lambda: fragment.physical_schema, what=fragment.path)
        types = dict(canonical_columns(schema))
        for field in schema:
            self._add(field, types[field.name], fragment.path)

    def _add(self, field: pa.Field, type_name: str, path: str) -> None:
        if any(field.name == constant.name for constant in self._in_folders):
            raise HashError(
                f"this column stands in the names of folders and in the file {path} too, which may disagree; "
                "rename one of them",
                column=field.name,
            )
        known = self._fields.get(field.name)
        if known is None or pat.is_null(known.type):
            self._fields[field.name] = field
            return
        known_name = dict(canonical_columns(pa.schema([known])))[field.name]
        if type_name not in (known_name, "null"):
            raise HashError(
                f"the file {path} has {type_name} where files before it have {known_name}", column=field.name
            )

    def _read(self, fragment: Any) -> Iterator[pa.RecordBatch]:
        if not self._parquet:
            yield from fragment.to_batches(batch_size=ROWS_AT_ONCE, batch_readahead=1)
            return
        # A dataset's scanner decodes whole row groups; this reads and decodes a batch of rows at a time.
        with fragment.open() as file:
            metadata = pq.read_metadata(file)
            buffer_size = min(_READ_BYTES // 32, _READ_BYTES // max(metadata.num_columns, 1))
            file.seek(0)
            with pq.ParquetFile(
                file, metadata=metadata, pre_buffer=False, buffer_size=buffer_size
            ) as parquet:
                yield from parquet.iter_batches(batch_size=_rows_at_once(metadata))


def _rows_at_once(metadata: Any) -> int:
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return max(1, min(ROWS_AT_ONCE, _BATCH_BYTES // max(widest, 1)))


def _discovered(path_or_url: str | os.PathLike[str], format_name: str) -> tuple[Any, str]:
    """Return the files as a pyarrow dataset, and where they are, for messages."""
    path, filesystem = from_source(lambda: _located(path_or_url))
    is_file = os.path.isfile(path) if filesystem is None else from_source(lambda: filesystem.isfile(path))
    if not is_file:
        log = f"{path.rstrip('/')}/_delta_log"
        if os.path.isdir(log) if filesystem is None else from_source(lambda: filesystem.isdir(log)):
            raise HashError(
                f"{path} is a Delta table: its files also hold rows that it no longer has; read it as a "
                "table, for example fingerprint(deltalake.DeltaTable(...).scan())"
            )
    # The folders above a single file are not part of what was asked for.
    partitioning = None if is_file else "hive"
    dataset = from_source(
        lambda: ds.dataset(path, filesystem=filesystem, format=format_name, partitioning=partitioning)
    )
    return dataset, path


def _located(path_or_url: str | os.PathLike[str]) -> tuple[str, Any]:
    """Return a path and its fsspec file system, or None for a local one."""
    if hasattr(path_or_url, "fs") and hasattr(path_or_url, "path"):  # a UPath
        return str(path_or_url.path), path_or_url.fs
    text = os.fspath(path_or_url)
    if "://" not in text:
        return text, None
    import fsspec

    filesystem, path = fsspec.core.url_to_fs(text)
    return path, filesystem


def _fields_in_folders(dataset: Any, fragments: list[Any]) -> list[pa.Field]:
    names = {name for fragment in fragments for name in ds.get_partition_keys(fragment.partition_expression)}
    return [field for field in dataset.schema if field.name in names]
