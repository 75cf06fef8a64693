"""A source file of a project, and what each name at its top stands for; read, never imported."""

from __future__ import annotations

import ast
import functools
import os
from collections import defaultdict
from dataclasses import dataclass, field
from types import CodeType
from typing import TypeGuard

from ubunye_orchestrate.records.effects import top_level_changes
from ubunye_orchestrate.records.statements import steps
from ubunye_orchestrate.records.syntax import (
    COMPREHENSIONS,
    SCOPES,
    Bound,
    FunctionNode,
    ImportedName,
    Reference,
    bound_names,
    function_line,
    global_names,
    node_hash,
    references,
    visible_within,
)

__all__ = ["Definition", "ModuleSource", "SourceError", "is_declaring", "read_module"]

# What stands in a decorator of these says how an asset is run and shown; where it bears on the data it is
# recorded as what it is (inputs, partitions, code version), not as code.
_DECLARING = ("dagster", "ubunye_orchestrate")


class SourceError(Exception):
    """Why the source of something is not known; becomes the evidence's ``error``."""


@dataclass(frozen=True, eq=False)
class Definition:
    """A function, a class or the statements that make up a top-level name, with its qualified name."""

    module: ModuleSource
    name: str
    nodes: tuple[ast.AST, ...]
    only_frame: bool = False
    """True for a function that is looked at as the maker of another: without its inner functions' bodies."""

    @property
    def qualified(self) -> str:
        """``module:name``."""
        return f"{self.module.name}:{self.name}"

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this definition from any other."""
        return (self.module.file, self.name, self.nodes, self.only_frame)


@dataclass(eq=False)
class ModuleSource:
    """One source file, read and indexed."""

    name: str
    file: str
    tree: ast.Module
    bindings: defaultdict[str, list[ast.AST]] = field(default_factory=lambda: defaultdict(list))
    """Top-level name -> the definitions and assignments that bind it."""
    changes: dict[str, list[ast.AST]] = field(default_factory=lambda: defaultdict(list))
    """Name -> top-level statements that change what it holds, or register something with it."""
    setters: dict[str, list[tuple[str, ast.AST]]] = field(default_factory=lambda: defaultdict(list))
    """Top-level name -> the functions, with their qualified names, that declare it ``global``."""
    imports: dict[str, list[ImportedName]] = field(default_factory=lambda: defaultdict(list))
    stars: list[ImportedName] = field(default_factory=list)
    scopes: dict[str, list[ast.AST]] = field(default_factory=lambda: defaultdict(list))
    """Qualified name (``make.<locals>.inner``) -> functions, lambdas and classes at any depth."""
    silent: frozenset[ast.AST] = frozenset()
    """Decorators that declare an asset rather than compute something."""
    _known: dict[tuple[ast.AST, ...], tuple[str, list[Reference]]] = field(default_factory=dict)

    @property
    def is_package(self) -> bool:
        """True for an ``__init__.py``."""
        return os.path.basename(self.file) == "__init__.py"

    def evidence(self, definition: Definition) -> tuple[str, list[Reference]]:
        """Return the hash of a definition of this module and the names that it loads."""
        key = (*definition.nodes, *([self.tree] if definition.only_frame else []))
        if key not in self._known:
            left_out = self.silent
            if definition.only_frame:
                inner = {n for node in definition.nodes for n in ast.walk(node) if _is_function(n)}
                left_out |= inner - set(definition.nodes)
            self._known[key] = (
                node_hash(definition.nodes, left_out),
                references(definition.nodes, left_out, self._around),
            )
        return self._known[key]

    def surroundings(self, node: ast.AST) -> list[ast.AST]:
        """Return the functions, comprehensions and classes that a node stands in, innermost first."""
        found: list[ast.AST] = []
        while (above := self._parents.get(node)) is not None:
            body = getattr(above, "body", None)
            within = body is node or (isinstance(body, list) and node in body)
            if isinstance(above, COMPREHENSIONS) or (isinstance(above, SCOPES) and within):
                found.append(above)
            node = above
        return found

    def _around(self, node: ast.AST) -> tuple[Bound, Bound]:
        """Return what is bound around a node, for its body and for what is evaluated where it is defined."""
        bound: Bound = {}
        outer = bound
        for scope in reversed(self.surroundings(node)):
            if isinstance(scope, ast.ClassDef):
                bound = {**bound, "__class__": ()}
                outer = {**bound, **bound_names(scope.body)}
            else:
                outer = bound = visible_within(scope, bound)
        return bound, outer

    @functools.cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def functions_at(self, line: int, name: str) -> list[tuple[str, ast.AST]]:
        """Return qualified names and nodes of the functions that a code object of this line and name may be.

        Several only for lambdas on one line.
        """
        return [
            (qualified, node)
            for qualified, nodes in self.scopes.items()
            for node in nodes
            if not isinstance(node, ast.ClassDef)
            and function_line(node) == line
            and getattr(node, "name", "<lambda>") == name
        ]

    @functools.cached_property
    def compiled(self) -> list[CodeType]:
        """Every code object of the file as it is now on the disk."""
        found: list[CodeType] = []
        waiting = [compile(self.tree, self.file, "exec", dont_inherit=True)]
        while waiting:
            code = waiting.pop()
            found.append(code)
            waiting.extend(item for item in code.co_consts if isinstance(item, CodeType))
        return found


_modules: dict[tuple[str, str], tuple[tuple[int, int], ModuleSource]] = {}


def read_module(file: str, name: str, text: bytes | None = None) -> ModuleSource:
    """Read and index a source file, once for each state of it. ``text`` is given for one that is no file.

    Raises SourceError when it cannot be read or is no Python of this version.
    """
    try:
        if text is None:
            found = os.stat(file)
            state = (found.st_mtime_ns, found.st_size)
            known = _modules.get((file, name))
            if known is not None and known[0] == state:
                return known[1]
            with open(file, "rb") as stream:
                text = stream.read()
        else:
            state = (0, hash(text))
        module = ModuleSource(name, file, ast.parse(text, file))
    except OSError as e:
        raise SourceError(f"{file} cannot be read: {e.strerror or e}") from e
    except (SyntaxError, ValueError) as e:
        raise SourceError(f"{file} cannot be read as Python: {e}") from e
    _index_statements(module)
    _index_scopes(module, module.tree, "")
    module.silent = frozenset(
        decorator
        for nodes in module.scopes.values()
        for node in nodes
        for decorator in getattr(node, "decorator_list", ())
        if _declares(module, decorator)
    )
    if b"global" in text:
        for qualified, nodes in module.scopes.items():
            for node in filter(_is_function, nodes):
                for global_name in global_names(node.body):
                    module.setters[global_name].append((qualified, node))
    _modules[file, name] = (state, module)
    return module


def is_declaring(module: str) -> bool:
    """Tell whether a module is Dagster's, one of its libraries', or this package's."""
    package = module.partition(".")[0]
    return package in _DECLARING or package.startswith("dagster_")


