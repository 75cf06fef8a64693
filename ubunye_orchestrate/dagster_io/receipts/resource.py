"""The ``Receipts`` resource: where records go and how runs are hashed, in Dagster's configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetKey,
    ConfigurableResource,
    EnvVar,
    InitResourceContext,
    OpExecutionContext,
)
from pydantic import Field

from ubunye_orchestrate.dagster_io import upstream
from ubunye_orchestrate.dagster_io.receipts.closing import close_run, open_run
from ubunye_orchestrate.dagster_io.receipts.explicit import ReceiptRun
from ubunye_orchestrate.dagster_io.receipts.unrecorded import UnrecordedRun
from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.records.monitors import Monitor
from ubunye_orchestrate.records.settings import ReceiptSettings, resolve_settings

__all__ = ["Receipts"]


class Receipts(ConfigurableResource[Any]):
    """Where records go and how runs are hashed.

    Pass it to an IO manager of this package or to ``with_receipts``; every field may be an ``EnvVar``. What
    is left out comes from ``UBUNYE_ROOT``, ``UBUNYE_USECASE`` and ``UBUNYE_PROFILE``, else from its default.
    """

    root: str | None = Field(
        default=None, description="Folder or fsspec URL that will hold .ubunye; else UBUNYE_ROOT, else here."
    )
    usecase: str | None = Field(default=None, description="First part of every record's path.")
    profile: str | None = Field(
        default=None, description="Deployment name. Baselines and histories are per profile."
    )
    hash_inputs: bool = Field(default=True, description="False leaves inputs unhashed; their records say so.")
    naive_timestamps: str = Field(
        default="ntz",
        description="'ntz', or the time zone in which timestamps without one are read as instants.",
    )
    max_hash_rows: int | None = Field(
        default=None, description="A table of more rows is not hashed; its record says so."
    )
    max_hash_seconds: float | None = Field(
        default=None, description="Hashing a table is given up after so long; its record says so."
    )
    reuse_hashes: bool = Field(
        default=False,
        description="Take an input's hash from its producer's receipt where the files are still those.",
    )

    def settings(self) -> ReceiptSettings:
        """Return the settings, each resolved; Dagster resolves ``EnvVar`` fields of its own resources only.

        Raises ConfigurationError for a value that cannot work.
        """
        settings = resolve_settings(
            root=_text("root", self.root),
            usecase=_text("usecase", self.usecase),
            profile=_text("profile", self.profile),
            hash_inputs=self.hash_inputs,
            naive_timestamps=_text("naive_timestamps", self.naive_timestamps),
            max_hash_rows=self.max_hash_rows,
            max_hash_seconds=self.max_hash_seconds,
            reuse_hashes=self.reuse_hashes,
        )
        return replace(settings, monitors=tuple(self.monitors()))

    def monitors(self) -> Sequence[Monitor]:
        """Return who is told of each asset's start and end; override it in a subclass.

        ``task_end`` is called when the step is over, also after a failure, with the asset's record; frames
        are not kept for it (``inputs`` and ``outputs`` are None; the record says what both were).
        """
        return ()

    def run(
        self,
        context: AssetExecutionContext | OpExecutionContext,
        asset: AssetKey | str | Sequence[str] | None = None,
    ) -> ReceiptRun:
        """Return the receipt of an asset that reads and stores by itself, to be used in a ``with`` block::

            @asset
            def sales(context: AssetExecutionContext, receipts: Receipts) -> MaterializeResult:
                with receipts.run(context) as run:
                    orders = run.read("orders", pd.read_sql(...))
                    total = orders.groupby("day").sum()
                    total.to_sql(...)
                    metadata = run.wrote("sales", total)
                return MaterializeResult(metadata=metadata)

        ``asset`` says which one in a step that makes several. Raises ConfigurationError where that is not
        clear. In an asset that is called directly, as tests do, it records nothing and holds no rules.
        """
        if upstream.step_of(context) is None:
            return UnrecordedRun(context, self.settings())
        key = None if asset is None else AssetKey.from_coercible(asset)
        return ReceiptRun(context, self.settings(), key)

    def setup_for_execution(self, context: InitResourceContext) -> None:
        """Watch for the steps that begin, and that fail."""
        open_run(context, self.settings)

    def teardown_after_execution(self, context: InitResourceContext) -> None:
        """Close the records of the steps that ended."""
        close_run(context, self.settings)


def _text(field: str, value: str | None) -> str | None:
    if not isinstance(value, EnvVar):
        return value
    found = value.get_value()
    if found is None:
        name = value.env_var_name
        raise ConfigurationError(
            f'Receipts({field}=EnvVar("{name}")): {name} is not set; set it, or leave it out'
        )
    return found
