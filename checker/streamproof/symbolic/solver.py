"""A Z3 solver with a fixed seed, a time limit per query, a limit on the whole run, and support for Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from enum import Enum
from math import inf
from typing import Any

from streamproof import interrupts
from streamproof.base.records import dataclass
from streamproof.symbolic.theory import SolverContext, Term

SEED = 20_241


class SolverAnswer(Enum):
    """The solver's answer to a query."""

    YES = "satisfiable"
    NO = "unsatisfiable"
    UNKNOWN = "unknown"


class Stopped(Exception):
    """Ends the whole run: interrupted, or out of time. `why` is the reason."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Effort:
    """Progress of a long run: elapsed seconds, current task, depth, queries, and the number of undecided goals."""

    elapsed: float
    doing: str
    depth: int
    queries: int
    undecided: int


STEPS = 4_000_000
"""Number of solver steps that count as one second."""
PER_QUERY = 2_000
"""Minimum number of steps counted for a query."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of the next query (None: unlimited): milliseconds, and solver steps. `ends`: exceeding the
    milliseconds ends the run; `slice_ends`: exceeding the steps ends the slice."""

    milliseconds: int | None
    steps: int | None
    ends: bool
    slice_ends: bool


@dataclass
class SolverBudget:
    """The limits of a run, and the resources used so far.

    `query_limit` limits one query, `seconds` the whole run, both in seconds; None means no limit. Slices and patience, the
    limits between engines, count solver steps: the order of engines is the same on every machine, whatever its load. In
    a `reproducible` run, all limits count solver steps.
    """

    query_limit: float | None = None
    seconds: float | None = None
    on_progress: Callable[[Effort], None] | None = None
    reproducible: bool = False
    queries: int = 0
    started: float = field(default_factory=time.monotonic)
    steps: int = 0
    """Solver steps used."""
    stopped: str | None = None
    """The reason for an early end of the run."""
    _slice: float = inf
    """The step count at which the current slice ends."""
    _patience: float = inf
    """Maximum number of steps per query."""

    @property
    def effort(self) -> float:
        """The steps used so far, converted to seconds."""
        return self.steps / STEPS

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.effort if self.reproducible else time.monotonic() - self.started

    def allowance(self) -> Allowance:
        """The limits of the next query. Raises `Stopped` at the end of the run or slice."""
        wait = None if self.query_limit is None else int(1000 * self.query_limit)  # as Z3 counts
        left, patience = self._slice - self.steps, self._patience
        ends = False
        if self.seconds is not None:
            rest = self._left()
            if rest <= 0:
                raise self.out_of_time()
            ends = not self.reproducible and (wait is None or rest <= wait)
            wait = rest if ends else wait
        if left <= 0:
            raise self.out_of_time()
        if self.reproducible:
            left = min(left, inf if self.seconds is None else self.seconds * STEPS - self.steps)
            patience = min(patience, inf if self.query_limit is None else self.query_limit * STEPS)
            wait = None
        steps = min(left, patience)
        return Allowance(wait, None if steps == inf else max(1, int(steps)), ends, left <= patience)

    def _left(self) -> int:
        """Milliseconds until the end of the run; below 1 the run is over."""
        assert self.seconds is not None
        return int(1000 * min(self.seconds - self.elapsed, interrupts.left()))

    def out_of_time(self) -> Stopped:
        """The `Stopped` exception for a run out of time."""
        return Stopped(f"out of time after {interrupts.limit() if self.seconds is None else self.seconds:g} s")

    def run(self, doing: str, work: Callable[[], object]) -> None:
        """The whole run, which ends early if it is interrupted or out of time: then `stopped` has the reason."""
        try:
            with interrupts.limited(None if self.reproducible else self.seconds), interrupts.doing(doing):
                work()
        except Stopped as stop:
            self.stopped = stop.why
        except interrupts.TimeUp:
            self.stopped = self.out_of_time().why
        except KeyboardInterrupt:
            self.stopped = INTERRUPTED

    @contextmanager
    def patience(self, seconds: float) -> Iterator[None]:
        """Within this context, a query uses at most the steps of `seconds`."""
        before = self._patience
        self._patience = min(before, seconds * STEPS)
        try:
            yield
        finally:
            self._patience = before

    @contextmanager
    def slice(self, seconds: float) -> Iterator[None]:
        """Within this context, at most the steps of `seconds` are used; the body is abandoned at the limit, unless the
        whole run or an outer slice ends: `Stopped`."""
        before = self._slice
        self._slice = min(before, self.steps + seconds * STEPS)
        try:
            yield
        except Stopped as stop:
            over = self.steps >= before or (self.seconds is not None and self._left() <= 0)
            if stop.why == INTERRUPTED or over:
                raise
        finally:
            self._slice = before

    def report(self, doing: str, depth: int, undecided: int) -> None:
        """Reports progress to the listener, if any."""
        if self.on_progress is not None:
            self.on_progress(Effort(self.elapsed, doing, depth, self.queries, undecided))


_NO_LIMIT = 2**32 - 1
"""Z3's value for no timeout."""
_WRAP = 2**32
"""The modulus of Z3's step counter."""


