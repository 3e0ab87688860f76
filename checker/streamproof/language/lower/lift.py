"""Conversion of host values, local containers and merged branches to terms of a given sort.

Integers keep the interval of their own expression, also inside containers: `build.in_domain` checks at an assignment
whether they lie in the target sort.

`lifted` gives the sort of a value of an Enum or a union as one with further members or cases: the structure and ranges of the
first sort, with the members of the second. Symmetric names and keys of arrays are never converted: their sorts have a meaning
of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial, reduce
from typing import Any, Protocol

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass, replace
from streamproof.language.lower import sequences
from streamproof.language.lower.cases import Case, fields_of, unknown_case
from streamproof.language.lower.conversion import (
    by_field,
    expect_faithful,
    expect_room,
    is_faithful,
    mismatch,
    plain,
    unknown_member,
)
from streamproof.language.lower.terms import (
    Cases,
    HeapCell,
    NewCase,
    PartialList,
    Ref,
    Several,
    Term,
    Undefined,
    describe,
    is_expr,
    symbolic,
)
from streamproof.system import build as b
from streamproof.system.expr import Const, Expr, Insert, Ite, Push
from streamproof.system.leaves import SET_LIMIT
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    BagSort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    TermRange,
    UnionSort,
    cardinality,
    cardinality_up_to,
    compatible,
    contains,
    default,
    index_keys,
    is_scalar,
    values,
)


def lifted(have: Sort, want: Sort) -> Sort | None:
    """The sort of a value of `have` with the members of `want`; None unless every Enum of `have` is a subset."""
    inner: Sort | None
    match have, want:
        case (RangeSort(), RangeSort()):
            return have
        case (EnumSort(few), EnumSort(many)) if type(have) is EnumSort and type(want) is EnumSort:
            plain = not have.symmetric and not want.symmetric and set(few) <= set(many)
            return want if plain or have == want else None
        case (BagSort(), _) | (_, BagSort()):
            return have if compatible(have, want) else None
        case (SetSort(x), SetSort()) if cardinality_up_to(x, SET_LIMIT) > SET_LIMIT:
            return have if have == want else None
        case (ArraySort(i), ArraySort(j)) if i != j or isinstance(i, TermRange):
            return have if have == want else None
        case (
            (OptionSort(x), OptionSort(y))
            | (SetSort(x), SetSort(y))
            | (QueueSort(x), QueueSort(y))
            | (ArraySort(_, x), ArraySort(_, y))
        ):
            inner = lifted(x, y)
            return None if inner is None else replace(have, element=inner)
        case (RecordSort(f), RecordSort(g)) if type(have) is type(want) and [n for n, _ in f] == [n for n, _ in g]:
            made = [(n, lifted(x, y)) for (n, x), (_, y) in zip(f, g, strict=True)]
            whole = tuple((n, s) for n, s in made if s is not None)
            return replace(have, fields=whole) if len(whole) == len(made) else None
        case (UnionSort(f), UnionSort()):
            if any(n not in want.tag.places for n, _ in f):
                return None
            parts = {n: lifted(x, want.payload(n)) for n, x in f}
            cases = tuple((n, parts.get(n, x)) for n, x in want.cases)
            return (
                UnionSort(tuple((n, x) for n, x in cases if isinstance(x, RecordSort))) if all(parts.values()) else None
            )
        case _:
            return have if have == want else None


def recast(term: Expr, sort: Sort, loc: Loc | None) -> Expr:
    """`term` as a term of `sort`, which is the result of `lifted` for its own sort: every value stays the same."""
    if term.sort == sort:
        return term
    match sort, term:
        case _, Const(value=value):
            return b.const(sort, value, loc)
        case _, Ite(cond=cond, then=then, other=other):
            return b.ite(cond, _fitting(then, sort, loc), _fitting(other, sort, loc), loc)
        case EnumSort(), _:
            return _chosen([(b.eq(term, b.const(term.sort, v)), b.const(sort, v, loc)) for v in values(term.sort)], loc)
        case OptionSort(element), _:
            inside = b.some(recast(b.unwrap(term, loc), element, loc), loc)
            return b.ite(b.is_none(term, loc), b.const(sort, None, loc), inside, loc)
        case SetSort(element), _:
            assert isinstance(term.sort, SetSort)
            made = b.const(sort, frozenset(), loc)
            for value in values(term.sort.element):
                there = b.member(term, b.const(term.sort.element, value))
                made = b.ite(there, b.insert(made, b.const(element, value), loc), made, loc)
            return made
    return _by_component(term, sort, lambda part, own: recast(part, own, loc), loc)


def _by_component(term: Expr, sort: Sort, change: Callable[[Expr, Sort], Expr], loc: Loc | None) -> Expr:
    """An array, record, union or queue as a value of `sort`; `change` gives a component as a value of its new sort."""
    match sort:
        case ArraySort(index, element):
            parts = [change(b.select(term, b.const(index, key)), element) for key in values(index)]
            return b.make_array(sort, parts, loc)
        case RecordSort(fields):
            return b.make_record(sort, [change(b.field(term, n), s) for n, s in fields], loc)
        case UnionSort():
            assert isinstance(term.sort, UnionSort)
            payloads = [(n, change(b.payload(term, n), sort.payload(n))) for n in term.sort.tag.members]
            made = [(b.is_case(term, n), b.make_case(sort, n, payload, term.loc)) for n, payload in payloads]
            return _chosen(made, term.loc)
        case QueueSort(element, capacity):
            queue, length = b.const(sort, (), loc), b.length(term)
            for at in range(capacity):
                longer = b.push(queue, change(b.peek(term, b.num(at)), element), loc)
                queue = b.ite(b.less(b.num(at), length), longer, queue, loc)
            return queue
        case _:
            raise AssertionError(f"{term.sort} has no components of other sorts")


def _fitting(term: Expr, sort: Sort, loc: Loc | None) -> Expr:
    """A branch of a conditional, whose own ranges may be narrower."""
    own = lifted(term.sort, sort)
    assert own is not None
    return recast(term, own, loc)


def _chosen(cases: list[tuple[Expr, Expr]], loc: Loc | None) -> Expr:
    found = cases[-1][1]
    for test, value in reversed(cases[:-1]):
        found = b.ite(test, value, found, loc)
    return found


def alike(one: Expr, other: Expr, loc: Loc | None) -> tuple[Expr, Expr]:
    """Both terms with the members of the wider Enums; unchanged if neither sort is part of the other."""
    if (sort := lifted(one.sort, other.sort)) is not None:
        return recast(one, sort, loc), other
    if (sort := lifted(other.sort, one.sort)) is not None:
        return one, recast(other, sort, loc)
    return one, other


Unwrap = Callable[[Expr, bool], Expr]
"""Unwraps an option; the flag says whether the option is a component of a larger value."""


class Paths(Protocol):
    """Guarded evaluation; see `Context`."""

    def conditional(self, cond: Expr, then: Callable[[], Term], other: Callable[[], Term], loc: Loc) -> Term:
        """The value of a conditional expression."""

    def check(self, condition: Expr, message: str, loc: Loc, *operands: tuple[str, Expr]) -> None:
        """A mistake of the model where `condition` is true."""

    def of_each(
        self, items: Iterable[tuple[Expr, Term]], run: Callable[[Term], Expr], loc: Loc
    ) -> Iterator[tuple[Expr, Expr]]:
        """The result of `run` for each element, guarded by the element's presence condition."""


