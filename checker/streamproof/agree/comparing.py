"""Comparison of results.

Counts, levels, the set of states and the depth of a model error must be equal; every property must have the same
verdict, by a behaviour of the same, shortest length. If several events decide a property at that length (a violation in
one state, an error in another), engines with a search order other than the interpreter's may report any of them. A
bounded engine is compared only on events within its bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from streamproof.agree.result import Answer, EngineResult, Expected, ResultDifference
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.sorts import show
from streamproof.system.verdict import Verdict


def differences(
    system: System, results: Sequence[EngineResult], expected: Mapping[str, Expected] | None = None
) -> Iterator[ResultDifference]:
    """All differences between the results, each between the first engine with a figure and another one.

    `expected`: what the interpreter permits in any search order, if available; the first result is then the
    interpreter's.
    """
    for result in results:
        if result.unconfirmed is not None:
            yield ResultDifference("a behaviour", result.engine, result.unconfirmed, "the interpreter", "it is none")
    tellers = [o for o in results if o.tells_mistakes]
    for other in tellers[1:]:
        if other.mistake != tellers[0].mistake:
            yield _difference(
                "the model's first mistake", tellers[0], _mistake_text(tellers[0]), other, _mistake_text(other)
            )
    if all(o.mistake is None for o in tellers):
        yield from _counts(system, results)
    for prop in system.properties:
        yield from _of_property(prop, results, expected)


def _mistake_text(result: EngineResult) -> str:
    return "there is none" if result.mistake is None else f"level {result.mistake}"


def _difference(
    what: str, one: EngineResult, one_result: object, other: EngineResult, other_result: object, more: str = ""
) -> ResultDifference:
    return ResultDifference(what, one.engine, str(one_result), other.engine, str(other_result), more)


# --- counts and states ----------------------------------------------------------------------------------------------


def _counts(system: System, results: Sequence[EngineResult]) -> Iterator[ResultDifference]:
    for what in ("distinct", "generated", "depth"):
        tellers = [o for o in results if getattr(o, what) is not None]
        for other in tellers[1:]:
            one = getattr(tellers[0], what)
            if getattr(other, what) != one:
                yield _difference(what, tellers[0], one, other, getattr(other, what))
    tellers = [o for o in results if o.levels is not None]
    for other in tellers[1:]:
        yield from _levels(system, tellers[0], other)
    ordered = [o for o in tellers if o.in_order and o.digest is not None]
    for other in ordered[1:]:
        one, two = ordered[0].digest, other.digest
        if one is not None and two is not None and one.levels == two.levels and one.ordered != two.ordered:
            yield _difference("the order of states", ordered[0], one.ordered, other, two.ordered)


def _levels(system: System, one: EngineResult, other: EngineResult) -> Iterator[ResultDifference]:
    """The first level on which two engines have different states, or different numbers of states."""
    assert one.levels is not None
    assert other.levels is not None
    for at in range(max(len(one.levels), len(other.levels))):
        sizes = [o.levels[at] if o.levels is not None and at < len(o.levels) else 0 for o in (one, other)]
        sums = [o.digest.levels[at] if o.digest and at < len(o.digest.levels) else None for o in (one, other)]
        known = None not in sums
        if sizes[0] == sizes[1] and (not known or sums[0] == sums[1]):
            continue
        if sizes[0] != sizes[1]:
            what, says = f"states on level {at + 1}", [str(size) for size in sizes]
        else:
            what, says = (
                f"the set of states on level {at + 1}",
                [f"{total:032x}" for total in sums if total is not None],
            )
        yield _difference(what, one, says[0], other, says[1], _example(system, one, other, at))
        return


def _example(system: System, one: EngineResult, other: EngineResult, level: int) -> str:
    """A state on a level of one of two engines only."""
    if one.states is None or other.states is None:
        return ""
    mine, others = _level(one, level), _level(other, level)
    for has, states in ((one, mine - others), (other, others - mine)):
        if states:
            texts = (", ".join(f"{v.name} = {show(v.sort, x)}" for v, x in system.named(state)) for state in states)
            return f"only {has.engine} has there: {min(texts)}"
    return ""


def _level(result: EngineResult, level: int) -> set[State]:
    assert result.levels is not None
    assert result.states is not None
    begin = sum(result.levels[:level])
    size = result.levels[level] if level < len(result.levels) else 0
    return set(islice(result.states(), begin, begin + size))


# --- verdicts -------------------------------------------------------------------------------------------------------


def _of_property(
    prop: Property, results: Sequence[EngineResult], expected: Mapping[str, Expected] | None
) -> Iterator[ResultDifference]:
    answering = [o for o in results if prop.name in o.answers]
    base = next((o for o in answering if o.horizon is None and _decided(o.answers[prop.name])), None)
    base = base or next((o for o in answering if _decided(o.answers[prop.name])), None)
    if base is None:
        return
    wanted = None if expected is None else expected.get(prop.name)
    for other in answering:
        if other is not base and not accepts(prop, base, other, wanted):
            yield _difference(prop.name, base, base.answers[prop.name], other, other.answers[prop.name])


def _decided(answer: Answer) -> bool:
    return answer.verdict is not Verdict.INCONCLUSIVE


def accepts(prop: Property, base: EngineResult, other: EngineResult, expected: Expected | None) -> bool:
    """Whether an engine's answer is consistent with another's, and with the expected one, if the interpreter gave one."""
    exact, answer = base.answers[prop.name], other.answers[prop.name]
    endless = prop.kind in (Kind.TERMINATION, Kind.TEMPORAL)
    if other.in_order and base.in_order:
        # In the state with the error, the interpreter takes some steps before the error, and they may decide a property
        # that another engine leaves undecided.
        spared = base.mistake is not None and (answer == Answer(Verdict.ERROR, base.mistake) or endless)
        comparable = not endless or (exact.length is not None and answer.length is not None)
        return (answer == exact if comparable else answer.verdict is exact.verdict) or spared
    if answer.verdict is Verdict.INCONCLUSIVE and (other.horizon is not None or endless):
        return other.horizon is None or expected is None or not _within(expected, other.horizon)
    if endless:
        return answer.verdict is exact.verdict or base.mistake is not None
    if expected is None:
        if base.mistake is not None and answer == Answer(Verdict.ERROR, base.mistake):
            return True
        expected = Expected(frozenset({exact.verdict}), exact.length)
    if other.horizon is None or _within(expected, other.horizon):
        return expected.permits(answer, lengths=other.lengths)
    return answer.length is None and other.complete and answer.verdict in expected.verdicts


def _within(expected: Expected, horizon: int) -> bool:
    """Whether the behaviour that decides a property has at most `horizon` states."""
    return expected.length is not None and expected.length <= horizon
