"""One row to its line, as one expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from ubunye_orchestrate.errors import HashError
from ubunye_orchestrate.hashing.spark.session import JsonWriter
from ubunye_orchestrate.hashing.spark.sql import any_known, case, concat, json_text, literal
from ubunye_orchestrate.hashing.spark.types import SparkType
from ubunye_orchestrate.hashing.spark.values import (
    FLOATS,
    TIMES,
    ValueTexts,
    may_hold_unsafe_float,
    members_of_floats,
    one_may_be_unsafe,
    without_last,
)

__all__ = ["Column", "Line", "columns_of", "line_of", "runs_of_floats"]

_COMPILED_FLOATS = 10
"""Columns of floats that may be written one by one, at some 600 bytes of a row's code each."""


@dataclass(frozen=True)
class Column:
    """A column of a frame, and what an expression calls it."""

    name: str
    """Its own name."""

    type: SparkType

    place: str
    """Its own name in backquotes; or its place (``c0`` and so on), by which the frame's columns have been
    renamed where Spark could not tell their names, such as those that differ only in case."""

    accessible: str
    """An expression of it whose fields can be named, as ``accessible_type`` says."""

    accessible_type: SparkType


@dataclass(frozen=True)
class Line:
    """Expressions of a row's line."""

    text: str
    """The line; where ``has_marks`` holds, with floats between marks that are to be written anew."""

    has_marks: str | None = None
    """Whether this row's line may have some; None where no row's has."""


def columns_of(
    columns: list[tuple[str, SparkType]], writer: JsonWriter, *, by_name: bool = False
) -> list[Column]:
    """Place the columns of a frame, and return them sorted by name (by code point).

    ``by_name`` leaves them their names, which must then be such as ``types.can_be_named`` admits.

    Raises HashError for a user-defined type where its storage would have to be looked into.
    """
    placed = []
    for n, (name, t) in enumerate(columns):
        if t.has(lambda inside: _is_out_of_reach(inside, writer)):
            raise HashError(
                "a user-defined type whose storage Spark lets no expression look into, as this session would "
                "need; convert it to plain columns (such as vector_to_array does) before it is stored",
                column=name,
                type_name=t.name,
            )
        place = f"`{name}`" if by_name else f"c{n}"
        if t.accessible:
            placed.append(Column(name, t, place, place, t))
        else:
            placed.append(Column(name, t, place, f"cast({place} as {t.sql})", t.cast()))
    return sorted(placed, key=lambda column: column.name)


def _is_out_of_reach(t: SparkType, writer: JsonWriter) -> bool:
    looked_into = {"string", "map"}
    looked_into |= set() if writer.floats else set(FLOATS)
    looked_into |= set() if writer.times else set(TIMES)
    return t.opaque and t.holds(*looked_into)


def runs_of_floats(columns: list[Column]) -> dict[str, list[Column]]:
    """Return runs of columns of floats of one kind, each with a name for the column of their texts.

    Each is a run of its own where there are so few that the JVM compiles the code of them all.
    """
    floats = [column for column in columns if column.type.kind in FLOATS]
    if len(floats) <= _COMPILED_FLOATS:
        runs = [[column] for column in floats]
    else:
        by_kind = groupby(columns, key=lambda column: column.type.kind)
        runs = [list(run) for kind, run in by_kind if kind in FLOATS]
    # With spaces, as no column has them that goes by its own name.
    return {f"texts from {run[0].place.strip('`')}": run for run in runs}


def line_of(columns: list[Column], writer: JsonWriter, *, with_texts: bool = False) -> Line:
    """Return the line of a row of some columns sorted by name: null fields left out.

    On a JVM that writes some floats wrong, rows with such a float are written piece by piece (see
    ``ValueTexts``), the others by the JSON writer as ever. ``with_texts`` says that the frame has a column of
    the texts of each of the ``runs_of_floats``: a text for a run of one, else an array of them.
    """
    texts = ValueTexts(writer)
    by_json_writer = _object_of_json_writer(columns, texts)
    floats = [] if writer.floats else [column for column in columns if column.type.holds(*FLOATS)]
    if not floats:
        return Line(by_json_writer)
    members = concat(*_members(columns, texts, runs_of_floats(columns) if with_texts else {}))
    pieces = concat(literal("{"), f"substring({members}, 2)", literal("}"))
    line = case((_may_be_unsafe(floats), pieces), otherwise=by_json_writer)
    with_marks = [c for c in floats if not (with_texts and c.type.kind in FLOATS)]
    return Line(line, _may_be_unsafe(with_marks) if with_marks else None)


def _may_be_unsafe(columns: list[Column]) -> str:
    flat = {kind: [c.accessible for c in columns if c.type.kind == kind] for kind in FLOATS}
    nested = [c for c in columns if c.type.kind not in FLOATS]
    conditions = [
        *(one_may_be_unsafe(xs, kind) for kind, xs in flat.items() if xs),
        *(may_hold_unsafe_float(c.accessible, c.accessible_type) for c in nested),
    ]
    return any_known(conditions) or "false"


def _object_of_json_writer(columns: list[Column], texts: ValueTexts, *first: str) -> str:
    fields = [
        *first,
        *(f"{literal(column.name)}, {_value_of_json_writer(column, texts)}" for column in columns),
    ]
    return json_text(f"named_struct({', '.join(fields)})") if fields else literal("{}")


def _value_of_json_writer(column: Column, texts: ValueTexts) -> str:
    if column.type.has_default:
        # An expression that is not a bare name: the writer must not see the declaration.
        value = texts.writable(column.accessible, column.accessible_type)
        return case((f"{column.place} is not null", value))
    if not texts.rewrites(column.type):
        return column.place
    return texts.writable(column.accessible, column.accessible_type)


def _members(columns: list[Column], texts: ValueTexts, runs: dict[str, list[Column]]) -> Iterator[str]:
    """Yield the members of a line in runs, each with a comma before it and empty where all is null."""
    run_of = {column: f"`{name}`" for name, run in runs.items() for column in run}

    def by_itself(column: Column, anew: str | None = None) -> str:
        member = texts.member(column.name, column.accessible, column.accessible_type, anew=anew)
        return f"coalesce({concat(literal(','), member)}, '')"

    for (name, holds_floats), group in groupby(
        columns, key=lambda column: (run_of.get(column), column.type.holds(*FLOATS))
    ):
        run = list(group)
        if name is not None:
            yield by_itself(run[0], name) if len(run) == 1 else members_of_floats([c.name for c in run], name)
        elif holds_floats:
            yield from map(by_itself, run)
        else:
            # A field before them, so that each of theirs has its comma: {"":0,"a":1}
            written = _object_of_json_writer(run, texts, f"{literal('')}, 0")
            yield f"substring({without_last(written, '}')}, 6)"
