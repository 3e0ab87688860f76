"""Why a formula is false of a behaviour: the reasons are true of it and suffice, by truth tables."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from streamproof.system import Interpreter, Kind, Property, System, Trace, Variable
from streamproof.system import build as b
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    LeadsTo,
    NotF,
    OrF,
    Release,
    Until,
)
from streamproof.system.sorts import BOOL
from streamproof.system.temporal import LassoTruth, refutes
from streamproof.traces.explain import explain
from streamproof.traces.unmet import Unmet, sentence, unmet

NAMES = ("p", "q", "r")
ATOMS = tuple(Atom(b.var(name, BOOL), name) for name in NAMES)
SYSTEM = System("letters", tuple(Variable(name, BOOL, (False,)) for name in NAMES), (), ())


def drawn(random: Random, depth: int) -> Formula:
    """A formula with at most `depth` operators inside each other."""
    if depth == 0:
        return random.choice(ATOMS)
    one, other = drawn(random, depth - 1), drawn(random, random.randrange(depth))
    two: tuple[Formula, ...] = (LeadsTo(one, other), Until(one, other), Release(one, other), OrF((one, other)))
    return random.choice((NotF(one), Always(one), Eventually(one), AndF((other, one)), *two))


def row(formula: Formula, table: dict[Formula, list[bool]], loop: int) -> list[bool]:
    """The truth values of a formula at each position, from those of the atoms: fixpoints over two rounds of the cycle."""
    count = len(next(iter(table.values())))
    following = [*range(1, count), loop]

    def lasting(now: Sequence[bool], also: Sequence[bool]) -> list[bool]:
        """The least solution of: `now`, or `also` and the same at the next position."""
        found = [False] * count
        for _ in range(2 * count):
            found = [now[k] or (also[k] and found[following[k]]) for k in range(count)]
        return found

    def of(part: Formula) -> list[bool]:
        match part:
            case Atom():
                return table[part]
            case NotF(arg):
                return [not value for value in of(arg)]
            case AndF(args):
                return [all(values) for values in zip(*map(of, args), strict=True)]
            case OrF(args):
                return [any(values) for values in zip(*map(of, args), strict=True)]
            case Eventually(arg):
                return lasting(of(arg), [True] * count)
            case Always(arg):
                return of(NotF(Eventually(NotF(arg))))
            case Until(left, right):
                return lasting(of(right), of(left))
            case Release(left, right):
                return of(NotF(Until(NotF(left), NotF(right))))
            case LeadsTo(left, right):
                return of(Always(OrF((NotF(left), Eventually(right)))))
            case _:
                raise AssertionError(part)

    return of(formula)


def positions(one: Unmet, count: int, loop: int) -> list[int]:
    """The positions that a condition is about."""
    return [*range(min(one.at, loop), count)] if one.forever else [one.at]


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 20))])
def test_the_reasons_are_true_and_suffice(part: int) -> None:
    """On random lassos: each condition is as it is said to be, and no behaviour with the same ones satisfies the formula."""
    random, explained = Random(part), 0
    while explained < 200:
        count = random.randrange(1, 6)
        loop, formula = random.randrange(count), drawn(random, random.randrange(1, 5))
        states = tuple(tuple(random.random() < 0.5 for _ in NAMES) for _ in range(count))
        table: dict[Formula, list[bool]] = {atom: [s[k] for s in states] for k, atom in enumerate(ATOMS)}
        lasso = LassoTruth(Interpreter(SYSTEM), Trace(states, (), loop))
        truth = row(formula, table, loop)
        assert truth[0] is lasso.true(formula, 0)
        if truth[0]:
            continue
        explained += 1
        fixed = set()
        for one in unmet(lasso, formula):
            assert sentence(one)
            for k in positions(one, count, loop):
                assert isinstance(one.atom, Atom)
                assert table[one.atom][k] is not one.wanted
                fixed.add((one.atom, k))
        for _ in range(8):
            other: dict[Formula, list[bool]] = {
                atom: [v if (atom, k) in fixed else random.random() < 0.5 for k, v in enumerate(values)]
                for atom, values in table.items()
                if isinstance(atom, Atom)
            }
            assert not row(formula, other, loop)[0]


def test_a_finite_prefix_blames_no_condition() -> None:
    """That `q` never comes is known of no prefix: the formula is refuted by `p` alone."""
    p, q, _ = ATOMS
    prop = Property("both", Kind.TEMPORAL, b.TRUE, formula=AndF((Eventually(q), Always(p))))
    states = ((True, False, False), (False, False, False))
    assert refutes(SYSTEM, AndF((Eventually(q), Always(p))), states)
    assert explain(SYSTEM, prop, Trace(states, (), None)).unmet == ()
    assert [one.atom for one in unmet(LassoTruth(Interpreter(SYSTEM), Trace(states, (), 1)), Always(p))] == [p]
