"""Two run records side by side: what is equal, what differs, and what cannot be told.

Pure: two :class:`RunRecord` in, one frozen :class:`Comparison` out. Nothing here says why something changed;
what may be said of that is in ``compare.drift``.

Four states, and no fifth that would let "not checked" pass for "equal":

``unchanged``, ``changed``
    Both sides are known and of one kind.
``unknown``
    A side is missing (two missing ones too), or the source moved between read and hash, so that the hash is
    not of what was read.
``not comparable``
    Both sides are known but are statements about different things: made by different methods, or over
    different scopes (the rows handed to an append against the whole stored table). A record without a scope
    is compared plainly: other writers of the format do not record one.

A hash of rows that were computed or read again (``hash_basis`` is ``recomputed``) is compared plainly too: it
is a hash of the same table. But a transform that is not deterministic may have given other rows the second
time, so such a hash is no complete evidence (``StepComparison.recomputed``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ubunye_orchestrate.records.model import Environment, RunRecord, StepRecord

__all__ = [
    "CodeComparison",
    "ColumnChanges",
    "Comparison",
    "EnvironmentComparison",
    "Evidence",
    "PartitionChanges",
    "State",
    "StepComparison",
    "compare_records",
]

State = Literal["unchanged", "changed", "unknown", "not comparable"]

# What of an environment is not a package, in the order in which it is named.
_RUNTIME = ("python", "platform", "implementation", "machine", "java")

NOT_RECORDED = "not recorded"
SOURCE_MOVED = "the source moved between read and hash"


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence as it stands on both sides (a: the earlier record, b: the later)."""

    a: Any
    b: Any
    state: State
    why: str | None = None
    """Why it is unknown or not comparable."""


@dataclass(frozen=True)
class ColumnChanges:
    """How the columns of one table moved; each tuple sorted by name."""

    added: tuple[tuple[str, str], ...] = ()
    """(name, canonical type) of each column that only b has."""
    removed: tuple[tuple[str, str], ...] = ()
    """(name, canonical type) of each column that only a has."""
    retyped: tuple[tuple[str, str, str], ...] = ()
    """(name, type in a, type in b)."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.retyped)


@dataclass(frozen=True)
class PartitionChanges:
    """Which partitions of an input were read, by its recorded producers."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    materialised_anew: tuple[str, ...] = ()
    """Read on both sides, from different materializations (which may hold the same rows)."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.materialised_anew)


@dataclass(frozen=True)
class StepComparison:
    """One input or output on both sides."""

    name: str
    label: str
    """The name; with its partitions or its position where one record has the name more than once."""
    direction: Literal["input", "output"]
    a: StepRecord | None
    """None when only the later record has it."""
    b: StepRecord | None
    row_count: Evidence
    schema: Evidence
    data: Evidence
    columns: ColumnChanges | None
    """None where either side's columns are not recorded."""
    same_values: bool
    """True when the lane sums and the numbers of rows are known, of one kind, and equal."""
    partitions: PartitionChanges

    @property
    def types_changed_values_not(self) -> bool:
        """Whether only the types moved: the rows' own sums are equal under another schema."""
        return self.same_values and self.schema.state == "changed"

    @property
    def recomputed(self) -> bool:
        """Whether a side's hash is of rows that were computed again, not of those written or read."""
        return any(side is not None and side.hash_basis == "recomputed" for side in (self.a, self.b))


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


@dataclass(frozen=True)
class Comparison:
    """Everything that two records say about each other. ``a`` is the earlier one, the baseline."""

    a: RunRecord
    b: RunRecord
    task: Evidence
    profile: Evidence
    partitions: Evidence
    """Sorted partition keys; empty for an unpartitioned asset."""
    status: Evidence
    duration: Evidence
    """Seconds."""
    version: Evidence
    """The declared code version; unknown where a side declares none."""
    config: Evidence
    variables: Evidence
    variable_changes: Mapping[str, tuple[Any, Any]]
    backend: Evidence
    time_zone: Evidence
    code: CodeComparison
    environment: EnvironmentComparison
    inputs: tuple[StepComparison, ...]
    """Matched by name (and partition), sorted by label."""
    outputs: tuple[StepComparison, ...]


def compare_records(a: RunRecord, b: RunRecord) -> Comparison:
    """Compare two records of one task, the earlier one first. Raises nothing for what a record holds."""
    variables_known = a.record_version > 1 and b.record_version > 1
    names = sorted({*a.variables, *b.variables})
    moved = {
        name: (a.variables.get(name), b.variables.get(name))
        for name in names
        if (name in a.variables, a.variables.get(name)) != (name in b.variables, b.variables.get(name))
    }
    variables_state: State = "unknown" if not variables_known else "changed" if moved else "unchanged"
    return Comparison(
        a=a,
        b=b,
        task=_evidence(a.task_path, b.task_path),
        profile=_evidence(a.profile, b.profile),
        partitions=_evidence(partition_keys(a), partition_keys(b)),
        status=_evidence(a.status, b.status),
        duration=_evidence(a.duration_sec, b.duration_sec),
        version=_evidence(a.version or None, b.version or None),
        config=_evidence(a.config_hash, b.config_hash),
        variables=Evidence(
            a.variables, b.variables, variables_state, None if variables_known else NOT_RECORDED
        ),
        variable_changes=moved if variables_known else {},
        backend=_evidence(a.backend or None, b.backend or None),
        time_zone=_evidence(a.time_zone, b.time_zone),
        code=_compare_code(a, b),
        environment=_compare_environment(a, b),
        inputs=_compare_steps(a.inputs, b.inputs, "input", a.record_version, b.record_version),
        outputs=_compare_steps(a.outputs, b.outputs, "output", a.record_version, b.record_version),
    )


