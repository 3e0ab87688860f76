"""Free parameters (`--any`) while a model is read: constants of unknown value, which only lowering computes with.

A free parameter is an attribute of the model: a `SymbolicInt`. Lowering reads it as its term. Ordinary Python of the user
gets neither the parameter nor the model: while a `ParameterWatch` is active, `native` rejects a call whose arguments contain
one, and reading such an attribute raises `Undecided`. Each such error is recorded, so that an exception handler in the
user's code cannot swallow it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache, partial
from typing import Any, NoReturn, TypeAlias, TypeGuard, TypeVar

from streamproof.base.errors import Loc, ModelError, StreamproofError
from streamproof.base.records import dataclass
from streamproof.language.lower.sources import (
    caller,
    innermost,
    is_ours,
    is_users,
    lowered,
    lowered_at,
    names_used,
    ordinary,
)
from streamproof.system import build as b
from streamproof.system.expr import Add, Const, Expr, Mul, Node, Sub, Var
from streamproof.system.sorts import RangeSort
from streamproof.transform.unbounded import Undecided, term_range, written

T = TypeVar("T")
Evaluate: TypeAlias = Callable[[Callable[..., Any], tuple[Any, ...], str, Loc | None, Any], Any]
"""Evaluates a function of the user: `evaluation.evaluate`."""

_FINDING = frozenset({"gc", "inspect", "ctypes"})
"""Modules that find objects which no name refers to."""
_FRAMES = frozenset({"_getframe", "_current_frames"})
"""Functions that do."""
_REMEDY = "compute with it in the language of rules, or give the parameter a value"


class ParameterWatch:
    """The free parameters during the reading of one model, the attributes that depend on them, and the errors so far."""

    def __init__(self, kind: type, free: frozenset[str], evaluate: Evaluate) -> None:
        self.kind, self.free, self.evaluate = kind, free, evaluate
        self.refused: list[StreamproofError] = []
        self.in_python = False
        """Whether ordinary Python of the user is running."""
        self.compared: set[type] = set()
        """Models whose ``setup()`` uses random numbers or a clock; it is called many times, with the same result."""
        self._attributes: dict[int, tuple[object, set[str]]] = {}

    def mark(self, owner: object, name: str) -> None:
        """Records that an attribute depends on free parameters."""
        self._attributes.setdefault(id(owner), (owner, set()))[1].add(name)

    def names(self, owner: object) -> set[str]:
        """The attributes of an object that depend on free parameters."""
        return self._attributes.get(id(owner), (owner, set()))[1]

    def refuse(self, what: str, remedy: str) -> NoReturn:
        """Raises an error, and records it; lowering gives it its line."""
        inside = self.in_python or lowered() is not None
        error = Undecided(what, loc=caller() if inside else None, remedy=remedy)
        self.refused.append(error)
        raise error

    @contextmanager
    def lowering(self, *, in_python: bool = False) -> Iterator[None]:
        """The context of lowering, or of ordinary Python."""
        before, self.in_python = self.in_python, in_python
        try:
            yield
        finally:
            self.in_python = before


_WATCH: ContextVar[ParameterWatch | None] = ContextVar("watch", default=None)


def watch() -> ParameterWatch | None:
    """The active `ParameterWatch`; None unless a model is being read with free parameters."""
    return _WATCH.get()


@contextmanager
def watching(kind: type, free: frozenset[str], evaluate: Evaluate) -> Iterator[None]:
    """Guards the attributes of models; `kind` is their base. Raises an error that the user's code swallowed."""
    own = ParameterWatch(kind, free, evaluate)
    token = _WATCH.set(own)
    kind.__getattribute__ = _guard(own)  # type: ignore[assignment]
    try:
        yield
    except Exception as error:
        if own.refused and error is not own.refused[0] and not isinstance(error, StreamproofError):
            raise own.refused[0] from error
        raise
    finally:
        del kind.__getattribute__
        _WATCH.reset(token)
    if own.refused:
        raise own.refused[0]


def _guard(own: ParameterWatch) -> Callable[[object, str], Any]:
    """Attribute access of models for ordinary Python, in any thread; lowering uses that of `object`."""

    def guarded(self: object, name: str) -> Any:
        value = object.__getattribute__(self, name)
        names = own.names(self)
        if name in names or type(value) in _SYMBOLIC or (name == "__dict__" and (names or depends(value))):
            what = f"{name} of {type(self).__name__} depends on a free parameter, which ordinary Python cannot read"
            own.refuse(what, _REMEDY)
        return value

    return guarded


