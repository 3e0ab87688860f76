"""The syntax tree of a function, with the line numbers of the user's file."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from streamproof.system.errors import Loc, ModelError


@lru_cache(maxsize=64)
def _parsed(filename: str, source: str) -> dict[tuple[str, int], tuple[ast.FunctionDef, frozenset[bytes]]]:
    """Every ``def`` of a file by name and first line, with the byte code it is compiled to."""
    tree = ast.parse(source, filename)
    codes: dict[tuple[str, int], set[bytes]] = {}
    for code in _codes(compile(tree, filename, "exec", dont_inherit=True)):
        codes.setdefault((code.co_name, code.co_firstlineno), set()).add(code.co_code)
    found = {}
    for node in _statements(tree):
        if isinstance(node, ast.FunctionDef):
            key = (node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)]))
            found[key] = (node, frozenset(codes.get(key, ())))
    return found


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below `node`, and what holds some of them: handlers and cases."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, part, ()):
            yield inner
            yield from _statements(inner)


def definition(function: types.FunctionType) -> ast.FunctionDef:
    """The ``def`` of a plain Python function. `ModelError` when its source is not to be had or has changed."""
    return _definition(function.__code__, function.__code__.co_filename)


@lru_cache(maxsize=4096)
def _definition(code: types.CodeType, filename: str) -> ast.FunctionDef:
    # The file is a part of the question: code of two files is equal for Python where it does the same.
    loc = Loc(filename, code.co_firstlineno, code.co_name)
    linecache.checkcache(filename)
    source = "".join(linecache.getlines(filename))
    key = (code.co_name, code.co_firstlineno)
    try:
        found = _parsed(filename, source)
    except SyntaxError:
        found = {}
    if key not in found:
        raise ModelError(
            f"the source of {code.co_name!r} cannot be read",
            loc=loc,
            remedy="define it with 'def' in a file; a lambda or a function made at run time has no source to lower",
        )
    node, codes = found[key]
    if code.co_code not in codes:
        raise ModelError(
            f"the file of {code.co_name!r} has changed since it was loaded", loc=loc, remedy="load it again"
        )
    return node


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and all those inside it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _codes(part)


def place(function: Callable[..., Any]) -> Loc | None:
    """Where the ``def`` of a function stands."""
    first = decoration(function)
    if first is not None and isinstance(function, types.FunctionType):
        with suppress(ModelError):
            return Loc(first.file, definition(function).lineno, first.function)
    return first


def decoration(function: Callable[..., Any]) -> Loc | None:
    """Where a function begins, its decorators included."""
    code = getattr(function, "__code__", None)
    return Loc(code.co_filename, code.co_firstlineno, function.__name__) if code else None


@lru_cache(maxsize=65536)
def text(node: ast.AST) -> str:
    """The code of `node` on one line."""
    match node:  # most of what is asked for, in a tenth of the time
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name() | ast.Attribute() | ast.Subscript() as owner, attr=name):
            return f"{text(owner)}.{name}"
        case ast.Subscript(
            value=ast.Name() | ast.Attribute() | ast.Subscript() as owner,
            slice=ast.Name() | ast.Attribute() | ast.Subscript() as key,
        ):
            return f"{text(owner)}[{text(key)}]"
    return " ".join(ast.unparse(node).split())


@lru_cache(maxsize=1024)
def local_names(node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    """The names that are local to a function: its parameters and whatever its own body assigns."""
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *filter(None, (spec.vararg, spec.kwarg))]
    names = {a.arg for a in every}
    if isinstance(node, ast.FunctionDef):
        names |= _assigned(node.body)
    return frozenset(names)


_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Expressions that have names of their own."""


def _assigned(body: Iterable[ast.AST]) -> set[str]:
    """The names that statements assign, those of nested functions and classes included."""
    names: set[str] = set()
    todo = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif not isinstance(node, _SCOPES):
            todo.extend(ast.iter_child_nodes(node))
    return names
