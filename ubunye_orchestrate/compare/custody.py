"""Whether what an asset read is what its producer stored. Like is compared with like, or nothing is said."""

from __future__ import annotations

from collections.abc import Sequence

from ubunye_orchestrate.compare.comparison import partition_keys
from ubunye_orchestrate.compare.evidence import SOURCE_MOVED
from ubunye_orchestrate.compare.findings import Change, Finding
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.compare.text import short_hash
from ubunye_orchestrate.records.model import RunRecord, StepRecord

__all__ = ["judge_custody", "judge_custody_by_records"]

_MODULUS = 1 << 64
_WHOLE = ("stored_table", "stored_partition")
_DEFAULT_POLICY = DriftPolicy()


def judge_custody(
    read: StepRecord, stored: Sequence[StepRecord], policy: DriftPolicy = _DEFAULT_POLICY
) -> Finding:
    """Hold an input against the outputs that it was read from, as their own records have them.

    ``stored`` are the output steps of the materializations named in ``read.producer``, one for each
    partition. One is compared by its data hash; several by the sum of their lane sums modulo 2**64 and of
    their rows, which are those of the whole since partitions share no row. The finding is ``custody_held``,
    ``custody_broken`` or ``custody_not_judged``, whose text names what is missing or not alike. An output of
    several partitions must have been read whole; ``judge_custody_by_records`` sees to that.
    """
    why = None
    if read.producer is not None and len(read.producer) != len(stored):
        why = f"{len(read.producer)} materializations were read, the records of {len(stored)} are known"
    return _judge(read, stored, why, policy)


def judge_custody_by_records(
    read: StepRecord, producers: Sequence[RunRecord], policy: DriftPolicy = _DEFAULT_POLICY
) -> Finding:
    """Do the same from the producers' records, whose partitions must be exactly those that were read.

    Materializations that one record is of share it. Receipts of partitions that one run stored apart have its
    run id in common, and each has a partition of its own.
    """
    records = {(one.task_path, one.run_id, partition_keys(one)): one for one in producers}.values()
    stored = [step for record in records for step in record.outputs if step.name == read.name]
    were_read = {p.partition for p in read.producer or () if p.partition is not None}
    were_stored = {key for record in records for key in partition_keys(record)}
    why = None
    if len(stored) != len(records):
        why = f"a producer's record has no single output {read.name}"
    elif were_read != were_stored:
        odd = ", ".join(sorted(were_read ^ were_stored))
        why = f"the partitions that were read are not those of the producers' records ({odd})"
    return _judge(read, stored, why, policy)


def _judge(
    read: StepRecord, stored: Sequence[StepRecord], not_judged: str | None, policy: DriftPolicy
) -> Finding:
    why = not_judged or _not_alike(read, stored)
    if why is not None:
        return Finding(
            "custody_not_judged",
            policy.severity("custody_not_judged"),
            read.name,
            f"custody of input {read.name} not judged: {why}",
            details={"why": why},
        )
    if len(stored) == 1:
        held = read.data_hash == stored[0].data_hash
        change = Change(f"input {read.name}", short_hash(stored[0].data_hash), short_hash(read.data_hash))
    else:
        sums, rows = _total(stored)
        held = read.lane_sums == sums and read.row_count == rows
        change = Change(f"rows of input {read.name}", f"{rows} stored", f"{read.row_count} read")
    if held:
        return Finding(
            "custody_held",
            policy.severity("custody_held"),
            read.name,
            f"input {read.name} was read as it was stored",
        )
    return Finding(
        "custody_broken",
        policy.severity("custody_broken"),
        read.name,
        f"input {read.name} was read otherwise than its producer stored it{_only_types(read, stored)}",
        (change,),
        {"read": read.data_hash, "stored": [step.data_hash for step in stored]},
    )


def _not_alike(read: StepRecord, stored: Sequence[StepRecord]) -> str | None:
    """Say why an input cannot be held against what was stored; None where it can."""
    if not stored:
        return "no record of its producer"
    if read.data_hash is None:
        return f"the input has no hash ({read.hash_error or 'not recorded'})"
    if read.source_changed:
        return SOURCE_MOVED
    for step in stored:
        if step.data_hash is None:
            return f"the producer's output has no hash ({step.hash_error or 'not recorded'})"
        if step.hash_method != read.hash_method:
            return f"methods {step.hash_method} and {read.hash_method}"
    if len(stored) == 1:
        odd = next((s for s in (read.hash_scope, stored[0].hash_scope) if s not in _WHOLE), "whole")
        if odd != "whole":
            return f"scope {odd or 'not recorded'}"
        if read.hash_scope != stored[0].hash_scope:
            return f"scopes {stored[0].hash_scope} and {read.hash_scope}"
        return None
    if read.hash_scope not in _WHOLE:
        return f"scope {read.hash_scope or 'not recorded'}"
    for step in stored:
        if step.hash_scope != "stored_partition":
            return f"scope {step.hash_scope or 'not recorded'} of one of several materializations"
    if read.lane_sums is None or any(s.lane_sums is None or s.row_count is None for s in stored):
        return "lane sums not recorded"
    return None


def _total(stored: Sequence[StepRecord]) -> tuple[tuple[str, str], int]:
    sums = [
        sum(int(step.lane_sums[lane]) for step in stored if step.lane_sums is not None) % _MODULUS
        for lane in (0, 1)
    ]
    return (str(sums[0]), str(sums[1])), sum(step.row_count or 0 for step in stored)


def _only_types(read: StepRecord, stored: Sequence[StepRecord]) -> str:
    same = len(stored) == 1 and read.lane_sums is not None and read.lane_sums == stored[0].lane_sums
    return ": its types differ, its values do not" if same and read.row_count == stored[0].row_count else ""