def partition_keys(record: RunRecord) -> tuple[str, ...]:
    """Return the record's partition keys, sorted; empty for an unpartitioned asset or another writer's."""
    keys = (record.dagster or {}).get("partition_keys")
    return tuple(sorted(str(key) for key in keys)) if isinstance(keys, list | tuple) else ()


def _evidence(a: Any, b: Any) -> Evidence:
    if a is None or b is None:
        return Evidence(a, b, "unknown", NOT_RECORDED)
    return Evidence(a, b, "unchanged" if a == b else "changed")


# ---------------------------------------------------------------- code and environment


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


def _compare_code(a: RunRecord, b: RunRecord) -> CodeComparison:
    folder = _evidence(a.code_hash, b.code_hash)
    of_a, why_a = _functions(a)
    of_b, why_b = _functions(b)
    why = _reasons(why_a, why_b)
    known_a, known_b = of_a or {}, of_b or {}
    changed = tuple(
        sorted(name for name in known_a.keys() & known_b.keys() if known_a[name] != known_b[name])
    )
    if why is not None:
        # A function that differs has changed, whatever else could not be found; one that only one side knows
        # may be among those that the other side could not find.
        return CodeComparison(folder, Evidence(of_a, of_b, "changed" if changed else "unknown", why), changed)
    added = tuple(sorted(known_b.keys() - known_a.keys()))
    removed = tuple(sorted(known_a.keys() - known_b.keys()))
    state: State = "changed" if changed or added or removed else "unchanged"
    return CodeComparison(folder, Evidence(of_a, of_b, state), changed, added, removed)


def _versions(environment: Environment | None) -> dict[str, str]:
    """Flatten an environment to {what: version}, packages first, by name."""
    if environment is None:
        return {}
    flat = {name: str(environment.packages[name]) for name in sorted(environment.packages)}
    rest = environment.model_dump(exclude={"packages"}, exclude_none=True)
    # A package called "python" must not hide the interpreter's version.
    return flat | {name: str(value) for name, value in rest.items() if value != ""}


def _compare_environment(a: RunRecord, b: RunRecord) -> EnvironmentComparison:
    of_a, of_b = _versions(a.environment), _versions(b.environment)
    names = [*sorted({*of_a, *of_b} - set(_RUNTIME)), *_RUNTIME]
    changes = {n: (of_a.get(n), of_b.get(n)) for n in names if of_a.get(n) != of_b.get(n)}
    hashes = _evidence(a.environment_hash, b.environment_hash)
    if hashes.state == "unknown" and of_a and of_b:
        # The versions themselves are there: the hash is only a short form of them.
        return EnvironmentComparison(
            Evidence(hashes.a, hashes.b, "changed" if changes else "unchanged"), changes
        )
    return EnvironmentComparison(hashes, changes)


# ---------------------------------------------------------------- inputs and outputs


def _compare_steps(
    of_a: Sequence[StepRecord],
    of_b: Sequence[StepRecord],
    direction: Literal["input", "output"],
    version_a: int,
    version_b: int,
) -> tuple[StepComparison, ...]:
    pairs: list[StepComparison] = []
    for name in sorted({step.name for step in (*of_a, *of_b)}):
        matched = _match([s for s in of_a if s.name == name], [s for s in of_b if s.name == name])
        for position, (a, b) in enumerate(matched, start=1):
            label = name if len(matched) == 1 else f"{name} [{_partitions_label(a, b) or f'#{position}'}]"
            pairs.append(_compare_step(name, label, direction, a, b, version_a, version_b))
    return tuple(pairs)


def _match(
    of_a: Sequence[StepRecord], of_b: Sequence[StepRecord]
) -> list[tuple[StepRecord | None, StepRecord | None]]:
    """Pair the steps of one name: those that read the same partitions first, the rest in recorded order."""
    left_a = list(of_a)
    left_b: list[StepRecord | None] = list(of_b)
    paired: dict[int, StepRecord] = {}
    for key in (_read_partitions, lambda step: None):
        key_of: Callable[[StepRecord], Any] = key
        for index, a in enumerate(left_a):
            if index in paired:
                continue
            for other, b in enumerate(left_b):
                if b is not None and key_of(a) == key_of(b):
                    paired[index] = b
                    left_b[other] = None
                    break
    matched: list[tuple[StepRecord | None, StepRecord | None]] = [
        (a, paired.get(index)) for index, a in enumerate(left_a)
    ]
    return matched + [(None, b) for b in left_b if b is not None]


