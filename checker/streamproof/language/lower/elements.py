"""Iteration over a value: each element with the condition under which it is present."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass, replace
from streamproof.language.free.symbolic_parameters import SymbolicRange, sort_of
from streamproof.language.lower import lvalues, sequences
from streamproof.language.lower.conversion import in_order
from streamproof.language.lower.lift import condition_of, natural
from streamproof.language.lower.lowering_context import Context
from streamproof.language.lower.terms import (
    Backward,
    Cases,
    HeapCell,
    PartialList,
    Ref,
    Several,
    Term,
    describe,
    is_expr,
    simple,
    symbolic,
)
from streamproof.system import build as b
from streamproof.system.expr import Expr, Ite
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    BagSort,
    BoolSort,
    OptionSort,
    QueueSort,
    RangeSort,
    SetSort,
    Sort,
    TermRange,
    cardinality,
    index_keys,
    values,
)
from streamproof.transform.assume import Assuming

SET_LIMIT = 4096
LOOP_LIMIT = 1_000_000
"""Maximum number of iterations that are unrolled; each is a copy of the loop body."""
ASCENDING_LIMIT = 64
"""Maximum spread of the numbers in a local set that a loop visits in ascending order."""
MOST_CASES = 6
"""Maximum number of conditions of nested `if`s that are distinguished to see whether a change precedes a loop exit."""


def elements(context: Context, value: Term, loc: Loc) -> list[tuple[Expr, Term]]:
    """The present elements, in order."""
    if isinstance(value, HeapCell):
        content = context.content(value)
        return list(content.items) if isinstance(content, PartialList) else [(b.TRUE, v) for v in content]
    value = lvalues.as_tuple(context, value, loc)
    if isinstance(value, Several):
        if any(now is not then for (_, now), (_, then) in zip(_held(context, value.seen), value.seen, strict=True)):
            raise _between(loc)
        return list(value.items)
    if isinstance(value, Ref) and isinstance(value.sort, ArraySort) and not isinstance(value.sort, BagSort):
        if isinstance(value.sort.index, TermRange):
            raise any_number(value.sort.index, loc)
        keys = index_keys(value.sort.index)
        return [(b.TRUE, lvalues.load(context, lvalues.item(context, value, k, loc, str(k)))) for k in keys]
    whole = lvalues.contained_value(context, lvalues.dereference(context, value), loc)
    if is_expr(whole):
        return _of_term(whole, loc)
    if type(whole) is SymbolicRange:
        raise any_number(sort_of(whole), loc)
    if isinstance(whole, Cases) and _of_lists(context, whole):
        one, two = elements(context, whole.then, loc), elements(context, whole.other, loc)
        both = [(b.and_((whole.cond, there)), v) for there, v in one]
        return both + [(b.and_((b.not_(whole.cond), there)), v) for there, v in two]
    if isinstance(whole, Cases):
        raise ModelError(
            "what is iterated over depends on the state",
            loc=loc,
            remedy="iterate over everything and test the condition inside",
        )
    if (symbolic(whole) and not isinstance(whole, tuple)) or not isinstance(whole, Iterable):
        raise ModelError(
            f"{describe(whole)} cannot be iterated over",
            loc=loc,
            remedy="iterate over a range, a list, or an Array, Queue, Set or Bag of the state",
        )
    refuse_iterator(whole, loc)
    found = in_order(whole if isinstance(whole, set | frozenset) else islice(whole, LOOP_LIMIT + 1))
    if len(found) > LOOP_LIMIT:
        raise ModelError(
            f"a loop over more than {LOOP_LIMIT:,} elements",
            loc=loc,
            remedy="choose smaller parameters, or another form",
        )
    return [(b.TRUE, v) for v in found]


def _of_lists(context: Context, value: Term) -> bool:
    """Whether a value is a list or tuple, or one of several, depending on the state."""
    if isinstance(value, Cases):
        return _of_lists(context, value.then) and _of_lists(context, value.other)
    if isinstance(value, HeapCell):
        return not isinstance(context.content(value), Mapping)
    return type(value) is list or type(value) is tuple


@dataclass(frozen=True, slots=True)
class Over:
    """Iteration over an unbounded index range: its sort, and the loop element at an index."""

    sort: RangeSort
    item: Callable[[Expr], Term]


def everywhere(context: Context, value: Term, loc: Loc) -> Over | None:
    """The `Over` of a value that is an unbounded index range or an array of unbounded length."""
    if type(value) is SymbolicRange:
        return Over(sort_of(value), lambda bound: bound)
    if isinstance(value, Ref) and isinstance(value.sort, ArraySort) and isinstance(value.sort.index, TermRange):
        array = value
        return Over(value.sort.index, lambda at: lvalues.load(context, lvalues.item(context, array, at, loc, "index")))
    if is_expr(value) and isinstance(value.sort, ArraySort) and isinstance(value.sort.index, TermRange):
        term = value
        return Over(value.sort.index, lambda at: b.select(term, at, loc))
    return None


def in_sequence(context: Context, value: Term, loc: Loc) -> list[tuple[Expr, Term]]:
    """The present elements where their order matters: those of a local set in ascending order."""
    if isinstance(value, Several) and value.lazy:
        return [(b.TRUE, v) for v in unconditional(context, value, loc)]
    return elements(context, ascending(value, loc) if isinstance(value, Several) and not value.once else value, loc)


def any_number(sort: Sort, loc: Loc) -> ModelError:
    """The error for iteration, element by element, over a collection of unbounded size."""
    return ModelError(
        f"a loop over {sort}, which has any number of elements",
        loc=loc,
        remedy="use all(...), any(...) or sum(...) over it; an action changes an array at its own parameters, or writes all "
        "of it: s.x = [... for i in range(n)]",
    )


class Loop:
    """The elements that a loop visits, and a guard on the containers that Python would read during the loop."""

    def __init__(self, context: Context, value: Term, loc: Loc, in_turn: bool = False) -> None:
        """`in_turn`: later iterations see the effects of earlier ones, so that the order of a local set matters."""
        refuse_lazy(value, loc)
        if in_turn and isinstance(value, Several) and not value.once:
            value = ascending(value, loc)
        self._context, self._loc = context, loc
        found = sources(value)
        self._watched = [(cell, context.content(cell)) for cell in found if isinstance(cell, HeapCell)]
        self._places = [one for one in found if not isinstance(one, HeapCell)]
        self.items = elements(context, value, loc)

    def begin(self) -> list[Expr]:
        """The contents of the state's containers at the beginning of an iteration."""
        refs = [one.ref if isinstance(one, Backward) else one for one in self._places]
        return [lvalues.content(ref, self._context.state[ref.root]) for ref in refs]

    def end(self, before: list[Expr], done: int, left: Expr = b.FALSE) -> None:
        """Raises `ModelError` if the iteration changed an element that Python would read in a later iteration.

        `done` counts the iterations, including this one; `left` is the condition under which the loop ends.
        """
        for one, old, new in zip(self._places, before, self.begin(), strict=True):
            if new is old or left is b.TRUE:
                continue
            if any(_differ(x, y, left, (b.not_(left),)) for x, y in _read_later(one, old, new, done)):
                raise ModelError(
                    "a container of the state changes while a loop runs over it",
                    loc=self._loc,
                    remedy="change it after the loop, or loop over a fixed range and test inside what is there",
                )

    def check(self) -> None:
        """Raises `ModelError` if the loop body changed the local container that the loop iterates over."""
        for cell, before in self._watched:
            if self._context.content(cell) is not before:
                raise ModelError(
                    "a local list or dict changes while a loop runs over it",
                    loc=self._loc,
                    remedy="loop over a copy: list(...)",
                )


