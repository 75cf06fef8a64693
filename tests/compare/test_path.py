"""Where a change entered, by recorded producers only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ubunye_orchestrate.compare.path import Hop, entries, follow, path_in_words
from ubunye_orchestrate.records.model import Producer, RunRecord


class Graph:
    """Runs of assets, each reading the newest run of what it reads; ``load`` finds them as a store does."""

    def __init__(self, make: SimpleNamespace) -> None:
        self.make = make
        self.records: dict[tuple[str, str | None, int], RunRecord] = {}
        self.contents: dict[tuple[str, str | None, int], object] = {}
        self.loaded: list[tuple[str, int | None]] = []

    def run(self, name: str, number: int, content: object, reads: Any = (), **fields: Any) -> RunRecord:
        """Run an asset, as run ``number``. ``reads``: names, or (name, partition) pairs read as one input."""
        inputs: dict[str, list[tuple[str | None, int]]] = {}
        for one in reads:
            upstream, partition = one if isinstance(one, tuple) else (one, None)
            newest = max(n for a, p, n in self.records if (a, p) == (upstream, partition))
            inputs.setdefault(upstream, []).append((partition, newest))
        steps = []
        for upstream, versions in inputs.items():
            read = [self.contents[upstream, partition, n] for partition, n in versions]
            producers = [
                Producer(partition=partition, run_id=f"r{n}", storage_id=n) for partition, n in versions
            ]
            steps.append(self.make.step(upstream, tuple(map(str, read)), producer=producers))
        partition = fields.pop("partition", None)
        record: RunRecord = self.make.record(
            run_id=f"r{number}" if partition is None else f"r{number}--{partition}",
            task_path=f"default/shop/{name}",
            task_name=name,
            inputs=fields.pop("inputs", steps),
            outputs=[self.make.step(name, (str(content),), output=True)],
            dagster={
                "asset_key": [name],
                "partition_keys": [] if partition is None else [partition],
                "declared_inputs": list(inputs),
            },
            **fields,
        )
        self.records[name, partition, number] = record
        self.contents[name, partition, number] = content
        return record

    def load(self, name: str, producer: Producer) -> RunRecord | None:
        self.loaded.append((name, producer.storage_id))
        return self.records.get((name, producer.partition, producer.storage_id or -1))

    def path(self, name: str, earlier: int, later: int) -> Hop:
        return follow(self.records[name, None, earlier], self.records[name, None, later], self.load)


@pytest.fixture
def graph(make: SimpleNamespace) -> Graph:
    return Graph(make)


def code(version: str) -> dict[str, Any]:
    return {"function": "f", "functions": {"f": f"sha256:{version}"}}


@pytest.mark.parametrize(
    ("known", "entered"),
    [(True, "source changed"), (False, "the code folder; its source is not seen")],
)
def test_code_that_a_source_does_not_reach_is_no_entry(known: bool, entered: str, graph: Graph) -> None:
    for number, content in ((1, "a"), (2, "b")):
        read_by = code("1") if known else None
        graph.run("raw", number, content, code_hash=f"sha256:{number}", code=read_by)
        graph.run("clean", number, content, ["raw"], code_hash=f"sha256:{number}")
    assert path_in_words(graph.path("clean", 1, 2)) == f"entered at raw ({entered})"


def test_a_source_three_assets_away(graph: Graph) -> None:
    for number, content in ((1, "a"), (2, "b")):
        graph.run("raw", number, content)
        graph.run("clean", number, content, ["raw"])
        graph.run("mart", number, content, ["clean"])
    path = graph.path("mart", 1, 2)
    assert path_in_words(path) == "entered at raw (source changed)"
    assert (path.asset, path.entered) == ("mart", None)
    assert [hop.asset for hop in entries(path)] == ["raw"]
    assert path.links[0].hops[0].links[0].hops[0].asset == "raw"


def test_code_between_an_unchanged_source_and_a_changed_output(graph: Graph) -> None:
    graph.run("raw", 1, "a")
    for number in (1, 2):
        graph.run("clean", number, f"c{number}", ["raw"], code=code(str(number)))
        graph.run("mart", number, f"m{number}", ["clean"])
    assert path_in_words(graph.path("mart", 1, 2)) == "entered at clean (code of f)"


def test_what_changed_at_both_ends_is_said_of_both(graph: Graph) -> None:
    for number in (1, 2):
        graph.run("raw", number, f"a{number}")
        graph.run("clean", number, f"c{number}", ["raw"], code=code(str(number)))
    words = path_in_words(graph.path("clean", 1, 2))
    assert words == "entered at raw (source changed); entered at clean (code of f)"


def test_a_source_whose_code_changed_is_not_said_to_be_only_that(graph: Graph) -> None:
    for number in (1, 2):
        graph.run("raw", number, f"a{number}", code=code(str(number)))
    assert path_in_words(graph.path("raw", 1, 2)) == "entered at raw (code of f; its source is not seen)"


def test_unexplained_and_not_attributable_ends(graph: Graph) -> None:
    graph.run("raw", 1, "a")
    graph.run("clean", 1, "x", ["raw"])
    graph.run("clean", 2, "y", ["raw"])
    graph.run("clean", 3, "z", ["raw"], code={"functions": {}, "error": "made by a factory"})
    assert "entered at clean (unexplained" in path_in_words(graph.path("clean", 1, 2))
    words = path_in_words(graph.path("clean", 1, 3))
    assert "entered at clean (not attributable: code: made by a factory" in words


def test_only_recorded_links_are_followed(graph: Graph) -> None:
    # Run 2 of raw was never read: the change came with run 3.
    for number, content in ((1, "a"), (2, "never read"), (3, "b")):
        graph.run("raw", number, content)
        if number != 2:
            graph.run("clean", number, content, ["raw"])
    path = graph.path("clean", 1, 3)
    (hop,) = path.links[0].hops
    assert hop.earlier is not None
    assert (hop.earlier.run_id, hop.later.run_id) == ("r1", "r3")
    assert ("raw", 2) not in graph.loaded


def test_a_producer_that_was_not_recorded_ends_the_path(graph: Graph, make: SimpleNamespace) -> None:
    a, b = (make.record(run_id=f"r{n}", inputs=[make.step("orders", f"x{n}")]) for n in (1, 2))
    words = path_in_words(follow(a, make.changed(inputs=b.inputs), graph.load))
    assert words == "path of input orders not known: the earlier run did not record what it read it from"


def test_a_record_that_is_gone_ends_the_path(graph: Graph) -> None:
    for number in (1, 2):
        graph.run("raw", number, f"a{number}")
        graph.run("clean", number, f"c{number}", ["raw"])
    del graph.records["raw", None, 1]
    assert path_in_words(graph.path("clean", 1, 2)) == "path of input raw not known: no record of run r1"


def test_rows_read_otherwise_than_stored(graph: Graph, make: SimpleNamespace) -> None:
    graph.run("raw", 1, "a")
    first = graph.run("clean", 1, "x", ["raw"])
    # The same materialization, and other rows: changed where it is stored.
    other = first.inputs[0].model_copy(update={"data_hash": "sha256:0"})
    later = first.model_copy(update={"run_id": "r2", "inputs": [other]})
    words = path_in_words(follow(first, later, graph.load))
    assert words == (
        "path of input raw not known: both runs read one materialization: it was read otherwise than it was "
        "stored"
    )
    # Materialised anew with the same rows, and yet other rows were read.
    graph.run("raw", 2, "a")
    anew = other.model_copy(update={"producer": [Producer(run_id="r2", storage_id=2)]})
    words = path_in_words(follow(first, later.model_copy(update={"inputs": [anew]}), graph.load))
    assert "the same rows were stored both times" in words


def test_partitions_that_stood_still_are_not_on_the_path(graph: Graph) -> None:
    for month in ("jan", "feb"):
        graph.run("days", 1, f"{month} 1", partition=month)
    reads = [("days", "jan"), ("days", "feb")]
    graph.run("mart", 1, "m1", reads)
    graph.run("days", 2, "jan 1", partition="jan")
    graph.run("days", 3, "feb 2", partition="feb")
    graph.run("mart", 4, "m2", reads)
    path = graph.path("mart", 1, 4)
    assert [hop.asset for hop in path.links[0].hops] == ["days[feb]"]
    assert path_in_words(path) == "entered at days[feb] (source changed)"


def test_partitions_that_came_and_went(graph: Graph) -> None:
    for number, month in enumerate(("jan", "feb"), start=1):
        graph.run("days", number, month, partition=month)
    graph.run("mart", 1, "m1", [("days", "jan")])
    graph.run("mart", 2, "m2", [("days", "feb")])
    words = path_in_words(graph.path("mart", 1, 2))
    assert "entered at days[feb] (read for the first time)" in words
    assert "no longer read: partition jan" in words


def test_an_input_that_was_added_entered_with_its_asset(graph: Graph) -> None:
    graph.run("raw", 1, "a")
    graph.run("more", 1, "b")
    graph.run("mart", 1, "m1", ["raw"])
    graph.run("mart", 2, "m2", ["raw", "more"])
    assert path_in_words(graph.path("mart", 1, 2)) == "entered at mart (input more (added))"


def test_an_input_without_a_hash_is_said_and_not_passed_over(graph: Graph) -> None:
    for number in (1, 2):
        graph.run("raw", number, f"a{number}")
        first = graph.run("mart", number, f"m{number}", ["raw"])
    blind = first.inputs[0].model_copy(update={"data_hash": None, "hash_error": "over budget"})
    later = first.model_copy(update={"inputs": [blind]})
    words = path_in_words(follow(graph.records["mart", None, 1], later, graph.load))
    assert "path of input raw not known: whether it changed is unknown (over budget)" in words
    assert "not attributable" in words


def test_two_ways_to_one_source_tell_it_once(graph: Graph) -> None:
    for number in (1, 2):
        graph.run("raw", number, f"a{number}")
        for side in ("left", "right"):
            graph.run(side, number, f"{side}{number}", ["raw"])
        graph.run("mart", number, f"m{number}", ["left", "right"])
    path = graph.path("mart", 1, 2)
    assert path_in_words(path) == "entered at raw (source changed)"
    right = path.links[1].hops[0]
    assert right.links[0].hops[0].told_before


def test_an_asset_that_reads_its_own_past(graph: Graph) -> None:
    graph.run("state", 1, "s1")
    for number in range(2, 9):
        graph.run("state", number, f"s{number}", ["state"])
    words = path_in_words(graph.path("state", 7, 8))
    # The very first run read nothing, so between it and the second an input was added.
    assert words == "entered at state (input state (added))"


def test_records_in_a_circle_end(graph: Graph) -> None:
    # No Dagster makes them, and a forger may.
    for number in (1, 2):
        graph.run("b", number, f"b{number}")
        graph.run("a", number, f"a{number}", ["b"])
        graph.run("b", number, f"b{number}", ["a"])
    assert path_in_words(graph.path("a", 1, 2)) == "where it entered is not known"


def test_a_path_longer_than_is_followed_says_so(graph: Graph) -> None:
    for number in (1, 2):
        graph.run("a0", number, f"0 {number}")
        for depth in range(1, 260):
            graph.run(f"a{depth}", number, f"{depth} {number}", [f"a{depth - 1}"])
    assert "the path is longer than is followed" in path_in_words(graph.path("a259", 1, 2))


def test_nothing_to_tell(graph: Graph) -> None:
    graph.run("raw", 1, "a")
    graph.run("clean", 1, "x", ["raw"])
    graph.run("clean", 2, "x", ["raw"])
    # Whether the output changed is the caller's to look at.
    assert "unexplained" in path_in_words(graph.path("clean", 1, 2))
