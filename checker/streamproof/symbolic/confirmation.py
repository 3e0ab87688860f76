"""Confirmation of a finished proof: its obligations are checked again with the other integer encoding."""

from __future__ import annotations

from collections.abc import Sequence

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import goals
from streamproof.symbolic.induction import Fragment, Round
from streamproof.symbolic.replay import ReplayFailure
from streamproof.symbolic.search import Unrolling
from streamproof.symbolic.solver import Solver, SolverAnswer, SolverBudget
from streamproof.system.model import Property
from streamproof.transform.scalarise import Scalarised

PATIENCE = 5.0
"""Time limit of one query, in seconds, so that the confirmation costs no more than the proof."""


def confirms(scalarised: Scalarised, rounds: Sequence[Round], budget: SolverBudget) -> bool:
    """Whether the obligations of all rounds were confirmed; False if the solver could not decide one.

    Each round is checked in the other encoding, in a new solver, claim by claim; the base cases are searched over
    integers. Raises `ReplayFailure` if the proof is wrong, and `Stopped`.
    """
    budget.report("confirming the proof", max(r.k for r in rounds), sum(len(r.proven) for r in rounds))
    with budget.patience(PATIENCE):
        return _starts(scalarised, rounds, budget) and _steps(scalarised, rounds, budget)


def _starts(scalarised: Scalarised, rounds: Sequence[Round], budget: SolverBudget) -> bool:
    encoding = Encoding(scalarised, integers=True)
    search = Unrolling(encoding, goals(encoding, [p for r in rounds for p in r.proven]), budget)
    search.to(max(r.k for r in rounds) - 1)
    if search.findings or search.mistake is not None:
        raise ReplayFailure("a claim that was proved is false near the initial states")
    return not search.given_up and not search.blind


def _steps(scalarised: Scalarised, rounds: Sequence[Round], budget: SolverBudget) -> bool:
    facts: list[Property] = []
    safe = False
    for r in rounds:
        encoding = Encoding(scalarised, integers=not r.integers)
        fragment = Fragment(encoding, r.k, simple=r.simple)
        solver = Solver(encoding, budget)
        claims = goals(encoding, r.proven)
        given = goals(encoding, facts)
        solver.add(*fragment.frame(safe=safe), *map(fragment.never, given), *map(fragment.kept, claims))
        for event in (*map(fragment.broken, claims), *((fragment.misbehaved(),) if r.safe and not safe else ())):
            match solver.check(event):
                case SolverAnswer.YES:
                    raise ReplayFailure(f"a claim that was proved is not inductive of strength {r.k}")
                case SolverAnswer.UNKNOWN:
                    return False
        facts += r.proven
        safe = r.safe
    return safe
