"""What an analyst asks for: delays beside the weather, and a monthly report per carrier."""

import pandas as pd
from dagster import AssetExecutionContext, MonthlyPartitionsDefinition, asset

months_of_2013 = MonthlyPartitionsDefinition(start_date="2013-01-01", end_date="2014-01-01")

WEATHER = ["temp", "wind_speed", "wind_gust", "precip", "pressure", "visib"]


@asset(
    group_name="marts",
    kinds={"pandas", "parquet"},
    owners=["team:flight-analytics"],
    tags={"domain": "delays"},
)
def delays_with_weather(
    clean_flights: pd.DataFrame, raw_weather: pd.DataFrame, raw_planes: pd.DataFrame
) -> pd.DataFrame:
    """Each flight with the weather at its airport in the hour it was to leave, and the age of its aircraft.

    Joined on the instant, not on the local hour, which the night of 3 November has twice. Where the weather
    of the hour (0.5 % of the flights) or the aircraft (16 %) is not known, those columns are null.
    """
    weather = raw_weather[["origin", "time_hour", *WEATHER]].rename(columns={"time_hour": "hour"})
    planes = raw_planes[["tailnum", "year", "seats"]].rename(
        columns={"tailnum": "tail_number", "year": "built"}
    )
    flights = clean_flights.assign(hour=clean_flights["planned_departure"].dt.floor("h"))
    joined = flights.merge(weather, how="left", on=["origin", "hour"], validate="many_to_one").merge(
        planes, how="left", on="tail_number", validate="many_to_one"
    )
    joined["aircraft_age_years"] = (2013 - joined["built"]).astype("Int32")
    joined["seats"] = joined["seats"].astype("Int32")
    return joined.drop(columns=["hour", "built"])


@asset(
    group_name="marts",
    kinds={"pandas", "parquet"},
    owners=["team:flight-analytics", "grace@example.com"],
    tags={"domain": "delays", "cadence": "monthly"},
    partitions_def=months_of_2013,
)
def carrier_report(
    context: AssetExecutionContext, delays_with_weather: pd.DataFrame, raw_airlines: pd.DataFrame
) -> pd.DataFrame:
    """One month by New York's calendar, a row per carrier: how much it flew, how late it was, and in rain."""
    first = pd.Timestamp(context.partition_key)
    local = delays_with_weather["planned_departure_local"]
    flights = delays_with_weather[(local >= first) & (local < first + pd.offsets.MonthBegin())]

    arrived = flights["arrival_delay_min"].notna()
    delay = flights["arrival_delay_min"].astype("float64")
    measures = pd.DataFrame(
        {
            "carrier": flights["carrier"],
            "flights": 1,
            "cancelled": flights["cancelled"].astype("int64"),
            "diverted": flights["diverted"].astype("int64"),
            "arrived": arrived.astype("int64"),
            "late": is_late(delay).astype("int64"),
            "delay": delay,
            "delay_in_rain": delay.where(flights["precip"] > 0),
        }
    )
    by_carrier = measures.groupby("carrier", sort=True)
    report = by_carrier[["flights", "cancelled", "diverted", "arrived", "late"]].sum()
    report["late_percent"] = (100 * report["late"] / report["arrived"]).round(1)
    report["mean_delay_min"] = by_carrier["delay"].mean().round(1)
    report["median_delay_min"] = by_carrier["delay"].median()
    report["mean_delay_in_rain_min"] = by_carrier["delay_in_rain"].mean().round(1)

    return report.reset_index().merge(
        raw_airlines.rename(columns={"name": "airline"}), how="left", on="carrier", validate="one_to_one"
    )


def is_late(delay_min: "pd.Series[float]") -> "pd.Series[bool]":
    """Say which arrivals count as late: a quarter of an hour or more, as the US authorities count."""
    return delay_min >= 15
