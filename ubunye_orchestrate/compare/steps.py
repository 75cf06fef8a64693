"""The inputs and outputs of two records, matched by name and partition.

A hash of rows that were computed or read again (``hash_basis`` is ``recomputed``) is compared plainly: it is
a hash of the same table. But a transform that is not deterministic may have given other rows the second time,
so such a hash is no complete evidence (``StepComparison.recomputed``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ubunye_orchestrate.compare.evidence import NOT_RECORDED, SOURCE_MOVED, Evidence, evidence_of, reasons
from ubunye_orchestrate.records.model import StepRecord

__all__ = ["ColumnChanges", "PartitionChanges", "StepComparison", "compare_steps"]


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


def compare_steps(
    of_a: Sequence[StepRecord],
    of_b: Sequence[StepRecord],
    direction: Literal["input", "output"],
    version_a: int,
    version_b: int,
) -> tuple[StepComparison, ...]:
    """Compare the inputs, or the outputs, of two records, each with its version; sorted by label."""
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
    if len(of_a) <= 1 and len(of_b) <= 1:
        return [(of_a[0] if of_a else None, of_b[0] if of_b else None)]
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
    schema = evidence_of(a.schema_hash if a else None, b.schema_hash if b else None)
    if schema.state != "unknown" and different:
        schema = Evidence(schema.a, schema.b, "not comparable", different)
    data = _compare_data(a, b, different)
    rows = evidence_of(a.row_count if a else None, b.row_count if b else None)
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
        why = reasons(
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
    if a.columns == b.columns:
        return ColumnChanges()
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
    if not of_a and not of_b:
        return PartitionChanges()
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
