"""Parameters that stand for every number, as ordinary Python meets them while a model is read.

`state()`, `setup()` and helpers compute with parameters in plain Python. An `Amount` is what they get of a free one. What
it may meet is a list: it adds, subtracts, multiplies and compares with numbers into terms, and it may be stored and handed
on. Whatever else asks it for something (its truth, text, hash, length, class, attributes) is refused with `Undecided` at the
user's line, and the refusal is kept (`AmountWatch`), so that a handler in the user's code cannot swallow it. What cannot be
refused by an object itself, its identity and its type, `guarded` refuses. Inside rules an `Amount` is the term itself
(`unveiled`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, TypeGuard, cast

from streamproof.language.sources import caller, is_ours
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Const, Expr, Node, Sub
from streamproof.system.sorts import BoolSort, RangeSort
from streamproof.system.unbounded import Undecided, term_range, written

_OTHERS = frozenset({type(None), str, bytes, tuple, list, dict, set, frozenset, range})
"""Types of which no value equals a number."""


class AmountWatch:
    """What ordinary Python asked of free parameters that they do not answer, while one model is read."""

    def __init__(self, outside: Loc | None = None) -> None:
        self.refused: list[Undecided] = []
        self._doubts: list[tuple[BaseException, Undecided]] = []
        self._outside = outside

    def place(self) -> Loc | None:
        """The line of the model that runs; None where none does, and a rule is being read."""
        at = caller()
        if at is None or self._outside is None:
            return at
        return None if (at.file, at.function) == (self._outside.file, self._outside.function) else at

    def since(self, mark: int) -> Undecided | None:
        """The first refusal after `mark`, which was the length of `refused` then."""
        return self.refused[mark] if len(self.refused) > mark else None

    def doubt(self, error: BaseException, refusal: Undecided) -> None:
        """Keeps a refusal of an exception, which counts if somebody swallows it."""
        self._doubts.append((error, refusal))
        self.refused.append(refusal)

    def is_doubted(self, error: BaseException) -> bool:
        """Whether there is a refusal of this very exception."""
        return any(e is error for e, _ in self._doubts)

    def trust(self, error: BaseException | None) -> None:
        """Drops the refusal of an exception that nobody swallowed, and of those of which it was made."""
        while error is not None:
            found = next((refusal for e, refusal in self._doubts if e is error), None)
            self.refused[:] = [r for r in self.refused if r is not found]
            error = error.__cause__

    def forget(self, mark: int) -> None:
        """Drops the refusals after `mark`: what was asked is read again, as part of the language."""
        del self.refused[mark:]


_WATCH: ContextVar[AmountWatch | None] = ContextVar("watch", default=None)


def watch() -> AmountWatch | None:
    """The `AmountWatch` over the model that is being read with free parameters; None where there is none."""
    return _WATCH.get()


@contextmanager
def watching() -> Iterator[AmountWatch]:
    """Watches over what the user's code asks of free parameters; a refusal that it swallowed is raised at the end."""
    own = AmountWatch(caller())
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
    """Keeps a refusal for the `AmountWatch` where raising is not possible."""
    own = _WATCH.get()
    if own is not None:
        own.refused.append(Undecided(what, loc=loc, remedy=remedy))


def refuse(what: str, remedy: str = "decide inside a rule, or give the parameter a value") -> NoReturn:
    """Raises `Undecided` at the user's line, and keeps it for the `AmountWatch`."""
    own = _WATCH.get()
    error = Undecided(what, loc=caller() if own is None else own.place(), remedy=remedy)
    if own is not None:
        own.refused.append(error)
    raise error


class _Hostile(type):
    """The type of values whose type must not be asked for either, as far as a type can refuse."""

    def __eq__(cls, other: object) -> bool:
        return cls is other if is_ours() else _asked_type()

    def __hash__(cls) -> int:
        return id(cls) if is_ours() else _asked_type()


def _asked_type() -> NoReturn:
    refuse("a free parameter has no type that ordinary Python could look up")


def _unknown(self: Any, *_: Any) -> NoReturn:
    refuse(f"{shown(self)} is any number here: ordinary Python cannot decide by it or count up to it")


def _no_text(self: Any, *_: Any) -> NoReturn:
    refuse(f"{shown(self)} is any number here: it has no text and no hash, so it is no key and no member of a set")


class Hostile(metaclass=_Hostile):
    """A value that depends on free parameters and answers nothing by itself."""

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


