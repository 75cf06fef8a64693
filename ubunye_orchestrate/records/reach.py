"""From a live function to everything of its project that it reaches.

The function itself, what it wraps and what it closes over are live objects; from their sources on, names are
followed as they stand there.
"""

from __future__ import annotations

import ast
import datetime
import decimal
import dis
import enum
import functools
import hashlib
import inspect
import linecache
import logging
import os
import pathlib
import re
import sys
import time
import types
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import SourceFileLoader

from ubunye_orchestrate.records.modules import (
    Definition,
    ModuleSource,
    SourceError,
    is_declaring,
    read_module,
)
from ubunye_orchestrate.records.project import Project, is_installed, is_library

__all__ = ["Trail"]

_LOADED_AT = time.time()
_C_CODE = (
    *(types.BuiltinFunctionType, types.MethodDescriptorType, types.ClassMethodDescriptorType),
    *(types.WrapperDescriptorType, types.MethodWrapperType),
)
_SCALARS = (
    *(type(None), bool, int, float, complex, str, bytes, type(...), range, decimal.Decimal),
    *(pathlib.PurePath, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
)


class Trail:
    """What one function reaches, and what could not be followed."""

    def __init__(self) -> None:
        self.home: ModuleSource | None = None
        """The source file of the user's own function."""
        self.function: str | None = None
        """Its qualified name."""
        self.errors: list[str] = []
        """What could not be followed."""
        self._project: Project | None = None
        # Qualified name -> its hashes: lambdas share one name, and so may functions under an ``if``.
        self._found: dict[str, set[str]] = {}
        self._waiting: list[Definition] = []
        self._seen: set[int] = set()
        self._kept: list[object] = []

    def follow(self, value: object) -> None:
        """Follow a function, or what wraps, binds or is called like one, to its source.

        Raises SourceError where there is none.
        """
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._kept.append(value)  # so that no other object gets its id
        if isinstance(value, functools.partial):
            self.follow(value.func)
            self._hold("partial", {"args": value.args, "keywords": value.keywords})
        elif isinstance(value, types.MethodType):
            self.follow(value.__func__)
            if not isinstance(value.__self__, (type, types.ModuleType)):
                self._hold("instance", value.__self__)
        elif isinstance(value, (staticmethod, classmethod)):
            self.follow(value.__func__)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        elif callable(wrapped := getattr(value, "__wrapped__", None)):
            self.follow(wrapped)  # functools.cache and its like
        elif isinstance(call := inspect.getattr_static(type(value), "__call__", None), types.FunctionType):
            self.follow(call)
            self._hold("instance", value)
        else:
            raise SourceError(f"a {_kind(value)} has no Python source")

    def finish(self) -> None:
        """Hash what was followed, and all that it reaches in the project."""
        if self._project is None:
            raise SourceError("no function of the user's own was found behind it")
        done: set[tuple[object, ...]] = set()
        while self._waiting:
            definition = self._waiting.pop()
            if definition.key in done:
                continue
            done.add(definition.key)
            _check_definition(definition)
            found, references = definition.module.evidence(definition)
            self._found.setdefault(definition.qualified, set()).add(found)
            for reference in references:
                self._waiting.extend(self._project.resolve(definition.module, reference))

    @property
    def hashes(self) -> dict[str, str]:
        """Qualified name -> hash, of all that was reached, sorted by name."""
        return {
            name: next(iter(found)) if len(found) == 1 else _sha256(" ".join(sorted(found)))
            for name, found in sorted(self._found.items())
        }

    def _function(self, function: types.FunctionType) -> None:
        file = function.__code__.co_filename
        cells = dict(_cells(function))
        if (wrapped := getattr(function, "__wrapped__", None)) is not None:
            self.follow(wrapped)
        elif self._project is None and (is_installed(file) or is_library(file)):
            # A library's wrapper that does not say what it wraps holds the user's function.
            for content in cells.values():
                if isinstance(content, types.FunctionType) and not _is_library_file(content):
                    self.follow(content)
        makers: list[ast.AST] = []
        own = not is_declaring(function.__module__ or "") and not is_library(file)
        if own and (self._project is None or not os.path.isfile(file) or self._project.holds(file)):
            makers = self._own(function)
        parameters = {argument.arg for maker in makers for argument in _arguments(maker)}
        for name, content in cells.items():
            if _is_code(content):
                self._follow_held(content)
            elif name in parameters:
                # Any other cell is assigned in the maker, so its expression counts there.
                self._hold(f"closure {name}", content)

    def _own(self, function: types.FunctionType) -> list[ast.AST]:
        """Note a function of the user's own; return the functions that it was made in."""
        code = function.__code__
        module = _module_of(function)
        if self._project is None:
            self._project, self.home = Project(module), module
        found = module.functions_at(code.co_firstlineno, code.co_name)
        if not found:
            raise SourceError(f"{module.file} changed after {function.__qualname__} was loaded from it")
        _check_code(module, code)
        name = found[0][0]
        self._note(Definition(module, name, tuple(node for _, node in found)))
        makers: list[ast.AST] = []
        while code.co_freevars and (name := name.rpartition(".<locals>.")[0]):
            nodes = [node for node in module.scopes.get(name, ()) if not isinstance(node, ast.ClassDef)]
            makers += nodes
            if nodes:
                self._waiting.append(Definition(module, name, tuple(nodes), only_frame=True))
        if not os.path.isfile(module.file):
            self._typed_in(function)
        return makers

    def _typed_in(self, function: types.FunctionType) -> None:
        """Follow the globals of a function of a notebook, whose cells are sources of their own."""
        for name in sorted(_global_names(function.__code__)):
            value = function.__globals__.get(name)
            if getattr(value, "__module__", None) == function.__module__ and _is_code(value):
                self._follow_held(value)
            elif (
                name in function.__globals__
                and not isinstance(value, types.ModuleType)
                and not _is_code(value)
            ):
                self._hold(f"global {name}", value)

    def _class(self, cls: type) -> None:
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        if not isinstance(file, str):
            raise SourceError(f"class {cls.__module__}.{cls.__qualname__} has no source file")
        if is_library(file) or is_declaring(cls.__module__):
            return
        if self._project is None or self._project.holds(file):
            source = read_module(file, cls.__module__)
            if self._project is None:
                self._project, self.home = Project(source), source
            nodes = tuple(n for n in source.scopes.get(cls.__qualname__, ()) if isinstance(n, ast.ClassDef))
            if not nodes:
                raise SourceError(f"class {cls.__module__}.{cls.__qualname__} was made at run time")
            self._note(Definition(source, cls.__qualname__, nodes))

    def _note(self, definition: Definition) -> None:
        self._waiting.append(definition)
        if self.function is None:
            self.function = definition.qualified

    def _follow_held(self, value: object) -> None:
        """Follow code that a function holds; what is written in C counts by its library's version."""
        if isinstance(value, functools.partial):
            self._hold("partial", {"args": value.args, "keywords": value.keywords})
            self._follow_held(value.func)
        elif not isinstance(value, _C_CODE):
            self.follow(value)

    def _hold(self, what: str, value: object) -> None:
        """Hash a value that the function was made with; code within it is followed."""
        if self.function is None:
            return
        self._found.setdefault(f"{self.function} ({what})", set()).add(_sha256(self._text(value)))

    def _text(self, value: object) -> str:
        """Return a value as text that is the same in every process; note what has none."""
        if is_declaring(type(value).__module__):
            return _kind(value)  # what it says to Dagster is recorded as what it is
        if isinstance(value, enum.Enum):
            return f"{_kind(value)}.{value.name}"
        if isinstance(value, _SCALARS):
            return f"{type(value).__name__}={value!a}"
        if isinstance(value, re.Pattern):
            return f"pattern={value.pattern!a},{value.flags}"
        if isinstance(value, Mapping):
            return "{" + ",".join(f"{self._text(k)}:{self._text(v)}" for k, v in value.items()) + "}"
        if isinstance(value, (set, frozenset)):
            return "{" + ",".join(sorted(map(self._text, value))) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ",".join(map(self._text, value)) + "]"
        if isinstance(value, (types.ModuleType, logging.Logger)):
            return _kind(value)
        if isinstance(value, _C_CODE):
            bound = getattr(value, "__self__", None)
            of = "" if isinstance(bound, (types.ModuleType, type)) else self._text(bound)
            return f"code={value.__qualname__}{of}"
        if _is_code(value):
            self._follow_held(value)
            return f"code={getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
        file = getattr(sys.modules.get(type(value).__module__), "__file__", None)
        if self._project is not None and isinstance(file, str) and self._project.holds(file):
            self._class(type(value))
            return f"{_kind(value)}{self._text(getattr(value, '__dict__', {}))}"
        if callable(value) and isinstance(name := getattr(value, "__name__", None), str):
            return f"code={_kind(value)}:{name}"  # a library's own kind of function, such as NumPy's
        self.errors.append(f"{self.function} was made with a {_kind(value)}, whose content is not judged")
        return _kind(value)


def _sha256(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _module_of(function: types.FunctionType) -> ModuleSource:
    file, name = function.__code__.co_filename, function.__module__ or "__main__"
    if os.path.isfile(file):
        return read_module(os.path.abspath(file), name)
    lines = linecache.getlines(file, function.__globals__)
    if not lines:
        raise SourceError(
            f"{function.__qualname__} has no source ({file}): it was typed in or made at run time"
        )
    return read_module(file, name, "".join(lines).encode())


def _check_definition(definition: Definition) -> None:
    """Raise SourceError when what is loaded of a definition is not what its file says now."""
    loaded = getattr(sys.modules.get(definition.module.name), "__dict__", {}).get(definition.name)
    values: Iterable[object] = vars(loaded).values() if isinstance(loaded, type) else [loaded]
    for value in values:
        if isinstance(value, types.FunctionType):
            function = inspect.unwrap(value)
            if isinstance(function, types.FunctionType) and _same_file(function, definition.module):
                _check_code(definition.module, function.__code__)


def _check_code(module: ModuleSource, code: types.CodeType) -> None:
    """Raise SourceError when a loaded function is not what its file says now.

    Where an import hook may have rewritten the code (as test runners do with assertions), the file's time has
    to do: one that is older than this process's first look is taken as it is.
    """
    if not os.path.isfile(module.file) or code in module.compiled:
        return
    loader = getattr(sys.modules.get(module.name), "__loader__", None)
    if type(loader) is SourceFileLoader or os.stat(module.file).st_mtime >= _LOADED_AT:
        raise SourceError(f"{module.file} changed after {code.co_name} was loaded from it")


def _same_file(function: types.FunctionType, module: ModuleSource) -> bool:
    return os.path.abspath(function.__code__.co_filename) == module.file


def _is_library_file(function: types.FunctionType) -> bool:
    file = function.__code__.co_filename
    return is_installed(file) or is_library(file)


def _cells(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            content = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
        yield name, content


def _arguments(node: ast.AST) -> Iterator[ast.arg]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        yield from (child for child in ast.walk(node.args) if isinstance(child, ast.arg))


def _global_names(code: types.CodeType) -> set[str]:
    inner = (item for item in code.co_consts if isinstance(item, types.CodeType))
    own = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*map(_global_names, inner))


def _is_code(value: object) -> bool:
    return isinstance(
        value,
        (
            *(types.FunctionType, types.MethodType, functools.partial, staticmethod, classmethod, type),
            *_C_CODE,
        ),
    ) or callable(getattr(value, "__wrapped__", None))


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
