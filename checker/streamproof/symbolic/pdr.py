"""Property-directed reachability (IC3/PDR) over the leaves: an inductive invariant in clauses, or a path to an event.

Frame n over-approximates the states reachable in at most n steps by clauses over the leaves, together with the negated
goal events and the absence of model errors. If a step out of the last-but-one frame leads to an event, the cube it
starts in is blocked: it is unreachable from the frame before, or one of its predecessors must be blocked first, down to
the initial states, where the path to the event is complete. The clause of a blocked cube is generalised by dropping and
widening literals. When two frames become equal, their clauses, with the claim itself, are inductive. The states of an
event are never enumerated, because a false sum has too many.

Frames are extended one at a time and cubes are blocked only in their own frame, so paths are shortest. The result is
not trusted: paths are replayed by the interpreter, and an invariant is a candidate that `induction` proves in another
solver.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import count

from streamproof.base.records import dataclass
from streamproof.symbolic.cubes import Cube, by_leaf, clause, cube_of, widened
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal
from streamproof.symbolic.replay import Replay
from streamproof.symbolic.solver import Solver, SolverAnswer, SolverBudget
from streamproof.symbolic.theory import Term
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Property, State
from streamproof.system.verdict import Finding, Trace, Verdict

_FRESH = 400
"""Number of queries after which a solver is recreated, because accumulated clauses slow it down."""


class Unknown(Exception):
    """The solver could not decide a query: a longer timeout, or the other integer encoding, may help."""


@dataclass(frozen=True, slots=True)
class _Obligation:
    """A proof obligation: states from which an event is reached, by `instance` into those of `then`, or immediately."""

    cube: Cube
    state: State
    instance: int | None
    then: _Obligation | None


class Pdr:
    """One run for the goals of an encoding; `facts` are known invariants over the leaves.

    * `findings` has the violations and witnesses, shortest and replayed.
    * `mistake` is a model error and the path to it, after which no other goal is decided.
    * `invariant` are clauses over the leaves that, with the given facts, imply that the remaining events never occur;
      still to be proved.
    * `frames` is the number of frames.
    """

    def __init__(self, encoding: Encoding, goals: Iterable[Goal], facts: Sequence[Expr], budget: SolverBudget) -> None:
        self._encoding = encoding
        self._budget = budget
        self._open = list(goals)
        self._replay = Replay(encoding)
        self._blocked: list[dict[Cube, None]] = [{}]
        """For each level, the cubes blocked up to that level."""
        self._found_at = 0
        """The level of the last event found."""
        self._tie = count()
        self._parts: dict[tuple[Expr, int], Term] = {}
        """The negations of literals, at positions."""
        at = encoding.at
        known = encoding.all_of([encoding.wellformed, *map(encoding.term, facts)])
        self._starting = _Table(encoding, budget, 0, [at(encoding.initial, 0), at(known, 0)])
        self._judging = _Table(encoding, budget, 0, [at(known, 0)])
        self._lifting = _Table(encoding, budget, 0, [at(known, 0), at(encoding.transition, 0)])
        self._main = _Table(encoding, budget, 1, [at(known, 0)])
        self._levels = [self._main.given("initial", at(encoding.initial, 0))]
        self._step = self._main.given("step", encoding.all_of([at(encoding.transition, 0), at(known, 1)]))
        self._calm, self._good = self._nothing_yet()
        self.findings: dict[Property, Finding] = {}
        self.mistake: tuple[Trace, str] | None = None
        self.invariant: tuple[Expr, ...] | None = None
        self.frames = 0

    def run(self) -> None:
        """Runs until every goal is decided. Raises `Stopped`, and `Unknown` if the solver cannot decide a query."""
        # Invariant: frame n contains every state that is reached in at most n steps, frames grow, and no frame before
        # the last one has an event of an open goal: an event found next is at the shortest distance.
        while True:
            self._budget.report("property-directed reachability", self._last, len(self._open))
            self._decide_events(in_state=True)
            self._look_for_mistake()
            self._decide_events(in_state=False)
            if not self._open or self.mistake is not None:
                return
            self._blocked.append({})
            self._levels.append(self._encoding.switch(f"level {self._last}"))
            self.frames = self._last
            if self._propagate():
                return

    @property
    def _last(self) -> int:
        return len(self._blocked) - 1

    # --- events ------------------------------------------------------------------------------------------------------

    def _nothing_yet(self) -> tuple[Term, Term]:
        """The assumptions about the last frame (no event in a state) and about earlier frames (nor at a step out of one)."""
        encoding = self._encoding
        for_states = [encoding.mistake, *(g.event for g in self._open if not g.step)]
        calm = encoding.no(encoding.any_of(for_states))
        quiet = encoding.no(encoding.any_of(g.event for g in self._open if g.step))
        in_states = self._main.given(f"calm {len(self._open)}", encoding.at(calm, 0))
        return in_states, self._main.given(f"good {len(self._open)}", encoding.at(encoding.all_of([calm, quiet]), 0))

    def _decide_events(self, *, in_state: bool) -> None:
        """Decides the goals whose events occur in a state of the last frame, or at a step out of one."""
        while self.mistake is None and (wanted := [g for g in self._open if g.step is not in_state]):
            trace = self._way_to(self._encoding.any_of(g.event for g in wanted), stepping=not in_state)
            if trace is None:
                return
            found = self._replay.decided((g.prop for g in wanted), trace)
            for goal in wanted:  # an evaluation error of a property counts only without a violation at the same depth
                if goal.prop in found and found[goal.prop].verdict is Verdict.ERROR:
                    trace = self._way_to(goal.decisive, stepping=not in_state)
                    found |= {} if trace is None else self._replay.decided([goal.prop], trace)
            self.findings.update(found)
            self._open = [g for g in self._open if g.prop not in found]
            self._found_at = self._last
            self._calm, self._good = self._nothing_yet()

    def _look_for_mistake(self) -> None:
        if self._open and self.mistake is None:
            trace = self._way_to(self._encoding.mistake, stepping=False)
            if trace is not None:
                self.mistake = trace, self._replay.mistake(trace.states[-1])

    def _way_to(self, event: Term, *, stepping: bool) -> Trace | None:
        """A path from an initial state to an event in (or out of) the last frame; None if the event can be blocked.

        If the path meets a model error earlier, the error is recorded, and the result is None.
        """
        level = self._last if stepping else self._last - 1
        if level < 0:
            there = self._sure(self._starting.check(self._encoding.at(event, 0), ()))
            return self._replay.follow(self._starting.state(), ()) if there else None
        event = self._encoding.at(event, 0 if stepping else 1)
        known = [*self._frame(level), self._calm if stepping else self._good, self._step]
        # Invariant: states are excluded from the frame only if no path of `level` steps reaches them. Each round
        # excludes the model of the query, or ends; there are finitely many cubes.
        while self._sure(self._main.check(event, (), known)):
            state, instance = self._main.state(), self._main.taken()
            cube = self._lifted(cube_of(self._encoding.system, state), instance, self._encoding.no(event))
            start = self._block(_Obligation(cube, state, instance, None), level)
            if start is not None:
                return self._taken_again(start)
        return None

    def _taken_again(self, start: _Obligation) -> Trace | None:
        """The path of an obligation, replayed step by step by the interpreter."""
        instances: list[int] = []
        at: _Obligation | None = start
        while at is not None:
            instances += [] if at.instance is None else [at.instance]
            at = at.then
        trace = self._replay.follow(start.state, instances)
        if len(trace.steps) < len(instances):
            self.mistake = trace, self._replay.mistake(trace.states[-1])
            return None
        return trace

    def _lifted(self, cube: Cube, instance: int, missed: Term) -> Cube:
        """A subset of a state's literals that suffices for taking the instance and for not `missed`."""
        guard = b.and_(c.expr for c in self._encoding.system.instances[instance].guard)
        disabled = self._encoding.at(self._encoding.no(self._encoding.term(guard)), 0)
        enabled = set(self._judging.core(disabled, cube))
        taken = self._encoding.takes(instance, 0)
        enabled.update(self._lifting.core(self._encoding.all_of([taken, missed]), cube))
        return tuple(part for part in cube if part in enabled)

    # --- blocking ----------------------------------------------------------------------------------------------------

    def _block(self, last: _Obligation, into: int) -> _Obligation | None:
        """Blocks the states of an obligation in the frame `into`; or returns a path to them from an initial state."""
        start = self._from_start(last)
        if start is not None:
            return start
        # Invariant: from each pending cube the event is reached by the instances of its obligation, and the cube is to
        # be blocked in its frame. The lowest frame comes first: a chain that meets an initial state is complete, and
        # none is shorter.
        pending = [(into, next(self._tie), last)]
        while pending:
            level, _, obligation = heapq.heappop(pending)
            if self._excluded(obligation.cube, level):
                continue
            if not self._sure(self._relative(obligation.cube, level)):
                cube = self._generalised(self._main.kept(obligation.cube), obligation.cube, level)
                # The clause holds in every frame in which its step does: the earlier ones have it by growth.
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
        """Generalises the predecessor that the solver found for the obligation."""
        state, instance = self._main.state(), self._main.taken()
        missed = self._outside(of.cube, 1)
        return _Obligation(self._lifted(cube_of(self._encoding.system, state), instance, missed), state, instance, of)

    def _from_start(self, obligation: _Obligation) -> _Obligation | None:
        """The obligation from an initial state among its states, if there is one."""
        if not self._sure(self._starting.check(None, obligation.cube)):
            return None
        return _Obligation(obligation.cube, self._starting.state(), obligation.instance, obligation.then)

    def _frame(self, level: int) -> list[Term]:
        """The assumptions that represent a frame."""
        return self._levels[:1] if level == 0 else self._levels[level:]

    def _relative(self, cube: Cube, level: int) -> SolverAnswer:
        """Whether a step leads from the frame before `level`, outside the cube, into the cube."""
        return self._main.check(self._outside(cube, 0), cube, [*self._frame(level - 1), self._good, self._step])

    def _outside(self, cube: Cube, position: int) -> Term:
        """The clause of a cube, at a position."""
        for part in cube:
            if (part, position) not in self._parts:
                self._parts[part, position] = self._encoding.holds_at(b.not_(part), position)
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
        """Propagates clauses to later frames where they hold; whether two frames became equal, so that all goals are
        decided."""
        # Invariant: a cube that is blocked at `level` is blocked in all frames up to it; moving it on excludes it from
        # one more.
        for level in range(1, self._last):
            for cube in list(self._blocked[level]):
                if cube in self._blocked[level] and self._relative(cube, level + 1) is SolverAnswer.NO:
                    del self._blocked[level][cube]
                    self._exclude(cube, level + 1)
            # Steps out of the last-but-one frame have not been checked yet, and clauses of frames before one with an
            # event depend on its absence.
            if not self._blocked[level] and self._found_at <= level < self._last - 1:
                self.invariant = tuple(clause(c) for frame in self._blocked[level + 1 :] for c in frame)
                return True
        return False

    # --- generalisation ----------------------------------------------------------------------------------------------

    def _generalised(self, core: Cube, whole: Cube, level: int) -> Cube:
        """A larger cube that is blocked for the same reason: literals are dropped, then widened."""
        cube = core
        if self._starting.check(None, cube) is not SolverAnswer.NO:
            apart = set(self._starting.core(None, whole))
            cube = tuple(part for part in whole if part in apart or part in core)
        for parts in tuple(by_leaf(cube)):
            smaller = self._without(cube, parts, level)
            for part in parts if smaller is None and len(parts) > 1 else ():
                cube = self._without(cube, (part,), level) or cube
            cube = smaller or cube
        # Invariant: the cube has no initial state, and no step from the frame before, outside of it, leads into it
        # (`_apart`).
        for part in cube:
            while (wider := widened(part)) is not None:
                larger = tuple(wider if p is part else p for p in cube)
                if not self._apart(larger, level):
                    break
                cube, part = larger, wider
        return cube

    def _without(self, cube: Cube, parts: Cube, level: int) -> Cube | None:
        """The cube without these literals, or fewer; None if they are needed."""
        fewer = tuple(part for part in cube if part not in parts)
        if len(fewer) == len(cube) or not self._apart(fewer, level):
            return None
        core = self._main.kept(fewer)
        return core if self._starting.check(None, core) is SolverAnswer.NO else fewer

    def _apart(self, cube: Cube, level: int) -> bool:
        """Whether a cube can be blocked: it contains no initial state, and no step leads into it."""
        return self._starting.check(None, cube) is SolverAnswer.NO and self._relative(cube, level) is SolverAnswer.NO

    def _sure(self, answer: SolverAnswer) -> bool:
        """Whether the answer is "sat". Raises `Unknown`."""
        if answer is SolverAnswer.UNKNOWN:
            raise Unknown
        return answer is SolverAnswer.YES