class Amount(Hostile):
    """A number, or a truth value, that depends on free parameters: `term_of` gives its term."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        object.__setattr__(self, "expr", expr)

    def __add__(self, other: Any) -> Any:
        return _combined(b.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _combined(b.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _combined(b.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combined(b.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _combined(b.mul, self, other)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return _combined(b.sub, 0, self)

    def __pos__(self) -> Any:
        return _combined(b.add, 0, self)

    def __lt__(self, other: Any) -> Any:
        return _combined(b.less, self, other)

    def __le__(self, other: Any) -> Any:
        return _combined(b.less_eq, self, other)

    def __gt__(self, other: Any) -> Any:
        return _combined(b.less, other, self)

    def __ge__(self, other: Any) -> Any:
        return _combined(b.less_eq, other, self)

    def __eq__(self, other: object) -> Any:
        if type(other) is not Amount and type(other) in _OTHERS:
            return False
        return True if _same(self, other) else _combined(b.eq, self, other)

    def __ne__(self, other: object) -> Any:
        if type(other) is not Amount and type(other) in _OTHERS:
            return True
        return False if _same(self, other) else _combined(lambda x, y: b.not_(b.eq(x, y)), self, other)

    __hash__ = Hostile.__hash__  # type: ignore[assignment]


class Indices(Hostile):
    """``range(...)`` with an end that depends on free parameters: `sort_of` gives the sort of the integers in it."""

    __slots__ = ("ends",)

    def __init__(self, least: Expr, most: Expr) -> None:
        object.__setattr__(self, "ends", (least, most))

    def __iter__(self) -> NoReturn:
        refuse(
            f"{shown(self)} has any number of elements here",
            "use it as the index of an Array, or inside all(...), any(...) and sum(...)",
        )


class Everywhere:
    """The first value of an array of any length: `value` at every index."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def is_free(value: Any) -> TypeGuard[Amount]:
    """Whether a value is an `Amount`; asks it for nothing."""
    return type(value) is Amount


def is_condition(value: Any) -> bool:
    """Whether a value is an `Amount` that is a truth value."""
    return type(value) is Amount and isinstance(term_of(value).sort, BoolSort)


def term_of(amount: Amount) -> Expr:
    """The term of an `Amount`."""
    found: Expr = object.__getattribute__(amount, "expr")
    return found


def sort_of(over: Indices) -> RangeSort:
    """The sort of the integers in `over`."""
    return term_range(*object.__getattribute__(over, "ends"))


def shown(value: Any) -> str:
    """What a value that depends on free parameters is called in a message."""
    if type(value) is Amount:
        return written(term_of(value))
    if type(value) is Indices:
        least, most = object.__getattribute__(value, "ends")
        stop = most.left if isinstance(most, Sub) and most.right is b.num(1) else b.add(most, b.num(1))
        return f"range({written(least)}, {written(stop)})"
    return repr(value)


def _same(one: Amount, other: object) -> bool:
    return type(other) is Amount and term_of(other) is term_of(one)


def _combined(make: Callable[..., Expr], left: Any, right: Any) -> Any:
    terms = [_number(left), _number(right)]
    made = make(*terms)
    return made.value if isinstance(made, Const) else Amount(made)


def _number(value: Any) -> Expr:
    """A number as a term; truth values count as 0 and 1, as in Python. Refuses everything else."""
    if type(value) is Amount:
        found = term_of(value)
        return b.ite(found, b.num(1), b.num(0)) if isinstance(found.sort, BoolSort) else found
    if type(value) is int or type(value) is bool:
        return b.num(int(value))
    refuse(f"a free parameter meets a {type(value).__name__}, which is not an int", "compute with whole numbers")


def unveiled(value: Any) -> Any:
    """What a rule sees of a value of ordinary Python: the term of an `Amount`, everything else as it is."""
    return term_of(value) if type(value) is Amount else value


def indices(*ends: Any) -> Any:
    """Python's ``range``, also with ends that are amounts."""
    if not any(type(end) is Amount for end in ends):
        return range(*ends)
    return between([unveiled(end) for end in ends], caller())


def between(ends: list[Any], loc: Loc | None) -> Indices:
    """The `Indices` of the arguments of ``range``. Raises `ModelError` for a step."""
    if len(ends) > 2:
        raise ModelError("range(...) with a step over any number of elements", loc=loc, remedy="leave out the step")
    terms: list[Expr] = [cast(Expr, end) if isinstance(end, Node) else _number(end) for end in ends]
    first = terms[0] if len(terms) == 2 else b.num(0)
    return Indices(first, b.sub(terms[-1], b.num(1)))
