"""Whether what is stored now is what the last receipt says, for tables in files that can be read as they are.

The receipt is the newest success of a task (of each partition of it), and only one that speaks of the whole
stored table or partition can be held against it. Nothing else is called unchanged, and nothing is guessed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ubunye_orchestrate.cli.views import wrapped
from ubunye_orchestrate.compare.comparison import StepComparison, compare_records
from ubunye_orchestrate.compare.naming import keys_in_order, name_with_partitions
from ubunye_orchestrate.compare.text import printable, short_hash, short_run_id
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.masking import MASK
from ubunye_orchestrate.records.model import RunRecord, StepRecord
from ubunye_orchestrate.records.settings import is_url
from ubunye_orchestrate.records.steps import step_from_fingerprint

__all__ = ["Verified", "sound", "verified_document", "verified_lines", "verify_runs"]

State = Literal["unchanged", "changed", "missing", "unreadable", "unknown"]
Hash = Callable[..., Fingerprint]
"""``hashing.datasets.fingerprint_dataset``."""

_WHOLE = ("stored_table", "stored_partition")
_METHOD = "rows-v1"


@dataclass(frozen=True)
class Verified:
    """One stored table, or one stored partition."""

    task: str
    record: RunRecord
    name: str
    """The output's."""
    state: State
    why: str | None
    stored: StepRecord
    """As the receipt has it."""
    now: StepComparison | None = None
    """The receipt (a) beside what is stored now (b); None where nothing could be hashed."""


def sound(found: list[Verified], *, allow_unknown: bool) -> bool:
    """Whether everything is unchanged, or (where that is allowed) cannot be checked from here."""
    return all(one.state == "unchanged" or (allow_unknown and one.state == "unknown") for one in found)


def verify_runs(
    task: str, runs: Iterable[RunRecord], hash_dataset: Hash, formats: tuple[str, ...]
) -> Iterator[Verified]:
    """Hold what is stored of a task against its newest success, each partition against its own.

    ``runs`` are its records or receipts, newest first; ``formats`` those that ``hash_dataset`` reads.
    """
    seen: set[str] = set()
    for record in runs:
        keys = keys_in_order(record)
        if record.status != "success" or (keys and seen.issuperset(keys)):
            continue
        fresh = [key for key in keys if key not in seen]
        seen.update(keys)
        for output in record.outputs:
            if len(keys) > 1:
                why = f"{len(keys)} partitions were stored apart in one run; the record has one hash for all"
                yield Verified(task, record, name_with_partitions(output.name, fresh), "unknown", why, output)
            else:
                yield _verify(
                    task, record, output, name_with_partitions(output.name, keys), hash_dataset, formats
                )
        if not keys:
            return


def _verify(
    task: str,
    record: RunRecord,
    output: StepRecord,
    label: str,
    hash_dataset: Hash,
    formats: tuple[str, ...],
) -> Verified:
    why = _not_checked(output, formats)
    location = output.location or ""
    if why is not None:
        return Verified(task, record, label, "unknown", why, output)
    if not is_url(location) and not os.path.exists(location):
        why = f"nothing is there: {location}; it was moved or deleted, or this is another machine"
        return Verified(task, record, label, "missing", why, output)
    now = hash_dataset(location, format=output.format)
    if now.data_hash is None:
        return Verified(task, record, label, "unreadable", now.error or "no hash could be made", output)
    assert output.hash_scope is not None, "a receipt without a scope is not checked"
    step = step_from_fingerprint(
        output.name,
        "output",
        now,
        format=output.format,
        location=location,
        basis="recomputed",
        scope=output.hash_scope,
    )
    comparison = compare_records(
        record.model_copy(update={"outputs": [output], "inputs": []}),
        record.model_copy(update={"outputs": [step], "inputs": []}),
    )
    (compared,) = comparison.outputs
    state: State = "unknown"
    if compared.data.state == "unchanged":
        state = "unchanged"
    elif compared.data.state == "changed":
        state = "changed"
    return Verified(task, record, label, state, compared.data.why, output, compared)


def _not_checked(output: StepRecord, formats: tuple[str, ...]) -> str | None:
    """Say why a stored output cannot be held against its receipt from here; None where it can."""
    if output.data_hash is None:
        return f"the receipt has no hash ({output.hash_error or 'not recorded'})"
    if output.hash_method != _METHOD:
        return f"the receipt's hash was made by {output.hash_method or 'an unnamed method'}, not {_METHOD}"
    if output.hash_scope not in _WHOLE:
        rows = output.hash_scope or "rows whose scope is not recorded"
        return f"the receipt is of {rows}, not of all that is stored"
    if output.location is None:
        return "the receipt does not say where it is stored"
    if output.format not in formats:
        return (
            f"it is stored as {output.format or 'not recorded'}; from here only {', '.join(formats)} can be "
            "read; an integrity check in Dagster loads it through its IO manager"
        )
    if MASK in output.location:
        return f"its location has a secret, which the record masks: {output.location}"
    return None


def verified_lines(found: list[Verified]) -> Iterator[str]:
    """Yield the text for a terminal."""
    for one in found:
        yield f"{one.state:<10}  {printable(one.name)}  (run {short_run_id(one.record.run_id)})"
        lead = " " * 12
        if one.why is not None:
            yield from wrapped(lead, one.why)
        if one.now is not None and one.state == "changed":
            rows, data = one.now.row_count, one.now.data
            yield f"{lead}rows  : {rows.a} in the receipt, {rows.b} stored"
            yield f"{lead}data  : {short_hash(data.a)} in the receipt, {short_hash(data.b)} stored"
            if one.now.types_changed_values_not:
                yield f"{lead}its types changed, its values did not"


def verified_document(one: Verified) -> dict[str, Any]:
    """Return one result as a JSON document."""
    now = None if one.now is None else one.now.b
    return {
        "task": one.task,
        "name": one.name,
        "run_id": one.record.run_id,
        "state": one.state,
        "why": one.why,
        "location": one.stored.location,
        "receipt": {"row_count": one.stored.row_count, "data_hash": one.stored.data_hash},
        "stored": None if now is None else {"row_count": now.row_count, "data_hash": now.data_hash},
    }
