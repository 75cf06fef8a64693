"""What cannot be hashed has no hash and a reason, whatever it is that cannot: nothing is raised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from tests.spark.conftest import NewSession
from ubunye_orchestrate.hashing.api import fingerprint

pytestmark = pytest.mark.spark

DOUBLED_KEYS = pa.MapArray.from_arrays([0, 2, 3], pa.array([1, 1, 2]), pa.array(["a", "b", "c"]))
DOUBLED_ZERO = pa.MapArray.from_arrays([0, 2, 3], pa.array([0.0, -0.0, 2.0]), pa.array(["a", "b", "c"]))


def refused(frame: Any, *said: str) -> None:
    got = fingerprint(frame)
    assert got.data_hash is None
    assert got.lane_sums is None
    assert got.error is not None
    for text in said:
        assert text in got.error


@pytest.mark.parametrize(
    "expression",
    [
        "bad",
        "array('good', null, bad)",
        "map('k', bad)",
        "map(bad, 1)",
        "named_struct('f', array(bad))",
        "array(named_struct('f', bad))",
        "array(array(bad))",
        "map(1, map(2, bad))",
    ],
)
def test_text_that_is_not_valid(new_session: NewSession, expression: str) -> None:
    # Half of a character, and a surrogate as some systems store it.
    for bytes_ in ("61c3", "eda080"):
        frame = new_session().sql(
            f"select id, {expression} as odd from "
            f"(select id, cast(if(id = 3, X'{bytes_}', X'61') as string) as bad from range(5))"
        )
        refused(frame, "'odd'", "1 rows hold text that is not valid Unicode")


def test_valid_text_with_replacement_characters_is_hashed(new_session: NewSession) -> None:
    frame = new_session().sql("select id, concat(cast(X'efbfbd' as string), id) as text from range(3)")
    table = pa.table({"id": [0, 1, 2], "text": ["\ufffd0", "\ufffd1", "\ufffd2"]})
    assert fingerprint(frame).data_hash == fingerprint(table).data_hash


@pytest.mark.parametrize("column", [DOUBLED_KEYS, DOUBLED_ZERO], ids=["equal", "zeros"])
def test_maps_with_equal_keys(new_session: NewSession, tmp_path: Path, column: pa.Array) -> None:
    pq.write_table(pa.table({"m": column}), tmp_path / "maps.parquet")
    refused(new_session().read.parquet(str(tmp_path)), "'m'", "1 rows hold a map with two keys")


def test_columns_of_one_name(new_session: NewSession) -> None:
    refused(new_session().sql("select 1 as a, 2 as a"), "'a'", "2 columns have this name")


def test_a_source_that_fails(new_session: NewSession, tmp_path: Path) -> None:
    session = new_session()
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet")
    frame = session.read.parquet(str(tmp_path))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    # The Connect server of Spark 3.5 does not pass the cause on.
    is_connect = type(session).__module__.startswith("pyspark.sql.connect.")
    refused(frame, "Job aborted" if is_connect and pyspark.__version__ < "4" else "a.parquet")


def test_the_users_own_error(new_session: NewSession) -> None:
    frame = new_session().sql("select id, raise_error('the cupboard is bare') as x from range(3)")
    refused(frame, "java.lang.RuntimeException" if pyspark.__version__ < "4" else "[USER_RAISED_EXCEPTION]")
    assert "cupboard" not in (fingerprint(frame).error or ""), "it may be made of cells"


def test_a_column_that_is_not_there(new_session: NewSession) -> None:
    session = new_session()
    if type(session).__module__.startswith("pyspark.sql.connect."):
        refused(session.range(3).select("nothing"), "Spark cannot say what the frame holds", "nothing")


def test_a_stream(new_session: NewSession) -> None:
    refused(new_session().readStream.format("rate").load(), "a streaming frame has no last row")
