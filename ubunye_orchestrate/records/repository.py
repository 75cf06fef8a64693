"""The Git commit that a task's folder is at, and whether its files differ from it.

``git`` itself is asked, once in a while, and only in a repository; without it, or when it takes too long,
nothing is known.
"""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import time
from typing import TypedDict

__all__ = ["GitState", "git_state"]

_TIMEOUT_SECONDS = 5.0
# The steps of a run follow each other: one question is enough for all of them.
_KEPT_SECONDS = 60.0

_logger = logging.getLogger(__name__)
_lock = threading.Lock()
_known: dict[str, tuple[float, GitState | None]] = {}


class GitState(TypedDict):
    """What Git says of a folder's repository."""

    commit: str
    """The full name of the commit that is checked out."""
    dirty: bool
    """Whether a file that Git keeps differs from it."""


def git_state(folder: str) -> GitState | None:
    """Return the state of the repository around a folder, at most a minute old; None where none is known."""
    root = _repository_of(folder)
    if root is None:
        return None
    with _lock:
        known = _known.get(root)
        if known is None or time.monotonic() - known[0] > _KEPT_SECONDS:
            known = _known[root] = (time.monotonic(), _ask(root))
        return known[1]


def _repository_of(folder: str) -> str | None:
    """Return the nearest folder upwards that has ``.git``: a file in a worktree or submodule."""
    at = os.path.abspath(folder)
    while not os.path.exists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above
    return at


def _ask(root: str) -> GitState | None:
    # Nothing is locked, and no program that the repository's configuration names is started.
    command = ["git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch"]
    environment = {
        # Set while Git runs a hook; they would name another repository.
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    try:
        answer = subprocess.run(
            [*command, "--untracked-files=no"],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=True,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError) as e:
        _logger.info("Git says nothing of %s: %s", root, e)
        return None
    lines = answer.splitlines()
    commit = next((line.rpartition(" ")[2] for line in lines if line.startswith("# branch.oid ")), "")
    if not commit.isalnum():
        return None
    return GitState(commit=commit, dirty=any(not line.startswith("#") for line in lines))