class Solver:
    """A growing set of assertions, with queries under assumptions."""

    def __init__(self, context: SolverContext, budget: SolverBudget) -> None:
        self._context = context
        self._budget = budget
        z3, ctx = context.z3, context.ctx
        # Finite-domain procedure: bit-blasts into an incremental SAT solver. Integers need the general one.
        self._solver: Any = z3.Solver(ctx=ctx) if context.integers else z3.SolverFor("QF_FD", ctx=ctx)
        self._solver.set("random_seed", SEED)
        self._fresh = 0
        self._spent: list[Term] = []
        """The switch of the last query; the next query disables it, because a solver model does not survive new
        assertions."""
        self._model: Any = None
        self._core: Any = ()

    def add(self, *formulas: Term) -> None:
        """Asserts permanently."""
        self._solver.add(*formulas)

    def given(self, name: str, formula: Term) -> Term:
        """A switch that activates a formula."""
        switch = self._context.switch(name)
        self.add(self._context.any_of([self._context.no(switch), formula]))
        return switch

    def check(self, formula: Term, assumptions: Sequence[Term] = ()) -> SolverAnswer:
        """Whether `formula` is satisfiable with the assertions and the assumptions. Raises `Stopped`."""
        # A separate switch instead of push and pop keeps learnt clauses.
        switch = self._context.switch(f"query {self._fresh}")
        self._fresh += 1
        self._solver.add(*self._spent, self._context.z3.Implies(switch, formula))
        self._spent = [self._context.no(switch)]
        answer = checked(self._solver, self._budget, [switch, *assumptions])
        if answer is SolverAnswer.YES:
            self._model = None
        elif answer is SolverAnswer.NO:
            self._core = self._solver.unsat_core()
        return answer

    @property
    def model(self) -> Any:
        """The solver model of the last query, which was satisfiable."""
        # Built on demand: most are not used, and building one can take longer than the query.
        if self._model is None:
            self._model = self._solver.model()
        return self._model

    def true(self, formula: Term) -> bool:
        """Whether that model satisfies `formula`."""
        return bool(self._context.z3.is_true(self.model.eval(formula, model_completion=True)))

    def core(self, assumptions: Sequence[Term]) -> tuple[int, ...]:
        """The unsat core of the last query: positions of assumptions."""
        names = {c.decl().name() for c in self._core}
        return tuple(k for k, a in enumerate(assumptions) if a.decl().name() in names)


def checked(solver: Any, budget: SolverBudget, assumptions: Sequence[Term]) -> SolverAnswer:
    """Z3's answer within the limits; the resources are counted. Raises `Stopped`."""
    import z3

    allowed = budget.allowance()
    budget.queries += 1
    solver.set("rlimit", allowed.steps or 0)
    solver.set("timeout", _NO_LIMIT if allowed.milliseconds is None else allowed.milliseconds)
    before = steps_of(solver)
    answer = interrupts.answer(solver, *assumptions)
    taken = (steps_of(solver) - before) % _WRAP
    budget.steps += taken + PER_QUERY
    if answer == z3.sat:
        return SolverAnswer.YES
    if answer == z3.unsat:
        return SolverAnswer.NO
    if allowed.steps is not None and taken >= allowed.steps:
        if allowed.slice_ends:
            raise budget.out_of_time()
        return SolverAnswer.UNKNOWN
    if "interrupt" in solver.reason_unknown():
        raise Stopped(INTERRUPTED)
    if allowed.ends:
        raise budget.out_of_time()
    return SolverAnswer.UNKNOWN


def steps_of(solver: Any) -> int:
    """The number of steps used by a solver."""
    import z3

    statistics = solver.statistics()
    for at in range(len(statistics)):
        if z3.Z3_stats_get_key(statistics.ctx.ref(), statistics.stats, at) == "rlimit count":
            return int(z3.Z3_stats_get_uint_value(statistics.ctx.ref(), statistics.stats, at))
    return 0
