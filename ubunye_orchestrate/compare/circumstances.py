"""The code and the environment of two records: which functions and which versions moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ubunye_orchestrate.compare.evidence import Evidence, State, evidence_of, reasons
from ubunye_orchestrate.records.model import Environment, RunRecord

__all__ = ["CodeComparison", "EnvironmentComparison", "compare_code", "compare_environment"]

# What of an environment is not a package, in the order in which it is named.
_RUNTIME = ("python", "platform", "implementation", "machine", "java")


@dataclass(frozen=True)
class CodeComparison:
    """The code on both sides, as finely as it was recorded."""

    folder: Evidence
    """Hash over every Python file of the task's folder."""
    functions: Evidence
    """The asset's own function and the project functions it reaches: {qualified name: hash}."""
    changed: tuple[str, ...] = ()
    """Qualified names whose normalised source differs."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """What is known of the code that made the output.

        Functions where they were recorded. A record without that field (the engine's) rests on its folder;
        where only one side has functions, or they could not be found, an equal folder is not enough, since a
        function may be reached outside of it.
        """
        if self.functions.state in ("changed", "unchanged"):
            return self.functions.state
        if self.functions.a is None and self.functions.b is None:
            return self.folder.state
        return "unknown"

    @property
    def why(self) -> str | None:
        """Why the code, or a part of it, is unknown; None where all of it is known."""
        both_lack = self.functions.a is None and self.functions.b is None
        return self.folder.why if both_lack else self.functions.why


@dataclass(frozen=True)
class EnvironmentComparison:
    """What the runs ran on."""

    hash: Evidence
    changes: Mapping[str, tuple[str | None, str | None]]
    """Package, ``python``, ``platform``, ``implementation``, ``machine`` or ``java``: (from, to)."""

    @property
    def state(self) -> State:
        """Known only where both sides recorded an environment."""
        return self.hash.state


def _functions(record: RunRecord) -> tuple[dict[str, str] | None, str | None]:
    """Return the recorded functions (None without that field) and why they are not known."""
    if record.code is None:
        return None, "no functions recorded"
    functions = record.code.get("functions")
    known = (
        {str(name): str(value) for name, value in functions.items()} if isinstance(functions, dict) else {}
    )
    if record.code.get("error"):
        return known, str(record.code["error"])
    return known, None if known else "no functions recorded"


def compare_code(a: RunRecord, b: RunRecord) -> CodeComparison:
    """Compare the code of two runs."""
    folder = evidence_of(a.code_hash, b.code_hash)
    of_a, why_a = _functions(a)
    of_b, why_b = _functions(b)
    why = reasons(why_a, why_b)
    known_a, known_b = of_a or {}, of_b or {}
    if why is None and known_a == known_b:
        return CodeComparison(folder, Evidence(of_a, of_b, "unchanged"))
    changed = tuple(
        sorted(name for name in known_a.keys() & known_b.keys() if known_a[name] != known_b[name])
    )
    if why is not None:
        # A function that differs has changed, whatever else could not be found; one that only one side knows
        # may be among those that the other side could not find.
        return CodeComparison(folder, Evidence(of_a, of_b, "changed" if changed else "unknown", why), changed)
    added = tuple(sorted(known_b.keys() - known_a.keys()))
    removed = tuple(sorted(known_a.keys() - known_b.keys()))
    return CodeComparison(folder, Evidence(of_a, of_b, "changed"), changed, added, removed)


def _versions(environment: Environment | None) -> dict[str, str]:
    """Flatten an environment to {what: version}, packages first, by name."""
    if environment is None:
        return {}
    flat = {name: str(environment.packages[name]) for name in sorted(environment.packages)}
    rest = environment.model_dump(exclude={"packages"}, exclude_none=True)
    # A package called "python" must not hide the interpreter's version.
    return flat | {name: str(value) for name, value in rest.items() if value != ""}


def compare_environment(a: RunRecord, b: RunRecord) -> EnvironmentComparison:
    """Compare what two runs ran on."""
    hashes = evidence_of(a.environment_hash, b.environment_hash)
    if hashes.state == "unchanged" and a.environment == b.environment:
        return EnvironmentComparison(hashes, {})
    of_a, of_b = _versions(a.environment), _versions(b.environment)
    names = [*sorted({*of_a, *of_b} - set(_RUNTIME)), *_RUNTIME]
    changes = {n: (of_a.get(n), of_b.get(n)) for n in names if of_a.get(n) != of_b.get(n)}
    if hashes.state == "unknown" and of_a and of_b:
        # The versions themselves are there: the hash is only a short form of them.
        return EnvironmentComparison(
            Evidence(hashes.a, hashes.b, "changed" if changes else "unchanged"), changes
        )
    return EnvironmentComparison(hashes, changes)
