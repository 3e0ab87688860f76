"""Quantifier-free universal conditions: assumptions are instantiated, negated conditions get witnesses.

A formula made by `Conditions` follows from the condition, for a suitable choice of witnesses. So if the formulas are
unsatisfiable, the conditions are: "unsat" is sound. "sat" may be due to a missing instance.

An assumed universal condition is instantiated at each of `indices`. A negated one is negated at a witness, a fresh
constant. Each occurrence has its own witness: occurrences are identified by their path from the root, with the
positions of the conjuncts on the path, and of the index at which each enclosing condition is instantiated. Disjuncts
share their paths: at most one of them needs to be true, and witnesses are chosen for it, one for each range, so that it is
instantiated in that range.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, TypeAlias

from streamproof.any.certify.smt_script import INT, TRUTH, Script, SmtTerm, Untranslatable, number
from streamproof.any.certify.smt_terms import SmtView
from streamproof.system import expr as e
from streamproof.system.sorts import BOOL, RangeSort, TermRange
from streamproof.transform.unbounded import Forall, Total, any_length

Path: TypeAlias = tuple[Hashable, ...]


class Conditions:
    """Formulas about views of states that share one list of `indices`; `free` are the names of the free parameters."""

    def __init__(self, script: Script, free: frozenset[str]) -> None:
        self.script, self.free = script, free
        self.indices: list[SmtTerm] = []
        """The instantiation terms, append-only, so that positions identify indices."""
        self.instantiated: Sequence[SmtTerm] = ()
        """The indices used in this round."""
        self._sizes: dict[SmtTerm, list[frozenset[str]]] = {}
        """For each index, the parameters that the ranges depend on in which it is an index."""
        self._witnesses: dict[Path, SmtTerm] = {}
        self._quantified: dict[e.Expr, bool] = {}

    def mention(self, index: SmtTerm, sort: Any) -> None:
        """Adds an instantiation term for ranges of the parameters of `sort`, used from the next round on."""
        self._sizes.setdefault(index, []).append(_size(sort))
        if index not in self.indices:
            self.indices.append(index)

    def _apart(self, index: SmtTerm, sort: Any) -> bool:
        """Whether an index is one of ranges that depend on other parameters than `sort`, as nodes are no messages."""
        size = _size(sort)
        return all(size and other and size.isdisjoint(other) for other in self._sizes[index])

    def mention_in(self, view: SmtView, *roots: e.Expr) -> None:
        """The indices at which `roots` read and write arrays of unbounded length, except bound ones."""
        for index, sort in indices_in(view, (e.Select, e.Store), *roots):
            self.mention(index, sort)

    def in_range(self, view: SmtView, sort: Any, index: SmtTerm) -> SmtTerm:
        """The index is in its range. Raises `Untranslatable` for a range that may differ between states."""
        least, most = self.ends(view, sort)
        s = self.script
        return s.all_of([s.op("<=", TRUTH, least, index), s.op("<=", TRUTH, index, most)])

    def ends(self, view: SmtView, sort: Any) -> tuple[SmtTerm, SmtTerm]:
        """The first and the last index of a range, as terms over the free parameters."""
        if isinstance(sort, TermRange):
            if not e.variables(sort.least, sort.most) <= self.free:
                raise Untranslatable(f"the verifier has no range of indices that depends on the state: {sort}")
            return view.scalar(sort.least), view.scalar(sort.most)
        assert type(sort) is RangeSort
        return number(sort.lo), number(sort.hi)

    def formula(self, view: SmtView, term: Any, positive: bool, path: Path) -> SmtTerm:
        """A formula implied by `term`, or by its negation if not `positive`."""
        s = self.script
        if not self.quantified(term):
            value = view.scalar(term)
            return value if positive else s.negation(value)
        match term:
            case e.Not(arg=a):
                return self.formula(view, a, not positive, path)
            case e.And(args=args) | e.Or(args=args):
                pairs = [(a, positive) for a in args]
                return self._join(view, pairs, isinstance(term, e.And) is positive, path)
            case e.Ite(cond=c, then=a, other=b) if term.sort == BOOL:
                yes = self._join(view, [(c, False), (a, positive)], False, (*path, 0))
                no = self._join(view, [(c, True), (b, positive)], False, (*path, 1))
                return s.all_of([yes, no])
            case e.Eq(left=a, right=b) if a.sort == BOOL:
                one = self._join(view, [(a, False), (b, positive)], False, (*path, 0))
                other = self._join(view, [(a, True), (b, not positive)], False, (*path, 1))
                return s.all_of([one, other])
            case Forall(bound=e.Var(name=name, sort=sort), body=body) if positive:
                parts = []
                for at, index in enumerate(self.instantiated):
                    if self._apart(index, sort):
                        continue
                    if index in self._witnesses.values():
                        self.mention_in(view.bound(name, index), body)
                    there = self.formula(view.bound(name, index), body, True, (*path, ("at", at)))
                    parts.append(s.any_of([s.negation(self.in_range(view, sort, index)), there]))
                return s.all_of(parts)
            case Forall(bound=e.Var(name=name, sort=sort), body=body):
                inner = (*path, "witness", sort)
                if inner not in self._witnesses:
                    self._witnesses[inner] = s.fresh("w", INT)
                    self.mention(self._witnesses[inner], sort)
                    self.mention_in(view.bound(name, self._witnesses[inner]), body)
                witness = self._witnesses[inner]
                there = self.formula(view.bound(name, witness), body, False, inner)
                return s.all_of([self.in_range(view, sort, witness), there])
            case _:
                value = view.scalar(term)  # in which conditions have names: see `View.conditions`
                return value if positive else s.negation(value)

    def _join(self, view: SmtView, parts: Sequence[tuple[e.Expr, bool]], every: bool, path: Path) -> SmtTerm:
        """The conjunction of parts, each possibly negated, or, if not `every`, their disjunction."""
        if every:
            return self.script.all_of(
                [self.formula(view, part, as_it_is, (*path, at)) for at, (part, as_it_is) in enumerate(parts)]
            )
        return self.script.any_of([self.formula(view, part, as_it_is, (*path, "or")) for part, as_it_is in parts])

    def tables(self, *views: SmtView) -> Iterator[SmtTerm]:
        """The elements, at the indices in use, of arrays with a term for each index."""
        for known in {id(view.tables): view.tables for view in views}.values():
            for view, table, lanes in known:  # which grows
                for index in self.instantiated:
                    assert isinstance(table.bound, e.Var)
                    there = view.bound(table.bound.name, index)
                    element = there.value(table.body)
                    if index in self._witnesses.values():
                        self.mention_in(there, table.body)
                    read = view.element(table.sort, lanes, index)
                    yield from (self.script.same(x, y) for x, y in zip(read, element, strict=True))

    def named(self, *views: SmtView) -> list[SmtTerm]:
        """The definitions of the names of quantified conditions inside values (`View.conditions`)."""
        found: list[SmtTerm] = []
        for table in {id(view.conditions): view.conditions for view in views}.values():
            done = 0
            while done < len(table):  # which grows
                view, condition, name = list(table.values())[done]
                yes = self.formula(view, condition, True, ("named", name.text))
                no = self.formula(view, condition, False, ("not named", name.text))
                found += [self.script.any_of([self.script.negation(name), yes]), self.script.any_of([name, no])]
                done += 1
        return found

    def quantified(self, root: e.Expr) -> bool:
        """Whether a term contains a quantifier outside of sums."""
        if root not in self._quantified:
            seen, pending = {root}, [root]
            while pending and not isinstance(pending[-1], Forall):
                term = pending.pop()
                new = set() if isinstance(term, Total) else {*e.children(term)} - seen
                seen |= new
                pending += new
            self._quantified[root] = bool(pending)
        return self._quantified[root]


def indices_in(
    view: SmtView, kinds: tuple[type[e.Select | e.Store], ...], *roots: e.Expr
) -> Iterator[tuple[SmtTerm, Any]]:
    """The indices in `roots` at which terms of these kinds read or write arrays of unbounded length, except bound ones; each
    with the range of the array."""
    for term in e.subterms(*roots):
        if isinstance(term, kinds) and any_length(term.array.sort) and e.variables(term.index) <= view.names.keys():
            yield view.scalar(term.index), term.array.sort.index


def _size(sort: Any) -> frozenset[str]:
    """The parameters that the ends of a range depend on."""
    return frozenset(e.variables(sort.least, sort.most)) if isinstance(sort, TermRange) else frozenset()
