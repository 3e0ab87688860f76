"""Small systems with a constraint and a temporal formula, and their meaning by brute force: words and walks, one by one.

Nothing here uses the automata, the tableaux or the formulas that the engines make for a constraint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise, product
from random import Random

from streamproof.system import Fairness, Kind, System
from streamproof.system import build as b
from streamproof.system.expr import Expr
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
from streamproof.system.model import Action, Conjunct, Instance, Property, Variable
from streamproof.system.sorts import RangeSort
from streamproof.transform.constraint import constrained

ATOMS = 2
LETTERS = tuple(product((False, True), repeat=ATOMS))
Letter = tuple[bool, ...]
Edge = tuple[int, int]


@dataclass(frozen=True)
class Drawn:
    """A graph with fair sets of edges, the part of it within the constraint, and a formula over two sets of states."""

    initial: frozenset[int]
    actions: tuple[tuple[Fairness, frozenset[Edge]], ...]
    inside: frozenset[int]
    """The states within the constraint."""
    broken: frozenset[Edge]
    """The edges that break a constraint on steps."""
    letters: tuple[Letter, ...]
    """For each state, which of the sets it is in."""
    formula: Formula
    system: System

    @property
    def edges(self) -> frozenset[Edge]:
        """All edges that change the state."""
        return frozenset((i, j) for _, some in self.actions for i, j in some if i != j)

    def follow(self, state: int) -> list[int]:
        """The states after a step within the constraint."""
        return [j for i, j in sorted(self.edges - self.broken) if i == state and j in self.inside]


def drawn(seed: int) -> Drawn:
    """A random one; every third has a constraint on steps."""
    random = Random(seed)
    size = random.randint(2, 5)
    states = range(size)
    sort = RangeSort(0, size - 1)
    n, then = b.var("n", sort), b.next_("n", sort)

    def is_(state: int, term: Expr = n) -> Expr:
        return b.eq(term, b.const(sort, state))

    initial = frozenset(random.sample(states, random.choice((1, 1, 2))))
    actions = tuple(
        (
            random.choice((Fairness.NONE, Fairness.WEAK, Fairness.WEAK, Fairness.STRONG)),
            frozenset((random.choice(states), random.choice(states)) for _ in range(random.randint(1, size))),
        )
        for _ in range(random.randint(1, 3))
    )
    edges = sorted({(i, j) for _, some in actions for i, j in some if i != j})
    broken = frozenset(random.sample(edges, min(len(edges), random.randint(1, 2)))) if seed % 3 == 0 else frozenset()
    inside = frozenset(states)
    if not broken or random.random() < 0.3:
        inside -= set(random.sample(states, random.randint(1, max(1, size - 2))))
    letters = tuple(random.choice(LETTERS) for _ in states)
    while any(len({letter[at] for letter in letters}) == 1 for at in range(ATOMS)):  # no condition is a constant
        letters = tuple(random.choice(LETTERS) for _ in states)
    conditions = [Atom(b.or_(is_(s) for s in states if letters[s][at]), f"p{at}") for at in range(ATOMS)]
    formula = _formula(random, conditions, 3)
    made = System(
        "drawn",
        (Variable("n", sort, tuple(sorted(initial))),),
        tuple(
            Action(
                f"a{at}",
                (),
                fairness,
                tuple(
                    Instance(f"a{at}", (), (("e", number),), (Conjunct(is_(i), "", None),), (("n", b.const(sort, j)),))
                    for number, (i, j) in enumerate(sorted(some))
                ),
            )
            for at, (fairness, some) in enumerate(actions)
        ),
        (Property("claim", Kind.TEMPORAL, b.TRUE, formula=formula),),
    )
    on_states = [Conjunct(b.or_(is_(s) for s in sorted(inside)), "inside", None)] if len(inside) < size else []
    breaks = b.or_(b.and_((is_(i), is_(j, then))) for i, j in sorted(broken))
    on_steps = [Conjunct(b.not_(breaks), "unbroken", None)] if broken else []
    return Drawn(initial, actions, inside, broken, letters, formula, constrained(made, on_states, on_steps))


def _formula(random: Random, conditions: Sequence[Atom], depth: int) -> Formula:
    if depth == 0 or random.random() < 0.15:
        return random.choice(conditions)
    one, other = (_formula(random, conditions, depth - 1) for _ in range(2))
    return random.choice(
        (
            Always(one),
            Always(one),
            Eventually(one),
            NotF(one),
            Until(one, other),
            Release(one, other),
            LeadsTo(one, other),
            AndF((one, other)),
            OrF((one, other)),
            OrF((one, other)),
        )
    )


# --- words


def true_of_word(formula: Formula, stem: Sequence[Letter], cycle: Sequence[Letter]) -> bool:
    """Whether a formula is true of the infinite word that repeats `cycle` after `stem`."""
    word, back = (*stem, *cycle), len(stem)
    after = [*range(1, len(word)), back]

    def truth(part: Formula) -> list[bool]:
        match part:
            case Atom(_, text):
                return [letter[int(text[1:])] for letter in word]
            case NotF(arg):
                return [not value for value in truth(arg)]
            case AndF(args):
                return [all(values) for values in zip(*map(truth, args), strict=True)]
            case OrF(args):
                return [any(values) for values in zip(*map(truth, args), strict=True)]
            case Eventually(arg):
                return least([True] * len(word), truth(arg))
            case Always(arg):
                return [not value for value in least([True] * len(word), [not value for value in truth(arg)])]
            case Until(left, right):
                return least(truth(left), truth(right))
            case Release(left, right):
                return [not v for v in least([not v for v in truth(left)], [not v for v in truth(right)])]
            case LeadsTo(left, right):
                return truth(Always(OrF((NotF(left), Eventually(right)))))
        raise AssertionError("no other operator is drawn")

    def least(left: Sequence[bool], right: Sequence[bool]) -> list[bool]:
        found = [False] * len(word)
        while True:
            more = [now or (before and found[then]) for before, now, then in zip(left, right, after, strict=True)]
            if more == found:
                return found
            found = more

    return truth(formula)[0]


@lru_cache(maxsize=1)
def continuations() -> tuple[tuple[tuple[Letter, ...], tuple[Letter, ...]], ...]:
    """Short words of every kind: enough to satisfy what the drawn formulas leave open."""
    return tuple(
        (stem, cycle)
        for before in range(4)
        for around in range(1, 3)
        for stem in product(LETTERS, repeat=before)
        for cycle in product(LETTERS, repeat=around)
        if all(one != other for one, other in pairwise(stem))
    )


def is_bad(formula: Formula, prefix: Sequence[Letter]) -> bool:
    """Whether no continuation of any kind makes the formula true."""
    return not any(true_of_word(formula, (*prefix, *stem), cycle) for stem, cycle in continuations())


# --- walks


def prefixes(graph: Drawn, longest: int) -> Iterator[tuple[int, ...]]:
    """The walks from initial states within the constraint."""
    todo: list[tuple[int, ...]] = [(state,) for state in sorted(graph.initial & graph.inside)]
    for walk in todo:
        yield walk
        if len(walk) < longest:
            todo += [(*walk, state) for state in graph.follow(walk[-1])]


def lassos(graph: Drawn, longest: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """The walks with the position to which each goes back, for ever; a walk may stay in its last state."""
    for walk in prefixes(graph, longest):
        yield walk, len(walk) - 1
        for back in range(len(walk) - 1):
            if walk[back] in graph.follow(walk[-1]):
                yield walk, back


def is_fair(graph: Drawn, walk: Sequence[int], back: int) -> bool:
    """Whether the cycle treats each action fairly; an action that only leads outside is enabled, too."""
    cycle = walk[back:]
    steps = {(i, j) for i, j in zip(cycle, (*cycle[1:], cycle[0]), strict=True) if i != j}
    for fairness, edges in graph.actions:
        moves = {(i, j) for i, j in edges if i != j}
        enabled = [any(i == state for i, _ in moves) for state in cycle]
        starved = all(enabled) if fairness is Fairness.WEAK else any(enabled)
        if fairness is not Fairness.NONE and starved and not steps & moves:
            return False
    return True


def violates(graph: Drawn, walk: Sequence[int], back: int) -> bool:
    """Whether the lasso is fair, and the formula is false of it."""
    letters = [graph.letters[state] for state in walk]
    return is_fair(graph, walk, back) and not true_of_word(graph.formula, letters[:back], letters[back:])


def refuted_by(graph: Drawn, longest: int) -> tuple[int, ...] | None:
    """A walk within the constraint after which the formula is false whatever follows; None up to this length."""
    known: dict[tuple[Letter, ...], bool] = {}
    for walk in prefixes(graph, longest):
        word = tuple(letter for letter, _ in groupby(graph.letters[state] for state in walk))
        if word not in known:
            known[word] = is_bad(graph.formula, word)
        if known[word]:
            return walk
    return None
