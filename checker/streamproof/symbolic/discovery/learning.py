"""Learning of clauses from counterexamples to induction (CTIs) that the explored states show to be unreachable.

A true claim that is not inductive is broken by a step from an unreachable state. Comparison with the explored states
gives a small part of that state, a conjunction of literals, that no explored state satisfies. Its negation is a new
clause, a claim like the others, until all claims together are inductive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamproof.symbolic.cubes import clause
from streamproof.symbolic.discovery.samples import Samples
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal
from streamproof.symbolic.solver import Solver, SolverAnswer, SolverBudget
from streamproof.symbolic.theory import Term
from streamproof.system.expr import Expr
from streamproof.system.model import Property

MOST_CLAUSES = 2_000
"""Maximum number of clauses."""
VIEWS = 3
"""Maximum number of clauses learned from one state, each from a different order of literals."""


def learned(
    encoding: Encoding,
    goals: Sequence[Goal],
    facts: Sequence[Expr],
    samples: Samples,
    budget: SolverBudget,
    refuted: dict[Property, None],
) -> tuple[Expr, ...]:
    """Clauses over leaves that make the goals' events, and errors of the model, impossible by induction; none if not found.

    `facts` are invariant conditions on leaves. Claims that the samples refute are added to `refuted`. Raises `Stopped`.
    """
    at, open_goals = encoding.at, list(goals)
    clauses: dict[Expr, Term] = {}
    """Adds clauses, with the events that they are false after the step."""
    solver = _stepping(encoding, open_goals, facts, clauses, budget)
    mistake = at(encoding.mistake, 1)
    seen = {g: at(g.event, 0 if g.step else 1) for g in open_goals}
    while open_goals and len(clauses) < MOST_CLAUSES:
        budget.report("learning from counterexamples to induction", len(clauses), len(open_goals))
        events = {g: seen[g] for g in open_goals}
        match solver.check(encoding.any_of([mistake, *events.values(), *clauses.values()])):
            case SolverAnswer.NO:
                return tuple(clauses)
            case SolverAnswer.UNKNOWN:
                break
            case SolverAnswer.YES:
                state = encoding.state(solver.model, 0)
                cubes = [samples.separated(state, prefer=view * len(state) // VIEWS) for view in range(VIEWS)]
                if None in cubes:
                    seen_here = [g for g in open_goals if solver.true(events[g])]
                    if not seen_here:
                        break
                    refuted.update(dict.fromkeys(g.prop for g in seen_here))
                    open_goals = [g for g in open_goals if g not in seen_here]
                    # They were assumed before the step; they are now dropped.
                    solver = _stepping(encoding, open_goals, facts, clauses, budget)
                    continue
                new = [clause(cube) for cube in dict.fromkeys(cubes) if cube is not None]
                clauses |= {c: encoding.no(encoding.holds_at(c, 1)) for c in new}
                solver.add(*(encoding.holds_at(c, 0) for c in new))
    return ()


def enough(encoding: Encoding, goals: Sequence[Goal], facts: Sequence[Expr], budget: SolverBudget) -> bool:
    """Whether the goals are inductive together, given the facts. Raises `Stopped`."""
    at = encoding.at
    solver = _stepping(encoding, goals, facts, (), budget)
    events = [at(g.event, 0 if g.step else 1) for g in goals]
    return solver.check(encoding.any_of([at(encoding.mistake, 1), *events])) is SolverAnswer.NO


def _stepping(
    encoding: Encoding, goals: Sequence[Goal], facts: Sequence[Expr], clauses: Iterable[Expr], budget: SolverBudget
) -> Solver:
    """A solver for one step of a system from a state in which every claim holds."""
    at = encoding.at
    solver = Solver(encoding, budget)
    never = encoding.no(encoding.any_of([encoding.mistake, *(g.event for g in goals if not g.step)]))
    known = encoding.all_of([encoding.wellformed, *map(encoding.term, facts)])
    solver.add(at(known, 0), at(never, 0), at(encoding.transition, 0), at(known, 1))
    solver.add(*(encoding.holds_at(c, 0) for c in clauses))
    return solver