def to_term(value: Term, sort: Sort, loc: Loc | None, unwrap: Unwrap | None = None, paths: Paths | None = None) -> Expr:
    """`value` as an expression compatible with `sort`. Raises `ModelError` if it has no such value.

    `value` contains no `Ref` and no `HeapCell` (see `lvalues.resolve_deep`). Options are unwrapped only if `unwrap` is
    given; `paths` then guards the components of the value.
    """
    return _Lifting(loc, unwrap, paths).to_term(value, sort, False)


class _OutsideBag(ModelError):
    """A list has a value that its bag cannot hold, in some states."""


def bag_inside(value: Term, sort: BagSort, loc: Loc | None) -> tuple[Expr, Expr]:
    """The elements of a bag or list that are values of a bag of `sort`, as a bag, and whether there are others."""
    if not isinstance(value, tuple | list | PartialList):
        return to_term(value, sort, loc), b.FALSE
    items = value.items if isinstance(value, PartialList) else [(b.TRUE, v) for v in value]
    made: list[tuple[Expr, Expr]] = []
    outside: list[Expr] = []
    for there, item in items:
        term, present = compared(item, sort.item, loc)
        made.append((b.and_((there, present)), term))
        outside.append(b.and_((there, b.not_(b.and_((present, b.in_domain(term, sort.item)))))))
    return sequences.bag_from(sort, made, loc), b.or_(outside)


