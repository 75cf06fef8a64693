"""A source file of a project, and what each name at its top stands for; read, never imported."""

from __future__ import annotations

import ast
import functools
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType

from ubunye_orchestrate.records.syntax import (
    ImportedName,
    Reference,
    function_line,
    imported_names,
    node_hash,
    references,
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
    """Top-level name -> top-level statements that change what it holds, or register something with it."""
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
            self._known[key] = (node_hash(definition.nodes, left_out), references(definition.nodes, left_out))
        return self._known[key]

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
    _index_statements(module, module.tree.body, ())
    # ``@dg.asset`` registers nothing that another reader of ``dg`` would see.
    module.changes = {name: nodes for name, nodes in module.changes.items() if name in module.bindings}
    _index_scopes(module, module.tree, "")
    module.silent = frozenset(
        decorator
        for nodes in module.scopes.values()
        for node in nodes
        for decorator in getattr(node, "decorator_list", ())
        if _declares(module, decorator)
    )
    _modules[file, name] = (state, module)
    return module


def is_declaring(module: str) -> bool:
    """Tell whether a module is Dagster's, one of its libraries', or this package's."""
    package = module.partition(".")[0]
    return package in _DECLARING or package.startswith("dagster_")


def _index_statements(module: ModuleSource, body: Sequence[ast.stmt], around: tuple[ast.AST, ...]) -> None:
    """Index the statements at the top of a module, also those within ``if``, ``try``, ``with`` and loops.

    The heads of what stands around a statement (``if os.name == "nt"``) belong to what it binds.
    """
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for name, imported in imported_names(statement):
                if name == "*":
                    module.stars.append(imported)
                else:
                    module.imports[name].append(imported)
            continue
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            module.bindings[statement.name] += [*around, statement]
            for decorator in statement.decorator_list:
                # @convert.register: what is registered belongs to convert
                if changed := _changed_name(decorator):
                    module.changes[changed].append(statement)
            continue
        inner = [
            block for name in ("body", "orelse", "finalbody") if (block := getattr(statement, name, None))
        ]
        inner += [handler.body for handler in getattr(statement, "handlers", ())]
        inner += [case.body for case in getattr(statement, "cases", ())]
        # A compound statement binds with its head only: for … in, with … as.
        heads = [*around, *(_heads(statement) if inner else [statement])]
        for block in inner:
            _index_statements(module, block, tuple(heads))
        for name in {
            node.id
            for head in heads[len(around) :]
            for node in ast.walk(head)
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
        }:
            module.bindings[name].extend(heads)
        if not inner and (changed := _changed_name(statement)):
            module.changes[changed].append(statement)


def _heads(statement: ast.stmt) -> list[ast.AST]:
    heads: list[ast.AST] = [
        part for name in ("target", "iter", "test", "subject") if (part := getattr(statement, name, None))
    ]
    return heads + list(getattr(statement, "items", ()))


def _changed_name(node: ast.AST) -> str | None:
    """Return the top-level name that a statement changes without binding it, or a decorator registers with.

    ``TABLE["a"] = …``, ``OPTIONS.limit = …``, ``NAMES.append(…)``, ``del TABLE["a"]``, ``@convert.register``.
    """
    targets: Sequence[ast.AST] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif isinstance(node, ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        targets = [node.value.func]
    elif isinstance(node, ast.expr):
        targets = [node.func if isinstance(node, ast.Call) else node]
    for target in targets:
        base = target
        while isinstance(base, (ast.Attribute, ast.Subscript)):
            base = base.value
        if isinstance(base, ast.Name) and base is not target:
            return base.id
    return None


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


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
