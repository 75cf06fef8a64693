"""The monthly report once more, computed by Spark: the same rows, so the same hash. Off by default.

``UBUNYE_EXAMPLE_SPARK=1`` adds it to the project (``definitions.py``); it needs a Java.
"""

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from dagster import AssetExecutionContext, asset

from example_project.assets.marts import months_of_2013
from ubunye_orchestrate import SparkResource

COLUMNS = ["carrier", "cancelled", "diverted", "arrival_delay_min", "precip"]

REPORT = """
select
  carrier, flights, cancelled, diverted, arrived, late,
  rint(10 * try_divide(100 * late, arrived)) / 10 as late_percent,
  rint(10 * mean_delay) / 10 as mean_delay_min,
  median_delay_min,
  rint(10 * mean_delay_in_rain) / 10 as mean_delay_in_rain_min,
  name as airline
from (
  select
    carrier,
    count(*) as flights,
    count_if(cancelled) as cancelled,
    count_if(diverted) as diverted,
    count(delay) as arrived,
    count_if(delay >= 15) as late,
    avg(delay) as mean_delay,
    percentile(delay, 0.5) as median_delay_min,
    avg(delay) filter (where precip > 0) as mean_delay_in_rain
  from (select *, cast(arrival_delay_min as double) as delay from {flights})
  group by carrier
) left join {airlines} using (carrier)
"""


@asset(
    group_name="marts",
    kinds={"spark", "parquet"},
    owners=["team:flight-analytics"],
    tags={"domain": "delays", "cadence": "monthly"},
    partitions_def=months_of_2013,
    io_manager_key="spark_io_manager",
)
def carrier_report_on_spark(
    context: AssetExecutionContext,
    delays_with_weather: pa.Table,
    raw_airlines: pa.Table,
    spark: SparkResource,
) -> Any:
    """One month by New York's calendar, a row per carrier, as ``carrier_report`` has it."""
    first = pd.Timestamp(context.partition_key)
    local = delays_with_weather["planned_departure_local"]
    month = pc.and_(
        pc.greater_equal(local, pa.scalar(first, local.type)),
        pc.less(local, pa.scalar(first + pd.offsets.MonthBegin(), local.type)),
    )
    session: Any = spark.session
    flights = session.createDataFrame(delays_with_weather.select(COLUMNS).filter(month))
    return session.sql(REPORT, flights=flights, airlines=session.createDataFrame(raw_airlines))
