"""Symbolic values of free parameters (`--any`) in the user's ordinary Python.

`state()`, `setup()` and helper functions compute with parameters in plain Python; a free parameter is a `SymbolicInt` there.
Addition, subtraction, multiplication and comparison with numbers give terms; a `SymbolicInt` may be stored and passed on.
Every other operation (truth value, text, hash, length, class, attributes) raises `Undecided` at the user's line. The
`ParameterWatch` records each such error, so that an exception handler in the user's code cannot swallow it. `guarded`
rejects identity and type tests, which an object cannot intercept. Inside rules a `SymbolicInt` is its term (`as_term`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, TypeGuard, cast

from streamproof.base.errors import Loc, ModelError
from streamproof.language.lower.sources import caller, is_ours
from streamproof.system import build as b
from streamproof.system.expr import Const, Expr, Node, Sub
from streamproof.system.sorts import BoolSort, RangeSort
from streamproof.transform.unbounded import Undecided, term_range, written

_OTHERS = frozenset({type(None), str, bytes, tuple, list, dict, set, frozenset, range})
"""Types whose values never equal a number."""


class ParameterWatch:
    """The unsupported operations on free parameters during the reading of one model."""

    def __init__(self, outside: Loc | None = None) -> None:
        self.refused: list[Undecided] = []
        self._doubts: list[tuple[BaseException, Undecided]] = []
        self._outside = outside

    def place(self) -> Loc | None:
        """The current line of the model; None outside user code, as during lowering."""
        at = caller()
        if at is None or self._outside is None:
            return at
        return None if (at.file, at.function) == (self._outside.file, self._outside.function) else at

    def since(self, mark: int) -> Undecided | None:
        """The first error after `mark`, a former length of `refused`."""
        return self.refused[mark] if len(self.refused) > mark else None

    def doubt(self, error: BaseException, refusal: Undecided) -> None:
        """Records the handling of an exception as an error unless the exception propagates."""
        self._doubts.append((error, refusal))
        self.refused.append(refusal)

    def is_doubted(self, error: BaseException) -> bool:
        """Whether an error was recorded for this exception."""
        return any(e is error for e, _ in self._doubts)

    def trust(self, error: BaseException | None) -> None:
        """Drops the error recorded for an exception that propagated, and for its causes."""
        while error is not None:
            found = next((refusal for e, refusal in self._doubts if e is error), None)
            self.refused[:] = [r for r in self.refused if r is not found]
            error = error.__cause__

    def forget(self, mark: int) -> None:
        """Drops the errors after `mark`: lowering reads that code again, as part of the language."""
        del self.refused[mark:]


_WATCH: ContextVar[ParameterWatch | None] = ContextVar("watch", default=None)


def watch() -> ParameterWatch | None:
    """The active `ParameterWatch`; None unless a model is being read with free parameters."""
    return _WATCH.get()


@contextmanager
def watching() -> Iterator[ParameterWatch]:
    """Watches user code during the reading of a model; raises a recorded error that the user's code swallowed."""
    own = ParameterWatch(caller())
    token = _WATCH.set(own)
    try:
        yield own
    except Undecided:
        raise
    except Exception as error:
        own.trust(error)
        first = own.since(0)
        if first is not None:
            raise first from error
        raise
    finally:
        _WATCH.reset(token)
    first = own.since(0)
    if first is not None:
        raise first


def note(what: str, loc: Loc | None, remedy: str) -> None:
    """Records an error with the `ParameterWatch` where raising is impossible."""
    own = _WATCH.get()
    if own is not None:
        own.refused.append(Undecided(what, loc=loc, remedy=remedy))


def refuse(what: str, remedy: str = "decide inside a rule, or give the parameter a value") -> NoReturn:
    """Raises `Undecided` at the user's line, and records it with the `ParameterWatch`."""
    own = _WATCH.get()
    error = Undecided(what, loc=caller() if own is None else own.place(), remedy=remedy)
    if own is not None:
        own.refused.append(error)
    raise error


class _Hostile(type):
    """The metaclass of such values: rejects type tests, as far as a type can intercept them."""

    def __eq__(cls, other: object) -> bool:
        return cls is other if is_ours() else _asked_type()

    def __hash__(cls) -> int:
        return id(cls) if is_ours() else _asked_type()


def _asked_type() -> NoReturn:
    refuse("ordinary Python cannot inspect the type of a free parameter")


def _unknown(self: Any, *_: Any) -> NoReturn:
    refuse(f"{shown(self)} is any number here: ordinary Python cannot branch on it or count up to it")


def _no_text(self: Any, *_: Any) -> NoReturn:
    refuse(f"{shown(self)} is any number here: it has no text and no hash, so it cannot be a key or a member of a set")


