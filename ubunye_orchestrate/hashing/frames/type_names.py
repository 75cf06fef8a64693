"""Canonical type names read back into Arrow types, for frames that declare their types by name."""

from __future__ import annotations

import re

import pyarrow as pa

__all__ = ["arrow_type"]

_FLAT = {
    "bool": pa.bool_(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "null": pa.null(),
    "time32[s]": pa.time32("s"),
    "time32[ms]": pa.time32("ms"),
    "time64[us]": pa.time64("us"),
    "time64[ns]": pa.time64("ns"),
    **{str(t): t for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(t): t for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_FLAT_NAME = re.compile(r"[a-z0-9_]+(\[[a-z]+\])?")
_FIELD_NAME = re.compile(r"`((?:[^`]|``)*)`:|([^:,<>`]*):")


def arrow_type(name: str) -> pa.DataType:
    """Return the Arrow type that a canonical name most plainly means (``int32``, ``list<decimal(10,2)>``).

    Raises ValueError for a name that is not canonical, TypeError for what is not text.
    """
    if not isinstance(name, str):
        raise TypeError(f"{name!r} is not a type name")
    reader = _Reader(name)
    t = reader.type()
    if reader.at != len(name):
        raise ValueError(f"{name!r} is not a canonical type name")
    return t


class _Reader:
    """A position in a type name that moves on as its parts are read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def type(self) -> pa.DataType:
        if self._passes("list<"):
            t = pa.list_(self.type())
        elif self._passes("map<"):
            key = self.type()
            self._expect(",")
            t = pa.map_(key, self.type())
        elif self._passes("struct<"):
            return self._struct()
        else:
            return self._flat()
        self._expect(">")
        return t

    def _struct(self) -> pa.DataType:
        fields: list[pa.Field] = []
        while not self._passes(">"):
            if fields:
                self._expect(",")
            match = self._match(_FIELD_NAME)
            quoted, plain = match.groups()
            field_name = plain if quoted is None else quoted.replace("``", "`")
            fields.append(pa.field(field_name, self.type()))
        return pa.struct(fields)

    def _flat(self) -> pa.DataType:
        if decimal := _DECIMAL.match(self.text, self.at):
            self.at = decimal.end()
            precision, scale = int(decimal[1]), int(decimal[2])
            return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
        name = self._match(_FLAT_NAME)[0]
        if name not in _FLAT:
            raise ValueError(f"{name!r} is not a canonical type name")
        return _FLAT[name]

    def _passes(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def _expect(self, text: str) -> None:
        if not self._passes(text):
            raise ValueError(f"{self.text!r} is not a canonical type name: expected {text!r} at {self.at}")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"{self.text!r} is not a canonical type name (at {self.at})")
        self.at = match.end()
        return match
