"""Validation of a `Model` class: parameters, sizes, limits and bounds, redefined names and lost decorators.

Each error is a `ModelError` at the line of the declaration, raised before any code of the model runs.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Union, get_args, get_origin

from streamproof.base.errors import Loc, ModelError, did_you_mean
from streamproof.base.records import dataclass
from streamproof.language.declare.primitives import MARK, is_marker
from streamproof.language.lower.conversion import plain
from streamproof.language.lower.sources import parsed, source_of

_DEFINES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_LOOPS = ast.For | ast.AsyncFor | ast.While
_PARTS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Fields of statements that contain statements, and nodes that contain such fields: handlers and cases."""


@lru_cache(maxsize=4096)
def check_class(cls: type) -> None:
    """Raises `ModelError` if a class body defines a name twice, or loses the decorator of a method."""
    prefix = f"{cls.__qualname__}."
    own = [f for member in vars(cls).values() for f in _functions(member) if f.__qualname__.startswith(prefix)]
    module = sys.modules.get(cls.__module__)
    space = own[0].__globals__ if own else getattr(module, "__dict__", {})
    file = own[0].__code__.co_filename if own else getattr(module, "__file__", None)
    node = _body(cls, file, own) if file is not None else None
    if file is None or node is None:
        return
    if cls.__qualname__ == cls.__name__ and not vars(cls).get("variant"):  # variants are registered by that name
        _check_names(file, {cls.__name__})
    _Body(file, cls.__name__).walk(node.body, {})
    scope = {**space, **vars(cls)}
    for method, within in _methods(node.body):
        marks = [d for d in method.decorator_list if is_marker(_named(d, scope))]
        if marks:
            _check_mark(cls, file, method, marks[0], within)


def check_module(functions: Iterable[types.FunctionType]) -> None:
    """Raises `ModelError` if a module defines one of these properties, stated outside a class, twice."""
    names: dict[str, set[str]] = {}
    for function in functions:
        if function.__qualname__ == function.__name__:
            names.setdefault(function.__code__.co_filename, set()).add(function.__name__)
    for file, own in names.items():
        _check_names(file, own)


def _check_names(file: str, names: set[str]) -> None:
    tree = parsed(file, source_of(file))
    if tree is not None:
        _Body(file, "", names).walk(tree.body, {})


class _Body:
    """The names that a body defines, or those among them that are in `only`."""

    def __init__(self, file: str, owner: str, only: Collection[str] | None = None) -> None:
        self._file, self._owner, self._only = file, owner, only

    def walk(self, body: Iterable[ast.AST], seen: dict[str, int]) -> None:
        """Adds the names that statements define to `seen`, with their lines; alternative branches are processed
        separately."""
        for node in body:
            if self._only is not None and isinstance(node, ast.Import | ast.ImportFrom):
                continue  # a module may define what it could not import
            for name in _bound(node):
                self._define(name, node, seen)
            if isinstance(node, _DEFINES):
                continue
            if isinstance(node, ast.Delete):
                for name in _names(node.targets):
                    seen.pop(name, None)
            elif isinstance(node, ast.If | ast.Match):
                ways = [node.body, node.orelse] if isinstance(node, ast.If) else [c.body for c in node.cases]
                after = [dict(seen) for _ in ways]
                for way, own in zip(ways, after, strict=True):
                    self.walk(way, own)
                for own in after:
                    seen.update(own)
            else:
                for part in _PARTS:
                    self.walk(getattr(node, part, ()), seen)

    def _define(self, name: str, node: ast.AST, seen: dict[str, int]) -> None:
        if name == "_" or (self._only is not None and name not in self._only):
            return
        line, here = seen.get(name), getattr(node, "lineno", 0)
        reads = any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(_head(node)))
        if line is not None and not reads:
            where = f" in {self._owner}" if self._owner else ""
            raise ModelError(
                f"{name!r} is defined twice{where}, lines {line} and {here}: the second definition replaces the first",
                loc=Loc(self._file, here, self._owner or name),
                remedy="rename one of them, or remove it",
            )
        seen[name] = here


def _head(node: ast.AST) -> ast.AST:
    """The expressions evaluated at a definition: the decorators of a function or class, the value of any other statement."""
    if isinstance(node, _DEFINES):
        return ast.Tuple([*node.decorator_list, *getattr(node, "bases", ())], ast.Load())
    return getattr(node, "value", getattr(node, "iter", None)) or ast.Pass()


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds, without those bound in nested blocks."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            if not any(_last(d) == "overload" for d in node.decorator_list):
                yield node.name
        case ast.Assign(targets=targets):
            yield from _names(targets)
        case ast.AnnAssign(target=target, value=ast.expr()) | ast.For(target=target) | ast.AsyncFor(target=target):
            yield from _names([target])
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from _names([item.optional_vars for item in items if item.optional_vars is not None])
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)


