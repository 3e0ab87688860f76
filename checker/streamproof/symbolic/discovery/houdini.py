"""Houdini: of many candidates, the largest part that is inductive on its own."""

from __future__ import annotations

from collections.abc import Sequence

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.solver import Answer, Budget, Solver
from streamproof.symbolic.theory import Term
from streamproof.system.expr import Expr


def inductive(encoding: Encoding, candidates: Sequence[Expr], budget: Budget) -> tuple[Expr, ...]:
    """The candidates (conditions on leaves) that hold initially and are kept by every step, taken together.

    None of them rests on one that is left out. What the solver does not know is left out. Well-formed states and steps
    without a mistake of the model are assumed, as everywhere in discovery. Raises `Stopped`.
    """
    at, alive = encoding.at, list(dict.fromkeys(candidates))
    starting = Solver(encoding, budget)
    starting.add(at(encoding.initial, 0))
    alive = _thinned(encoding, starting, alive, 0, {})
    stepping = Solver(encoding, budget)
    wellformed, sane = at(encoding.wellformed, 0), at(encoding.no(encoding.mistake), 0)
    stepping.add(wellformed, sane, at(encoding.transition, 0))
    before: dict[Expr, Term] = {}
    for n, candidate in enumerate(alive):
        before[candidate] = encoding.switch(f"candidate {n}")
        claim = at(encoding.term(candidate), 0)
        stepping.add(encoding.any_of([encoding.no(before[candidate]), claim]))
    return tuple(_thinned(encoding, stepping, alive, 1, before))


def _thinned(
    encoding: Encoding, solver: Solver, alive: list[Expr], position: int, assumed: dict[Expr, Term]
) -> list[Expr]:
    """What is left when everything that can be false at the position has been left out, one after the other."""
    broken = {c: encoding.no(encoding.at(encoding.term(c), position)) for c in alive}
    while alive:
        switches = [assumed[c] for c in alive] if assumed else []
        match solver.ask(encoding.any_of(broken[c] for c in alive), switches):
            case Answer.NO:
                break
            case Answer.YES:
                alive = [c for c in alive if not solver.true(broken[c])]
            case Answer.UNKNOWN:
                doubtful = [c for c in alive if solver.ask(broken[c], switches) is not Answer.NO]
                alive = [c for c in alive if c not in set(doubtful)]
    return alive