class _Present:
    """The `Paths` of a conversion in which an absent option is no mistake: the conditions under which one is absent."""

    def __init__(self, loc: Loc | None) -> None:
        self.loc, self.absent, self._path = loc, list[Expr](), b.TRUE

    def unwrap(self, term: Expr, inside: bool) -> Expr:
        """The value of an option."""
        self.absent.append(b.and_((self._path, b.is_none(term))))
        return b.unwrap(term, self.loc)

    def conditional(self, cond: Expr, then: Callable[[], Term], other: Callable[[], Term], loc: Loc) -> Term:
        """The value of a conditional expression."""
        return b.ite(cond, self._guarded(cond, then), self._guarded(b.not_(cond), other), loc)

    def of_each(
        self, items: Iterable[tuple[Expr, Term]], run: Callable[[Term], Expr], loc: Loc
    ) -> Iterator[tuple[Expr, Expr]]:
        """The result of `run` for each element."""
        for there, element in items:
            yield there, self._guarded(there, partial(run, element))

    def check(self, condition: Expr, message: str, loc: Loc, *operands: tuple[str, Expr]) -> None:
        """No mistake: the value is different from all others."""

    def _guarded(self, cond: Expr, run: Callable[[], Expr]) -> Expr:
        outer, self._path = self._path, b.and_((self._path, cond))
        try:
            return run()
        finally:
            self._path = outer


def compared(value: Term, sort: Sort, loc: Loc | None) -> tuple[Expr, Expr]:
    """`value` as an expression to compare with values of `sort`, and the condition that it has one: no part is None where
    a value is needed."""
    present = _Present(loc)
    term = _Lifting(loc, present.unwrap, present).to_term(value, sort, False)
    return term, b.not_(b.or_(present.absent))


