"""The project that a function belongs to: its files, and what each name at the top of a file stands for.

All of it is read from the source; no module is imported and no object is touched.
"""

from __future__ import annotations

import ast
import functools
import os
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator, Sequence
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

__all__ = [
    "Definition",
    "ModuleSource",
    "Project",
    "SourceError",
    "is_declaring",
    "is_installed",
    "is_library",
    "read_module",
]

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_INSTALLED = frozenset(["site-packages", "dist-packages"])
# What stands in a decorator of these says how an asset is run and shown; where it bears on the data it is
# recorded as what it is (inputs, partitions, code version), not as code.
_DECLARING = ("dagster", "ubunye_orchestrate")
_OWN_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STANDARD = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}


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


class Project:
    """The files that are the user's own, seen from one of them."""

    def __init__(self, module: ModuleSource) -> None:
        """Take the top-level folder of the project that ``module`` belongs to.

        It is the nearest folder above the module's import root that has a project file or ``.git``, else that
        import root; of an installed package, its own folder only.
        """
        self._import_root = base = _import_root(module)
        if is_installed(base):
            self.root = os.path.join(base, module.name.partition(".")[0])
            self._installed = True
        else:
            self.root = next((up for up in _upwards(base) if _has_marker(up)), base)
            self._installed = False

    def holds(self, file: str) -> bool:
        """Tell whether a file is the project's own: no library's, no environment's, not this package's."""
        file = os.path.realpath(file)
        if self._installed:
            return file == self.root + ".py" or file.startswith(self.root + os.sep)
        return (
            file.startswith(os.path.join(os.path.realpath(self.root), ""))
            and not is_installed(file)
            and not is_library(file)
        )

    def module(self, name: str) -> ModuleSource | None:
        """Return the source of a module of the project, loaded or not; None for any other module.

        Raises SourceError for one that is the project's own and has no readable Python source.
        """
        file = self._file(name)
        if file is None or not self.holds(file):
            return None
        if not file.endswith(".py"):
            raise SourceError(f"{file} has no Python source")
        return read_module(file, name)

    def resolve(self, module: ModuleSource, reference: Reference) -> Iterator[Definition]:
        """Yield the definitions of the project that a reference within ``module`` leads to."""
        if reference.imported is not None:
            yield from self._imported(module, reference.imported, reference.chain[1:], set())
        else:
            yield from self._named(module, reference.chain, set())

    def _named(
        self, module: ModuleSource, chain: Sequence[str], seen: set[tuple[str, str]]
    ) -> Iterator[Definition]:
        name, *rest = chain
        if (module.file, name) in seen:
            return
        seen.add((module.file, name))
        nodes = [*module.bindings.get(name, ()), *module.changes.get(name, ())]
        if nodes:
            yield Definition(module, name, tuple(nodes))
        for imported in module.imports.get(name, ()):
            yield from self._imported(module, imported, rest, seen)
        if not nodes and name not in module.imports:
            for star in module.stars:
                yield from self._imported(module, star, chain, seen)

    def _imported(
        self, module: ModuleSource, imported: ImportedName, rest: Sequence[str], seen: set[tuple[str, str]]
    ) -> Iterator[Definition]:
        name = _absolute(module, imported)
        if imported.attribute == "*":
            rest = list(rest)
        elif imported.attribute is not None:
            rest = [imported.attribute, *rest]
        elif imported.whole:
            # ``import a.b`` binds a; what follows goes on from there.
            name = name.partition(".")[0]
        while True:
            found = self.module(name)
            if rest and (found is None or not _binds(found, rest[0])) and self._exists(f"{name}.{rest[0]}"):
                name, rest = f"{name}.{rest[0]}", rest[1:]
                continue
            if found is not None and rest:
                yield from self._named(found, rest, seen)
            return

    def _file(self, name: str) -> str | None:
        """Return the file of a module as it was loaded, else where the project has it."""
        loaded = sys.modules.get(name)
        if loaded is not None and name != "__main__":
            file = getattr(loaded, "__file__", None)
            return file if isinstance(file, str) else None
        files = (
            file for stem in self._stems(name) for file in (os.path.join(stem, "__init__.py"), stem + ".py")
        )
        return next(filter(os.path.isfile, files), None)

    def _exists(self, name: str) -> bool:
        """Tell whether a module is loaded or in the project; a package may be a folder without a file."""
        return (
            name in sys.modules or self._file(name) is not None or any(map(os.path.isdir, self._stems(name)))
        )

    def _stems(self, name: str) -> list[str]:
        """Return where the project may have a module, without the ending."""
        within = os.path.join(os.path.realpath(self.root), "")
        paths = [self._import_root, *(path for path in sys.path if os.path.realpath(path).startswith(within))]
        return [os.path.join(path, *name.split(".")) for path in dict.fromkeys(paths)]


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


def is_installed(file: str) -> bool:
    """Tell whether a file was installed as a package."""
    return not _INSTALLED.isdisjoint(os.path.normpath(file).split(os.sep))


def is_declaring(module: str) -> bool:
    """Tell whether a module is Dagster's, one of its libraries', or this package's."""
    package = module.partition(".")[0]
    return package in _DECLARING or package.startswith("dagster_")


def is_library(file: str) -> bool:
    """Tell whether a file belongs to Python itself or to this package."""
    file = os.path.realpath(file)
    return any(file.startswith(os.path.join(path, "")) for path in (*_STANDARD, _OWN_PACKAGE))


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


def _import_root(module: ModuleSource) -> str:
    """Return the folder that a module was imported from: above its packages, if folders bear them out."""
    folder = base = os.path.dirname(module.file)
    if module.name == "__main__":
        while os.path.isfile(os.path.join(base, "__init__.py")):
            base = os.path.dirname(base)
        return base
    packages = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    for package in reversed(packages):
        if os.path.basename(base) != package:
            return folder
        base = os.path.dirname(base)
    return base


def _absolute(module: ModuleSource, imported: ImportedName) -> str:
    """Return the module that an import names, its leading dots resolved."""
    if imported.level == 0:
        return imported.module
    up = imported.level - (1 if module.is_package else 0)
    package = module.name.split(".")[: -up or None]
    return ".".join([*package, *filter(None, [imported.module])])


def _binds(module: ModuleSource, name: str) -> bool:
    return name in module.bindings or name in module.imports


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _has_marker(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, marker)) for marker in _MARKERS)
