"""The project that a function belongs to: which files are its own, and where a name in one of them leads.

All of it is read from the source; no module is imported and no object is touched.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from itertools import accumulate, repeat

from ubunye_orchestrate.records.modules import Definition, ModuleSource, SourceError, read_module
from ubunye_orchestrate.records.syntax import ImportedName, Reference

__all__ = ["Project", "is_installed", "is_library"]

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_INSTALLED = frozenset(["site-packages", "dist-packages"])
# What every module has without binding it, on some Python, system or notebook if not on this one.
_OF_MODULES = frozenset(
    [
        *("__annotations__", "__builtins__", "__cached__", "__class__", "__dict__", "__doc__", "__file__"),
        *("__loader__", "__name__", "__package__", "__path__", "__spec__"),
        *("BaseExceptionGroup", "ExceptionGroup", "PythonFinalizationError", "WindowsError"),
        *("__IPYTHON__", "display", "get_ipython"),
    ]
)
_OWN_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Where a link leads is settled for a process when it loads what is behind it; and each step asks again.
_real_path = functools.lru_cache(maxsize=4096)(os.path.realpath)
_STANDARD = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}


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

    @functools.cached_property
    def _paths(self) -> list[str]:
        """Where the project's modules may be: its import root, and what else of it is on Python's path."""
        within = os.path.join(_real_path(self.root), "")
        paths = (path for path in sys.path if _real_path(path).startswith(within))
        return list(dict.fromkeys([self._import_root, *paths]))

    def holds(self, file: str) -> bool:
        """Tell whether a file is the project's own: no library's, no environment's, not this package's."""
        file = _real_path(file)
        if self._installed:
            return file == self.root + ".py" or file.startswith(self.root + os.sep)
        return (
            file.startswith(os.path.join(_real_path(self.root), ""))
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

    def resolve(self, module: ModuleSource, reference: Reference, missing: list[str]) -> Iterator[Definition]:
        """Yield the definitions of the project that a reference within ``module`` leads to.

        A module that is used as a value leads to all that it defines. To ``missing`` comes the name that the
        source of a module of the project should bind and does not.
        """
        if reference.imported is not None:
            yield from self._imported(module, reference.imported, reference.chain[1:], set(), missing)
        else:
            yield from self._named(module, reference.chain, set(), missing)

    def whole(self, module: ModuleSource) -> Iterator[Definition]:
        """Yield all that a module defines, imports by name, or has as the package of other modules."""
        yield from self._whole(module, set(), [])

    def _named(
        self,
        module: ModuleSource,
        chain: Sequence[str],
        seen: set[tuple[str, str]],
        missing: list[str],
        *,
        outside: bool = False,
    ) -> Iterator[Definition]:
        name, *rest = chain
        if (module.file, name) in seen:
            return
        seen.add((module.file, name))
        imports = module.imports.get(name, ())
        nodes = list(module.bindings.get(name, ()))
        if nodes or name in module.setters or not all(map(self._leads_out, repeat(module), imports)):
            nodes += module.changes.get(name, ())
        if nodes:
            yield Definition(module, name, tuple(nodes))
        for qualified, node in module.setters.get(name, ()):
            yield Definition(module, qualified, (node,))
        # Where a name has several origins (``except ImportError``), one that is not there is no loss.
        unheard = missing if len(imports) == 1 and name not in module.bindings else []
        for imported in imports:
            yield from self._imported(module, imported, rest, seen, unheard)
        if nodes or imports or name in module.setters:
            return
        if module.is_package and self._exists(f"{module.name}.{name}"):
            part = ImportedName(f"{module.name}.{name}", 0, None)
            yield from self._imported(module, part, rest, seen, missing)
            return
        is_builtin = not outside and hasattr(builtins, name)
        if not is_builtin and not self._binds(module, name, set()):
            missing.append(f"{module.name}.{name}")
        for star in module.stars:
            yield from self._imported(module, star, chain, seen, [])

    def _imported(
        self,
        module: ModuleSource,
        imported: ImportedName,
        rest: Sequence[str],
        seen: set[tuple[str, str]],
        missing: list[str],
    ) -> Iterator[Definition]:
        name = _absolute(module, imported)
        if self._leads_out(module, imported):
            return
        if imported.attribute == "*":
            rest = list(rest)
        elif imported.attribute is not None:
            rest = [imported.attribute, *rest]
        elif imported.whole:
            # ``import a.b`` binds a; what follows goes on from there.
            if not rest:
                for prefix in accumulate(name.split("."), "{}.{}".format):
                    if (part := self.module(prefix)) is not None:
                        yield from self._whole(part, seen, missing)
                return
            name = name.partition(".")[0]
        while True:
            found = self.module(name)
            # ``from . import part`` within a package asks for its part, not for what that line binds.
            bound = found is not None and found.file != module.file and bool(rest) and _binds(found, rest[0])
            if rest and not bound and self._exists(f"{name}.{rest[0]}"):
                name, rest = f"{name}.{rest[0]}", rest[1:]
                continue
            if found is not None and (not rest or rest[0] == "__dict__"):
                yield from self._whole(found, seen, missing)
            elif found is not None:
                yield from self._named(found, rest, seen, missing, outside=True)
            return

    def _whole(
        self, module: ModuleSource, seen: set[tuple[str, str]], missing: list[str]
    ) -> Iterator[Definition]:
        if (module.file, "*") in seen:
            return
        seen.add((module.file, "*"))
        for name in sorted({*module.bindings, *module.setters}):
            yield from self._named(module, [name], seen, missing)
        for imports in module.imports.values():
            for imported in imports:
                # Modules that a module imports are its own means; those of a package are parts of it.
                if imported.attribute is None or (
                    not module.is_package and self._is_module(module, imported)
                ):
                    continue
                yield from self._imported(module, imported, [], seen, [])
        for star in module.stars:
            yield from self._imported(module, star, [], seen, [])

    def _is_module(self, module: ModuleSource, imported: ImportedName) -> bool:
        name = _absolute(module, imported)
        found = None if self._leads_out(module, imported) else self.module(name)
        bound = found is not None and _binds(found, str(imported.attribute))
        return not bound and self._exists(f"{name}.{imported.attribute}")

    def _binds(self, module: ModuleSource, name: str, seen: set[str]) -> bool:
        """Tell whether a module binds a name, as far as its source and that of its stars can say."""
        if _binds(module, name) or name in module.setters or name in _OF_MODULES:
            return True
        seen.add(module.file)
        for star in module.stars:
            found = None if self._leads_out(module, star) else self.module(_absolute(module, star))
            if found is None or (found.file not in seen and self._binds(found, name, seen)):
                return True
        return not os.path.isfile(module.file)  # a notebook's cell, whose names the others bind

    def _leads_out(self, module: ModuleSource, imported: ImportedName) -> bool:
        return self._is_foreign(_absolute(module, imported).partition(".")[0])

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

    def _is_foreign(self, package: str) -> bool:
        """Tell whether a top-level package is known to be Python's or a library's, which most are."""
        file = getattr(sys.modules.get(package), "__file__", None)
        return not self.holds(file) if isinstance(file, str) else package in sys.stdlib_module_names

    def _exists(self, name: str) -> bool:
        """Tell whether a module is loaded or in the project; a package may be a folder without a file."""
        return (
            name in sys.modules or self._file(name) is not None or any(map(os.path.isdir, self._stems(name)))
        )

    def _stems(self, name: str) -> list[str]:
        """Return where the project may have a module, without the ending."""
        return [os.path.join(path, *name.split(".")) for path in self._paths]


def is_installed(file: str) -> bool:
    """Tell whether a file was installed as a package."""
    return not _INSTALLED.isdisjoint(os.path.normpath(file).split(os.sep))


def is_library(file: str) -> bool:
    """Tell whether a file belongs to Python itself or to this package."""
    file = _real_path(file)
    return any(file.startswith(os.path.join(path, "")) for path in (*_STANDARD, _OWN_PACKAGE))


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


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _has_marker(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, marker)) for marker in _MARKERS)
