"""Bounded search from the initial states by unrolling the transition relation, one step at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal
from streamproof.symbolic.replay import Replay
from streamproof.symbolic.solver import Solver, SolverAnswer, SolverBudget
from streamproof.symbolic.theory import Term
from streamproof.system.model import Property
from streamproof.system.verdict import Finding, Trace, Verdict

CLOSING = 10.0
"""Time limit, in seconds, of the completeness query, which is a by-product of the search."""


class Unrolling:
    """Unrolls the transition relation. After `to(d)`, all behaviours of up to `d` steps are decided.

    * `findings` has the decided properties; their behaviours are shortest, and replayed by the interpreter.
    * `mistake` is a model error and the path to it; the other properties remain undecided.
    * `blind`: the solver could not decide whether there is a model error.
    * `given_up` has, by property, the number of steps covered before the solver could not decide a query.
    * `exhausted`: there are no longer behaviours, or only ones that visit a state twice; the remaining events never occur.
    """

    def __init__(self, encoding: Encoding, goals: Iterable[Goal], budget: SolverBudget) -> None:
        self._encoding = encoding
        self._budget = budget
        self._solver = Solver(encoding, budget)
        self._replay = Replay(encoding)
        self._open = list(goals)
        self._trusted: list[Goal] = []
        self.findings: dict[Property, Finding] = {}
        self.given_up: dict[Property, int] = {}
        self.mistake: tuple[Trace, str] | None = None
        self.blind = False
        self.exhausted = False
        self.empty = False
        self.depth = -1
        """Depth covered completely, in steps; -1 before the initial states are checked."""
        self._solver.add(encoding.at(encoding.initial, 0))

    @property
    def open(self) -> tuple[Property, ...]:
        """The goals not yet decided."""
        return tuple(g.prop for g in self._open)

    @property
    def over(self) -> bool:
        """Whether greater depth cannot decide more goals."""
        return not self._open or self.exhausted or self.blind or self.mistake is not None

    def to(self, depth: int) -> None:
        """Searches until behaviours of `depth` steps are covered, or the search is over. Raises `Stopped`."""
        while self.depth < depth and not self.over:
            self._deeper()

    def remove_goals(self, properties: Collection[Property], *, true: bool) -> None:
        """Removes goals from the search. `true`: their events were proved impossible, which helps with the others."""
        if true:
            self._trusted += [g for g in self._open if g.prop in properties]
        self._drop(properties)

    def close(self) -> bool:
        """Whether every behaviour of `depth` steps visits some state twice; then the search is exhausted."""
        if self.depth < 0 or self.over:
            return self.exhausted
        # Every state is reached without a loop. If no loop-free behaviour has as many steps as were covered, every
        # state was reached before the last step, and so was every step out of it.
        self._budget.report("looking for a longer behaviour without a loop", self.depth, len(self._open))
        with self._budget.patience(CLOSING):
            if self._solver.check(self._encoding.distinct(self.depth + 1)) is SolverAnswer.NO:
                self.exhausted = True
        return self.exhausted

    def _deeper(self) -> None:
        """Covers behaviours of one more step."""
        depth = self.depth + 1
        if depth > 0:
            self._solver.add(self._encoding.at(self._encoding.transition, depth - 1))
            self._solver.add(self._encoding.at(self._encoding.bounds, depth))
            self._solver.add(*(self._never(g, depth) for g in self._trusted))
        self._budget.report("searching", depth, len(self._open))
        if self._solver.check(self._encoding.all_of(())) is SolverAnswer.NO:
            self.exhausted = True
            self.empty = depth == 0
            return
        if depth > 0:
            self._decide([g for g in self._open if g.step], depth)
        self._decide([g for g in self._open if not g.step], depth)
        self._look_for_mistakes(depth)
        self.depth = depth

    def _event(self, goal: Goal, steps: int) -> Term:
        """The goal's event at the end of a behaviour of `steps` steps."""
        return self._encoding.at(goal.event, steps - 1 if goal.step else steps)

    def _never(self, goal: Goal, steps: int) -> Term:
        return self._encoding.no(self._event(goal, steps))

    def _decide(self, goals: Sequence[Goal], steps: int) -> None:
        """Decides the goals whose event is possible at the end of a behaviour of `steps` steps."""
        pending = list(goals)
        while pending:
            match self._solver.check(self._encoding.any_of(self._event(g, steps) for g in pending)):
                case SolverAnswer.NO:
                    self._solver.add(*(self._never(g, steps) for g in pending))
                    return
                case SolverAnswer.YES:
                    trace = self._replay.from_start(self._solver.model, steps)
                    found = self._replay.decided((g.prop for g in pending), trace)
                    for goal in pending:
                        if goal.prop in found and found[goal.prop].verdict is Verdict.ERROR:
                            found |= self._decided_too(goal, steps)
                    self.findings.update(found)
                    self._drop(found)
                    pending = [g for g in pending if g.prop not in found]
                case SolverAnswer.UNKNOWN if len(pending) == 1:
                    self.given_up[pending[0].prop] = steps - 1
                    self._drop([pending[0].prop])
                    return
                case SolverAnswer.UNKNOWN:
                    for goal in pending:
                        self._decide([goal], steps)
                    return

    def _decided_too(self, goal: Goal, steps: int) -> dict[Property, Finding]:
        """The violation or witness at the depth of an evaluation error of the property, which counts only without one."""
        decisive = self._encoding.at(goal.decisive, steps - 1 if goal.step else steps)
        if self._solver.check(decisive) is not SolverAnswer.YES:
            return {}
        return self._replay.decided([goal.prop], self._replay.from_start(self._solver.model, steps))

    def _look_for_mistakes(self, depth: int) -> None:
        mistake = self._encoding.at(self._encoding.mistake, depth)
        match self._solver.check(mistake):
            case SolverAnswer.NO:
                self._solver.add(self._encoding.no(mistake))
            case SolverAnswer.YES:
                trace = self._replay.from_start(self._solver.model, depth)
                self.mistake = trace, self._replay.mistake(trace.states[-1])
            case SolverAnswer.UNKNOWN:
                self.blind = True

    def _drop(self, gone: Collection[Property]) -> None:
        self._open = [g for g in self._open if g.prop not in gone]
