"""What a receipt says of a table of Spark's, from what the storage said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ubunye_orchestrate.dagster_io.receipts.values import combined
from ubunye_orchestrate.dagster_io.receipts.writer import Scope, TableRead, TableStored
from ubunye_orchestrate.dagster_io.storage.forms import Form
from ubunye_orchestrate.dagster_io.storage.spark_places import Part, Place, Rows, Stored
from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.records.model import StepRecord
from ubunye_orchestrate.records.steps import step_from_fingerprint
from ubunye_orchestrate.records.values import not_hashed

__all__ = ["HashRows", "table_read", "table_stored"]

HashRows: TypeAlias = Callable[[Any], Fingerprint]
"""Hashes a frame, within the settings' budget."""


def table_stored(
    stored: Sequence[tuple[Part, Stored]],
    name: str,
    *,
    format: str,  # noqa: A002 - the field's name in the record
    partitioned: bool,
    append: bool,
    hash_table: bool,
    hash_rows: HashRows,
    location: str,
    columns: Sequence[str],
    is_file: bool,
) -> TableStored:
    """Hash what was stored, each partition alone, and return it for the receipt.

    ``hash_rows`` hashes a frame. ``name`` is the asset's in its record; ``location`` is where all of it is.
    """
    whole: dict[str | None, Fingerprint] = {}
    added: dict[str | None, Fingerprint] = {}
    versions: dict[str | None, dict[str, Any]] = {}
    locations: dict[str, str] = {}
    notes: dict[str, str] = {}
    for part, one in stored:
        of_this: dict[str | None, Fingerprint] = {}
        for alone in part.one_by_one():
            key = alone.keys[0] if alone.keys else None
            rows = alone.rows if len(part.keys) > 1 else None
            if append:
                of_this[key] = _fingerprint(one.frame, one, rows, hash_rows)
            if not append or hash_table:
                whole[key] = _fingerprint(one.whole if append else one.frame, one, rows, hash_rows)
            versions[key] = one.version
            if key is not None:
                locations[key] = part.place.shown
                notes[key] = one.note or ""
        added |= _as_counted(of_this, one)
    first_part, first = stored[0]
    stored_scope: Scope = "stored_partition" if partitioned else "stored_table"
    prints = whole or added
    beside: list[StepRecord] = []
    if whole and added:
        beside.append(
            step_from_fingerprint(
                f"{name} (appended)",
                "output",
                combined({key or "": one for key, one in added.items()}),
                format=format,
                location=location,
                scope="passed_rows",
                basis="recomputed" if first.recomputed else "materialised",
                source_note=_note_of_all(notes, first),
            )
        )
    only = len(prints) == 1
    return TableStored(
        parts={None: next(iter(prints.values()))} if only else prints,
        format=format,
        scope=stored_scope if whole else "passed_rows",
        location=first_part.place.shown if len(stored) == 1 else location,
        locations=locations,
        versions={None: next(iter(versions.values()))} if only else versions,
        backend="spark",
        columns=columns,
        is_file=is_file,
        recomputed=first.recomputed and not whole,
        note=_note_of_all(notes, first) if not beside else "the whole table after the append",
        notes={} if beside else notes,
        beside=beside,
    )


def _note_of_all(notes: Mapping[str, str], first: Stored) -> str | None:
    """Return the note of the whole: that of every partition, where they differ."""
    if len(set(notes.values())) <= 1:
        return first.note
    return "; ".join(f"{key}: {note}" for key, note in notes.items())


def table_read(
    hashed: Fingerprint,
    versions: Mapping[Place, dict[str, Any]],
    at_hash: Mapping[Place, dict[str, Any]],
    *,
    format: str,  # noqa: A002 - the field's name in the record
    partitioned: bool,
    form: Form,
) -> TableRead:
    """Return what was read for the receipt: ``versions`` as they were resolved, and after the hash."""
    place = next(iter(versions)) if len(versions) == 1 else None
    version: dict[str, Any] = {"kind": "none", "reason": f"{len(versions)} tables, each of its own version"}
    then = None
    note = None
    if place is not None:
        version, then = versions[place], at_hash[place]
        if version["kind"] == "delta":
            note = f"pinned to version {version['version']}, for the hash and for the asset"
        elif version["kind"] == "none":
            then = None
        elif version != then:
            note = "the files moved between the reading and the hash"
    elif versions == at_hash:
        then = version if all(one["kind"] != "none" for one in versions.values()) else None
    else:
        # One of several tables has moved: said by two versions that differ.
        then = {"kind": "none", "reason": "the files of a table moved between the reading and the hash"}
        note = then["reason"]
    return TableRead(
        fingerprint=hashed,
        format=format,
        scope="stored_partition" if partitioned else "stored_table",
        location=None if place is None else place.shown,
        recomputed=form.kind == "spark",
        backend=form.backend,
        source_version=version,
        source_version_at_hash=then,
        note=note,
    )


def _fingerprint(frame: Any, stored: Stored, rows: Rows | None, hash_rows: HashRows) -> Fingerprint:
    if frame is None:
        return not_hashed(stored.note or "not hashed")
    return hash_rows(frame if rows is None else rows.of(frame))


def _as_counted(added: Mapping[str | None, Fingerprint], stored: Stored) -> Mapping[str | None, Fingerprint]:
    """Return the hashes of what an append added, unless the storage counted other rows than were read."""
    counts = [one.row_count for one in added.values()]
    read = sum(count for count in counts if count is not None)
    if stored.counted is None or None in counts or read == stored.counted:
        return added
    reason = f"{stored.counted} rows were written, and {read} are in the new files"
    return {key: not_hashed(reason, stored.counted if len(added) == 1 else None) for key in added}
