"""Which kind of numbers a round of induction is done with: both are tried, with rising patience.

Bit-vectors decide control states and queues quickly and can take minutes for a sum over a dozen counters, which integers
decide at once; for other claims it is the other way round. Nothing in a claim tells reliably which it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.induction import Induction, Round
from streamproof.symbolic.solver import SolverBudget
from streamproof.system.model import Property

_FIRST = 1_000
"""Milliseconds that a query may take at first before the other kind of numbers gets its turn; ten times more each time."""


class DualArithmetic:
    """Rounds of induction in two encodings of one system; the second is built when it is first needed.

    `integers` says which kind of numbers is tried first.
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
        """As `Induction.round`: the first in which the solver knew everything, or else the one with fewest gaps."""
        best: Round | None = None
        for patience in _rising(self._budget.timeout):
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


def _rising(timeout: int | None) -> Iterator[int]:
    """How long a query may take, time after time, up to the timeout of the run; without one, for ever."""
    patience = _FIRST
    while timeout is None or patience < timeout:
        yield patience
        patience *= 10
    yield timeout
