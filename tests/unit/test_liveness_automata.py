"""The automata of temporal formulas are small, and the components of graphs are the right ones."""

from __future__ import annotations

import numpy as np
import pytest

from streamproof.explicit.graph import strong_components
from streamproof.explicit.liveness.arena import refuse_more_steps
from streamproof.explicit.liveness.automaton import Automaton, automaton
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


def refuter(formula: Formula) -> Automaton:
    """The automaton of the behaviours that make `formula` false."""
    return automaton(tableau(NotF(formula)))


@pytest.mark.parametrize(
    ("formula", "places", "accepting"),
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
def test_common_formulas_have_minimal_automata(formula: Formula, places: int, accepting: list[tuple[int, int]]) -> None:
    """So many places, and of each accepting part the states it reads and how many marks it has."""
    machine = refuter(formula)
    assert len(machine.places) == places
    parts = [part for part in machine.parts if part.marks is not None]
    assert [(machine.places[part.places[0]].label, len(part.marks or ())) for part in parts] == accepting
    assert all(len(part.places) == 1 for part in parts)


def test_until() -> None:
    """An until fails by never coming to its goal, or by losing its condition before."""
    machine = refuter(Until(P, Q))
    assert len(machine.places) == 3
    assert sorted(machine.places[part.places[0]].label for part in machine.parts if part.marks == ()) == [0b11, 0b1111]


@pytest.mark.parametrize("formula", [AndF(()), Always(Atom(b.TRUE)), OrF((P, NotF(P))), Release(P, Atom(b.TRUE))])
def test_what_nothing_refutes(formula: Formula) -> None:
    """The negation of what is always true has no automaton to speak of."""
    assert refuter(formula).places == ()


def test_parts_come_before_what_they_lead_to() -> None:
    """The order of the parts is one in which a run goes through them."""
    machine = refuter(Until(P, Always(Until(Q, NotF(P)))))
    order = {place: at for at, part in enumerate(machine.parts) for place in part.places}
    assert sorted(order) == list(range(len(machine.places)))
    for number, place in enumerate(machine.places):
        assert all(order[number] <= order[after] for after in place.after)


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


def test_components_of_a_graph_with_parallel_edges() -> None:
    """Parallel edges and loops at one node are no trouble."""
    offsets = np.array([0, 2, 4, 6, 8, 10, 12], dtype=np.int64)
    targets = np.array([2, 3, 4, 3, 0, 5, 5, 5, 1, 4, 3, 3], dtype=np.int32)
    count, of = strong_components(offsets, targets)
    assert count == 3
    groups = {frozenset(np.flatnonzero(of == k).tolist()) for k in range(count)}
    assert groups == {frozenset({0, 2}), frozenset({1, 4}), frozenset({3, 5})}
    assert targets.tolist() == [2, 3, 4, 3, 0, 5, 5, 5, 1, 4, 3, 3]