@dataclass(frozen=True, slots=True)
class _Lifting:
    """One conversion: its location and its treatment of options."""

    loc: Loc | None
    unwrap: Unwrap | None
    paths: Paths | None
    beside: bool = False
    """Whether the term becomes an alternative of another one, so that no later check sees a bag that has no such value."""

    def to_term(self, value: Term, sort: Sort, inside: bool) -> Expr:
        loc = self.loc
        if is_expr(value):
            return self.fit(value, sort, inside)
        if isinstance(value, Cases):
            then, other = (
                partial(self.to_term, value.then, sort, inside),
                partial(self.to_term, value.other, sort, inside),
            )
            if self.paths is None or loc is None:
                return b.ite(value.cond, then(), other(), loc)
            chosen: Expr = self.paths.conditional(value.cond, then, other, loc)
            return chosen
        if isinstance(value, Undefined):
            raise ModelError(f"the value {value.why}", loc=loc, remedy=value.remedy)
        expect_faithful(value, loc)
        value = plain(value)
        match sort:
            case OptionSort(element):
                return b.const(sort, None, loc) if value is None else b.some(self.to_term(value, element, inside), loc)
            case BoolSort() if isinstance(value, bool):
                return b.truth(value)
            case RangeSort() if isinstance(value, int) and not isinstance(value, bool):
                return b.num(value)
            case EnumSort(members) if isinstance(value, str):
                if value not in members:
                    raise unknown_member(sort, value, loc)
                return b.const(sort, value, loc)
            case RecordSort() if isinstance(value, Mapping):
                return self.record(sort, by_field(sort, value, loc))
            case RecordSort(fields) if isinstance(value, tuple | list) and len(value) == len(fields):
                return self.record(sort, value)
            case UnionSort() if isinstance(value, NewCase):
                return self.case(sort, value.kind, value.values)
            case UnionSort() if isinstance(value, Case):
                return self.case(sort, type(value), value._values)
            case BagSort() if isinstance(value, tuple | list):
                return self.bag(sort, [(b.TRUE, v) for v in value])
            case BagSort() if isinstance(value, PartialList):
                return self.bag(sort, value.items)
            case BagSort():
                pass
            case ArraySort(index, _) if isinstance(value, Mapping) and set(value) == set(index_keys(index)):
                return self.array(sort, [value[k] for k in index_keys(index)])
            case ArraySort(index, _) if isinstance(value, tuple | list) and len(value) == cardinality(index):
                return self.array(sort, value)
            case QueueSort() if isinstance(value, tuple | list):
                return self.queue(sort, value)
            case QueueSort() if isinstance(value, PartialList):
                return self.partial_queue(sort, value.items)
            case SetSort() if isinstance(value, Several) and not value.once:
                return self.set(sort, value.items)
            case SetSort() if isinstance(value, AbstractSet):
                return self.set(sort, [(b.TRUE, v) for v in sorted(value, key=repr)])
        raise mismatch(sort, describe(value), loc)

    def fit(self, term: Expr, sort: Sort, inside: bool) -> Expr:
        if isinstance(sort, OptionSort) and not isinstance(term.sort, OptionSort):
            return b.some(self.fit(term, sort.element, inside), self.loc)
        if isinstance(term.sort, OptionSort) and not isinstance(sort, OptionSort) and self.unwrap is not None:
            term = self.unwrap(term, inside)
        if compatible(term.sort, sort):
            return term
        if (wider := lifted(term.sort, sort)) is not None:
            return recast(term, wider, self.loc)
        raise mismatch(sort, describe(term), self.loc)

    def record(self, sort: RecordSort, parts: Iterable[Any]) -> Expr:
        made = [self.to_term(v, s, True) for v, (_, s) in zip(parts, sort.fields, strict=True)]
        own = replace(sort, fields=tuple((n, part.sort) for (n, _), part in zip(sort.fields, made, strict=True)))
        return b.make_record(own, made, self.loc)

    def case(self, sort: UnionSort, kind: type[Case], parts: tuple[Any, ...]) -> Expr:
        fields, name = fields_of(kind, sort), kind.__name__
        if fields is None:
            raise unknown_case(kind, sort, self.loc)
        made = self.record(fields, parts)
        assert isinstance(made.sort, RecordSort)
        own = tuple((n, made.sort if n == name else old) for n, old in sort.cases)
        return b.make_case(UnionSort(own), name, made, self.loc)

    def array(self, sort: ArraySort, parts: Iterable[Any]) -> Expr:
        made = [self.to_term(v, sort.element, True) for v in parts]
        return b.make_array(ArraySort(sort.index, _joined(sort.element, made)), made, self.loc)

    def queue(self, sort: QueueSort, parts: tuple[Any, ...] | list[Any]) -> Expr:
        expect_room(sort, len(parts), self.loc)
        made = [self.to_term(v, sort.element, True) for v in parts]
        queue = b.const(QueueSort(_joined(sort.element, made), sort.capacity), (), self.loc)
        for part in made:
            queue = b.push(queue, part, self.loc)
        return queue

    def partial_queue(self, sort: QueueSort, items: Iterable[tuple[Expr, Any]]) -> Expr:
        made = self.each(sort.element, items)
        longest = QueueSort(_joined(sort.element, [v for _, v in made]), max(sort.capacity, len(made)))
        queue = b.const(longest, (), self.loc)
        for there, part in made:
            queue = b.ite(there, b.push(queue, part, self.loc), queue, self.loc)
        return queue

    def bag(self, sort: BagSort, items: Iterable[tuple[Expr, Any]]) -> Expr:
        bag, outside = self.inside(sort, items)
        if self.beside and any(wrong is not b.FALSE for wrong, _ in outside):
            raise _OutsideBag(f"a value of the bag leaves {sort.item}", loc=self.loc)
        if self.paths is not None and self.loc is not None:
            for wrong, value in outside:
                self.paths.check(wrong, f"a value of the bag leaves {sort.item}", self.loc, ("value", value))
        wrong = b.or_(wrong for wrong, _ in outside)
        return b.ite(wrong, sequences.none_such(sort), bag, self.loc) if outside else bag

    def inside(self, sort: BagSort, items: Iterable[tuple[Expr, Any]]) -> tuple[Expr, list[tuple[Expr, Expr]]]:
        """The bag of the elements that are values of its item sort, and all elements with the condition that they are not."""
        made = self.each(sort.item, items)
        outside = [(b.and_((there, b.not_(b.in_domain(value, sort.item)))), value) for there, value in made]
        return sequences.bag_from(sort, made, self.loc), outside

    def each(self, element: Sort, items: Iterable[tuple[Expr, Any]]) -> list[tuple[Expr, Expr]]:
        run = partial(self.to_term, sort=element, inside=True)
        if self.paths is None or self.loc is None:
            return [(there, run(v)) for there, v in items]
        return list(self.paths.of_each(items, run, self.loc))

    def set(self, sort: SetSort, items: Iterable[tuple[Expr, Any]]) -> Expr:
        made = self.each(sort.element, items)
        result = b.const(SetSort(_joined(sort.element, [v for _, v in made])), frozenset(), self.loc)
        for there, part in made:
            result = b.ite(there, b.insert(result, part, self.loc), result, self.loc)
        return result


