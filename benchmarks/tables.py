"""The tables that are hashed, drawn from a seed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["TABLES", "few_floats", "floats", "mixed", "nested"]


def mixed(rows: int) -> pa.Table:
    """Ten columns as a business table has them; one text has nulls, quotes, backslashes and tabs."""
    random = np.random.default_rng(1)
    cities = np.array(["Lagos", "Cape Town", "Zürich", "São Paulo", "New York", "Oslo", "x", "Addis Ababa"])
    notes = np.array(['said "yes"', "C:\\temp", "nothing to say", "a\tb", "ok"], dtype=object)
    note = notes[random.integers(0, len(notes), rows)]
    note[random.random(rows) < 0.2] = None
    return pa.table(
        {
            "id": np.arange(10_000_000, 10_000_000 + rows),
            "quantity": random.integers(-1000, 100_000, rows).astype(np.int32),
            "price": np.round(random.random(rows) * 1000, 2),
            "ratio": random.random(rows),
            "paid": random.random(rows) < 0.5,
            "ordered_at": pa.array(random.integers(0, 2 * 10**15, rows)).view(pa.timestamp("us", "UTC")),
            "due": pa.array(random.integers(0, 20_000, rows).astype(np.int32)).view(pa.date32()),
            "city": cities[random.integers(0, len(cities), rows)],
            "code": np.char.add("C", random.integers(0, 10**6, rows).astype(str)),
            "note": pa.array(note, pa.string()),
        }
    )


def floats(rows: int) -> pa.Table:
    """Doubles and floats in and out of the range that is written plain."""
    random = np.random.default_rng(2)
    return pa.table(
        {
            "large": random.random(rows) * 1e9 + 1e7,
            "small": random.random(rows) * 1e-7,
            "normal": random.standard_normal(rows),
            "any": np.exp(random.random(rows) * 200 - 100),
            "single": (random.random(rows) * 1e9 + 1e7).astype(np.float32),
        }
    )


def few_floats(rows: int, scale: float) -> pa.Table:
    """One column of doubles with few digits, such as 1.2e9 for the scale 1e9."""
    random = np.random.default_rng(3)
    return pa.table({"x": np.round(random.random(rows) * 9 + 1, 1) * scale})


def nested(rows: int) -> pa.Table:
    """A struct, a list, a list of structs and a map beside a key."""
    random = np.random.default_rng(4)
    offsets = pa.array(np.concatenate(([0], np.cumsum(random.integers(0, 5, rows)))).astype(np.int32))
    elements = offsets[-1].as_py()
    words = np.array(["red", "green", "blue"])
    point = pa.StructArray.from_arrays(
        [
            pa.array(random.integers(0, 1000, rows)),
            pa.array(random.random(rows)),
            pa.array(words[random.integers(0, 3, rows)]),
        ],
        ["x", "y", "colour"],
    )
    lines = pa.StructArray.from_arrays(
        [pa.array(random.integers(0, 1000, elements)), pa.array(words[random.integers(0, 3, elements)])],
        ["number", "colour"],
    )
    keys = pa.array(np.char.add("k", (np.arange(elements) % 97).astype(str)))
    return pa.table(
        {
            "id": np.arange(rows),
            "point": point,
            "sizes": pa.ListArray.from_arrays(offsets, pa.array(random.integers(0, 10**6, elements))),
            "lines": pa.ListArray.from_arrays(offsets, lines),
            "measures": pa.MapArray.from_arrays(offsets, keys, pa.array(random.random(elements))),
        }
    )


TABLES = {"mixed": mixed, "floats": floats, "nested": nested}
