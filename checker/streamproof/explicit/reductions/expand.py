"""The successor function of a search that takes only the instances of stubborn sets."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from streamproof.explicit.reductions.stubborn import StubbornSets
from streamproof.explicit.successors import Expand, Rule, StepHit, Steps, rules_of
from streamproof.explicit.writer import Writer, load, local_names, shared, unpacking
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Property, State, System

Truth: TypeAlias = Callable[[State], int]
"""Returns the bits of the terms that are true in a state."""


def reduced_expander(
    system: System,
    steps: Sequence[tuple[int, Property]],
    stubborn: StubbornSets,
    *,
    edges: bool,
    canonical: Callable[[State], State] | None,
) -> Expand:
    """The successor function (`successors.expander`) restricted to the instances that `stubborn` selects in each state."""
    rules = rules_of(system, steps)
    truth = _truth(system, stubborn.atoms)
    wrong = _truth(system, [_mistake(system, rules)])
    ending = _truth(system, [b.FALSE if system.terminal is None else system.terminal])
    takes = [_take(system, rule) if rule.changes else None for rule in rules]
    judges = [_truth(system, [t for _, *terms in rule.steps for t in terms]) if rule.steps else None for rule in rules]

    def expand(
        states: Sequence[State],
        number: int,
        seen: dict[State, int],
        new: list[State],
        parents: array[int],
        targets: array[int],
        hits: list[StepHit],
        limit: int,
        _steps: Steps | None = None,
    ) -> tuple[int, tuple[int, ...], tuple[int, ...], int, int, int, int]:
        first, known = number, len(seen)
        least, most, stuck, faulty = 1 << 60, 0, -1, -1
        generated, distinct = [0] * len(rules), [0] * len(rules)
        for state in states:
            if wrong(state):
                faulty = number
                break
            choice = stubborn.choose(truth(state))
            for chosen in choice.taken:
                at, take, judge = number, takes[chosen], judges[chosen]
                if take is not None:
                    after = take(state)
                    if canonical is not None and after not in seen:
                        after = canonical(after)
                    at = seen.setdefault(after, known)
                    if at == known:
                        known += 1
                        new.append(after)
                        parents.append(number)
                        distinct[chosen] += 1
                generated[chosen] += 1
                if edges:
                    targets.append(at)
                if judge is not None and (results := judge(state)):
                    for k, (prop, _, _) in enumerate(rules[chosen].steps):
                        if results >> 2 * k & 3:
                            hits.append((prop, number, chosen, bool(results >> 2 * k & 1)))
            if edges:
                targets.append(-1)
            degree = len(choice.taken)
            if not degree and not choice.reduced and stuck < 0 and not ending(state):
                stuck = number
            least, most = min(least, degree), max(most, degree)
            number += 1
            if known > limit:
                break
        return number - first, tuple(generated), tuple(distinct), least, most, stuck, faulty

    return expand


def _mistake(system: System, rules: Sequence[Rule]) -> Expr:
    """The condition of an evaluation error in some guard or in the effect of an enabled instance."""
    undefined = (check.condition for instance in system.instances for check in instance.guard_checks)
    return b.or_((*undefined, *(b.and_((*rule.guard, rule.faults)) for rule in rules)))


def _truth(system: System, terms: Sequence[Expr]) -> Truth:
    writer = Writer(local_names(system))
    common = shared(terms)
    with writer.block("def truth(_state):"):
        writer.line(f"{unpacking(system)} = _state")
        writer.line("_true = 0")
        for number, term in enumerate(terms):
            if term is not b.FALSE:
                with writer.block(f"if {writer.term(term, common)}:"):
                    writer.line(f"_true |= {1 << number}")
        writer.line("return _true")
    return cast(Truth, load("truth", system.name, writer.source))


def _take(system: System, rule: Rule) -> Callable[[State], State]:
    writer = Writer(local_names(system))
    common = shared(rule.after)
    with writer.block("def take(_state):"):
        writer.line(f"{unpacking(system)} = _state")
        parts = [writer.term(term, common) for term in rule.after]
        writer.line(f"return ({', '.join(parts)},)")
    return cast(Callable[[State], State], load("take", system.name, writer.source))
