"""Spark's own expressions, in classic sessions, for what SQL has no function, or only a detour.

SQL gives a digest as text alone, a sum that may overflow only in pieces, and the shortest text of a float
not at all on an old JVM. Catalyst, in which Spark writes its own functions, calls any static Java method,
and sums modulo 2**64 in every session. That is a private interface of Spark, all of it in this module, and
only a faster way: without it, the same comes by SQL.
"""

from __future__ import annotations

import importlib
import logging
from functools import lru_cache
from typing import Any

__all__ = ["Catalyst", "catalyst_of"]

logger = logging.getLogger(__name__)

_INVOKE = "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke"
_SUM = "org.apache.spark.sql.catalyst.expressions.aggregate.Sum"
_DIGESTS = "org.apache.commons.codec.digest.DigestUtils"
_BYTES = "org.apache.spark.unsafe.types.ByteArray"
_JSON_NUMBERS = "com.fasterxml.jackson.core.io.NumberOutput"
_SPARK_STRING = "org.apache.spark.unsafe.types.UTF8String"


def catalyst_of(frame: Any) -> Catalyst | None:
    """Return the calls for a frame; None over Connect, or where Spark's internals are not as known."""
    if type(frame).__module__.startswith("pyspark.sql.connect."):
        return None
    try:
        is_spark_4 = type(frame).__module__ == "pyspark.sql.classic.dataframe"
        return _catalyst(frame.sparkSession._jvm, is_spark_4)
    except Exception:
        logger.debug("Spark's own expressions are not as known; hashing by SQL alone", exc_info=True)
        return None


class Catalyst:
    """Columns of such expressions, each taking SQL for its argument; null for null."""

    def __init__(self, jvm: Any, is_spark_4: bool) -> None:
        """Look up what is needed in the JVM. Raises (anything) where it is not as known."""
        self.sql = importlib.import_module("pyspark.sql.functions").expr
        """The column of an SQL expression."""
        self._column_class = type(self.sql("null"))
        self._java_sql = jvm.org.apache.spark.sql.functions.expr
        self._expressions = jvm.org.apache.spark.sql.catalyst.expressions
        self._invoke = self._expressions.objects.StaticInvoke
        self._to_seq = jvm.PythonUtils.toSeq
        self._nothing = self._to_seq([])
        class_named, types = jvm.java.lang.Class.forName, jvm.org.apache.spark.sql.types
        names = (_DIGESTS, _BYTES, _JSON_NUMBERS, _SPARK_STRING)
        self._classes = {name: class_named(name) for name in names}
        self._types = {name: types.DataType.fromDDL(name) for name in ("binary", "bigint", "string")}
        self._types["java string"] = types.ObjectType(class_named("java.lang.String"))
        # Null for null, may be null, the same each time; Spark 4 has one more, which may be left empty.
        (constructor,) = class_named(_INVOKE).getConstructors()
        further = constructor.getParameterCount() - 8
        self._properties = [True, True, True, *[jvm.scala.Option.empty()] * further]
        self._sum = self._expressions.aggregate.Sum
        self._wrapping = self._mode_of_sums(jvm)
        if is_spark_4:
            columns = jvm.org.apache.spark.sql.classic.ExpressionUtils
            self._expression_of, self._column_of = columns.expression, columns.column
        else:
            self._expression_of = lambda column: column.expr()
            self._column_of = jvm.org.apache.spark.sql.Column

    def sha256(self, binary: str) -> Any:
        """Return the column of the SHA-256 of bytes, 32 bytes."""
        return self._column(self._call(_DIGESTS, "sha256", "binary", self._expression(binary)))

    def sum_of_first_eight_bytes(self, binary: str) -> Any:
        """Return the aggregate of the integers that the first eight bytes are, big endian, modulo 2**64."""
        integer = self._call(_BYTES, "getPrefix", "bigint", self._expression(binary))
        return self._column(self._sum(integer, self._wrapping).toAggregateExpression())

    def shortest_text(self, number: str) -> Any:
        """Return the column of the text of a double or float as JDK 19+ writes it, on any JVM.

        Without quotes where it is not finite.
        """
        return self._column(self._shortest_text(self._expression(number)))

    def shortest_texts(self, numbers: str) -> Any:
        """Return the column of the ``shortest_text`` of each of an array of doubles or of floats.

        Slower for each of them, but one expression whatever their number: a JVM does not compile a method of
        more than 8,000 bytes, which the code of a row soon comes to.
        """
        number = self._expressions.UnresolvedNamedLambdaVariable(self._to_seq(["number"]))
        each = self._expressions.LambdaFunction(self._shortest_text(number), self._to_seq([number]), False)
        return self._column(self._expressions.ArrayTransform(self._expression(numbers), each))

    def _shortest_text(self, number: Any) -> Any:
        text = self._call(_JSON_NUMBERS, "toString", "java string", number, self._expression("true"))
        return self._call(_SPARK_STRING, "fromString", "string", text)

    def _mode_of_sums(self, jvm: Any) -> Any:
        """Return what tells a sum to wrap where it overflows, whatever the session is set to."""
        legacy = self._expressions.EvalMode.withName("LEGACY")
        modes = (c.getParameterTypes() for c in jvm.java.lang.Class.forName(_SUM).getConstructors())
        if any("NumericEvalContext" in t.getName() for types in modes for t in types):  # Spark 4.1 and newer
            return self._expressions.NumericEvalContext(legacy, False)
        return legacy

    def _call(self, class_name: str, method: str, returns: str, *arguments: Any) -> Any:
        return self._invoke(
            self._classes[class_name],
            self._types[returns],
            method,
            self._to_seq(list(arguments)),
            self._nothing,
            *self._properties,
        )

    def _expression(self, sql: str) -> Any:
        return self._expression_of(self._java_sql(sql))

    def _column(self, expression: Any) -> Any:
        return self._column_class(self._column_of(expression))


@lru_cache(maxsize=1)  # every name that is looked up in the JVM is a journey there and back
def _catalyst(jvm: Any, is_spark_4: bool) -> Catalyst:
    return Catalyst(jvm, is_spark_4)
