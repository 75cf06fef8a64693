"""The Spark IO manager, as Dagster configures it."""

# Without "from __future__ import annotations": Dagster looks at a field's class to tell a nested resource.
from typing import Any, Literal

from dagster import ConfigurableIOManager, InitResourceContext, InputContext, IOManager, OutputContext
from pydantic import Field

from ubunye_orchestrate.dagster_io.receipts.closing import close_run, open_run
from ubunye_orchestrate.dagster_io.receipts.resource import Receipts
from ubunye_orchestrate.dagster_io.receipts.wrapper import WritesReceipts
from ubunye_orchestrate.dagster_io.storage.spark_delta import DeltaTables
from ubunye_orchestrate.dagster_io.storage.spark_files import ParquetFolders
from ubunye_orchestrate.dagster_io.storage.spark_named import ParquetTablesByName
from ubunye_orchestrate.dagster_io.storage.spark_session import SparkResource
from ubunye_orchestrate.dagster_io.storage.spark_tables import SparkTables, Storage

__all__ = ["SparkIOManager"]


class SparkIOManager(ConfigurableIOManager, WritesReceipts):
    """Stores Spark DataFrames as Delta or parquet tables, with a receipt for each.

    An asset ``["a", "b"]`` is the folder ``<base_path>/a/b``, or with ``database`` the table
    ``<database>.a__b``. Its partitions are one table where the asset's metadata names the column that tells
    them apart (``{"partition_expr": "day"}``; for several dimensions a mapping with a column for each), and
    only the rows of the run's partitions are replaced; a frame that holds others fails. By path and without
    that metadata each partition is a folder of its own.

    What was stored is read back and hashed there by Spark: of a Delta table the version that the run
    committed. ``mode="append"`` (also in an asset's metadata) adds the frame to the table; the receipt is of
    the rows that were added. It loads a Spark DataFrame, or what the input's annotation asks for
    (``pd.DataFrame``, ``pa.Table``, ``pl.DataFrame``, or a ``dict[str, …]`` of one by partition). A Delta
    table is read in the version that it had when the input was resolved, by the hash and by the asset alike.

    Raises StorageError for what cannot be stored or loaded; what Spark says of a plan passes through.
    """

    base_path: str = Field(default="data", description="Folder or URL for the tables, as Spark takes it.")
    database: str | None = Field(
        default=None, description="Schema (or catalog.schema) for tables by name, instead of base_path."
    )
    format: Literal["delta", "parquet"] = Field(default="delta", description="How tables are stored.")
    mode: Literal["overwrite", "append"] = Field(
        default="overwrite", description="What becomes of the rows that are there; else as the asset says."
    )
    hash_table: bool = Field(
        default=False,
        description="After an append, hash the whole table too, and make that the asset's hash.",
    )
    write_options: dict[str, Any] = Field(
        default_factory=dict, description="Options for Spark's writer, e.g. mergeSchema."
    )
    storage_options: dict[str, Any] = Field(
        default_factory=dict, description="What fsspec needs to see the files of parquet tables."
    )
    spark: SparkResource
    receipts: Receipts

    def __init__(self, **data: Any) -> None:
        # Dagster does not take a default for a nested resource.
        data.setdefault("spark", SparkResource())
        data.setdefault("receipts", Receipts())
        super().__init__(**data)

    @classmethod
    def configure_at_launch(cls, **kwargs: Any) -> Any:
        """Return the IO manager with the remaining fields left to the run's config."""
        kwargs.setdefault("spark", SparkResource())
        kwargs.setdefault("receipts", Receipts())
        return super().configure_at_launch(**kwargs)

    def create_io_manager(self, context: InitResourceContext) -> IOManager:
        """Return the IO manager at work: its settings are settled once."""
        open_run(context, self.receipts.settings)
        return self._at_work()

    def teardown_after_execution(self, context: InitResourceContext) -> None:
        """Close the records of the steps that ended."""
        close_run(context, self.receipts.settings)

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        """Store a frame (or a range's dict of frames) and write its receipt."""
        self._at_work().handle_output(context, obj)

    def load_input(self, context: InputContext) -> Any:
        """Load a table as the input's annotation asks, and note what was read."""
        return self._at_work().load_input(context)

    def _at_work(self) -> SparkTables:
        options = {name: str(value) for name, value in self.write_options.items()}
        storage: Storage = DeltaTables(options)
        if self.format == "parquet":
            files = ParquetFolders if self.database is None else ParquetTablesByName
            storage = files(options, self.storage_options)
        return SparkTables(
            storage,
            lambda: self.spark.session,
            self.receipts.settings(),
            base_path=self.base_path,
            database=self.database,
            mode=self.mode,
            hash_table=self.hash_table,
            name=type(self).__name__,
        )
