"""What changed between two systems: verdicts, behaviours, reachable states, actions, variables and fairness constraints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from streamproof.base.errors import UsageError
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass, replace
from streamproof.difference.behaviours import (
    ACTIONS,
    STATES,
    STEPS,
    BehaviourDifference,
    common_variables,
    compare_behaviours,
    observers,
)
from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.level_search import Stop
from streamproof.explicit.witness import Witnesses
from streamproof.system.model import Property, System, fairness_constraints
from streamproof.system.verdict import Finding, Trace, Verdict


@dataclass(frozen=True, slots=True)
class OnlyOne:
    """Names that only the system before has, and that only the one after has."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @classmethod
    def of(cls, before: Collection[str], after: Collection[str]) -> OnlyOne:
        """The names of two collections that are in one of them only, in their order."""
        return cls(tuple(n for n in before if n not in after), tuple(n for n in after if n not in before))

    def __bool__(self) -> bool:
        return bool(self.before or self.after)


@dataclass(frozen=True, slots=True)
class VerdictPair:
    """The findings about a property of one name before and after; None: there is none of this name.

    `restated`: the two properties are different terms.
    """

    name: str
    before: Finding | None
    after: Finding | None
    restated: bool

    @property
    def differs(self) -> bool:
        """Whether the verdicts, with their reservations, differ, or the property is gone, or is new and does not hold."""
        return self.texts[0] != self.texts[1] and not self.open and not self.is_new

    @property
    def is_new(self) -> bool:
        """Whether only the system after has the property, which holds there."""
        return self.before is None and self.after is not None and self.after.verdict is Verdict.HOLDS

    @property
    def open(self) -> bool:
        """Whether one of the two searches left it undecided."""
        return any(f is not None and f.verdict is Verdict.INCONCLUSIVE for f in (self.before, self.after))

    @property
    def texts(self) -> tuple[str, str]:
        """The two verdicts as text; "absent" where there is no property of this name."""
        one, other = ("absent" if f is None else f.text() for f in (self.before, self.after))
        return one, other


@dataclass(frozen=True, slots=True)
class StateDifference:
    """Reachable states, seen as their common variables, that only one system has: their number, and a shortest way to one."""

    both: int
    vanished: int
    appeared: int
    to_vanished: Trace | None
    to_appeared: Trace | None


@dataclass(frozen=True, slots=True)
class ModelDifference:
    """All differences between two systems. `view` is what is seen of a step; see `behaviours`."""

    before: Exploration
    after: Exploration
    view: str
    verdicts: tuple[VerdictPair, ...]
    behaviours: BehaviourDifference
    states: StateDifference | None
    """None: a search ended early, or states are not seen."""
    common: tuple[str, ...]
    """The variables that both have."""
    variables: OnlyOne
    actions: OnlyOne
    taken: OnlyOne
    """Actions of both systems that only one of them ever takes."""
    fairness: OnlyOne
    """Fairness constraints that only one has: on other steps, or of another strength."""

    @property
    def verdicts_differ(self) -> bool:
        """Whether a verdict differs."""
        return any(pair.differs for pair in self.verdicts)

    @property
    def behaviours_differ(self) -> bool:
        """Whether finite behaviours, or fairness constraints, differ."""
        return bool(self.behaviours.gained or self.behaviours.lost or self.fairness)

    @property
    def properties_differ(self) -> bool:
        """Whether a property is new, or has another meaning, whatever its verdict is."""
        return any(pair.is_new or pair.restated for pair in self.verdicts)

    @property
    def stopped(self) -> str | None:
        """Why something was not compared to the end; None if all was."""
        sides = (("before", self.before), ("after", self.after))
        for where, one in sides:
            if one.mistake is not None:
                return f"the rules of the model {where} fail: {one.mistake.error.message}"
            if one.stopped is not None:
                return f"the search of the model {where} ended early ({one.stopped})"
        if self.behaviours.stopped is not None:
            return f"the comparison of behaviours ended early ({self.behaviours.stopped})"
        return f"not decided: {', '.join(self.open)}" if self.open else None

    @property
    def open(self) -> list[str]:
        """The properties of which a verdict, before or after, is not decided."""
        return [pair.name for pair in self.verdicts if pair.open]

    @property
    def interrupted(self) -> bool:
        """Whether the user ended the comparison."""
        ended = self.behaviours.stopped == Stop.INTERRUPTED.value
        return ended or self.before.interrupted or self.after.interrupted


