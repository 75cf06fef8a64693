"""What Spark says when it fails, without what it says to its own developers."""

from __future__ import annotations

import re

__all__ = ["reason"]

_LONGEST = 2000
# The JVM's stack, and the query that we made.
_NOISE = re.compile(r"\n+(JVM stacktrace:|== SQL|\s*at [\w.$]+\(|Driver stacktrace:)")
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_PY4J = re.compile(r"^An error occurred while calling [\w.]+\n?: ")


def reason(error: Exception) -> str:
    """Return the text of an exception that Spark raised, led by its kind where the text does not say it."""
    text = str(error).strip()
    causes = _CAUSE.findall(text)
    text = _PY4J.sub("", _NOISE.split(text, maxsplit=1)[0]).strip()
    if causes and causes[-1] not in text:
        text += f" (caused by: {causes[-1]})"
    if not text.startswith("["):
        text = f"{type(error).__name__}: {text}"
    if isinstance(error, AttributeError) and "'NoneType'" in text:
        # pyspark looks for its context, does not find it, and does not say so.
        text = f"there is no running session; was it stopped? ({text})"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."