def _read_later(one: Ref | Backward, old: Expr, new: Expr, done: int) -> list[tuple[Expr, Expr]]:
    """The elements not yet read after `done` elements, before and after a change."""
    ref = one.ref if isinstance(one, Backward) else one
    if not isinstance(ref.sort, ArraySort) or isinstance(ref.sort, BagSort):
        return [(old, new)]
    if not lvalues.by_value(ref.sort.element):
        return []  # the elements are references, which the loop dereferences later
    keys = list(values(ref.sort.index))
    rest = keys[: len(keys) - done] if isinstance(one, Backward) else keys[done:]
    return [(b.select(old, key), b.select(new, key)) for key in (b.const(ref.sort.index, k) for k in rest)]


def _differ(old: Expr, new: Expr, left: Expr, known: tuple[Expr, ...]) -> bool:
    """Whether two terms may differ where `known` is true and `left` is false; False only if they are provably equal."""
    simplified = Assuming(known)
    one, two = simplified(old), simplified(new)
    if one is two or simplified(left) is b.TRUE:
        return False
    if not isinstance(two, Ite) or len(known) > MOST_CASES:
        return True
    return any(_differ(old, new, left, (*known, case)) for case in (two.cond, b.not_(two.cond)))


def sources(*given: Term) -> tuple[HeapCell | Ref | Backward, ...]:
    """The containers that the values are, or from which lazy values read: local ones and those of the state."""
    found: list[HeapCell | Ref | Backward] = []
    for value in given:
        if isinstance(value, HeapCell | Ref | Backward):
            found.append(value)
        elif isinstance(value, Several):
            found += value.sources
        elif isinstance(value, Cases):
            found += sources(value.then, value.other)
    return tuple(found)


