"""Tables that something else writes: observed, with the hash of their rows as their data version."""

# Without "from __future__ import annotations": Dagster looks at the class that annotates ``context``.
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import cast

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetRecordsFilter,
    AssetsDefinition,
    AssetSpec,
    DagsterInstance,
    DataVersion,
    MetadataValue,
    ObserveResult,
    multi_observable_source_asset,
)
from upath import UPath

from ubunye_orchestrate.dagster_io.receipts import metadata as keys
from ubunye_orchestrate.dagster_io.storage.delta import open_table
from ubunye_orchestrate.errors import ConfigurationError, HashError
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.datasets import FORMATS, fingerprint_dataset
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.masking import mask_location

__all__ = ["build_observed_table"]

_FORMATS = (*FORMATS, "delta")
_LISTING = "ubunye/listing"
_REHASHED = "ubunye/rehashed"
_VERSION = "ubunye/source_version"


def build_observed_table(
    key: AssetKey | str | Sequence[str],
    location: str,
    *,
    format: str = "parquet",  # noqa: A002 - as ``fingerprint_dataset`` calls it
    group_name: str | None = None,
    description: str | None = None,
    trust_listing: bool = True,
) -> AssetsDefinition:
    """Return an observable source asset for a table that something else writes.

    Observing it hashes all its rows; the hash is its data version, so what reads it is stale only when rows
    changed. ``location`` is a file or a folder in one of ``fingerprint_dataset``'s formats, or a Delta table
    (``format="delta"``, read by delta-rs). While the listing of its files (names, sizes, times), or the
    version of the Delta table, is that of the last observation, the hash of then is taken and nothing is
    read; ``trust_listing=False`` reads it each time, for a store whose writers keep a file's size and time.
    Raises ConfigurationError for an unknown format; observing raises HashError for what cannot be hashed,
    StorageError for a Delta table that delta-rs does not read.
    """
    if format not in _FORMATS:
        raise ConfigurationError(f"format={format!r}: expected one of {', '.join(map(repr, _FORMATS))}")
    asset_key = AssetKey.from_coercible(key)

    spec = AssetSpec(
        asset_key,
        group_name=group_name,
        description=description or f"Rows of {mask_location(location)}, written outside of this project.",
    )

    def observe(context: AssetExecutionContext) -> ObserveResult:
        table = _DeltaTable(location) if format == "delta" else _Files(location, format)
        state = table.state()
        known = _last(context.instance, asset_key) if trust_listing else None
        if known is not None and known[0] == state:
            return _result(known[1], state, {**table.shown(), _REHASHED: MetadataValue.bool(False)})
        hashed = table.hashed()
        if hashed.data_hash is None:
            raise HashError(
                f"{mask_location(location)} has no hash: {hashed.error}; expected a {format} dataset that "
                "can be read whole"
            )
        shown: dict[str, MetadataValue] = {
            **table.shown(),
            _REHASHED: MetadataValue.bool(True),
            keys.HASH_SECONDS: MetadataValue.float(round(hashed.seconds, 6)),
        }
        if hashed.row_count is not None:
            shown["dagster/row_count"] = MetadataValue.int(hashed.row_count)
        # Written to while it was read: the hash is of some of both, and must not be taken again.
        still = state if table.state() == state else None
        return _result(hashed.data_hash, still, shown)

    name = re.sub(r"\W", "_", f"observe_{asset_key.to_python_identifier()}")
    # Dagster says of this decorator that it is in beta, and gives it no types.
    made = multi_observable_source_asset(specs=[spec], name=name)(observe)
    return cast("AssetsDefinition", made)


class _Files:
    """A dataset in files, as it is now."""

    def __init__(self, location: str, format_name: str) -> None:
        self._location = location
        self._format = format_name

    def state(self) -> str | None:
        return _listing(self._location)

    def hashed(self) -> Fingerprint:
        return fingerprint_dataset(self._location, format=self._format)

    def shown(self) -> dict[str, MetadataValue]:
        return {}


class _DeltaTable:
    """A Delta table in the version that it has now, which stays the same however long it is read."""

    def __init__(self, location: str) -> None:
        self._snapshot = open_table(location, {})

    def state(self) -> str:
        # A table that was made anew at the same place begins at version 0 again.
        return f"delta:{self._snapshot.table.metadata().id}:{self._snapshot.number}"

    def hashed(self) -> Fingerprint:
        return fingerprint(self._snapshot.reader())

    def shown(self) -> dict[str, MetadataValue]:
        return {_VERSION: MetadataValue.json(self._snapshot.version())}


def _result(data_hash: str, listing: str | None, shown: dict[str, MetadataValue]) -> ObserveResult:
    shown[keys.DATA_HASH] = MetadataValue.text(data_hash)
    if listing is not None:
        shown[_LISTING] = MetadataValue.text(listing)
    return ObserveResult(data_version=DataVersion(data_hash), metadata=shown)


def _last(instance: DagsterInstance, key: AssetKey) -> tuple[str, str] | None:
    """Return the listing and the hash of the newest observation; None without them."""
    for event in instance.fetch_observations(AssetRecordsFilter(asset_key=key), limit=1).records:
        observation = event.asset_observation
        if observation is None:
            return None
        listing = observation.metadata.get(_LISTING)
        data_hash = observation.metadata.get(keys.DATA_HASH)
        if listing is not None and data_hash is not None:
            return str(listing.value), str(data_hash.value)
    return None


def _listing(location: str) -> str | None:
    """Return a digest of the names, sizes and times of a dataset's files; None where there are no times."""
    entries = sorted(_entries(UPath(location)))
    if any(changed is None for _, _, changed in entries):
        return None
    return "sha256:" + hashlib.sha256(json.dumps(entries).encode()).hexdigest()


def _entries(root: UPath) -> Iterator[tuple[str, int, str | None]]:
    files = [root] if root.is_file() else (one for one in root.rglob("*") if one.is_file())
    for file in files:
        info = root.fs.info(file.path)
        # What stores call it: local files, S3, Google, Azure.
        names = ("mtime", "LastModified", "last_modified", "updated", "etag", "ETag")
        changed = [str(info[name]) for name in names if info.get(name) is not None]
        yield file.path, int(info.get("size") or 0), " ".join(changed) or None