def _index_statements(module: ModuleSource) -> None:
    """Index the statements at the top of a module: what they bind, import and change.

    The heads of what stands around a statement (``if os.name == "nt"``) belong to what it binds or changes.
    """
    index = list(steps(module.tree.body))
    for step in index:
        for name, origins in step.binds.items():
            if name == "*":
                module.stars.extend(origins)
            elif origins:
                module.imports[name].extend(origins)
            else:
                module.bindings[name] += [*step.around, *step.parts]
    module.changes = top_level_changes(
        index, module.bindings, functools.partial(_declares, module), module.name == "__main__"
    )


def _index_scopes(module: ModuleSource, node: ast.AST, prefix: str) -> None:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            _index_scopes(module, child, prefix)
            continue
        qualified = prefix + getattr(child, "name", "<lambda>")
        module.scopes[qualified].append(child)
        _index_scopes(module, child, qualified + ("." if isinstance(child, ast.ClassDef) else ".<locals>."))


def _declares(module: ModuleSource, decorator: ast.expr) -> bool:
    """Tell whether a decorator is Dagster's or this package's."""
    base: ast.expr = decorator
    while isinstance(base, (ast.Call, ast.Attribute)):
        base = base.func if isinstance(base, ast.Call) else base.value
    if not isinstance(base, ast.Name):
        return False
    return any(
        is_declaring(imported.module) for imported in module.imports.get(base.id, ()) if not imported.level
    )


def _is_function(node: ast.AST) -> TypeGuard[FunctionNode]:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
