"""Where the user's code is: the syntax tree of a function, and the line at which the user's own code calls or fails."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from streamproof.system.errors import Loc, ModelError, StreamproofError, UsageError, nearest

T = TypeVar("T")

WRITTEN: dict[int, tuple[types.CodeType, types.CodeType]] = {}
"""The code that an author wrote, and the same with guards in it, by the identity of the latter (`rewritten`)."""


def code_of(function: types.FunctionType) -> types.CodeType:
    """The code of a function as its author wrote it."""
    code = function.__code__
    return WRITTEN[id(code)][0] if id(code) in WRITTEN else code


@lru_cache(maxsize=64)
def _parsed(filename: str, source: str) -> dict[tuple[str, int], tuple[ast.FunctionDef, frozenset[Any]]]:
    """Every ``def`` of a file by name and first line, with what it is compiled to."""
    tree = ast.parse(source, filename)
    made: dict[tuple[str, int], set[Any]] = {}
    for code in codes(compile(tree, filename, "exec", dont_inherit=True)):
        made.setdefault((code.co_name, code.co_firstlineno), set()).add(_meaning(code))
    found = {}
    for node in _statements(tree):
        if isinstance(node, ast.FunctionDef):
            key = (node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)]))
            found[key] = (node, frozenset(made.get(key, ())))
    return found


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below `node`, and what holds some of them: handlers and cases."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, part, ()):
            yield inner
            yield from _statements(inner)


def definition(function: types.FunctionType) -> ast.FunctionDef:
    """The ``def`` of a plain Python function. `ModelError` when its source is not to be had or has changed."""
    return _definition(code_of(function), function.__code__.co_filename)


@lru_cache(maxsize=4096)
def _definition(code: types.CodeType, filename: str) -> ast.FunctionDef:
    # The file is a part of the question: code of two files is equal for Python where it does the same.
    loc = Loc(filename, code.co_firstlineno, code.co_name)
    linecache.checkcache(filename)
    key = (code.co_name, code.co_firstlineno)
    try:
        found = _parsed(filename, "".join(linecache.getlines(filename)))
    except SyntaxError:
        found = {}
    if key not in found:
        raise ModelError(
            f"the source of {code.co_name!r} cannot be read",
            loc=loc,
            remedy="define it with 'def' in a file; a lambda or a function made at run time has no source to lower",
        )
    node, compiled = found[key]
    if _meaning(code) not in compiled:
        raise ModelError(
            f"the file of {code.co_name!r} has changed since it was loaded", loc=loc, remedy="load it again"
        )
    return node


def _meaning(code: types.CodeType) -> Any:
    """What a function does, whatever its place: its byte code with the names and constants that this numbers."""
    constants = tuple(map(_constant, code.co_consts))
    return code.co_code, code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars, constants


def _constant(value: Any) -> Any:
    """A constant with its type, so that 1 is not True."""
    if isinstance(value, types.CodeType):
        return _meaning(value)
    if isinstance(value, tuple | frozenset):
        return type(value), type(value)(map(_constant, value))
    return type(value), value


@lru_cache(maxsize=4096)
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's own parameters, whatever it wraps."""
    if type(function) is types.FunctionType and not vars(function).keys() & {"__signature__", "_partialmethod"}:
        code = function.__code__  # as `inspect` does it for any function, in a tenth of the time
        if not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(inspect.signature(function, follow_wrapped=False).parameters)


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and all those inside it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from codes(part)


def place(function: Callable[..., Any]) -> Loc | None:
    """Where the ``def`` of a function stands."""
    first = decoration(function)
    if first is not None and isinstance(function, types.FunctionType):
        if linecache.getline(first.file, first.line).lstrip().startswith("def "):
            return first  # it has no decorators, and need not be read for that
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
        case ast.Attribute(value=owner, attr=name) if type(owner) in _TIGHT:
            return f"{text(owner)}.{name}"
        case ast.Subscript(value=owner, slice=key) if type(owner) in _TIGHT and _is_tight(key):
            return f"{text(owner)}[{text(key)}]"
        case ast.Constant(value=str() | int() as value, kind=None):
            return " ".join(repr(value).split())
        case ast.Compare(left=left, ops=[op], comparators=[right]) if _is_tight(left) and _is_tight(right):
            return f"{text(left)} {_COMPARED[type(op)]} {text(right)}"
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right) if _is_tight(left) and _is_tight(right):
            return f"{text(left)} {'+' if isinstance(op, ast.Add) else '-'} {text(right)}"
        case ast.BinOp(left=ast.BinOp(op=ast.Add() | ast.Sub()) as left, op=ast.Add() | ast.Sub() as op, right=right):
            # A long sum is a deep tree: the text of its left part is known, that of the rest needs no more than a stand-in.
            return text(left) + " ".join(ast.unparse(ast.BinOp(ast.Name("_"), op, right)).split())[1:]
        case ast.Call(func=function, args=args, keywords=[]) if type(function) in _TIGHT and all(map(_is_tight, args)):
            return f"{text(function)}({', '.join(map(text, args))})"
    return " ".join(ast.unparse(node).split())


