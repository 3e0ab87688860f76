"""Houdini: the largest inductive subset of a set of candidates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.solver import Solver, SolverAnswer, SolverBudget
from streamproof.symbolic.theory import Term
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter


def inductive(
    encoding: Encoding, candidates: Sequence[Expr], budget: SolverBudget, known: Sequence[Expr] = ()
) -> tuple[Expr, ...]:
    """The largest set of candidates (conditions on leaves) that is inductive relative to the invariants `known`.

    Candidates that the solver cannot decide are dropped. Well-formed states and steps without a model error are
    assumed, as everywhere in discovery. Raises `Stopped`.
    """
    at = encoding.at
    starting = _Thinning(encoding, candidates, 0, budget)
    starting.solver.add(at(encoding.initial, 0))
    first = starting.left(())
    stepping = _Thinning(encoding, first, 1, budget)
    stepping.solver.add(at(encoding.wellformed, 0), at(encoding.no(encoding.mistake), 0), at(encoding.transition, 0))
    given = encoding.all_of(map(encoding.term, known))
    stepping.solver.add(at(given, 0), at(given, 1))
    return stepping.left(_moved(encoding, first, 0))


class _Thinning:
    """Drops the candidates that can be false at a position, until none can."""

    def __init__(self, encoding: Encoding, candidates: Iterable[Expr], position: int, budget: SolverBudget) -> None:
        self._encoding = encoding
        self._position = position
        self._interpreter = Interpreter(encoding.system)
        self._candidates = tuple(dict.fromkeys(candidates))
        self._broken = [encoding.no(term) for term in _moved(encoding, self._candidates, position)]
        self.solver = Solver(encoding, budget)

    def left(self, assumed: Sequence[Term]) -> tuple[Expr, ...]:
        """The remaining candidates; `assumed` are the candidates at the positions where they may be assumed."""
        switches = [self.solver.given(f"candidate {n}", formula) for n, formula in enumerate(assumed)]
        alive = list(range(len(self._candidates)))
        while alive:
            assumptions = [switches[n] for n in alive] if switches else []
            match self.solver.check(self._encoding.any_of(self._broken[n] for n in alive), assumptions):
                case SolverAnswer.NO:
                    break
                case SolverAnswer.YES:
                    state = self._encoding.state(self.solver.model, self._position)
                    true = self._interpreter.values((self._candidates[n] for n in alive), state)
                    alive = [n for n, holds in zip(alive, true, strict=True) if holds]
                case SolverAnswer.UNKNOWN:
                    alive = [n for n in alive if self.solver.check(self._broken[n], assumptions) is SolverAnswer.NO]
        return tuple(self._candidates[n] for n in alive)


def _moved(encoding: Encoding, conditions: Sequence[Expr], position: int) -> Sequence[Term]:
    """The conditions at a position, by one substitution for all of them."""
    if not conditions:
        return ()
    whole = encoding.at(encoding.all_of(map(encoding.term, conditions)), position)
    return tuple(whole.children())
