"""The text of rows-v1 by definition: what real Spark's ``to_json`` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import functions as sql
from pyspark.sql import types as sql_types

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "dateFormat": "yyyy-MM-dd",
    "timeZone": "UTC",
}
_FLAT = {
    pa.bool_(): sql_types.BooleanType(),
    pa.int8(): sql_types.ByteType(),
    pa.int16(): sql_types.ShortType(),
    pa.int32(): sql_types.IntegerType(),
    pa.int64(): sql_types.LongType(),
    pa.float32(): sql_types.FloatType(),
    pa.float64(): sql_types.DoubleType(),
    pa.string(): sql_types.StringType(),
    pa.binary(): sql_types.BinaryType(),
    pa.date32(): sql_types.DateType(),
    pa.timestamp("us"): sql_types.TimestampNTZType(),
    pa.timestamp("us", "UTC"): sql_types.TimestampType(),
    pa.null(): sql_types.NullType(),
}


def spark_type(t: pa.DataType) -> sql_types.DataType:
    """The Spark type that an Arrow type stands for."""
    if pat.is_decimal(t):
        return sql_types.DecimalType(t.precision, t.scale)
    if pat.is_list(t):
        return sql_types.ArrayType(spark_type(t.value_type))
    if pat.is_map(t):
        return sql_types.MapType(spark_type(t.key_type), spark_type(t.item_type))
    if pat.is_struct(t):
        fields = [t.field(i) for i in range(t.num_fields)]
        return sql_types.StructType([sql_types.StructField(f.name, spark_type(f.type)) for f in fields])
    return _FLAT[t]


def spark_lines(spark: SparkSession, batch: pa.RecordBatch) -> list[str]:
    """The canonical line of each row, in the order of the rows, by Spark's own JSON writer."""
    names = batch.schema.names
    # Spark looks columns up by name; here only their place counts.
    places = [f"c{i}" for i in range(len(names))]
    table = pa.Table.from_batches([batch]).rename_columns(places)
    table = table.append_column("row", pa.array(range(len(batch)), pa.int64()))
    schema = sql_types.StructType()
    for place, t in zip(places, batch.schema.types, strict=True):
        schema = schema.add(place, spark_type(t))
    frame = spark.createDataFrame(table, schema.add("row", sql_types.LongType()))
    columns = [
        _maps_sorted(sql.col(place), t).alias(name)
        for name, place, t in sorted(zip(names, places, batch.schema.types, strict=True), key=lambda c: c[0])
    ]
    line = sql.to_json(sql.struct(*columns), _OPTIONS)
    return [row[0] for row in frame.orderBy("row").select(line).collect()]


def _maps_sorted(column: Column, t: pa.DataType) -> Column:
    if not _has_map(t):
        return column
    if pat.is_list(t):
        return sql.transform(column, lambda item: _maps_sorted(item, t.value_type))
    if pat.is_map(t):
        entries = sql.transform(
            sql.map_entries(column),
            lambda e: sql.struct(e["key"].alias("key"), _maps_sorted(e["value"], t.item_type).alias("value")),
        )
        return sql.map_from_entries(sql.array_sort(entries, _by_key))
    fields = [t.field(i) for i in range(t.num_fields)]
    inner = sql.struct(*(_maps_sorted(column.getField(f.name), f.type).alias(f.name) for f in fields))
    return sql.when(column.isNotNull(), inner)


def _by_key(left: Column, right: Column) -> Column:
    return sql.when(left["key"] < right["key"], -1).when(left["key"] > right["key"], 1).otherwise(0)


def _has_map(t: pa.DataType) -> bool:
    if pat.is_list(t):
        return _has_map(t.value_type)
    if pat.is_struct(t):
        return any(_has_map(t.field(i).type) for i in range(t.num_fields))
    return bool(pat.is_map(t))
