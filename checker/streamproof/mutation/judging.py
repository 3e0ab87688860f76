"""Which properties notice a mutant; of a mutant that none notices, the shortest behaviour by which it differs.

A mutant without such a behaviour is *equivalent*: it has the same steps from every reachable state. That is decided without a
second search: as long as no step differs, both have the same reachable states, so the states of the original are enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

from streamproof.base.errors import EvaluationError, StreamproofError, TooLarge, UsageError
from streamproof.base.options import PYTHON, SearchOptions
from streamproof.base.records import dataclass, replace
from streamproof.explicit.exploration import Exploration, expect_initial_state, explore
from streamproof.explicit.findings import SearchJudge
from streamproof.explicit.level_search import ReductionPlan, Stop
from streamproof.explicit.witness import Disagreement, Witnesses
from streamproof.interrupts import left, limit
from streamproof.mutation.known_graph import MOST_STATES, ChangedSystem, KnownGraph, MutantSearch, by_key
from streamproof.mutation.mutants import Mutant, mutants
from streamproof.mutation.property_parts import PropertyPart, property_parts
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, Kind, Property, State, System
from streamproof.system.verdict import Finding, Mistake, Trace, Verdict
from streamproof.traces.places import changes

KILLED, SURVIVED, EQUIVALENT, UNDECIDED = "killed", "survived", "equivalent", "undecided"
ANSWERS = (KILLED, SURVIVED, EQUIVALENT, UNDECIDED)
MISTAKE = "a mistake of the model"
"""What notices a mutant whose rules fail to evaluate."""


@dataclass(frozen=True, slots=True)
class MutantDifference:
    """The shortest behaviour after which a mutant and the original differ: `gained` are the labels of steps that only the
    mutant has there, `lost` those that only the original has, each with what it changes; without both, the mutant begins in
    that state."""

    trace: Trace
    gained: tuple[tuple[str, str], ...]
    lost: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class JudgedMutant:
    """The answer about a mutant. `by`: properties that notice it (see `_MutantJudge`); `because`: why it is undecided."""

    mutant: Mutant
    answer: str
    by: tuple[str, ...] = ()
    difference: MutantDifference | None = None
    because: str = ""


NO_EFFECT, NOT_NEEDED, NEEDED, OPEN = "no effect", "not needed", "needed", "undecided"
"""The answers about a part of a property."""


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """The answer about a part of a property: it has no effect, or what is left without it notices the same mutants, or the
    change of the rules `mutant` is noticed with it alone."""

    part: PropertyPart
    answer: str
    mutant: str = ""


@dataclass(frozen=True, slots=True)
class Mutation:
    """The answers about all mutants of a system, and the properties that were asked, those that hold of the original."""

    properties: tuple[str, ...]
    left_out: tuple[str, ...]
    """Properties that do not hold of the original."""
    states: int
    judged: tuple[JudgedMutant, ...]
    interrupted: bool = False
    parts: tuple[JudgedPart, ...] = ()
    """The answers about the parts of the properties, if they were asked for."""

    @property
    def counts(self) -> Counter[str]:
        """The number of mutants of each answer."""
        return Counter(one.answer for one in self.judged)

    @property
    def score(self) -> float | None:
        """The share of the mutants that are noticed, of those that differ from the original; None if there are none."""
        counts = self.counts
        different = len(self.judged) - counts[EQUIVALENT]
        return counts[KILLED] / different if different else None

    @property
    def idle(self) -> tuple[str, ...]:
        """The properties that notice no mutant."""
        noticing = {name for one in self.judged for name in one.by}
        return tuple(name for name in self.properties if name not in noticing)


def mutate(
    system: System,
    options: SearchOptions,
    *,
    only: Callable[[Mutant], bool] = lambda mutant: True,
    on_judged: Callable[[JudgedMutant, int], None] = lambda judged, number: None,
    parts: bool = False,
) -> Mutation:
    """Judge the mutants of a system by its properties, and on request the parts of the properties by the mutants.

    The original is searched first: raises `UsageError` if the limits of `options` end that search, or no property holds. Each
    mutant has limits of its own. An interrupt ends it with the mutants judged so far.
    """
    options = replace(options, tuning=replace(options.tuning, cycle_work=0))  # lassos are not shown
    original = _explored(system, options)
    if original.mistake is not None or not original.complete:
        why = "its rules fail" if original.mistake is not None else f"the search ended early ({original.stopped})"
        raise UsageError(f"{system.name} has no answers to compare with: {why}", remedy="choose a smaller system")
    holding = tuple(f.property for f in original.findings if f.verdict is Verdict.HOLDS)
    if not holding:
        raise UsageError(
            f"no property of {system.name} holds, so that none can notice a mutant", remedy="choose others"
        )
    shares = _Shares(system, holding, options) if parts else None
    if shares is not None:
        system = shares.extended
    asked = replace(options, properties=holding if shares is None else (*holding, *shares.names))
    judge = _MutantJudge(original, asked, holding, shares)
    judged: list[JudgedMutant] = []
    interrupted = False
    for number, mutant in enumerate((m for m in mutants(system) if only(m)), 1):
        answer = judge.judged(mutant)
        if answer is None:
            interrupted = True
            break
        judged.append(answer)
        on_judged(answer, number)
    others = tuple(f.property for f in original.findings if f.property not in holding)
    answers = () if shares is None or interrupted else tuple(shares.answers())
    return Mutation(holding, others, original.counts.distinct, tuple(judged), interrupted, answers)


def _explored(system: System, options: SearchOptions) -> Exploration:
    """The search of the original: by generated Python, whose states are at hand, unless there are many."""
    most = min(options.max_states or MOST_STATES, MOST_STATES)
    found = explore(system, replace(options, tier=PYTHON, max_states=most))
    many = found.stopped == Stop.STATES.value and most != options.max_states
    return explore(system, options) if many else found


class _Shares:
    """The parts of the properties: those without effect, and of the others, which mutants need them."""

    def __init__(self, system: System, holding: Sequence[str], options: SearchOptions) -> None:
        self._parts = [p for name in holding for p in property_parts(system, system.property(name))]
        stronger = [p.stronger for p in self._parts if p.stronger is not None]
        whole = replace(system, properties=(*system.properties, *stronger))
        names = tuple(p.name for p in stronger)
        found = explore(whole, replace(options, properties=names)) if names else None
        self._verdicts = {} if found is None else {f.property: f.verdict for f in found.findings}
        weaker = tuple(p.weaker for p in self._parts if p.weaker is not None and not self._is_idle(p))
        self.names = tuple(p.name for p in weaker)
        self.extended = _with_properties(system, weaker)
        """The system with the weaker properties."""
        self._needed: dict[str, str] = {}
        self._open: set[str] = set()

    def _is_idle(self, part: PropertyPart) -> bool:
        return part.stronger is not None and self._verdicts.get(part.stronger.name) is Verdict.HOLDS

    def note(self, mutant: Mutant, verdicts: Mapping[str, Verdict]) -> None:
        """Take note of the verdicts about a mutant."""
        for part in self._parts:
            if part.weaker is None or verdicts.get(part.property) is not Verdict.VIOLATED:
                continue
            verdict = verdicts.get(part.weaker.name)
            if verdict is Verdict.HOLDS:
                self._needed.setdefault(part.weaker.name, mutant.label)
            elif verdict is not None and verdict is not Verdict.VIOLATED:
                self._open.add(part.weaker.name)

    def answers(self) -> Iterator[JudgedPart]:
        """The answer about each part."""
        for part in self._parts:
            name = None if part.weaker is None else part.weaker.name
            if self._is_idle(part):
                yield JudgedPart(part, NO_EFFECT)
            elif name in self._needed:
                yield JudgedPart(part, NEEDED, self._needed[name])
            elif name is not None:
                yield JudgedPart(part, OPEN if name in self._open else NOT_NEEDED)
            elif part.stronger is not None:
                known = self._verdicts.get(part.stronger.name)
                yield JudgedPart(part, NEEDED if known is Verdict.VIOLATED else OPEN)


def _known_graph(original: Exploration, properties: Sequence[str]) -> KnownGraph | None:
    """The state graph of a system without a constraint, if it is small."""
    if original.system.constraint is not None or original.counts.distinct > MOST_STATES:
        return None
    try:
        return KnownGraph(original, original.system, properties)
    except TooLarge:
        return None


def _with_properties(system: System, more: tuple[Property, ...]) -> System:
    return replace(system, properties=(*system.properties, *more))


class _MutantJudge:
    """Judges mutants: on the state graph of the original if there is one, else by a search of each.

    On the graph, temporal properties and termination are decided last; one that has noticed a mutant is not asked about
    another that is noticed without it. So a property is idle if and only if no mutant violates it within the limits.
    """

    def __init__(
        self, original: Exploration, options: SearchOptions, own: Sequence[str], shares: _Shares | None
    ) -> None:
        self._original = original
        self._options = options
        self._own, self._shares = own, shares
        self._system = original.system
        self._interpreter = Interpreter(self._system)
        self._graph = None if shares is not None else _known_graph(original, own)
        self._noticed: Counter[str] = Counter()

    @cached_property
    def _states(self) -> list[State]:
        return list(self._original.states())

    def judged(self, mutant: Mutant) -> JudgedMutant | None:
        """The answer about a mutant; None after an interrupt."""
        if left() <= 0:
            return JudgedMutant(mutant, UNDECIDED, because=f"not examined: time limit of {limit():g} s reached")
        try:
            found = self._by_graph(mutant) if self._graph is not None else self._by_search(mutant)
        except (UsageError, Disagreement):
            raise
        except StreamproofError as error:  # no initial state, or a search that is impossible
            return JudgedMutant(mutant, UNDECIDED, because=error.message)
        if found is not None:
            self._noticed.update(found.by)
        return found

    def _by_search(self, mutant: Mutant) -> JudgedMutant | None:
        found = explore(mutant.system, self._options)
        if found.interrupted:
            return None
        findings = [f for f in found.findings if f.property in self._own]
        if self._shares is not None:
            self._shares.note(mutant, {f.property: f.verdict for f in found.findings})
        return self._answered(
            mutant,
            findings,
            found.stopped,
            mistake=found.mistake is not None,
            difference=lambda: self._difference(mutant),
        )

    def _by_graph(self, mutant: Mutant) -> JudgedMutant | None:
        assert self._graph is not None, "there is one"
        changed = ChangedSystem(self._graph, mutant)
        first = None if changed.begins_elsewhere else changed.first_difference()
        initial = self._initial(Interpreter(mutant.system)) if changed.begins_elsewhere else None
        if first is None and initial is None and mutant.kind != "fairness":
            return JudgedMutant(mutant, EQUIVALENT)
        search = MutantSearch(changed, self._options)
        with search.budget.listening():
            search.run()
            expect_initial_state(search, mutant.system)
            judge = SearchJudge(search, ReductionPlan())
            ended = search.stopped in (Stop.HANDOVER, Stop.INTERRUPTED)
            mistake = None if ended else judge.mistake()
            findings = [] if ended else list(self._findings(judge, mistake))
        if search.budget.interrupted:
            return None
        if search.stopped is Stop.HANDOVER:
            return self._by_search(mutant)
        stopped = None if search.stopped is None else search.stopped.value
        return self._answered(
            mutant,
            findings,
            stopped,
            mistake=mistake is not None,
            difference=lambda: (True, initial) if first is None else self._difference(mutant, first),
        )

    def _findings(self, judge: SearchJudge, mistake: Mistake | None) -> Iterator[Finding]:
        """The findings, those of temporal properties last: after a violation, only of those that have noticed nothing yet."""
        late = (Kind.TEMPORAL, Kind.TERMINATION)
        order = sorted(
            range(len(judge.originals)),
            key=lambda at: (judge.originals[at].kind in late, -self._noticed[judge.originals[at].name], at),
        )
        is_killed = mistake is not None
        for at in order:
            prop = judge.originals[at]
            if prop.kind not in late or not is_killed or not self._noticed[prop.name]:
                finding = judge.interruptible(at, prop, mistake)
                is_killed = is_killed or finding.verdict is Verdict.VIOLATED
                yield finding

    def _answered(
        self,
        mutant: Mutant,
        findings: Sequence[Finding],
        stopped: str | None,
        *,
        mistake: bool,
        difference: Callable[[], tuple[bool, MutantDifference | None]],
    ) -> JudgedMutant:
        noticing = (Verdict.VIOLATED,) if mistake else (Verdict.VIOLATED, Verdict.ERROR)
        violated = {f.property for f in findings if f.verdict in noticing}
        by = (*(name for name in self._own if name in violated), *([MISTAKE] if mistake else []))
        if by:
            return JudgedMutant(mutant, KILLED, by)
        undecided = next((f for f in findings if f.verdict is not Verdict.HOLDS), None)
        if undecided is not None or stopped is not None:
            because = undecided.because if undecided is not None else f"the search ended early ({stopped})"
            return JudgedMutant(mutant, UNDECIDED, because=because.splitlines()[0])
        differs, shown = difference()
        return JudgedMutant(mutant, SURVIVED if differs else EQUIVALENT, difference=shown)

    def _difference(self, mutant: Mutant, first: int = 0) -> tuple[bool, MutantDifference | None]:
        """Whether the steps or their fairness differ, and the first other step in the order of the search, which has the
        shortest behaviour; from no state before the number `first` the steps differ."""
        interpreter, differs = Interpreter(mutant.system), False
        if mutant.kind == "fairness":
            return True, None
        if mutant.action is None:
            begins = self._initial(interpreter)
            return begins is not None, begins
        ours, theirs = self._system.action(mutant.action).instances, mutant.system.action(mutant.action).instances
        before, after = by_key(ours), by_key(theirs)
        groups = [
            ([ours[at] for at in before.get(key, ())], [theirs[at] for at in after.get(key, ())])
            for key in dict.fromkeys([*before, *after])
        ]
        changed = [pair for pair in groups if pair[0] != pair[1]]
        one, other = (list(chain(*(pair[side] for pair in changed))) for side in (0, 1))
        states = self._states if self._graph is None else map(self._graph.scalarised.decode, self._graph.states[first:])
        for number, state in enumerate(states, 0 if self._graph is None else first):
            was, now = self._steps(self._interpreter, one, state), self._steps(interpreter, other, state)
            differs = differs or was != now
            gained, lost = (
                tuple((label, self._does(state, step)) for label, step in steps if (label, step) not in others)
                for steps, others in ((now, was), (was, now))
            )
            if gained or lost:
                return True, MutantDifference(self._trace(number), gained, lost)
        return differs, None

    def _does(self, state: State, after: State | str) -> str:
        if isinstance(after, str):
            return f"is an evaluation error: {after}"
        return f"changes {', '.join(map(str, changes(self._system, state, after))) or 'nothing'}"

    def _steps(
        self, interpreter: Interpreter, instances: Sequence[Instance], state: State
    ) -> dict[tuple[str, State | str], set[object]]:
        """The steps of instances in order, as labels and next states, with their fairness; a text if evaluating one fails."""
        found: dict[tuple[str, State | str], set[object]] = {}
        for instance in instances:
            try:
                after: State | str | None = interpreter.take(instance, state)
            except EvaluationError as error:
                after = error.message
            if after is not None:
                found.setdefault((instance.label, after), set()).add((instance.fair, instance.listed))
        return found

    def _initial(self, mutant: Interpreter) -> MutantDifference | None:
        ours = set(self._interpreter.initial_states())
        theirs = list(mutant.initial_states())
        new = next((state for state in theirs if state not in ours), None)
        if new is not None:
            return MutantDifference(Trace((new,), ()), (), ())
        lost = next((state for state in ours if state not in set(theirs)), None)
        return None if lost is None else MutantDifference(Trace((lost,), ()), (), (("the original", "begins here"),))

    def _trace(self, number: int) -> Trace:
        search = self._original.search
        return Witnesses(search.scalarised, search.state, search.parent, None, search.instance).to(number)
