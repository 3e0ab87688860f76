"""A second opinion on a finished proof: the same obligations, rebuilt over other numbers and decided by another procedure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal, goals, lemma_goals
from streamproof.symbolic.induction import Fragment
from streamproof.symbolic.replay import ReplayFailure
from streamproof.symbolic.search import Search
from streamproof.symbolic.solver import Answer, Budget, Solver
from streamproof.system.model import Property


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a proof: `proven` is inductive of strength `k` beside what the rounds before it proved.

    `safe`: it was shown in this round that the model makes no mistake. `simple`: only loop-free fragments were looked at.
    """

    k: int
    proven: tuple[Property, ...]
    safe: bool
    simple: bool


def confirms(first: Encoding, rounds: Sequence[Round], budget: Budget) -> bool:
    """Whether the other kind of numbers than that of the `first` encoding shows the same proof; False: it does not know.

    Raises `ReplayFailure` where it finds the proof wrong, and `Stopped`.
    """
    encoding = Encoding(first.scalarised, integers=not first.integers)
    asked = [p for r in rounds for p in r.proven]
    every = (*goals(encoding, first.scalarised.original.properties), *lemma_goals(encoding, ()))
    claims = {id(g.prop): g for g in every}
    proven = [[claims[id(p)] for p in r.proven] for r in rounds]
    budget.tell("confirming the proof", max(r.k for r in rounds), len(asked))
    return _starts(encoding, rounds, proven, budget) and _steps(encoding, rounds, proven, budget)


def _starts(encoding: Encoding, rounds: Sequence[Round], proven: list[list[Goal]], budget: Budget) -> bool:
    search = Search(encoding, [g for claims in proven for g in claims], budget)
    search.to(max(r.k for r in rounds) - 1)
    if search.findings or search.mistake is not None:
        raise ReplayFailure("a claim that was proved is false near the initial states")
    return not search.given_up and not search.blind


def _steps(encoding: Encoding, rounds: Sequence[Round], proven: list[list[Goal]], budget: Budget) -> bool:
    facts: list[Goal] = []
    safe = False
    for r, claims in zip(rounds, proven, strict=True):
        fragment = Fragment(encoding, r.k, simple=r.simple)
        solver = Solver(encoding, budget)
        solver.add(*fragment.frame(safe=safe), *map(fragment.never, facts), *map(fragment.kept, claims))
        for event in (*map(fragment.broken, claims), *((fragment.misbehaved(),) if r.safe and not safe else ())):
            match solver.ask(event):
                case Answer.YES:
                    raise ReplayFailure(f"a claim that was proved is not inductive of strength {r.k}")
                case Answer.UNKNOWN:
                    return False
        facts += claims
        safe = safe or r.safe
    return safe
