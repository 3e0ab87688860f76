"""Source code of the user: the syntax tree of a function, the user's line in a stack or traceback.

Call sites are the source positions of natively executed rules, with their texts, so that errors match lowered ones.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TypeVar

from streamproof.base.errors import EvaluationError, Loc, ModelError, StreamproofError, UsageError, nearest

T = TypeVar("T")


def underlying(function: Any) -> types.FunctionType:
    """The underlying function of a function or method."""
    plain = function.__func__ if isinstance(function, types.MethodType) else function
    assert isinstance(plain, types.FunctionType)
    return plain


def source_of(file: str) -> str:
    """The current contents of a file."""
    linecache.checkcache(file)
    return "".join(linecache.getlines(file))


@lru_cache(maxsize=64)
def parsed(filename: str, source: str) -> ast.Module | None:
    """The syntax tree of a file with these contents; None if it does not parse."""
    try:
        return ast.parse(source, filename)
    except SyntaxError:
        return None


@lru_cache(maxsize=64)
def _functions(filename: str, source: str) -> dict[tuple[str, int], tuple[ast.FunctionDef, frozenset[Any]]]:
    """Every ``def`` of a file by name and first line, with its code object."""
    tree = parsed(filename, source)
    if tree is None:
        return {}
    try:
        whole = compile(tree, filename, "exec", dont_inherit=True)
    except SyntaxError:  # such as a 'return' outside functions, which has a tree
        return {}
    made: dict[tuple[str, int], set[Any]] = {}
    for code in codes(whole):
        made.setdefault((code.co_name, code.co_firstlineno), set()).add(_meaning(code))
    found = {}
    for node in _statements(tree):
        if isinstance(node, ast.FunctionDef):
            key = (node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)]))
            found[key] = (node, frozenset(made.get(key, ())))
    return found


_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""The fields of nodes that contain statements, or nodes with statements: handlers and cases."""


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below `node`, and the nodes that contain statements: handlers and cases."""
    for part in _BLOCKS:
        for inner in getattr(node, part, ()):
            yield inner
            yield from _statements(inner)


def definition(function: types.FunctionType) -> ast.FunctionDef:
    """The ``def`` of a plain Python function. Raises `ModelError` if its source is unavailable or has changed."""
    return _definition(function.__code__, function.__code__.co_filename)


@lru_cache(maxsize=4096)
def _definition(code: types.CodeType, filename: str) -> ast.FunctionDef:
    # The file is part of the key: Python compares code objects of two files with the same content as equal.
    loc = Loc(filename, code.co_firstlineno, code.co_name)
    key, found = (code.co_name, code.co_firstlineno), _functions(filename, source_of(filename))
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


def lambda_of(function: types.FunctionType) -> ast.Lambda:
    """The expression of a lambda. Raises `ModelError` if its source is unavailable or has changed."""
    code = function.__code__
    nodes, compiled = _lambdas(code.co_filename, source_of(code.co_filename))
    spans = [((a, c), (b, d)) for a, b, c, d in code.co_positions() if a and b and d and c is not None]
    around = [n for n in nodes if spans and all(_start(n) <= first and last <= _end(n) for first, last in spans)]
    if not around or _meaning(code) not in compiled:
        raise ModelError(
            "the source of a lambda cannot be read",
            loc=Loc(code.co_filename, code.co_firstlineno, code.co_name),
            remedy="write it with def",
        )
    return max(around, key=_start)  # the innermost


@lru_cache(maxsize=64)
def _lambdas(filename: str, source: str) -> tuple[list[ast.Lambda], frozenset[Any]]:
    """The lambdas of a file, and their code objects."""
    tree = parsed(filename, source)
    if tree is None:
        return [], frozenset()
    made = codes(compile(tree, filename, "exec", dont_inherit=True))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    return nodes, frozenset(_meaning(code) for code in made if code.co_name == "<lambda>")


def _start(node: ast.Lambda) -> tuple[int, int]:
    return node.body.lineno, node.body.col_offset


def _end(node: ast.Lambda) -> tuple[int, int]:
    return node.body.end_lineno or 0, node.body.end_col_offset or 0


def _meaning(code: types.CodeType) -> Any:
    """The position-independent content of a function: its byte code with the names and constants that it refers to."""
    constants = tuple(map(_constant, code.co_consts))
    return code.co_code, code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars, constants


def _constant(value: Any) -> Any:
    """A constant with its type, so that 1 differs from True."""
    if isinstance(value, types.CodeType):
        return _meaning(value)
    if isinstance(value, tuple | frozenset):
        return type(value), type(value)(map(_constant, value))
    return type(value), value


@lru_cache(maxsize=4096)
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """A function's own parameter names, ignoring what it wraps."""
    if type(function) is types.FunctionType and "_partialmethod" not in vars(function):
        code = function.__code__  # as `inspect` does for any function, in a tenth of the time
        if not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(inspect.signature(function, follow_wrapped=False).parameters)


