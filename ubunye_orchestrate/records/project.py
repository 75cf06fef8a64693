"""The project that a function belongs to: which files are its own, and where a name in one of them leads.

All of it is read from the source; no module is imported and no object is touched.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence

from ubunye_orchestrate.records.modules import Definition, ModuleSource, SourceError, read_module
from ubunye_orchestrate.records.syntax import ImportedName, Reference

__all__ = ["Project", "is_installed", "is_library"]

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_INSTALLED = frozenset(["site-packages", "dist-packages"])
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
        if self._is_foreign(name.partition(".")[0]):
            return
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
