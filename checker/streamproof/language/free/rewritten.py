"""The user's files rewritten with guards, and replacement of function code by its guarded form for free parameters.

A file is parsed, guards are inserted into its syntax tree, and the result is compiled. Every function has the same
position in both, so it runs guarded after its code object is replaced by the one at the same position. This includes
special methods, key functions of sorts and decorated functions, whoever calls them.
"""

from __future__ import annotations

import ast
import gc
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from streamproof.language.lower.sources import PACKAGE, WRITTEN, is_standard, source_of

CALL, READ, SAME, MATCHED = "(call)", "(read)", "(same)", "(matched)"
DECORATED, PASSED, FAILURE = "(decorated)", "(passed)", "(failure)"
"""Names of the guards, which are invalid as identifiers in source code. They are added to the built-ins."""
_AS_WRITTEN = frozenset({"locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"})
"""Functions that inspect their caller's frame; not guarded in a file that gives these names no other meaning."""
_Key = tuple[str, str, int, tuple[str, ...]]


def is_users(file: str) -> bool:
    """Whether a file belongs to the user: neither streamproof, nor the standard library, nor generated code."""
    return not file.startswith((PACKAGE, "<")) and not is_standard(file)


def is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package."""
    return "site-packages" in file or "dist-packages" in file


def is_guarded(code: types.CodeType) -> bool:
    """Whether a code object is guarded."""
    return id(code) in WRITTEN


def put_guards(function: types.FunctionType) -> bool:
    """Replaces a function's code by its guarded form; False if its source is unavailable or has changed."""
    made = _rewritten(function.__code__)
    if made is None:
        return False
    function.__code__ = made
    return True


def functions_of(files: frozenset[str]) -> list[types.FunctionType]:
    """Every function defined in the given files."""
    return [o for o in gc.get_objects() if type(o) is types.FunctionType and o.__code__.co_filename in files]


def files_of(roots: Iterable[Any]) -> frozenset[str]:
    """The user's files that define the classes and functions, and those of the modules that these name."""
    todo: list[Any] = list(roots)
    seen: set[int] = set()
    files: set[str] = set()
    while todo:
        value = todo.pop()
        if isinstance(value, type):
            todo += [sys.modules.get(base.__module__) for base in value.__mro__]
            todo += [f for base in value.__mro__ for f in vars(base).values() if isinstance(f, types.FunctionType)]
        elif isinstance(value, types.FunctionType) and _is_own(value.__code__.co_filename):
            files.add(value.__code__.co_filename)
            if id(value.__globals__) not in seen:
                seen.add(id(value.__globals__))
                todo += _named(value.__globals__)
        elif isinstance(value, types.ModuleType) and id(value) not in seen:
            seen.add(id(value))
            file = getattr(value, "__file__", None) or "<"
            if _is_own(file):
                files.add(file)
                todo += _named(vars(value))
    return frozenset(files)


def _is_own(file: str) -> bool:
    return is_users(file) and not is_installed(file)


def _named(space: dict[str, Any]) -> list[Any]:
    return [v for v in list(space.values()) if isinstance(v, type | types.FunctionType | types.ModuleType)]


def _rewritten(code: types.CodeType) -> types.CodeType | None:
    places = _places(code.co_filename, source_of(code.co_filename))
    for plain, made in places.get(_key(code), ()):
        if plain == code:
            return made
    return None


def _key(code: types.CodeType) -> _Key:
    return code.co_name, code.co_qualname, code.co_firstlineno, code.co_freevars


