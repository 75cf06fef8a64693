"""Arrow tables as Spark frames, without loss, on every version of Spark and over Connect.

``createDataFrame`` takes Arrow tables from Spark 4 on, and Python's dates only within its own years. So rows
go over as integers, text and bytes, and are made what they are by SQL.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import types as sql_types

from ubunye_orchestrate.hashing.spark.sql import literal

_FLAT = {
    pa.bool_(): sql_types.BooleanType(),
    pa.int8(): sql_types.ByteType(),
    pa.int16(): sql_types.ShortType(),
    pa.int32(): sql_types.IntegerType(),
    pa.int64(): sql_types.LongType(),
    pa.float32(): sql_types.FloatType(),
    pa.float64(): sql_types.DoubleType(),
    pa.string(): sql_types.BinaryType(),
    pa.binary(): sql_types.BinaryType(),
    pa.date32(): sql_types.IntegerType(),
    pa.timestamp("us"): sql_types.LongType(),
    pa.timestamp("us", "UTC"): sql_types.LongType(),
    pa.null(): sql_types.NullType(),
}
_DAY = 86_400_000_000


def spark_frame(session: Any, table: pa.Table) -> Any:
    """A Spark frame (classic or Connect, as the session is) of the rows of an Arrow table."""
    places = [f"c{i}" for i in range(table.num_columns)]
    schema = sql_types.StructType()
    for place, t in zip(places, table.schema.types, strict=True):
        schema = schema.add(place, _wire_type(t))
    if not places:
        return session.range(table.num_rows).select()
    columns = [[_wire_value(scalar) for scalar in column] for column in table.columns]
    frame = session.createDataFrame(list(zip(*columns, strict=True)), schema)
    names = count()
    values = [
        f"{_value(place, t, names)} as {place}" for place, t in zip(places, table.schema.types, strict=True)
    ]
    return frame.selectExpr(*values).toDF(*table.column_names)


def _wire_type(t: pa.DataType) -> sql_types.DataType:
    if pat.is_decimal(t):
        return sql_types.DecimalType(t.precision, t.scale)
    if pat.is_list(t):
        return sql_types.ArrayType(_wire_type(t.value_type))
    if pat.is_map(t):
        entry = sql_types.StructType().add("k", _wire_type(t.key_type)).add("v", _wire_type(t.item_type))
        return sql_types.ArrayType(entry)
    if pat.is_struct(t):
        schema = sql_types.StructType()
        for i in range(t.num_fields):
            schema = schema.add(f"f{i}", _wire_type(t.field(i).type))
        return schema
    return _FLAT[t]


def _wire_value(scalar: pa.Scalar) -> Any:
    t = scalar.type
    if not scalar.is_valid:
        return None
    if pat.is_string(t) or pat.is_binary(t):
        return bytearray(scalar.as_buffer().to_pybytes())
    if pat.is_date(t) or pat.is_timestamp(t):
        return scalar.value
    if pat.is_list(t):
        return [_wire_value(item) for item in scalar.values]
    if pat.is_map(t):
        keys, values = scalar.values.field(0), scalar.values.field(1)
        return [(_wire_value(k), _wire_value(v)) for k, v in zip(keys, values, strict=True)]
    if pat.is_struct(t):
        return tuple(_wire_value(scalar[i]) for i in range(t.num_fields))
    return scalar.as_py()


def _value(x: str, t: pa.DataType, names: count[int]) -> str:
    if pat.is_string(t):
        return f"cast({x} as string)"
    if pat.is_date(t):
        return f"date_from_unix_date({x})"
    if pat.is_timestamp(t) and t.tz:
        return f"timestamp_micros({x})"
    if pat.is_timestamp(t):
        seconds = f"cast({x} % {_DAY} as decimal(20, 0)) * cast(0.000001 as decimal(6, 6))"
        interval = f"make_dt_interval(cast({x} div {_DAY} as int), 0, 0, {seconds})"
        return f"(timestamp_ntz'1970-01-01 00:00:00' + {interval})"
    if pat.is_list(t):
        item = f"x{next(names)}"
        return f"transform({x}, {item} -> {_value(item, t.value_type, names)})"
    if pat.is_map(t):
        e = f"x{next(names)}"
        key, value = _value(f"{e}.k", t.key_type, names), _value(f"{e}.v", t.item_type, names)
        return f"map_from_entries(transform({x}, {e} -> struct({key}, {value})))"
    if pat.is_struct(t):
        fields = ", ".join(
            f"{literal(t.field(i).name)}, {_value(f'{x}.f{i}', t.field(i).type, names)}"
            for i in range(t.num_fields)
        )
        return f"if({x} is null, null, named_struct({fields}))"
    return x