@lru_cache(maxsize=1024)
def signature(plain: types.FunctionType) -> inspect.Signature:
    """A function's own parameters, by its code, ignoring what it wraps and what its ``__signature__`` says."""
    bare = types.FunctionType(plain.__code__, {}, plain.__name__, plain.__defaults__, plain.__closure__)
    bare.__kwdefaults__ = plain.__kwdefaults__
    return inspect.signature(bare)


@lru_cache(maxsize=1024)
def outer_declaration(plain: types.FunctionType) -> ast.Global | ast.Nonlocal | None:
    """A declaration by which assignments change what is outside of a function, on whatever path it stands."""
    return next((n for n in _statements(definition(plain)) if isinstance(n, ast.Global | ast.Nonlocal)), None)


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and all nested ones."""
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from codes(part)


def names_used(function: types.FunctionType | type, owners: Iterable[type]) -> Iterator[tuple[str, str, Any]]:
    """The names in the code of a function or class, and of functions that it names, each with the file and its global value.

    `owners` are classes whose functions are followed by name.
    """
    spaces = [vars(owner) for owner in owners]
    seen: set[Any] = set()
    todo: list[Any] = [function]
    while todo:
        current = todo.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, type):
            todo += [f for f in vars(current).values() if isinstance(f, types.FunctionType)]
            continue
        for name in (name for code in codes(current.__code__) for name in code.co_names):
            value = current.__globals__.get(name)
            yield current.__code__.co_filename, name, value
            todo += [f for f in (value, *(s.get(name) for s in spaces)) if isinstance(f, types.FunctionType)]


def place(function: Callable[..., Any]) -> Loc | None:
    """The source position of a function's ``def``."""
    first = decoration(function)
    if first is not None and isinstance(function, types.FunctionType):
        if linecache.getline(first.file, first.line).lstrip().startswith("def "):
            return first  # without decorators, the source is not needed
        with suppress(ModelError):
            return Loc(first.file, definition(function).lineno, first.function)
    return first


def decoration(function: Callable[..., Any]) -> Loc | None:
    """The first line of a function, including its decorators."""
    code = getattr(function, "__code__", None)
    return Loc(code.co_filename, code.co_firstlineno, function.__name__) if code else None


@lru_cache(maxsize=65536)
def text(node: ast.AST) -> str:
    """The code of `node` on one line."""
    match node:  # the common case, in a tenth of the time
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
            # A long sum is a deep tree: the text of its left part is cached, so a placeholder suffices to print the
            # rest.
            return text(left) + " ".join(ast.unparse(ast.BinOp(ast.Name("_"), op, right)).split())[1:]
        case ast.Call(func=function, args=args, keywords=[]) if type(function) in _TIGHT and all(map(_is_tight, args)):
            return f"{text(function)}({', '.join(map(text, args))})"
    return " ".join(ast.unparse(node).split())


_TIGHT = frozenset({ast.Name, ast.Attribute, ast.Subscript, ast.Call})
"""Node types that never need parentheses."""
_COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def _is_tight(node: ast.AST) -> bool:
    """Whether an operand or argument needs no parentheses."""
    return type(node) in _TIGHT or (type(node) is ast.Constant and isinstance(node.value, str | int))


@lru_cache(maxsize=1024)
def local_names(node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    """The local names of a function: its parameters and the names that its body assigns."""
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *filter(None, (spec.vararg, spec.kwarg))]
    names = {a.arg for a in every}
    if isinstance(node, ast.FunctionDef):
        names |= {name for name, _ in bindings(node.body)}
    return frozenset(names)


def mangled(name: str, function: Any) -> str:
    """A name as Python spells it in the class around the code of a function: ``__x`` is private."""
    if not name.startswith("__") or name.endswith("__") or not isinstance(function, types.FunctionType):
        return name
    owner = function.__code__.co_qualname.split("<locals>.")[-1].split(".")[:-1]
    private = owner[-1].lstrip("_") if owner else ""
    return f"_{private}{name}" if private else name


@lru_cache(maxsize=1024)
def calls(function: types.FunctionType) -> tuple[ast.Call, ...]:
    """The calls in the source of a function, breadth first."""
    return tuple(node for node in ast.walk(definition(function)) if isinstance(node, ast.Call))


