"""Where a change entered: from an output that changed, by the recorded producers of its inputs, run by run.

Pure: records come through a function that is given. Only links that were recorded are followed: an input
names the materialization that it was read from, on the earlier side and on the later one, and those two
records are compared in turn. A path ends at the first asset that has no changed input, or where a link or a
record is missing, which is said and never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ubunye_orchestrate.compare.attribution import CODE_FOLDER, attribute, input_set_change
from ubunye_orchestrate.compare.comparison import StepComparison, compare_records
from ubunye_orchestrate.compare.naming import named
from ubunye_orchestrate.compare.policy import DriftPolicy
from ubunye_orchestrate.records.model import Producer, RunRecord, StepRecord

__all__ = ["Hop", "Link", "LoadProducer", "entries", "follow", "path_in_words"]

LoadProducer = Callable[[str, Producer], "RunRecord | None"]
"""Returns the record of a materialization, given the input's name; None where it is not to be had."""

# A chain of partitions that each depend on the one before can be as long as a history.
_MAX_DEPTH = 200
_MAX_HOPS = 1_000
_DEFAULT_POLICY = DriftPolicy()


@dataclass(frozen=True)
class Hop:
    """One asset on the path, in two of its runs."""

    asset: str
    """Its key's parts joined with ``/``, with its partitions; the task's name for another writer's record."""
    earlier: RunRecord | None
    """None where there is no earlier run to hold it against (a partition that was not read before)."""
    later: RunRecord
    own: tuple[str, ...] = ()
    """What changed here beside inputs: code, packages, configuration, as ``changed_with`` names them."""
    links: tuple[Link, ...] = ()
    """The inputs that changed."""
    entered: str | None = None
    """Why the change, or a part of it, entered here; None where all of it came with the inputs."""
    told_before: bool = False
    """The same two runs stand on the path already; their links are there."""


@dataclass(frozen=True)
class Link:
    """One input that changed, and the runs that produced it."""

    name: str
    hops: tuple[Hop, ...] = ()
    """One for each materialization that differs."""
    ends: str | None = None
    """Why it cannot be followed, or not all of it."""


def follow(
    earlier: RunRecord, later: RunRecord, load: LoadProducer, policy: DriftPolicy = _DEFAULT_POLICY
) -> Hop:
    """Return the path of the change between two runs of one asset.

    ``load`` finds the record of a producer. Raises what ``load`` raises, and nothing for what records hold.
    """
    return _Walk(load, policy).hop(earlier, later)


def entries(hop: Hop) -> Iterator[Hop]:
    """Yield the hops at which a change entered, the furthest upstream first."""
    for link in hop.links:
        for upstream in link.hops:
            yield from entries(upstream)
    if hop.entered is not None and not hop.told_before:
        yield hop


def path_in_words(hop: Hop) -> str:
    """Say in one line where a change entered, and where its path is not known."""
    told = [f"entered at {one.asset} ({one.entered})" for one in entries(hop)]
    told += [f"path of input {name} not known: {why}" for name, why in _open_ends(hop)]
    return "; ".join(dict.fromkeys(told)) or "where it entered is not known"


def _open_ends(hop: Hop) -> Iterator[tuple[str, str]]:
    for link in hop.links:
        if link.ends is not None:
            yield link.name, link.ends
        for upstream in link.hops:
            yield from _open_ends(upstream)


