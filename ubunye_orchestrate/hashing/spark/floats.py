"""Floats that a JVM writes with too many digits, written anew in Python on the executors.

For sessions whose SQL may call no method of Java. Only lines with such a float pass through Python; the
function needs Python's standard library there and nothing of this package: it is sent by value.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ubunye_orchestrate.hashing.canonical import double_text, float_text
from ubunye_orchestrate.hashing.spark.values import MARK

__all__ = ["finished_line", "line_finisher", "python_way"]


def finished_line(line: str) -> str:
    """Return a line with the floats between marks (``values.MARK``) written as rows-v1 has them."""

    def anew(marked: re.Match[str]) -> str:
        bits, text = marked.groups()
        # The text is that of a double in either case; a float's double has its value.
        return float_text(float(text)) if bits == "32" else double_text(float(text))

    return re.sub(f"{MARK}(32|64)([^{MARK}]*){MARK}", anew, line)


def python_way(lines: Any) -> str:
    """Return the kind of user function that serves a frame: one on Arrow arrays from Spark 4.1 on."""
    return "arrow-udf" if hasattr(_functions(lines), "arrow_udf") else "python-udf"


def line_finisher(lines: Any) -> Any:
    """Return a frame of lines with the marked floats of its column ``line`` written anew."""
    functions = _functions(lines)
    if python_way(lines) == "arrow-udf":
        finish = functions.arrow_udf(_on_arrays(), "string")
    else:
        finish = functions.udf(_on_lines(), "string")
    line = functions.col("line")
    marked = functions.when(line.contains(MARK), line)  # null, and so no work, for all other lines
    others = [functions.col(name) for name in lines.columns if name != "line"]
    return lines.select(functions.coalesce(finish(marked), line).alias("line"), *others)


def _functions(frame: Any) -> Any:
    """Return pyspark's functions for a frame of its kind: those of Connect build another tree."""
    if type(frame).__module__.startswith("pyspark.sql.connect."):
        return importlib.import_module("pyspark.sql.connect.functions")
    return importlib.import_module("pyspark.sql.functions")


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
