"""Floats that a JVM writes with too many digits, written anew: the lines with marks, finished.

By a method of Java where the session's SQL may call one, else by a Python function on the executors, which
needs Python's standard library there and nothing of this package: it is sent by value. Only lines with such a
float take the way.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ubunye_orchestrate.hashing.canonical import double_text, float_text
from ubunye_orchestrate.hashing.spark.session import JsonWriter, shortest_text
from ubunye_orchestrate.hashing.spark.sql import case, literal
from ubunye_orchestrate.hashing.spark.values import MARK

__all__ = ["finished", "finished_line", "quick_double_text", "way_of_floats"]


def finished_line(line: str) -> str:
    """Return a line with the floats between marks (``values.MARK``) written as rows-v1 has them."""

    def anew(marked: re.Match[str]) -> str:
        bits, text = marked.groups()
        # The text is that of a double in either case; a float's double has its value.
        return float_text(float(text)) if bits == "32" else quick_double_text(float(text))

    return re.sub(f"{MARK}(32|64)([^{MARK}]*){MARK}", anew, line)


def quick_double_text(value: float) -> str:
    """Return what ``double_text`` does, of a finite number, as a rule ten times as fast.

    Python too writes the shortest digits that read back, of those the closest; but it can do with one digit.
    """
    size = abs(value)
    if 1e-3 <= size < 1e7:
        return repr(value)  # laid out the same, too
    mantissa, _, exponent = repr(size).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).rstrip("0")
    power = int(exponent or 0) + len(whole) - 1
    if len(digits) < 2 or digits[0] == "0":
        return double_text(value)
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:]}E{power}"


def way_of_floats(frame: Any, writer: JsonWriter) -> str:
    """Return how a frame's marked floats are written anew: ``java-method``, ``arrow-udf``, ``python-udf``."""
    if writer.java_method:
        return "java-method"
    # Functions on Arrow arrays without pandas are there from Spark 4.1 on; whether they are made for classic
    # frames or for those of Connect, the process decides.
    fits = _is_connect(frame) == importlib.import_module("pyspark.sql.utils").is_remote()
    there = writer.arrow and hasattr(_functions(frame), "arrow_udf")
    return "arrow-udf" if fits and there else "python-udf"


def finished(lines: Any, others: tuple[str, ...], writer: JsonWriter) -> Any:
    """Return a frame's column ``line`` with the marked floats written anew, and other columns.

    The frame's column ``has_marks`` says which lines may have some.
    """
    if writer.java_method:
        return lines.selectExpr(f"if(has_marks, {_by_java('line')}, line) as line", *others)
    functions = _functions(lines)
    if way_of_floats(lines, writer) == "arrow-udf":
        finish = functions.arrow_udf(_on_arrays(), "string")
    else:
        finish = functions.udf(_on_lines(), "string", useArrow=False)  # which would need pandas there
    line = functions.col("line")
    marked = functions.when(functions.col("has_marks"), line)  # null, and so no work, for all other lines
    by_python = functions.coalesce(finish(marked), line).alias("line")
    return lines.select(by_python, *others)


def _by_java(line: str) -> str:
    # Every second piece stood between marks.
    number = "cast(substring(piece, 3) as double)"
    as_float = shortest_text(f"cast({number} as float)")
    anew = case(("n % 2 = 0", "piece"), ("piece like '32%'", as_float), otherwise=shortest_text(number))
    return f"array_join(transform(split({line}, {literal(MARK)}), (piece, n) -> {anew}), '')"


def _functions(frame: Any) -> Any:
    """Return pyspark's functions for a frame of its kind: those of Connect build another tree."""
    name = "pyspark.sql.connect.functions" if _is_connect(frame) else "pyspark.sql.functions"
    return importlib.import_module(name)


def _is_connect(frame: Any) -> bool:
    return type(frame).__module__.startswith("pyspark.sql.connect.")


# Functions defined inside functions are pickled by value, with what they enclose.


def _on_lines() -> Callable[[str | None], str | None]:
    pickled = _pickled_by_value(finished_line)
    loaded: list[Callable[[str], str]] = []

    def finish(line: str | None) -> str | None:
        if line is None:
            return None
        if not loaded:
            import pickle

            loaded.append(pickle.loads(pickled))
        return loaded[0](line)

    return finish


def _on_arrays() -> Callable[[Any], Any]:
    finish = _on_lines()

    def finish_all(lines: Any) -> Any:
        import pyarrow

        return pyarrow.array([finish(line) for line in lines.to_pylist()], pyarrow.string())

    # Spark reads off the types what the function works on; here they are not names but the classes.
    finish_all.__annotations__ = {"lines": pa.Array, "return": pa.Array}
    return finish_all


def _pickled_by_value(function: Callable[[str], str]) -> bytes:
    """Pickle a function of this package together with what it calls here, instead of its name."""
    cloudpickle = importlib.import_module("pyspark.cloudpickle")  # untyped
    modules = [sys.modules[f.__module__] for f in (function, double_text)]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(function))
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)