class _Table:
    """A solver with some assertions, for queries about cubes at one of the two positions."""

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
        """Asserts formulas."""
        self._assertions += formulas
        self._solver.add(*formulas)

    def given(self, name: str, formula: Term) -> Term:
        """A switch that activates a formula."""
        switch = self._encoding.switch(name)
        self.add(self._encoding.any_of([self._encoding.no(switch), formula]))
        return switch

    def check(self, formula: Term | None, cube: Cube, assumptions: Sequence[Term] = ()) -> SolverAnswer:
        """Whether `formula` (None: the assertions only) is satisfiable in the cube, under the assumptions."""
        whole = self._encoding.all_of(()) if formula is None else formula
        self._queries += 1
        if self._queries % _FRESH == 0:
            self._solver = Solver(self._encoding, self._budget)
            self._solver.add(*self._assertions)
        return self._solver.check(whole, [*map(self._name, cube), *assumptions])

    def kept(self, cube: Cube) -> Cube:
        """The literals of the cube in the unsat core of the last query."""
        return tuple(cube[n] for n in self._solver.core([self._name(part) for part in cube]))

    def core(self, formula: Term | None, cube: Cube) -> Cube:
        """A subset of the cube that makes `formula` unsatisfiable; the whole cube if the solver cannot decide that."""
        return self.kept(cube) if self.check(formula, cube) is SolverAnswer.NO else cube

    def state(self) -> State:
        """The state at position 0 in the solver's model."""
        return self._encoding.state(self._solver.model, 0)

    def taken(self) -> int:
        """The instance taken in the solver's model."""
        return self._encoding.taken(self._solver.model, 0)

    def _name(self, part: Expr) -> Term:
        """A constant for a literal of a cube."""
        if part not in self._names:
            formula = self._encoding.holds_at(part, self._position)
            self._names[part] = self.given(f"part {len(self._names)}", formula)
        return self._names[part]
