"""What Spark says when it fails, without what it says to its own developers and without the table's cells."""

from __future__ import annotations

from ubunye_orchestrate.foreign import without_values

__all__ = ["reason"]


def reason(error: Exception) -> str:
    """Return the text of an exception that Spark raised, led by its kind where the text does not say it."""
    whole = str(error)
    if isinstance(error, AttributeError) and "'NoneType'" in whole:
        # pyspark looks for its context, does not find it, and does not say so.
        return "there is no running session; was it stopped?"
    text = without_values(whole)
    return text if text.startswith("[") else f"{type(error).__name__}: {text}"