def own_statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements of a function, without those of functions and classes inside."""
    for inner in (one for part in _BLOCKS for one in getattr(node, part, ())):
        yield inner
        if type(inner) not in _NAMED:
            yield from own_statements(inner)


@lru_cache(maxsize=1024)
def _names_bound(function: types.FunctionType) -> frozenset[str]:
    """The local names of a function, of functions inside, and of comprehensions."""
    found: set[str] = set()
    for node in ast.walk(definition(function)):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            found |= local_names(node)
        elif isinstance(node, ast.comprehension):
            found |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return frozenset(found)


def static_value(node: ast.expr, function: types.FunctionType) -> Any:
    """The value of a name, or of an attribute of a module, in the source of a function, whatever its variables are; None
    if it depends on them."""
    match node:
        case ast.Name(id=name):
            if name in _names_bound(function):
                return None
            cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            with suppress(ValueError):  # an empty cell
                outer = {**vars(builtins), **function.__globals__}
                return next((c.cell_contents for n, c in cells if n == name), outer.get(name))
        case ast.Attribute(value=owner, attr=name):
            module = static_value(owner, function)
            return vars(module).get(name) if isinstance(module, types.ModuleType) else None
    return None


_NAMED = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})
_CATCHING = frozenset({ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.ExceptHandler})
"""Parts of statements that bind a name which is no node of its own."""
_SCOPES = frozenset({ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})
"""Expressions with their own scope."""


def bindings(body: Iterable[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """The names that statements assign, including nested functions and classes, each with its node."""
    todo: list[Any] = list(body)
    while todo:
        node = todo.pop()
        kind: Any = type(node)
        if kind is ast.Name:
            if type(node.ctx) is not ast.Load:
                yield node.id, node
        elif kind in _NAMED:
            yield node.name, node
        elif kind is ast.alias:
            yield node.asname or node.name.partition(".")[0], node
        elif kind in _SCOPES:
            named = (n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr)) if kind is not ast.Lambda else ()
            yield from ((target.id, target) for target in named)
        else:
            name = getattr(node, "rest" if kind is ast.MatchMapping else "name", None) if kind in _CATCHING else None
            if name is not None:
                yield name, node
            for name in _parts(kind):
                part = getattr(node, name, None)
                if type(part) is list:
                    todo += part
                elif isinstance(part, ast.AST):
                    todo.append(part)


@lru_cache(maxsize=256)
def _parts(kind: type) -> tuple[str, ...]:
    """The fields of a node type that can contain nodes with names; none for other types."""
    return tuple(
        name for name in getattr(kind, "_fields", ()) if name not in ("ctx", "op", "ops", "attr", "id", "kind")
    )


# --- the user's own line


ORDINARY = "this is ordinary Python, run while the model is read"
STANDARD = str(Path(os.__file__).resolve().parent) + os.sep
PACKAGE = str(Path(__file__).resolve().parents[2]) + os.sep


_LOWERED: ContextVar[Loc | None] = ContextVar("lowered", default=None)
"""The position of the call that lowering evaluates with streamproof's own functions."""


@contextmanager
def lowered_at(loc: Loc | None) -> Iterator[None]:
    """The context of a call of streamproof's own functions by lowering, for a call at `loc` in the user's code."""
    token = _LOWERED.set(loc)
    try:
        yield
    finally:
        _LOWERED.reset(token)


def lowered() -> Loc | None:
    """The position of the call that lowering evaluates with streamproof's own functions; None outside of such a call."""
    return _LOWERED.get()


def caller() -> Loc | None:
    """The position where user code called into streamproof, possibly through the standard library; None without such a
    frame."""
    if (at := _LOWERED.get()) is not None:
        return at
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((PACKAGE, "<")) and not is_standard(name):
            return Loc(name, frame.f_lineno, frame.f_code.co_name)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def is_users(file: str) -> bool:
    """Whether a file belongs to the user: neither streamproof, nor the standard library, nor generated code."""
    return not file.startswith((PACKAGE, "<")) and not is_standard(file)


def is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package."""
    return "site-packages" in file or "dist-packages" in file


def is_standard(file: str) -> bool:
    """Whether a file belongs to Python's standard library."""
    return file.startswith(STANDARD) and "site-packages" not in file


def is_ours() -> bool:
    """Whether the calling function's caller is part of streamproof."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == "<frozen abc>":  # isinstance() with an abstract class
        frame = frame.f_back
    name = "" if frame is None else frame.f_code.co_filename
    return name.startswith(PACKAGE)


def ordinary(run: Callable[[], T], what: str, home: Loc | None) -> T:
    """The result of running ordinary Python of the user; an exception becomes a `ModelError` at the user's line.

    `home` is the definition of that code: the error names the innermost line of its file in the traceback.
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
    """The innermost traceback line in the file of `home`."""
    trace = innermost(error, lambda file: home is not None and file == home.file)
    return home if trace is None else line_of(trace)


