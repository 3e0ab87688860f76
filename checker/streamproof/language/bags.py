"""Terms of bags: the counts of a bag, its elements, and bags made of elements.

A bag is an array of counts. An index of the array is a value of the item sort; for records, unions and options it is the
text of the value (`ValueKeys`), so a value that depends on the state is compared with every value of the sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from streamproof.system import build as b
from streamproof.system.errors import Loc
from streamproof.system.expr import Const, Expr
from streamproof.system.sorts import BagSort, Value, bag_sort, index_keys, is_empty, is_scalar, values


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
