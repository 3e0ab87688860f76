"""Choice of the integer encoding for a round of induction: both are tried, with growing time limits.

Bit-vectors decide control states and queues quickly, but can take minutes for a sum over a dozen counters, which
integers decide at once; for other claims it is the other way round. No feature of a claim predicts reliably which is
faster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.induction import Induction, Round
from streamproof.symbolic.solver import SolverBudget
from streamproof.system.model import Property

_FIRST = 1.0
"""Initial time limit of a query, in seconds, before the other encoding is tried; each retry multiplies it by ten."""


class DualArithmetic:
    """Rounds of induction in both integer encodings of one system; the second is built on first use.

    `integers`: start with integers instead of bit-vectors.
    """

    def __init__(
        self, encoding: Encoding, properties: Sequence[Property], budget: SolverBudget, *, integers: bool = False
    ) -> None:
        self._order = (integers, not integers)
        self._scalarised = encoding.scalarised
        self._properties = properties
        self._budget = budget
        self._inductions = {encoding.integers: Induction(encoding, properties, budget)}

    def round(
        self,
        k: int,
        candidates: Sequence[Property],
        facts: Sequence[Property],
        *,
        safe: bool,
        simple: bool,
        wanted: Collection[Property],
    ) -> Round:
        """Like `Induction.round`: the first encoding in which the solver decided every query, else the one with the
        fewest undecided ones."""
        best: Round | None = None
        for patience in _rising(self._budget.query_limit):
            with self._budget.patience(patience):
                for integers in self._order:
                    result = self._induction(integers).round(
                        k, candidates, facts, safe=safe, simple=simple, wanted=wanted
                    )
                    if best is None or len(result.unknown) < len(best.unknown):
                        best = result
                    if not result.unknown:
                        return result
        assert best is not None
        return best

    def _induction(self, integers: bool) -> Induction:
        if integers not in self._inductions:
            encoding = Encoding(self._scalarised, integers=integers)
            self._inductions[integers] = Induction(encoding, self._properties, self._budget)
        return self._inductions[integers]


def _rising(most: float | None) -> Iterator[float]:
    """The successive time limits of a query, up to that of the run; an infinite sequence without one."""
    patience = _FIRST
    while most is None or patience < most:
        yield patience
        patience *= 10
    yield most
