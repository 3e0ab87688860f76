"""k-induction: what cannot become false after k steps of keeping true, if it is true at first.

One round of strength k looks at every fragment of a behaviour, k steps long, that keeps the *hypothesis*: in its first k
states nothing that is to be proved has happened. If then it cannot happen in the last state (or the last step) either,
and behaviours of up to k - 1 steps from the initial states do not show it, it never happens.

Everything is proved together: properties and lemmas may rest on each other. What does not follow is taken out of the
hypothesis and the rest is tried again; what stays is the largest set that supports itself, so a lemma that fails costs
nothing but what rests on it.

All of it rests on two things that make the formulas mean what the interpreter means: `Encoding.wellformed` holds and
`Encoding.mistake` does not. Both are assumed along every fragment and are claims to be proved themselves, called being
*safe* below. What is proved while they are not is true up to the first mistake of the model: enough to build on in a
later round (whose fragments make no mistake before their end either), not enough for a verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal, goals
from streamproof.symbolic.replay import Replay, ReplayFailure
from streamproof.symbolic.solver import Solver, SolverAnswer, SolverBudget
from streamproof.symbolic.theory import Term
from streamproof.system.model import Property
from streamproof.system.records import dataclass
from streamproof.system.verdict import Trace

NO_MISTAKE = "no evaluation error"
"""The name, among the counterexamples to induction, of the claim that the model never makes a mistake."""

MOST_TRIED = 100
"""Claims that another may rest on for each of them to be tried without: it costs a query each."""
TRACING = 10.0
"""Seconds for finding out on what the claims of one round rest; then they are said to rest on everything."""


@dataclass(frozen=True, slots=True)
class Cti:
    """A counterexample to induction: why a claim (`of`) is not inductive of strength `k`.

    The behaviour starts in a state that satisfies everything assumed, and after `k` steps the claim is broken (`because`
    says how). Its states **may be unreachable**: then a lemma that excludes the first of them is what the proof lacks.
    """

    of: str
    k: int
    trace: Trace
    because: str


class Fragment:
    """The formulas of one round over a path of `k` steps: what is assumed of it, and what must not happen at its end.

    `facts` were proved before and hold at every position. With `simple` the states are pairwise different, which loses
    nothing: the shortest way to the first thing that goes wrong visits no state twice. (The last state of a broken step
    may be one of the earlier ones, so only the claims on states may use that it is new.)
    """

    def __init__(self, encoding: Encoding, k: int, *, simple: bool) -> None:
        self._encoding = encoding
        self.k = k
        self._simple = simple

    def frame(self, *, safe: bool) -> list[Term]:
        """Any k steps of a well-behaved system; `safe`: the last state is known to be, too."""
        at, states = self._encoding.at, range(self.k)
        behaved = [at(self._encoding.wellformed, n) for n in (*states, *([self.k] if safe else []))]
        behaved += [at(self._encoding.no(self._encoding.mistake), n) for n in (*states, *([self.k] if safe else []))]
        steps = [at(self._encoding.transition, n) for n in states]
        return [*behaved, *steps, *([self._encoding.distinct(self.k)] if self._simple else [])]

    def kept(self, goal: Goal) -> Term:
        """The hypothesis: the goal's event is not seen before the end of the path."""
        places = range(self.k - 1) if goal.step else range(self.k)
        return self._encoding.all_of(self._encoding.no(self._encoding.at(goal.event, n)) for n in places)

    def never(self, goal: Goal) -> Term:
        """A fact: the goal's event is not seen anywhere on the path."""
        places = range(self.k) if goal.step else range(self.k + 1)
        return self._encoding.all_of(self._encoding.no(self._encoding.at(goal.event, n)) for n in places)

    def broken(self, goal: Goal) -> Term:
        """The goal's event is seen at the end of the path."""
        if goal.step:
            return self._encoding.at(goal.event, self.k - 1)
        return self._new(self._encoding.at(goal.event, self.k))

    def misbehaved(self) -> Term:
        """The last state is one that makes a mistake, or none that its sorts allow."""
        at = self._encoding.at
        wrong = [at(self._encoding.mistake, self.k), at(self._encoding.no(self._encoding.wellformed), self.k)]
        return self._new(self._encoding.any_of(wrong))

    def _new(self, event: Term) -> Term:
        if not self._simple:
            return event
        return self._encoding.all_of([event, *(self._encoding.differ(n, self.k) for n in range(self.k))])


Claim: TypeAlias = Property | None
"""A property or lemma; None is the claim that the system is safe."""


@dataclass
class Round:
    """What one round proved, and why not more.

    Unless the system is known to be `safe`, now or before, what is `proven` is true up to its first mistake only.
    `rests_on` says on which properties and lemmas the solver's proof of a claim rests, for the claims that were wanted
    and those they rest on. `unknown`: claims on which it gave up. `simple`: only loop-free fragments were looked at.
    `integers`: which kind of numbers it was done with.
    """

    k: int
    proven: list[Property]
    safe: bool
    simple: bool
    integers: bool
    ctis: dict[Claim, Cti] = field(default_factory=dict)
    unknown: set[Claim] = field(default_factory=set)
    rests_on: dict[Claim, frozenset[Property]] = field(default_factory=dict)


