"""What a gate lets pass: one TOML file, with a table for each asset that is judged otherwise, and options.

::

    fail_on = "warn"                 # note, warn or error: the mildest severity that fails
    max_row_decrease = 0.1           # and every other field of DriftPolicy

    [severities]
    unknown = "error"

    [assets."raw/flights"]           # an asset's key; on top of what stands above
    deterministic = false
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ubunye_orchestrate.compare.findings import SEVERITIES, Severity
from ubunye_orchestrate.compare.policy import DriftPolicy, policy_from
from ubunye_orchestrate.errors import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["GatePolicy"]

_MAX_BYTES = 1024 * 1024


@dataclasses.dataclass(frozen=True)
class GatePolicy:
    """How each asset is judged, and which severity fails."""

    fail_on: Severity = "warn"
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Fields of DriftPolicy for all assets."""
    by_asset: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    """The same for one asset, by its key or its task path; they come on top."""
    where: str = "the gate's options"

    def of(self, *names: str) -> DriftPolicy:
        """Return the policy of the asset that goes by ``names``. Raises ConfigurationError."""
        values = dict(self.values)
        where = self.where
        for name in names:
            if name in self.by_asset:
                where = f'{self.where}, assets."{name}"'
                values = _on_top(values, self.by_asset[name])
        return policy_from(values, where=where)

    def with_options(self, fail_on: str | None, values: Mapping[str, Any]) -> GatePolicy:
        """Return the policy with the options of the command line on top, for all assets."""
        whole = dataclasses.replace(
            self,
            fail_on=self.fail_on if fail_on is None else _severity(fail_on, "--fail-on"),
            values=_on_top(self.values, values),
        )
        # What cannot be meant is refused before anything is judged.
        whole.of()
        for name in whole.by_asset:
            whole.of(name)
        return whole

    @classmethod
    def read(cls, path: Path) -> GatePolicy:
        """Return what a TOML file says. Raises ConfigurationError, in one line, for what cannot be meant."""
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError as e:
            raise ConfigurationError(f"{path} cannot be read: {e.strerror or e}; expected a TOML file") from e
        if len(data) > _MAX_BYTES:
            raise ConfigurationError(f"{path} is above {_MAX_BYTES:,} bytes; expected a small TOML file")
        try:
            document = tomllib.loads(data.decode())
        # A deep nesting ends in a RecursionError.
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as e:
            reason = str(e).splitlines()[0] if str(e) else type(e).__name__
            raise ConfigurationError(f"{path} is no TOML: {reason}; expected a gate's policy") from e
        by_asset = document.pop("assets", {})
        if not isinstance(by_asset, dict) or not all(isinstance(one, dict) for one in by_asset.values()):
            raise ConfigurationError(f'{path}: assets is no table of tables; expected [assets."raw/flights"]')
        fail_on = _severity(document.pop("fail_on", "warn"), f"{path}: fail_on")
        return cls(fail_on, document, by_asset, str(path))


def _on_top(values: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**values, **more}
    severities = [one["severities"] for one in (values, more) if isinstance(one.get("severities"), dict)]
    if len(severities) == 2:
        merged["severities"] = {**severities[0], **severities[1]}
    return merged


def _severity(given: object, where: str) -> Severity:
    for severity in SEVERITIES[1:]:
        if severity == given:
            return severity
    raise ConfigurationError(f"{where} is {given!r}; expected one of {', '.join(SEVERITIES[1:])}")