class Hostile(metaclass=_Hostile):
    """A value that depends on free parameters and rejects every operation by default."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__" and is_ours():
            return object.__getattribute__(self, name)
        refuse(f"{shown(self)} is any number here: it has no attribute {name!r}")

    __bool__ = __index__ = __int__ = __float__ = __complex__ = __round__ = __trunc__ = __floor__ = __ceil__ = _unknown
    __iter__ = __len__ = __contains__ = __getitem__ = __abs__ = __invert__ = __pos__ = __neg__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _unknown
    __divmod__ = __rdivmod__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __matmul__ = __rmatmul__ = _unknown
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __sizeof__ = _unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __le__ = __gt__ = __ge__ = _unknown
    __hash__ = __str__ = __repr__ = __format__ = __bytes__ = _no_text

    def __eq__(self, other: object) -> Any:
        return True if other is self else _unknown(self)

    def __ne__(self, other: object) -> Any:
        return False if other is self else _unknown(self)


def _operation(make: Callable[..., Expr]) -> Callable[[Any, Any], Any]:
    return lambda self, other: _combined(make, self, other)


def _mirrored(make: Callable[..., Expr]) -> Callable[[Any, Any], Any]:
    return lambda self, other: _combined(make, other, self)


class SymbolicInt(Hostile):
    """A number or truth value that depends on free parameters; `term_of` gives its term."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        object.__setattr__(self, "expr", expr)

    __add__, __radd__ = _operation(b.add), _mirrored(b.add)
    __sub__, __rsub__ = _operation(b.sub), _mirrored(b.sub)
    __mul__ = __rmul__ = _operation(b.mul)
    __lt__, __gt__ = _operation(b.less), _mirrored(b.less)
    __le__, __ge__ = _operation(b.less_eq), _mirrored(b.less_eq)

    def __neg__(self) -> Any:
        return _combined(b.sub, 0, self)

    def __pos__(self) -> Any:
        return _combined(b.add, 0, self)

    def __eq__(self, other: object) -> Any:
        if type(other) is not SymbolicInt and type(other) in _OTHERS:
            return False
        return True if _same(self, other) else _combined(b.eq, self, other)

    def __ne__(self, other: object) -> Any:
        if type(other) is not SymbolicInt and type(other) in _OTHERS:
            return True
        return False if _same(self, other) else _combined(lambda x, y: b.not_(b.eq(x, y)), self, other)

    __hash__ = Hostile.__hash__  # type: ignore[assignment]


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


class UniformArray:
    """The initial value of an array of unbounded length: `value` at every index."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def is_free(value: Any) -> TypeGuard[SymbolicInt]:
    """Whether a value is a `SymbolicInt`; calls none of its operations."""
    return type(value) is SymbolicInt


def is_condition(value: Any) -> bool:
    """Whether a value is a `SymbolicInt` with a truth value."""
    return type(value) is SymbolicInt and isinstance(term_of(value).sort, BoolSort)


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


def _same(one: SymbolicInt, other: object) -> bool:
    return type(other) is SymbolicInt and term_of(other) is term_of(one)


def _combined(make: Callable[..., Expr], left: Any, right: Any) -> Any:
    terms = [_number(left), _number(right)]
    made = make(*terms)
    return made.value if isinstance(made, Const) else SymbolicInt(made)


def _number(value: Any) -> Expr:
    """A number as a term; truth values convert to 0 and 1, as in Python. Rejects everything else."""
    if type(value) is SymbolicInt:
        found = term_of(value)
        return b.ite(found, b.num(1), b.num(0)) if isinstance(found.sort, BoolSort) else found
    if type(value) is int or type(value) is bool:
        return b.num(int(value))
    refuse(f"a free parameter meets a {type(value).__name__}, which is not an int", "compute with whole numbers")


def as_term(value: Any) -> Any:
    """The value inside a rule: the term of a `SymbolicInt`, anything else unchanged."""
    return term_of(value) if type(value) is SymbolicInt else value


def symbolic_range(*ends: Any) -> Any:
    """``range`` with symbolic bounds permitted."""
    if not any(type(end) is SymbolicInt for end in ends):
        return range(*ends)
    return range_between([as_term(end) for end in ends], caller())


def range_between(ends: list[Any], loc: Loc | None) -> SymbolicRange:
    """The `SymbolicRange` for arguments of ``range``. Raises `ModelError` for a step."""
    if len(ends) > 2:
        raise ModelError("range(...) with a step over any number of elements", loc=loc, remedy="leave out the step")
    terms: list[Expr] = [cast(Expr, end) if isinstance(end, Node) else _number(end) for end in ends]
    first = terms[0] if len(terms) == 2 else b.num(0)
    return SymbolicRange(first, b.sub(terms[-1], b.num(1)))
