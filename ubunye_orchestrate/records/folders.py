"""Files of records on a local disk or behind an fsspec URL: list, read, write whole or not at all, delete.

Two kinds of place, four methods each. What is missing is empty or None; anything else that goes wrong is a
StoreError in one line, with the cause attached.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import uuid
from datetime import datetime
from typing import Any, NamedTuple, NoReturn, Protocol
from urllib.parse import urlsplit

from ubunye_orchestrate.errors import StoreError
from ubunye_orchestrate.masking import mask_location, mask_text
from ubunye_orchestrate.records.settings import is_url

__all__ = ["Entry", "Folder", "LocalFolder", "RemoteFolder", "open_folder"]

# File systems that are folders on a server: a file that is being written can be seen half, so it is written
# under another name and renamed. Everywhere else (object stores, memory) a put is atomic.
_RENAMING = frozenset(["arrow_hdfs", "file", "hdfs", "local", "sftp", "smb", "ssh", "webhdfs"])

# Object stores whose paths begin with a bucket: a missing folder is empty, a missing bucket a wrong address.
_WITH_BUCKETS = frozenset(["abfs", "abfss", "az", "gcs", "gs", "s3", "s3a"])

# Names under which file systems list the time of the last change.
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")


class Entry(NamedTuple):
    """One name in a folder. A tuple, since a folder may hold a hundred thousand."""

    name: str
    is_folder: bool
    modified: float | None
    """Seconds since the epoch (0 where there is a problem); None where the listing does not say."""
    size: int | None = None
    """Bytes; None where the listing does not say."""
    problem: str | None = None
    """Why it can neither be read nor entered: a link into the void or in a circle, a pipe."""


class Folder(Protocol):
    """A place that holds files. Paths are relative to it, with ``/`` between their parts."""

    def entries(self, path: str) -> list[Entry]:
        """List a folder, in no order; empty when it is missing."""

    def read(self, path: str, limit: int) -> bytes | None:
        """Return a file's bytes (at most ``limit`` + 1 of them), or None when it is missing."""

    def write(self, path: str, data: bytes, modified: float | None) -> str:
        """Write a file whole or not at all, and return where it is."""

    def delete(self, path: str) -> None:
        """Delete a file; a missing one is no error."""

    def shown(self, path: str) -> str:
        """Return how messages name a path: whole, credentials masked, in one line."""


def open_folder(root: str, inner: str) -> Folder:
    """Return the folder ``inner`` of ``root``, a local path or an fsspec URL. Nothing is touched yet."""
    if not is_url(root):
        return LocalFolder(root, inner)
    if root.startswith(("file://", "local://")):
        # Loads HTTP, TLS and e-mail, which no other way in needs.
        from urllib.request import url2pathname

        return LocalFolder(url2pathname(urlsplit(root).path), inner)
    return RemoteFolder(root, inner)


