"""Property-directed reachability (IC3) over the leaves: an inductive invariant, clause by clause, or a way to an event.

Frame n over-approximates the states reachable in at most n steps by clauses over the leaves, and by this: nothing looked for
has happened, nor a mistake of the model. Where a step out of the frame before the last leads to such an event, the cube it
starts in is blocked: it is unreachable from the frame before, or else so is a predecessor to be blocked first, down to
the initial states, where the way to the event is complete. What blocks a cube is generalised by dropping and widening its
parts. When two frames become equal, their clauses, with the claim itself, are inductive. The states of an event are never
listed: of a sum that is not what it should be there are too many.

Frames are extended one at a time and cubes are blocked nowhere but in theirs, so ways are shortest. Nothing in here is to be
believed: ways are taken again by the interpreter, and an invariant is a proposal for `induction` to prove in another solver.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import count

from streamproof.symbolic.cubes import Cube, by_leaf, clause, cube_of, widened
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal
from streamproof.symbolic.replay import Replay, ReplayFailure
from streamproof.symbolic.solver import Solver, SolverAnswer, SolverBudget
from streamproof.symbolic.theory import Term
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Property, State
from streamproof.system.records import dataclass
from streamproof.system.verdict import Finding, Trace

_FRESH = 400
"""Queries after which a solver is made anew: what earlier ones left behind slows it down."""


class Unknown(Exception):
    """The solver did not know: a longer timeout, or the other kind of numbers, may help."""


@dataclass(frozen=True, slots=True)
class _Obligation:
    """States from each of which an event is reached: by `instance` among those of `then`, or there and then."""

    cube: Cube
    state: State
    instance: int | None
    then: _Obligation | None


@dataclass
class Reached:
    """What a run found out.

    `findings` by property: violations and witnesses, shortest and replayed. `mistake`: a mistake of the model and the way
    to it, after which nothing else is decided. `invariant`: clauses over the leaves that, with the facts that were given,
    explain why what is left never happens, as far as this engine is to be believed. `frames`: how many there are.
    """

    findings: dict[Property, Finding] = field(default_factory=dict)
    mistake: tuple[Trace, str] | None = None
    invariant: tuple[Expr, ...] | None = None
    frames: int = 0


class Pdr:
    """One run over the goals of an encoding; `facts` are invariants that are known already, over the leaves."""

    def __init__(self, encoding: Encoding, goals: Iterable[Goal], facts: Sequence[Expr], budget: SolverBudget) -> None:
        self._encoding = encoding
        self._budget = budget
        self._open = list(goals)
        self._replay = Replay(encoding)
        self._blocked: list[dict[Cube, None]] = [{}]
        """For each level, the cubes that are blocked up to there and no further."""
        self._found_at = 0
        """The level at which something was found last."""
        self._tie = count()
        self._parts: dict[tuple[Expr, int], Term] = {}
        """The negations of parts of cubes, at positions."""
        at = encoding.at
        known = encoding.all_of([encoding.wellformed, *map(encoding.term, facts)])
        self._starting = _Table(encoding, budget, 0, [at(encoding.initial, 0), at(known, 0)])
        self._judging = _Table(encoding, budget, 0, [at(known, 0)])
        self._lifting = _Table(encoding, budget, 0, [at(known, 0), at(encoding.transition, 0)])
        self._main = _Table(encoding, budget, 1, [at(known, 0)])
        self._levels = [self._main.given("initial", at(encoding.initial, 0))]
        self._step = self._main.given("step", encoding.all_of([at(encoding.transition, 0), at(known, 1)]))
        self._calm, self._good = self._nothing_yet()
        self.reached = Reached()

    def run(self) -> Reached:
        """Go on until everything is decided. Raises `Stopped`, and `Unknown` where the solver does not know."""
        while True:
            self._budget.tell("property-directed reachability", self._last, len(self._open))
            self._look(in_state=True)
            self._look_for_mistake()
            self._look(in_state=False)
            if not self._open or self.reached.mistake is not None:
                return self.reached
            self._blocked.append({})
            self._levels.append(self._encoding.switch(f"level {self._last}"))
            self.reached.frames = self._last
            if self._propagate():
                return self.reached

    @property
    def _last(self) -> int:
        return len(self._blocked) - 1

    # --- what is looked for ------------------------------------------------------------------------------------------

    def _nothing_yet(self) -> tuple[Term, Term]:
        """What is known of the last frame: nothing looked for happens in a state; and of others: nor by a step out of one."""
        encoding = self._encoding
        for_states = [encoding.mistake, *(g.event for g in self._open if not g.step)]
        calm = encoding.no(encoding.any_of(for_states))
        quiet = encoding.no(encoding.any_of(g.event for g in self._open if g.step))
        in_states = self._main.given(f"calm {len(self._open)}", encoding.at(calm, 0))
        return in_states, self._main.given(f"good {len(self._open)}", encoding.at(encoding.all_of([calm, quiet]), 0))

    def _look(self, *, in_state: bool) -> None:
        """Decide the goals whose events happen in a state of the last frame, or by a step out of one."""
        while self.reached.mistake is None and (wanted := [g for g in self._open if g.step is not in_state]):
            trace = self._way_to(self._encoding.any_of(g.event for g in wanted), stepping=not in_state)
            if trace is None:
                return
            judged = {g.prop: self._replay.judge(g.prop, trace) for g in wanted}
            found = {prop: finding for prop, finding in judged.items() if finding is not None}
            if not found:
                raise ReplayFailure(f"{trace.states[-1]} decides none of {', '.join(g.prop.name for g in wanted)}")
            self.reached.findings.update(found)
            self._open = [g for g in self._open if g.prop not in found]
            self._found_at = self._last
            self._calm, self._good = self._nothing_yet()

    def _look_for_mistake(self) -> None:
        if self._open and self.reached.mistake is None:
            trace = self._way_to(self._encoding.mistake, stepping=False)
            if trace is not None:
                self.reached.mistake = trace, self._replay.mistake(trace.states[-1])

    def _way_to(self, event: Term, *, stepping: bool) -> Trace | None:
        """A way from an initial state to an event in (or out of) the last frame; None when it can be kept out of it.

        Where the way meets a mistake of the model earlier, that is recorded, and None is answered.
        """
        level = self._last if stepping else self._last - 1
        if level < 0:
            return self._there_at_once(event)
        event = self._encoding.at(event, 0 if stepping else 1)
        known = [*self._frame(level), self._calm if stepping else self._good, self._step]
        while self._sure(self._main.ask(event, (), known)):
            state, instance = self._main.state(), self._main.taken()
            cube = self._lifted(cube_of(self._encoding.system, state), instance, self._encoding.no(event))
            start = self._block(_Obligation(cube, state, instance, None), level)
            if start is not None:
                return self._taken_again(start)
        return None

    def _there_at_once(self, event: Term) -> Trace | None:
        """An initial state in which an event happens."""
        if not self._sure(self._starting.ask(self._encoding.at(event, 0), ())):
            return None
        return self._replay.follow(self._starting.state(), ())

    def _taken_again(self, start: _Obligation) -> Trace | None:
        """The way that begins with an obligation, step by step, by the interpreter."""
        instances: list[int] = []
        at: _Obligation | None = start
        while at is not None:
            instances += [] if at.instance is None else [at.instance]
            at = at.then
        trace = self._replay.follow(start.state, instances)
        if len(trace.steps) < len(instances):
            self.reached.mistake = trace, self._replay.mistake(trace.states[-1])
            return None
        return trace

    def _lifted(self, cube: Cube, instance: int, missed: Term) -> Cube:
        """A part of a state that is enough for taking the instance, and for not `missed`."""
        guard = b.and_(c.expr for c in self._encoding.system.instances[instance].guard)
        disabled = self._encoding.at(self._encoding.no(self._encoding.term(guard)), 0)
        enabled = set(self._judging.core(disabled, cube))
        taken = self._encoding.takes(instance, 0)
        enabled.update(self._lifting.core(self._encoding.all_of([taken, missed]), cube))
        return tuple(part for part in cube if part in enabled)

    # --- blocking ----------------------------------------------------------------------------------------------------

    def _block(self, last: _Obligation, into: int) -> _Obligation | None:
        """Keep the states of an obligation out of the frame `into`; or a way to them that starts in an initial state."""
        start = self._from_start(last)
        if start is not None:
            return start
        pending = [(into, next(self._tie), last)]
        while pending:
            level, _, obligation = heapq.heappop(pending)
            if self._excluded(obligation.cube, level):
                continue
            if not self._sure(self._relative(obligation.cube, level)):
                cube = self._generalised(self._main.kept(obligation.cube), obligation.cube, level)
                while level < self._last and self._relative(cube, level + 1) is SolverAnswer.NO:
                    level += 1
                self._exclude(cube, level)
                continue
            before = self._predecessor(obligation)
            start = self._from_start(before)
            if start is not None:
                return start
            heapq.heappush(pending, (level, next(self._tie), obligation))
            heapq.heappush(pending, (level - 1, next(self._tie), before))
        return None

    def _predecessor(self, of: _Obligation) -> _Obligation:
        """The states like the one that the solver found to lead into the obligation's."""
        state, instance = self._main.state(), self._main.taken()
        missed = self._outside(of.cube, 1)
        return _Obligation(self._lifted(cube_of(self._encoding.system, state), instance, missed), state, instance, of)

    def _from_start(self, obligation: _Obligation) -> _Obligation | None:
        """The obligation from an initial state among its states, if there is one."""
        if not self._sure(self._starting.ask(None, obligation.cube)):
            return None
        return _Obligation(obligation.cube, self._starting.state(), obligation.instance, obligation.then)

    def _frame(self, level: int) -> list[Term]:
        """What must be assumed to speak of a frame."""
        return self._levels[:1] if level == 0 else self._levels[level:]

    def _relative(self, cube: Cube, level: int) -> SolverAnswer:
        """Whether a step leads from the frame before `level`, outside the cube, into the cube."""
        return self._main.ask(self._outside(cube, 0), cube, [*self._frame(level - 1), self._good, self._step])

    def _outside(self, cube: Cube, position: int) -> Term:
        """The clause of a cube, at a position."""
        for part in cube:
            if (part, position) not in self._parts:
                self._parts[part, position] = self._encoding.says(b.not_(part), position)
        return self._encoding.any_of(self._parts[part, position] for part in cube)

    def _excluded(self, cube: Cube, level: int) -> bool:
        parts = set(cube)
        return any(parts.issuperset(known) for frame in self._blocked[level:] for known in frame)

    def _exclude(self, cube: Cube, level: int) -> None:
        for frame in self._blocked[1 : level + 1]:
            for known in [k for k in frame if set(k).issuperset(cube)]:
                del frame[known]
        self._blocked[level][cube] = None
        self._main.add(self._encoding.any_of([self._encoding.no(self._levels[level]), self._outside(cube, 0)]))

    def _propagate(self) -> bool:
        """Carry clauses on to the frames where they hold; whether two frames became equal, so that all is decided."""
        for level in range(1, self._last):
            for cube in list(self._blocked[level]):
                if cube in self._blocked[level] and self._relative(cube, level + 1) is SolverAnswer.NO:
                    del self._blocked[level][cube]
                    self._exclude(cube, level + 1)
            # What steps out of the frame before the last lead to has not been looked at yet; and clauses of frames before
            # one where something was found rest on its not happening.
            if not self._blocked[level] and self._found_at <= level < self._last - 1:
                self.reached.invariant = tuple(clause(c) for frame in self._blocked[level + 1 :] for c in frame)
                return True
        return False

    # --- generalisation ----------------------------------------------------------------------------------------------

    def _generalised(self, core: Cube, whole: Cube, level: int) -> Cube:
        """A larger cube that is kept out of the frame for the same reason: parts are dropped, then widened."""
        cube = core
        if self._starting.ask(None, cube) is not SolverAnswer.NO:
            apart = set(self._starting.core(None, whole))
            cube = tuple(part for part in whole if part in apart or part in core)
        for parts in tuple(by_leaf(cube)):
            smaller = self._without(cube, parts, level)
            for part in parts if smaller is None and len(parts) > 1 else ():
                cube = self._without(cube, (part,), level) or cube
            cube = smaller or cube
        for part in cube:
            while (wider := widened(part)) is not None:
                larger = tuple(wider if p is part else p for p in cube)
                if not self._apart(larger, level):
                    break
                cube, part = larger, wider
        return cube

    def _without(self, cube: Cube, parts: Cube, level: int) -> Cube | None:
        """The cube without these parts, or with fewer still; None where it cannot do without them."""
        fewer = tuple(part for part in cube if part not in parts)
        if len(fewer) == len(cube) or not self._apart(fewer, level):
            return None
        core = self._main.kept(fewer)
        return core if self._starting.ask(None, core) is SolverAnswer.NO else fewer

    def _apart(self, cube: Cube, level: int) -> bool:
        """Whether a cube can be kept out of the frame: no initial state and no step leads into it."""
        return self._starting.ask(None, cube) is SolverAnswer.NO and self._relative(cube, level) is SolverAnswer.NO

    def _sure(self, answer: SolverAnswer) -> bool:
        """Whether it is possible. Raises `Unknown`."""
        if answer is SolverAnswer.UNKNOWN:
            raise Unknown
        return answer is SolverAnswer.YES