def _joined(element: Sort, parts: list[Expr]) -> Sort:
    """The join of the components' own sorts; the declared element sort if there are no components."""
    return reduce(b.join, (p.sort for p in parts)) if parts else element


def widened(term: Expr, sort: Sort, done: dict[tuple[Expr, Sort], Expr] | None = None) -> Expr:
    """A container converted to the larger `sort`, so that further elements can be added. `done`: the terms converted before.

    The alternatives of a list, with an element or without it, share all that comes before the element.
    """
    if is_scalar(sort) or term.sort == sort:
        return term
    done = {} if done is None else done
    known = done.get((term, sort))
    if known is not None:
        return known
    match sort, term:
        case _, Const(value=value):  # the check before it fails for a value outside, as `none_such` is
            made = b.const(sort, value if contains(sort, value) else default(sort))
        case _, Ite(cond=cond, then=then, other=other):
            made = b.ite(cond, widened(then, sort, done), widened(other, sort, done), term.loc)
        case (ArraySort(index=TermRange()), _) | (OptionSort(), _):
            made = term
        case SetSort(), Insert(set_=rest, value=value):
            made = b.insert(widened(rest, sort, done), value, term.loc)
        case SetSort(), _:
            made = b.union(term, b.const(sort, frozenset()), term.loc)
        case QueueSort(element), Push(queue=rest, value=value):
            made = b.push(widened(rest, sort, done), widened(value, element, done), term.loc)
        case _:
            made = _by_component(term, sort, partial(widened, done=done), term.loc)
    done[term, sort] = made
    return made


def natural(value: Term, loc: Loc | None) -> Expr | None:
    """`value` as a term of its own type (Boolean or integer); None for other types."""
    if is_expr(value):
        return value
    if isinstance(value, bool):
        return b.truth(value)
    if isinstance(value, int):
        expect_faithful(value, loc)
        return b.num(plain(value))
    if isinstance(value, Cases):
        then, other = natural(value.then, loc), natural(value.other, loc)
        if then is None or other is None or not compatible(then.sort, other.sort):
            return None
        return b.ite(value.cond, then, other, loc)
    return None


def condition_of(value: Term) -> Expr:
    """The truth value of a comparison as a term."""
    return value if is_expr(value) else b.truth(bool(value))