class Induction:
    """Rounds of induction over the properties and lemmas of one system, in one encoding."""

    def __init__(self, encoding: Encoding, properties: Iterable[Property], budget: SolverBudget) -> None:
        self._encoding = encoding
        self._budget = budget
        self._replay = Replay(encoding)
        self._goals = {g.prop: g for g in goals(encoding, properties)}

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
        """The largest set of candidates that is inductive of strength `k` beside the facts. Raises `Stopped`.

        On what a claim rests is found out for those `wanted`, and for what they rest on. It is for the caller to show that
        no candidate's event is seen within k - 1 steps of the initial states.
        """
        fragment = Fragment(self._encoding, k, simple=simple)
        solver = Solver(self._encoding, self._budget)
        solver.add(*fragment.frame(safe=safe))
        result = Round(k, list(candidates), safe, simple, self._encoding.integers)
        given = {p: self._switch(solver, f"given {n}", fragment.never(self._goals[p])) for n, p in enumerate(facts)}
        kept = {p: self._switch(solver, f"kept {n}", fragment.kept(self._goals[p])) for n, p in enumerate(candidates)}
        broken: dict[Claim, Term] = {p: fragment.broken(self._goals[p]) for p in candidates}
        if not safe:
            broken[None] = fragment.misbehaved()
        while broken:
            self._budget.tell(f"induction of strength {k}", k, len(broken))
            lost = self._lost(solver, [*given.values(), *(kept[p] for p in result.proven)], broken, result)
            if not lost:
                break
            for claim in lost:
                del broken[claim]
            result.proven = [p for p in result.proven if p not in lost]
        result.safe = safe or None in broken
        self._trace_back(solver, {**given, **{p: kept[p] for p in result.proven}}, broken, wanted, result)
        return result

    def _switch(self, solver: Solver, name: str, formula: Term) -> Term:
        switch = self._encoding.switch(name)
        solver.add(self._encoding.any_of([self._encoding.no(switch), formula]))
        return switch

    def _lost(
        self, solver: Solver, assumptions: Sequence[Term], broken: dict[Claim, Term], result: Round
    ) -> Collection[Claim]:
        """Some of the claims that do not follow from the assumptions; none when all do."""
        match solver.ask(self._encoding.any_of(broken.values()), assumptions):
            case SolverAnswer.NO:
                return ()
            case SolverAnswer.YES:
                return self._seen(solver, broken, result)
            case SolverAnswer.UNKNOWN:
                lost: set[Claim] = set()
                for claim, event in broken.items():
                    if claim in lost:
                        continue
                    answer = solver.ask(event, assumptions)
                    if answer is SolverAnswer.YES:
                        lost.update(self._seen(solver, broken, result))
                    elif answer is SolverAnswer.UNKNOWN:
                        lost.add(claim)
                        result.unknown.add(claim)
                return lost

    def _seen(self, solver: Solver, broken: dict[Claim, Term], result: Round) -> list[Claim]:
        """The claims that the solver's model breaks; each remembers it as its counterexample to induction."""
        trace = self._replay.fragment(solver.model, result.k)
        seen = [claim for claim, event in broken.items() if solver.true(event)]
        if not seen:
            raise ReplayFailure(f"a step to {trace.states[-1]} breaks nothing")
        for claim in seen:
            if claim is None:
                result.ctis[None] = Cti(NO_MISTAKE, result.k, trace, self._replay.mistake(trace.states[-1]))
                continue
            judged = self._replay.judge(claim, trace)
            if judged is None:
                raise ReplayFailure(f"{claim.name} is not broken in {trace.states[-1]}")
            result.ctis[claim] = Cti(claim.name, result.k, trace, judged.because)
        return seen

    def _trace_back(
        self,
        solver: Solver,
        switches: dict[Property, Term],
        broken: dict[Claim, Term],
        wanted: Collection[Property],
        result: Round,
    ) -> None:
        """On what the claims wanted rest, directly or not; only where there is something beside a claim to rest on."""
        if len(switches) < 2:
            return
        properties, assumptions = list(switches), list(switches.values())
        pending: list[Claim] = [claim for claim in broken if claim is None or claim in wanted]
        supporting: set[int] = set()
        end = self._budget.effort + TRACING
        while pending:
            claim = pending.pop()
            if claim in result.rests_on:
                continue
            needed = set(range(len(properties)))
            if self._budget.effort < end and solver.ask(broken[claim], assumptions) is SolverAnswer.NO:
                needed = set(solver.core(assumptions))
                # The core may be larger than it must be. What supports other claims already is the last to be tried
                # without; lemmas come last in order, and are tried before what was asked for.
                for n in sorted(needed, key=lambda n: (n not in supporting, n), reverse=True):
                    if (
                        len(needed) <= MOST_TRIED
                        and self._budget.effort < end
                        and solver.ask(broken[claim], [assumptions[m] for m in needed - {n}]) is SolverAnswer.NO
                    ):
                        needed.discard(n)
            supporting |= needed
            result.rests_on[claim] = frozenset(properties[n] for n in needed)
            pending += [p for p in result.rests_on[claim] if p in broken]