@lru_cache(maxsize=64)
def _places(file: str, text: str) -> dict[_Key, list[tuple[types.CodeType, types.CodeType]]]:
    """Every code object of a file, with its guarded form."""
    found: dict[_Key, list[tuple[types.CodeType, types.CodeType]]] = {}
    try:
        tree = ast.parse(text, file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = compile(tree, file, "exec", dont_inherit=True)
            made = compile(
                ast.fix_missing_locations(_Guarding(frozenset(_given(tree))).visit(tree)),
                file,
                "exec",
                dont_inherit=True,
            )
    except (SyntaxError, ValueError, RecursionError):
        return found
    for one, other in _pairs(plain, made):
        WRITTEN[id(other)] = one, other
        if one.co_freevars == other.co_freevars and one.co_firstlineno == other.co_firstlineno:
            found.setdefault(_key(one), []).append((one, other))
    return found


def _given(tree: ast.Module) -> Iterator[str]:
    """The names that a file gives a meaning anywhere."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name


def _pairs(plain: types.CodeType, made: types.CodeType) -> Iterator[tuple[types.CodeType, types.CodeType]]:
    """The nested code objects of two code objects, paired by position: guards add none and preserve the order."""
    inner = [[c for c in code.co_consts if isinstance(c, types.CodeType)] for code in (plain, made)]
    if [c.co_name for c in inner[0]] != [c.co_name for c in inner[1]]:
        return
    for one, other in zip(*inner, strict=True):
        yield one, other
        yield from _pairs(one, other)


class _Guarding(ast.NodeTransformer):
    """Inserts the guards into a file. Private names are mangled as in their class."""

    def __init__(self, given: frozenset[str]) -> None:
        self._as_written = {*_AS_WRITTEN, "super"} - given
        self._owner = ""
        self._chained = 0
        self._texts = False
        """Whether the file stores annotations as text."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        self._texts |= node.module == "__future__" and any(name.name == "annotations" for name in node.names)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in self._as_written and (name != "super" or not node.args):
            return node
        return ast.copy_location(ast.Call(_guard(CALL), [node.func, *node.args], node.keywords), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        name = node.attr
        if self._owner and name.startswith("__") and not name.endswith("__"):
            name = f"_{self._owner}{name}"
        return ast.copy_location(ast.Call(_guard(READ), [node.value, ast.Constant(name)], []), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return node
        if len(node.ops) > 1:
            return ast.copy_location(self._apart(node), node)
        return ast.copy_location(_compared(node.left, node.ops[0], node.comparators[0]), node)

    def _apart(self, node: ast.Compare) -> ast.expr:
        """A comparison chain as single comparisons; each operand but the first is evaluated once, into a temporary name."""
        parts: list[ast.expr] = []
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            self._chained += 1
            name = f"(chained {self._chained})"
            kept = ast.NamedExpr(ast.Name(name, ast.Store()), right)
            parts.append(_compared(left, op, kept))
            left = ast.Name(name, ast.Load())
        return ast.BoolOp(ast.And(), parts)

    def visit_Match(self, node: ast.Match) -> ast.AST:
        node.subject = ast.copy_location(ast.Call(_guard(MATCHED), [self.visit(node.subject)], []), node.subject)
        for case in node.cases:  # names in a pattern are not expressions
            case.guard = None if case.guard is None else self.visit(case.guard)
            case.body = self._all(case.body)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.target = self.visit(node.target)
        node.value = None if node.value is None else self.visit(node.value)
        node.annotation = node.annotation if self._texts else self.visit(node.annotation)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.decorator_list = [self._decorator(d) for d in node.decorator_list]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [None if d is None else self.visit(d) for d in node.args.kw_defaults]
        if not self._texts:
            for given in ast.walk(node.args):
                if isinstance(given, ast.arg) and given.annotation is not None:
                    given.annotation = self.visit(given.annotation)
            node.returns = None if node.returns is None else self.visit(node.returns)
        body = self._all(node.body)
        first = body[0]
        text = (
            isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        )
        node.body = [*body[:text], *self._passing(body[text:])]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = [self._decorator(d) for d in node.decorator_list]
        node.bases = [self.visit(base) for base in node.bases]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        before, self._owner = self._owner, node.name.lstrip("_")
        node.body = self._all(node.body)
        self._owner = before
        return node

    def _decorator(self, node: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Call(_guard(DECORATED), [self.visit(node)], []), node)

    def visit_Try(self, node: ast.Try | Any) -> ast.AST:
        self.generic_visit(node)
        node.body = self._passing(node.body)
        if node.handlers and node.finalbody:  # the body may raise an exception that passes the handlers
            inner = ast.copy_location(type(node)(node.body, node.handlers, node.orelse, []), node)
            outer = ast.copy_location(ast.Try(self._passing([inner]), [], [], node.finalbody), node)
            return outer
        return node

    visit_TryStar = visit_Try

    def visit_With(self, node: ast.With | ast.AsyncWith) -> ast.AST:
        self.generic_visit(node)
        first, *others = node.items
        kind = type(node)
        body = node.body
        for item in reversed(others):
            body = [ast.copy_location(kind([item], self._passing(body)), node)]
        return ast.copy_location(kind([first], self._passing(body)), node)

    visit_AsyncWith = visit_With

    def _all(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self.visit(statement) for statement in body]

    def _passing(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements that catch every exception."""
        if not body:
            return body
        seen = ast.Expr(ast.Call(_guard(PASSED), [], []))
        kind = _guard(FAILURE)
        handler = ast.ExceptHandler(kind, None, [seen, ast.Raise(None, None)])
        made = ast.copy_location(ast.Try(body, [handler], [], []), body[0])
        for node in (handler, kind, *handler.body, seen.value, seen.value.func):  # type: ignore[attr-defined]
            ast.copy_location(node, body[0])
        return [made]


def _guard(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    """One comparison, with a guard for identities."""
    if not isinstance(op, ast.Is | ast.IsNot):
        return ast.Compare(left, [op], [right])
    same = ast.Call(_guard(SAME), [left, right], [])
    return same if isinstance(op, ast.Is) else ast.UnaryOp(ast.Not(), same)
