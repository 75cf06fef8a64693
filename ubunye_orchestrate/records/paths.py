"""Where a record lives: identities to file names that are safe everywhere, and never two to one.

``<usecase>/<package>/<task>/<run_id>.json``, each part percent-encoded. The rules hold on Linux, macOS and
Windows and in object stores: only ASCII letters, digits, ``_``, ``-`` and inner dots stand as they are, no
part begins or ends with a dot, none is a device name of Windows, none is longer than ``MAX_LENGTH``.

Letters keep their case, since table names of warehouses are upper case and people type them. So two assets
that differ only in case (``A``, ``a``) have two folders wherever the file system tells them apart; where it
does not, ``RecordStore`` refuses to write the second one instead of mixing the two.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

__all__ = [
    "MAX_LENGTH",
    "SUFFIX",
    "is_safe_part",
    "may_hold_partition",
    "record_path",
    "safe_part",
    "stored_run_id",
    "task_name_for_asset",
]

MAX_LENGTH = 200
"""Longest part in bytes; file systems allow 255, the rest is for ``.json`` and a temporary name."""

SUFFIX = ".json"

_DIGEST_DIGITS = 32
_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
# Windows opens a device for these names whatever follows the first dot (``nul.json`` too).
_DEVICES = frozenset(
    ["CON", "PRN", "AUX", "NUL", *(f"COM{i}" for i in range(10)), *(f"LPT{i}" for i in range(10))]
)
_SAFE = re.compile(r"(?:[A-Za-z0-9_.~-]|%[0-9A-F]{2})+\Z")
# A part that has no text at all. A tilde of the text is encoded, and in a cut name a digest follows it.
_EMPTY = "~"


def safe_part(text: str) -> str:
    """Return the file name for ``text``: percent-encoded UTF-8, at most ``MAX_LENGTH`` bytes, all ASCII.

    Different texts have different names. A name that had to be cut ends in ``~`` and 32 hex digits of the
    SHA-256 of the whole. Text with lone surrogates is encoded by their code points.
    """
    return _bounded(_whole(_encoded(text)))


def is_safe_part(text: str) -> bool:
    """Tell whether ``text`` may be a file name as it stands, as everything that this module returns may."""
    return (
        len(text) <= MAX_LENGTH
        and _SAFE.match(text) is not None
        and not text.startswith(".")
        and not text.endswith(".")
        and not _is_device(text)
    )


def task_name_for_asset(parts: Sequence[str]) -> str:
    """Return the task name of an asset key: its parts joined with ``__``.

    A part that holds ``__`` has all its underscores percent-encoded, and an underscore that would touch a
    join is too (``a_`` + ``b`` and ``a`` + ``_b``), so that no two keys have one name.
    """
    last = len(parts) - 1
    names = []
    for position, part in enumerate(parts):
        name = _encoded(part)
        if "__" in name:
            name = name.replace("_", "%5F")
        if position > 0 and name.startswith("_"):
            name = "%5F" + name[1:]
        if position < last and name.endswith("_"):
            name = name[:-1] + "%5F"
        names.append(name)
    return _bounded(_whole("__".join(names)))


def stored_run_id(run_id: str, partition_keys: Sequence[str] = (), attempt: int = 0) -> str:
    """Return a record's run id: ``<run id>``, ``--<partition>`` or ``--<first>..<last>``, ``.retry-<n>``.

    ``partition_keys`` are the run's keys of this asset in their order; ``attempt`` counts from 0, the first
    try. The result is safe as a file name, and no two runs, partitions or attempts share one.
    """
    # The first "--" of the whole separates run and partition, so the run id's own are encoded.
    name = _dashes_apart(_encoded(run_id))
    if partition_keys:
        first, last = _encoded(partition_keys[0]), _encoded(partition_keys[-1])
        name += f"--{first}" if len(partition_keys) == 1 else f"--{first}..{last}"
    name = _whole(_unlike_retry(name))
    if attempt <= 0:
        return _bounded(name)
    suffix = f".retry-{attempt}"
    return _bounded(name, MAX_LENGTH - len(suffix)) + suffix


def may_hold_partition(run_id: str, partition: str) -> bool:
    """Tell by a record's run id alone whether it may be of a partition, so that its file need not be read.

    False only where ``stored_run_id`` put another single partition into the name.
    """
    _, apart, name = run_id.partition("--")
    name = name.partition(".retry-")[0]
    # A range holds more than its ends, a cut name is not whole, and others' names say nothing.
    return not apart or ".." in name or "~" in name or name == _unlike_retry(_encoded(partition))


def record_path(usecase: str, package: str, task: str, run_id: str) -> str:
    """Return the path of a record below the lineage folder, with ``/`` between its parts.

    A part that is safe stays as it is (what ``task_name_for_asset`` and ``stored_run_id`` made is not encoded
    again); any other is made safe.
    """
    parts = [part if is_safe_part(part) else safe_part(part) for part in (usecase, package, task, run_id)]
    return "/".join(parts) + SUFFIX


def _encoded(text: str) -> str:
    """Percent-encode what is not safe within a name; ``""`` becomes a tilde."""
    if not text:
        return _EMPTY
    data = text.encode("utf-8", "surrogatepass")
    dot = ord(".")
    out = []
    for i, byte in enumerate(data):
        # A dot is kept only between two other characters: no "..", no hidden file, no trailing dot.
        exposed = byte == dot and (i == 0 or i == len(data) - 1 or data[i - 1] == dot)
        out.append(chr(byte) if byte in _KEPT and not exposed else f"%{byte:02X}")
    return "".join(out)


def _unlike_retry(name: str) -> str:
    """Encode what looks like the mark of an attempt."""
    return name.replace(".retry-", "%2Eretry-")


def _dashes_apart(name: str) -> str:
    """Encode every dash that follows a dash or ends the name."""
    name = re.sub(r"(?<=-)-", "%2D", name)
    return name[:-1] + "%2D" if name.endswith("-") else name


def _is_device(name: str) -> bool:
    return name.split(".", 1)[0].upper() in _DEVICES


def _whole(name: str) -> str:
    """Break a device name by encoding its first letter."""
    return f"%{ord(name[0]):02X}{name[1:]}" if _is_device(name) else name


def _bounded(name: str, limit: int = MAX_LENGTH) -> str:
    """Cut a name that is too long, with a digest of the whole in place of what is lost."""
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode("ascii")).hexdigest()[:_DIGEST_DIGITS]
    head = name[: limit - _DIGEST_DIGITS - 1]
    return re.sub(r"%[0-9A-F]?\Z", "", head) + "~" + digest
