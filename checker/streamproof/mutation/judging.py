"""Which properties notice a mutant; of a mutant that none notices, the shortest behaviour by which it differs.

A mutant without such a behaviour is *equivalent*: it has the same steps from every reachable state. That is decided without a
second search: as long as no step differs, both have the same reachable states, so the states of the original are enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from streamproof.base.errors import EvaluationError, StreamproofError, UsageError
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass, replace
from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.witness import Witnesses
from streamproof.mutation.mutants import Mutant, mutants
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, State, System
from streamproof.system.verdict import Trace, Verdict

KILLED, SURVIVED, EQUIVALENT, UNDECIDED = "killed", "survived", "equivalent", "undecided"
ANSWERS = (KILLED, SURVIVED, EQUIVALENT, UNDECIDED)
MISTAKE = "a mistake of the model"
"""What notices a mutant whose rules fail to evaluate."""


@dataclass(frozen=True, slots=True)
class MutantDifference:
    """The shortest behaviour after which a mutant and the original differ: `gained` are the labels of steps that only the
    mutant has there, `lost` those that only the original has; without both, the mutant begins in that state."""

    trace: Trace
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgedMutant:
    """The answer about a mutant. `by`: the properties that notice it; `because`: why it is undecided."""

    mutant: Mutant
    answer: str
    by: tuple[str, ...] = ()
    difference: MutantDifference | None = None
    because: str = ""


@dataclass(frozen=True, slots=True)
class Mutation:
    """The answers about all mutants of a system, and the properties that were asked, those that hold of the original."""

    properties: tuple[str, ...]
    left_out: tuple[str, ...]
    """Properties that do not hold of the original."""
    states: int
    judged: tuple[JudgedMutant, ...]
    interrupted: bool = False

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
) -> Mutation:
    """Judge the mutants of a system by its properties.

    The original is searched first: raises `UsageError` if the limits of `options` end that search, or no property holds. Each
    mutant has limits of its own. An interrupt ends it with the mutants judged so far.
    """
    original = explore(system, options)
    if original.mistake is not None or not original.complete:
        why = "its rules fail" if original.mistake is not None else f"the search ended early ({original.stopped})"
        raise UsageError(f"{system.name} has no answers to compare with: {why}", remedy="choose a smaller system")
    holding = tuple(f.property for f in original.findings if f.verdict is Verdict.HOLDS)
    if not holding:
        raise UsageError(
            f"no property of {system.name} holds, so that none can notice a mutant", remedy="choose others"
        )
    asked = replace(options, properties=holding)
    judge = _MutantJudge(original, asked)
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
    return Mutation(holding, others, original.counts.distinct, tuple(judged), interrupted)


class _MutantJudge:
    def __init__(self, original: Exploration, options: SearchOptions) -> None:
        self._original = original
        self._options = options
        self._system = original.system
        self._interpreter = Interpreter(self._system)

    @cached_property
    def _states(self) -> list[State]:
        return list(self._original.states())

    def judged(self, mutant: Mutant) -> JudgedMutant | None:
        """The answer about a mutant; None after an interrupt."""
        try:
            found = explore(mutant.system, self._options)
        except UsageError:
            raise
        except StreamproofError as error:  # no initial state, or a search that is impossible
            return JudgedMutant(mutant, UNDECIDED, because=error.message)
        if found.interrupted:
            return None
        by = tuple(f.property for f in found.findings if f.verdict in (Verdict.VIOLATED, Verdict.ERROR))
        if found.mistake is not None:
            by = (*(f.property for f in found.findings if f.verdict is Verdict.VIOLATED), MISTAKE)
        if by:
            return JudgedMutant(mutant, KILLED, by)
        undecided = next((f for f in found.findings if f.verdict is not Verdict.HOLDS), None)
        if undecided is not None or not found.complete:
            because = undecided.because if undecided is not None else f"the search ended early ({found.stopped})"
            return JudgedMutant(mutant, UNDECIDED, because=because.splitlines()[0])
        difference = self._difference(mutant)
        if difference is None and mutant.kind != "fairness":
            return JudgedMutant(mutant, EQUIVALENT)
        return JudgedMutant(mutant, SURVIVED, difference=difference)

    def _difference(self, mutant: Mutant) -> MutantDifference | None:
        """The first difference in the order of the search, which has the shortest behaviour."""
        interpreter = Interpreter(mutant.system)
        if mutant.action is None:
            return self._initial(interpreter)
        before = {i.key: i for i in self._system.action(mutant.action).instances}
        after = {i.key: i for i in mutant.system.action(mutant.action).instances}
        changed = [
            (before.get(key), after.get(key))
            for key in dict.fromkeys([*before, *after])
            if before.get(key) != after.get(key)
        ]
        for number, state in enumerate(self._states):
            ours = list(self._steps(self._interpreter, [one for one, _ in changed], state))
            theirs = list(self._steps(interpreter, [other for _, other in changed], state))
            if ours != theirs:
                pairs = zip(changed, ours, theirs, strict=True)
                different = [(one or other, was, now) for (one, other), was, now in pairs if was != now]
                labels = [(instance.label, was, now) for instance, was, now in different if instance is not None]
                gained = tuple(label for label, _, now in labels if now is not None)
                lost = tuple(label for label, was, _ in labels if was is not None)
                return MutantDifference(self._trace(number), gained, lost)
        return None

    def _steps(
        self, interpreter: Interpreter, instances: Sequence[Instance | None], state: State
    ) -> Iterator[State | str | None]:
        """What each instance leads to; a text if evaluating it fails."""
        for instance in instances:
            try:
                yield None if instance is None else interpreter.take(instance, state)
            except EvaluationError as error:
                yield error.message

    def _initial(self, mutant: Interpreter) -> MutantDifference | None:
        ours = set(self._interpreter.initial_states())
        theirs = list(mutant.initial_states())
        new = next((state for state in theirs if state not in ours), None)
        if new is not None:
            return MutantDifference(Trace((new,), ()), (), ())
        lost = next((state for state in ours if state not in set(theirs)), None)
        return None if lost is None else MutantDifference(Trace((lost,), ()), (), ("the original begins here",))

    def _trace(self, number: int) -> Trace:
        search = self._original.search
        return Witnesses(search.scalarised, search.state, search.parent, None, search.instance).to(number)
