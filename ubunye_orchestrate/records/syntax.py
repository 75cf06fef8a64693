"""Python source as syntax: what a piece of it says, and which names it loads.

What a piece says is hashed without comments, formatting, docstrings and positions, over a text of our own:
what ``ast.dump`` and ``ast.unparse`` write differs between versions of Python. The text names the classes of
the nodes and their fields that are not empty, so it is one text from Python 3.10 on wherever the tree did not
change; texts within f-strings, which versions cut differently, are joined.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = [
    "COMPREHENSIONS",
    "SCOPES",
    "Bound",
    "FunctionNode",
    "ImportedName",
    "Reference",
    "bound_names",
    "function_line",
    "global_names",
    "imported_names",
    "node_hash",
    "own_nodes",
    "parameters",
    "references",
    "visible_within",
]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_NAMING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler),
    *(ast.MatchAs, ast.MatchStar),
)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# The kind of a string (u"") and comments on types say nothing; whether a name is loaded, its place says.
_SILENT_FIELDS = frozenset(["kind", "type_comment", "type_ignores", "ctx"])


@dataclass(frozen=True)
class ImportedName:
    """What an import binds a name to."""

    module: str
    """Module as written; with ``level`` dots before it."""
    level: int
    attribute: str | None
    """The name taken from the module; None for the module itself, ``*`` for all of them."""
    whole: bool = False
    """True for ``import a.b.c``, which binds ``a``."""


@dataclass(frozen=True)
class Reference:
    """A name from outside that a piece of source uses, with its attributes: ``parse.times``."""

    chain: tuple[str, ...]
    imported: ImportedName | None = None
    """Set when the piece imports the name itself."""


def node_hash(nodes: Iterable[ast.AST], left_out: frozenset[ast.AST] = frozenset()) -> str:
    """Return ``sha256:`` over what the nodes say, one after another.

    Of a function in ``left_out`` the body, of any other node there all is passed over.
    """
    out: list[str] = []
    for node in nodes:
        _write(node, out, left_out)
    return "sha256:" + hashlib.sha256("".join(out).encode("utf-8", "surrogatepass")).hexdigest()


# Name -> the imports that bind it within a function; none for any other local name.
Bound = dict[str, tuple[ImportedName, ...]]


def references(
    nodes: Iterable[ast.AST],
    left_out: frozenset[ast.AST] = frozenset(),
    around: Callable[[ast.AST], tuple[Bound, Bound]] | None = None,
) -> list[Reference]:
    """Return the names that the nodes load from outside, each chain once, in the order of the source.

    ``around`` gives what the functions around a node bind: for the node, and for what is evaluated where it
    is defined (there, a class's names are seen too).
    """
    found: dict[Reference, None] = {}
    for node in nodes:
        bound, outer = around(node) if around is not None else ({}, {})
        for reference in _Names(left_out).of(node, bound, outer):
            found.setdefault(reference)
    return list(found)


def imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ImportedName]]:
    """Yield each name that an import binds (``*`` for a star), and to what."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            bound = ImportedName(node.module or "", node.level, alias.name)
            yield alias.asname or alias.name, bound
        elif alias.asname is not None:
            yield alias.asname, ImportedName(alias.name, 0, None)
        else:
            yield alias.name.partition(".")[0], ImportedName(alias.name, 0, None, whole=True)


def function_line(node: ast.AST) -> int:
    """Return the line that a code object gives as its first: that of the first decorator."""
    decorators = getattr(node, "decorator_list", [])
    line: int = decorators[0].lineno if decorators else node.lineno  # type: ignore[attr-defined]  # scopes have one
    return line


def _write(node: object, out: list[str], left_out: frozenset[ast.AST]) -> None:
    if isinstance(node, ast.Constant):
        value = node.value
        # Writing decimal digits is limited, hexadecimal ones are not; which characters repr() escapes changes
        # with each version of Unicode.
        text = hex(value) if isinstance(value, int) and not isinstance(value, bool) else ascii(value)
        out.append(f"{type(value).__name__}={text};")
    elif isinstance(node, ast.JoinedStr):
        out.append("JoinedStr(")
        for part in _joined(node.values):
            _write(part, out, left_out)
        out.append(")")
    elif isinstance(node, ast.AST):
        if node in left_out and not isinstance(node, FunctionNode):
            return
        out.append(type(node).__name__ + "(")
        for name in node._fields:
            value = getattr(node, name, None)
            if (
                name in _SILENT_FIELDS
                or value is None
                or value == []
                or (name == "body" and node in left_out)
            ):
                continue
            out.append(name + ":")
            _write(_speaking(value) if name in ("body", "orelse", "finalbody") else value, out, left_out)
        out.append(")")
    elif isinstance(node, list):
        out.append("[")
        for item in node:
            _write(item, out, left_out)
        out.append("]")
    else:
        out.append(f"{node!a};")


def _speaking(body: object) -> object:
    """Leave out statements that do nothing: docstrings, other texts on their own, ``pass``."""
    if not isinstance(body, list):
        return body
    return [statement for statement in body if not _is_silent(statement)]


def _is_silent(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _joined(values: Sequence[ast.expr]) -> list[ast.expr]:
    """Merge the texts of an f-string that stand side by side: versions cut them differently."""
    merged: list[ast.expr] = []
    text = ""
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            text += value.value
            continue
        merged += [ast.Constant(text), value] if text else [value]
        text = ""
    if text:
        merged.append(ast.Constant(text))
    return merged


class _Names:
    """Finds the names that a node loads and does not bind, by Python's rules of scope."""

    def __init__(self, left_out: frozenset[ast.AST]) -> None:
        self._left_out = left_out

    def of(self, node: ast.AST, bound: Bound, outer: Bound | None = None) -> Iterator[Reference]:
        """``outer`` is what a function or class sees where it is defined, if more than its body does."""
        if node in self._left_out and not isinstance(node, FunctionNode):
            return
        outer = bound if outer is None else outer
        if generic := getattr(node, "type_params", None):
            names: Bound = {parameter.name: () for parameter in generic}
            bound, outer = {**bound, **names}, {**outer, **names}
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield from self._chain(node, bound)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from self._function(node, bound, outer)
        elif isinstance(node, ast.ClassDef):
            for part in (*node.decorator_list, *node.bases, *node.keywords):
                yield from self.of(part, outer)
            within = {**bound, **bound_names(node.body), "__class__": ()}
            for statement in node.body:
                # A method does not see the names of its class; its defaults and decorators do.
                is_scope = isinstance(statement, SCOPES)
                yield from self.of(statement, {**bound, "__class__": ()} if is_scope else within, within)
        elif isinstance(node, COMPREHENSIONS):
            yield from self._comprehension(node, bound)
        else:
            for child in ast.iter_child_nodes(node):
                yield from self.of(child, bound)

    def _chain(self, node: ast.Name | ast.Attribute, bound: Bound) -> Iterator[Reference]:
        attributes: list[str] = []
        base: ast.AST = node
        while isinstance(base, ast.Attribute):
            attributes.append(base.attr)
            base = base.value
        if not isinstance(base, ast.Name):
            yield from self.of(base, bound)
        elif base.id not in bound:
            # What is stored to is named too: ``global total; total = …`` and ``SETTINGS.limit = …``.
            yield Reference((base.id, *reversed(attributes)))
        else:
            for imported in bound[base.id]:
                yield Reference((base.id, *reversed(attributes)), imported)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, bound: Bound, outer: Bound
    ) -> Iterator[Reference]:
        arguments = node.args
        parts: list[ast.AST] = [*getattr(node, "decorator_list", []), *arguments.defaults]
        parts += [default for default in arguments.kw_defaults if default is not None]
        parts += [argument.annotation for argument in parameters(node) if argument.annotation is not None]
        if isinstance(node, FunctionNode) and node.returns is not None:
            parts.append(node.returns)
        for child in parts:
            yield from self.of(child, outer)
        if node in self._left_out:
            return
        within = visible_within(node, bound)
        for child in _body(node):
            yield from self.of(child, within)

    def _comprehension(self, node: ast.AST, bound: Bound) -> Iterator[Reference]:
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]  # all four have them
        within = visible_within(node, bound)
        yield from self.of(generators[0].iter, bound)
        for position, generator in enumerate(generators):
            parts = [generator.target, *generator.ifs, *([generator.iter] if position else [])]
            for part in parts:
                yield from self.of(part, within)
        for name in ("elt", "key", "value"):
            if (result := getattr(node, name, None)) is not None:
                yield from self.of(result, within)


