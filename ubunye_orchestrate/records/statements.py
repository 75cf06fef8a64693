"""The statements of a scope: what each binds, what stands around it, and which objects it changes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ubunye_orchestrate.records.syntax import SCOPES, Bound, bound_names

__all__ = ["Changes", "Step", "arguments", "called_names", "changes", "decorator_changes", "steps"]

# What returns something and changes its object too, in Python's own containers.
_TAKING = frozenset(["pop", "popitem", "setdefault"])
# What writes to a log changes nothing that a function reads.
_TELLING = frozenset(["critical", "debug", "error", "exception", "info", "log", "print", "warn", "warning"])


@dataclass(frozen=True)
class Step:
    """A statement without the blocks within it."""

    statement: ast.stmt | ast.ExceptHandler
    parts: tuple[ast.AST, ...]
    """The statement itself, or the heads of one that has blocks (``for … in``, ``with … as``)."""
    around: tuple[ast.AST, ...]
    """The heads of what it stands in: ``if os.name == "nt"``."""
    binds: Bound
    """The names that it binds, with what an import binds them to."""


@dataclass(frozen=True)
class Changes:
    """The names whose objects a statement changes without binding them."""

    surely: frozenset[str]
    """``TABLE["a"] = …``, ``OPTIONS.limit = …``, ``setattr(OPTIONS, …)``, ``del TABLE["a"]``."""
    called: frozenset[str]
    """``NAMES.append(…)``, ``TABLE.setdefault("a", []).append(…)``."""
    given: frozenset[str]
    """``heappush(HEAP, …)``."""


def steps(body: Iterable[ast.stmt], around: tuple[ast.AST, ...] = ()) -> Iterator[Step]:
    """Yield the statements of a body, also those within ``if``, ``try``, ``with``, ``match`` and loops."""
    for statement in body:
        handlers: list[ast.ExceptHandler] = getattr(statement, "handlers", [])
        blocks: list[list[ast.stmt]] = []
        if not isinstance(statement, SCOPES):
            blocks = [
                block for name in ("body", "orelse", "finalbody") if (block := getattr(statement, name, None))
            ]
            blocks += [handler.body for handler in handlers]
            blocks += [case.body for case in getattr(statement, "cases", ())]
        # A compound statement binds with its head only.
        parts = tuple(_heads(statement)) if blocks else (statement,)
        for block in blocks:
            yield from steps(block, (*around, *parts))
        for handler in handlers:
            if handler.name is not None:
                yield Step(handler, tuple(filter(None, [handler.type])), around, {handler.name: ()})
        yield Step(statement, parts, around, bound_names(parts))


def _heads(statement: ast.stmt) -> list[ast.AST]:
    heads: list[ast.AST] = [
        part for name in ("target", "iter", "test", "subject") if (part := getattr(statement, name, None))
    ]
    for case in getattr(statement, "cases", ()):
        heads += [case.pattern, *([case.guard] if case.guard is not None else [])]
    return heads + list(getattr(statement, "items", ()))


def changes(parts: Sequence[ast.AST]) -> Changes:
    """Return the names of the objects that a statement, or a decorator, changes.

    Of a call whose result is kept (``limits = CONFIG.get("limits")``) only what its method's name says.
    """
    surely: set[str] = set()
    called: set[str] = set()
    given: set[str] = set()
    for part in parts:
        dropped = isinstance(part, ast.Expr)
        for node in _run(part):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                surely.update(_base(node))
            elif isinstance(node, ast.Call):
                method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if method and (dropped or method in _TAKING):
                    called.update(_base(node.func))
                if isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
                    surely.update(name for first in node.args[:1] for name in _base(first, bare=True))
                if dropped:
                    given.update(arguments(node))
    return Changes(frozenset(surely), frozenset(called), frozenset(given))


def arguments(call: ast.Call) -> set[str]:
    """Return the names that are given to a call, as they are or within an argument."""
    within = [node for part in (*call.args, *call.keywords) for node in _run(part)]
    functions = {id(node.func) for node in within if isinstance(node, ast.Call)}
    return {node.id for node in within if isinstance(node, ast.Name) and id(node) not in functions}


def called_names(parts: Iterable[ast.AST]) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of plain names in what runs of these nodes now: ``init()``."""
    for part in parts:
        for node in _run(part):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield node.func.id, node


def decorator_changes(decorator: ast.expr) -> frozenset[str]:
    """Return the name that a decorator registers with: ``@convert.register``, ``@TABLE.add("a")``."""
    return frozenset(_base(decorator.func if isinstance(decorator, ast.Call) else decorator))


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """Walk what runs when a statement does: no bodies of functions, nothing that is only told."""
    if isinstance(node, SCOPES) or (isinstance(node, ast.Call) and _tells(node)):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _run(child)


def _tells(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _TELLING


def _base(node: ast.expr, *, bare: bool = False) -> Iterator[str]:
    """Yield the name that a chain starts from; a name alone is no chain."""
    base: ast.AST = node
    while isinstance(base, (ast.Attribute, ast.Subscript, ast.Call)):
        base = base.func if isinstance(base, ast.Call) else base.value
    if isinstance(base, ast.Name) and (bare or base is not node):
        yield base.id