def _names(targets: Iterable[ast.expr]) -> Iterator[str]:
    """The names in the targets of assignments or ``del``."""
    return (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))


def _last(node: ast.expr) -> str:
    """The last name of a decorator: ``overload`` of ``typing.overload``."""
    return getattr(node, "attr", getattr(node, "id", ""))


def _methods(body: Iterable[ast.stmt], within: str = "") -> Iterator[tuple[ast.FunctionDef, str]]:
    """Every method that a class body defines, with its enclosing construct: none, a conditional or a loop."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node, within
        elif not isinstance(node, _DEFINES):
            under = "loop" if within == "loop" or isinstance(node, _LOOPS) else "condition"
            for part in _PARTS:
                yield from _methods(getattr(node, part, ()), under)


def _check_mark(cls: type, file: str, method: ast.FunctionDef, mark: ast.expr, within: str) -> None:
    """Raises `ModelError` if a method is decorated, but the attribute of the class is not a decorated function."""
    name, shown = method.name, f"@{ast.unparse(mark)}"
    loc = Loc(file, method.lineno, name)
    if within == "loop":
        raise ModelError(
            f"{name!r} is defined in a loop: each round replaces the definition before",
            loc=loc,
            remedy="give the rule a parameter with a domain, or loop inside it",
        )
    lines = range(min(d.lineno for d in method.decorator_list), (method.end_lineno or method.lineno) + 1)
    member = vars(cls).get(name)
    ours = any(f.__code__.co_filename == file and f.__code__.co_firstlineno in lines for f in _functions(member))
    others = [d for d in method.decorator_list if d is not mark]
    if isinstance(member, types.FunctionType) and MARK in vars(member) and (ours or others):
        return
    if not ours and within:
        return  # another definition replaced this one
    if others:
        raise ModelError(
            f"{name} is decorated, but is not a plain method: @{ast.unparse(others[0])}, line {others[0].lineno}, "
            f"hides {shown}, line {mark.lineno}",
            loc=loc,
            remedy=f"write def {name}(self, s, ...) without @staticmethod, @classmethod or @property",
        )
    raise ModelError(
        f"{name} is marked {shown}, line {mark.lineno}, but {cls.__name__} ends without this method",
        loc=loc,
        remedy="remove the mark, or keep the method in the class",
    )


def _functions(member: Any) -> list[types.FunctionType]:
    """The functions that a class member is or wraps."""
    found, todo = list[types.FunctionType](), [member]
    while todo and len(found) < 20:
        one = todo.pop()
        if isinstance(one, types.FunctionType):
            found.append(one)
        inner = (
            _inner(one, name) for name in ("fget", "fset", "fdel", "__func__", "__wrapped__", "func", "dispatcher")
        )
        todo += [part for part in inner if part is not None]
    return found


def _inner(one: Any, name: str) -> Any:
    """An attribute of a standard wrapper or in the object's own dictionary, read without running code of the model."""
    if isinstance(one, type):
        return None
    if type(one).__module__ in ("builtins", "functools"):
        return getattr(one, name, None)
    try:
        return object.__getattribute__(one, "__dict__").get(name)
    except AttributeError:
        return None


def _named(decorator: ast.expr, scope: Mapping[str, Any]) -> Any:
    """The object that a decorator names, as in ``invariant``, ``sp.invariant``, ``action(c=3)``; None if it cannot be
    resolved."""
    if isinstance(decorator, ast.Call):
        return _named(decorator.func, scope)
    if isinstance(decorator, ast.Attribute):
        return getattr(_named(decorator.value, scope), decorator.attr, None)
    return scope.get(decorator.id) if isinstance(decorator, ast.Name) else None


# --- source of a class


def _body(cls: type, file: str, own: Sequence[types.FunctionType]) -> ast.ClassDef | None:
    """The syntax tree of a class; None if its source is unavailable, as for a class made by `type`."""
    first = min((f.__code__.co_firstlineno for f in own if f.__code__.co_filename == file), default=0)
    tree = parsed(file, source_of(file))
    found = [] if tree is None else [n for name, n in _classes(tree, "") if name == cls.__qualname__]
    around = [n for n in found if n.lineno <= first <= (n.end_lineno or n.lineno)]
    return next(reversed(around or found), None)


