"""Cleaned tables: real timestamps, real nulls, names that say their unit."""

import pandas as pd
from dagster import asset

from .wall_clock import clock_time, next_reading, utc, wall_clock

NEW_YORK = "America/New_York"

# Destinations that raw_airports lacks. All four keep Atlantic time the whole year.
CARIBBEAN = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")


@asset(
    group_name="staging",
    kinds={"pandas", "parquet"},
    owners=["team:flight-data", "ada@example.com"],
    tags={"domain": "flights"},
    metadata={"time_zone": "UTC, and the clock in New York where a column ends in _local"},
)
def clean_flights(raw_flights: pd.DataFrame, raw_airports: pd.DataFrame) -> pd.DataFrame:
    """Flights with departure and arrival as instants (UTC), planned and actual; one row per published row.

    The actual times are the planned instants plus the published delays, which agrees with every published
    clock reading but one: the flight that reached Palm Beach in the night of 10 March at "203", on a clock
    that should have read 3:03 by then. It is 89 minutes late, as published.

    A flight without a departure time was cancelled. One that left but has no arrival delay was diverted; the
    arrival time that some of those have is of another airport, so it is dropped.
    """
    flights = raw_flights
    zone_at_destination = flights["dest"].map({**raw_airports.set_index("faa")["tzone"], **CARIBBEAN})
    zone_at_origin = pd.Series(NEW_YORK, index=flights.index)

    day = pd.to_datetime(flights[["year", "month", "day"]]).astype("datetime64[us]")
    planned_departure_local = day + clock_time(flights["sched_dep_time"])
    planned_departure = utc(planned_departure_local, zone_at_origin)
    # The first time after departure at which the clock at the destination shows the published reading.
    clock_at_departure = wall_clock(planned_departure, zone_at_destination)
    planned_arrival = utc(next_reading(clock_at_departure, flights["sched_arr_time"]), zone_at_destination)

    cancelled = flights["dep_time"].isna()
    return pd.DataFrame(
        {
            "carrier": flights["carrier"],
            "flight": flights["flight"],
            "tail_number": flights["tailnum"],
            "origin": flights["origin"],
            "destination": flights["dest"],
            "planned_departure_local": planned_departure_local,
            "planned_departure": planned_departure,
            "departure": planned_departure + minutes(flights["dep_delay"]),
            "planned_arrival": planned_arrival,
            "arrival": planned_arrival + minutes(flights["arr_delay"]),
            "departure_delay_min": flights["dep_delay"].astype("Int32"),
            "arrival_delay_min": flights["arr_delay"].astype("Int32"),
            "air_time_min": flights["air_time"].astype("Int32"),
            "distance_miles": flights["distance"],
            "cancelled": cancelled,
            "diverted": ~cancelled & flights["arr_delay"].isna(),
        }
    )


def minutes(count: "pd.Series[float]") -> "pd.Series[pd.Timedelta]":
    """Turn a column of minutes into durations; null stays null."""
    return pd.to_timedelta(count, unit="min").astype("timedelta64[us]")