def _read_partitions(step: StepRecord) -> tuple[str, ...]:
    return tuple(sorted(p.partition for p in step.producer or () if p.partition is not None))


def _partitions_label(a: StepRecord | None, b: StepRecord | None) -> str:
    sides = [_read_partitions(side) for side in (a, b) if side is not None]
    texts = [
        keys[0] if len(keys) == 1 else f"{keys[0]}..{keys[-1]}" if keys else ""
        for keys in dict.fromkeys(sides)
    ]
    return " -> ".join(texts) if all(texts) else ""


def _compare_step(
    name: str,
    label: str,
    direction: Literal["input", "output"],
    a: StepRecord | None,
    b: StepRecord | None,
    version_a: int,
    version_b: int,
) -> StepComparison:
    different = _different_kinds(a, b, version_a, version_b)
    schema = _evidence(a.schema_hash if a else None, b.schema_hash if b else None)
    if schema.state != "unknown" and different:
        schema = Evidence(schema.a, schema.b, "not comparable", different)
    data = _compare_data(a, b, different)
    rows = _evidence(a.row_count if a else None, b.row_count if b else None)
    return StepComparison(
        name=name,
        label=label,
        direction=direction,
        a=a,
        b=b,
        row_count=rows,
        schema=schema,
        data=data,
        columns=_compare_columns(a, b) if not different else None,
        same_values=(
            a is not None
            and b is not None
            and data.state in ("changed", "unchanged")
            and a.lane_sums is not None
            and a.lane_sums == b.lane_sums
            and rows.state == "unchanged"
        ),
        partitions=_compare_partitions(a, b),
    )


def _compare_data(a: StepRecord | None, b: StepRecord | None, different: str | None) -> Evidence:
    hash_a, hash_b = a.data_hash if a else None, b.data_hash if b else None
    if hash_a is None or hash_b is None:
        why = _reasons(
            a.hash_error if a and hash_a is None else None, b.hash_error if b and hash_b is None else None
        )
        return Evidence(hash_a, hash_b, "unknown", why or NOT_RECORDED)
    if (a and a.source_changed) or (b and b.source_changed):
        return Evidence(hash_a, hash_b, "unknown", SOURCE_MOVED)
    if different:
        return Evidence(hash_a, hash_b, "not comparable", different)
    return Evidence(hash_a, hash_b, "unchanged" if hash_a == hash_b else "changed")


def _different_kinds(
    a: StepRecord | None, b: StepRecord | None, version_a: int, version_b: int
) -> str | None:
    """Say why the hashes of two steps are statements about different things; None where they are not."""
    if a is None or b is None:
        return None
    method_a, method_b = _method(a, version_a), _method(b, version_b)
    if method_a is not None and method_b is not None and method_a != method_b:
        return f"made by {method_a} and {method_b}"
    if a.hash_scope and b.hash_scope and a.hash_scope != b.hash_scope:
        scopes = f"{a.hash_scope} and {b.hash_scope}"
        return f"taken over different rows: {scopes}"
    return None


def _method(step: StepRecord, record_version: int) -> str | None:
    """Name the method of a step's hashes; None where it has none."""
    if step.hash_method:
        return step.hash_method
    if step.data_hash is None and (step.schema_hash is None or record_version > 1):
        return None
    # Version 1 was written by engines before 0.7, which hashed a sample and did not name the method.
    return "the pre-0.7 sample" if record_version == 1 else "an unnamed method"


def _compare_columns(a: StepRecord | None, b: StepRecord | None) -> ColumnChanges | None:
    if a is None or b is None or a.columns is None or b.columns is None:
        return None
    of_a, of_b = dict(a.columns), dict(b.columns)
    return ColumnChanges(
        added=tuple((name, of_b[name]) for name in sorted(of_b.keys() - of_a.keys())),
        removed=tuple((name, of_a[name]) for name in sorted(of_a.keys() - of_b.keys())),
        retyped=tuple(
            (name, of_a[name], of_b[name])
            for name in sorted(of_a.keys() & of_b.keys())
            if of_a[name] != of_b[name]
        ),
    )


def _compare_partitions(a: StepRecord | None, b: StepRecord | None) -> PartitionChanges:
    of_a = _materializations(a)
    of_b = _materializations(b)
    return PartitionChanges(
        added=tuple(sorted(of_b.keys() - of_a.keys())),
        removed=tuple(sorted(of_a.keys() - of_b.keys())),
        materialised_anew=tuple(
            sorted(
                key
                for key in of_a.keys() & of_b.keys()
                if of_a[key] != of_b[key] and None not in (of_a[key], of_b[key])
            )
        ),
    )


def _materializations(step: StepRecord | None) -> dict[str, int | None]:
    producers = (step.producer or ()) if step else ()
    return {p.partition: p.storage_id for p in producers if p.partition is not None}


def _reasons(of_a: str | None, of_b: str | None) -> str | None:
    """Join the two sides' reasons, saying whose they are only where they differ."""
    if of_a and of_b and of_a != of_b:
        return f"{of_a} (earlier); {of_b} (later)"
    return of_b or of_a
