"""A line to its two lanes: the SHA-256 of its bytes, and the first and second eight of those as integers.

SQL can do it in public functions only by way of text: the digest in hexadecimal, its halves converted to
decimal digits, those read as integers. That is a quarter of the cost of a hash. In a classic session the same
can be said in Catalyst, Spark's own expressions, which call a Java method where SQL calls a function.
"""

from __future__ import annotations

import importlib
import logging
from typing import Any

__all__ = ["LANES", "lanes_by_catalyst", "lanes_by_sql", "lanes_of"]

logger = logging.getLogger(__name__)

LANES = ("a", "b")
"""The columns of the lanes, as signed 64-bit integers."""

_CALL = "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke"
_SHA256 = ("org.apache.commons.codec.digest.DigestUtils", "sha256")
_FIRST_EIGHT_BYTES = ("org.apache.spark.unsafe.types.ByteArray", "getPrefix")  # big endian


def lanes_of(lines: Any) -> Any:
    """Return a frame of lines with the lanes in the place of its column ``line`` (null where that is).

    By Catalyst where the session lets us, else by SQL; both give the same numbers.
    """
    if type(lines).__module__.startswith("pyspark.sql.connect."):
        return lanes_by_sql(lines)
    try:
        return lanes_by_catalyst(lines)
    except Exception:
        logger.debug("Spark's own expressions are not as known; hashing by SQL", exc_info=True)
        return lanes_by_sql(lines)


def lanes_by_sql(lines: Any) -> Any:
    """Return what ``lanes_of`` does, by public functions."""
    others = _others(lines)
    # Of bytes: to cut a string, Spark counts its characters.
    digests = lines.selectExpr("cast(sha2(line, 256) as binary) as digest", *others)
    digits = (f"cast(substring(digest, {start}, 16) as string)" for start in (1, 17))
    lanes = [f"cast(conv({d}, 16, -10) as bigint) as {lane}" for lane, d in zip(LANES, digits, strict=True)]
    return digests.selectExpr(*lanes, *others)


def lanes_by_catalyst(lines: Any) -> Any:
    """Return what ``lanes_of`` does, by expressions that are Spark's own (classic sessions of 3.5 and 4).

    A private interface, all of it in this function: raises, and that anything, where it has changed.
    """
    jvm = lines.sparkSession._jvm
    functions = importlib.import_module("pyspark.sql.functions")
    class_named = jvm.java.lang.Class.forName
    if type(lines).__module__ == "pyspark.sql.classic.dataframe":  # from Spark 4 on
        columns = jvm.org.apache.spark.sql.classic.ExpressionUtils
        expression_of, column_of = columns.expression, columns.column
    else:
        expression_of, column_of = (lambda column: column.expr()), jvm.org.apache.spark.sql.Column

    # Spark 4 has one more argument, which may be left empty.
    (constructor,) = class_named(_CALL).getConstructors()
    further = [jvm.scala.Option.empty()] * (constructor.getParameterCount() - 8)

    def call(method: tuple[str, str], argument: Any, returns: str) -> Any:
        class_name, name = method
        invoke = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
            class_named(class_name),
            jvm.org.apache.spark.sql.types.DataType.fromDDL(returns),
            name,
            jvm.PythonUtils.toSeq([expression_of(argument._jc)]),
            jvm.PythonUtils.toSeq([]),
            *(True, True, True),  # null for null, may be null, the same each time
            *further,
        )
        return type(argument)(column_of(invoke))

    others = [functions.col(name) for name in _others(lines)]
    line, digest = functions.col("line").cast("binary"), functions.col("digest")
    digests = lines.select(call(_SHA256, line, "binary").alias("digest"), *others)
    halves = digest, functions.substring(digest, 9, 8)
    lanes = (call(_FIRST_EIGHT_BYTES, half, "bigint") for half in halves)
    return digests.select(*(c.alias(lane) for lane, c in zip(LANES, lanes, strict=True)), *others)


def _others(lines: Any) -> list[str]:
    return [name for name in lines.columns if name != "line"]
