"""All behaviours from the initial states, one step longer at a time; every goal is decided as early as possible."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal
from streamproof.symbolic.replay import Replay, ReplayFailure
from streamproof.symbolic.solver import Answer, Budget, Solver
from streamproof.system.verdict import Finding, Trace


class Search:
    """Unrolls the transition relation. After `to(d)`, everything about behaviours of up to `d` steps is decided.

    * `findings` has what was decided, by goal; behaviours in it are shortest, and replayed by the interpreter.
    * `mistake` is the finding shared by all goals that an evaluation error of the model left undecided.
    * `given_up` has, by goal, how many steps were covered before the solver did not know.
    * `exhausted`: there are no longer behaviours, or only ones that visit a state twice; what was not seen never happens.
    """

    def __init__(self, encoding: Encoding, goals: Iterable[Goal], budget: Budget) -> None:
        self._encoding = encoding
        self._budget = budget
        self._solver = Solver(encoding, budget)
        self._replay = Replay(encoding)
        self.open: list[Goal] = list(goals)
        self.findings: dict[Goal, Finding] = {}
        self.given_up: dict[Goal, int] = {}
        self.mistake: tuple[Trace, str] | None = None
        self.blind = False
        self.exhausted = False
        self.empty = False
        self.depth = -1
        """Steps covered completely; -1 before the initial states have been looked at."""
        self._solver.add(encoding.at(encoding.initial, 0))

    @property
    def over(self) -> bool:
        """Whether going deeper cannot decide more."""
        return not self.open or self.exhausted or self.blind or self.mistake is not None

    def to(self, depth: int) -> None:
        """Go on until behaviours of `depth` steps are covered, or the search is over. Raises `Stopped`."""
        while self.depth < depth and not self.over:
            self._deeper()

    def settle(self, goals: Collection[Goal]) -> None:
        """Look for these no longer: they have been decided by other means."""
        self._drop(goals)

    def close(self) -> bool:
        """Whether every behaviour of `depth` steps visits some state twice; then the search is exhausted."""
        if self.depth < 0 or self.over:
            return self.exhausted
        # Every state is reached without a loop. If no loop-free behaviour has as many steps as were covered, every state
        # was met before the last step, and so was every step out of it.
        self._budget.tell("looking for a longer behaviour without a loop", self.depth, len(self.open))
        if self._solver.ask(self._encoding.distinct(self.depth + 1)) is Answer.NO:
            self.exhausted = True
        return self.exhausted

    def _deeper(self) -> None:
        """Cover behaviours of one step more."""
        depth = self.depth + 1
        if depth > 0:
            self._solver.add(self._encoding.at(self._encoding.transition, depth - 1))
            self._solver.add(self._encoding.at(self._encoding.bounds, depth))
        self._budget.tell("searching", depth, len(self.open))
        if self._solver.ask(self._encoding.all_of(())) is Answer.NO:
            self.exhausted = True
            self.empty = depth == 0
            return
        if depth > 0:
            self._decide([g for g in self.open if g.step], depth - 1, depth)
        self._decide([g for g in self.open if not g.step], depth, depth)
        self._look_for_mistakes(depth)
        self.depth = depth

    def _decide(self, goals: Sequence[Goal], position: int, steps: int) -> None:
        """Decide the goals whose event is possible at `position` of a behaviour of so many steps."""
        pending = list(goals)
        while pending:
            event = self._encoding.any_of(self._encoding.at(g.event, position) for g in pending)
            match self._solver.ask(event):
                case Answer.NO:
                    self._solver.add(self._encoding.no(event))
                    return
                case Answer.YES:
                    trace = self._replay.from_start(self._solver.model, steps)
                    found = {g: finding for g in pending if (finding := self._replay.judge(g.prop, trace)) is not None}
                    if not found:
                        names = ", ".join(g.name for g in pending)
                        raise ReplayFailure(f"{trace.states[-1]} decides none of {names}")
                    self.findings.update(found)
                    self._drop(found)
                    pending = [g for g in pending if g not in found]
                case Answer.UNKNOWN if len(pending) == 1:
                    self.given_up[pending[0]] = steps - 1
                    self._drop(pending)
                    return
                case Answer.UNKNOWN:
                    for goal in pending:
                        self._decide([goal], position, steps)
                    return

    def _look_for_mistakes(self, depth: int) -> None:
        mistake = self._encoding.at(self._encoding.mistake, depth)
        match self._solver.ask(mistake):
            case Answer.NO:
                self._solver.add(self._encoding.no(mistake))
            case Answer.YES:
                trace = self._replay.from_start(self._solver.model, depth)
                self.mistake = trace, self._replay.mistake(trace.states[-1])
            case Answer.UNKNOWN:
                self.blind = True

    def _drop(self, gone: Collection[Goal]) -> None:
        self.open = [g for g in self.open if g not in gone]
