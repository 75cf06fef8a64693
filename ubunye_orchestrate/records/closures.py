"""What a function was made with: which of its values the source of its makers leaves open.

A value is settled when all that it comes from is written down: literals, names at the top of a module, calls
without a run-time argument. What depends on a parameter of a maker is open, also where it does so by way of
other names, of a condition or loop around it, or of an inner function. A clock or a connection that a maker
opens by itself is settled by its expression; what a call finds outside is no code.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterator

from ubunye_orchestrate.records.modules import ModuleSource
from ubunye_orchestrate.records.statements import changes, steps
from ubunye_orchestrate.records.syntax import (
    COMPREHENSIONS,
    SCOPES,
    bound_names,
    parameters,
    references,
    visible_within,
)

__all__ = ["Making", "attribute_reads", "default_values"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Making:
    """The makers of one function or class, seen from it."""

    def __init__(self, module: ModuleSource, node: ast.AST, held: Collection[str], own: Collection[ast.AST]):
        """Take the cells of the function that are hashed or followed anyway, ``held``.

        What the functions in ``own`` (this one, and those that it reaches) do to a value is done in a run; it
        is not what the value was when the function was made.
        """
        self._node = node
        self._held = held
        self._own = own
        self.needed: dict[ast.AST, None] = {}
        """Inner functions of the makers that settled values come from."""
        self._scope: _Scope | None = None
        for surrounding in reversed(module.surroundings(node)):
            self._scope = _Scope(surrounding, self._scope)

    def is_open(self, name: str) -> bool:
        """Tell whether the value of a cell is left open by its makers' source."""
        scope = self._find(name, self._scope)
        if scope is None or not scope.is_in_function:
            return True
        return name in scope.parameters or not self._is_settled(name, scope, set())

    def open_defaults(self) -> set[str]:
        """Return the parameters of the function whose default value is left open."""
        return {
            name
            for name, default in _defaults(self._node)
            if any(
                (found := self._find(used, self._scope, defining=True)) is not None
                and (not found.is_in_function or not self._is_settled(used, found, set()))
                for used in _loaded(default)
            )
        }

    def open_attributes(self) -> set[str]:
        """Return the names that a class binds to a value that is left open."""
        within = _Scope(self._node, self._scope)
        return {name for name in within.names if not self._is_settled(name, within, set())}

    @property
    def defaults_use_makers(self) -> bool:
        """True when a default value is made of what a maker binds."""
        return any(
            self._find(used, self._scope, defining=True) is not None
            for _, default in _defaults(self._node)
            for used in _loaded(default)
        )

    def _find(self, name: str, scope: _Scope | None, defining: bool = False) -> _Scope | None:
        """Return the scope that a name belongs to; None for the top of the module.

        A class's names are seen from its own body only, which ``defining`` says this is.
        """
        first = scope
        while scope is not None:
            visible = not isinstance(scope.node, ast.ClassDef) or (defining and scope is first)
            if visible and name in scope.names:
                return scope
            scope = scope.above
        return None

    def _is_settled(self, name: str, scope: _Scope, seen: set[tuple[_Scope, str]]) -> bool:
        if (scope, name) in seen:
            return True
        seen.add((scope, name))
        touching = list(self._touching(name, scope))
        if name in scope.parameters:
            # One that is held says what follows from it, as long as it is still what was given.
            given = name in self._held and self._find(name, self._scope) is scope
            if touching or not given:
                return False
        origins = (
            (used, self._find(used, place, defining=True)) for names, place in touching for used in names
        )
        return all(found is None or self._is_settled(used, found, seen) for used, found in origins)

    def _touching(self, name: str, scope: _Scope) -> Iterator[tuple[set[str], _Scope]]:
        """Yield what each statement loads that binds or changes a name of ``scope``, and where it stands.

        Of inner functions that do so or are the name, the bodies are needed: a maker counts without them.
        """
        for statement, touched, used in scope.statements:
            if name in touched:
                if isinstance(statement, _FUNCTIONS):
                    self.needed.setdefault(statement)
                yield used, scope
        for inner in scope.inner:
            if inner.node not in self._own and name not in inner.names:
                for found in self._touching(name, inner):
                    self.needed.setdefault(inner.node)
                    yield found


class _Scope:
    """A function, lambda, comprehension or class, and the scope that it stands in."""

    def __init__(self, node: ast.AST, above: _Scope | None) -> None:
        self.node = node
        self.above = above
        self.parameters = {argument.arg for argument in parameters(node)}

    @functools.cached_property
    def names(self) -> set[str]:
        """What belongs to it, and not to a scope around it."""
        return visible_within(self.node, {}).keys() - self._nonlocal

    @property
    def is_in_function(self) -> bool:
        """True when it is a function, or stands in one: then a maker's source says what it does."""
        scope: _Scope | None = self
        while scope is not None and not isinstance(scope.node, _FUNCTIONS):
            scope = scope.above
        return scope is not None

    @functools.cached_property
    def statements(self) -> list[tuple[ast.AST, set[str], set[str]]]:
        """Each statement with the names that it binds or changes, and those that it loads."""
        if isinstance(self.node, COMPREHENSIONS):
            used = {name for generator in self.node.generators for name in _loaded(generator.iter)}
            return [(self.node, self.names, used)]
        if isinstance(self.node, ast.Lambda):
            return [(self.node.body, set(bound_names([self.node.body])), _loaded(self.node.body))]
        found: list[tuple[ast.AST, set[str], set[str]]] = []
        for step in steps(self.node.body):  # type: ignore[attr-defined]  # only functions and classes are left
            changed = changes(step.parts)
            touched = {*step.binds, *changed.surely, *changed.called, *changed.given}
            used = {name for part in (*step.around, *step.parts) for name in _loaded(part)}
            found.append((step.statement, touched, used))
        return found

    @functools.cached_property
    def inner(self) -> list[_Scope]:
        """The functions and lambdas that are made in it."""
        return [_Scope(node, self) for node in _inner(self.node) if isinstance(node, _FUNCTIONS)]

    @functools.cached_property
    def _nonlocal(self) -> set[str]:
        body = getattr(self.node, "body", [])
        nodes = _inner(self.node) if isinstance(body, list) else []
        return {name for node in nodes if isinstance(node, ast.Nonlocal) for name in node.names}


def attribute_reads(node: ast.AST, name: str) -> set[str]:
    """Return the attributes that a function reads of a name; none when it uses it in any other way too."""
    chains = [reference.chain for reference in references([node]) if reference.chain[0] == name]
    return {chain[1] for chain in chains} if all(len(chain) > 1 for chain in chains) else set()


def default_values(
    node: ast.AST, positional: tuple[object, ...], named: dict[str, object]
) -> dict[str, object]:
    """Return the default values of a live function by parameter, given its node and its defaults."""
    if not isinstance(node, _FUNCTIONS):
        return {}
    arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    return {**dict(zip(arguments[len(arguments) - len(positional) :], positional, strict=False)), **named}


def _defaults(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, _FUNCTIONS):
        arguments = [*node.args.posonlyargs, *node.args.args]
        defaults = node.args.defaults
        for argument, default in zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True):
            yield argument.arg, default
        for argument, optional in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            if optional is not None:
                yield argument.arg, optional


def _loaded(node: ast.AST) -> set[str]:
    return {reference.chain[0] for reference in references([node])}


def _inner(scope: ast.AST) -> Iterator[ast.AST]:
    """Walk what belongs to a scope, with its inner scopes and without what these hold."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
