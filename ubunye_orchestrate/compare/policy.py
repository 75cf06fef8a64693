"""How strictly an asset is judged. The defaults are those of the documentation's table of findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from ubunye_orchestrate.compare.findings import KINDS, SEVERITIES, Kind, Severity, worst
from ubunye_orchestrate.errors import ConfigurationError

__all__ = ["BaselineWanted", "DriftPolicy", "policy_from"]

BaselineWanted = Literal["previous", "accepted"]

_DEFAULTS: Mapping[Kind, Severity] = {
    "configuration_changed": "note",
    "code_changed": "warn",
    "custody_broken": "error",
    "custody_held": "none",
    "custody_not_judged": "note",
    "environment_changed": "warn",
    "first_record": "none",
    "input_changed": "none",
    "not_attributable": "note",
    "not_comparable": "note",
    "overdue": "warn",
    "rows_out_of_bounds": "warn",
    "schema_changed": "warn",
    "source_changed": "none",
    "types_changed_values_not": "warn",
    "unexplained": "error",
    "unknown": "note",
}

# Evidence: a note at most while the output stands still.
_EVIDENCE = frozenset({"code_changed", "configuration_changed", "environment_changed"})


@dataclass(frozen=True)
class DriftPolicy:
    """What is judged of an asset, and how severely.

    Raises :class:`ConfigurationError` for an unknown finding or severity and for bounds that cannot hold.
    """

    severities: Mapping[Kind, Severity] = field(default_factory=dict)
    """Severity by kind of finding, where it differs from the default. Code, environment and configuration
    remain notes while the output did not change. ``data_changed`` takes, unless it is given here, the worst
    severity of what changed with it."""
    min_rows: int | None = None
    """An output with fewer rows is out of bounds."""
    max_rows: int | None = None
    """An output with more rows is out of bounds."""
    max_row_decrease: float | None = None
    """Largest fall in rows against the baseline, as a fraction of its rows: 0.1 allows a tenth less."""
    max_row_increase: float | None = None
    """Largest rise in rows against the baseline, as a fraction of its rows: 0.5 allows half as many again."""
    ignore_packages: frozenset[str] = frozenset({"dagster", "ubunye-orchestrate"})
    """Packages (or ``python``, ``platform``, ``java``) whose version does not count as evidence."""
    ignore_patch_versions: bool = False
    """Whether versions that agree in their first two parts count as equal (2.2.3 and 2.2.1)."""
    deterministic: bool = True
    """False for an asset whose output may differ between equal runs: it is never called unexplained."""
    expected_hours: float | None = None
    """How many hours may pass between two materializations. Judged by whoever looks without there being a new
    one: the check on its schedule."""
    baseline: BaselineWanted = "previous"
    """What a run is held against while none is pinned: the previous success, or the last run that somebody
    accepted (the previous success until there is one)."""

    def __post_init__(self) -> None:
        for kind, severity in self.severities.items():
            if kind not in KINDS:
                raise ConfigurationError(
                    f"DriftPolicy(severities=...) names the finding {kind!r}; known are {', '.join(KINDS)}."
                )
            if severity not in SEVERITIES:
                raise ConfigurationError(
                    f"DriftPolicy(severities={{{kind!r}: {severity!r}}}): a severity is one of "
                    f"{', '.join(SEVERITIES)}."
                )
        if self.baseline not in get_args(BaselineWanted):
            raise ConfigurationError(
                f"DriftPolicy(baseline={self.baseline!r}): expected one of "
                f"{', '.join(get_args(BaselineWanted))}; a pinned run comes before both."
            )
        for name in ("min_rows", "max_rows", "max_row_decrease", "max_row_increase", "expected_hours"):
            bound = getattr(self, name)
            # "not >=" rather than "<": it refuses NaN as well.
            if bound is not None and not bound >= 0:
                raise ConfigurationError(f"DriftPolicy({name}={bound!r}): a bound is 0 or more.")
        if self.min_rows is not None and self.max_rows is not None and self.min_rows > self.max_rows:
            raise ConfigurationError(
                f"DriftPolicy(min_rows={self.min_rows}, max_rows={self.max_rows}): no number of rows fits; "
                "swap them or leave one out."
            )

    def severity(self, kind: Kind, *, output_changed: bool = True) -> Severity:
        """Return the severity of a kind of finding, given whether an output changed in the same run."""
        severity = self.severities.get(kind, _DEFAULTS.get(kind, "none"))
        if kind in _EVIDENCE and not output_changed and worst((severity, "note")) != "note":
            return "note"
        return severity

    def ignores(self, name: str, before: str | None, after: str | None) -> bool:
        """Whether a version that moved from ``before`` to ``after`` does not count."""
        if name in self.ignore_packages:
            return True
        if not self.ignore_patch_versions or before is None or after is None:
            return False
        parts_before, parts_after = before.split("."), after.split(".")
        return min(len(parts_before), len(parts_after)) >= 2 and parts_before[:2] == parts_after[:2]


# How each field is written in a file: the kind that it must be, in words, and its types.
_WRITTEN: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "severities": ("a table of finding = severity", (dict,)),
    "min_rows": ("a whole number", (int,)),
    "max_rows": ("a whole number", (int,)),
    "max_row_decrease": ("a number", (int, float)),
    "max_row_increase": ("a number", (int, float)),
    "ignore_packages": ("a list of names", (list, tuple, set, frozenset)),
    "ignore_patch_versions": ("true or false", (bool,)),
    "deterministic": ("true or false", (bool,)),
    "expected_hours": ("a number", (int, float)),
    "baseline": ("previous or accepted", (str,)),
}


def policy_from(values: Mapping[str, Any], *, where: str) -> DriftPolicy:
    """Return the policy that a mapping (a table of a TOML file, an asset's metadata) says.

    ``where`` is how messages name the mapping. Raises ConfigurationError for a name that is no field of
    DriftPolicy and for a value of another kind than the field's.
    """
    assert set(_WRITTEN) == {one.name for one in fields(DriftPolicy)}, "a field of the policy is not written"
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _WRITTEN:
            raise ConfigurationError(f"{where} has {name!r}; expected one of {', '.join(_WRITTEN)}")
        words, types = _WRITTEN[name]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise ConfigurationError(f"{where}: {name} is {value!r}; expected {words}")
        given[name] = value
    if "ignore_packages" in given:
        given["ignore_packages"] = frozenset(str(package) for package in given["ignore_packages"])
    try:
        return DriftPolicy(**given)
    except ConfigurationError as e:
        raise ConfigurationError(f"{where}: {e}") from e
