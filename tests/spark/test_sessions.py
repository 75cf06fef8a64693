"""Whatever a session is set to, and of whatever kind it is, the hash is that of the rows."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.conftest import NewSession
from tests.spark.frames import spark_frame
from tests.spark.random_tables import random_table
from ubunye_orchestrate.hashing import canonical, rows_v1
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.hashing.types import canonical_columns

pytestmark = pytest.mark.spark

# Each differs in several settings from the others, so that few sessions try many.
SESSIONS: dict[str, dict[str, str]] = {
    "ansi": {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.caseSensitive": "true",
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    },
    "lenient": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "Pacific/Kiritimati",
        "spark.sql.caseSensitive": "false",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.parser.quotedRegexColumnNames": "true",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.jsonGenerator.ignoreNullFields": "false",
        "spark.sql.adaptive.enabled": "false",
    },
    "legacy": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.session.timeZone": "America/Caracas",
        "spark.sql.caseSensitive": "false",
        "spark.sql.legacy.castComplexTypesToString.enabled": "true",
        "spark.sql.legacy.sizeOfNull": "true",
        "spark.sql.legacy.allowNegativeScaleOfDecimal": "true",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
    },
    "interpreted": {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.session.timeZone": "+05:45",
        "spark.sql.caseSensitive": "false",
        "spark.sql.shuffle.partitions": "3",
    },
}
SEEDS = (101, 102)


@cache
def expected(seed: int) -> tuple[pa.Table, str]:
    table = random_table(seed)
    total = rows_v1.LaneSums()
    for batch in table.to_batches():
        total.add(canonical.batch_lines(batch))
    return table, rows_v1.data_hash(total.rows, canonical_columns(table.schema), total.sums)


@pytest.mark.parametrize("settings", SESSIONS.values(), ids=SESSIONS)
def test_random_tables_whatever_the_session(new_session: NewSession, settings: dict[str, str]) -> None:
    session = new_session(**settings)
    for seed in SEEDS:
        table, data_hash = expected(seed)
        got = fingerprint(spark_frame(session, table))
        assert got.error is None
        assert got.data_hash == data_hash


@pytest.mark.parametrize("sensitive", ["true", "false"])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_awkward_names(new_session: NewSession, sensitive: str, ansi: str) -> None:
    session = new_session(**{"spark.sql.caseSensitive": sensitive, "spark.sql.ansi.enabled": ansi})
    names = ["a", "A", "a.b", "`", "a`.`b", "two words", " ", "é", "e\u0301", "\U0001f600", ".*", "'", '"']
    inner = pa.struct([pa.field(name, pa.float64()) for name in names])
    rows = [{name: n + 2.0**60 for n, name in enumerate(names)}, None]
    arrays = [*(pa.array([n, None]) for n in range(len(names))), pa.array(rows, inner)]
    table = pa.Table.from_arrays(arrays, names=[*names, "struct"])
    got = fingerprint(spark_frame(session, table))
    assert got.error is None
    assert got.data_hash == fingerprint(table).data_hash


def test_nulls_of_columns_declared_with_a_default_are_left_out(spark: Any, new_session: NewSession) -> None:
    spark.sql("create table defaults (a int, b int default 7, c double default 0.5) using parquet")
    try:
        spark.sql("insert into defaults values (1, null, null), (2, 3, 1e23)")
        session = new_session()
        frame = session.table("defaults")
        nested = frame.selectExpr("struct(a, b) as s", "array(struct(c)) as l", "b as `B`")
        b, c = pa.array([None, 3], pa.int32()), pa.array([None, 1e23])
        flat = pa.table({"a": pa.array([1, 2], pa.int32()), "b": b, "c": c})
        structs = pa.StructArray.from_arrays([flat["a"].combine_chunks(), b], ["a", "b"])
        lists = pa.array([[{"c": None}], [{"c": 1e23}]])
        for one, table in ((frame, flat), (nested, pa.table({"s": structs, "l": lists, "B": b}))):
            got = fingerprint(one)
            assert got.error is None
            assert got.data_hash == fingerprint(table).data_hash
    finally:
        spark.sql("drop table defaults")
