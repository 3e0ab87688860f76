"""Running the user's ordinary Python while parameters are free, with a guard on what an object itself cannot refuse.

An `Amount` refuses whatever asks it for something. Python never asks an object for its identity (``is``, ``id``) or its type
(``type``), and takes no ``range`` up to it. So the user's functions run as copies, made from their syntax trees, in which
every call, every attribute that is read and every ``is`` passes through here. Python itself calls functions of the user's
too, as they are: methods with two underscores, keys of sorts, what decorators and the standard library wrap. `unguarded`
watches for those that look at identities or types.
"""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any

from streamproof.language.amounts import Amount, Indices, indices, is_condition, note, refuse, shown
from streamproof.language.frames import PACKAGE, is_standard
from streamproof.language.sources import definition
from streamproof.system.errors import Loc, ModelError
from streamproof.system.unbounded import Undecided

_BLIND = (type, id, operator.is_, operator.is_not, issubclass)
"""Functions that look at an object without asking it."""
_AS_WRITTEN = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"})
"""Functions that look at the frame in which they are called."""
_APART = frozenset({type(None), bool, str})
"""Types of which no value is a number's object."""
_OPEN = frozenset(
    [
        "builtins",
        "operator",
        "_operator",
        "functools",
        "_functools",
        "itertools",
        "collections",
        "_collections",
        "contextlib",
        "copy",
        "dataclasses",
        "enum",
        "math",
        "typing",
    ]
)
"""Modules of the standard library whose functions ask a value what they want of it."""
_GENERATED = frozenset(
    f"__{name}__" for name in ["init", "new", "eq", "lt", "le", "gt", "ge", "hash", "repr", "setattr", "delattr"]
)
"""Methods that data classes and named tuples have from text."""
_DEPTH = 4
"""How deep free parameters are looked for in what a function is given."""
_CALL, _READ, _SAME, _MATCHED = "(call)", "(read)", "(same)", "(matched)"
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
    given = (*args, *kwargs.values())
    if function is not isinstance and function is not issubclass:
        blind = next((g for g in given if any(g is f for f in _BLIND)), None)
        if blind is not None:
            refuse(f"{_name(function)}() may call {_name(blind)}() of a free parameter", "write the call out")
    _known(function, given)
    try:
        result = function(*args, **kwargs)
    except Undecided:
        raise
    except TypeError as error:
        if free is not None:  # it may have taken a number; that it does not take this says nothing
            refuse(f"{shown(free)} is any number here, which {_name(function)}() does not take ({error})")
        raise
    if result is NotImplemented and free is not None:
        refuse(f"{shown(free)} is any number here, which {_name(function)}() does not take")
    return result


def _known(function: Any, given: Iterable[Any]) -> None:
    """Refuses a function from elsewhere that gets a free parameter and may look at it without asking."""
    owner = getattr(function, "__self__", None)
    home = owner.__name__ if isinstance(owner, types.ModuleType) else getattr(function, "__module__", None)
    if not isinstance(home, str) or home in _OPEN or home.partition(".")[0] not in sys.stdlib_module_names:
        return
    free = next(_free(given, _DEPTH), None)
    if free is not None:
        refuse(f"{shown(free)} is any number here, which {home}.{_name(function)}() would look at")


def _free(values: Iterable[Any], depth: int) -> Iterator[Any]:
    """The values among `values`, and what they hold, that depend on free parameters."""
    for value in values:
        kind = type(value)
        if kind is Amount or kind is Indices:
            yield value
        elif depth and kind in (tuple, list, set, frozenset):
            yield from _free(value, depth - 1)
        elif depth and kind is dict:
            yield from _free([*value, *value.values()], depth - 1)
        elif depth and not isinstance(value, types.ModuleType | type) and hasattr(value, "__dict__"):
            yield from _free(vars(value).values(), depth - 1)


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
        if type(one) is not Amount and type(one) is not Indices:
            continue
        if type(other) not in _APART or (is_condition(one) and type(other) is bool):
            refuse(f"{shown(one)} is any number here: 'is' means nothing for it", "use == for values")
    return left is right


def _matched(subject: Any) -> Any:
    """The subject of a ``match``, guarded: patterns compare truth values by identity."""
    for value in _free([subject], _DEPTH):
        if is_condition(value):
            refuse(f"{shown(value)} depends on any number here: match means nothing for it", "use if")
    return subject


@contextmanager
def unguarded() -> Iterator[None]:
    """Notes the functions of the user's that run without guards and look at identities or types."""
    before = sys.getprofile()
    known: dict[types.CodeType, str] = {}

    def look(frame: types.FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in known:
            known[code] = "" if _is_elsewhere(frame) else _blind_word(code)
        if is_standard(code.co_filename):
            _entered(frame)
        if known[code]:
            note(
                f"Python itself calls {code.co_name}(), where {known[code]} may meet a free parameter",
                _line(frame),
                "compare numbers with ==, and call the function by its name",
            )

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before if callable(before) else None)


def _line(frame: types.FrameType) -> Loc:
    """Where a function begins; of one that was made from text, the line that runs it."""
    code = frame.f_code
    if not code.co_filename.startswith("<"):
        return Loc(code.co_filename, code.co_firstlineno, code.co_name)
    by: types.FrameType | None = frame
    while by is not None and by.f_code.co_filename.startswith(("<", PACKAGE)):
        by = by.f_back
    return Loc(code.co_filename, 1, code.co_name) if by is None else Loc(by.f_code.co_filename, by.f_lineno)


