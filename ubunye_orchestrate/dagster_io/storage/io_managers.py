"""The IO managers of this package, as Dagster configures them."""

# Without "from __future__ import annotations": Dagster looks at a field's class to tell a nested resource.
from typing import Any

from dagster import ConfigurableIOManager, InitResourceContext, InputContext, IOManager, OutputContext
from pydantic import Field
from upath import UPath

from ubunye_orchestrate.dagster_io.receipts.closing import close_run, open_run
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapper import WritesReceipts
from ubunye_orchestrate.dagster_io.storage.delta_tables import DeltaTables
from ubunye_orchestrate.dagster_io.storage.parquet_tables import ParquetTables

__all__ = ["DeltaIOManager", "ParquetIOManager"]


class _BelowOnePath(ConfigurableIOManager, WritesReceipts):
    """What the IO managers of this package have in common: a place, and where receipts go."""

    base_path: str
    receipts: Receipts

    @classmethod
    def configure_at_launch(cls, **kwargs: Any) -> Any:
        """Return the IO manager with the remaining fields left to the run's config."""
        return super().configure_at_launch(**_with_receipts(kwargs))

    def create_io_manager(self, context: InitResourceContext) -> IOManager:
        """Return the IO manager at work: its settings are settled once."""
        open_run(context, self.receipts.settings)
        return self._at_work()

    def teardown_after_execution(self, context: InitResourceContext) -> None:
        """Close the records of the steps that ended."""
        close_run(context, self.receipts.settings)

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        """Store a table (or a range's dict of tables) and write its receipt."""
        self._at_work().handle_output(context, obj)

    def load_input(self, context: InputContext) -> Any:
        """Load a table as the input's annotation asks, and note what was read."""
        return self._at_work().load_input(context)

    def _at_work(self) -> IOManager:
        raise NotImplementedError


class ParquetIOManager(_BelowOnePath):
    """Stores tables as parquet files, with a receipt for each.

    An asset ``["a", "b"]`` is ``<base_path>/a/b.parquet``, its partition ``p`` is
    ``<base_path>/a/b/p.parquet`` (a multi-dimensional one has a folder for each dimension, in the order of
    their names). It stores pandas, Arrow and Polars frames, record batch readers, lazy frames and relations
    (computed once, hashed while they are written); a run over a range of partitions stores a dict with their
    keys. It loads what the input's annotation asks for: ``pd.DataFrame`` (also without one), ``pa.Table``,
    ``pl.DataFrame``, ``pl.LazyFrame``, ``pa.RecordBatchReader`` (hashed in a reading of its own), or a
    ``dict[str, …]`` of one, by partition; several partitions are one table where no dict is asked for.

    What is not in memory is held against the asset's rules in its file, before it replaces the old one.
    Every file is replaced at once and whole. Raises StorageError for what cannot be stored or loaded.
    """

    base_path: str = Field(default="data", description="Folder or fsspec URL for the files.")
    storage_options: dict[str, Any] = Field(
        default_factory=dict, description="What fsspec needs for the URL: endpoint, credentials, …"
    )

    def __init__(self, **data: Any) -> None:
        super().__init__(**_with_receipts(data))

    def _at_work(self) -> IOManager:
        base = UPath(self.base_path, **self.storage_options)
        return ParquetTables(base, self.receipts.settings(), type(self).__name__)


class DeltaIOManager(_BelowOnePath):
    """Stores tables as Delta tables through delta-rs, without Java, with a receipt for each.

    An asset ``["a", "b"]`` is the table ``<base_path>/a/b``. Its partitions are one table where the asset's
    metadata names the column that tells them apart (``{"partition_expr": "day"}``; for several dimensions a
    mapping with a column for each): only the rows of the run's partitions are replaced, in one commit, and
    rows of other partitions are refused. Without that metadata each partition is a table of its own,
    ``<base_path>/a/b/<partition>``. It stores pandas, Arrow and Polars frames, record batch readers, lazy
    frames and relations; a run over a range of partitions stores a dict with their keys, or one frame where
    one table holds them. It loads what ``ParquetIOManager`` loads.

    An input is read from the version that the table has when it is loaded, for its hash and for the asset
    alike; the version, its time, operation and metrics stand in the receipt, and each commit names the
    Dagster run in its user metadata. Deletion vectors and mapped columns are read; a table with a feature
    that delta-rs does not know is refused. What Delta has no type for becomes what holds the same values
    (unsigned integers the next larger, ``uint64`` a decimal), or is refused (times of day, nanoseconds).

    Raises StorageError for what cannot be stored or loaded, and for a commit of another writer in between.
    """

    base_path: str = Field(default="data", description="Folder or URL for the tables.")
    storage_options: dict[str, str] = Field(
        default_factory=dict, description="What delta-rs needs for the URL: AWS_ENDPOINT_URL, credentials, …"
    )

    def __init__(self, **data: Any) -> None:
        super().__init__(**_with_receipts(data))

    def _at_work(self) -> IOManager:
        return DeltaTables(
            self.base_path, self.storage_options, self.receipts.settings(), type(self).__name__
        )


def _with_receipts(data: dict[str, Any]) -> dict[str, Any]:
    # Dagster does not take a default for a nested resource.
    return {"receipts": Receipts(), **data}