def innermost(error: BaseException, accepted: Callable[[str], bool]) -> TracebackType | None:
    """The innermost traceback entry in an accepted file."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if accepted(trace.tb_frame.f_code.co_filename):
            found = trace
        trace = trace.tb_next
    return found


def line_of(trace: TracebackType) -> Loc:
    """The line of a traceback entry."""
    code = trace.tb_frame.f_code
    return Loc(code.co_filename, trace.tb_lineno, code.co_name)


def _meant(error: Exception) -> str:
    """The attribute that an `AttributeError` probably meant."""
    if not isinstance(error, AttributeError) or error.name is None:
        return ""
    near = nearest(error.name, (n for n in dir(error.obj) if not n.startswith("_")))
    return f"did you mean {near[0]!r}?" if near else ""


REMEDY = "guard it with require(...), or widen the sort if the value is meant to be possible"

RUNNING: ContextVar[str] = ContextVar("streamproof_running", default="")
"""The action instance (its label) or property being executed natively."""


def user_frame() -> FrameType | None:
    """The innermost stack frame outside streamproof."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, "<")):
        frame = frame.f_back
    return frame


def source_node(frame: FrameType, at: int) -> ast.AST | None:
    """The expression or statement from which the instruction at offset `at` was compiled; None if the source is
    unavailable."""
    found = next(islice(frame.f_code.co_positions(), at // 2, None), (None, None, None, None))
    first, last, start, end = found
    if first is None or last is None or start is None or end is None:
        return None
    lines = [linecache.getline(frame.f_code.co_filename, n).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    source = b"".join(lines).decode()
    try:
        return ast.parse(f"({source})", mode="eval").body
    except SyntaxError:
        with suppress(SyntaxError, IndexError):
            return ast.parse(source).body[0]
    return None


class CallSite:
    """A position in the user's code, with the source texts that messages quote."""

    def __init__(self) -> None:
        frame = user_frame()
        self.loc = Loc(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame else None
        self.node = source_node(frame, frame.f_lasti) if frame else None

    def target(self) -> str:
        """The target of the assignment."""
        return text(self.node.target if isinstance(self.node, ast.AugAssign) else self.node) if self.node else "it"

    def index(self) -> str:
        """The text of the index."""
        return text(self.node.slice) if isinstance(self.node, ast.Subscript) else "index"

    def operand(self, first: bool, mirrored: type[ast.cmpop] | None = None) -> str:
        """The text of the first or second operand; also the first if the comparison is the `mirrored` one."""
        match self.node:
            case ast.BinOp(left=left, right=right):
                return text(left if first else right)
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return text(left if first or (mirrored is not None and isinstance(operator, mirrored)) else right)
            case ast.AugAssign(value=value):
                return text(value)
        return "it"

    def owner(self) -> str:
        """The owner of the element, attribute or method."""
        node = self.node.func if isinstance(self.node, ast.Call) else self.node
        return text(node.value) if isinstance(node, ast.Attribute | ast.Subscript) else "it"


def fail(message: str, spot: CallSite, *operands: tuple[str, str]) -> EvaluationError:
    """The model error that lowering reports for the same step."""
    return EvaluationError(_worded(message, *operands), loc=spot.loc, remedy=REMEDY)


def _worded(message: str, *operands: tuple[str, str]) -> str:
    shown = "; ".join(f"{name} = {value}" for name, value in operands if name != value)
    return f"{message} in {RUNNING.get()}" + (f" ({shown})" if shown else "")


class PythonError(EvaluationError):
    """An exception raised by Python in a rule; the message is that of the corresponding operator of the language."""


def as_model_error(error: Exception) -> PythonError | None:
    """The model error for an exception that Python raised because a partial operation was applied outside its domain."""
    trace = innermost(error, lambda file: not file.startswith((PACKAGE, "<")))
    message = None if trace is None else _error_text(error, source_node(trace.tb_frame, trace.tb_lasti))
    return None if trace is None or message is None else PythonError(message, loc=line_of(trace), remedy=REMEDY)


def _error_text(error: Exception, node: ast.AST | None) -> str | None:
    match error:
        case ZeroDivisionError():
            right = (
                node.right if isinstance(node, ast.BinOp) else node.value if isinstance(node, ast.AugAssign) else None
            )
            shown = text(right) if right else "the divisor"
            return _worded(f"division by zero: {shown} is 0", (shown, "0"))
        case ValueError() if isinstance(node, ast.Call):  # by what Python says: the source may use other names
            name = str(error).partition("(")[0].rpartition(".")[2]
            if name in ("min", "max"):
                return _worded(f"{name}() of an empty collection")
            owner = text(node.func.value) if isinstance(node.func, ast.Attribute) else "it"
            name = "remove" if name == "remove" else "index"
            return _worded(f"{name}() of a value that is not in {owner}") if "not in" in str(error) else None
        case IndexError() | KeyError():
            return _worded(f"{type(error).__name__}: {error}")
        case TypeError() | AttributeError() if "NoneType" in str(error):
            return _worded("None where a value is needed")
    return None
