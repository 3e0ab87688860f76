"""Values of an Enum or a union as values of one with further members or cases, also inside containers.

`lifted` gives the sort after the conversion: the structure and ranges of the first sort, with the members of the second.
Symmetric names and keys of arrays are never converted: their sorts have a meaning of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from streamproof.system import build as b
from streamproof.system.errors import Loc
from streamproof.system.expr import Const, Expr, Ite
from streamproof.system.leaves import SET_LIMIT
from streamproof.system.sorts import (
    ArraySort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    TermRange,
    UnionSort,
    cardinality_up_to,
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
        case (OptionSort(x), OptionSort(y)):
            inner = lifted(x, y)
            return None if inner is None else OptionSort(inner)
        case (SetSort(x), SetSort(y)) if cardinality_up_to(x, SET_LIMIT) <= SET_LIMIT:
            inner = lifted(x, y)
            return None if inner is None else SetSort(inner)
        case (QueueSort(x, capacity), QueueSort(y, _)):
            inner = lifted(x, y)
            return None if inner is None else QueueSort(inner, capacity)
        case (ArraySort(i, x), ArraySort(j, y)) if i == j and not isinstance(i, TermRange):
            inner = lifted(x, y)
            return None if inner is None else ArraySort(i, inner)
        case (RecordSort(f), RecordSort(g)) if [n for n, _ in f] == [n for n, _ in g]:
            made = [(n, lifted(x, y)) for (n, x), (_, y) in zip(f, g, strict=True)]
            return (
                None if any(s is None for _, s in made) else RecordSort(tuple((n, s) for n, s in made if s is not None))
            )
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
        case ArraySort(index, element), _:
            parts = (recast(b.select(term, b.const(index, key)), element, loc) for key in values(index))
            return b.make_array(sort, parts, loc)
        case RecordSort(fields), _:
            return b.make_record(sort, [recast(b.field(term, n), s, loc) for n, s in fields], loc)
        case UnionSort(), _:
            return by_case(term, sort, lambda name, part: recast(part, sort.payload(name), loc))
        case QueueSort(element, capacity), _:
            queue, n = b.const(sort, (), loc), b.length(term)
            for at in range(capacity):
                longer = b.push(queue, recast(b.peek(term, b.num(at)), element, loc), loc)
                queue = b.ite(b.less(b.num(at), n), longer, queue, loc)
            return queue
        case SetSort(element), _:
            assert isinstance(term.sort, SetSort)
            made = b.const(sort, frozenset(), loc)
            for value in values(term.sort.element):
                there = b.member(term, b.const(term.sort.element, value))
                made = b.ite(there, b.insert(made, b.const(element, value), loc), made, loc)
            return made
    raise AssertionError(f"{term.sort} has no Enum")


def by_case(term: Expr, sort: UnionSort, change: Callable[[str, Expr], Expr]) -> Expr:
    """A value of a union as one of `sort`, which has its cases; `change` gives the new fields of a case."""
    assert isinstance(term.sort, UnionSort)
    names = term.sort.tag.members
    made = [(b.is_case(term, n), b.make_case(sort, n, change(n, b.payload(term, n)), term.loc)) for n in names]
    return _chosen(made, term.loc)


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
