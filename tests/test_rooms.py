"""The rooms of the package and the one-way arrows between them, read off the imports themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "ubunye_orchestrate"
ROOT = Path(__file__).parent.parent / PACKAGE

# Room -> the rooms that it may import. ``errors`` and the package itself are open to all.
ROOMS = {
    "hashing": set(),
    "records": {"hashing"},
    "compare": {"hashing", "records"},
    "expectations": set(),
    "dagster_io": {"hashing", "records", "compare", "expectations"},
    # Dagster's room only where a command runs that needs an instance: see LIGHT below.
    "cli": {"hashing", "records", "compare", "dagster_io"},
    "testing": {"hashing", "records", "compare", "dagster_io"},
}
# The shelves of Dagster's room, each of which may import those before it.
SHELVES = ("upstream", "receipts", "storage", "drift")
# Rooms that a person without these libraries can use.
LIGHT = {"records", "compare", "cli"}
HEAVY = {"pandas", "pyarrow", "numpy", "polars", "duckdb", "pyspark", "delta", "deltalake"}
# What the light rooms may use of hashing: it loads nothing.
LIGHT_MODULES = {f"{PACKAGE}.hashing", f"{PACKAGE}.hashing.fingerprint", f"{PACKAGE}.hashing.loaded"}
# A frame's library is never imported to recognise one: it is loaded already, or the object is no such frame.
ENGINES = HEAVY - {"pyarrow", "numpy"}


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


def imports(path: Path, *, top_level_only: bool) -> Iterator[str]:
    """Yield every module that a file imports; with ``top_level_only`` what importing it really loads."""
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the whole name"
            assert node.module is not None
            yield node.module
            # "from package import module" imports the module too, where there is one.
            yield from (
                f"{node.module}.{alias.name}"
                for alias in node.names
                if (ROOT.parent / Path(*node.module.split("."), f"{alias.name}.py")).exists()
                or (ROOT.parent / Path(*node.module.split("."), alias.name, "__init__.py")).exists()
            )
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
            if not top_level_only:
                pending.extend(node.body)
        elif top_level_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        else:
            pending.extend(ast.iter_child_nodes(node))


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == PACKAGE and parts[1] in ROOMS else None


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: str(value))
def test_imports_follow_the_arrows(module: str, path: Path) -> None:
    room = room_of(module)
    for imported in imports(path, top_level_only=False):
        other = room_of(imported)
        if room is not None and other is not None and other != room:
            assert other in ROOMS[room], (
                f"{module} imports {imported}; {room} may import {ROOMS[room] or 'none'}"
            )
        library = imported.split(".")[0]
        if library.startswith("dagster"):
            assert room == "dagster_io", f"{module} imports {imported}; only dagster_io may"


def shelf_of(module: str) -> str | None:
    parts = module.split(".")
    return (
        parts[2] if parts[:2] == [PACKAGE, "dagster_io"] and len(parts) > 2 and parts[2] in SHELVES else None
    )


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: str(value))
def test_the_shelves_of_dagsters_room_follow_their_order(module: str, path: Path) -> None:
    shelf = shelf_of(module)
    for imported in imports(path, top_level_only=False):
        other = shelf_of(imported)
        if shelf is not None and other is not None:
            assert SHELVES.index(other) <= SHELVES.index(shelf), f"{module} imports {imported}"


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: str(value))
def test_engines_are_not_imported_when_a_module_is(module: str, path: Path) -> None:
    room = room_of(module)
    loaded = set(imports(path, top_level_only=True))
    forbidden = HEAVY if room in LIGHT or room is None else ENGINES
    assert not {name for name in loaded if name.split(".")[0] in forbidden}
    if room in LIGHT:
        heavy = {n for n in loaded if room_of(n) in ("hashing", "dagster_io")} - LIGHT_MODULES
        assert not heavy, f"{module} loads {heavy}, which load pyarrow or Dagster"


def test_every_folder_is_a_known_room() -> None:
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    assert folders == set(ROOMS)
    shelves = {p.name for p in (ROOT / "dagster_io").iterdir() if (p / "__init__.py").exists()}
    assert shelves == set(SHELVES)


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(sorted({{name.split('.')[0] for name in sys.modules}})))"
    # -S would hide the installed packages; -I keeps this process's environment out.
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_no_engine_and_no_dagster() -> None:
    assert not loaded_by(f"import {PACKAGE}; dir({PACKAGE})") & (HEAVY | {"dagster", "pydantic", "upath"})


def test_the_light_rooms_load_no_engine_and_no_dagster() -> None:
    names = [module for module, _ in modules() if room_of(module) in LIGHT]
    assert names
    loaded = loaded_by("\n".join(f"import {name}" for name in names))
    assert not loaded & (HEAVY | {"dagster"})


def test_the_dagster_room_loads_no_engine() -> None:
    names = [module for module, _ in modules() if room_of(module) == "dagster_io"]
    loaded = loaded_by("\n".join(f"import {name}" for name in names))
    assert "dagster" in loaded
    # pyarrow itself loads pandas, when it is there, with the first array that it makes.
    assert not loaded & (ENGINES - {"pandas"})