def refuse(what: str, remedy: str = _REMEDY) -> NoReturn:
    """Raises `Undecided` at the user's line, and records it with the `ParameterWatch`."""
    own = _WATCH.get()
    if own is None:
        raise Undecided(what, loc=caller(), remedy=remedy)
    own.refuse(what, remedy)


def native(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Calls ordinary Python. Raises `Undecided` if it is passed a free parameter or a model, and even if it handles that."""
    own = _WATCH.get()
    if own is None:
        return function(*args, **kwargs)
    if any(map(depends, (getattr(function, "__self__", None), *args, *kwargs.values()))):
        refuse(f"{_name(function)}() is ordinary Python, and is passed a free parameter or a model that has one")
    found = _looks(function)
    if found is not None:
        refuse(f"{_name(function)}() uses {found!r}, by which ordinary Python could read a free parameter")
    mark, loc = len(own.refused), lowered()
    try:
        with lowered_at(None), own.lowering(in_python=True):
            result = function(*args, **kwargs)
    except Exception as error:
        if len(own.refused) == mark:
            raise
        raise _placed(own.refused[mark], loc) from error
    if len(own.refused) > mark:
        raise _placed(own.refused[mark], loc)
    return result


def _placed(error: StreamproofError, loc: Loc | None) -> StreamproofError:
    """An error, at the call of Python's own functions during which it occurred."""
    if loc is None or innermost(error, is_users) is not None:
        return error
    return type(error)(error.message, loc=loc, remedy=error.remedy)


def call_user(
    function: Callable[..., Any], args: tuple[Any, ...], what: str, home: Loc | None, model: Any = None
) -> Any:
    """The result of a function of the user outside rules, such as ``state()``. Raises `ModelError`.

    `model`: the model that ``setup()`` completes."""
    own = _WATCH.get()
    return (
        ordinary(partial(function, *args), what, home)
        if own is None
        else own.evaluate(function, args, what, home, model)
    )


def getter_of(owner: object, name: str) -> types.MethodType | None:
    """The function that computes an attribute of a model or of ``super()``: a property, or one that is not cached yet."""
    instance: Any = owner
    classes = type(owner).__mro__
    if isinstance(owner, super):
        above: Any = owner
        instance, classes = above.__self__, above.__self_class__.__mro__
        classes = classes[classes.index(above.__thisclass__) + 1 :]
    found = next((vars(base)[name] for base in classes if name in vars(base)), None)
    getter = found.fget if type(found) is property else None
    if type(found) is cached_property and (
        instance is not owner or name not in object.__getattribute__(owner, "__dict__")
    ):
        getter = found.func
    return types.MethodType(getter, instance) if isinstance(getter, types.FunctionType) else None


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _looks(function: Any) -> str | None:
    """A name of `_FRAMES`, or of a module of `_FINDING`, that a function of the user, or one that it names, uses."""
    plain = getattr(function, "__func__", function)
    return _name_of(plain) if isinstance(plain, types.FunctionType | type) else _finds(function)


@lru_cache(maxsize=4096)
def _name_of(function: types.FunctionType | type) -> str | None:
    found = names_used(function, ())
    return next((name for file, name, value in found if (name in _FRAMES or _finds(value)) and is_users(file)), None)


def _finds(value: Any) -> str | None:
    """The module of `_FINDING` that a value is, or belongs to."""
    home = getattr(value, "__name__" if isinstance(value, types.ModuleType) else "__module__", None)
    return home if type(home) is str and home in _FINDING else None


def _refused(self: Any, *_: Any) -> NoReturn:
    refuse(f"{shown(self)} is any number here: ordinary Python cannot use it")


class Hostile:
    """A value that depends on free parameters and rejects every operation of ordinary Python."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__" and is_ours():
            return object.__getattribute__(self, name)
        refuse(f"{shown(self)} is any number here: it has no attribute {name!r}")

    __bool__ = __index__ = __int__ = __float__ = __complex__ = __round__ = __trunc__ = __floor__ = __ceil__ = _refused
    __iter__ = __len__ = __contains__ = __getitem__ = __abs__ = __invert__ = __pos__ = __neg__ = _refused
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _refused
    __divmod__ = __rdivmod__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __matmul__ = __rmatmul__ = _refused
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __sizeof__ = _refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __le__ = __gt__ = __ge__ = _refused
    __hash__ = __str__ = __repr__ = __format__ = __bytes__ = _refused

    def __eq__(self, other: object) -> Any:
        return True if other is self else _refused(self)

    def __ne__(self, other: object) -> Any:
        return False if other is self else _refused(self)


class SymbolicInt(Hostile):
    """A number or truth value that depends on free parameters; `term_of` gives its term."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        object.__setattr__(self, "expr", expr)


class SymbolicRange(Hostile):
    """``range(...)`` with a symbolic bound; `sort_of` gives the sort of its integers."""

    __slots__ = ("ends",)

    def __init__(self, least: Expr, most: Expr) -> None:
        object.__setattr__(self, "ends", (least, most))

    def __iter__(self) -> NoReturn:
        refuse(
            f"{shown(self)} has any number of elements here",
            "use it as the index of an Array, or inside all(...), any(...) and sum(...)",
        )


_SYMBOLIC = frozenset({SymbolicInt, SymbolicRange})


class UniformArray:
    """The initial value of an array of unbounded length: `value` at every index."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Declared:
    """Base of declarations of sorts and of states."""

    __slots__ = ()

    def is_open(self) -> bool:
        """Whether it depends on free parameters."""
        return False


@dataclass(frozen=True, eq=False, slots=True)
class OpenDeclaration:
    """A declaration that depends on free parameters, as lowering passes it on: no operation applies to it."""

    value: Any


def is_free(value: Any) -> TypeGuard[SymbolicInt]:
    """Whether a value is a `SymbolicInt`; calls none of its operations."""
    return type(value) is SymbolicInt


def depends(value: Any) -> bool:
    """Whether a value, or an element of it, depends on free parameters, or is a model; calls none of its operations."""
    kind = type(value)
    if kind in _SYMBOLIC or kind is super:
        return True
    if (own := _WATCH.get()) is not None and issubclass(kind, own.kind):
        return True
    if kind in _CONTAINERS:
        return any(map(depends, value)) or (kind is dict and any(map(depends, value.values())))
    if kind is types.MethodType or kind is types.BuiltinMethodType:
        return depends(value.__self__)
    return isinstance(value, Declared) and value.is_open()


_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})


def term_of(amount: SymbolicInt) -> Expr:
    """The term of a `SymbolicInt`."""
    found: Expr = object.__getattribute__(amount, "expr")
    return found


def sort_of(over: SymbolicRange) -> RangeSort:
    """The sort of the integers in `over`."""
    return term_range(*object.__getattribute__(over, "ends"))


def shown(value: Any) -> str:
    """The text of a symbolic value for messages."""
    if type(value) is SymbolicInt:
        return written(term_of(value))
    if type(value) is SymbolicRange:
        least, most = object.__getattribute__(value, "ends")
        stop = most.left if isinstance(most, Sub) and most.right is b.num(1) else b.add(most, b.num(1))
        return f"range({written(least)}, {written(stop)})"
    return repr(value)


def as_term(value: Any) -> Any:
    """The value inside a rule: the term of a `SymbolicInt`, an `OpenDeclaration`, anything else unchanged."""
    if type(value) is SymbolicInt:
        return term_of(value)
    is_open = _WATCH.get() is not None and isinstance(value, Declared) and value.is_open()
    return OpenDeclaration(value) if is_open else value


def expect_sums(value: Any, loc: Loc | None) -> None:
    """Raises `Undecided` for numbers of a declaration or domain that are not computed by ``+``, ``-`` and ``*`` alone."""
    todo: list[Any] = []
    if type(value) is SymbolicInt:
        todo = [term_of(value)]
    elif type(value) is SymbolicRange:
        todo = [*object.__getattribute__(value, "ends")]
    while todo:
        term = todo.pop()
        if isinstance(term, Add | Sub | Mul):
            todo += [term.left, term.right]
        elif not isinstance(term, Const | Var):
            raise Undecided(
                f"{shown(value)} is not made of sums and products",
                loc=loc,
                remedy="use + - * in declarations and domains; state other conditions in rules",
            )


def range_between(ends: list[Any], loc: Loc | None) -> SymbolicRange:
    """The `SymbolicRange` for arguments of ``range``. Raises `ModelError` for a step."""
    if len(ends) > 2:
        raise ModelError("range(...) with a step over any number of elements", loc=loc, remedy="leave out the step")
    terms: list[Any] = [end if isinstance(end, Node) else b.num(int(end)) for end in ends]
    first = terms[0] if len(terms) == 2 else b.num(0)
    return SymbolicRange(first, b.sub(terms[-1], b.num(1)))
