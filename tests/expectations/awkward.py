"""One awkward table, and how often it breaks each rule: what every engine has to find."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from ubunye_orchestrate.expectations.declare import expect
from ubunye_orchestrate.expectations.rules import Rule

__all__ = ["NAMES", "TYPES", "by_name", "encoded", "named_rules", "named_sums", "values_table"]

NAN = float("nan")

NAMES = (
    *("a.b", "a", "A", "x`y", "sp ace", "*", "^x$", "x", "^.*$", "`x`", 'q"q', "'", "é", "e\u0301", "日本"),
    *(
        "c0",
        "c1",
        "rows",
        "failed",
        "count",
        "select",
        "1",
        "#1",
        "a\\b",
        "new\nline",
        "$x",
        "{x}",
        "%s",
        "_",
    ),
)
"""``a`` is a struct that has a field ``b``; the others hold whole numbers, no two of them alike."""


def by_name() -> pa.Table:
    """Return eight rows: columns have other numbers of nulls and of values above 5, and none the same sum."""
    columns: list[pa.Array] = []
    for at, name in enumerate(NAMES):
        if name == "a":
            columns.append(pa.array([{"b": n} for n in range(8)]))
        else:
            nulls, above = _broken(at)
            columns.append(pa.array([None] * nulls + [100 + at] * above + list(range(8 - nulls - above))))
    # Names of ours, until each engine has named them as it can.
    return pa.Table.from_arrays(columns, names=[f"n{at}" for at in range(len(NAMES))])


def named_rules() -> list[tuple[Rule, int]]:
    found: list[tuple[Rule, int]] = []
    for at, name in enumerate(NAMES):
        if name == "a":
            found.append((expect.not_null(name), 0))
            continue
        nulls, above = _broken(at)
        alike = (nulls if nulls > 1 else 0) + (above if above > 1 else 0)
        found += [
            (expect.not_null(name), nulls),
            (expect.between(name, max=5), above),
            (expect.unique(name), alike),
        ]
    found.append((expect.unique("*", "^x$", "A", "a.b"), 0))
    found.append((expect.one_of("a.b", range(8)), _broken(0)[1]))
    return found


def named_sums() -> dict[str, int]:
    sums = {}
    for at, name in enumerate(NAMES):
        nulls, above = _broken(at)
        sums[name] = above * (100 + at) + sum(range(8 - nulls - above))
    del sums["a"]
    return sums


def _broken(at: int) -> tuple[int, int]:
    return 1 + at % 4, 1 + (at // 4) % 4


# Name -> Arrow's type, eight values, and each rule with how many rows break it.
TYPES: dict[str, tuple[pa.DataType, Sequence[Any], list[tuple[Rule, int]]]] = {
    "int8": (
        pa.int8(),
        [1, 2, None, 2, -128, 127, None, 0],
        [
            (expect.not_null("int8"), 2),
            (expect.unique("int8"), 4),
            (expect.between("int8", -1000, 1000), 0),
            (expect.between("int8", 1000), 6),
            (expect.between("int8", max=-1000), 6),
            (expect.one_of("int8", [1, 2, 1000, -1000, 0.5]), 3),
            (expect.one_of("int8", [1000]), 6),
            (expect.one_of("int8", [0.5]), 6),
        ],
    ),
    "int64": (
        pa.int64(),
        [2**53, 2**53 + 1, None, 1, 1, 2**63 - 1, -(2**63), 0],
        [
            (expect.not_null("int64"), 1),
            (expect.unique("int64"), 2),
            (expect.between("int64", -(10**30), 10**30), 0),
            (expect.between("int64", 10**30), 7),
            (expect.between("int64", 0.5, 2**53), 4),
            (expect.one_of("int64", [2**53, 1.5, 10**30]), 6),
            (expect.one_of("int64", [Decimal("9007199254740993"), Decimal("0.0")]), 5),
        ],
    ),
    "float64": (
        pa.float64(),
        [0.0, -0.0, NAN, None, 1.5, float("inf"), float("-inf"), 1.5],
        [
            (expect.not_null("float64"), 2),
            (expect.unique("float64"), 6),
            (expect.unique("float64", "text"), 0),
            (expect.unique("float64", "bool"), 4),
            (expect.between("float64", 0), 1),
            (expect.between("float64", max=0), 3),
            (expect.between("float64", -0.0, 0), 4),
            (expect.one_of("float64", [0]), 4),
            (expect.one_of("float64", [-0.0]), 4),
            (expect.one_of("float64", [-0.0, *range(1, 20)]), 4),
            (expect.one_of("float64", [*range(20), 1.5]), 2),
        ],
    ),
    "zeros": (
        pa.float64(),
        [-0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0],
        [(expect.unique("zeros"), 2), (expect.unique("zeros", "void"), 2), (expect.not_null("zeros"), 0)],
    ),
    "float32": (
        pa.float32(),
        [0.1, 0.2, NAN, None, -0.0, 0.0, 0.1, 3.0],
        [
            (expect.not_null("float32"), 2),
            (expect.unique("float32"), 6),
            (expect.between("float32", 0.1, 0.2), 3),
            (expect.one_of("float32", [0.1, 0]), 2),
            (expect.one_of("float32", [-0.0]), 4),
        ],
    ),
    "decimal": (
        pa.decimal128(5, 2),
        [
            Decimal("1.10"),
            Decimal("1.1"),
            None,
            Decimal("-0.00"),
            Decimal(0),
            Decimal("999.99"),
            None,
            Decimal(2),
        ],
        [
            (expect.not_null("decimal"), 2),
            (expect.unique("decimal"), 6),
            (expect.between("decimal", Decimal("1.100"), 2), 3),
            (expect.between("decimal", 1.101, 2), 5),
            (expect.between("decimal", max=Decimal("1.1049")), 2),
            (expect.between("decimal", -(10**30), 10**30), 0),
            (expect.one_of("decimal", [1.1, 0]), 2),
            (expect.one_of("decimal", [1.101, 2]), 5),
            (expect.one_of("decimal", [10**30, "2.00"]), 5),
        ],
    ),
    "text": (
        pa.string(),
        ["a", "A", None, "", "a\n", "é", "e\u0301", "nan"],
        [
            (expect.not_null("text"), 1),
            (expect.unique("text"), 0),
            (expect.between("text", "A", "b"), 4),
            (expect.one_of("text", ["a", "é", ""]), 4),
            (expect.matches("text", "[a-z]*"), 4),
            (expect.matches("text", ".."), 6),
        ],
    ),
    "bool": (
        pa.bool_(),
        [True, True, None, None, False, False, False, True],
        [(expect.not_null("bool"), 2), (expect.unique("bool"), 8), (expect.one_of("bool", [True]), 3)],
    ),
    "date": (
        pa.date32(),
        [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None, dt.date(1, 1, 1), *[dt.date(2024, 1, 1)] * 3, None],
        [
            (expect.not_null("date"), 2),
            (expect.unique("date"), 6),
            (expect.between("date", dt.date(2024, 1, 1), dt.date(2024, 1, 1)), 2),
            (expect.one_of("date", [dt.date(2024, 1, 1)]), 2),
        ],
    ),
    "moment": (
        pa.timestamp("us"),
        [
            dt.datetime(2024, 1, 1, 12),
            None,
            *[dt.datetime(2024, 1, 2)] * 3,
            *[dt.datetime(2024, 1, 3, 0, 0, 0, 1)] * 3,
        ],
        [
            (expect.not_null("moment"), 1),
            (expect.unique("moment"), 6),
            (expect.between("moment", dt.date(2024, 1, 1), dt.date(2024, 1, 3)), 3),
            (expect.one_of("moment", [dt.datetime(2024, 1, 2), dt.date(2024, 1, 1)]), 4),
        ],
    ),
    "millis": (
        pa.timestamp("ms"),
        [dt.datetime(2024, 1, 1), None, *[dt.datetime(2024, 1, 2)] * 3, *[dt.datetime(2024, 1, 3)] * 3],
        [
            (
                expect.between(
                    "millis", dt.datetime(2024, 1, 1, 0, 0, 0, 500), dt.datetime(2024, 1, 2, 0, 0, 0, 999)
                ),
                4,
            ),
            (expect.one_of("millis", [dt.datetime(2024, 1, 1, 0, 0, 0, 500), dt.datetime(2024, 1, 2)]), 4),
            (expect.one_of("millis", [dt.datetime(2024, 1, 1, 0, 0, 0, 500)]), 7),
            (expect.between("millis", min=dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)), 7),
        ],
    ),
    "seconds": (
        pa.timestamp("s"),
        [dt.datetime(2024, 1, 1), None, *[dt.datetime(2024, 1, 2)] * 3, *[dt.datetime(2024, 1, 3)] * 3],
        [
            (
                expect.between(
                    "seconds", dt.datetime(2024, 1, 1, 0, 0, 0, 500), dt.datetime(2024, 1, 2, 0, 0, 0, 999)
                ),
                4,
            ),
            (expect.one_of("seconds", [dt.datetime(2024, 1, 1, 0, 0, 0, 500), dt.datetime(2024, 1, 2)]), 4),
        ],
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 1, n + 1, 12, tzinfo=dt.timezone.utc) for n in range(7)] + [None],
        [
            (expect.not_null("instant"), 1),
            (expect.unique("instant"), 0),
            (expect.between("instant", "2024-01-01T13:00:00+01:00", "2024-01-03T12:00:00+00:00"), 4),
            (expect.one_of("instant", ["2024-01-01T13:00:00+01:00"]), 6),
        ],
    ),
    "bytes": (
        pa.binary(),
        [b"a", b"a", None, b"", b"\x00", b"\x00", b"b", None],
        [(expect.not_null("bytes"), 2), (expect.unique("bytes"), 6)],
    ),
    "void": (
        pa.null(),
        [None] * 8,
        [
            (expect.not_null("void"), 8),
            (expect.unique("void"), 8),
            (expect.unique("void", "text"), 0),
            (expect.between("void", 0), 0),
            (expect.one_of("void", ["a"]), 0),
            (expect.matches("void", "a"), 0),
        ],
    ),
}


def values_table(*without: str) -> tuple[pa.Table, list[tuple[Rule, int]]]:
    """Return the table of the types, and its rules; without those that an engine has no column of."""
    kept = {name: given for name, given in TYPES.items() if name not in without}
    table = pa.table({name: pa.array(values, kind) for name, (kind, values, _) in kept.items()})
    return table, [case for _, _, cases in kept.values() for case in cases]


def encoded() -> dict[str, tuple[pa.Array, list[tuple[Rule, int]]]]:
    """Return the columns whose nulls their own bitmap does not tell, or that Arrow hardly computes with."""
    values = [1, 1, None, 7, None, 2]
    cases = [
        (expect.not_null("key"), 2),
        (expect.unique("key"), 4),
        (expect.unique("key", "other"), 0),
        (expect.between("key", 0, 5), 1),
        (expect.one_of("key", [1, 2]), 1),
    ]
    texts = ["a", "a", None, "b", None, "c"]
    text_cases = [
        (expect.not_null("key"), 2),
        (expect.unique("key"), 4),
        (expect.unique("key", "other"), 0),
        (expect.between("key", "a", "b"), 1),
        (expect.one_of("key", ["a", "c"]), 1),
        (expect.matches("key", "[ac]"), 1),
    ]
    runs = pa.array([2, 3, 4, 5, 6], pa.int32())
    index = pa.array([0, 0, 1, 2, None, 3], pa.int8())
    numbers = pa.array([1, None, 7, 2])
    halves = [0.1, 0.1, None, 7, NAN, 0.2]
    half_cases = [
        (expect.not_null("key"), 2),
        (expect.unique("key"), 4),
        (expect.between("key", 0.1, 0.2), 1),
        (expect.between("key", 0.1, 7), 0),
        (expect.one_of("key", [0.1, 7]), 1),
    ]
    kinds = pa.array([0, 0, 1, 0, 0, 1], pa.int8())
    return {
        "runs": (pa.RunEndEncodedArray.from_arrays(runs, pa.array([1, None, 7, None, 2])), cases),
        "runs of texts": (
            pa.RunEndEncodedArray.from_arrays(runs, pa.array(["a", None, "b", None, "c"])),
            text_cases,
        ),
        "dictionary": (pa.DictionaryArray.from_arrays(index, numbers), cases),
        "dictionary of texts": (
            pa.DictionaryArray.from_arrays(index, pa.array(["a", None, "b", "c"])),
            text_cases,
        ),
        "dictionary with its value twice": (
            pa.DictionaryArray.from_arrays(
                pa.array([0, 1, 2, 3, None, 4]), pa.array(["a", "a", None, "b", "c"])
            ),
            text_cases,
        ),
        "runs of a dictionary": (
            pa.RunEndEncodedArray.from_arrays(
                runs, pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 3], pa.int8()), numbers)
            ),
            cases,
        ),
        "sparse union": (
            pa.UnionArray.from_sparse(kinds, [pa.array(values), pa.array([0, 0, None, 0, 0, 2])]),
            cases,
        ),
        "dense union": (
            pa.UnionArray.from_dense(
                kinds,
                pa.array([0, 1, 0, 2, 3, 1], pa.int32()),
                [pa.array([1, 1, 7, None]), pa.array([None, 2])],
            ),
            cases,
        ),
        "view": (pa.array(texts, pa.string_view()), text_cases),
        "large": (pa.array(texts, pa.large_string()), text_cases),
        "dictionary of views": (
            pa.DictionaryArray.from_arrays(index, pa.array(["a", None, "b", "c"], pa.string_view())),
            text_cases,
        ),
        "half": (
            pa.array([None if one is None else np.float16(one) for one in halves], pa.float16()),
            half_cases,
        ),
        "decimal32": (
            pa.array([None if one is None else Decimal(one) for one in values], pa.decimal32(5, 2)),
            cases,
        ),
        "decimal64": (
            pa.array([None if one is None else Decimal(one) for one in values], pa.decimal64(9, 2)),
            cases,
        ),
        "decimal256": (
            pa.array([None if one is None else Decimal(one) for one in values], pa.decimal256(50, 2)),
            cases,
        ),
        "days as milliseconds": (
            pa.array([None if one is None else dt.date(2024, 1, one) for one in values], pa.date64()),
            [
                (expect.not_null("key"), 2),
                (expect.unique("key"), 4),
                (expect.between("key", dt.date(2024, 1, 1), dt.date(2024, 1, 5)), 1),
                (expect.one_of("key", [dt.date(2024, 1, 1)]), 2),
            ],
        ),
        "extension": (
            pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "text", "ours"), pa.array(texts)),
            text_cases,
        ),
    }