def iterator(context: Context, items: Iterable[tuple[Expr, Term]], over: tuple[Term, ...]) -> Several:
    """An iterator over values, as in Python: it reads the containers when it is consumed."""
    found = sources(*over)
    refs = (one.ref if isinstance(one, Backward) else one for one in found)
    looked: list[tuple[str | int, Any]] = [(one.root if isinstance(one, Ref) else one.number, None) for one in refs]
    return Several(tuple(items), once=True, sources=found, seen=_held(context, looked))


def generator(context: Context, evaluate: Callable[[], list[tuple[Expr, Term]]]) -> Several:
    """A generator expression; as in Python, it is evaluated when it is consumed."""
    before: list[tuple[str | int, Any]] = [*context.state.items(), *context.heap.items()]
    items = evaluate()
    after = _held(context, before)
    acts = any(now is not then for (_, now), (_, then) in zip(after, before, strict=True))
    return Several(tuple(items), once=True, lazy=True, seen=after, acts=acts)


def _held(context: Context, looked: Iterable[tuple[str | int, Any]]) -> tuple[tuple[str | int, Any], ...]:
    """The current contents of state variables (by name) and local containers (by number)."""
    return tuple((key, context.state[key] if isinstance(key, str) else context.heap.get(key)) for key, _ in looked)


def refuse_early(operands: Sequence[Term], loc: Loc) -> None:
    """Raises `ModelError` for a generator with side effects, which Python would perform after evaluating later operands."""
    if any(isinstance(value, Several) and value.acts for value in operands[:-1]):
        raise _between(loc)


def refuse_lazy(value: Term, loc: Loc) -> None:
    """Raises `ModelError` for a generator expression that would be evaluated incrementally."""
    if isinstance(value, Several) and value.lazy:
        raise _between(loc)


def _between(loc: Loc) -> ModelError:
    return ModelError(
        "a generator is evaluated bit by bit here, between other things",
        loc=loc,
        remedy="make it a list, [... for ...], or filter inside the loop with 'if'",
    )


def refuse_used_up(value: Term, loc: Loc) -> None:
    """Raises `ModelError` for a generator that is named or stored: a second use would find it exhausted."""
    if isinstance(value, Several) and value.once:
        raise ModelError("a generator is empty after its first use", loc=loc, remedy="make it a list: [... for ...]")
    refuse_iterator(value, loc)


def refuse_iterator(value: Term, loc: Loc | None, what: str = "") -> None:
    """Raises `ModelError` for a Python iterator stored in a model or module: reading it consumes it.

    `what`: the use of the iterator, for the message.
    """
    if not symbolic(value) and isinstance(value, Iterator):
        raise ModelError(
            f"{f'{what} is ' if what else ''}{describe(value)}{', which' if what else ''} is empty after its first use",
            loc=loc,
            remedy="keep a list or tuple: list(...)",
        )


