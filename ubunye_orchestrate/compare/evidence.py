"""What is known of one piece of evidence on two sides, and whether it moved.

Four states, and no fifth that would let "not checked" pass for "equal":

``unchanged``, ``changed``
    Both sides are known and of one kind.
``unknown``
    A side is missing (two missing ones too), or the source moved between read and hash, so that the hash is
    not of what was read.
``not comparable``
    Both sides are known but are statements about different things: made by different methods, or over
    different scopes (the rows handed to an append against the whole stored table). A record without a scope
    is compared plainly: other writers of the format do not record one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["NOT_RECORDED", "SOURCE_MOVED", "Evidence", "State", "evidence_of", "reasons"]

State = Literal["unchanged", "changed", "unknown", "not comparable"]

NOT_RECORDED = "not recorded"
SOURCE_MOVED = "the source moved between read and hash"


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence as it stands on both sides (a: the earlier record, b: the later)."""

    a: Any
    b: Any
    state: State
    why: str | None = None
    """Why it is unknown or not comparable."""


def evidence_of(a: Any, b: Any) -> Evidence:
    """Compare a piece of evidence, None where a side does not have it."""
    if a is None or b is None:
        return Evidence(a, b, "unknown", NOT_RECORDED)
    return Evidence(a, b, "unchanged" if a == b else "changed")


def reasons(of_a: str | None, of_b: str | None) -> str | None:
    """Join the two sides' reasons, saying whose they are only where they differ."""
    if of_a and of_b and of_a != of_b:
        return f"{of_a} (earlier); {of_b} (later)"
    return of_b or of_a
