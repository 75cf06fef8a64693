"""Where records go and how runs are hashed: resolved once, in one place."""

from __future__ import annotations

import logging
import os
import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field

from ubunye_orchestrate.errors import ConfigurationError
from ubunye_orchestrate.masking import mask_location
from ubunye_orchestrate.records.budget import NO_BUDGET, HashBudget
from ubunye_orchestrate.records.monitors import Monitor
from ubunye_orchestrate.records.paths import safe_part

__all__ = ["DEFAULT_PROFILE", "DEFAULT_USECASE", "ReceiptSettings", "is_url", "resolve_settings"]

DEFAULT_USECASE = "default"
DEFAULT_PROFILE = "default"

# Two letters at least: ``C:\`` and ``c://`` are drives of Windows.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+::?//|[A-Za-z][A-Za-z0-9+.-]+::")

_logger = logging.getLogger(__name__)
_told: set[str] = set()


@dataclass(frozen=True)
class ReceiptSettings:
    """The settings of a process that writes or reads records."""

    root: str = field(repr=False)
    """Folder (absolute) or fsspec URL that holds ``.ubunye``; may carry credentials: show ``shown_root``."""
    usecase: str = DEFAULT_USECASE
    """First part of every record's path, safe as a file name."""
    profile: str = DEFAULT_PROFILE
    """Deployment name. Baselines and histories are per profile."""
    hash_inputs: bool = True
    """False leaves inputs without a hash; their records say so."""
    naive_timestamps: str = "ntz"
    """``ntz``, or the time zone in which timestamps without one are read as instants."""
    budget: HashBudget = NO_BUDGET
    """What the hash of one table may cost; above it the table has none, and its record says so."""
    reuse_hashes: bool = False
    """Take an input's hash from its producer's receipt where the storage still has that very version."""
    monitors: tuple[Monitor, ...] = ()
    """Told of each asset's start and end."""

    @property
    def shown_root(self) -> str:
        """The root with credentials masked."""
        return mask_location(self.root)


def resolve_settings(
    root: str | os.PathLike[str] | None = None,
    usecase: str | None = None,
    profile: str | None = None,
    hash_inputs: bool | None = None,
    naive_timestamps: str | None = None,
    env: Mapping[str, str] | None = None,
    *,
    max_hash_rows: int | None = None,
    max_hash_seconds: float | None = None,
    reuse_hashes: bool | None = None,
) -> ReceiptSettings:
    """Settle each setting: as given, else as the environment has it, else its default.

    Read are ``UBUNYE_ROOT``, ``UBUNYE_USECASE`` and ``UBUNYE_PROFILE`` (else Dagster+'s
    ``DAGSTER_CLOUD_DEPLOYMENT_NAME``); an empty text counts as not given.
    Without any root the working directory is taken, and logged once. A local root becomes absolute; a URL is
    kept. Raises ConfigurationError for a value that cannot work.
    """
    env = os.environ if env is None else env
    return ReceiptSettings(
        root=_root(root, env),
        usecase=safe_part(_text("usecase", usecase, env.get("UBUNYE_USECASE"), DEFAULT_USECASE)),
        # Dagster+ names the deployment in every run, so that a branch deployment is not production's past.
        profile=_text(
            "profile",
            profile,
            env.get("UBUNYE_PROFILE", "").strip() or env.get("DAGSTER_CLOUD_DEPLOYMENT_NAME"),
            DEFAULT_PROFILE,
        ),
        hash_inputs=_flag("hash_inputs", hash_inputs, default=True),
        naive_timestamps=_zone(naive_timestamps),
        budget=HashBudget(
            rows=None if max_hash_rows is None else int(_bound("max_hash_rows", max_hash_rows)),
            seconds=None if max_hash_seconds is None else _bound("max_hash_seconds", max_hash_seconds),
        ),
        reuse_hashes=_flag("reuse_hashes", reuse_hashes, default=False),
    )


def is_url(root: str) -> bool:
    """Tell whether ``root`` is an fsspec URL (``s3://…``, ``memory://``, ``simplecache::s3://…``)."""
    return _URL.match(root) is not None


def _root(given: str | os.PathLike[str] | None, env: Mapping[str, str]) -> str:
    # str() and not fspath: a UPath on a remote file system is path-like and has a URL as its text.
    text = "" if given is None else str(given)
    text = text.strip() or env.get("UBUNYE_ROOT", "").strip()
    if not text:
        try:
            text = os.getcwd()
        except OSError as e:
            raise ConfigurationError(
                f"the working directory cannot be read ({e.strerror}), and no root is set; set UBUNYE_ROOT"
            ) from e
        if text not in _told:
            _told.add(text)
            _logger.info("Records go to %s/.ubunye (working directory; set UBUNYE_ROOT to choose)", text)
    if "\0" in text:
        raise ConfigurationError(f"root {text!r} holds a NUL character; expected a folder or a URL")
    return text if is_url(text) else os.path.abspath(os.path.expanduser(text))


def _text(name: str, given: str | None, from_env: str | None, default: str) -> str:
    if given is not None and not isinstance(given, str):
        raise ConfigurationError(f"{name} is {given!r} ({type(given).__name__}); expected a text")
    return (given or "").strip() or (from_env or "").strip() or default


def _flag(name: str, given: bool | None, *, default: bool) -> bool:
    if given is None:
        return default
    if not isinstance(given, bool):
        raise ConfigurationError(f"{name} is {given!r} ({type(given).__name__}); expected True or False")
    return given


def _bound(name: str, given: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:
        raise ConfigurationError(f"{name} is {given!r}; expected a number from 0 on, or nothing for no bound")
    return given


def _zone(given: str | None) -> str:
    name = _text("naive_timestamps", given, None, "ntz")
    # UTC is known to every reader, also where no time zone database is installed.
    if name in ("ntz", "UTC"):
        return name
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as e:
        raise ConfigurationError(
            f"naive_timestamps is {name!r}; expected 'ntz' or a time zone such as 'UTC' or 'Europe/Berlin'"
        ) from e
    return name
