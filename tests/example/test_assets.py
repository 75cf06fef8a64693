"""The example's asset functions on the real data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pytest
from dagster import build_asset_context

from example_project.assets import marts, raw, sources, wall_clock

if TYPE_CHECKING:
    from pathlib import Path

Frames = dict[str, pd.DataFrame]
NEW_YORK = "America/New_York"


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("raw_flights", 336_776),
        ("raw_airlines", 16),
        ("raw_airports", 1_458),
        ("raw_planes", 3_322),
        ("raw_weather", 26_115),
    ],
)
def test_every_published_row_is_read(raw_tables: dict[str, pa.Table], name: str, rows: int) -> None:
    assert raw_tables[name].num_rows == rows
    assert getattr(raw, name).metadata_by_key[getattr(raw, name).key]["expected_rows"] == rows


def test_published_nulls_are_nulls_and_integers_stay_integers(raw_tables: dict[str, pa.Table]) -> None:
    flights = raw_tables["raw_flights"]
    nulls = {name: flights[name].null_count for name in flights.column_names}
    assert {name: n for name, n in nulls.items() if n} == {
        "dep_time": 8_255,
        "dep_delay": 8_255,
        "arr_time": 8_713,
        "arr_delay": 9_430,
        "tailnum": 2_512,
        "air_time": 9_430,
    }
    assert flights.schema.field("dep_time").type == pa.int32()
    assert flights.schema.field("time_hour").type == pa.timestamp("us", tz="UTC")
    assert raw_tables["raw_airports"]["tzone"].null_count == 3


def test_a_delivery_takes_the_place_of_the_published_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "airlines.csv").write_text("carrier,name\nZZ,Zeppelin\nNA,\n")
    monkeypatch.setenv(sources.DELIVERIES_VARIABLE, str(tmp_path))
    assert sources.read_source("airlines").to_pylist() == [
        {"carrier": "ZZ", "name": "Zeppelin"},
        {"carrier": None, "name": None},
    ]
    assert sources.read_source("planes").num_rows == 3_322


def test_a_missing_data_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"ubunye-orchestrate\[example\]"):
        sources.read_source("airlines")


def test_clock_readings_of_2400_and_null() -> None:
    read = wall_clock.clock_time(pd.Series([1.0, 517.0, 2359.0, 2400.0, None]))
    expected = ["00:01:00", "05:17:00", "23:59:00", "1 day", None]
    assert read.tolist() == pd.to_timedelta(pd.Series(expected)).tolist()


def test_the_night_the_clock_goes_back_and_the_night_it_goes_forward() -> None:
    wall = pd.Series(pd.to_datetime(["2013-11-03 01:30", "2013-03-10 02:30", "2013-07-01 12:00"])).astype(
        "datetime64[us]"
    )
    zones = pd.Series([NEW_YORK, NEW_YORK, None])
    assert wall_clock.utc(wall, zones).tolist() == [
        pd.Timestamp("2013-11-03 05:30", tz="UTC"),  # the first 1:30, still in summer time
        pd.Timestamp("2013-03-10 07:00", tz="UTC"),  # 2:30 never was: the moment 2:00 became 3:00
        pd.NaT,
    ]


def test_cleaning_keeps_every_row_and_tells_cancelled_from_diverted(clean: pd.DataFrame) -> None:
    assert len(clean) == 336_776
    assert int(clean["cancelled"].sum()) == 8_255
    assert int(clean["diverted"].sum()) == 1_175
    assert clean["departure"].isna().equals(clean["cancelled"])
    assert clean["arrival"].isna().equals(clean["cancelled"] | clean["diverted"])
    assert not clean[["planned_departure", "planned_arrival"]].isna().any(axis=None)


def test_departures_agree_with_the_published_hour_in_utc(frames: Frames, clean: pd.DataFrame) -> None:
    published = frames["raw_flights"]["time_hour"]
    assert (clean["planned_departure"].dt.floor("h") == published).all()


def test_departures_agree_with_the_clock_in_new_york(frames: Frames, clean: pd.DataFrame) -> None:
    reading = frames["raw_flights"]["dep_time"]
    local = clean["departure"].dt.tz_convert(NEW_YORK)
    left = reading.notna()
    assert (local.dt.hour * 100 + local.dt.minute)[left].eq(reading[left] % 2400).all()


@pytest.mark.parametrize(
    ("destination", "zone"),
    [
        ("ORD", "America/Chicago"),
        ("HNL", "Pacific/Honolulu"),
        ("PHX", "America/Phoenix"),  # no summer time
        ("SJU", "America/Puerto_Rico"),  # missing from raw_airports
        ("BOS", NEW_YORK),
    ],
)
def test_arrivals_agree_with_the_clock_at_the_destination(
    frames: Frames, clean: pd.DataFrame, destination: str, zone: str
) -> None:
    here = (clean["destination"] == destination) & clean["arrival"].notna()
    local = clean["arrival"][here].dt.tz_convert(zone)
    reading = frames["raw_flights"]["arr_time"][here] % 2400
    assert here.sum() > 300
    assert (local.dt.hour * 100 + local.dt.minute).eq(reading).all()


def test_every_flight_is_in_the_air_for_less_than_its_time_from_gate_to_gate(clean: pd.DataFrame) -> None:
    flown = clean[clean["arrival"].notna()]
    gate_to_gate = (flown["arrival"] - flown["departure"]).dt.total_seconds() / 60
    taxiing = gate_to_gate - flown["air_time_min"].astype("float64")
    assert taxiing.between(5, 240).all()


def test_spot_checks_around_midnight_and_the_change_of_clocks(frames: Frames, clean: pd.DataFrame) -> None:
    flights = frames["raw_flights"]

    def one(**values: object) -> pd.Series:
        here = pd.concat([flights[name] == value for name, value in values.items()], axis=1).all(axis=1)
        assert here.sum() == 1
        return clean[here].iloc[0]

    first = one(month=1, day=1, carrier="UA", flight=1545)
    assert first["planned_departure"] == pd.Timestamp("2013-01-01 10:15", tz="UTC")
    assert first["departure"] == pd.Timestamp("2013-01-01 10:17", tz="UTC")
    assert first["arrival"] == pd.Timestamp("2013-01-01 14:30", tz="UTC")  # 8:30 in Houston

    forward = one(month=3, day=9, dest="PBI", dep_time=2306)
    assert forward["planned_arrival"] == pd.Timestamp("2013-03-10 05:34", tz="UTC")  # 0:34, still winter
    assert forward["arrival"] == pd.Timestamp("2013-03-10 07:03", tz="UTC")  # 3:03, published as 203

    midnight = clean[flights["dep_time"] == 2400]
    local = midnight["departure"].dt.tz_convert(NEW_YORK)
    assert len(midnight) == 29
    assert (local == local.dt.normalize()).all()
    # Planned for the evening, left at midnight: the day has turned.
    assert (local.dt.day != midnight["planned_departure_local"].dt.day).all()


def test_cleaning_does_not_care_how_an_integer_with_nulls_came_back(
    raw_tables: dict[str, pa.Table], clean: pd.DataFrame
) -> None:
    from example_project.assets.staging import clean_flights

    nullable = raw_tables["raw_flights"].to_pandas(types_mapper={pa.int32(): pd.Int32Dtype()}.get)
    again = clean_flights(nullable, raw_tables["raw_airports"].to_pandas())
    pd.testing.assert_frame_equal(again, clean, check_dtype=False)


def test_the_join_keeps_every_flight_once(clean: pd.DataFrame, delays: pd.DataFrame) -> None:
    assert len(delays) == len(clean)
    pd.testing.assert_frame_equal(delays[list(clean.columns)], clean)
    assert delays["temp"].notna().mean() == pytest.approx(0.9953, abs=1e-4)
    assert delays["aircraft_age_years"].dropna().between(0, 60).all()


def test_weather_is_that_of_the_hour_in_utc(delays: pd.DataFrame) -> None:
    # 3 November: local hour 1 occurred twice, so hours from then on differ by one from before.
    evening = delays[
        (delays["origin"] == "JFK") & (delays["planned_departure_local"] == pd.Timestamp("2013-11-03 17:00"))
    ]
    weather = sources.read_source("weather").to_pandas()
    then = pd.Timestamp("2013-11-03 22:00", tz="UTC")
    expected = weather[(weather["origin"] == "JFK") & (weather["time_hour"] == then)]
    assert len(evening) > 0
    assert len(expected) == 1
    assert set(evening["temp"]) == set(expected["temp"])


def test_the_monthly_reports_add_up_to_the_year(delays: pd.DataFrame, frames: Frames) -> None:
    months = marts.months_of_2013.get_partition_keys()
    assert months[0] == "2013-01-01"
    assert months[-1] == "2013-12-01"
    assert len(months) == 12
    reports = [
        marts.carrier_report(build_asset_context(partition_key=month), delays, frames["raw_airlines"])
        for month in months
    ]
    year = pd.concat(reports)
    assert year["flights"].sum() == 336_776
    assert year["cancelled"].sum() == 8_255
    assert year["late"].sum() == int((delays["arrival_delay_min"] >= 15).sum())
    assert not year["airline"].isna().any()


def test_late_begins_at_a_quarter_of_an_hour() -> None:
    assert marts.is_late(pd.Series([14.0, 15.0, 16.0, None])).tolist() == [False, True, True, False]