class LocalFolder:
    """A folder on this machine."""

    def __init__(self, root: str, inner: str) -> None:
        """Take ``inner`` below ``root``; neither need exist."""
        self._root = os.path.abspath(root)
        self._base = os.path.join(self._root, inner)
        self._ignores_case: bool | None = None

    def entries(self, path: str) -> list[Entry]:
        """List a folder; a missing one is empty, but a missing root is an error."""
        folder = self._path(path)
        try:
            with os.scandir(folder) as found:
                return [_local_entry(entry) for entry in found]
        except FileNotFoundError:
            self._require_root()
            return []
        except OSError as e:
            _fail(f"{self.shown(path)} cannot be listed", e)

    def read(self, path: str, limit: int) -> bytes | None:
        """Return the bytes of a regular file; a pipe or a device is never opened."""
        file = self._path(path)
        try:
            if not stat.S_ISREG(os.stat(file).st_mode):
                raise StoreError(f"{self.shown(path)} is no regular file; expected a run record")
            with open(file, "rb") as stream:
                return stream.read(limit + 1)
        except FileNotFoundError:
            return None
        except OSError as e:
            _fail(f"{self.shown(path)} cannot be read", e)

    def write(self, path: str, data: bytes, modified: float | None) -> str:
        """Write to a temporary name in the same folder, flush to the disk, set its time, rename."""
        file = self._path(path)
        folder, name = os.path.split(file)
        # No ".json" at its end: neither this package nor the engine lists it.
        temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:12]}.tmp")
        try:
            self._refuse_other_case(path)
            os.makedirs(folder, exist_ok=True)
            try:
                with open(temporary, "xb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
                if modified is not None:
                    os.utime(temporary, (modified, modified))
                _replace(temporary, file)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as e:
            _fail(f"{self.shown(path)} cannot be written", e)
        return file

    def delete(self, path: str) -> None:
        """Delete a file; its folder stays."""
        try:
            os.unlink(self._path(path))
        except FileNotFoundError:
            return
        except OSError as e:
            _fail(f"{self.shown(path)} cannot be deleted", e)

    def shown(self, path: str) -> str:
        """Return the whole path with control characters escaped."""
        return _one_line(self._path(path))

    def _path(self, path: str) -> str:
        return os.path.join(self._base, *path.split("/")) if path else self._base

    def _require_root(self) -> None:
        if not os.path.isdir(self._root):
            raise StoreError(
                f"{_one_line(self._root)} does not exist; expected the folder that holds .ubunye; "
                "check the path, or run something that leaves records there"
            )

    def _refuse_other_case(self, path: str) -> None:
        """Raise StoreError where ``path`` would meet another name that differs from it only in case.

        Only file systems that do not tell the two apart (macOS, Windows) are looked at.
        """
        if self._ignores_case is None:
            self._ignores_case = _ignores_case(self._base)
        if not self._ignores_case:
            return
        folder = self._base
        for part in path.split("/"):
            try:
                names = os.listdir(folder)
            except FileNotFoundError:
                return
            other = next((name for name in names if name.lower() == part.lower()), None)
            if part not in names and other is not None:
                raise StoreError(
                    f"{self.shown(path)}: {part!r} and {other!r} are one name on this file system; "
                    "expected names that differ in more than case; rename one, or choose another root"
                )
            folder = os.path.join(folder, part)


class RemoteFolder:
    """A folder behind an fsspec URL."""

    def __init__(self, root: str, inner: str) -> None:
        """Take ``inner`` below the URL ``root``; nothing is connected yet."""
        self._root = root
        self._inner = inner.strip("/")
        self._opened: tuple[Any, str] | None = None

    def entries(self, path: str) -> list[Entry]:
        """List a folder in one request (or its pages); a missing one is empty."""
        fs, folder = self._open(path)
        try:
            # Another process may have written since this one looked.
            fs.invalidate_cache(folder)
            listed = fs.ls(folder, detail=True)
        except FileNotFoundError:
            self._require_bucket(fs, folder)
            return []
        except Exception as e:  # noqa: BLE001 - each file system has its own exceptions
            _fail(f"{self.shown(path)} cannot be listed", e)
        # An object store lists the folder's own placeholder too.
        return [_remote_entry(info) for info in listed if info["name"].strip("/") != folder.strip("/")]

    def read(self, path: str, limit: int) -> bytes | None:
        """Return a file's bytes."""
        fs, file = self._open(path)
        try:
            data: bytes = fs.cat_file(file, start=0, end=limit + 1)
        except FileNotFoundError:
            return None
        except Exception as e:  # noqa: BLE001 - each file system has its own exceptions
            if _is_empty(fs, file):
                return b""
            _fail(f"{self.shown(path)} cannot be read", e)
        return data

    def write(self, path: str, data: bytes, modified: float | None) -> str:
        """Put the file in one request, or under another name that is renamed. Its time is the store's."""
        fs, file = self._open(path)
        try:
            if _RENAMING.intersection(_protocols(fs)):
                folder, _, name = file.rpartition("/")
                temporary = f"{folder}/.{name}.{uuid.uuid4().hex[:12]}.tmp"
                fs.makedirs(folder, exist_ok=True)
                fs.pipe_file(temporary, data)
                fs.mv(temporary, file)
            else:
                fs.pipe_file(file, data)
        except Exception as e:  # noqa: BLE001 - each file system has its own exceptions
            _fail(f"{self.shown(path)} cannot be written", e)
        return self.shown(path)

    def delete(self, path: str) -> None:
        """Delete a file."""
        fs, file = self._open(path)
        try:
            fs.rm_file(file)
        except FileNotFoundError:
            return
        except Exception as e:  # noqa: BLE001 - each file system has its own exceptions
            _fail(f"{self.shown(path)} cannot be deleted", e)

    def shown(self, path: str) -> str:
        """Return the URL, credentials masked."""
        parts = [self._root.rstrip("/") if not self._root.endswith("://") else self._root[:-1]]
        parts += [part for part in (self._inner, path) if part]
        return _one_line(mask_location("/".join(parts)))

    def _require_bucket(self, fs: Any, folder: str) -> None:
        bucket = folder.strip("/").partition("/")[0]
        try:
            missing = bool(_WITH_BUCKETS.intersection(_protocols(fs))) and not fs.exists(bucket)
        except Exception as e:  # noqa: BLE001 - each file system has its own exceptions
            _fail(f"bucket {bucket} cannot be looked at", e)
        if missing:
            raise StoreError(
                f"{_one_line(mask_location(self._root))}: there is no bucket {bucket!a}; "
                "expected one that exists; check the address"
            )

    def _open(self, path: str) -> tuple[Any, str]:
        if self._opened is None:
            try:
                import fsspec.core

                self._opened = fsspec.core.url_to_fs(self._root)
            except Exception as e:  # noqa: BLE001 - a missing or failing file system of any kind
                _fail(f"{_one_line(mask_location(self._root))} cannot be opened", e)
        fs, base = self._opened
        return fs, "/".join([base.rstrip("/"), *(part for part in (self._inner, path) if part)])


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def _local_entry(entry: os.DirEntry[str]) -> Entry:
    try:
        found = entry.stat()
    except OSError as e:
        return Entry(entry.name, is_folder=False, modified=0.0, problem=e.strerror or str(e))
    is_folder = stat.S_ISDIR(found.st_mode)
    problem = None if is_folder or stat.S_ISREG(found.st_mode) else "no regular file"
    return Entry(entry.name, is_folder, found.st_mtime_ns / 1e9, found.st_size, problem)


def _is_empty(fs: Any, file: str) -> bool:
    """Tell whether a file that could not be read has no bytes: S3 has no range of such a one."""
    try:
        return bool(fs.info(file).get("size") == 0)
    except Exception:  # noqa: BLE001 - then the reading's own error is told
        return False


def _remote_entry(info: dict[str, Any]) -> Entry:
    modified = next((info[name] for name in _TIMES if info.get(name) is not None), None)
    if isinstance(modified, datetime):
        modified = modified.timestamp()
    return Entry(
        name=info["name"].rstrip("/").rpartition("/")[2],
        is_folder=info.get("type") == "directory",
        modified=float(modified) if isinstance(modified, (int, float)) else None,
        size=info.get("size"),
    )


def _ignores_case(folder: str) -> bool:
    """Tell whether the file system takes ``folder`` and its other case for one; False when it is missing."""
    parent, name = os.path.split(folder)
    return name != name.swapcase() and os.path.exists(os.path.join(parent, name.swapcase()))


def _replace(temporary: str, file: str) -> None:
    """Rename over ``file``. Windows refuses while a reader has it open, for a moment."""
    for wait in (0.02, 0.1, 0.5):
        try:
            os.replace(temporary, file)
        except PermissionError:
            if os.name != "nt":
                raise
            time.sleep(wait)
        else:
            return
    os.replace(temporary, file)


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _fail(what: str, cause: Exception) -> NoReturn:
    reason = (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or "no reason given"
    reason = _one_line(mask_text(reason.splitlines()[0]))
    raise StoreError(f"{what}: {reason} ({type(cause).__name__}); check the path and its rights") from cause
