"""Clauses learned from counterexamples to induction that explored states show to be unreachable.

A claim that holds and is not inductive is broken by a step from a state that is never reached. What is odd about that state
is found by comparing it with the states explored: a few of its parts, which no explored state has together. That they never
come together is the new clause, a claim like the others, until all of them support each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamproof.symbolic.cubes import clause
from streamproof.symbolic.discovery.samples import Samples
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal
from streamproof.symbolic.solver import Answer, Budget, Solver
from streamproof.symbolic.theory import Term
from streamproof.system.expr import Expr
from streamproof.system.model import State

MOST_CLAUSES = 2_000
"""Clauses after which learning is given up."""
VIEWS = 3
"""Clauses learned from one state at most, each from another point of view."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The clauses, and whether they are the support that the claims lacked.

    `witness`: an explored state from which a step breaks a claim, so that it is false; None where there was none.
    """

    clauses: tuple[Expr, ...]
    enough: bool
    witness: State | None = None


def learned(
    encoding: Encoding, goals: Sequence[Goal], facts: Sequence[Expr], samples: Samples, budget: Budget
) -> Learned:
    """Clauses over leaves with which the goals' events, and mistakes of the model, become impossible by induction.

    `facts` are conditions on leaves that are known to be invariant. Raises `Stopped`.
    """
    at = encoding.at
    solver = Solver(encoding, budget)
    never = encoding.no(encoding.any_of([encoding.mistake, *(g.event for g in goals if not g.step)]))
    known = encoding.all_of([encoding.wellformed, *map(encoding.term, facts)])
    solver.add(at(known, 0), at(never, 0), at(encoding.transition, 0), at(known, 1))
    wrong: list[Term] = [at(encoding.no(never), 1), *(at(g.event, 0) for g in goals if g.step)]
    clauses: dict[Expr, None] = {}
    while len(clauses) < MOST_CLAUSES:
        budget.tell("learning from counterexamples to induction", len(clauses), len(goals))
        match solver.ask(encoding.any_of(wrong)):
            case Answer.NO:
                return Learned(tuple(clauses), enough=True)
            case Answer.UNKNOWN:
                break
            case Answer.YES:
                state = encoding.state(solver.model, 0)
                fresh = [samples.separated(state, prefer=view * len(state) // VIEWS) for view in range(VIEWS)]
                for cube in fresh:
                    if cube is None:
                        return Learned(tuple(clauses), enough=False, witness=state)
                    new = clause(cube)
                    if new not in clauses:
                        clauses[new] = None
                        solver.add(at(encoding.term(new), 0))
                        wrong.append(encoding.no(at(encoding.term(new), 1)))
    return Learned(tuple(clauses), enough=False)