def visible_within(scope: ast.AST, bound: Bound) -> Bound:
    """Return what is bound within a scope, given what is bound around it."""
    if isinstance(scope, COMPREHENSIONS):
        return {**bound, **bound_names(generator.target for generator in scope.generators)}
    body = _body(scope)
    within = {name: origin for name, origin in bound.items() if name not in global_names(body)}
    within.update(bound_names(body))
    within.update(dict.fromkeys((argument.arg for argument in parameters(scope)), ()))
    return within


def parameters(node: ast.AST) -> list[ast.arg]:
    """Return the parameters of a function or lambda; none of any other node."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return []
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return named + [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]


def bound_names(body: Iterable[ast.AST]) -> Bound:
    """Return the names that a body binds itself, without what its inner functions and classes bind."""
    bound: Bound = {}
    body = list(body)
    for node in own_nodes(body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, imported in imported_names(node):
                bound[name] = (*bound.get(name, ()), imported)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.setdefault(node.id, ())
        elif isinstance(node, _NAMING) and node.name is not None:
            bound.setdefault(node.name, ())
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            bound.setdefault(node.rest, ())
    for name in global_names(body):
        bound.pop(name, None)
    return bound


def global_names(body: Iterable[ast.AST]) -> set[str]:
    """Return the names that a body declares ``global``, without its inner functions."""
    return {name for node in own_nodes(body) if isinstance(node, ast.Global) for name in node.names}


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Walk a scope's own nodes. Of a comprehension only ``:=`` binds outside of it."""
    for node in body:
        yield node
        if isinstance(node, SCOPES):
            continue
        if isinstance(node, COMPREHENSIONS):
            for inner in ast.walk(node):
                if isinstance(inner, ast.NamedExpr):
                    yield inner.target
            continue
        yield from own_nodes(ast.iter_child_nodes(node))


def _body(scope: ast.AST) -> list[ast.AST]:
    body: ast.AST | list[ast.AST] = scope.body  # type: ignore[attr-defined]  # scopes have one
    return body if isinstance(body, list) else [body]
