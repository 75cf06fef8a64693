"""Which statements at the top of a module change an object that another statement there made.

Read from the source alone, so by rule: a call whose result is not kept may change the object whose method it
is and what it is given. What a called function of the same module changes counts where it is called.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ubunye_orchestrate.records.statements import (
    Step,
    arguments,
    called_names,
    changes,
    decorator_changes,
    steps,
)
from ubunye_orchestrate.records.syntax import bound_names, global_names, parameters

__all__ = ["top_level_changes"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_MAKING = frozenset(["__init__", "__new__", "__post_init__"])
_MAIN = "__name__ == '__main__'"


@dataclass(frozen=True)
class _Effect:
    """What calling a function changes."""

    names: frozenset[str] = frozenset()
    """Top-level names."""
    arguments: bool = False
    """True when it changes what it is given."""


def top_level_changes(
    index: Iterable[Step],
    bindings: Mapping[str, list[ast.AST]],
    declares: Callable[[ast.expr], bool],
    is_main: bool,
) -> dict[str, list[ast.AST]]:
    """Return name -> the statements, with what stands around them, that change what the name holds.

    ``declares`` tells calls and decorators that only declare. What a script does when it is run itself counts
    where ``is_main`` says that it was.
    """
    found: dict[str, list[ast.AST]] = defaultdict(list)
    effects = _Effects(bindings)
    for step in index:
        if not is_main and any(ast.unparse(part) == _MAIN for part in step.around):
            continue
        for name in sorted({*_changed(step, bindings, effects, declares)} - step.binds.keys()):
            found[name] += [*step.around, *step.parts]
    return dict(found)


def _changed(
    step: Step, bindings: Mapping[str, list[ast.AST]], effects: _Effects, declares: Callable[[ast.expr], bool]
) -> Iterator[str]:
    statement = step.statement
    calls = list(called_names(step.parts))
    if isinstance(statement, _DEFINITIONS):
        for decorator in statement.decorator_list:
            if not declares(decorator):
                # @convert.register: what is registered belongs to convert
                yield from decorator_changes(decorator)
                call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
                if isinstance(call.func, ast.Name):
                    calls.append((call.func.id, call))
    direct = changes(step.parts)
    yield from direct.surely
    yield from (name for name in direct.called if not _is_fixed(bindings.get(name, ())))
    given = set(direct.given)
    if isinstance(statement, ast.Expr) and declares(statement.value):
        given.clear()
    for name, call in calls:
        effect = effects.of(name)
        yield from effect.names
        if effect.arguments:
            given |= arguments(call)
    yield from (name for name in given if _is_object(bindings.get(name, ())))


class _Effects:
    """What the functions and classes of one module change when they are called."""

    def __init__(self, bindings: Mapping[str, list[ast.AST]]) -> None:
        self._bindings = bindings
        self._known: dict[str, _Effect] = {}

    def of(self, name: str) -> _Effect:
        if name not in self._known:
            self._known[name] = _Effect()  # one that calls itself
            names: set[str] = set()
            changes_arguments = False
            for node in self._bindings.get(name, ()):
                for function in _called_functions(node):
                    effect = self._function(function)
                    names |= effect.names
                    changes_arguments |= effect.arguments
            self._known[name] = _Effect(frozenset(names), changes_arguments)
        return self._known[name]

    def _function(self, function: ast.AST) -> _Effect:
        changed: set[str] = set()
        declared: set[str] = set()
        given: set[str] = set()
        local: set[str] = set()
        for scope in ast.walk(function):
            if not isinstance(scope, _DEFINITIONS):
                continue
            declared |= global_names(scope.body)
            given |= {argument.arg for argument in parameters(scope)} - {"self", "cls"}
            local |= {*bound_names(scope.body), *(argument.arg for argument in parameters(scope))}
            for step in steps(scope.body):
                direct = changes(step.parts)
                changed |= direct.surely
                changed |= {
                    name
                    for name in direct.called | direct.given
                    if not _is_fixed(self._bindings.get(name, ()))
                }
                for name, call in called_names(step.parts):
                    if name not in local:
                        effect = self.of(name)
                        declared |= effect.names
                        changed |= arguments(call) if effect.arguments else set()
        return _Effect(frozenset((changed - local) | declared), not given.isdisjoint(changed))


def _called_functions(node: ast.AST) -> list[ast.AST]:
    """Return what runs when a definition is called: itself, or what makes an object of a class."""
    if isinstance(node, ast.ClassDef):
        return [inner for inner in node.body if isinstance(inner, _FUNCTIONS) and inner.name in _MAKING]
    return [node] if isinstance(node, _FUNCTIONS) else []


def _is_object(nodes: Iterable[ast.AST]) -> bool:
    """Tell whether a name stands for something that a call may change when it is given it."""
    nodes = [node for node in nodes if not isinstance(node, _DEFINITIONS)]
    return bool(nodes) and not _is_fixed(nodes)


def _is_fixed(nodes: Iterable[ast.AST]) -> bool:
    """Tell whether a name stands for texts, numbers and the like, which nothing changes."""
    nodes = list(nodes)
    return bool(nodes) and all(
        isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        and node.value is not None
        and _is_fixed_value(node.value)
        for node in nodes
    )


def _is_fixed_value(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_fixed_value(node.left) and _is_fixed_value(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_fixed_value(node.operand)
    return isinstance(node, (ast.Constant, ast.JoinedStr))
