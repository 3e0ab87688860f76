"""What every engine says of one system, in a form that can be compared, and the referee that they are compared with.

The rule of comparison: counts, levels and the depth of a model's mistake are equal; every property is decided alike, by a
behaviour of the same, shortest length. Where several events decide a property at that length (a violation in one state, a
mistake in another), engines that search in another order than the interpreter may report any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import pytest

from streamproof.exchange import spin
from streamproof.explicit import explore
from streamproof.symbolic import bmc
from streamproof.system import EvaluationError, Interpreter, Kind, Property, State, System, Verdict
from streamproof.system.reference import Reference, reference


@dataclass(frozen=True)
class Answer:
    """A verdict, and the number of states of the behaviour that shows it; `loop`: those before its cycle."""

    verdict: Verdict
    length: int | None = None
    loop: int | None = None


@dataclass(frozen=True)
class Opinion:
    """What one engine says of a system.

    `counts`: distinct, generated, depth. `states`: in the order of discovery. `mistake`: the level of the model's mistake.
    `horizon`: the most states of a behaviour that was looked at, None for no bound. `in_order`: the search takes states in
    the interpreter's order.
    """

    engine: str
    answers: Mapping[str, Answer]
    counts: tuple[int, int, int] | None = None
    levels: tuple[int, ...] | None = None
    states: tuple[State, ...] | None = None
    mistake: int | None = None
    horizon: int | None = None
    complete: bool = True
    in_order: bool = False


@dataclass(frozen=True)
class Expected:
    """What may be answered for a property, whatever the order of search, and the number of states that shows it."""

    verdicts: frozenset[Verdict]
    length: int | None


@dataclass(frozen=True)
class Referee:
    """The interpreter's own answers: in its order of search, and whatever the order."""

    system: System
    ordered: Reference
    unordered: Mapping[str, Expected]

    def compare(self, opinion: Opinion) -> None:
        """Fail with what differs, and the system."""
        differences = list(self._differences(opinion))
        assert not differences, f"{opinion.engine}: " + "\n".join((*differences, repr(self.system)))

    def _differences(self, opinion: Opinion) -> Iterator[str]:
        known = self.ordered
        if opinion.horizon is None and opinion.mistake != known.mistake:
            yield f"mistake at level {opinion.mistake}, not {known.mistake}"
        if known.mistake is None:
            counts = (known.counts.distinct, known.counts.generated, known.counts.depth)
            if opinion.counts not in (None, counts):
                yield f"counts {opinion.counts}, not {counts}"
            if opinion.levels not in (None, known.counts.levels):
                yield f"levels {opinion.levels}, not {known.counts.levels}"
            if opinion.states not in (None, tuple(chain(*known.levels))):
                yield "other states, or another order"
        if opinion.answers.keys() != {p.name for p in self.system.properties}:
            yield f"answers for {', '.join(opinion.answers) or 'nothing'}"
            return
        for prop in self.system.properties:
            answer = opinion.answers[prop.name]
            if not self._accepts(prop, answer, opinion):
                yield f"{prop.name}: {answer}, not {known.decisions[prop.name]} or {self.unordered[prop.name]}"

    def _accepts(self, prop: Property, answer: Answer, opinion: Opinion) -> bool:
        decision = self.ordered.decisions[prop.name]
        exact = Answer(decision.verdict, decision.length, decision.loop)
        if opinion.in_order:
            # In the very state that makes the mistake, the interpreter takes some steps before it, and they may decide
            # something that an engine leaves to the mistake.
            spared = self.ordered.mistake is not None and (
                answer == Answer(Verdict.ERROR, self.ordered.mistake) or prop.kind is Kind.TERMINATION
            )
            return answer == exact or spared
        expected = self.unordered[prop.name]
        if prop.kind is Kind.TERMINATION:
            if opinion.horizon is not None or self.ordered.mistake is not None:
                return answer.verdict is not Verdict.ERROR
            return answer.verdict is exact.verdict
        if opinion.horizon is None or (expected.length is not None and expected.length <= opinion.horizon):
            return answer.verdict in expected.verdicts and answer.length == expected.length
        return answer.length is None and (
            answer.verdict is Verdict.INCONCLUSIVE or (opinion.complete and answer.verdict in expected.verdicts)
        )