def _entered(frame: types.FrameType) -> None:
    """Notes that a user's function that runs without guards hands a free parameter to the standard library."""
    by = frame.f_back
    if by is None or is_standard(by.f_code.co_filename) or by.f_code.co_filename.startswith((PACKAGE, "<")):
        return
    home = str(frame.f_globals.get("__name__"))
    free = None if home in _OPEN else next(_free(frame.f_locals.values(), _DEPTH), None)
    if free is not None:
        what = f"{shown(free)} is any number here, which {home}.{frame.f_code.co_name}() would look at"
        note(what, Loc(by.f_code.co_filename, by.f_lineno, by.f_code.co_name), "compute with whole numbers")


def _is_elsewhere(frame: types.FrameType) -> bool:
    """Whether a function was made from text by the standard library or by streamproof, and not by the user's code."""
    if not frame.f_code.co_filename.startswith("<"):
        return False
    by = None if frame.f_back is None else frame.f_back.f_code.co_filename
    return frame.f_code.co_name in _GENERATED or by is None or is_standard(by) or by.startswith(PACKAGE)


def _blind_word(code: types.CodeType) -> str:
    """How a function that runs without guards looks at identities or types; empty where it does not, or has guards."""
    file = code.co_filename
    if id(code) in _GUARDED or file.startswith((PACKAGE, "<frozen")) or is_standard(file):
        return ""
    before: dis.Instruction | None = None
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP" and not (before and before.opname == "LOAD_CONST" and before.argval is None):
            return "'is'"
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD") and step.argval in _BLIND_NAMES:
            return f"{step.argval}()"
        before = step
    return ""


_BLIND_NAMES = frozenset(f.__name__ for f in _BLIND)
_GUARDED: dict[int, types.CodeType] = {}
"""The code of the copies, and of the functions in them, by its identity."""


def _keep(code: types.CodeType) -> None:
    _GUARDED[id(code)] = code
    for part in code.co_consts:
        if (
            isinstance(part, types.CodeType) and part.co_flags & inspect.CO_OPTIMIZED
        ):  # which the body of a class has not
            _keep(part)


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(function, types.MethodType):
        if not isinstance(function.__func__, types.FunctionType):
            return function(*args, **kwargs)
        function, args = function.__func__, (function.__self__, *args)
    made = _guarded(function)
    if made is None:
        _known(function, (*args, *kwargs.values()))
        return function(*args, **kwargs)
    return made(*args, **kwargs)


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
    guards: dict[str, Callable[..., Any]] = {_CALL: called, _READ: read, _SAME: _same, _MATCHED: _matched}
    node.body = [_Guarding(function.__qualname__).visit(statement) for statement in node.body]
    outer = ast.parse("def outer(): pass").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.args.args = [ast.arg(name) for name in (*function.__code__.co_freevars, *guards)]
    outer.body = [node, ast.Return(ast.Name(node.name, ast.Load()))]
    space: dict[str, Any] = {}
    try:
        exec(compile(ast.fix_missing_locations(ast.Module([outer], [])), file, "exec", dont_inherit=True), space)
    except SyntaxError:  # a chain of `is` where Python takes no name; it runs without guards, which is noted
        return None
    inner = space["outer"](*outer.args.args).__code__
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: types.CellType(guard) for name, guard in guards.items()}
    closure = tuple(cells[name] for name in inner.co_freevars)
    _keep(inner)
    made = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class _Guarding(ast.NodeTransformer):
    """Puts the guards into a function's body. Its private names are written as Python stores them in their class."""

    def __init__(self, qualified: str) -> None:
        owner = qualified.split(".<locals>")[-1].split(".")[:-1]
        self._owner = owner[-1].lstrip("_") if owner else ""
        self._chained = 0

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
        if not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return node
        if len(node.ops) > 1:
            return ast.copy_location(self._apart(node), node)
        same: ast.expr = ast.Call(_guard(_SAME), [node.left, node.comparators[0]], [])
        return ast.copy_location(same if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(ast.Not(), same), node)

    def _apart(self, node: ast.Compare) -> ast.expr:
        """A chain of comparisons as single ones; each operand but the first is evaluated once, into a name of its own."""
        parts: list[ast.expr] = []
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            self._chained += 1
            name = f"(chained {self._chained})"
            kept = ast.NamedExpr(ast.Name(name, ast.Store()), right)
            if isinstance(op, ast.Is | ast.IsNot):
                same: ast.expr = ast.Call(_guard(_SAME), [left, kept], [])
                parts.append(same if isinstance(op, ast.Is) else ast.UnaryOp(ast.Not(), same))
            else:
                parts.append(ast.Compare(left, [op], [kept]))
            left = ast.Name(name, ast.Load())
        return ast.BoolOp(ast.And(), parts)

    def visit_Match(self, node: ast.Match) -> ast.AST:
        node.subject = ast.copy_location(ast.Call(_guard(_MATCHED), [self.visit(node.subject)], []), node.subject)
        node.cases = [self.visit(case) for case in node.cases]
        return node

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
