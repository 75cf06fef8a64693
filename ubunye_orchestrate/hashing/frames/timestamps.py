"""Timestamps without a zone, read as instants where the user asks for it (``naive_timestamps``)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ubunye_orchestrate.errors import ConfigurationError, HashError
from ubunye_orchestrate.hashing.frames.stream import ArrowStream

__all__ = ["NTZ", "checked_zone", "in_zone"]

NTZ = "ntz"
"""The setting that leaves a timestamp without a zone as it is: ``timestamp_ntz``."""

_LARGEST_OFFSET = 26 * 3600
_IN_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def checked_zone(naive_timestamps: str) -> str:
    """Return the setting if it is ``ntz`` or a zone that Arrow knows; else raise ConfigurationError."""
    if naive_timestamps == NTZ:
        return NTZ
    try:
        pc.assume_timezone(pa.array([0], pa.timestamp("us")), naive_timestamps)
    except (pa.ArrowException, TypeError) as e:
        raise ConfigurationError(
            f"naive_timestamps={naive_timestamps!r} is not a time zone: expected 'ntz' (keep timestamps "
            "without a zone as they are), 'UTC' or another zone such as 'Europe/Berlin'"
        ) from e
    return naive_timestamps


def in_zone(stream: ArrowStream, zone: str) -> ArrowStream:
    """Read the stream's timestamps without a zone as local times of ``zone``, at any depth.

    Raises HashError (from the batches) for a local time that the zone skips or has twice, naming its row;
    and for such a timestamp inside a list, map or struct unless the zone is UTC.
    """
    if zone == NTZ or not any(_holds_naive(t) for t in stream.schema.types):
        return stream
    fields = [f.with_type(_zoned(f.type, zone)) if _holds_naive(f.type) else f for f in stream.schema]
    schema = pa.schema(fields, metadata=stream.schema.metadata)
    return ArrowStream(schema, _batches_in_zone(stream, schema, zone), stream.library)


def _batches_in_zone(stream: ArrowStream, schema: pa.Schema, zone: str) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in stream.batches:
        columns = list(batch.columns)
        for i, field in enumerate(stream.schema):
            if _holds_naive(field.type):
                columns[i] = _column_in_zone(columns[i], schema.field(i).type, zone, field.name, rows)
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        rows += batch.num_rows


def _holds_naive(t: pa.DataType) -> bool:
    if pat.is_timestamp(t):
        return t.tz is None
    return any(_holds_naive(child) for child in _children(t))


def _children(t: pa.DataType) -> list[pa.DataType]:
    if pat.is_dictionary(t) or pat.is_run_end_encoded(t):
        return [t.value_type]
    return [t.field(i).type for i in range(t.num_fields)]


def _zoned(t: pa.DataType, zone: str) -> pa.DataType:
    """Return ``t`` with the zone put in; encoded columns become plain ones."""
    if not _holds_naive(t):
        return t
    if pat.is_dictionary(t) or pat.is_run_end_encoded(t):
        return _zoned(t.value_type, zone)
    if pat.is_struct(t):
        return pa.struct([t.field(i).with_type(_zoned(t.field(i).type, zone)) for i in range(t.num_fields)])
    if pat.is_map(t):
        return pa.map_(_zoned(t.key_type, zone), _zoned(t.item_type, zone))
    if pat.is_fixed_size_list(t):
        return pa.list_(_zoned(t.value_type, zone), t.list_size)
    if pat.is_large_list(t):
        return pa.large_list(_zoned(t.value_type, zone))
    if pat.is_list(t):
        return pa.list_(_zoned(t.value_type, zone))
    return pa.timestamp(t.unit, zone) if pat.is_timestamp(t) else t


def _column_in_zone(column: pa.Array, to: pa.DataType, zone: str, name: str, rows_before: int) -> pa.Array:
    if pat.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pat.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if zone == "UTC" and _is_cast_right(column.type):
        return column.cast(to)  # between no zone and UTC a cast keeps the digits
    if pat.is_timestamp(column.type):
        return _local_times(column, zone, name, rows_before)
    raise HashError(
        f"timestamps without a zone inside a column of this type cannot be read as {zone} times; give them a "
        "zone before, or make them a column of their own",
        column=name,
        type_name=str(column.type),
    )


def _is_cast_right(t: pa.DataType) -> bool:
    """Whether Arrow casts what is inside ``t``: not encoded types, and list views become invalid arrays."""
    if pat.is_timestamp(t) or not _holds_naive(t):
        return True
    kinds = pat.is_struct, pat.is_list, pat.is_large_list, pat.is_fixed_size_list, pat.is_map
    return any(is_kind(t) for is_kind in kinds) and all(_is_cast_right(child) for child in _children(t))


def _local_times(column: pa.Array, zone: str, name: str, rows_before: int) -> pa.Array:
    earliest = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="earliest")
    latest = pc.assume_timezone(column, zone, ambiguous="latest", nonexistent="latest")
    in_doubt = pc.index(pc.not_equal(earliest, latest), True).as_py()
    if in_doubt >= 0:
        raise HashError(
            f"a local time that {zone} skips or has twice (a clock change), so which instant it was is not "
            "known; convert the column to instants yourself, or keep naive_timestamps='ntz'",
            column=name,
            type_name=str(column.type),
            row=rows_before + in_doubt,
        )
    # Arrow's arithmetic wraps at the ends of 64 bits without saying so. Doubles are exact enough to see it.
    ticks = [times.cast(pa.int64()).cast(pa.float64(), safe=False) for times in (earliest, column)]
    shift = pc.abs(pc.subtract(*ticks))
    wrapped = pc.index(pc.greater(shift, _LARGEST_OFFSET * _IN_A_SECOND[column.type.unit]), True).as_py()
    if wrapped >= 0:
        raise HashError(
            f"a local time too far from the present to be read as one of {zone}",
            column=name,
            type_name=str(column.type),
            row=rows_before + wrapped,
        )
    return earliest
