"""Where two tables that should be equal differ: which columns, how many rows, and on request which rows.

Two passes over each table, in bounded memory. The first takes the digest of every row and finds those that
only one side has; the second looks at these rows alone, for the columns in which they differ. (A row that
both have adds the same to both sides of every column's sums, so leaving it out changes no answer.)
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ubunye_orchestrate.errors import ConfigurationError, HashError
from ubunye_orchestrate.hashing import canonical, lines
from ubunye_orchestrate.hashing.digests import Digests, Lanes, Unmatched, lanes_of_lines, unmatched
from ubunye_orchestrate.hashing.frames import NTZ, ArrowStream, arrow_stream, known_row_count
from ubunye_orchestrate.hashing.portions import Portions
from ubunye_orchestrate.hashing.rows_v1 import LaneSums
from ubunye_orchestrate.hashing.tally import chosen_path
from ubunye_orchestrate.hashing.types import canonical_columns

__all__ = ["MOST_EXAMPLES", "Difference", "explain_difference"]

MOST_EXAMPLES = 10
"""The most example rows that are given of each side."""


@dataclass(frozen=True)
class Difference:
    """In what two tables differ. Rows are held against each other by the columns that both have."""

    rows_a: int
    """Number of rows of the first table."""

    rows_b: int
    """Number of rows of the second table."""

    columns_only_in_a: tuple[tuple[str, str], ...]
    """Name and canonical type of the columns that only the first table has."""

    columns_only_in_b: tuple[tuple[str, str], ...]
    """Name and canonical type of the columns that only the second table has."""

    retyped: tuple[tuple[str, str, str], ...]
    """Name, type in the first and type in the second table, of columns whose canonical type differs."""

    compared: tuple[str, ...]
    """The columns by which rows were held against each other: those of one name."""

    rows_only_in_a: int
    """Rows that the first table has and the second has not; of equal rows, how many more it has."""

    rows_only_in_b: int
    """Rows that the second table has and the first has not; of equal rows, how many more it has."""

    columns_that_differ: tuple[str, ...]
    """The columns, of those compared, whose values differ as a whole, whatever the order of rows.

    Empty although rows differ: the same values stand in other rows.
    """

    examples_a: tuple[str, ...]
    """Canonical lines of rows that only the first table has, each once; none unless asked for."""

    examples_b: tuple[str, ...]
    """Canonical lines of rows that only the second table has, each once; none unless asked for."""

    @property
    def equal(self) -> bool:
        """Whether the tables have the same data hash."""
        columns = self.columns_only_in_a or self.columns_only_in_b or self.retyped
        return not (columns or self.rows_only_in_a or self.rows_only_in_b)

    def __str__(self) -> str:
        """Say it in a few lines, one for each thing that differs."""
        if self.equal:
            return f"equal: {_rows(self.rows_a)}"
        said = [f"{_rows(self.rows_a)} in the first, {self.rows_b:,} in the second"]
        said += [f"column {name!r} ({kind}) is only in the first" for name, kind in self.columns_only_in_a]
        said += [f"column {name!r} ({kind}) is only in the second" for name, kind in self.columns_only_in_b]
        said += [f"column {name!r} is {a} in the first, {b} in the second" for name, a, b in self.retyped]
        if self.rows_only_in_a or self.rows_only_in_b:
            said.append(
                f"{_rows(self.rows_only_in_a)} only in the first, {self.rows_only_in_b:,} only in the second"
            )
            names = ", ".join(map(repr, self.columns_that_differ))
            said.append(
                f"values differ in: {names}"
                if names
                else "no column differs as a whole: the same values stand in other rows"
            )
        else:
            said.append("the rows are the same in the columns that both have")
        for which, examples in (("first", self.examples_a), ("second", self.examples_b)):
            said += [f"only in the {which}: {line}" for line in examples]
        return "\n".join(said)


def explain_difference(a: object, b: object, *, examples: int = 0, naive_timestamps: str = NTZ) -> Difference:
    """Tell in what two tables differ; frames of any kinds that ``fingerprint`` takes, of two kinds too.

    ``examples`` is how many rows of each side to show, at most ``MOST_EXAMPLES``; they are the only data in
    the result, and nothing is logged. Each frame is read twice. What can be read once, or would be computed
    twice (readers, lazy frames, relations, datasets) is read once and kept as an Arrow file in a temporary
    folder, of the size of its rows, until this returns. Beside it stand 16 bytes for each row once there are
    more than a million; memory is bounded by about a 256th of these and some batches.

    Raises HashError, saying which frame, where one cannot be read or hashed; ConfigurationError for a setting
    that cannot work.
    """
    if not 0 <= examples <= MOST_EXAMPLES:
        raise ConfigurationError(f"examples={examples}: expected a number from 0 to {MOST_EXAMPLES}")
    with tempfile.TemporaryDirectory(prefix="ubunye-difference-") as folder:
        first = _Side("first", a, Path(folder) / "a", naive_timestamps)
        second = _Side("second", b, Path(folder) / "b", naive_timestamps)
        compared = sorted(first.types.keys() & second.types.keys())
        found = unmatched(first.digests(compared), second.digests(compared))
        looked_at = [
            side.look_at_unmatched(compared, found, lanes, examples)
            for side, lanes in ((first, found.lanes_a), (second, found.lanes_b))
        ]
        return Difference(
            rows_a=first.rows,
            rows_b=second.rows,
            columns_only_in_a=first.columns_not_in(second),
            columns_only_in_b=second.columns_not_in(first),
            retyped=tuple(
                (name, first.types[name], second.types[name])
                for name in compared
                if first.types[name] != second.types[name]
            ),
            compared=tuple(compared),
            rows_only_in_a=found.only_in_a,
            rows_only_in_b=found.only_in_b,
            columns_that_differ=tuple(
                name for name in compared if looked_at[0].sums[name] != looked_at[1].sums[name]
            ),
            examples_a=looked_at[0].examples,
            examples_b=looked_at[1].examples,
        )


@dataclass(frozen=True)
class _Look:
    """What the second pass saw of one side: lane sums of each column, and example lines."""

    sums: dict[str, tuple[int, int]]
    examples: tuple[str, ...]


class _Side:
    """One of the two tables, to be read more than once."""

    def __init__(self, which: str, frame: object, folder: Path, naive_timestamps: str) -> None:
        folder.mkdir()
        self._which = which
        self._folder = folder
        self.rows = 0
        try:
            opened = _opener(frame, folder / "rows.arrow", naive_timestamps)
            self._open: Callable[[], ArrowStream] = opened
            self.types = dict(canonical_columns(opened().schema))
        except HashError as e:
            raise self._named(e) from e
        self._lines = canonical.batch_lines if chosen_path() == "reference" else lines.batch_lines

    def columns_not_in(self, other: _Side) -> tuple[tuple[str, str], ...]:
        """Return the columns that the other side has not."""
        return tuple(sorted((name, kind) for name, kind in self.types.items() if name not in other.types))

    def digests(self, compared: list[str]) -> Digests:
        """Read all rows for the first time."""
        digests = Digests(self._folder)
        for first_row, portion in self._portions(compared):
            digests.add(lanes_of_lines(self._lines_of(portion, first_row)))
        self.rows = digests.rows
        return digests

    def look_at_unmatched(self, compared: list[str], found: Unmatched, own: Lanes, examples: int) -> _Look:
        """Read the rows again: sum the columns of those that are unmatched, and note some as examples."""
        sums = {name: LaneSums() for name in compared}
        wanted = {tuple(lane): None for lane in own[:examples].tolist()}
        shown: list[str] = []
        if not found.only_in_a and not found.only_in_b:
            return _Look({name: total.sums for name, total in sums.items()}, ())
        first_lanes = np.sort(np.concatenate([found.lanes_a[:, 0], found.lanes_b[:, 0]]))
        for first_row, portion in self._portions(compared):
            row_lines = self._lines_of(portion, first_row)
            lanes = lanes_of_lines(row_lines)
            looked_at = (
                _is_in(lanes[:, 0], first_lanes) if found.all_listed else np.ones(len(lanes), np.bool_)
            )
            if not looked_at.any():
                continue
            for i in np.flatnonzero(looked_at) if wanted else ():
                lane = tuple(lanes[i].tolist())
                if lane in wanted:
                    del wanted[lane]
                    shown.append(row_lines[int(i)].as_py())
            for name, total in sums.items():
                column_lines = self._lines_of(portion.select([name]), first_row)
                total.add(column_lines.filter(pa.array(looked_at)))
        return _Look({name: total.sums for name, total in sums.items()}, tuple(shown))

    def _lines_of(self, portion: pa.RecordBatch, first_row: int) -> pa.Array:
        try:
            return self._lines(portion, first_row=first_row)
        except HashError as e:
            raise self._named(e) from e

    def _portions(self, compared: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows in portions of the columns compared, with the row that each begins at."""
        portions, row = Portions(), 0
        try:
            for batch in self._open().batches:
                for portion in portions.add(batch.select(compared)):
                    yield row, portion
                    row += portion.num_rows
            for portion in portions.rest():
                yield row, portion
                row += portion.num_rows
        except HashError as e:
            raise self._named(e) from e

    def _named(self, error: HashError) -> HashError:
        return type(error)(
            f"the {self._which} frame cannot be compared: {error.reason}",
            column=error.column,
            type_name=error.type_name,
            row=error.row,
        )


def _opener(frame: object, file: Path, naive_timestamps: str) -> Callable[[], ArrowStream]:
    """Return what opens the frame's rows as often as needed; one that is in memory opens itself."""
    if known_row_count(frame) is not None:
        return lambda: arrow_stream(frame, naive_timestamps=naive_timestamps)
    stream = arrow_stream(frame, naive_timestamps=naive_timestamps)
    try:
        with pa.ipc.new_stream(file, stream.schema) as writer:
            for batch in stream.batches:
                writer.write_batch(batch)
    except pa.ArrowException as e:
        raise HashError(
            f"its rows cannot be kept to be read again ({e}); convert it to a table before"
        ) from e
    return lambda: ArrowStream(stream.schema, _read_back(file), stream.library)


def _read_back(file: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as reader:
        yield from reader


def _is_in(values: npt.NDArray[np.uint64], ordered: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    places = np.searchsorted(ordered, values)
    places[places == len(ordered)] = 0
    return np.asarray(ordered[places] == values)


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"