_TIGHT = frozenset({ast.Name, ast.Attribute, ast.Subscript, ast.Call})
"""Expressions that never need parentheses around them."""
_COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def _is_tight(node: ast.AST) -> bool:
    """Whether an operand or an argument is written as it stands."""
    return type(node) in _TIGHT or (type(node) is ast.Constant and isinstance(node.value, str | int))


@lru_cache(maxsize=1024)
def local_names(node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    """The names that are local to a function: its parameters and whatever its own body assigns."""
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *filter(None, (spec.vararg, spec.kwarg))]
    names = {a.arg for a in every}
    if isinstance(node, ast.FunctionDef):
        names |= _assigned(node.body)
    return frozenset(names)


_NAMED = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})
_SCOPES = frozenset({ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})
"""Expressions that have names of their own."""


def _assigned(body: Iterable[ast.AST]) -> set[str]:
    """The names that statements assign, those of nested functions and classes included."""
    names: set[str] = set()
    todo: list[Any] = list(body)
    while todo:
        node = todo.pop()
        kind: Any = type(node)
        if kind is ast.Name:
            if type(node.ctx) is ast.Store:
                names.add(node.id)
        elif kind in _NAMED:
            names.add(node.name)
        elif kind not in _SCOPES:
            for name in _parts(kind):
                part = getattr(node, name, None)
                if type(part) is list:
                    todo += part
                elif isinstance(part, ast.AST):
                    todo.append(part)
    return names


@lru_cache(maxsize=256)
def _parts(kind: type) -> tuple[str, ...]:
    """The fields of a kind of node that can hold other nodes with names in them; of what is no node, none."""
    return tuple(
        name for name in getattr(kind, "_fields", ()) if name not in ("ctx", "op", "ops", "attr", "id", "kind")
    )


# --- the user's own line


ORDINARY = "this is ordinary Python, run while the model is read"
STANDARD = str(Path(os.__file__).resolve().parent) + os.sep
GUARDED = str(Path(__file__).resolve().parent / "guarded.py")
"""Where the user's calls are made on the user's behalf."""
PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep


def caller() -> Loc | None:
    """Where the user's code called into streamproof, perhaps through the standard library, or None when there is no such
    frame."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((PACKAGE, "<")) and not is_standard(name):
            return Loc(name, frame.f_lineno, frame.f_code.co_name)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def is_standard(file: str) -> bool:
    """Whether a file belongs to Python's standard library."""
    return file.startswith(STANDARD) and "site-packages" not in file


def is_ours() -> bool:
    """Whether the function that calls the caller of this one is part of streamproof, and does not run what it is given."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == "<frozen abc>":  # isinstance() with an abstract class
        frame = frame.f_back
    name = "" if frame is None else frame.f_code.co_filename
    return name.startswith(PACKAGE) and name != GUARDED


def ordinary(run: Callable[[], T], what: str, home: Loc | None) -> T:
    """The result of the user's own Python code; what it raises becomes a `ModelError` at the user's line.

    `home` is where that code is defined: the innermost line of that file in the traceback is the one named.
    """
    try:
        return run()
    except UsageError as error:
        if error.loc is not None:
            raise
        raise type(error)(error.message, loc=_line(error, home), remedy=error.remedy) from error
    except StreamproofError:
        raise
    except Exception as error:
        raise ModelError(
            f"{type(error).__name__} in {what}: {error}", loc=_line(error, home), remedy=_meant(error) or ORDINARY
        ) from error


def _line(error: Exception, home: Loc | None) -> Loc | None:
    """The innermost line of the file of `home` that the error came through."""
    loc, trace = home, error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if home is not None and code.co_filename == home.file:
            loc = Loc(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return loc


def _meant(error: Exception) -> str:
    """The attribute that an `AttributeError` probably was about."""
    if not isinstance(error, AttributeError) or error.name is None:
        return ""
    near = nearest(error.name, (n for n in dir(error.obj) if not n.startswith("_")))
    return f"did you mean {near[0]!r}?" if near else ""
