"""The verifier's part for proofs by induction: Z3 decides, of the system spelt out in scalar variables (`scalarise`).

Claims are decided together: properties, lemmas and formulas of the certificate, and that no rule makes a mistake or leaves
the sorts. They are true of the first `k` states, and where they are true of `k` in a row, of the next. With `distinct`,
states in a row are pairwise different: a shortest way to the first state where a claim is false visits none twice.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import z3

from streamproof.base.errors import reject
from streamproof.base.options import answer as answer_of
from streamproof.system import expr as e
from streamproof.system.model import Check, Instance, Kind, Property, System
from streamproof.system.sorts import BOOL, EnumSort, RangeSort, Sort, Value, cardinality
from streamproof.transform.scalarise import scalarise

PATIENCE = 600_000  # milliseconds that one question to Z3 may take
MEANING: dict[str, Callable[..., Any]] = {"Not": z3.Not, "And": z3.And, "Or": z3.Or, "Ite": z3.If, "Eq": operator.eq}
MEANING |= {"Less": operator.lt, "LessEq": operator.le, "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul}
MEANING["FloorDiv"] = lambda a, b: z3.If(b == 0, 0, z3.If(b < 0, -a / -b, a / b))  # Z3 rounds down for divisors above 0
MEANING["Mod"] = lambda a, b: z3.If(b == 0, 0, z3.If(b < 0, -(-a % -b), a % b))


def literal(sort: Sort | None, value: Value) -> Any:
    """A constant; members of an Enum are numbers."""
    number = sort.members.index(value) if isinstance(sort, EnumSort) else value
    return z3.BoolVal(number) if isinstance(number, bool) else z3.IntVal(number)


def within(sort: Sort, term: Any) -> Any:
    """That a scalar is in its sort."""
    lo, hi = (sort.lo, sort.hi) if isinstance(sort, RangeSort) else (0, cardinality(sort) - 1)
    return z3.BoolVal(True) if sort == BOOL else z3.And(lo <= term, term <= hi)


class CheckedInduction:
    """A proof being verified: its strength ``k``, ``distinct``, the names of ``lemmas``, ``formulas`` on the leaves."""

    def __init__(self, system: System, proof: Any) -> None:
        self.system, self.proof, self.k = scalarise(system).system, proof, int(proof["k"])
        lemmas = {lemma.name: lemma for lemma in self.system.lemmas}
        self.claims = [*map(self.system.property, proof["claims"]), *(lemmas[name] for name in proof["lemmas"])]
        endless = any(p.kind in (Kind.TERMINATION, Kind.TEMPORAL) for p in self.claims)
        if endless or not 0 < self.k <= 1000 or {*proof} != {"claims", "k", "distinct", "lemmas", "formulas"}:
            reject("the induction it names is none")
        self.sorts = {v.name: v.sort for v in self.system.variables}
        kinds = {name: z3.Bool if sort == BOOL else z3.Int for name, sort in self.sorts.items()}
        self.places = [{name: kind(f"{name} {n}") for name, kind in kinds.items()} for n in range(self.k + 1)]
        self.known: list[dict[e.Expr, Any]] = [{} for _ in self.places]

    def run(self) -> None:
        """The base case, then the inductive step from arbitrary consecutive states."""
        first, variables = self.places[0], self.system.variables
        begins = [z3.Or([first[v.name] == literal(v.sort, value) for value in v.initial]) for v in variables]
        self.chain([self.term(self.system.initially, 0), *begins], 0, f"in the first {self.k} states")
        self.chain([], self.k, f"after {self.k} states in which all claims are true")

    def chain(self, facts: list[Any], begin: int, where: str) -> None:
        """In consecutive states the claims are true from number `begin` on, if they are true before."""
        solver = z3.Solver()
        solver.set("timeout", PATIENCE)
        solver.add(facts)
        for n in range((begin or self.k - 1) + 1):
            for name, claim in self.said(n, begin > 0 and self.proof["distinct"]):
                if name and n >= begin and (answer := answer_of(solver, z3.Not(claim))) != z3.unsat:
                    reject(f"{name} {'is not always true' if answer == z3.sat else 'could not be decided'} {where}")
                solver.add(claim)

    def said(self, n: int, distinct: bool) -> Iterator[tuple[str, Any]]:
        """The claims about a state and the step to it, with descriptions; consequences of the encoding have none."""
        now, instances = self.places[n], self.system.instances
        if n > 0:
            ways = ({**self.places[n - 1]} | {name: self.term(x, n - 1) for name, x in i.updates} for i in instances)
            news = [z3.And([now[name] == x for name, x in new.items()]) for new in ways]
            yield "", z3.Or([z3.And(self.enabled(i, n - 1), new) for i, new in zip(instances, news, strict=True)])
            yield from ((p.name, self.sane(p, n - 1)) for p in self.claims if p.kind is Kind.STEP)
        if distinct:
            yield "", z3.And([z3.Or([now[name] != x for name, x in other.items()]) for other in self.places[:n]])
        yield "the domain claims", z3.And([within(sort, now[name]) for name, sort in self.sorts.items()])
        yield from ((f"formula {k}", self.formula(data, n)) for k, data in enumerate(self.proof["formulas"], 1))
        for prop in self.claims:
            if prop.kind is Kind.DEADLOCK:
                ended = [] if self.system.terminal is None else [self.term(self.system.terminal, n)]
                yield prop.name, z3.Or([self.enabled(i, n) for i in instances] + ended)
            elif prop.kind is not Kind.STEP:
                yield prop.name, self.sane(prop, n)
        for i in instances:
            fits = [within(self.sorts[name], self.term(x, n)) for name, x in i.updates]
            effect = z3.Implies(self.enabled(i, n), z3.And(self.sound(i.effect_checks, n), *fits))
            yield f"that {i.label} makes no mistake", z3.And(self.sound(i.guard_checks, n), effect)

    def enabled(self, instance: Instance, n: int) -> Any:
        """Whether an instance is enabled."""
        return z3.And([self.term(conjunct.expr, n) for conjunct in instance.guard])

    def sound(self, checks: Sequence[Check], n: int) -> Any:
        """None of the errors occurs."""
        return z3.Not(z3.Or([self.term(check.condition, n) for check in checks]))

    def sane(self, prop: Property, n: int) -> Any:
        """A property has its verdict, and its evaluation is not an error."""
        value = self.term(prop.expr, n)
        return z3.And(z3.Not(value) if prop.kind is Kind.REACHABLE else value, self.sound(prop.checks, n))

    def term(self, root: e.Expr, n: int) -> Any:
        """The meaning of an expression in a state, and in the step from it."""
        known = self.known[n]
        for part in e.subterms(root) if root not in known else ():
            if isinstance(part, e.Const):
                known[part] = literal(part.sort, part.value)
            elif isinstance(part, e.Var | e.Next):
                known[part] = self.places[n + isinstance(part, e.Next)][part.name]
            elif part not in known:
                known[part] = MEANING[type(part).__name__](*(known[child] for child in e.children(part)))
        return known[root]

    def formula(self, data: Any, n: int) -> Any:
        """The meaning of a formula of the certificate in a state."""
        if isinstance(data, bool | int):
            return literal(BOOL, data)
        kind, *parts = data
        return self.places[n][parts[0]] if kind == "Var" else MEANING[kind](*(self.formula(part, n) for part in parts))