def _classes(node: ast.AST, path: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class below a node, by its qualified name."""
    for inner in (inner for part in _PARTS for inner in getattr(node, part, ())):
        name = getattr(inner, "name", "")
        if isinstance(inner, ast.ClassDef):
            yield path + name, inner
            yield from _classes(inner, f"{path}{name}.")
        else:
            yield from _classes(inner, f"{path}{name}.<locals>." if isinstance(inner, _DEFINES) else path)


TYPES: dict[str, type] = {"int": int, "bool": bool, "str": str}
"""Permitted types of parameters; each also as ``int | None``."""


@dataclass(frozen=True, slots=True)
class ParameterType:
    """The declared type of a parameter: `kind`, or None as well if `optional`."""

    kind: type
    optional: bool = False

    def accepts(self, value: object) -> bool:
        """Whether a value is of this type."""
        return type(value) is self.kind or (self.optional and value is None)

    def __str__(self) -> str:
        return f"{self.kind.__name__} | None" if self.optional else self.kind.__name__


def class_place(cls: type) -> Loc | None:
    """The source position of a class."""
    try:
        return Loc(inspect.getsourcefile(cls) or "?", inspect.getsourcelines(cls)[1], cls.__name__)
    except (OSError, TypeError):
        return None


def attribute_place(cls: type, name: str) -> Loc | None:
    """The position where a class annotates, sets or defines an attribute; that of the class if not found."""
    home = class_place(cls)
    if home is None:
        return None
    lines, first = inspect.getsourcelines(cls)
    defines = re.compile(rf"\s+(?:{re.escape(name)}\s*(?::|=(?!=))|def\s+{re.escape(name)}\b)")
    return next(
        (Loc(home.file, first + at, cls.__name__) for at, line in enumerate(lines) if defines.match(line)), home
    )


def parameter_types(cls: type) -> Mapping[str, ParameterType]:
    """The type of each parameter. Raises `ModelError` for a type other than int, bool or str, or an inconsistent default."""
    return _parameter_types(cls)


@lru_cache(maxsize=4096)
def _parameter_types(cls: Any) -> Mapping[str, ParameterType]:
    found: dict[str, ParameterType] = {}
    parameters = cls.parameters()
    for c in reversed(cls.__mro__):
        for name, hint in inspect.get_annotations(c).items():
            if name in parameters:
                found[name] = _type(c, name, hint)
    for name, default in parameters.items():
        if isinstance(default, types.FunctionType):
            continue  # a duplicate name, which the check of the class body rejects
        if not found[name].accepts(default):
            home = next(c for c in cls.__mro__ if name in vars(c))
            raise ModelError(
                f"the default of {name}, {default!r}, is not of type {found[name]}",
                loc=attribute_place(home, name),
                remedy=f"give it one: {name}: {found[name]} = {found[name].kind()!r}",
            )
    return found


def _type(cls: type, name: str, hint: Any) -> ParameterType:
    space = getattr(sys.modules.get(cls.__module__), "__dict__", {})
    if isinstance(hint, str) and (hint not in TYPES or hint in space):
        with suppress(Exception):  # a name under TYPE_CHECKING is not a parameter type
            hint = eval(hint, space, dict(vars(cls)))
    kinds = [TYPES.get(hint)] if isinstance(hint, str) else [hint]
    if get_origin(hint) in (Union, types.UnionType):  # not list[int] or Final[int]
        kinds = [*get_args(hint)]
    kind = next((k for k in kinds if k in TYPES.values()), None)
    if kind is None or {*kinds} - {kind, types.NoneType}:
        shown = hint if isinstance(hint, str) else getattr(hint, "__name__", repr(hint))
        raise ModelError(
            f"the parameter {name} is declared as {shown}",
            loc=attribute_place(cls, name),
            remedy=f"parameters are int, bool, str, or int | None and the like; declare other attributes as "
            f"{name}: ClassVar[...] = ...",
        )
    return ParameterType(kind, optional=len(kinds) > 1)


def check_model(cls: type) -> None:
    """Raises `ModelError` for an invalid class declaration."""
    _check_model(cls)


@lru_cache(maxsize=4096)
def _check_model(cls: type) -> None:
    parameters = parameter_types(cls)
    for c in cls.__mro__:
        for name, check in _CHECKS.items():
            if name in vars(c) and c.__module__ != "streamproof.language.declare.model":
                wrong = check(vars(c)[name], parameters)
                if wrong:
                    raise ModelError(
                        f"{name} of {c.__name__} {wrong[0]}", loc=attribute_place(c, name), remedy=wrong[1]
                    )


Wrong = tuple[str, str] | None
"""The error message and its remedy."""


def _sizes(given: Any, parameters: Mapping[str, ParameterType]) -> Wrong:
    remedy = 'write sizes = {"small": {"n": 1}, "medium": {"n": 2}}'
    if not isinstance(given, Mapping) or not all(isinstance(one, Mapping) for one in given.values()):
        return f"is {given!r}", remedy
    for size, values in given.items():
        if not isinstance(size, str):
            return f"has the size {size!r}", "name it by a text"
        if wrong := wrong_values(values, parameters):
            return f"sets, for {size!r}, {wrong[0]}", wrong[1]
    return None


def wrong_values(values: Mapping[Any, Any], parameters: Mapping[str, ParameterType]) -> Wrong:
    """The error for invalid parameter values."""
    for name, value in values.items():
        if name not in parameters:
            return f"{name!r}, which is not a parameter", known_names(name, parameters, "its parameters")
        if not parameters[name].accepts(plain(value)):
            return f"{name} to {value!r}", f"{name} is of type {parameters[name]}"
    return None


def known_names(name: Any, known: Collection[str], kind: str) -> str:
    """The remedy for an unknown name: the closest known name, or all of them."""
    return did_you_mean(str(name), known) or f"{kind}: {', '.join(known) or 'none'}"


def _limits(given: Any, parameters: Mapping[str, ParameterType]) -> Wrong:
    remedy = 'write limits = {"n": (1, 8)}, with None for no limit'
    if not isinstance(given, Mapping):
        return f"is {given!r}", remedy
    for name, pair in given.items():
        if name not in parameters:
            return f"names {name!r}, which is not a parameter", known_names(name, parameters, "its parameters")
        if parameters[name].kind is not int:
            return f"names {name}, which is of type {parameters[name]}", "only numbers have limits"
        two = isinstance(pair, tuple | list) and len(pair) == 2
        if not two or not all(end is None or type(end) is int for end in pair):
            return f"gives {name} {pair!r}", remedy
        if None not in pair and pair[0] > pair[1]:
            return f"leaves no value for {name}: {pair!r}", "give the least value first"
    return None


def _instance_bounds(given: Any, parameters: Mapping[str, ParameterType]) -> Wrong:
    if not isinstance(given, tuple):
        return f"is {given!r}", 'write instance_bounds = ("n",)'
    for name in given:
        if name not in parameters:
            return f"names {name!r}, which is not a parameter", known_names(name, parameters, "its parameters")
        if parameters[name].kind is not int:
            return f"names {name}, which is of type {parameters[name]}", "only numbers are bounds"
    return None


def _setup(given: Any, parameters: Mapping[str, ParameterType]) -> Wrong:
    needed = list(inspect.signature(given).parameters) if inspect.isfunction(given) else ["self"]
    return None if len(needed) == 1 else (f"takes {', '.join(needed) or 'nothing'}", "it takes self and nothing else")


_CHECKS: dict[str, Callable[[Any, Mapping[str, ParameterType]], Wrong]] = {
    "sizes": _sizes,
    "limits": _limits,
    "instance_bounds": _instance_bounds,
    "name": lambda given, _: None if isinstance(given, str) else (f"is {given!r}", "give a text"),
    "check_deadlock": lambda given, _: None if isinstance(given, bool) else (f"is {given!r}", "give True or False"),
    "setup": _setup,
    "parts": _setup,
}


def check_constructor(cls: Any) -> None:
    """Raises `ModelError` if the class cannot be constructed from its parameters by keyword."""
    own = next((c for c in cls.__mro__ if "__init__" in vars(c)), cls)
    if not isinstance(cls.__module__, str):
        code = getattr(cls.state, "__code__", None)
        raise ModelError(
            f"the module of {cls.__name__} is named {cls.__module__!r}, which is not a str",
            loc=None if code is None else Loc(code.co_filename, code.co_firstlineno),
            remedy="leave __name__ and __module__ as Python sets them",
        )
    if cls.__new__ is not object.__new__:
        maker = next(c for c in cls.__mro__ if "__new__" in vars(c))
        raise ModelError(
            f"{maker.__name__} has its own __new__",
            loc=attribute_place(maker, "__new__"),
            remedy="write def setup(self), which is called when the parameters are set",
        )
    try:
        inspect.signature(cls).bind(**cls.parameters())
    except TypeError as error:
        raise ModelError(
            f"{own.__name__} has its own __init__, and cannot be made from its parameters: {error}",
            loc=attribute_place(own, "__init__"),
            remedy="write def setup(self), which is called when the parameters are set",
        ) from None
