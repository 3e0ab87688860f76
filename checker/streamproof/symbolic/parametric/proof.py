"""Proofs for every size by induction, with claims that nobody wrote.

Everything that may help is assumed before a step and must hold after it: properties, lemmas, and candidates that were
discovered. What a step breaks is taken out, and the rest is tried again, until nothing breaks (Houdini): what stays supports
itself. All of it rests on the claim that the model makes no mistake, which is proved with the rest or nothing is.

What is called proved has been shown again, query by query in new solvers, from no more than what it is said to rest on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streamproof.symbolic.parametric.claims import Claim, claim
from streamproof.symbolic.parametric.showing import Cti, shown
from streamproof.symbolic.parametric.steps import SAFE, Asked, Steps
from streamproof.symbolic.solver import INTERRUPTED, Answer, Budget, Effort, Stopped
from streamproof.system import build as b
from streamproof.system.model import Property
from streamproof.system.unbounded import Parametric


@dataclass(frozen=True)
class AnySize:
    """What was proved for every value of the free parameters.

    `proved` are names of properties, with the lemmas that each rests on (written and discovered ones) in `uses`; `lemmas`
    are the texts of the discovered ones. `ctis`: why the others are not inductive. `unknown`: on which the solver gave up.
    `stopped`: what ended the attempt early.
    """

    proved: tuple[str, ...]
    uses: Mapping[str, tuple[str, ...]]
    lemmas: Mapping[str, str]
    ctis: Mapping[str, Cti]
    unknown: tuple[str, ...]
    queries: int
    seconds: float
    stopped: str | None = None


def prove_any(
    parametric: Parametric,
    properties: Sequence[Property],
    candidates: Sequence[Claim] = (),
    *,
    timeout: int | None = 10_000,
    seconds: float | None = None,
    on_progress: Callable[[Effort], None] | None = None,
) -> AnySize:
    """Prove `properties` for every value of the free parameters, with the system's lemmas and `candidates` as help.

    `timeout` bounds one query, in milliseconds, `seconds` the whole run. Raises `ModelError` for terms outside the
    fragment in which such proofs are made, at their line.
    """
    attempt = _Attempt(parametric, properties, candidates, Budget(timeout, seconds, on_progress))
    stopped = None
    try:
        attempt.run()
    except Stopped as stop:
        stopped = stop.why
    except KeyboardInterrupt:
        stopped = INTERRUPTED
    return attempt.answer(stopped)


@dataclass
class _Attempt:
    parametric: Parametric
    properties: Sequence[Property]
    candidates: Sequence[Claim]
    budget: Budget
    alive: dict[str, Claim] = field(default_factory=dict)
    ctis: dict[str, Cti] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    uses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """The whole proof. Raises `Stopped`."""
        wanted = [claim(self.parametric, p) for p in (*self.properties, *self.parametric.system.lemmas)]
        for c in (*wanted, *self.candidates):
            if c is not None:
                self.alive.setdefault(c.name, c)
        self.alive[SAFE] = Claim(SAFE, b.TRUE)
        steps = Steps(self.parametric, self.budget)
        claims = list(self.alive.values())
        first = steps.first(claims)
        self._sift(first)
        asked = [steps.step(i, claims) for i in self.parametric.system.instances]
        while SAFE in self.alive:
            before = len(self.alive)
            for one in asked:
                self._sift(one)
            if len(self.alive) == before:
                break
        if SAFE in self.alive:
            self._confirm(first, asked)

    def _sift(self, asked: Asked) -> None:
        """Takes out what this question shows to be broken, until it shows nothing more."""
        while True:
            self.budget.tell("induction for every size", 1, len(self.alive))
            answer, names = asked.broken(list(self.alive), list(self.alive))
            if answer is Answer.NO:
                return
            if answer is Answer.UNKNOWN:
                names = self._one_by_one(asked)
                if not names:
                    return
            for name in names:
                if answer is Answer.YES:
                    self.ctis[name] = shown(self.parametric, asked, name)
                del self.alive[name]

    def _one_by_one(self, asked: Asked) -> list[str]:
        """The claims that this question breaks, or does not decide, when it is put for each of them alone."""
        gone = []
        for name in list(self.alive):
            answer, _ = asked.broken([name], list(self.alive))
            if answer is Answer.UNKNOWN:
                self.unknown.append(name)
            if answer is not Answer.NO:
                gone.append(name)
        return gone

    def _confirm(self, first: Asked, asked: Sequence[Asked]) -> None:
        """Shows again what was asked for, and what it rests on. Raises `Stopped`."""
        wanted = [p.name for p in self.properties if p.name in self.alive]
        pending = [*wanted, SAFE] if wanted else []
        rests: dict[str, tuple[str, ...]] = {}
        while pending:
            name = pending.pop()
            if name in rests:
                continue
            needs = self._support(name, asked)
            if needs is None or not first.shown(name, ()):
                self._give_up(name)
                return
            rests[name] = needs
            pending += needs
        for name, needs in rests.items():
            if not all(one.shown(name, needs) for one in asked):
                self._give_up(name)
                return
        for name in wanted:
            found: dict[str, None] = {}
            pending = [*rests[name], *rests[SAFE]]
            while pending:
                other = pending.pop()
                if other not in found:
                    found[other] = None
                    pending += rests[other]
            self.uses[name] = tuple(n for n in self.alive if n in found and n not in (name, SAFE))

    def _support(self, name: str, asked: Sequence[Asked]) -> tuple[str, ...] | None:
        found: dict[str, None] = {}
        for one in asked:
            needs = one.needs(name, [n for n in self.alive if n != SAFE])
            if needs is None:
                return None
            found |= dict.fromkeys(needs)
        return tuple(found)

    def _give_up(self, name: str) -> None:
        self.unknown.append(name)
        self.uses.clear()

    def answer(self, stopped: str | None) -> AnySize:
        """What came of it."""
        proved = tuple(p.name for p in self.properties if p.name in self.uses)
        used = {n for name in proved for n in self.uses[name]}
        lemmas = {c.name: c.name for c in self.candidates if c.name in used}
        ctis = {n: c for n, c in self.ctis.items() if n not in proved}
        return AnySize(
            proved,
            self.uses,
            lemmas,
            ctis,
            tuple(self.unknown),
            self.budget.queries,
            time.monotonic() - self.started,
            stopped,
        )
