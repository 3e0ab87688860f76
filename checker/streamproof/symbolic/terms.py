"""Scalar expressions as terms of the solver, each shared subexpression once."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from streamproof.symbolic.theory import Term, Theory
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.sorts import BoolSort, EnumSort, RangeSort, Scalar, Sort, Value

OPERATORS = {
    e.Less: operator.lt,
    e.LessEq: operator.le,
    e.Add: operator.add,
    e.Sub: operator.sub,
    e.Mul: operator.mul,
}
"""The operators of Python, and so of solver terms, that mean what an expression means."""


class Terms:
    """Translates expressions over given constants, with a cache.

    Numbers encode the values of ranges (themselves) and enums (their positions); Booleans are Booleans.
    """

    def __init__(
        self,
        ctx: Any,
        theory: Theory,
        sorts: Mapping[str, Scalar],
        current: Mapping[str, Term],
        following: Mapping[str, Term],
    ) -> None:
        import z3

        self._z3 = z3
        self._ctx = ctx
        self._theory = theory
        self._sorts = sorts
        self._current = current
        self._following = following
        self._known: dict[Expr, Term] = {}

    def term(self, root: Expr) -> Term:
        """The solver's term for `root`."""
        for term in e.unfinished(root, self._known):
            self._known[term] = self._translate(term)
        return self._known[root]

    def read(self, constants: Mapping[str, Term], name: str) -> Term:
        """The value of a variable, given the constants of its state."""
        sort = self._sorts[name]
        return constants[name] if isinstance(sort, BoolSort) else self._theory.read(constants[name], sort)

    def literal(self, sort: Sort, value: Value) -> Term:
        """A value of a scalar sort."""
        match sort:
            case BoolSort():
                return self._z3.BoolVal(value, self._ctx)
            case EnumSort(members):
                return self._theory.literal(members.index(value))
            case _:
                return self._theory.literal(value)

    def same(self, left: Term, right: Term, sort: Sort) -> Term:
        """Equality of two values, `sort` being that of either."""
        return left == right if isinstance(sort, BoolSort) else self._theory.apply(operator.eq, left, right)

    def choose(self, cond: Term, then: Term, other: Term, sort: Sort) -> Term:
        """`then` if `cond` else `other`, `sort` being that of either."""
        return self._z3.If(cond, then, other) if isinstance(sort, BoolSort) else self._theory.choose(cond, then, other)

    def _translate(self, term: Expr) -> Term:
        z3, theory, t = self._z3, self._theory, self._known
        match term:
            case e.Const(sort=sort, value=value):
                return self.literal(sort, value)
            case e.Var(name=name):
                return self.read(self._current, name)
            case e.Next(name=name):
                return self.read(self._following, name)
            case e.Not(arg=a):
                return z3.Not(t[a])
            case e.And(args=args):
                return z3.And([t[a] for a in args])
            case e.Or(args=args):
                return z3.Or([t[a] for a in args])
            case e.Ite(sort=sort, cond=c, then=a, other=b):
                return self.choose(t[c], t[a], t[b], sort)
            case e.Eq(left=a, right=b):
                return self.same(t[a], t[b], a.sort)
            case e.Less(left=a, right=b) | e.LessEq(left=a, right=b):
                return theory.apply(OPERATORS[type(term)], t[a], t[b])
            case e.Add(left=a, right=b) | e.Sub(left=a, right=b) | e.Mul(left=a, right=b):
                assert isinstance(term.sort, RangeSort)
                return theory.apply(OPERATORS[type(term)], t[a], t[b], term.sort)
            case e.FloorDiv(sort=RangeSort() as sort, left=a, right=b):
                return theory.floor_div(t[a], t[b], sort)
            case e.Mod(sort=RangeSort() as sort, left=a, right=b):
                return theory.mod(t[a], t[b], sort)
            case _:
                raise TypeError(f"not a scalar term: {term!r}")