def _of_term(term: Expr, loc: Loc) -> list[tuple[Expr, Term]]:
    match term.sort:
        case BagSort():
            return [(there, simple(item)) for there, item in sequences.occurrences(term, loc)]
        case ArraySort(index=TermRange() as index):
            raise any_number(index, loc)
        case ArraySort(index, _):
            return [(b.TRUE, simple(b.select(term, b.const(index, k), loc))) for k in values(index)]
        case QueueSort(_, capacity):
            n = b.length(term)
            slots = [(b.less(b.num(i), n), simple(b.peek(term, b.num(i), loc))) for i in range(capacity)]
            return [(there, v) for there, v in slots if there is not b.FALSE]
        case SetSort(element):
            if cardinality(element) > SET_LIMIT:
                raise ModelError(
                    f"{term.sort} is too large to iterate over", loc=loc, remedy="use a smaller element sort"
                )
            members = [(b.member(term, b.const(element, v)), simple(b.const(element, v))) for v in values(element)]
            return [(there, v) for there, v in members if there is not b.FALSE]
    raise ModelError(
        f"{describe(term)} cannot be iterated over",
        loc=loc,
        remedy="iterate over an Array, Queue, Set, Bag, Record or range",
    )


def unconditional(context: Context, value: Term, loc: Loc) -> list[Term]:
    """The elements of a collection whose length is constant during lowering."""
    items = elements(context, value, loc)
    if any(there is not b.TRUE for there, _ in items):
        raise ModelError(
            "how many elements there are depends on the state",
            loc=loc,
            remedy="use any, all, sum, min, max, len or a for loop over it directly",
        )
    return [v for _, v in items]


def distinct(context: Context, items: list[tuple[Expr, Term]], equal: Any, loc: Loc) -> Several:
    """A local set: an element is present unless it equals an earlier present one."""
    kept: list[tuple[Expr, Term]] = []
    for there, v in items:
        again = [b.and_((c, condition_of(equal(context, v, w, loc)))) for c, w in kept]
        here = b.and_((there, b.not_(b.or_(again))))
        if here is not b.FALSE:
            kept.append((here, v))
    return Several(tuple(kept), once=False)


def ascending(value: Several, loc: Loc) -> Several:
    """A local set of numbers in ascending order, like a set of the state; a set of names in source order.

    Raises `ModelError` if the numbers have mixed types, or their spread exceeds the limit.
    """
    found = [(there, _number(there, v, loc)) for there, v in value.items]
    parts = [(there, term) for there, term in found if term is not None]
    if len(found) < 2 or not parts:
        return value
    sorts = {term.sort for _, term in parts}
    ranges = [sort for sort in sorts if isinstance(sort, RangeSort)]
    if len(parts) < len(found) or (sorts != {BOOL} and len(ranges) < len(sorts)):
        raise ModelError(
            "the order of a local set that has numbers and other things",
            loc=loc,
            remedy="keep a set of numbers only, {v for v in ... if v is not None}, or loop over a tuple",
        )
    low, high = min((s.lo for s in ranges), default=0), max((s.hi for s in ranges), default=1)
    if high - low >= ASCENDING_LIMIT:
        raise ModelError(
            f"the order of a local set of numbers from {low} to {high}",
            loc=loc,
            remedy=f"loop over range({low}, {high + 1}) and test whether each is in the set",
        )
    numbers: Iterable[int] = range(low, high + 1) if ranges else (False, True)
    items = []
    for number in numbers:
        wanted = b.truth(number) if isinstance(number, bool) else b.num(number)
        here = b.or_([b.and_((there, b.eq(term, wanted, loc))) for there, term in parts])
        if here is not b.FALSE:
            items.append((here, number))
    return replace(value, items=tuple(items))


def _number(there: Expr, value: Term, loc: Loc) -> Expr | None:
    """A member of a local set as an integer or Boolean term, if it has that type wherever it is `there`."""
    term = natural(value, loc)
    if term is not None and isinstance(term.sort, OptionSort) and b.and_((there, b.is_none(term))) is b.FALSE:
        term = b.unwrap(term, loc)
    sort = None if term is None else term.sort
    return term if isinstance(sort.element if isinstance(sort, OptionSort) else sort, BoolSort | RangeSort) else None
