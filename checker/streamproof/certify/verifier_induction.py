"""The verifier's part for proofs by induction, with Z3.

Claims are decided together: the properties, the lemmas of the model and the formulas that the certificate names, and that no
rule makes a mistake or leaves the sorts of the variables. They are true in the first `k` states of every behaviour, and where
they are true of `k` states in a row, they are true of the next; so they are always true. With `distinct`, the states in a row
are pairwise different, which loses nothing: a shortest way to the first state where a claim is false visits none twice.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NoReturn, TypeAlias

import z3

from streamproof.certify.verifier_terms import Place, Reading, ends, literal
from streamproof.system.leaves import leaves
from streamproof.system.model import Check, Instance, Kind, Property, System
from streamproof.system.sorts import BoolSort, RangeSort, contains
from streamproof.system.verdict import Verdict

Reject: TypeAlias = Callable[[str], NoReturn]

PATIENCE = 120_000
"""Milliseconds that one question to Z3 may take."""


class Induction:
    """A proof by induction under examination: its strength ``k``, whether states are ``distinct``, the ``lemmas`` by name,
    and ``formulas`` on the ends of values; `reject` is called with what it does not show."""

    def __init__(self, system: System, verdicts: Mapping[Property, Verdict], proof: Any, reject: Reject) -> None:
        self.system, self.proof, self.reject, self.k = system, proof, reject, int(proof["k"])
        named = {lemma.name: lemma for lemma in system.lemmas}
        self.claims = dict(verdicts) | {named[name]: Verdict.HOLDS for name in proof["lemmas"]}
        for prop, verdict in self.claims.items():
            right = Verdict.VIOLATED if prop.kind is Kind.REACHABLE else Verdict.HOLDS
            if verdict is not right or prop.kind in (Kind.TERMINATION, Kind.TEMPORAL):
                reject(f"induction cannot show that {prop.name} is {verdict.value}")
        if self.k < 1 or {*proof} != {"claims", "k", "distinct", "lemmas", "formulas"}:
            reject("the induction it names is none")
        self.places = [Place(system, number) for number in range(self.k + 1)]

    def run(self) -> None:
        """From the initial states on, then from any states in a row. Raises `ValueError` for a formula that is none."""
        try:
            self._run()
        except z3.Z3Exception as error:
            raise ValueError(str(error)) from error

    def _run(self) -> None:
        first = z3.Solver()
        first.set("timeout", PATIENCE)
        first.add(*self.initially(self.places[0]))
        for number, place in enumerate(self.places[:-1]):
            where = f"after {number} steps from the initial states"
            self.follow(first, where, self.of_state(place))
            first.add(*(claim for _, claim in self.of_state(place)))
            if number + 1 < self.k:
                first.add(self.step(number))
                self.follow(first, where, self.of_step(number))
        after = z3.Solver()
        after.set("timeout", PATIENCE)
        for number, place in enumerate(self.places[:-1]):
            after.add(*(claim for _, claim in self.of_state(place)), self.step(number))
            if number + 1 < self.k:
                after.add(*(claim for _, claim in self.of_step(number)))
        if self.proof["distinct"]:
            after.add(*(self.differ(a, b) for a, b in combinations(self.places[:-1], 2)))
        where = f"after {self.k} states in which all claims are true"
        self.follow(after, where, self.of_step(self.k - 1))
        if self.proof["distinct"]:
            after.add(*(self.differ(place, self.places[-1]) for place in self.places[:-1]))
        self.follow(after, where, self.of_state(self.places[-1]))

    def follow(self, solver: z3.Solver, where: str, claims: Sequence[tuple[str, Any]]) -> None:
        """That each claim follows from what the solver knows."""
        for name, claim in claims:
            solver.push()
            solver.add(z3.Not(claim))
            answer = solver.check()
            solver.pop()
            if answer != z3.unsat:
                self.reject(f"{name} {'is not always true' if answer == z3.sat else 'could not be decided'} {where}")

    def initially(self, place: Place) -> Iterator[Any]:
        """What is true of initial states."""
        yield Reading(place).of(self.system.initially)
        for v in self.system.variables:
            own = list(ends(v.sort, place.variables[v.name], []))
            if not all(contains(v.sort, value) for value in v.initial):
                self.reject(f"{v.name} has an initial value that its sort does not have")
            yield z3.Or(*(_equal(own, list(ends(v.sort, literal(v.sort, value), []))) for value in v.initial))
        yield from (term for _, term in self.sorts(place))

    def sorts(self, place: Place) -> Iterator[tuple[str, Any]]:
        """That the ends lie within their sorts, and are the default where they belong to what is not there."""
        for v in self.system.variables:
            for leaf, end in zip(leaves(v.sort, v.name), ends(v.sort, place.variables[v.name], []), strict=True):
                term = place.named[leaf.name]
                within = [term == end]
                if not isinstance(leaf.sort, BoolSort):
                    lo, hi = (
                        (leaf.sort.lo, leaf.sort.hi)
                        if isinstance(leaf.sort, RangeSort)
                        else (0, len(leaf.sort.members) - 1)
                    )
                    within += [term >= lo, term <= hi]
                yield f"the sort of {leaf.name}", z3.And(*within)

    def of_state(self, place: Place) -> list[tuple[str, Any]]:
        """Every claim on single states, with its name."""
        read = Reading(place)
        found = [("what the sorts say", z3.And(*(term for _, term in self.sorts(place))))]
        found += [(f"formula {n}", _formula(data, place)) for n, data in enumerate(self.proof["formulas"], start=1)]
        for prop in self.claims:
            match prop.kind:
                case Kind.INVARIANT:
                    found.append((prop.name, self.sane(prop.checks, read, read.of(prop.expr))))
                case Kind.REACHABLE:
                    found.append((prop.name, self.sane(prop.checks, read, z3.Not(read.of(prop.expr)))))
                case Kind.DEADLOCK:
                    ways = [self.enabled(i, read) for i in self.system.instances]
                    ended = [] if self.system.terminal is None else [read.of(self.system.terminal)]
                    found.append((prop.name, z3.Or(*ways, *ended)))
        found += [(f"that {i.label} makes no mistake", self.sound(i, read)) for i in self.system.instances]
        return found

    def of_step(self, number: int) -> list[tuple[str, Any]]:
        """Every claim on the step from a place to the next."""
        read = Reading(self.places[number], self.places[number + 1])
        steps = (p for p in self.claims if p.kind is Kind.STEP)
        return [(p.name, self.sane(p.checks, read, read.of(p.expr))) for p in steps]

    def sane(self, checks: Sequence[Check], read: Reading, claim: Any) -> Any:
        """A claim, and that evaluating it is no mistake."""
        return z3.And(claim, *(z3.Not(read.of(check.condition)) for check in checks))

    def enabled(self, instance: Instance, read: Reading) -> Any:
        """Whether an instance can be taken."""
        return z3.And(*(read.of(conjunct.expr) for conjunct in instance.guard))

    def sound(self, instance: Instance, read: Reading) -> Any:
        """That an instance is no mistake of the model, and keeps to the sorts of the variables."""
        wrong = [read.of(check.condition) for check in instance.effect_checks]
        for name, update in instance.updates:
            for _ in ends(self.system.variables[self.system.index[name]].sort, read.of(update), wrong):
                pass
        return z3.And(
            z3.Implies(self.enabled(instance, read), z3.Not(z3.Or(*wrong))),
            *(z3.Not(read.of(check.condition)) for check in instance.guard_checks),
        )

    def step(self, number: int) -> Any:
        """That some instance leads from a place to the next."""
        now, then = self.places[number], self.places[number + 1]
        read, ways = Reading(now), []
        for instance in self.system.instances:
            new = {name: read.of(update) for name, update in instance.updates}
            same_ends = (
                _equal(
                    list(ends(v.sort, then.variables[v.name], [])),
                    list(ends(v.sort, new.get(v.name, now.variables[v.name]), [])),
                )
                for v in self.system.variables
            )
            # What is not there is the default in the next state as well, as its own ends must say.
            ways.append(z3.And(self.enabled(instance, read), *same_ends))
        hidden = (
            then.named[leaf.name] == end
            for v in self.system.variables
            for leaf, end in zip(leaves(v.sort, v.name), ends(v.sort, then.variables[v.name], []), strict=True)
        )
        return z3.And(z3.Or(*ways), *hidden)

    def differ(self, one: Place, other: Place) -> Any:
        """That two places hold different states."""
        return z3.Or(*(term != other.named[name] for name, term in one.named.items()))


def _equal(one: Sequence[Any], other: Sequence[Any]) -> Any:
    return z3.And(*(x == y for x, y in zip(one, other, strict=True)))


SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def _formula(data: Any, place: Place) -> Any:
    """A formula of the certificate, on the ends of the values at a place."""
    match data:
        case bool():
            return z3.BoolVal(data)
        case int():
            return z3.IntVal(data)
        case ["end", str(name)]:
            return place.named[name]
        case ["member", str(name), list(members)]:
            return z3.IntVal(members.index(name))
        case ["not", one]:
            return z3.Not(_formula(one, place))
        case ["and", *many]:
            return z3.And(*(_formula(one, place) for one in many))
        case ["or", *many]:
            return z3.Or(*(_formula(one, place) for one in many))
        case ["if", cond, one, other]:
            return z3.If(_formula(cond, place), _formula(one, place), _formula(other, place))
        case [str(sign), one, other]:
            return SIGNS[sign](_formula(one, place), _formula(other, place))
        case _:
            raise ValueError(f"no formula: {data!r}")
