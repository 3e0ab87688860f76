"""Proofs for every size by induction, with claims that nobody wrote.

Everything that may help is assumed before a step and must hold after it: properties, lemmas, and candidates that were
discovered. What a step breaks is taken out, and the rest is tried again, until nothing breaks (Houdini): what stays supports
itself. All of it rests on the claim that the model makes no mistake, which is proved with the rest or nothing is.

Then the proof is made small: it starts from the properties alone, and each counterexample to it calls for one claim that
excludes it. What is called proved has been shown once more at the end, by one plain query for each claim and rule, in new
solvers, from no more than the claims that the proof names.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import field

from streamproof import interrupts
from streamproof.symbolic.parametric.claims import ParametricClaim, claim
from streamproof.symbolic.parametric.showing import ParametricCti, shown
from streamproof.symbolic.parametric.steps import SAFE, StepQuestions, SwitchedSolver
from streamproof.symbolic.solver import INTERRUPTED, Effort, SolverAnswer, SolverBudget, Stopped
from streamproof.system import build as b
from streamproof.system.model import Property
from streamproof.system.records import dataclass
from streamproof.system.unbounded import Parametric

Stage = Callable[[], Sequence[ParametricClaim]]
"""Finds candidates; called only when those of the stages before were not enough."""


@dataclass(frozen=True)
class AnySize:
    """What was proved for every value of the free parameters.

    `proved` are names of properties; `lemmas` the written lemmas and `found` the discovered claims that their one proof
    uses. `ctis` say why other properties, or the absence of mistakes, are not inductive. `unknown` are those on which the
    solver gave up. `candidates` is how many discovered claims were tried. `stopped`: what ended the attempt early.
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
    """The claims of the finished proof: `proved`, `lemmas` and `found` with what they say."""


def prove_any(
    parametric: Parametric,
    properties: Sequence[Property],
    stages: Sequence[Stage] = (),
    *,
    timeout: int | None = 10_000,
    seconds: float | None = None,
    on_progress: Callable[[Effort], None] | None = None,
) -> AnySize:
    """Prove `properties` for every value of the free parameters, with the system's lemmas and discovered claims as help.

    `timeout` bounds one query, in milliseconds, `seconds` the whole run. Raises `ModelError` for terms outside the
    fragment in which such proofs are made, at their line.
    """
    budget = SolverBudget(timeout, seconds, on_progress)
    written = [c for p in (*properties, *parametric.system.lemmas) if (c := claim(parametric, p)) is not None]
    wanted = [p.name for p in properties]
    helpful: list[ParametricClaim] = []
    tried = 0
    attempt = _Attempt(parametric, written, wanted, budget)
    stopped = None
    collecting = gc.isenabled()
    gc.disable()  # terms make no cycles, and looking for some takes three times as long as making them
    try:
        with interrupts.limited(seconds), interrupts.doing("proving"):
            for stage in ((), *stages):
                if callable(stage):
                    known = {c.name for c in (*written, *helpful)}
                    new = [c for c in stage() if c.name not in known]
                    tried += len(new)
                    if not new:
                        continue
                    attempt = _Attempt(parametric, [*written, *helpful, *new], wanted, budget)
                attempt.run()
                if attempt.complete:
                    break
                helpful = [c for c in attempt.alive.values() if c.found]
    except Stopped as stop:
        stopped = stop.why
    except interrupts.TimeUp:
        stopped = budget.out_of_time().why
    except KeyboardInterrupt:
        stopped = INTERRUPTED
    finally:
        if collecting:
            gc.enable()
    proved = tuple(n for n in wanted if n in attempt.proof)
    lemmas = tuple(p.name for p in parametric.system.lemmas if p.name in attempt.proof)
    found = tuple(c.name for c in attempt.claims if c.found and c.name in attempt.proof)
    ctis = {n: c for n, c in attempt.ctis.items() if n not in proved and (n in wanted or n == SAFE)}
    unknown = tuple(dict.fromkeys(n for n in attempt.unknown if n in wanted or n == SAFE))
    claims = tuple(c for c in attempt.claims if c.name in attempt.proof)
    return AnySize(proved, lemmas, found, ctis, unknown, tried, budget.queries, budget.elapsed, stopped, claims)


@dataclass
class _Attempt:
    """One induction over claims. `alive` are those that nothing has broken yet, `proof` those of the finished proof."""

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
        """Whether everything wanted is proved."""
        return all(name in self.proof for name in self.wanted)

    def run(self) -> None:
        """The whole induction. Raises `Stopped`."""
        self.alive = {c.name: c for c in (*self.claims, ParametricClaim(SAFE, b.TRUE))}
        claims = list(self.alive.values())
        steps = StepQuestions(self.parametric, claims, self.budget)
        first = steps.first()
        self._sift(first)
        asked = steps.each()
        before = -1
        while SAFE in self.alive and any(n in self.alive for n in self.wanted) and before != len(self.alive):
            before = len(self.alive)
            for one in asked:
                self._sift(one)
        if SAFE in self.alive:
            wanted = [n for n in self.wanted if n in self.alive]
            needed = self._needed(wanted, asked)
            if all(one.shown(n, needed) for n in (*needed, SAFE) for one in (first, *asked)):
                self.proof = tuple(needed)
            else:
                self.unknown += wanted

    def _sift(self, asked: SwitchedSolver) -> None:
        """Takes out what this question shows to be broken, until it shows nothing more."""
        while True:
            self.budget.tell("induction for every size", 1, len(self.alive))
            answer, names = asked.broken(list(self.alive), list(self.alive))
            if answer is SolverAnswer.NO:
                return
            if answer is SolverAnswer.UNKNOWN:
                names = self._undecided(asked)
                if not names:
                    return
            for name in names:
                if answer is SolverAnswer.YES:
                    self.ctis[name] = shown(self.parametric, asked, name)
                del self.alive[name]

    def _undecided(self, asked: SwitchedSolver) -> list[str]:
        """The claims that this question breaks, or does not decide, when it is put for each of them alone."""
        gone = []
        for name in list(self.alive):
            answer, _ = asked.broken([name], list(self.alive))
            if answer is SolverAnswer.UNKNOWN:
                self.unknown.append(name)
            if answer is not SolverAnswer.NO:
                gone.append(name)
        return gone

    def _needed(self, wanted: Sequence[str], asked: Sequence[SwitchedSolver]) -> list[str]:
        """Claims that support each other and everything wanted; one is added where a counterexample calls for it."""
        chosen = dict.fromkeys(wanted)
        pending = [*wanted, SAFE] if wanted else []
        while pending:
            goal = pending.pop(0)
            for one in asked:
                self.budget.tell("making the proof small", 1, len(pending) + 1)
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