class _Table:
    """A solver with some assertions, to be asked about cubes at one of the two positions."""

    def __init__(self, encoding: Encoding, budget: SolverBudget, position: int, assertions: Sequence[Term]) -> None:
        self._encoding = encoding
        self._budget = budget
        self._position = position
        self._assertions: list[Term] = []
        self._names: dict[Expr, Term] = {}
        self._queries = 0
        self._solver = Solver(encoding, budget)
        self.add(*assertions)

    def add(self, *formulas: Term) -> None:
        """Assert formulas."""
        self._assertions += formulas
        self._solver.add(*formulas)

    def given(self, name: str, formula: Term) -> Term:
        """A switch that turns a formula on."""
        switch = self._encoding.switch(name)
        self.add(self._encoding.any_of([self._encoding.no(switch), formula]))
        return switch

    def ask(self, formula: Term | None, cube: Cube, assumptions: Sequence[Term] = ()) -> SolverAnswer:
        """Whether `formula` (None: no more than what is asserted) is possible in the cube, under the assumptions."""
        whole = self._encoding.all_of(()) if formula is None else formula
        self._queries += 1
        if self._queries % _FRESH == 0:
            self._solver = Solver(self._encoding, self._budget)
            self._solver.add(*self._assertions)
        return self._solver.ask(whole, [*map(self._name, cube), *assumptions])

    def kept(self, cube: Cube) -> Cube:
        """The parts of the cube that the last impossible query needed."""
        return tuple(cube[n] for n in self._solver.core([self._name(part) for part in cube]))

    def core(self, formula: Term | None, cube: Cube) -> Cube:
        """Parts of the cube that are enough to make `formula` impossible; all of it where the solver does not see that."""
        return self.kept(cube) if self.ask(formula, cube) is SolverAnswer.NO else cube

    def state(self) -> State:
        """The state at position 0 in the solver's model."""
        return self._encoding.state(self._solver.model, 0)

    def taken(self) -> int:
        """The instance that the solver's model takes."""
        return self._encoding.taken(self._solver.model, 0)

    def _name(self, part: Expr) -> Term:
        """A constant that stands for a part of a cube."""
        if part not in self._names:
            formula = self._encoding.says(part, self._position)
            self._names[part] = self.given(f"part {len(self._names)}", formula)
        return self._names[part]
