"""A fingerprint as a step of a record."""

from __future__ import annotations

import pytest

from ubunye_orchestrate.hashing.fingerprint import Fingerprint
from ubunye_orchestrate.records.model import Producer
from ubunye_orchestrate.records.steps import step_from_fingerprint, step_without_hash

HASHED = Fingerprint(
    data_hash="sha256:d",
    schema_hash="sha256:s",
    row_count=3,
    lane_sums=(2**64 - 1, 0),
    columns=(("id", "int64"),),
    error=None,
    seconds=0.12345678,
    path_taken="pyarrow",
)
FAILED = Fingerprint(
    data_hash=None,
    schema_hash=None,
    row_count=3,
    lane_sums=None,
    columns=(),
    error="column 'token=abc' (interval): not defined",
    seconds=0.1,
    path_taken="reference",
)


def test_a_hashed_table() -> None:
    producer = Producer(partition="2024-01-01", storage_id=7, run_id="r")
    step = step_from_fingerprint(
        "raw/flights",
        "input",
        HASHED,
        format="parquet",
        location="s3://k:secret@b/x",
        scope="stored_partition",
        producer=[producer],
        source_version={"kind": "none", "reason": "a pickle"},
        reused_from="r-1",
    )
    assert (step.name, step.direction, step.format) == ("raw/flights", "input", "parquet")
    assert step.location == "s3://k:***@b/x"
    assert (step.row_count, step.schema_hash, step.data_hash) == (3, "sha256:s", "sha256:d")
    assert step.lane_sums == ("18446744073709551615", "0")
    assert (step.hash_method, step.hash_basis, step.hash_scope) == (
        "rows-v1",
        "materialised",
        "stored_partition",
    )
    assert (step.hash_seconds, step.hash_reused_from, step.hash_path) == (0.123457, "r-1", "pyarrow")
    assert step.columns == [("id", "int64")]
    assert step.producer == [producer]
    assert step.source_version == {"kind": "none", "reason": "a pickle"}


@pytest.mark.parametrize("basis", ["materialised", "recomputed"])
def test_a_table_without_a_hash_claims_neither_basis_nor_scope(basis: str) -> None:
    step = step_from_fingerprint(
        "x",
        "output",
        FAILED,
        format=None,
        location=None,
        scope="stored_table",
        basis=basis,  # type: ignore[arg-type]
    )
    assert (step.data_hash, step.hash_basis, step.hash_scope, step.lane_sums) == (None, None, None, None)
    assert (step.row_count, step.columns) == (3, None)
    # What was tried is said, and the reason, without secrets.
    assert step.hash_method == "rows-v1"
    assert step.hash_error == "column 'token=***' (interval): not defined"


def test_a_step_that_was_never_made_has_no_reason_either() -> None:
    step = step_without_hash("x", "output")
    assert (step.data_hash, step.hash_method, step.hash_error) == (None, None, None)
    told = step_without_hash("x", "input", reason="password=x", row_count=2, location="/x", format="pickle")
    assert (told.hash_error, told.row_count, told.location, told.format) == (
        "password=***",
        2,
        "/x",
        "pickle",
    )
