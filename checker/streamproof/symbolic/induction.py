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
from dataclasses import dataclass, field

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal
from streamproof.symbolic.replay import Replay, ReplayFailure
from streamproof.symbolic.solver import Answer, Budget, Solver
from streamproof.symbolic.theory import Term
from streamproof.system.verdict import Trace

NO_MISTAKE = "no evaluation error"
"""The name, among the counterexamples to induction, of the claim that the model never makes a mistake."""


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


@dataclass
class Round:
    """What one round proved, and why not more.

    Unless the system is known to be `safe`, now or before, what is `proven` is true up to its first mistake only.
    `rests_on` says, per proven goal and for being safe (None), on which goals the solver's proof rests. `unknown`: goals
    on which it gave up.
    """

    k: int
    proven: list[Goal]
    safe: bool
    ctis: dict[Goal | None, Cti] = field(default_factory=dict)
    unknown: set[Goal | None] = field(default_factory=set)
    rests_on: dict[Goal | None, frozenset[Goal]] = field(default_factory=dict)


class Induction:
    """Rounds of induction over one system."""

    def __init__(self, encoding: Encoding, budget: Budget, *, simple: bool) -> None:
        self._encoding = encoding
        self._budget = budget
        self._simple = simple
        self._replay = Replay(encoding)

    def round(self, k: int, candidates: Iterable[Goal], facts: Sequence[Goal], *, safe: bool) -> Round:
        """The largest set of candidates that is inductive of strength `k` beside the facts. Raises `Stopped`.

        It is for the caller to show that no candidate's event is seen within k - 1 steps of the initial states.
        """
        fragment = Fragment(self._encoding, k, simple=self._simple and k > 1)
        solver = Solver(self._encoding, self._budget)
        solver.add(*fragment.frame(safe=safe))
        result = Round(k, list(candidates), safe)
        given = {goal: self._switch(solver, f"given {n}", fragment.never(goal)) for n, goal in enumerate(facts)}
        kept = {goal: self._switch(solver, f"kept {n}", fragment.kept(goal)) for n, goal in enumerate(result.proven)}
        broken: dict[Goal | None, Term] = {goal: fragment.broken(goal) for goal in result.proven}
        if not safe:
            broken[None] = fragment.misbehaved()
        while broken:
            assumptions = [*given.values(), *(kept[g] for g in result.proven)]
            self._budget.tell(f"induction of strength {k}", k, len(result.proven))
            lost = self._lost(solver, assumptions, broken, result)
            if not lost:
                break
            for goal in lost:
                del broken[goal]
            result.proven = [g for g in result.proven if g not in lost]
        result.safe = safe or None in broken
        self._trace_back(solver, {**given, **{g: kept[g] for g in result.proven}}, broken, result)
        return result

    def _switch(self, solver: Solver, name: str, formula: Term) -> Term:
        switch = self._encoding.switch(name)
        solver.add(self._encoding.any_of([self._encoding.no(switch), formula]))
        return switch

    def _lost(
        self, solver: Solver, assumptions: Sequence[Term], broken: dict[Goal | None, Term], result: Round
    ) -> Collection[Goal | None]:
        """Some of the claims that do not follow from the assumptions; none when all do."""
        match solver.ask(self._encoding.any_of(broken.values()), assumptions):
            case Answer.NO:
                return ()
            case Answer.YES:
                return self._seen(solver, broken, result)
            case Answer.UNKNOWN:
                lost: set[Goal | None] = set()
                for goal, event in broken.items():
                    if goal in lost:
                        continue
                    answer = solver.ask(event, assumptions)
                    if answer is Answer.YES:
                        lost.update(self._seen(solver, broken, result))
                    elif answer is Answer.UNKNOWN:
                        lost.add(goal)
                        result.unknown.add(goal)
                return lost

    def _seen(self, solver: Solver, broken: dict[Goal | None, Term], result: Round) -> list[Goal | None]:
        """The claims that the solver's model breaks; each remembers it as its counterexample to induction."""
        trace = self._replay.fragment(solver.model, result.k)
        seen = [goal for goal, event in broken.items() if solver.true(event)]
        if not seen:
            raise ReplayFailure(f"a step to {trace.states[-1]} breaks nothing")
        for goal in seen:
            if goal is None:
                result.ctis[None] = Cti(NO_MISTAKE, result.k, trace, self._replay.mistake(trace.states[-1]))
                continue
            finding = self._replay.judge(goal.prop, trace)
            if finding is None:
                raise ReplayFailure(f"{goal.name} is not broken in {trace.states[-1]}")
            result.ctis[goal] = Cti(goal.name, result.k, trace, finding.because)
        return seen

    def _trace_back(
        self, solver: Solver, switches: dict[Goal, Term], broken: dict[Goal | None, Term], result: Round
    ) -> None:
        """Which goals each claim rests on. One query per claim, and only where there are lemmas to tell apart."""
        if not any(goal.lemma for goal in switches):
            return
        goals, assumptions = list(switches), list(switches.values())
        for claim, event in broken.items():
            if solver.ask(event, assumptions) is Answer.NO:
                result.rests_on[claim] = frozenset(goals[n] for n in solver.core(assumptions))
            else:
                result.rests_on[claim] = frozenset(goals)
