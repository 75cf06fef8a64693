"""The public names: small, flat, sorted, each with its docstring, none loaded before it is used."""

from __future__ import annotations

import ast
import inspect
import pathlib

import pytest

import ubunye_orchestrate


def names_for_type_checkers() -> list[str]:
    tree = ast.parse(pathlib.Path(inspect.getfile(ubunye_orchestrate)).read_text())
    block = next(
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return [alias.asname or alias.name for node in imports for alias in node.names]


def test_names_are_sorted_and_the_same_for_type_checkers_and_at_run_time() -> None:
    public = [name for name in ubunye_orchestrate.__all__ if name != "__version__"]
    assert public == sorted(public)
    assert public == sorted(ubunye_orchestrate._EXPORTS)
    assert public == sorted(names_for_type_checkers())
    assert dir(ubunye_orchestrate) == sorted(ubunye_orchestrate.__all__)


@pytest.mark.parametrize("name", sorted(ubunye_orchestrate._EXPORTS))
def test_every_name_loads_and_is_documented(name: str) -> None:
    value = getattr(ubunye_orchestrate, name)
    assert inspect.getdoc(value)
    assert value.__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'fingerprints'"):
        ubunye_orchestrate.fingerprints  # noqa: B018 - the access is the test
