"""What other libraries say goes into records without the cells and secrets that they quote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ubunye_orchestrate.foreign import said, without_values
from ubunye_orchestrate.hashing.api import fingerprint
from ubunye_orchestrate.records.evidence import error_text

SECRET = "ann@secret.example"

SPARK = "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: "


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            f'[CAST_INVALID_INPUT] The value \'{SECRET}\' of the type "STRING" cannot be cast to "INT" '
            "because it is malformed. Use `try_cast` to tolerate it. SQLSTATE: 22018",
            "[CAST_INVALID_INPUT] (types STRING, INT; SQLSTATE 22018)",
        ),
        (f"[USER_RAISED_EXCEPTION] {SECRET} SQLSTATE: P0001", "[USER_RAISED_EXCEPTION] (SQLSTATE P0001)"),
        (f"[DUPLICATED_MAP_KEY] Duplicate map key {SECRET} was found", "[DUPLICATED_MAP_KEY]"),
        (
            f"{SPARK}Lost task 0.3 in stage 3.0 (TID 7) (worker executor 1): "
            "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
            "[DIVIDE_BY_ZERO] (SQLSTATE 22012)",
        ),
        (
            f"{SPARK}Lost task 0.3 in stage 3.0 (TID 7) (worker executor 1): com.shop.CannotParse"
            f"Exception: {SECRET}",
            f"{SPARK}Lost task 0.3 in stage 3.0 (TID 7) (worker executor 1): com.shop.CannotParseException",
        ),
        (
            f"An error occurred while calling o63.save.\n: {SPARK}ExecutorLostFailure (executor 1 exited) "
            f"Reason: code 137\nDriver stacktrace:\n\tat a.b(C)\nCaused by: java.lang.Error: {SECRET}",
            f"{SPARK}ExecutorLostFailure (executor 1 exited) Reason: code 137 (caused by: java.lang.Error)",
        ),
        (
            f"java.lang.RuntimeException: file:/tmp/a-1.parquet is not a Parquet file, {SECRET}",
            "java.lang.RuntimeException: file:/tmp/a-1.parquet",
        ),
        (
            "An exception was thrown from the Python worker. Please see the stack trace below.\nTraceback "
            f'(most recent call last):\n  File "x", line 3, in f\nValueError: {SECRET}\n',
            "An exception was thrown from the Python worker. (ValueError)",
        ),
        (
            "Traceback (most recent call last):\n  ...\nModuleNotFoundError: No module named 'pyarrow'\n"
            "\nThe above exception was the cause of:\n\nTraceback (most recent call last):\n  ...\n"
            "pyspark.errors.PySparkImportError: [PACKAGE_NOT_INSTALLED] PyArrow must be installed\n",
            "(ModuleNotFoundError: No module named 'pyarrow')",
        ),
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved. Did you mean one "
            "of the following? [`a`, `b`]. SQLSTATE: 42703",
            None,
        ),
        ("[PATH_NOT_FOUND] Path does not exist: file:/tmp/x-1/part-0001. SQLSTATE: 42K03", None),
        (
            f"Could not convert '{SECRET}' with type str: tried to convert to int64",
            "Could not convert *** with type str: tried to convert to int64",
        ),
        (
            f"Could not convert <Customer {SECRET}> with type Customer: did not recognize it",
            "Could not convert *** with type Customer: did not recognize it",
        ),
        ("Could not convert 'O'Neil\n'ann' with type str: no", "Could not convert *** with type str: no"),
        (f"could not convert string to float: '{SECRET}\nb'", "could not convert string to float: ***"),
        ("Integer value 300 not in range: -128 to 127", "Integer value *** not in range: *** to ***"),
        (
            f"CSV parse error: Expected 1 columns, got 2: {SECRET},x",
            "CSV parse error: Expected *** columns, got ***",
        ),
        (
            f"Could not parse `{SECRET}` as dtype `i64` at column 'price' (column number 1)",
            "Could not parse *** as dtype `i64` at column 'price' (column number 1)",
        ),
        ("Rescaling decimal(10, 2) would cause data loss in column 'price'", None),
        (
            "Connection to postgres://u:hunter2@db/shop refused",
            "Connection to postgres://u:***@db/shop refused",
        ),
    ],
)
def test_what_helps_is_kept_and_values_are_not(text: str, kept: str | None) -> None:
    assert without_values(text) == (text if kept is None else kept)


def test_several_messages_of_arrow_are_told_one_after_the_other() -> None:
    with pytest.raises(pa.ArrowInvalid) as caught:
        pa.Table.from_pandas(pd.DataFrame({"mail": [1, SECRET]}))
    text = said(caught.value)
    assert text.startswith("ArrowInvalid: Could not convert *** with type str: tried to convert to int64; ")
    assert text.endswith("Conversion failed for column mail with type object")
    assert error_text(caught.value) == text


def test_a_file_is_named() -> None:
    with pytest.raises(OSError, match="No such file") as caught:
        Path("/nowhere/at all").read_text()
    assert said(caught.value) == "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/at all'"


def test_the_users_own_exception_stays_as_it_is() -> None:
    error = ValueError("the shop 'north' sent 3 files")
    assert error_text(error) == "ValueError: the shop 'north' sent 3 files"


def raises(_: Any) -> Any:
    raise ValueError("postgres://u:hunter2@h/db")


@pytest.mark.parametrize(
    "frame",
    [
        duckdb.sql(f"select cast(x as int) a from (values ('{SECRET}')) t(x)"),
        pl.LazyFrame({"x": [SECRET]}).select(a=pl.col("x").cast(pl.Int64)),
        pl.LazyFrame({"x": [1]}).map_batches(raises),
    ],
    ids=["duckdb", "polars", "function"],
)
def test_no_cell_or_secret_stands_in_the_error_of_a_fingerprint(frame: Any) -> None:
    error = fingerprint(frame).error or ""
    assert "before the first row" in error
    assert "Error" in error or "Exception" in error
    assert SECRET not in error
    assert "hunter2" not in error
