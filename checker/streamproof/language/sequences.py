"""Operations on sequences whose length depends on the state: elements in order, each with its presence condition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamproof.language.terms import PartialList, Term
from streamproof.system import build as b
from streamproof.system.errors import Loc
from streamproof.system.expr import Const, Expr, Less

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
