"""Wall-clock readings to instants: the part of cleaning that is easy to get wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["clock_time", "next_reading", "utc", "wall_clock"]


def clock_time(hhmm: pd.Series[Any]) -> pd.Series[Any]:
    """Turn readings such as 517 or 2359 into time since midnight; 2400 is a whole day, null stays null."""
    minutes = hhmm // 100 * 60 + hhmm % 100
    return pd.to_timedelta(minutes, unit="min").astype("timedelta64[us]")


def _by_zone(zones: pd.Series[Any]) -> Iterator[tuple[str, pd.Series[Any]]]:
    """Yield each time zone and the mask of its rows; pandas converts one zone at a time."""
    for zone in zones.dropna().unique():
        yield zone, zones == zone


def utc(wall: pd.Series[Any], zones: pd.Series[Any]) -> pd.Series[Any]:
    """Say which instants (UTC) the wall-clock times ``wall`` (no zone) are in their ``zones``.

    A reading that occurs twice, in the night the clock goes back, is taken for its first occurrence; one that
    never occurs, in the night it goes forward, for the moment the clock jumped to. Null where the time or the
    zone is null.
    """
    instants = pd.Series(pd.NaT, index=wall.index, dtype="datetime64[us, UTC]")
    for zone, here in _by_zone(zones):
        local = wall[here]
        instants[here] = local.dt.tz_localize(
            zone, ambiguous=np.ones(len(local), dtype=bool), nonexistent="shift_forward"
        ).dt.tz_convert("UTC")
    return instants


def wall_clock(instants: pd.Series[Any], zones: pd.Series[Any]) -> pd.Series[Any]:
    """Say what the clock on the wall shows (no zone) at the ``instants`` (UTC) in their ``zones``."""
    wall = pd.Series(pd.NaT, index=instants.index, dtype="datetime64[us]")
    for zone, here in _by_zone(zones):
        wall[here] = instants[here].dt.tz_convert(zone).dt.tz_localize(None)
    return wall


def next_reading(after: pd.Series[Any], hhmm: pd.Series[Any]) -> pd.Series[Any]:
    """Return the first wall-clock time not before ``after`` at which the clock reads ``hhmm``.

    This is what rolls over midnight: 23:59 followed by a reading of 344 is 3:44 the next day.
    """
    same_day: pd.Series[Any] = after.dt.normalize() + clock_time(hhmm)
    next_day = pd.to_timedelta((same_day < after).astype("int64"), unit="D").astype("timedelta64[us]")
    return same_day + next_day