def as_any_term(value: Term, loc: Loc | None) -> Expr | None:
    """`value` as a term of a sort of its own: as `natural`, and names as an enumeration; None for other types."""
    names = list(dict.fromkeys(_names(value)))
    if names and None not in names:
        return to_term(value, EnumSort(tuple(str(name) for name in names)), loc)
    return natural(value, loc)


def _names(value: Term) -> Iterator[str | None]:
    """The names among the alternatives of a value; None for an alternative of another type."""
    if isinstance(value, Cases):
        yield from (name for side in (value.then, value.other) for name in _names(side))
    else:
        yield value if isinstance(value, str) else None


def merge(cond: Expr, then: Term, other: Term, loc: Loc | None) -> Term:
    """The value that is `then` where `cond` holds and `other` elsewhere.

    Values without a common sort merge to `Undefined`, which is an error only if used.
    """
    if then is other or same(then, other):
        return then
    if isinstance(then, Ref) and isinstance(other, Ref) and (then.root, then.path) == (other.root, other.path):
        return min(then, other, key=lambda ref: ref.since)
    for side in (then, other):
        if isinstance(side, Undefined):
            return side
    if type(then) is tuple and type(other) is tuple and len(then) == len(other):
        return tuple(merge(cond, x, y, loc) for x, y in zip(then, other, strict=True))
    if isinstance(then, NewCase) and isinstance(other, NewCase) and then.kind is other.kind:
        return NewCase(then.kind, merge(cond, then.values, other.values, loc))
    try:
        if is_expr(then) and is_expr(other):
            return _merge_terms(cond, then, other, loc)
        if is_expr(then) and _liftable(other):
            return b.ite(cond, then, _lift_beside(other, then, loc), loc) if other is not None else _absent(cond, then)
        if is_expr(other) and _liftable(then):
            return (
                b.ite(cond, _lift_beside(then, other, loc), other, loc)
                if then is not None
                else _absent(b.not_(cond), other)
            )
    except _OutsideBag:
        return Cases(cond, then, other)
    except ModelError:
        return Undefined(f"is {describe(then)} on one path and {describe(other)} on another", "give it one sort")
    left, right = natural(then, loc), natural(other, loc)
    if left is not None and right is not None and left.sort == BOOL == right.sort:
        return b.ite(cond, left, right, loc)
    if (
        left is not None
        and right is not None
        and isinstance(left.sort, RangeSort)
        and isinstance(right.sort, RangeSort)
    ):
        return b.ite(cond, left, right, loc)
    return Cases(cond, then, other)


def _liftable(value: Term) -> bool:
    if isinstance(value, NewCase):
        return all(is_expr(part) or _liftable(part) for part in value.values)
    return not symbolic(value) or isinstance(value, Cases)


def _lift_beside(value: Term, term: Expr, loc: Loc | None) -> Expr:
    return _Lifting(loc, None, None, beside=True).to_term(value, term.sort, False)


def _absent(present: Expr, term: Expr) -> Expr:
    """`term` where `present` holds, None elsewhere."""
    whole = term if isinstance(term.sort, OptionSort) else b.some(term)
    return b.ite(present, whole, b.const(whole.sort, None))


def same(a: Term, c: Term) -> bool:
    """Whether two values are definitely equal, including their types (True differs from 1)."""
    if type(a) is not type(c):
        return False
    if isinstance(a, Ref | HeapCell):
        return bool(a == c)
    if symbolic(a) or symbolic(c):
        return False
    if type(a) is tuple:
        return len(a) == len(c) and all(same(x, y) for x, y in zip(a, c, strict=True))
    return isinstance(a, bool | int | str | bytes | None) and is_faithful(a) and bool(a == c)


def _merge_terms(cond: Expr, then: Expr, other: Expr, loc: Loc | None) -> Expr:
    if isinstance(then.sort, OptionSort) and not isinstance(other.sort, OptionSort):
        other = b.some(other, loc)
    elif isinstance(other.sort, OptionSort) and not isinstance(then.sort, OptionSort):
        then = b.some(then, loc)
    if not compatible(then.sort, other.sort):
        then, other = alike(then, other, loc)
    return b.ite(cond, then, other, loc)
