"""The Büchi automata of temporal formulas are small."""

from __future__ import annotations

import pytest

from streamproof.explicit.liveness.buchi import BuchiAutomaton, buchi_automaton
from streamproof.explicit.liveness.fair_graph import refuse_more_steps
from streamproof.explicit.liveness.tableau import tableau
from streamproof.system import BOOL, TooLarge
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
    written,
)

P, Q = (Atom(b.var(name, BOOL), name) for name in "pq")


def refuter(formula: Formula) -> BuchiAutomaton:
    """The automaton of the behaviours that make `formula` false."""
    return buchi_automaton(tableau(NotF(formula)))


@pytest.mark.parametrize(
    ("formula", "states", "accepting"),
    [
        (Always(P), 3, [(0b11, 0)]),
        (Eventually(P), 1, [(0b01, 0)]),
        (Always(Eventually(P)), 2, [(0b01, 0)]),
        (Eventually(Always(P)), 1, [(0b11, 1)]),
        (LeadsTo(P, Q), 3, [(0b0011, 0)]),
        (Always(LeadsTo(P, Q)), 3, [(0b0011, 0)]),
        (OrF((NotF(Always(Eventually(P))), Always(Eventually(Q)))), 2, [(0b0011, 1)]),
        (Eventually(Eventually(P)), 1, [(0b01, 0)]),
        (Always(Eventually(Always(P))), 1, [(0b11, 1)]),
        (Eventually(Always(Eventually(P))), 2, [(0b01, 0)]),
    ],
    ids=lambda v: written(v) if not isinstance(v, int | list) else "",
)
def test_common_formulas_have_minimal_automata(formula: Formula, states: int, accepting: list[tuple[int, int]]) -> None:
    """The number of states; of each accepting SCC the label and the number of acceptance sets."""
    machine = refuter(formula)
    assert len(machine.states) == states
    sccs = [scc for scc in machine.sccs if scc.accepting]
    assert [(machine.states[scc.members[0]].label, len(scc.acceptance_sets or ())) for scc in sccs] == accepting
    assert all(len(scc.members) == 1 for scc in sccs)


def test_until() -> None:
    """An until fails by never coming to its goal, or by losing its condition before."""
    machine = refuter(Until(P, Q))
    assert len(machine.states) == 3
    labels = [machine.states[scc.members[0]].label for scc in machine.sccs if scc.acceptance_sets == ()]
    assert sorted(labels) == [0b11, 0b1111]


@pytest.mark.parametrize("formula", [AndF(()), Always(Atom(b.TRUE)), OrF((P, NotF(P))), Release(P, Atom(b.TRUE))])
def test_what_nothing_refutes(formula: Formula) -> None:
    """The negation of what is always true has no automaton to speak of."""
    assert refuter(formula).states == ()


def test_components_are_in_topological_order() -> None:
    """The order of the SCCs is one in which a run goes through them."""
    machine = refuter(Until(P, Always(Until(Q, NotF(P)))))
    order = {member: at for at, scc in enumerate(machine.sccs) for member in scc.members}
    assert sorted(order) == list(range(len(machine.states)))
    for number, state in enumerate(machine.states):
        assert all(order[number] <= order[after] for after in state.after)


def test_conditions_are_shared() -> None:
    """A condition and its negation are one atom, and conditions without operators are not taken apart."""
    table = tableau(Until(AndF((P, Q)), NotF(AndF((P, Q)))))
    assert table.conditions == (b.and_((P.expr, Q.expr)),)


def test_too_many_conditions() -> None:
    """There is a limit, and it is told."""
    many = OrF(tuple(Always(Atom(b.var(f"x{k}", BOOL))) for k in range(13)))
    with pytest.raises(TooLarge, match="a temporal formula with 13 different conditions on states"):
        tableau(many)


def test_too_many_steps() -> None:
    """Steps are numbered in 32 bits; a graph with more is refused, not decided wrongly."""
    refuse_more_steps((1 << 31) - 1)
    with pytest.raises(TooLarge, match="a graph of 2,147,483,648 steps, for a temporal property"):
        refuse_more_steps(1 << 31)
