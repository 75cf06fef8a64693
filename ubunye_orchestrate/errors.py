"""Every exception that this package raises on purpose.

One root, so that a caller can catch all of them at once::

    UbunyeError
    ├── ConfigurationError     a setting, or a combination of settings, that cannot work
    ├── HashError              a frame or a value that rows-v1 does not define
    │   └── UnsupportedFrameError   not a table of any kind that is known
    ├── ExpectationError       a table that broke a rule declared for it
    ├── StorageError           a table that an IO manager of this package cannot store or load
    └── RecordError            a stored record, or the place where records are stored
        ├── RecordNotFoundError     no record under that identity
        ├── InvalidRecordError      a file that is not a readable record
        │   └── NewerRecordError        a record of a version that came later
        └── StoreError              the mirror cannot be read or written

A message says what was got, what was expected, and what to do next.
"""

from __future__ import annotations

__all__ = [
    "ConfigurationError",
    "ExpectationError",
    "HashError",
    "InvalidRecordError",
    "NewerRecordError",
    "RecordError",
    "RecordNotFoundError",
    "StorageError",
    "StoreError",
    "UbunyeError",
    "UnsupportedFrameError",
]


class UbunyeError(Exception):
    """The root of this package's exceptions."""


class ConfigurationError(UbunyeError):
    """A setting, or a combination of settings, that cannot work."""


class HashError(UbunyeError):
    """A frame or a value that rows-v1 does not define.

    ``fingerprint`` turns it into ``Fingerprint.error``; it leaves this package only from the lower-level
    functions of ``ubunye_orchestrate.hashing``.
    """

    def __init__(
        self, reason: str, *, column: str | None = None, type_name: str | None = None, row: int | None = None
    ) -> None:
        """Say what is wrong (``reason``) and where: the column, its type, the row counted from 0."""
        self.reason = reason
        self.column = column
        self.type_name = type_name
        self.row = row
        where = "" if column is None else f"column {column!r}"
        if where and type_name is not None:
            where += f" ({type_name})"
        if row is not None:
            where += f", row {row}" if where else f"row {row}"
        super().__init__(f"{where}: {reason}" if where else reason)


class UnsupportedFrameError(HashError):
    """The object is not a table of any kind that is known."""


class StorageError(UbunyeError):
    """A table that an IO manager of this package cannot store or load: an error of the user's step."""


class ExpectationError(UbunyeError):
    """A table broke a rule of severity ``fail`` that is declared for it, so it was not written."""


class RecordError(UbunyeError):
    """A stored record, or the place where records are stored."""


class RecordNotFoundError(RecordError):
    """No record is stored under that identity."""


class InvalidRecordError(RecordError):
    """A file that is not a readable record: truncated, foreign, or of a newer version."""


class NewerRecordError(InvalidRecordError):
    """A record of a version that came later: whole for its own readers, and not to be replaced."""


class StoreError(RecordError):
    """The mirror cannot be read or written."""
