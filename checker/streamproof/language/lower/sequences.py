"""Operations on bags, and on sequences whose length depends on the state: elements in order, with presence conditions.

A bag is an array of counts. An index of the array is a value of the item sort; for records, unions and options it is the
text of the value (`ValueKeys`), so a value that depends on the state is compared with every value of the sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from streamproof.base.errors import Loc
from streamproof.language.lower.terms import PartialList, Term
from streamproof.system import build as b
from streamproof.system.expr import Const, Expr, Less
from streamproof.system.sorts import BagSort, Value, bag_sort, index_keys, is_empty, is_scalar, values

Items = Sequence[tuple[Expr, Term]]


def listed(items: Iterable[tuple[Expr, Term]]) -> tuple[Term, ...] | PartialList:
    """The contents of a local list with these elements."""
    kept = tuple((there, v) for there, v in items if there is not b.FALSE)
    return tuple(v for _, v in kept) if all(there is b.TRUE for there, _ in kept) else PartialList(kept)


def count(items: Items, loc: Loc | None = None) -> Expr:
    """The number of elements that are present."""
    total: Expr = b.num(0)
    for there, _ in items:
        total = b.add(total, b.ite(there, b.num(1), b.num(0)), loc)
    return total


def ranks(items: Items) -> list[Expr]:
    """The position of each element, valid where it is present: the number of present elements before it."""
    found: list[Expr] = []
    before: Expr = b.num(0)
    together = True  # whether all elements so far are present wherever the next one is
    for at, (there, _) in enumerate(items):
        together = together and (at == 0 or _implied(items[at - 1][0], by=there))
        found.append(b.num(at) if together else before)
        before = b.add(before, b.ite(there, b.num(1), b.num(0)))
    return found


def _implied(there: Expr, by: Expr) -> bool:
    """Whether one presence condition certainly follows from another: ``2 < n`` from ``3 < n``."""
    match there, by:
        case (Less(left=Const(value=one), right=n), Less(left=Const(value=two), right=m)):
            return n is m and bool(one <= two)
    return there is b.TRUE or there is by


def without(items: Items, gone: Sequence[Expr]) -> list[tuple[Expr, Term]]:
    """The elements, without those for which `gone` is true."""
    return [(b.and_((there, b.not_(leaves))), value) for (there, value), leaves in zip(items, gone, strict=True)]


def inserted(items: Items, index: Expr, value: Term) -> list[tuple[Expr, Term]]:
    """The elements with another one at position `index`, which is at most their number."""
    before = [b.less(rank, index) for rank in ranks(items)]
    start = [(b.and_((there, first)), v) for (there, v), first in zip(items, before, strict=True)]
    rest = [(b.and_((there, b.not_(first))), v) for (there, v), first in zip(items, before, strict=True)]
    return [*start, (b.TRUE, value), *rest]


def counts(whole: Expr) -> list[tuple[Value, Expr]]:
    """Every value of the item sort, in its order, with the number of its occurrences."""
    sort = whole.sort
    assert isinstance(sort, BagSort)
    pairs = zip(index_keys(sort.index), values(sort.index), strict=True)
    return [(item, b.select(whole, b.const(sort.index, key))) for item, key in pairs]


def occurrences(whole: Expr, loc: Loc | None) -> list[tuple[Expr, Expr]]:
    """The elements in the order of their sort, each as often as it occurs, with their presence conditions."""
    sort = whole.sort
    assert isinstance(sort, BagSort)
    found = (
        (b.less(b.num(k), count, loc), b.const(sort.item, item, loc))
        for item, count in counts(whole)
        for k in range(sort.capacity)
    )
    return [(there, item) for there, item in found if there is not b.FALSE]


def present(whole: Expr, loc: Loc | None) -> list[tuple[Expr, Expr]]:
    """The different values in a bag, with their presence conditions."""
    sort = whole.sort
    assert isinstance(sort, BagSort)
    found = ((b.less(b.num(0), count, loc), b.const(sort.item, item, loc)) for item, count in counts(whole))
    return [(there, item) for there, item in found if there is not b.FALSE]


def count_of(whole: Expr, value: Expr, loc: Loc | None) -> Expr:
    """The number of occurrences of a term; 0 for one outside the item sort."""
    sort = whole.sort
    assert isinstance(sort, BagSort)
    if is_scalar(sort.item):
        return b.num(0) if is_empty(sort.item) else b.select(whole, value, loc)
    result: Expr = b.num(0)
    for item, count in reversed(counts(whole)):
        result = b.ite(b.eq(value, b.const(sort.item, item)), count, result, loc)
    return result


def changed(whole: Expr, value: Expr, change: Callable[[Expr], Expr], loc: Loc | None) -> Expr:
    """The bag with another number of occurrences of a term."""
    sort = whole.sort
    assert isinstance(sort, BagSort)
    if is_scalar(sort.item):
        return whole if is_empty(sort.item) else b.store(whole, value, change(b.select(whole, value)), loc)
    if isinstance(value, Const):
        for key, item in zip(values(sort.index), index_keys(sort.index), strict=True):
            if item == value.value:
                index = b.const(sort.index, key)
                return b.store(whole, index, change(b.select(whole, index)), loc)
        return whole
    parts = [b.ite(b.eq(value, b.const(sort.item, item)), change(n), n, loc) for item, n in counts(whole)]
    return b.make_array(sort, parts, loc)


def with_one(whole: Expr, value: Expr, loc: Loc | None) -> Expr:
    """The bag with one more occurrence of a term."""
    return changed(whole, value, lambda n: b.add(n, b.num(1)), loc)


def without_one(whole: Expr, value: Expr, loc: Loc | None) -> Expr:
    """The bag with one occurrence of a term less, if there is one."""
    return changed(whole, value, lambda n: b.ite(b.less(b.num(0), n), b.sub(n, b.num(1)), n), loc)


def bag_from(sort: BagSort, items: Iterable[tuple[Expr, Expr]], loc: Loc | None) -> Expr:
    """The bag of the present ones among some values; its capacity is their number, if that is more."""
    made = list(items)
    wide = bag_sort(sort.item, max(sort.capacity, len(made)))
    numbers = []
    for item in index_keys(wide.index):
        hits = (b.and_((there, b.eq(value, b.const(sort.item, item)))) for there, value in made)
        numbers.append(reduce(b.add, (b.ite(hit, b.num(1), b.num(0)) for hit in hits if hit is not b.FALSE), b.num(0)))
    return b.make_array(wide, numbers, loc)


def none_such(sort: BagSort) -> Expr:
    """A bag that no variable of the sort contains: it has too many elements."""
    wide = bag_sort(sort.item, sort.capacity + 1)
    return b.const(wide, (wide.capacity, *[0] * (len(index_keys(wide.index)) - 1)))


def included(left: Expr, right: Expr, loc: Loc | None) -> Expr:
    """Whether no value occurs in `left` more often than in `right`."""
    pairs = zip(counts(left), counts(right), strict=True)
    return b.and_((b.less_eq(one, other) for (_, one), (_, other) in pairs), loc)