def compare_systems(
    before: System,
    after: System,
    options: SearchOptions,
    *,
    view: str = STEPS,
    on_stage: Callable[[str], None] = lambda text: None,
) -> ModelDifference:
    """The differences between two systems, within the limits of `options` for each search.

    Raises `UsageError` if nothing of a step is seen, `ModelError` for a system without initial state, `TooLarge`, and
    `DifferenceUnconfirmed`.
    """
    common = common_variables(before, after)
    if view == STATES and not common:
        raise UsageError("the two models have no variable in common", remedy="compare them by actions")
    on_stage("searching the model before")
    first = explore(before, replace(options, properties=_chosen(before, options)))
    on_stage("searching the model after")
    second = explore(after, replace(options, properties=_chosen(after, options)))
    found = compare_behaviours(
        before, after, options, view=view, on_nodes=lambda count: on_stage(f"comparing behaviours: {count:,}")
    )
    on_stage("comparing states")
    taken = (_taken(first), _taken(second))
    names = [{a.name: None for a in one.actions} for one in (before, after)]
    both = [name for name in names[0] if name in names[1]]
    return ModelDifference(
        first,
        second,
        view,
        tuple(_verdicts(before, after, first, second)),
        found,
        _states(first, second) if view != ACTIONS and common else None,
        common,
        OnlyOne.of([v.name for v in before.variables], [v.name for v in after.variables]),
        OnlyOne.of(names[0], names[1]),
        OnlyOne.of([n for n in both if n in taken[0]], [n for n in both if n in taken[1]]),
        OnlyOne.of(list(_fairness(before)), list(_fairness(after))),
    )


def _chosen(system: System, options: SearchOptions) -> tuple[str, ...] | None:
    """The chosen properties that a system has; None: all."""
    if options.properties is None:
        return None
    names = {options.properties} if isinstance(options.properties, str) else set(options.properties)
    return tuple(p.name for p in system.properties if p.name in names)


def _taken(explored: Exploration) -> set[str]:
    return {name for name, count in explored.coverage.generated.items() if count}


def _verdicts(before: System, after: System, first: Exploration, second: Exploration) -> Iterator[VerdictPair]:
    findings = [{f.property: f for f in one.findings} for one in (first, second)]
    for name in dict.fromkeys([*findings[0], *findings[1]]):
        own, other = (one.get(name) for one in findings)
        restated = own is not None and other is not None and _meaning(before, name) != _meaning(after, name)
        yield VerdictPair(name, own, other, restated)


def _meaning(system: System, name: str) -> object:
    prop: Property = system.property(name)
    return prop.kind, prop.expr, prop.formula


def _fairness(system: System) -> Iterator[str]:
    """Each fairness constraint as text: its strength, its label, and its steps where they are not all of the action."""
    for one in fairness_constraints(system):
        if one.action not in {a.name for a in system.actions}:
            yield f"{one.fairness.value} fairness of {one.label}"
            continue
        labels = {system.instances[number].label for number in one.numbers}
        every = {i.label for i in system.action(one.action).instances if i.args == one.args}
        steps = "" if labels == every else f" (its steps {', '.join(sorted(labels))})"
        yield f"{one.fairness.value} fairness of {one.label}{steps}"


def _states(first: Exploration, second: Exploration) -> StateDifference | None:
    if not all(one.complete and one.mistake is None for one in (first, second)):
        return None
    looks = observers(first.system, second.system, STATES)
    seen = []
    for explored, look in zip((first, second), looks, strict=True):
        number_of: dict[tuple[object, ...], int] = {}
        for number, state in enumerate(explored.states()):
            number_of.setdefault(look(state), number)
        seen.append(number_of)
    vanished, appeared = ([n for at, n in seen[k].items() if at not in seen[1 - k]] for k in (0, 1))
    return StateDifference(
        len(seen[0]) - len(vanished),
        len(vanished),
        len(appeared),
        _way(first, vanished[0]) if vanished else None,
        _way(second, appeared[0]) if appeared else None,
    )


def _way(explored: Exploration, number: int) -> Trace:
    search = explored.search
    return Witnesses(search.scalarised, search.state, search.parent, None, search.instance).to(number)