class Panel:
    """Asks every engine."""

    @staticmethod
    def referee(system: System) -> Referee:
        """The interpreter, which says what a system means."""
        return Referee(system, reference(system), expected(system))

    @staticmethod
    def explored(system: System, tier: str) -> Opinion:
        """The explicit engine; its behaviours have been replayed by the interpreter."""
        result = explore(system, tier=tier)
        counts = result.counts
        return Opinion(
            f"explicit, {tier}",
            {
                f.property: Answer(f.verdict, *((len(f.trace), f.trace.loop) if f.trace else ()))
                for f in result.findings
            },
            (counts.distinct, counts.generated, counts.depth),
            counts.levels,
            tuple(result.states()),
            None if result.mistake is None else len(result.mistake.trace),
            in_order=True,
        )

    @staticmethod
    def bounded(system: System, depth: int, *, integers: bool = False) -> Opinion:
        """The symbolic engine, for behaviours of so many steps."""
        result = bmc(system, depth, integers=integers)
        answers = {f.property: Answer(f.verdict, len(f.trace) if f.trace else None) for f in result.findings}
        return Opinion("bounded", answers, horizon=depth + 1, complete=result.complete)

    @staticmethod
    def spun(system: System, options: spin.Options) -> Opinion:
        """Spin, breadth first."""
        counted = spin.count(system, options)
        assert counted.truncated is None
        assert counted.depth is not None
        return Opinion(
            "Spin",
            {d.property: Answer(d.verdict, d.length) for d in spin.decide(system, None, options)},
            (counted.distinct, counted.generated, counted.depth),
            mistake=counted.mistake,
        )


@pytest.fixture(scope="session")
def panel() -> Panel:
    """Every engine's opinion."""
    return Panel()


@pytest.fixture(scope="session")
def expect() -> Callable[[System], Mapping[str, Expected]]:
    """What may be answered for each property of a system, whatever the order of search."""
    return expected


def expected(system: System) -> Mapping[str, Expected]:
    """By breadth-first search with the interpreter: the first level at which each property is decided, and how."""
    interpreter = Interpreter(system)
    level = tuple(interpreter.initial_states())
    seen = set(level)
    decided: dict[str, Expected] = {}
    arriving: list[tuple[State, State]] = []
    length = 1
    while level:
        for prop in system.properties:
            if prop.name not in decided:
                found = frozenset(_events(interpreter, prop, level, arriving))
                if found:
                    decided[prop.name] = Expected(found, length)
        if any(_mistaken(interpreter, state) for state in level):
            return {
                p.name: decided.get(p.name, Expected(frozenset({Verdict.ERROR}), length)) for p in system.properties
            }
        arriving = [(state, step.state) for state in level for step in interpreter.steps(state)]
        level = tuple(dict.fromkeys(after for _, after in arriving if after not in seen))
        seen.update(level)
        length += 1
        for prop in system.properties:
            # Steps between known states are seen although they open no new level.
            if prop.name not in decided and prop.kind is Kind.STEP:
                found = frozenset(_events(interpreter, prop, (), arriving))
                if found:
                    decided[prop.name] = Expected(found, length)
    never = {p.name: Verdict.VIOLATED if p.kind is Kind.REACHABLE else Verdict.HOLDS for p in system.properties}
    return {name: decided.get(name, Expected(frozenset({verdict}), None)) for name, verdict in never.items()}


def _events(
    interpreter: Interpreter, prop: Property, level: tuple[State, ...], arriving: list[tuple[State, State]]
) -> Iterator[Verdict]:
    match prop.kind:
        case Kind.TERMINATION:
            return
        case Kind.DEADLOCK:
            free = (s for s in level if not _mistaken(interpreter, s) and not interpreter.terminal(s))
            yield from (Verdict.VIOLATED for s in free if not any(interpreter.steps(s)))
        case Kind.STEP:
            yield from (v for s, t in arriving if (v := _value(interpreter, prop, s, t)) is not Verdict.HOLDS)
        case Kind.REACHABLE:
            yield from (v for s in level if (v := _value(interpreter, prop, s)) is not Verdict.VIOLATED)
        case Kind.INVARIANT:
            yield from (v for s in level if (v := _value(interpreter, prop, s)) is not Verdict.HOLDS)


def _value(interpreter: Interpreter, prop: Property, state: State, after: State | None = None) -> Verdict:
    try:
        return Verdict.HOLDS if interpreter.holds(prop, state, after) else Verdict.VIOLATED
    except EvaluationError:
        return Verdict.ERROR


def _mistaken(interpreter: Interpreter, state: State) -> bool:
    try:
        for _ in interpreter.steps(state):
            pass
    except EvaluationError:
        return True
    return False
