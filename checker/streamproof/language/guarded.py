"""Running the user's ordinary Python while parameters are free, with a guard on what an object itself cannot refuse.

An `Amount` refuses whatever asks it for something. Python never asks an object for its identity (``is``, ``id``) or its type
(``type``), and takes no ``range`` up to it. So the user's functions run as copies, made from their syntax trees, in which
every call, every attribute that is read and every ``is`` passes through here.
"""

from __future__ import annotations

import ast
import copy
import operator
import types
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

from streamproof.language.amounts import Amount, Indices, indices, refuse, shown
from streamproof.language.frames import PACKAGE, is_standard
from streamproof.language.sources import definition
from streamproof.system.errors import ModelError
from streamproof.system.unbounded import Undecided

_BLIND = (type, id, operator.is_, operator.is_not, issubclass)
"""Functions that look at an object without asking it."""
_AS_WRITTEN = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"})
"""Functions that look at the frame in which they are called."""
_APART = frozenset({type(None), bool, str})
"""Types of which no value is a number's object."""
_CALL, _READ, _SAME = "(call)", "(read)", "(same)"
"""Names of the guards in the copies; no author can write them."""


def called(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, guarded. Raises `Undecided` where it looks at a free parameter."""
    if isinstance(function, types.FunctionType | types.MethodType):
        return _run(function, args, kwargs)
    if function is range:
        return indices(*args, **kwargs)
    free = next((a for a in (*args, *kwargs.values()) if type(a) is Amount or type(a) is Indices), None)
    if free is not None and any(function is f for f in _BLIND):
        refuse(f"{shown(free)} is any number here: {function.__name__}() of it means nothing")
    try:
        return function(*args, **kwargs)
    except Undecided:
        raise
    except TypeError as error:
        if free is not None:  # it may have taken a number; that it does not take this says nothing
            refuse(f"{shown(free)} is any number here, which {_name(function)}() does not take ({error})")
        raise


def read(owner: Any, name: str) -> Any:
    """``owner.name``, guarded: a property's function runs as `called` runs it."""
    for base in type(owner).__mro__:
        found = vars(base).get(name)
        if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
            return called(found.fget, owner)
        if isinstance(found, cached_property) and name not in owner.__dict__:
            owner.__dict__[name] = called(found.func, owner)
            return owner.__dict__[name]
        if found is not None:
            break
    return getattr(owner, name)


def _same(left: Any, right: Any) -> bool:
    """``left is right``, guarded."""
    for one, other in ((left, right), (right, left)):
        if (type(one) is Amount or type(one) is Indices) and type(other) not in _APART:
            refuse(f"{shown(one)} is any number here: 'is' means nothing for it", "use == for values")
    return left is right


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(function, types.MethodType):
        if not isinstance(function.__func__, types.FunctionType):
            return function(*args, **kwargs)
        function, args = function.__func__, (function.__self__, *args)
    made = _guarded(function)
    return (function if made is None else made)(*args, **kwargs)


@lru_cache(maxsize=1024)
def _guarded(function: types.FunctionType) -> types.FunctionType | None:
    """The copy of a function with the guards in it; None where it is not the user's or has no source."""
    file = function.__code__.co_filename
    if file.startswith(PACKAGE) or is_standard(file):
        return None
    try:
        node = copy.deepcopy(definition(function))
    except ModelError:
        return None
    for given in ast.walk(node.args):
        if isinstance(given, ast.arg):
            given.annotation = None
    nothing: list[ast.expr] = [ast.Constant(None) for _ in node.args.defaults]
    node.args.defaults = nothing
    node.args.kw_defaults = [None if d is None else ast.Constant(None) for d in node.args.kw_defaults]
    node.decorator_list, node.returns = [], None
    guards: dict[str, Callable[..., Any]] = {_CALL: called, _READ: read, _SAME: _same}
    node.body = [_Guarding(function.__qualname__).visit(statement) for statement in node.body]
    outer = ast.parse("def outer(): pass").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.args.args = [ast.arg(name) for name in (*function.__code__.co_freevars, *guards)]
    outer.body = [node, ast.Return(ast.Name(node.name, ast.Load()))]
    space: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(ast.Module([outer], [])), file, "exec", dont_inherit=True), space)
    inner = space["outer"](*outer.args.args).__code__
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: types.CellType(guard) for name, guard in guards.items()}
    closure = tuple(cells[name] for name in inner.co_freevars)
    made = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class _Guarding(ast.NodeTransformer):
    """Puts the guards into a function's body. Its private names are written as Python stores them in their class."""

    def __init__(self, qualified: str) -> None:
        owner = qualified.split(".<locals>")[-1].split(".")[:-1]
        self._owner = owner[-1].lstrip("_") if owner else ""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _AS_WRITTEN:
            return node
        return ast.copy_location(ast.Call(_guard(_CALL), [node.func, *node.args], node.keywords), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self._owner and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self._owner}{node.attr}"
        if not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Call(_guard(_READ), [node.value, ast.Constant(node.attr)], []), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Is | ast.IsNot):
            return node
        same: ast.expr = ast.Call(_guard(_SAME), [node.left, node.comparators[0]], [])
        return ast.copy_location(same if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(ast.Not(), same), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.target = self.visit(node.target)
        node.value = None if node.value is None else self.visit(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.guard = None if node.guard is None else self.visit(node.guard)
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node  # a class made inside a function runs as it is


def _guard(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())
