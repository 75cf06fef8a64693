"""From a live function to everything of its project that it reaches.

The function itself, what it wraps and what it closes over are live objects; from their sources on, names are
followed as they stand there.
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import inspect
import linecache
import os
import sys
import time
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.machinery import SourceFileLoader

from ubunye_orchestrate.records.closures import Making, attribute_reads, default_values
from ubunye_orchestrate.records.held import C_CODE, HeldValues, is_code, kind
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
        self._made_classes: list[type] = []
        self._kept: list[object] = []
        self._values = HeldValues(self)

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
            raise SourceError(f"a {kind(value)} has no Python source")

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
            missing: list[str] = []
            for reference in references:
                self._waiting.extend(self._project.resolve(definition.module, reference, missing))
            self.errors += [
                f"{name}, which {definition.qualified} uses, is bound by no source" for name in missing
            ]

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
        reads: Mapping[str, Collection[str]] = {}
        own = not is_declaring(function.__module__ or "") and not is_library(file)
        if own and (self._project is None or not os.path.isfile(file) or self._project.holds(file)):
            reads = self._own(function, cells)
        for name, content in cells.items():
            if is_code(content):
                self.follow_held(content)
            elif name in reads:
                self._hold(f"closure {name}", content, reads[name])

    def _own(self, function: types.FunctionType, cells: Mapping[str, object]) -> dict[str, Collection[str]]:
        """Note a function of the user's own, and what its makers say of it.

        Returns its cells whose value they leave open, with the attributes that the function reads of each.
        """
        code = function.__code__
        module = _module_of(function)
        if self._project is None:
            self._project, self.home = Project(module), module
        found = module.functions_at(code.co_firstlineno, code.co_name)
        if not found:
            raise SourceError(f"{module.file} changed after {function.__qualname__} was loaded from it")
        _check_code(module, code)
        nodes = [node for _, node in found]
        self._note(Definition(module, found[0][0], tuple(nodes)))
        held = {name for name, content in cells.items() if not is_declaring(type(content).__module__)}
        reached = _nodes_within(module, function, set())
        reads: dict[str, Collection[str]] = {}
        for node in nodes:
            making = Making(module, node, held, reached)
            if code.co_freevars or making.defaults_use_makers:
                self._makers(module, found[0][0])
            for name in filter(making.is_open, cells):
                # Lambdas of one line are not told apart, so what either reads counts.
                reads[name] = () if name in reads else attribute_reads(node, name)
            defaults = default_values(node, function.__defaults__ or (), function.__kwdefaults__ or {})
            for name in sorted(making.open_defaults() & defaults.keys()):
                self._hold_any(f"default {name}", defaults[name])
            self._needed(module, making)
        if not os.path.isfile(module.file):
            self._typed_in(function)
        return reads

    def _makers(self, module: ModuleSource, name: str) -> None:
        """Note the functions that a function or class was made in."""
        while name := name.rpartition(".<locals>.")[0]:
            nodes = [node for node in module.scopes.get(name, ()) if not isinstance(node, ast.ClassDef)]
            if nodes:
                self._waiting.append(Definition(module, name, tuple(nodes), only_frame=True))

    def _needed(self, module: ModuleSource, making: Making) -> None:
        for node in making.needed:
            name = next(name for name, nodes in module.scopes.items() if node in nodes)
            self._waiting.append(Definition(module, name, (node,)))

    def _typed_in(self, function: types.FunctionType) -> None:
        """Follow the globals of a function of a notebook, whose cells are sources of their own."""
        for name in sorted(_global_names(function.__code__)):
            value = function.__globals__.get(name)
            if getattr(value, "__module__", None) == function.__module__ and is_code(value):
                self.follow_held(value)
            elif (
                name in function.__globals__
                and not isinstance(value, types.ModuleType)
                and not is_code(value)
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
            if "<locals>" in cls.__qualname__ and cls not in self._made_classes:
                self._made_classes.append(cls)
                self._made_class(cls, source, nodes)

    def _made_class(self, cls: type, source: ModuleSource, nodes: Iterable[ast.ClassDef]) -> None:
        """Follow what a class holds that was made in a function."""
        self._makers(source, cls.__qualname__)
        for base in cls.__bases__:
            self.follow_class(base)
        members = dict(vars(cls))
        for node in nodes:
            making = Making(source, node, (), set(ast.walk(node)))
            for name in sorted(making.open_attributes() & members.keys()):
                self._hold_any(f"class {name}", members[name])
            self._needed(source, making)
        for member in members.values():
            method = inspect.unwrap(member) if isinstance(member, types.FunctionType) else _method(member)
            if isinstance(method, types.FunctionType) and _same_file(method, source):
                self.follow(method)

    def _note(self, definition: Definition) -> None:
        self._waiting.append(definition)
        if self.function is None:
            self.function = definition.qualified

    def follow_held(self, value: object) -> None:
        """Follow code that a function holds; what is written in C counts by its library's version."""
        if isinstance(value, functools.partial):
            self._hold("partial", {"args": value.args, "keywords": value.keywords})
            self.follow_held(value.func)
        elif not isinstance(value, C_CODE) and not (
            isinstance(value, type) and value.__module__ == "builtins"
        ):
            self.follow(value)

    def follow_class(self, cls: type) -> bool:
        """Follow a class, if it is the project's; tell whether it is."""
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        if self._project is None or not isinstance(file, str) or not self._project.holds(file):
            return False
        self._class(cls)
        return True

    def follow_module(self, module: types.ModuleType) -> None:
        """Follow all of a module, if it is the project's."""
        source = None if self._project is None else self._project.module(module.__name__)
        if self._project is not None and source is not None:
            self._waiting.extend(self._project.whole(source))

    def _hold_any(self, what: str, value: object) -> None:
        if is_code(value):
            self.follow_held(value)
        else:
            self._hold(what, value)

    def _hold(self, what: str, value: object, reads: Collection[str] = ()) -> None:
        """Hash a value that the function was made with; code within it is followed."""
        if self.function is None:
            return
        text = self._values.text(value, reads)
        self._found.setdefault(f"{self.function} ({what})", set()).add(_sha256(text))
        self.errors += [
            f"{self.function} was made with a {unjudged}, whose content is not judged"
            for unjudged in self._values.unjudged
        ]
        self._values.unjudged.clear()


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


def _nodes_within(module: ModuleSource, function: types.FunctionType, seen: set[int]) -> set[ast.AST]:
    """Return the nodes of a function and of those of its file that it holds in its cells."""
    seen.add(id(function))
    code = function.__code__
    found = {node for _, node in module.functions_at(code.co_firstlineno, code.co_name)}
    for _, content in _cells(function):
        inner = inspect.unwrap(content) if isinstance(content, types.FunctionType) else content
        if isinstance(inner, types.FunctionType) and id(inner) not in seen and _same_file(inner, module):
            found |= _nodes_within(module, inner, seen)
    return found


def _method(member: object) -> object:
    """Return the function behind a member of a class."""
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", getattr(member, "func", None))


def _global_names(code: types.CodeType) -> set[str]:
    inner = (item for item in code.co_consts if isinstance(item, types.CodeType))
    own = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*map(_global_names, inner))
