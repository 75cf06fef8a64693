"""A frame on its way into a table that stays: its columns as they are, or not at all."""

from __future__ import annotations

import re
from typing import Any

from ubunye_orchestrate.dagster_io.storage.spark_partitions import quoted
from ubunye_orchestrate.errors import StorageError

__all__ = ["as_the_table"]

_WHOLE = ("tinyint", "smallint", "int", "bigint")
# Type of a frame's column -> those of a table's that hold the same values.
_WIDER = {kind: _WHOLE[at + 1 :] for at, kind in enumerate(_WHOLE)} | {"float": ("double",)}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXT = re.compile(r"string|(?:var)?char\(\d+\)")


def as_the_table(frame: Any, table: Any, shown: str) -> Any:
    """Return the frame with its columns in the table's order, to be inserted as it is.

    Spark would leave out what the table has no column for, and cut values to the table's types. Raises
    StorageError for both; what Spark says of a column that the frame lacks passes through.
    """
    by_case = str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")) == "true"

    def columns(of: Any) -> dict[str, tuple[str, str]]:
        return {name if by_case else name.lower(): (name, kind) for name, kind in of.dtypes}

    given, wanted = columns(frame), columns(table)
    told = [f"{name} ({kind}) is not there" for key, (name, kind) in given.items() if key not in wanted]
    told += [
        f"{name} is {given[key][1]} here and {kind} there"
        for key, (name, kind) in wanted.items()
        if key in given and not _holds(kind, given[key][1])
    ]
    if told:
        raise StorageError(
            f"the frame does not fit the table {shown}: {'; '.join(told)}; what is put into a table "
            "keeps its columns: bring the frame to them, or change the table"
        )
    return frame.select(*[quoted(name) for name in table.columns])


def _holds(wanted: str, given: str) -> bool:
    """Whether a column of one type holds every value of another as it is; Spark refuses too long texts."""
    if wanted == given or given == "void" or wanted in _WIDER.get(given, ()):
        return True
    if _TEXT.fullmatch(wanted) and _TEXT.fullmatch(given):
        return True
    table, frame = _DECIMAL.fullmatch(wanted), _DECIMAL.fullmatch(given)
    if table is None or frame is None:
        return False
    (precision, scale), (digits, fraction) = (tuple(map(int, one.groups())) for one in (table, frame))
    return scale >= fraction and precision - scale >= digits - fraction
