"""A model explored by running its own functions as ordinary Python: no rule, property or constraint is lowered.

Only names and arguments of the actions are taken from the system; what a rule does, which choices it meets, and what holds
where, plain Python decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from streamproof import EvaluationError, Model, Native
from streamproof.language.declare.model import marked
from streamproof.language.declare.primitives import FAILED, Disabled, NoPick, StateMark
from streamproof.system import Kind, System

SAFE = (Kind.INVARIANT, Kind.STEP, Kind.REACHABLE, Kind.DEADLOCK)
"""Kinds of properties that are decided by one state or step."""
MISTAKE: Any = object()
"""Instead of the next state: the rule makes a mistake."""


@dataclass
class PythonSearch:
    """What plain Python finds, breadth first."""

    levels: list[list[Any]] = field(default_factory=list)
    """The new states of each level, those outside a constraint included."""
    decided: dict[str, int] = field(default_factory=dict)
    """For each property that is violated (or reached): steps before the first state, or the first step, that shows it."""
    errors: dict[str, int] = field(default_factory=dict)
    """For each property that cannot be evaluated somewhere: steps before the first such state."""
    vague: set[str] = field(default_factory=set)
    """Properties that ask somewhere whether a rule is enabled that makes a mistake there, perhaps before a false guard."""
    mistake: int | None = None
    """Steps before the first state in which a rule makes a mistake; the search ends with its level."""
    taken: set[str] = field(default_factory=set)
    """The actions with a step."""
    inside: list[int] = field(default_factory=list)
    """Number of states of each level within the constraint."""
    cut: bool = False
    """Whether the search was ended at its limit of states."""

    @property
    def states(self) -> int:
        """Number of states within the constraint."""
        return sum(self.inside)

    @property
    def cuts(self) -> bool:
        """Whether some states are outside the constraint, or reached by a step outside."""
        return self.states < sum(map(len, self.levels))


class PythonModel:
    """A model and its rules as Python runs them."""

    def __init__(self, model: Model, system: System, *, limited: bool = True) -> None:
        self.native = Native(model)
        if not limited:
            self.native._limits, self.native._step_limits = [], []
        self.calls = [*dict.fromkeys((i.action, i.args) for i in system.instances)]
        self.kinds = {p.name: p.kind for p in system.properties if p.kind in SAFE}
        self.ends = [f for mark, f in marked(type(model)).values() if mark is StateMark.TERMINAL]

    def steps(self, state: Any) -> Iterator[tuple[str, Any]]:
        """The steps from a state: action and next state, `MISTAKE` where the rule makes one."""
        for action, args in self.calls:
            for after in self._runs(state, action, dict(args), ()):
                yield action, after

    def _runs(self, state: Any, action: str, args: Mapping[str, Any], picks: tuple[Any, ...]) -> Iterator[Any]:
        try:
            after = self.native.step(state, action, picks=picks, **args)
        except Disabled:
            return
        except EvaluationError:
            yield MISTAKE
            return
        except NoPick as missing:
            for option in missing.options:
                yield from self._runs(state, action, args, (*picks, option))
            return
        if after is not None:
            yield after

    def runs(self, states: Sequence[Any]) -> bool:
        """Whether these states are a behaviour: an initial one, and each the result of a step from the one before."""
        return states[0] in self.native.initial() and all(
            b in [t for _, t in self.steps(a)] for a, b in pairwise(states)
        )

    def ended(self, state: Any) -> bool:
        """Whether a state without successors is a terminal one, or outside the constraint."""
        return not self.native.inside(state) or any(self.native.holds(f, state) for f in self.ends)


def explored(model: Model, system: System, most: int = 2_000, *, limited: bool = True) -> PythonSearch:
    """All states of a model, up to `most`; with `limited`, within its constraints."""
    python, found, seen = PythonModel(model, system, limited=limited), PythonSearch(), set[Any]()

    def judge(depth: int, state: Any, after: Any | None = None) -> None:
        for name, kind in python.kinds.items():
            if (kind is Kind.STEP) is not (after is not None) or kind is Kind.DEADLOCK:
                continue
            failed: list[Exception] = []
            token = FAILED.set(failed)
            try:
                true = python.native.holds(name, state, after)
            except EvaluationError:
                found.errors.setdefault(name, depth)
                continue
            finally:
                FAILED.reset(token)
            if failed:
                found.vague.add(name)
                continue
            if true is (kind is Kind.REACHABLE):
                found.decided.setdefault(name, depth)

    level: list[Any] = []
    for state in python.native.initial():
        if state not in seen:
            seen.add(state)
            level.append(state)
            judge(0, state)
    while level:
        depth, following = len(found.levels), list[Any]()
        found.levels.append(level)
        found.inside.append(0)
        if len(seen) > most:
            found.cut = True
            break
        for state in level:
            try:
                inside = python.native.inside(state)
            except EvaluationError:
                found.mistake = depth
                continue
            found.inside[-1] += inside
            steps = list(python.steps(state)) if inside else []
            if not steps and "deadlock" in python.kinds and not python.ended(state):
                found.decided.setdefault("deadlock", depth)
            for action, after in steps:
                if after is MISTAKE:
                    found.mistake = depth
                    continue
                found.taken.add(action)
                judge(depth + 1, state, after)
                if after not in seen:
                    seen.add(after)
                    following.append(after)
                    judge(depth + 1, after)
        if found.mistake is not None:
            break
        level = following
    return found
