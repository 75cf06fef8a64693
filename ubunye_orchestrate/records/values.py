"""What a user's value is to a record: a table that may be hashed now, one that may not be touched, or none.

A value is recognised without importing its library: who passed a Polars frame has Polars in ``sys.modules``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.hashing.loaded import loaded
from ubunye_orchestrate.records.budget import NO_BUDGET, HashBudget, fingerprint_within

__all__ = [
    "Nature",
    "Value",
    "columns_in_order",
    "fingerprint_value",
    "inspect_value",
    "not_hashed",
]

Nature = Literal["whole", "once", "lazy", "other"]
"""``whole``: a table in memory, read as often as one likes; ``once``: it can be read a single time; ``lazy``:
reading it computes it; ``other``: not a table."""


@dataclass(frozen=True)
class Value:
    """A value as far as it can be told without reading it."""

    nature: Nature
    backend: str | None
    """``pandas``, ``pyarrow``, ``polars``, ``duckdb``, ``spark``; None when it is not known."""
    what: str
    """For messages: the name of its type, with the library where the name alone says little."""

    @property
    def untouched_because(self) -> str | None:
        """Why it is not hashed here; None for a table in memory."""
        if self.nature == "whole":
            return None
        if self.nature == "once":
            return f"not hashed: a {self.what} can be read only once, and hashing would empty it"
        if self.nature == "lazy":
            return f"not hashed: a {self.what} is not computed for its hash"
        return f"not a table ({self.what})"


def inspect_value(value: object) -> Value:
    """Tell what a value is, reading none of it."""
    try:
        return _inspected(value)
    except Exception:  # noqa: BLE001 - a proxy that stands for nothing now raises whatever it is asked
        return Value("other", None, type(value).__name__)


def _inspected(value: object) -> Value:
    narwhals = loaded("narwhals")
    if narwhals is not None and isinstance(value, narwhals.DataFrame | narwhals.LazyFrame):
        return inspect_value(narwhals.to_native(value))
    name = type(value).__name__
    pandas, polars = loaded("pandas"), loaded("polars")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return Value("whole", "pandas", name)
    pyarrow = loaded("pyarrow")
    if pyarrow is not None:
        if isinstance(value, pyarrow.Table | pyarrow.RecordBatch):
            return Value("whole", "pyarrow", name)
        if isinstance(value, pyarrow.RecordBatchReader):
            return Value("once", "pyarrow", name)
    dataset = loaded("pyarrow.dataset")
    if dataset is not None and isinstance(value, dataset.Dataset | dataset.Scanner):
        return Value("lazy", "pyarrow", name)
    if polars is not None:
        if isinstance(value, polars.DataFrame):
            return Value("whole", "polars", f"Polars {name}")
        if isinstance(value, polars.LazyFrame):
            return Value("lazy", "polars", f"Polars {name}")
    duckdb = loaded("duckdb")
    if duckdb is not None and isinstance(value, duckdb.DuckDBPyRelation):
        return Value("lazy", "duckdb", "DuckDB relation")
    if "pyspark" in sys.modules and type(value).__module__.startswith("pyspark.sql") and name == "DataFrame":
        return Value("lazy", "spark", "Spark DataFrame")
    if not isinstance(value, type) and hasattr(value, "__arrow_c_stream__") and not _is_column(value):
        # The protocol does not say whether a second reading gives the rows again.
        return Value("once", None, name)
    return Value("other", None, name)


def fingerprint_value(
    value: object, naive_timestamps: str, budget: HashBudget = NO_BUDGET, *, compute_spark: bool = False
) -> Fingerprint:
    """Return the fingerprint of a table in memory; of anything else one that says why it has no hash.

    So has a table whose hash would cost more than the budget. With ``compute_spark`` a Spark frame is
    computed for its hash.
    """
    seen = inspect_value(value)
    reason = seen.untouched_because
    if reason is not None and not (compute_spark and seen.backend == "spark"):
        return not_hashed(reason)
    return fingerprint_within(value, naive_timestamps, budget)


def not_hashed(reason: str | None, row_count: int | None = None) -> Fingerprint:
    """Return the fingerprint of something that was not hashed; without a reason there is nothing to hash."""
    return Fingerprint(
        data_hash=None,
        schema_hash=None,
        row_count=row_count,
        lane_sums=None,
        columns=(),
        error=reason,
        seconds=0.0,
        path_taken="none",
    )


def columns_in_order(value: object) -> Sequence[str]:
    """Return the column names of a table in memory in its order; empty for anything else."""
    if inspect_value(value).nature != "whole":
        return ()
    columns: Any = getattr(value, "column_names", None)
    if columns is None:
        columns = getattr(value, "columns", ())
    return [str(name) for name in columns]


def _is_column(value: object) -> bool:
    """Tell a single column (a Series, a chunked array): it exports a stream of the protocol too."""
    for library, names in (
        ("pandas", ("Series", "Index")),
        ("polars", ("Series",)),
        ("pyarrow", ("ChunkedArray",)),
    ):
        module = loaded(library)
        if module is not None and isinstance(value, tuple(getattr(module, name) for name in names)):
            return True
    return False
