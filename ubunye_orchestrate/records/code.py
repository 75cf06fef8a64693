"""Evidence of the code: the hash of a folder, and of one function with what it reaches in its project.

The folder's hash is the engine's and moves with every byte of every file. The finer evidence names functions,
classes and top-level names, each with a hash of what its source says: comments, formatting and docstrings do
not count. What cannot be followed to its source makes the code unknown, with the reason; it is never left
out in silence. Followed are names, imports and attributes of modules as they stand in the source, a module
that is used as a value with all that it defines, what a function was made with where its makers' source
leaves that open, and what statements at the top of a module do to an object of that module. Code outside of
the project counts by its package's version.

Out of reach of the source, and so not counted:

- what is looked up at run time: ``getattr`` on an object, ``importlib``, ``__subclasses__()``, plug-ins;
- what one module does to an object or a name of another (``@convert.register``, ``conf.LIMIT = 2``), unless
  the function itself stands in the module that does it;
- at the top of a module: what a method does to objects other than its own, and what a call whose result is
  kept does to its own object (but ``setdefault``, ``pop``) or, if its function is not of that module, to its
  arguments;
- what calls find outside of the code: a clock, a file, the environment.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ubunye_orchestrate.errors import RecordError
from ubunye_orchestrate.records.modules import SourceError
from ubunye_orchestrate.records.reach import Trail
from ubunye_orchestrate.records.repository import GitState, git_state

__all__ = ["CodeEvidence", "code_evidence", "folder_hash"]

_CACHES = frozenset(["__pycache__", "__pypackages__", "node_modules", "site-packages"])
_ENVIRONMENT_MARKERS = ("pyvenv.cfg", "conda-meta")
_logger = logging.getLogger(__name__)

_State = tuple[tuple[tuple[str, ...], int, int], ...]

# Folder -> the state of its files (path, time, size) and their hash.
_folder_hashes: dict[str, tuple[_State, str]] = {}


@dataclass(frozen=True)
class CodeEvidence:
    """What is known of the code of one asset."""

    folder: str | None
    """The folder of the function's source file; None when it has none."""
    folder_hash: str | None
    """``sha256:`` over every ``.py`` file below it; None without a folder or a file."""
    function: str | None
    """Qualified name of the function, ``module:name``."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """Qualified name -> ``sha256:``, of the function and of all that it reaches in its project; sorted."""
    error: str | None = None
    """Why the code is not, or not wholly, known."""
    git: GitState | None = None
    """The commit of the folder's repository and whether it is dirty; None outside of one."""

    def as_record(self) -> dict[str, Any]:
        """Return the value of ``RunRecord.code``."""
        code = {"function": self.function, "functions": dict(self.functions), "error": self.error}
        return code if self.git is None else {**code, "git": dict(self.git)}


def folder_hash(folder: str | os.PathLike[str]) -> str | None:
    """Return the hash over every ``.py`` file below ``folder``, or None when there is none.

    Files in the order of their relative POSIX paths (part by part, as the engine sorts them), each as path,
    NUL, bytes with CRLF as LF, NUL. Passed over are hidden files and folders, caches, environments and linked
    folders. Raises RecordError when a file or folder cannot be read: a hash of the rest would claim too much.
    """
    base = os.fspath(folder)
    digest = hashlib.sha256()
    try:
        files = sorted(_python_files(base, ()))
        if not files:
            return None
        state = tuple((path, found.st_mtime_ns, found.st_size) for path, found in files)
        known = _folder_hashes.get(base)
        if known is not None and known[0] == state:
            return known[1]
        for path, _ in files:
            with open(os.path.join(base, *path), "rb") as stream:
                content = stream.read().replace(b"\r\n", b"\n")
            digest.update("/".join(path).encode("utf-8", "surrogateescape") + b"\0" + content + b"\0")
    except OSError as e:
        raise RecordError(
            f"{e.filename or base} cannot be read: {e.strerror}; without it the folder has no code hash"
        ) from e
    result = "sha256:" + digest.hexdigest()
    _folder_hashes[base] = (state, result)
    return result


def _python_files(base: str, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
    with os.scandir(os.path.join(base, *path)) as entries:
        found = list(entries)
    if path and any(entry.name in _ENVIRONMENT_MARKERS for entry in found):
        return
    for entry in found:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in _CACHES:
                yield from _python_files(base, (*path, entry.name))
        elif entry.name.endswith(".py") and not entry.is_dir():
            yield (*path, entry.name), entry.stat()


def code_evidence(function: object) -> CodeEvidence:
    """Return the evidence of a function's code: its own, and what it reaches in its project.

    ``function`` is what an asset runs: a function, a method, a ``functools.partial``, a class or an object
    that is called. A decorated function is followed through ``__wrapped__``, one that a factory made through
    its closure, to the user's source. Never raises for what a function is: ``error`` says what is not known.
    """
    trail = Trail()
    try:
        trail.follow(function)
        trail.finish()
    except SourceError as e:
        trail.errors.append(str(e))
    except RecursionError:
        trail.errors.append("its source, or a value that it holds, is nested too deeply")
    except Exception as e:
        # An object of the user's may do anything when it is looked at. Its run goes on, its code is unknown.
        _logger.exception("The code of %r could not be read", type(function))
        trail.errors.append(f"reading the code failed with {type(e).__name__}; see the log")
    folder = None if trail.home is None else os.path.dirname(trail.home.file)
    whole = None
    if folder is not None and os.path.isdir(folder):
        try:
            whole = folder_hash(folder)
        except RecordError as e:
            trail.errors.append(str(e))
    else:
        folder = None
    return CodeEvidence(
        folder=folder,
        folder_hash=whole,
        function=trail.function,
        functions=trail.hashes,
        error="; ".join(dict.fromkeys(trail.errors)) or None,
        git=None if folder is None else git_state(folder),
    )
