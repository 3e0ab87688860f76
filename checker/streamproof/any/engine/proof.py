"""Inductive proofs for every parameter value, with discovered claims.

Properties, lemmas and discovered candidates are assumed before a step and must hold after it. Claims that a step breaks
are removed and the rest is tried again (Houdini); the result is the largest inductive set. All of it depends on the
claim that the model makes no error, which is proved with the rest or the proof fails.

Then the proof is minimised: it starts from the properties alone, and each counterexample to induction adds one claim
that excludes it. Finally each claim is checked once more, by one query per claim and rule, in new solvers, from no more
than the claims that the proof names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from streamproof.any.engine.claims import ParametricClaim, claim
from streamproof.any.engine.showing import ParametricCti, shown
from streamproof.any.engine.steps import SAFE, StepQuestions, SwitchedSolver
from streamproof.base.options import uncollected
from streamproof.base.records import dataclass
from streamproof.symbolic.solver import Effort, SolverAnswer, SolverBudget
from streamproof.system import build as b
from streamproof.system.model import Property
from streamproof.transform.unbounded import Parametric

Stage = Callable[[], Sequence[ParametricClaim]]
"""Generates candidates; called only if those of earlier stages do not suffice."""


@dataclass(frozen=True)
class AnySize:
    """The result of a proof for every value of the free parameters.

    `proved` are names of properties; `lemmas` are the written lemmas and `found` the discovered claims that the common
    proof uses. `ctis` are the counterexamples to induction of other properties, or of the absence of errors. `unknown`
    are undecided properties. `candidates` is the number of discovered claims that were tried. `stopped`: the reason for
    an early end.
    """

    proved: tuple[str, ...]
    lemmas: tuple[str, ...]
    found: tuple[str, ...]
    ctis: dict[str, ParametricCti]
    unknown: tuple[str, ...]
    candidates: int
    queries: int
    seconds: float
    stopped: str | None = None
    claims: tuple[ParametricClaim, ...] = ()
    """The claims of the finished proof: `proved`, `lemmas` and `found` with their conditions."""


NOTHING_PROVED = AnySize((), (), (), {}, (), 0, 0, 0.0)
"""The result before a proof."""


def prove_any(
    parametric: Parametric,
    properties: Sequence[Property],
    stages: Sequence[Stage] = (),
    *,
    query_limit: float | None = 10.0,
    seconds: float | None = None,
    on_progress: Callable[[Effort], None] | None = None,
) -> AnySize:
    """Proves `properties` for every value of the free parameters, with the system's lemmas and discovered claims.

    This is the engine alone: `any.every_size` adds the cross-checks.

    `query_limit` limits one query, `seconds` the whole run, both in seconds. Raises `ModelError` for terms outside the
    supported fragment, at their line.
    """
    budget = SolverBudget(query_limit, seconds, on_progress)
    written = [c for p in (*properties, *parametric.system.lemmas) if (c := claim(parametric, p)) is not None]
    wanted = [p.name for p in properties]
    helpful: list[ParametricClaim] = []
    tried = 0
    attempt = _ClaimInduction(parametric, written, wanted, budget)

    def work() -> None:
        nonlocal attempt, helpful, tried
        for stage in ((), *stages):
            if callable(stage):
                known = {c.name for c in (*written, *helpful)}
                new = [c for c in stage() if c.name not in known]
                tried += len(new)
                if not new:
                    continue
                attempt = _ClaimInduction(parametric, [*written, *helpful, *new], wanted, budget)
            attempt.run()
            if attempt.complete:
                break
            helpful = [c for c in attempt.alive.values() if c.found]

    with uncollected():  # the collector would take three times as long as building the terms
        budget.run("proving", work)
    proved = tuple(n for n in wanted if n in attempt.proof)
    lemmas = tuple(p.name for p in parametric.system.lemmas if p.name in attempt.proof)
    found = tuple(c.name for c in attempt.claims if c.found and c.name in attempt.proof)
    ctis = {n: c for n, c in attempt.ctis.items() if n not in proved and (n in wanted or n == SAFE)}
    unknown = tuple(dict.fromkeys(n for n in attempt.unknown if n in wanted or n == SAFE))
    claims = tuple(c for c in attempt.claims if c.name in attempt.proof)
    return AnySize(proved, lemmas, found, ctis, unknown, tried, budget.queries, budget.elapsed, budget.stopped, claims)


@dataclass
class _ClaimInduction:
    """One induction over claims. `alive` are the claims not yet broken, `proof` those of the finished proof."""

    parametric: Parametric
    claims: Sequence[ParametricClaim]
    wanted: Sequence[str]
    budget: SolverBudget
    alive: dict[str, ParametricClaim] = field(default_factory=dict)
    proof: tuple[str, ...] = ()
    ctis: dict[str, ParametricCti] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether all wanted properties are proved."""
        return all(name in self.proof for name in self.wanted)

    def run(self) -> None:
        """The whole induction. Raises `Stopped`."""
        self.alive = {c.name: c for c in (*self.claims, ParametricClaim(SAFE, b.TRUE))}
        claims = list(self.alive.values())
        steps = StepQuestions(self.parametric, claims, self.budget)
        first = steps.first()
        self._sift(first)
        query = steps.each()
        before = -1
        while SAFE in self.alive and any(n in self.alive for n in self.wanted) and before != len(self.alive):
            before = len(self.alive)
            for one in query:
                self._sift(one)
        if SAFE in self.alive:
            wanted = [n for n in self.wanted if n in self.alive]
            needed = self._needed(wanted, query)
            if all(one.shown(n, needed) for n in (*needed, SAFE) for one in (first, *query)):
                self.proof = tuple(needed)
            else:
                self.unknown += wanted

    def _sift(self, query: SwitchedSolver) -> None:
        """Removes the claims that this query can break, until it can break none."""
        while True:
            self.budget.report("induction for every size", 1, len(self.alive))
            answer, names = query.broken(list(self.alive), list(self.alive))
            if answer is SolverAnswer.NO:
                return
            if answer is SolverAnswer.UNKNOWN:
                names = self._undecided(query)
                if not names:
                    return
            for name in names:
                if answer is SolverAnswer.YES:
                    self.ctis[name] = shown(self.parametric, query, name)
                del self.alive[name]

    def _undecided(self, query: SwitchedSolver) -> list[str]:
        """The claims that this query breaks, or cannot decide, one by one."""
        gone = []
        for name in list(self.alive):
            answer, _ = query.broken([name], list(self.alive))
            if answer is SolverAnswer.UNKNOWN:
                self.unknown.append(name)
            if answer is not SolverAnswer.NO:
                gone.append(name)
        return gone

    def _needed(self, wanted: Sequence[str], query: Sequence[SwitchedSolver]) -> list[str]:
        """An inductive set with all wanted claims; each counterexample adds one claim."""
        chosen = dict.fromkeys(wanted)
        pending = [*wanted, SAFE] if wanted else []
        while pending:
            goal = pending.pop(0)
            for one in query:
                self.budget.report("making the proof small", 1, len(pending) + 1)
                while (answer := one.broken([goal], list(chosen))[0]) is not SolverAnswer.NO:
                    name = (
                        one.excluding([n for n in self.alive if n not in chosen])
                        if answer is SolverAnswer.YES
                        else None
                    )
                    if name is None:
                        return [n for n in self.alive if n != SAFE]
                    chosen[name] = None
                    pending.append(name)
        return list(chosen)
