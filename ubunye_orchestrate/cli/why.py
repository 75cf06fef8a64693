"""The path of a change as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ubunye_orchestrate.cli.views import wrapped
from ubunye_orchestrate.compare.comparison import compare_records
from ubunye_orchestrate.compare.path import Hop, entries, path_in_words
from ubunye_orchestrate.compare.text import printable, short_run_id

__all__ = ["why_document", "why_lines"]

# Deeper hops are not indented further, so that a long path still fits.
_DEEPEST = 12


def why_lines(path: Hop) -> Iterator[str]:
    """Yield the path, the asset that was asked for first, and each input below what read it."""
    yield f"Why '{printable(path.asset)}' changed"
    if _unchanged(path):
        yield "  its outputs did not change between these runs"
    yield from _hop_lines(path, 0)
    yield ""
    said = path_in_words(path)
    yield from wrapped("", f"{said[0].upper()}{said[1:]}.")


def _hop_lines(hop: Hop, depth: int) -> Iterator[str]:
    lead = "  " * (min(depth, _DEEPEST) + 1)
    runs = "" if hop.earlier is None else f"{short_run_id(hop.earlier.run_id)} -> "
    yield f"{lead}{printable(hop.asset)}  {runs}{short_run_id(hop.later.run_id)}"
    if hop.told_before:
        yield f"{lead}  (its path stands above)"
        return
    if hop.entered is not None:
        yield from wrapped(f"{lead}  entered here: ", hop.entered)
    for link in hop.links:
        if link.hops:
            yield from wrapped(f"{lead}  ", f"changed together with input {link.name}")
        if link.ends is not None:
            yield from wrapped(f"{lead}  input {link.name}: ", link.ends)
        for upstream in link.hops:
            yield from _hop_lines(upstream, depth + 1)


def _unchanged(hop: Hop) -> bool:
    if hop.earlier is None:
        return False
    outputs = compare_records(hop.earlier, hop.later).outputs
    return bool(outputs) and all(step.data.state == "unchanged" for step in outputs)


def why_document(path: Hop) -> dict[str, Any]:
    """Return the path as one JSON document."""
    return {
        "asset": path.asset,
        "outputs_changed": not _unchanged(path),
        "in_words": path_in_words(path),
        "entered": [
            {"asset": hop.asset, "run_id": hop.later.run_id, "why": hop.entered} for hop in entries(path)
        ],
        "path": _hop_document(path),
    }


def _hop_document(hop: Hop) -> dict[str, Any]:
    return {
        "asset": hop.asset,
        "task": hop.later.task_path,
        "a": None if hop.earlier is None else hop.earlier.run_id,
        "b": hop.later.run_id,
        "changed_here": list(hop.own),
        "entered": hop.entered,
        "told_before": hop.told_before,
        "inputs": [
            {"name": link.name, "ends": link.ends, "path": [_hop_document(one) for one in link.hops]}
            for link in hop.links
        ],
    }
