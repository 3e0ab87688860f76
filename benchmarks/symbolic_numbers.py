"""Bit-vectors against integers in the symbolic engine: the same bounded searches and proofs with both.

    python benchmarks/symbolic_numbers.py [--timeout 60]

Each row is one task: the seconds it took with bit-vectors and with the solver's integers, and their quotient (above 1:
bit-vectors are faster). A query that takes longer than the timeout, in seconds, is shown as its limit with a ">". The
verdicts of both are compared; exits with 1 if both are decided and differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamproof import Array, Model, Range, State, action, invariant, require
from streamproof.symbolic.bmc import bmc
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.induction import Induction
from streamproof.symbolic.solver import SolverBudget
from streamproof.system import System
from streamproof.transform.scalarise import scalarise
from streamproof_models.reference.async_termination_detection import AsyncTerminationDetection
from streamproof_models.reference.dining_philosophers import DiningPhilosophers
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit


class Tokens(Model):
    """Tokens passed around a ring: none is lost. The rules contain only sums."""

    places: int = 12

    def state(self) -> State:
        """Three tokens at every place."""
        return State(held=Array(range(self.places), Range(0, 9, init=3)))

    @action(i="places")
    def hand_on(self, s: Any, i: int) -> None:
        """A token moves from one place to the next."""
        require(s.held[i] > 0 and s.held[(i + 1) % self.places] < 9)
        s.held[i] -= 1
        s.held[(i + 1) % self.places] += 1

    @invariant
    def none_lost(self, s: Any) -> bool:
        """The number of tokens is constant."""
        return bool(sum(s.held[i] for i in range(self.places)) == 3 * self.places)


@dataclass(frozen=True)
class Task:
    """A task for both kinds of numbers; `run` returns its time in seconds and its result."""

    name: str
    run: Callable[[bool, float], tuple[float, tuple[str, ...]]]


def search(system: System, depth: int) -> Task:
    """A bounded search; the result is the verdict on each property."""

    def run(integers: bool, query_limit: float) -> tuple[float, tuple[str, ...]]:
        result = bmc(system, depth, query_limit=query_limit, completeness=False, integers=integers)
        given_up = result.depth < depth and not result.complete and any("gave up" in f.because for f in result.findings)
        return result.seconds.total, ("unknown",) if given_up else tuple(f.verdict.value for f in result.findings)

    return Task(f"{system.name}, search to depth {depth}", run)


def proof(system: System) -> Task:
    """One round of induction of strength 1; the result is the list of proved properties."""

    def run(integers: bool, query_limit: float) -> tuple[float, tuple[str, ...]]:
        budget = SolverBudget(query_limit)
        induction = Induction(Encoding(scalarise(system), integers=integers), system.properties, budget)
        result = induction.round(1, system.properties, (), safe=False, simple=False, wanted=())
        return budget.elapsed, ("unknown",) if result.unknown else tuple(p.name for p in result.proven)

    return Task(f"{system.name} of {len(system.instances)}, induction", run)


TASKS = (
    search(TwoPhaseCommit().system(), 10),
    search(DiningPhilosophers().system(), 12),
    search(AsyncTerminationDetection().system(), 12),
    search(Ewd998().system(), 8),
    proof(Tokens(places=6).system()),
    proof(Tokens(places=12).system()),
)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Bit-vectors against integers in the symbolic engine.")
    parser.add_argument("--timeout", type=float, default=60, help="seconds a query may take (default 60)")
    limit = parser.parse_args().timeout
    print(f"{'task':<56} {'bits, s':>9} {'integers, s':>12} {'quotient':>9}")
    differ = False
    for task in TASKS:
        bits, found = task.run(False, limit)
        integers, found_too = task.run(True, limit)
        shown = [
            f"{'>' if result == ('unknown',) else ''}{seconds:.2f}"
            for seconds, result in ((bits, found), (integers, found_too))
        ]
        print(f"{task.name:<56} {shown[0]:>9} {shown[1]:>12} {integers / bits:>9.2f}", flush=True)
        if found != found_too and ("unknown",) not in (found, found_too):
            print(f"  they disagree: {found} and {found_too}", file=sys.stderr)
            differ = True
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
