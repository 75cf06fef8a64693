"""The run record (version 2) and its step records, field for field as they stand in a file.

The layout is that of the Ubunye engine, so that its tools read these records and this package reads its
records. Fields that only this package writes are marked "ours"; other readers pass over them. Unknown fields
of a file are kept, and are written back.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator

__all__ = ["AS_READ", "RECORD_VERSION", "Environment", "Producer", "RunRecord", "StepRecord"]

RECORD_VERSION = 2

AS_READ: dict[str, bool] = {"as_read": True}
"""Validation context of the codec: keep to the fields that the file has."""

Status = Literal["running", "success", "error"]
Direction = Literal["input", "output"]
HashBasis = Literal["materialised", "recomputed"]
HashScope = Literal["stored_table", "stored_partition", "passed_rows", "projection"]


class _Stored(BaseModel):
    """A value as it stands in a file: fields this version does not know are kept.

    What is written are the fields that are set. A value made here has all of them set but those that are left
    out when empty; one that was read (validated with the context ``AS_READ``) those that its file had. So a
    record that is read and written again neither loses nor gains a field.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    _left_out_when_empty: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="after")
    def _set_what_is_written(self, info: ValidationInfo) -> _Stored:
        if info.context is not AS_READ:
            empty = {name for name in self._left_out_when_empty if getattr(self, name) is None}
            self.model_fields_set.update(type(self).model_fields)
            self.model_fields_set.difference_update(empty)
        return self


class Producer(_Stored):
    """The materialization that an input was read from (ours)."""

    partition: str | None = None
    """Partition key of the materialization; None for an unpartitioned asset."""
    storage_id: int | None = None
    """Storage id of the materialization in the event log of its instance."""
    run_id: str | None = None
    """Dagster run that made it."""


class StepRecord(_Stored):
    """One table that a run read or wrote."""

    _left_out_when_empty = frozenset(
        ["lane_sums", "hash_scope", "hash_path", "producer", "columns", "made_by"]
    )

    name: str
    """The asset (parts joined with ``/``) or the name of the input or output."""
    direction: Direction
    format: str | None = None
    """How it is stored: ``parquet``, ``delta``, the IO manager's class name where nothing better is known."""
    location: str | None = None
    """Path or address, credentials masked."""
    row_count: int | None = None
    schema_hash: str | None = None
    data_hash: str | None = None
    hash_method: str | None = None
    """``rows-v1`` where a hash was made or tried."""
    hash_error: str | None = None
    """Why there is no data hash."""
    hash_seconds: float | None = None
    hash_reused_from: str | None = None
    """Run id of the receipt that the hash was taken from instead of being computed again."""
    hash_basis: HashBasis | None = None
    """``materialised``: the rows written or read; ``recomputed``: computed or read again for the hash."""
    source_version: dict[str, Any] | None = None
    """``{"kind": "delta", "version", …}``, ``{"kind": "files", …}`` or ``{"kind": "none", "reason"}``."""
    source_version_at_hash: dict[str, Any] | None = None
    source_changed: bool | None = None
    """True when the source moved between read and hash, so that the hash is not of what was read."""
    source_note: str | None = None
    lane_sums: tuple[str, str] | None = None
    """Ours: the two lane sums as decimal strings (JSON readers lose integers above 2**53)."""
    hash_scope: HashScope | None = None
    """Ours: which rows were hashed."""
    hash_path: str | None = None
    """Ours: the way that the hash took (``pyarrow``, ``spark-sql+java-method``); every way gives the same."""
    producer: list[Producer] | None = None
    """Ours, inputs: the materializations that were read, one for each partition."""
    made_by: str | None = None
    """Ours, inputs that are no asset: the op of the run whose output was read, as its path in the job."""
    columns: list[tuple[str, str]] | None = None
    """Ours: name and canonical type of each column, sorted by name."""


class Environment(_Stored):
    """What the run ran on, as far as it can change a result."""

    _left_out_when_empty = frozenset(["java"])

    python: str | None = None
    implementation: str | None = None
    platform: str | None = None
    machine: str | None = None
    packages: dict[str, str] = Field(default_factory=dict)
    java: str | None = None


class RunRecord(_Stored):
    """One run of one asset (and its partitions, and its attempt): what was read, written, and with what."""

    _left_out_when_empty = frozenset(["code", "dagster"])

    run_id: str
    """Equals the stem of the file: the Dagster run id, with partition and attempt where there are any."""
    task_path: str
    """``usecase/package/task``."""
    usecase: str
    package: str
    task_name: str
    profile: str = "default"
    """Deployment name. Baselines and histories are per profile."""
    model: str = "etl"
    """``etl`` or ``ml``."""
    version: str = ""
    """The asset's declared code version, or an empty string."""
    config_hash: str | None = None
    """``sha256:`` of the step's run config as canonical JSON, secrets masked."""
    started_at: str | None = None
    """ISO 8601, UTC."""
    ended_at: str | None = None
    duration_sec: float | None = None
    status: Status = "success"
    inputs: list[StepRecord] = Field(default_factory=list)
    outputs: list[StepRecord] = Field(default_factory=list)
    error: str | None = None
    """``Type: message``, secrets masked; None on success."""
    engine_version: str | None = None
    """Version of the program that wrote the record."""
    backend: str | None = None
    """``pandas``, ``pyarrow``, ``polars``, ``duckdb`` or ``spark``."""
    variables: dict[str, Any] = Field(default_factory=dict)
    record_version: int = RECORD_VERSION
    code_hash: str | None = None
    """``sha256:`` over every ``.py`` file in the task's folder."""
    environment: Environment | None = None
    environment_hash: str | None = None
    timings: list[dict[str, Any]] = Field(default_factory=list)
    """``{"step", "input" or "output", "seconds"}``, one per read, transform and write."""
    expectations: list[dict[str, Any]] = Field(default_factory=list)
    llm_calls: list[dict[str, Any]] = Field(default_factory=list)
    """The engine's; always empty here, kept so that its readers find what they expect."""
    llm_budget: dict[str, Any] = Field(default_factory=dict)
    time_zone: str | None = None
    code: dict[str, Any] | None = None
    """Ours: ``{"function", "functions": {qualified name: "sha256:…"}, "error"}``, see ``records.code``; with
    ``"git": {"commit", "dirty"}`` where there is a repository."""
    dagster: dict[str, Any] | None = None
    """Ours: run id, job, step and asset key, partition keys, attempt, code and data version, baseline."""