@dataclass
class _Walk:
    """One walk up the graph, which sees each pair of runs once."""

    load: LoadProducer
    policy: DriftPolicy
    seen: set[tuple[str, str, str]] = field(default_factory=set)

    def hop(self, earlier: RunRecord, later: RunRecord, depth: int = 0) -> Hop:
        """Compare two runs of an asset, and follow the inputs that changed."""
        here = Hop(named(later, later.task_name), earlier, later)
        pair = (later.task_path, earlier.run_id, later.run_id)
        if pair in self.seen:
            return replace(here, told_before=True)
        self.seen.add(pair)
        comparison = compare_records(earlier, later)
        evidence = attribute(comparison, self.policy, output_changed=True)
        changed = [step for step in comparison.inputs if step.data.state == "changed"]
        # An input that was added or removed entered with it, whatever made the input.
        of_inputs = {f"input {step.label}" for step in changed}
        own = tuple(what for what in evidence.changed if what not in of_inputs)
        known_code = comparison.code.functions.state == "unchanged"
        if len(evidence.changed) > 1 or (known_code and not evidence.has_inputs):
            # Every asset has the folder in common; beside something nearer (a source that changed while the
            # functions that read it did not) it tells of no entry here.
            own = tuple(what for what in own if what != CODE_FOLDER)
        links = [self._link(step, depth) for step in changed]
        links += [
            Link(step.label, ends=f"whether it changed is {step.data.state} ({step.data.why})")
            for step in comparison.inputs
            if step.data.state in ("unknown", "not comparable") and input_set_change(comparison, step) is None
        ]
        here = replace(here, own=own, links=tuple(links))
        if own or changed:
            unseen = "" if evidence.has_inputs else "; its source is not seen"
            return replace(here, entered=", ".join(own) + unseen if own else None)
        if not evidence.has_inputs:
            return replace(here, entered="source changed")
        if evidence.missing:
            return replace(here, entered=f"not attributable: {'; '.join(evidence.missing)}")
        return replace(here, entered="unexplained: the recorded evidence is equal")

    def _link(self, step: StepComparison, depth: int) -> Link:
        assert step.a is not None, "a changed input is on both sides"
        assert step.b is not None, "a changed input is on both sides"
        if depth >= _MAX_DEPTH or len(self.seen) >= _MAX_HOPS:
            return Link(step.label, ends="the path is longer than is followed")
        before, after = _producers(step.a), _producers(step.b)
        if not before or not after:
            side = "earlier" if not before else "later"
            return Link(step.label, ends=f"the {side} run did not record what it read it from")
        hops: list[Hop] = []
        ends: list[str] = []
        anew = False
        for partition, producer in after.items():
            known = before.get(partition)
            if known is not None and _same(known, producer):
                continue
            anew = True
            found = self._hop_to(step.name, known, producer, depth)
            if isinstance(found, Hop):
                hops.append(found)
            elif found is not None:
                ends.append(found if partition is None else f"partition {partition}: {found}")
        gone = [str(partition) for partition in before if partition not in after]
        if gone:
            ends.append(f"no longer read: partition {', '.join(gone)}")
        if not hops and not ends:
            stored = "the same rows were stored both times" if anew else "both runs read one materialization"
            ends.append(f"{stored}: it was read otherwise than it was stored")
        return Link(step.label, tuple(hops), "; ".join(ends) or None)

    def _hop_to(self, name: str, before: Producer | None, after: Producer, depth: int) -> Hop | str | None:
        """Return the hop to a materialization, why there is none, or None where it stored the same rows."""
        later = self.load(name, after)
        if later is None:
            return f"no record of run {after.run_id or 'not recorded'}"
        if before is None:
            return Hop(named(later, later.task_name), None, later, entered="read for the first time")
        earlier = self.load(name, before)
        if earlier is None:
            return f"no record of run {before.run_id or 'not recorded'}"
        return None if _stored_the_same(earlier, later, name) else self.hop(earlier, later, depth + 1)


def _stored_the_same(earlier: RunRecord, later: RunRecord, name: str) -> bool:
    outputs = [step for step in compare_records(earlier, later).outputs if step.name == name]
    return bool(outputs) and all(step.data.state == "unchanged" for step in outputs)


def _producers(step: StepRecord) -> dict[str | None, Producer]:
    return {producer.partition: producer for producer in step.producer or ()}


def _same(a: Producer, b: Producer) -> bool:
    if a.storage_id is not None and b.storage_id is not None:
        return a.storage_id == b.storage_id
    return a.run_id is not None and a.run_id == b.run_id
