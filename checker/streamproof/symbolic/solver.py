"""One solver, held to its limits: seeded, a timeout per query, a limit on the whole run, and Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from enum import Enum
from typing import Any

from streamproof import interrupts
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.theory import Term
from streamproof.system.records import dataclass

SEED = 20_241


class Answer(Enum):
    """What the solver says of a query."""

    YES = "satisfiable"
    NO = "unsatisfiable"
    UNKNOWN = "unknown"


class Stopped(Exception):
    """The whole run ends here: interrupted, or out of time. `why` says which."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Effort:
    """What a long run reports: seconds so far, what it is doing, at which depth, and how much is undecided."""

    elapsed: float
    doing: str
    depth: int
    queries: int
    undecided: int


STEPS = 4_000_000
"""Steps of the solver that are taken for a second."""


@dataclass
class Budget:
    """What a run may spend, and what it has spent.

    `timeout` is in milliseconds for one query, `seconds` for the whole run; None means no limit. Where it is `reproducible`,
    time is what the solver counts itself, its steps: the answer is the same on every machine, however busy.
    """

    timeout: int | None = None
    seconds: float | None = None
    on_progress: Callable[[Effort], None] | None = None
    reproducible: bool = False
    queries: int = 0
    started: float = field(default_factory=time.monotonic)
    steps: int = 0
    """Of the solver, as far as they were counted."""

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.steps / STEPS if self.reproducible else time.monotonic() - self.started

    def allowance(self) -> tuple[int | None, bool]:
        """Milliseconds that the next query may take, and whether the run ends with them. Raises `Stopped` at its end."""
        if self.seconds is None:
            return self.timeout, False
        left = self._left(self.seconds)
        if left <= 0:
            raise self.out_of_time()
        return (left, True) if self.timeout is None or left <= self.timeout else (self.timeout, False)

    def _left(self, seconds: float) -> int:
        """Milliseconds until then: what has less than one of them left is over, for a slice as for the run."""
        return int(1000 * min(seconds - self.elapsed, interrupts.left()))

    def out_of_time(self) -> Stopped:
        """What ends a run that has used up its seconds."""
        return Stopped(f"out of time after {interrupts.limit() if self.seconds is None else self.seconds:g} s")

    @contextmanager
    def patience(self, timeout: int) -> Iterator[None]:
        """Within: a query may take no more than `timeout` milliseconds."""
        before = self.timeout
        self.timeout = timeout if before is None else min(before, timeout)
        try:
            yield
        finally:
            self.timeout = before

    @contextmanager
    def slice(self, seconds: float) -> Iterator[None]:
        """Within: at most so many seconds; what is not done by then is left, unless the whole run ends: `Stopped`."""
        before = self.seconds
        end = self.elapsed + seconds
        self.seconds = end if before is None else min(before, end)
        try:
            yield
        except Stopped as stop:
            if stop.why == INTERRUPTED:
                raise
            if before is not None and self._left(before) <= 0:
                self.seconds = before
                raise self.out_of_time() from None
        finally:
            self.seconds = before

    def tell(self, doing: str, depth: int, undecided: int) -> None:
        """Report progress to whoever listens."""
        if self.on_progress is not None:
            self.on_progress(Effort(self.elapsed, doing, depth, self.queries, undecided))


_NO_LIMIT = 2**32 - 1
"""What the solver takes for no timeout."""


class Solver:
    """Assertions that grow, and queries under assumptions."""

    def __init__(self, encoding: Encoding, budget: Budget) -> None:
        import z3

        self._z3 = z3
        self._encoding = encoding
        self._budget = budget
        # Finite-domain procedure: bit-blasts into an incremental SAT solver. Integers need the general one.
        self._solver: Any = (
            z3.Solver(ctx=encoding.ctx) if encoding.integers else z3.SolverFor("QF_FD", ctx=encoding.ctx)
        )
        self._solver.set("random_seed", SEED)
        self._fresh = 0
        self._spent: list[Term] = []
        """The switch of the last query, to be turned off by the next, as the solver's model does not outlive assertions."""
        self._model: Any = None
        self._core: Any = ()

    def add(self, *formulas: Term) -> None:
        """Assert for good."""
        self._solver.add(*formulas)

    def ask(self, formula: Term, assumptions: Sequence[Term] = ()) -> Answer:
        """Whether `formula` is possible beside the assertions and the assumptions. Raises `Stopped`."""
        # A switch of its own instead of push and pop keeps what the solver has learned.
        switch = self._encoding.switch(f"query {self._fresh}")
        self._fresh += 1
        self._solver.add(*self._spent, self._z3.Implies(switch, formula))
        self._spent = [self._encoding.no(switch)]
        return self._check([switch, *assumptions])

    @property
    def model(self) -> Any:
        """The solver's model of the last query, which was possible."""
        # Made when it is asked for: most are not, and making one can take longer than the query.
        if self._model is None:
            self._model = self._solver.model()
        return self._model

    def true(self, formula: Term) -> bool:
        """Whether that model makes `formula` true."""
        return bool(self._z3.is_true(self.model.eval(formula, model_completion=True)))

    def core(self, assumptions: Sequence[Term]) -> tuple[int, ...]:
        """Which of the assumptions the last impossible query needed, by position."""
        names = {c.decl().name() for c in self._core}
        return tuple(k for k, a in enumerate(assumptions) if a.decl().name() in names)

    def _check(self, assumptions: Sequence[Term]) -> Answer:
        allowance, last = self._budget.allowance()
        self._budget.queries += 1
        if self._budget.reproducible:
            self._solver.set("rlimit", 0 if allowance is None else max(1, allowance * STEPS // 1000))
            before = self._steps()
            answer = interrupts.answer(self._solver, *assumptions)
            self._budget.steps += self._steps() - before
        else:
            self._solver.set("timeout", _NO_LIMIT if allowance is None else allowance)
            answer = interrupts.answer(self._solver, *assumptions)
        if answer == self._z3.sat:
            self._model = None
            return Answer.YES
        if answer == self._z3.unsat:
            self._core = self._solver.unsat_core()
            return Answer.NO
        if "interrupt" in self._solver.reason_unknown():
            raise Stopped(INTERRUPTED)
        if last:
            raise self._budget.out_of_time()
        return Answer.UNKNOWN

    def _steps(self) -> int:
        """What the solver has counted so far."""
        statistics = self._solver.statistics()
        names = statistics.keys()
        return int(statistics.get_key_value("rlimit count")) if "rlimit count" in names else 0
