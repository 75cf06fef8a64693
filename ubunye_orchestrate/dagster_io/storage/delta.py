"""One Delta table through delta-rs, read from one version of it.

delta-rs' own reader (DataFusion) knows deletion vectors and mapped columns. Its way over pyarrow's datasets
(``to_pyarrow_table``, ``to_pandas``) does not, and gives nulls for every mapped column without a word, so it
is not used here.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from ubunye_orchestrate.dagster_io.receipts.delta_evidence import USER_METADATA, delta_version
from ubunye_orchestrate.dagster_io.storage.delta_types import as_read
from ubunye_orchestrate.dagster_io.storage.parquet_types import with_types
from ubunye_orchestrate.errors import ConfigurationError, StorageError
from ubunye_orchestrate.expectations.in_parts import TableInParts
from ubunye_orchestrate.foreign import without_values
from ubunye_orchestrate.masking import mask_location

__all__ = [
    "MissingTableError",
    "Snapshot",
    "as_storage_error",
    "delta_rs",
    "find",
    "open_table",
    "place_of",
    "shown_uri",
]

# One file after the other, each from its start: rows come in the same order every time.
_SESSION = {"datafusion.execution.target_partitions": "1"}
_NOT_IN_PATHS = "[]^|\\"
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"


class MissingTableError(StorageError):
    """There is no Delta table: the asset or partition was never stored here."""


class Snapshot:
    """A version of a table. What is read from it is the same whatever is committed later."""

    def __init__(self, table: Any, shown: str) -> None:
        """Take a ``deltalake.DeltaTable`` and what messages call it."""
        self.table = table
        self.shown = shown

    @property
    def number(self) -> int:
        """Of the version."""
        return int(self.table.version())

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns and types in which rows are read: plain Arrow types, texts and lists with small offsets.

        Raises StorageError for a column that delta-rs does not read as Spark does.
        """
        with as_storage_error(f"{self.shown} cannot be read"):
            schema = self.table.schema()
            said, arrow = json.loads(schema.to_json()), pa.schema(schema.to_arrow())
        for field in said["fields"]:
            _refuse(field, self.shown)
        return as_read(arrow)

    def version(self) -> dict[str, Any]:
        """Return the version as ``source_version``, from the table's own log."""
        return delta_version({**self._commit(), "version": self.number})

    def noted(self) -> str | None:
        """Return the user metadata of the commit that made this version."""
        said = self._commit().get(USER_METADATA)
        return None if said is None else str(said)

    def _commit(self) -> Mapping[str, Any]:
        # From the newest commit down to the one of this version: the last one is this version's. delta-rs
        # numbers them from this version down, which is wrong where there are newer ones.
        with as_storage_error(f"the history of {self.shown} cannot be read"):
            commits = self.table.history(1)
        return commits[-1] if commits else {}

    def reader(self, where: str | None = None, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Open the rows for reading, all of them or those that meet a condition, in the order of the files.

        Raises StorageError, also while they are read.
        """
        schema = self.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        named = "*" if columns is None else ", ".join(_quoted(name) for name in columns)
        told = f"{self.shown} cannot be read by delta-rs"
        with as_storage_error(told):
            builder = delta_rs().QueryBuilder(_SESSION).register("t", self.table)
            query = f"SELECT {named} FROM t" + ("" if where is None else f" WHERE {where}")
            source = pa.RecordBatchReader.from_stream(builder.execute(query))

        def batches() -> Iterator[pa.RecordBatch]:
            with as_storage_error(told):
                for batch in source:
                    yield with_types(batch, schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def in_parts(self, where: str | None = None) -> TableInParts:
        """Return the rows for their rules, a batch at a time."""

        def read(columns: Sequence[str]) -> Iterator[pa.Table]:
            # Rows without columns are counted by a column.
            wanted = list(columns) or self.schema.names[:1]
            for batch in self.reader(where, wanted):
                yield pa.Table.from_batches([batch]).select(list(columns))

        return TableInParts(lambda: self.schema, read)


def find(uri: str, options: Mapping[str, str]) -> Snapshot | None:
    """Return the newest version of the table; None where there is no table. Raises StorageError."""
    deltalake = delta_rs()
    shown = shown_uri(uri)
    with as_storage_error(f"{shown} cannot be opened"):
        try:
            return Snapshot(deltalake.DeltaTable(place_of(uri), storage_options=dict(options) or None), shown)
        except deltalake.exceptions.TableNotFoundError:
            return None


def open_table(uri: str, options: Mapping[str, str]) -> Snapshot:
    """Return the newest version of the table. Raises MissingTableError where there is none, StorageError."""
    found = find(uri, options)
    if found is None:
        raise MissingTableError(
            f"no Delta table {shown_uri(uri)}; expected the table that the upstream asset stored; "
            "materialize it first"
        )
    return found


def shown_uri(uri: str) -> str:
    """Return the absolute path or URL for records and messages, credentials masked."""
    return mask_location(uri) if "://" in uri else os.path.abspath(uri)


def delta_rs() -> Any:
    """Return delta-rs' module, loaded when it is needed. Raises ConfigurationError without it."""
    try:
        import deltalake
    except ImportError as e:
        raise ConfigurationError(
            "Delta tables need delta-rs, which is not installed; pip install 'ubunye-orchestrate[delta]'"
        ) from e
    return deltalake


def place_of(uri: str) -> str:
    """Return the place as delta-rs takes it: a local one as an absolute path. Raises StorageError."""
    place = uri if "://" in uri else os.path.abspath(uri)
    odd = sorted({character for character in place if character in _NOT_IN_PATHS})
    if odd:
        raise StorageError(
            f"{shown_uri(uri)} has {' '.join(odd)} in its name, with which delta-rs cannot work; choose a "
            "base_path without"
        )
    return place


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _refuse(field: Mapping[str, Any], shown: str) -> None:
    what = None
    if "char(" in str(field.get("metadata", {}).get(_CHAR, "")).replace("varchar(", ""):
        what = "a CHAR, which Spark fills up with spaces when it reads it"
    if _holds_variant(field["type"]):
        what = "a variant, for which there is no Arrow type"
    if what is not None:
        raise StorageError(
            f"{shown} has the column {field['name']!r}, {what}: delta-rs does not read it as Spark does. "
            "Read the table with SparkIOManager, or convert the column"
        )


def _holds_variant(said: Any) -> bool:
    """Look into a type as the table's log has it: a name, or a dict of a nested one."""
    if not isinstance(said, dict):
        return bool(said == "variant")
    inner = [said.get(name) for name in ("elementType", "keyType", "valueType")]
    return any(map(_holds_variant, [*inner, *(field["type"] for field in said.get("fields", ()))]))


@contextlib.contextmanager
def as_storage_error(problem: str) -> Iterator[None]:
    """Make StorageErrors of what delta-rs raises, panics of its Rust code among them."""
    try:
        yield
    except (StorageError, GeneratorExit):
        raise
    except BaseException as e:
        if not isinstance(e, Exception) and type(e).__name__ != "PanicException":
            raise
        words = without_values(str(e)) or type(e).__name__
        hint = ""
        if "table features required" in words:
            hint = "; a table with that feature is read and written with SparkIOManager"
        raise StorageError(f"{problem} ({words}){hint}") from e
