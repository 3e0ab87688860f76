"""k-induction: a claim that holds in the first k states and is preserved after k steps always holds.

One round of strength k considers every path fragment of k steps that satisfies the *hypothesis*: no claim fails in its
first k states. If then no claim can fail in the last state (or the last step) either, and behaviours of up to k - 1
steps from the initial states show no failure, the claims hold.

All claims are proved together: properties and lemmas may depend on each other. Claims that do not follow are removed
from the hypothesis, and the round is repeated; the result is the largest set that is inductive together, so a failed
lemma only affects the claims that depend on it.

Two conditions make the formulas agree with the interpreter: `Encoding.wellformed` holds and `Encoding.mistake` does
not. Both are assumed along every fragment and are claims to be proved themselves; together they are called *safe*
below. Without that claim, results hold up to the model's first error: enough as lemmas for a later round (whose
fragments contain no error before their end either), not enough for a verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from streamproof.base.records import dataclass
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal, goals
from streamproof.symbolic.replay import Replay, ReplayFailure
from streamproof.symbolic.solver import Solver, SolverAnswer, SolverBudget
from streamproof.symbolic.theory import Term
from streamproof.system.model import Property
from streamproof.system.verdict import Trace

NO_MISTAKE = "no evaluation error"
"""The name, among the counterexamples to induction, of the claim that the model makes no error."""

MOST_TRIED = 100
"""Maximum number of dependencies of a claim that are tested one by one; each test costs a query."""
TRACING = 10.0
"""Time limit, in seconds, of the dependency analysis of one round; beyond it, claims depend on all others."""


@dataclass(frozen=True, slots=True)
class Cti:
    """A counterexample to induction (CTI): why the claim `of` is not inductive of strength `k`.

    The behaviour starts in a state that satisfies every assumption, and after `k` steps the claim is false (`because`
    explains how). Its states **may be unreachable**: then the proof lacks a lemma that excludes the first of them.
    """

    of: str
    k: int
    trace: Trace
    because: str


class Fragment:
    """The formulas of one round over a path of `k` steps: its assumptions, and the events to exclude at its end.

    `facts` were proved before and hold at every position. With `simple` the states are pairwise different, which is
    sound: a shortest path to a failure visits no state twice. (The last state of a failing step may repeat an earlier
    one, so only claims about states may assume that it is new.)
    """

    def __init__(self, encoding: Encoding, k: int, *, simple: bool) -> None:
        self._encoding = encoding
        self.k = k
        self._simple = simple

    def frame(self, *, safe: bool) -> list[Term]:
        """Any k steps of a well-formed system without errors; `safe`: also assumed of the last state."""
        at, states = self._encoding.at, range(self.k)
        behaved = [at(self._encoding.wellformed, n) for n in (*states, *([self.k] if safe else []))]
        behaved += [at(self._encoding.no(self._encoding.mistake), n) for n in (*states, *([self.k] if safe else []))]
        steps = [at(self._encoding.transition, n) for n in states]
        return [*behaved, *steps, *([self._encoding.distinct(self.k)] if self._simple else [])]

    def kept(self, goal: Goal) -> Term:
        """The hypothesis: the goal's event does not occur before the end of the path."""
        places = range(self.k - 1) if goal.step else range(self.k)
        return self._encoding.all_of(self._encoding.no(self._encoding.at(goal.event, n)) for n in places)

    def never(self, goal: Goal) -> Term:
        """A fact: the goal's event does not occur on the path."""
        places = range(self.k) if goal.step else range(self.k + 1)
        return self._encoding.all_of(self._encoding.no(self._encoding.at(goal.event, n)) for n in places)

    def broken(self, goal: Goal) -> Term:
        """The goal's event occurs at the end of the path."""
        if goal.step:
            return self._encoding.at(goal.event, self.k - 1)
        return self._new(self._encoding.at(goal.event, self.k))

    def misbehaved(self) -> Term:
        """The last state has an error, or violates the representation invariant."""
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
    """The result of one round: the proved claims and the counterexamples to induction.

    Unless the system is known to be `safe`, now or before, the claims in `proven` hold only up to its first error.
    `rests_on` gives the dependencies of a claim in the solver's proof, for the wanted claims and their dependencies.
    `unknown`: claims that the solver could not decide. `simple`: only loop-free fragments were considered. `integers`:
    the integer encoding.
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
        """The largest set of candidates that is inductive of strength `k` relative to the facts. Raises `Stopped`.

        Dependencies are computed for the claims in `wanted` and, transitively, for their dependencies. The caller must
        check the base case: no candidate's event within k - 1 steps of the initial states.
        """
        fragment = Fragment(self._encoding, k, simple=simple)
        solver = Solver(self._encoding, self._budget)
        solver.add(*fragment.frame(safe=safe))
        result = Round(k, list(candidates), safe, simple, self._encoding.integers)
        given = {p: solver.given(f"given {n}", fragment.never(self._goals[p])) for n, p in enumerate(facts)}
        kept = {p: solver.given(f"kept {n}", fragment.kept(self._goals[p])) for n, p in enumerate(candidates)}
        broken: dict[Claim, Term] = {p: fragment.broken(self._goals[p]) for p in candidates}
        if not safe:
            broken[None] = fragment.misbehaved()
        while broken:
            self._budget.report(f"induction of strength {k}", k, len(broken))
            lost = self._lost(solver, [*given.values(), *(kept[p] for p in result.proven)], broken, result)
            if not lost:
                break
            for claim in lost:
                del broken[claim]
            result.proven = [p for p in result.proven if p not in lost]
        result.safe = safe or None in broken
        self._trace_back(solver, {**given, **{p: kept[p] for p in result.proven}}, broken, wanted, result)
        return result

    def _lost(
        self, solver: Solver, assumptions: Sequence[Term], broken: dict[Claim, Term], result: Round
    ) -> Collection[Claim]:
        """Some of the claims that do not follow from the assumptions; empty if all follow."""
        match solver.check(self._encoding.any_of(broken.values()), assumptions):
            case SolverAnswer.NO:
                return ()
            case SolverAnswer.YES:
                return self._seen(solver, broken, result)
            case SolverAnswer.UNKNOWN:
                lost: set[Claim] = set()
                for claim, event in broken.items():
                    if claim in lost:
                        continue
                    answer = solver.check(event, assumptions)
                    if answer is SolverAnswer.YES:
                        lost.update(self._seen(solver, broken, result))
                    elif answer is SolverAnswer.UNKNOWN:
                        lost.add(claim)
                        result.unknown.add(claim)
                return lost

    def _seen(self, solver: Solver, broken: dict[Claim, Term], result: Round) -> list[Claim]:
        """The claims that are false in the solver model; it is recorded as their counterexample to induction."""
        trace = self._replay.fragment(solver.model, result.k)
        seen = [claim for claim, event in broken.items() if solver.true(event)]
        if not seen:
            raise ReplayFailure(f"a step to {trace.states[-1]} breaks nothing")
        for claim in seen:
            if claim is None:
                result.ctis[None] = Cti(NO_MISTAKE, result.k, trace, self._replay.mistake(trace.states[-1]))
                continue
            judged = self._replay.decided([claim], trace)[claim]
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
        """The transitive dependencies of the wanted claims, if there is more than one claim."""
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
            if self._budget.effort < end and solver.check(broken[claim], assumptions) is SolverAnswer.NO:
                needed = set(solver.core(assumptions))
                # The core may not be minimal. Claims that are already needed are tested last; lemmas come last in
                # order, and are tested before the requested properties.
                for n in sorted(needed, key=lambda n: (n not in supporting, n), reverse=True):
                    if (
                        len(needed) <= MOST_TRIED
                        and self._budget.effort < end
                        and solver.check(broken[claim], [assumptions[m] for m in needed - {n}]) is SolverAnswer.NO
                    ):
                        needed.discard(n)
            supporting |= needed
            result.rests_on[claim] = frozenset(properties[n] for n in needed)
            pending += [p for p in result.rests_on[claim] if p in broken]
