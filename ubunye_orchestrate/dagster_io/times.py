"""Times as records have them."""

from __future__ import annotations

from datetime import datetime, timezone

__all__ = ["utc_text"]


def utc_text(seconds: float) -> str:
    """Return seconds since the epoch as ISO 8601, UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
