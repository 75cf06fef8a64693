"""The ``Receipts`` resource: where records go and how runs are hashed, in Dagster's configuration."""

from __future__ import annotations

from typing import Any

from dagster import ConfigurableResource, EnvVar
from pydantic import Field

from ubunye_orchestrate.errors import ConfigurationError
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

    def settings(self) -> ReceiptSettings:
        """Return the settings, each resolved; Dagster resolves ``EnvVar`` fields of its own resources only.

        Raises ConfigurationError for a value that cannot work.
        """
        return resolve_settings(
            root=_text("root", self.root),
            usecase=_text("usecase", self.usecase),
            profile=_text("profile", self.profile),
            hash_inputs=self.hash_inputs,
            naive_timestamps=_text("naive_timestamps", self.naive_timestamps),
        )


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
