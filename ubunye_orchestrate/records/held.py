"""Values that a function was made with, as texts that are the same in every process."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import inspect
import logging
import numbers
import pathlib
import re
import types
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from typing import Protocol

from ubunye_orchestrate.records.modules import is_declaring

__all__ = ["C_CODE", "HeldValues", "is_code", "kind"]

C_CODE = (
    *(types.BuiltinFunctionType, types.MethodDescriptorType, types.ClassMethodDescriptorType),
    *(types.WrapperDescriptorType, types.MethodWrapperType),
)
_SCALARS = (
    *(type(None), bool, int, float, complex, str, bytes, type(...), range, slice, decimal.Decimal),
    *(fractions.Fraction, uuid.UUID, pathlib.PurePath),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
)
# What these say of a value of a subclass is what it is; the subclass's own ``repr`` may say anything.
_PLAIN = (int, float, complex, str, bytes)


class Follower(Protocol):
    """Who follows the code that is found within a value."""

    def follow_held(self, value: object) -> None:
        """Follow a function, or what stands for one."""

    def follow_class(self, cls: type) -> bool:
        """Follow a class, if it is the project's; tell whether it is."""

    def follow_module(self, module: types.ModuleType) -> None:
        """Follow all of a module, if it is the project's."""


class HeldValues:
    """Writes values; notes what cannot be judged."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._within: list[int] = []
        self.unjudged: list[str] = []
        """The kinds of values whose content has no text."""

    def text(self, value: object, reads: Collection[str] = ()) -> str:
        """Return the text of a value; of one of Dagster's only the attributes ``reads``, if there are any."""
        if isinstance(value, _SCALARS) and not is_declaring(type(value).__module__):
            return self._scalar(value)
        if id(value) in self._within:
            return f"within={self._within.index(id(value))}"
        self._within.append(id(value))
        try:
            if is_declaring(type(value).__module__) and not isinstance(value, logging.Logger):
                return self._declared(value, reads)
            return self._composed(value)
        finally:
            self._within.pop()

    def _scalar(self, value: object) -> str:
        if isinstance(value, enum.Enum):
            return f"{kind(value)}.{value.name}={self.text(value.value)}"
        if isinstance(value, datetime.tzinfo) and type(value).__repr__ is object.__repr__:
            return self._unjudged(value)
        plain = next((base for base in _PLAIN if isinstance(value, base) and type(value) is not bool), None)
        written = repr(value) if plain is None else plain.__repr__(value)
        return f"{type(value).__name__}={written.encode('ascii', 'backslashreplace').decode()}"

    def _composed(self, value: object) -> str:
        if isinstance(value, enum.Enum):
            return f"{kind(value)}.{value.name}={self.text(value.value)}"
        if isinstance(value, numbers.Integral):
            return f"{type(value).__name__}={int(value)}"  # NumPy's
        if isinstance(value, numbers.Real):
            return f"{type(value).__name__}={float(value)!r}"
        if isinstance(value, re.Pattern):
            return f"pattern={value.pattern!a},{value.flags}"
        if isinstance(value, Mapping):
            return self._mapping(value.items())
        if isinstance(value, Set):
            return "{" + ",".join(sorted(map(self.text, value))) + "}"
        if isinstance(value, (list, tuple, collections.deque)):
            return "[" + ",".join(map(self.text, value)) + "]"
        if isinstance(value, types.ModuleType):
            self._follower.follow_module(value)
            return f"module={value.__name__}"
        if isinstance(value, logging.Logger):
            return kind(value)
        if isinstance(value, C_CODE):
            bound = getattr(value, "__self__", None)
            of = "" if isinstance(bound, (types.ModuleType, type)) else self.text(bound)
            return f"code={value.__qualname__}{of}"
        if is_code(value):
            self._follower.follow_held(value)
            return f"code={getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
        if type(value).__module__ == "typing" or isinstance(value, (types.GenericAlias, types.UnionType)):
            parts = (getattr(value, "__args__", ()), getattr(value, "__metadata__", ()))
            return f"type={getattr(value, '__name__', '')}{self.text(parts)}"
        if isinstance(value, types.SimpleNamespace) or self._follower.follow_class(type(value)):
            return kind(value) + self._mapping(_state(value))
        if callable(value) and isinstance(name := getattr(value, "__name__", None), str):
            return f"code={kind(value)}:{name}"  # a library's own kind of function, such as NumPy's
        return self._unjudged(value)

    def _declared(self, value: object, reads: Collection[str]) -> str:
        """Return what one of Dagster's objects says: what its function reads, or what it was made with."""
        if isinstance(value, enum.Enum):
            return f"{kind(value)}.{value.name}"
        if isinstance(value, str):
            return f"{kind(value)}={str.__str__(value)!a}"
        if is_code(value):
            return kind(value)  # code of a library, which counts by its version
        if reads:
            content = {name: getattr(value, name, None) for name in sorted(reads)}
            if not any(map(_is_method, content.values())):
                return kind(value) + self._mapping(content.items())
        fields = _fields(value)
        return self._unjudged(value) if fields is None else kind(value) + self._mapping(fields.items())

    def _mapping(self, items: Iterable[tuple[object, object]]) -> str:
        return "{" + ",".join(f"{self.text(key)}:{self.text(value)}" for key, value in items) + "}"

    def _unjudged(self, value: object) -> str:
        self.unjudged.append(kind(value))
        return kind(value)


def is_code(value: object) -> bool:
    """Tell whether a value is followed as code, rather than written."""
    return isinstance(
        value,
        (
            *(types.FunctionType, types.MethodType, functools.partial, staticmethod, classmethod, type),
            *C_CODE,
        ),
    ) or callable(getattr(value, "__wrapped__", None))


def kind(value: object) -> str:
    """Return the name of a value's type, with its module."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _is_method(value: object) -> bool:
    return isinstance(value, types.MethodType) or is_code(value)


def _state(value: object) -> Iterator[tuple[str, object]]:
    yield from getattr(value, "__dict__", {}).items()
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            is_private = name.startswith("__") and not name.endswith("__")
            attribute = f"_{cls.__name__.lstrip('_')}{name}" if is_private else name
            if name not in ("__dict__", "__weakref__") and hasattr(value, attribute):
                yield name, getattr(value, attribute)


def _fields(value: object) -> dict[str, object] | None:
    """Return what an object of a library says that it is made of; None where it does not say."""
    cls = type(value)
    names: Iterable[str] | None = getattr(cls, "_fields", None) or getattr(cls, "model_fields", None)
    if names is None and dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls)]
    if names is not None:
        return {name: getattr(value, name) for name in names}
    # What it keeps of what it was made with; what else it holds (caches) changes as it is used.
    try:
        made_with = list(inspect.signature(cls).parameters)
    except (TypeError, ValueError):
        return None
    kept = {name: next((n for n in (name, "_" + name) if n in vars(value)), None) for name in made_with}
    found = {name: getattr(value, attribute) for name, attribute in kept.items() if attribute is not None}
    return found if len(found) == len(made_with) else None
