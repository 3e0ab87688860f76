"""Processes of a system: what its steps are steps of, by the arrays that parameters index and by the parts of a composition.

Nothing is declared. A parameter names a process if it is an index of an array in the rules of its action. Parameters of
several actions that index the same array are of one kind, which has the name of most of them: ``node 0``. A value that is a
name is the name of the process. The steps of a part, ``operator[0].leave()``, are steps of the process ``operator[0]``.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from streamproof.base.records import dataclass
from streamproof.system import expr as e
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Action, Conjunct, Instance, State, System

SAMPLE = 8
"""Number of instances of an action whose rules are looked at."""
MOST_PAIRS = 100_000
"""Largest number of pairs of a blocked instance and another one that are compared."""

_Kind = tuple[str, str]
"""An action and its parameter."""


class Processes:
    """The processes of a system, by name."""

    def __init__(self, system: System) -> None:
        self.system = system

    def of(self, instance: Instance) -> tuple[str, ...]:
        """The processes that take a step; none for a step of the whole system."""
        found = [part for label in (instance.of or (instance.label,)) if (part := _part(label))]
        for (name, value), text in zip(instance.args, instance.texts[0], strict=True):
            kind = self._kinds.get((instance.action, name))
            if kind is not None:
                found.append(self.named(kind, value, text))
        return tuple(dict.fromkeys(found))

    def named(self, kind: str, value: Any, text: str) -> str:
        """The name of a process of a kind."""
        is_name = isinstance(value, str) and not text.isdecimal()
        return text if is_name else f"{kind} {text}"

    @cached_property
    def _kinds(self) -> dict[_Kind, str]:
        """The name of the kind of each parameter that indexes an array."""
        return {member: name for name, members, _ in self._groups for member in members}

    @cached_property
    def indexed(self) -> dict[tuple[str, int], str]:
        """The kind of the processes that are the indices of an array, by its variable and level; parameters index these."""
        return {place: name for name, _, places in self._groups for place in places}

    @cached_property
    def _groups(self) -> list[tuple[str, set[_Kind], set[tuple[str, int]]]]:
        """Each kind: its name, the parameters of this kind, and the arrays that they index."""
        indexed = {key: places for a in self.system.actions for key, places in _indexed(a)}
        groups: list[tuple[set[_Kind], set[tuple[str, int]]]] = []
        for key, places in indexed.items():
            joined, shared = {key}, set(places)
            for group in [g for g in groups if g[1] & places]:
                groups.remove(group)
                joined, shared = joined | group[0], shared | group[1]
            groups.append((joined, shared))
        order = list(indexed)
        found = []
        for members, places in groups:
            names = Counter(name for _, name in sorted(members, key=order.index))
            found.append((names.most_common(1)[0][0], members, places))
        return found


def _part(label: str) -> str:
    """The part of a composition in the label of a step, ``lane[0]`` in ``lane[0].push(x=1)``."""
    return label.partition("(")[0].rpartition(".")[0]


def _indexed(action: Action) -> Iterator[tuple[_Kind, set[tuple[str, int]]]]:
    """The parameters of an action that are indices of arrays in each of its rules, with these arrays and their levels."""
    for at, name in enumerate(action.parameters):
        places: set[tuple[str, int]] | None = None
        for instance in islice(action.instances, SAMPLE):
            if at >= len(instance.args):
                break
            own = set(_places(instance, instance.args[at][1]))
            places = own if places is None else places & own
        if places:
            yield (action.name, name), places


def _places(instance: Instance, value: Any) -> Iterator[tuple[str, int]]:
    """The arrays, with their levels, of which the rules of an instance read or write the element at a value."""
    terms = [c.expr for c in instance.guard] + [term for _, term in instance.updates]
    for term in e.subterms(*terms):
        if isinstance(term, e.Select | e.Store) and isinstance(term.index, e.Const):
            own = term.index.value
            if type(own) is type(value) and own == value:
                root, level = term.array, 0
                while not isinstance(root, e.Var):
                    below = next(
                        (getattr(root, part) for part in ("array", "record", "arg") if hasattr(root, part)), None
                    )
                    if below is None:
                        break
                    root, level = below, level + 1
                if isinstance(root, e.Var):
                    yield root.name, level


# --- who waits for whom


@dataclass(frozen=True, slots=True)
class Wait:
    """A process that waits for another one: its step `label` needs `condition`, which the effect of the step `helper` of the
    process `other` would make true."""

    process: str
    label: str
    condition: Conjunct
    other: str
    helper: str


def circle_of_waiting(interpreter: Interpreter, state: State) -> tuple[Wait, ...]:
    """A shortest circle of processes in a deadlock, of which each waits for the next; empty if there is none.

    A process waits by the steps of which one condition alone is false. That the effect of a step would make a condition true
    is evaluated, whatever the guard of that step.
    """
    system, processes = interpreter.system, Processes(interpreter.system)
    blocked = list(_blocked(interpreter, state, processes))
    steps = [(i, of) for i in system.instances if i.updates and (of := processes.of(i))]
    if len(blocked) * len(steps) > MOST_PAIRS:
        return ()
    effects = [(i, of, after) for i, of in steps if (after := _effect(interpreter, i, state)) is not None]
    waits: dict[str, dict[str, Wait]] = {}
    for instance, own, condition in blocked:
        read = {term.name for term in e.subterms(condition.expr) if isinstance(term, e.Var)}
        for helper, others, after in effects:
            new = [o for o in others if o not in own]
            if new and any(name in read for name, _ in helper.updates) and interpreter.value(condition.expr, after):
                for process in own:
                    for other in new:
                        wait = Wait(process, instance.label, condition, other, helper.label)
                        waits.setdefault(process, {}).setdefault(other, wait)
    circles = [found for start in waits if (found := _circle(waits, start))]
    return min(circles, key=len, default=())


def _blocked(
    interpreter: Interpreter, state: State, processes: Processes
) -> Iterator[tuple[Instance, tuple[str, ...], Conjunct]]:
    """The instances of processes of which one condition alone is false in a state, with that one."""
    for instance in interpreter.system.instances:
        false = [c for c in instance.guard if not interpreter.value(c.expr, state)]
        if len(false) == 1 and (own := processes.of(instance)):
            yield instance, own, false[0]


def _effect(interpreter: Interpreter, instance: Instance, state: State) -> State | None:
    """The state after the assignments of an instance, whatever its guard; None where they are an evaluation error."""
    evaluation = interpreter.evaluation(state)
    if any(evaluation.value(check.condition) for check in (*instance.guard_checks, *instance.effect_checks)):
        return None
    after, index = list(state), interpreter.system.index
    for name, term in instance.updates:
        after[index[name]] = evaluation.value(term)
    return tuple(after)


def _circle(waits: dict[str, dict[str, Wait]], start: str) -> tuple[Wait, ...]:
    """A shortest circle through a process."""
    before: dict[str, Wait] = {}
    frontier = deque([start])
    while frontier:
        process = frontier.popleft()
        for other, wait in waits.get(process, {}).items():
            if other == start:
                circle = [wait]
                while circle[0].process != start:
                    circle.insert(0, before[circle[0].process])
                return tuple(circle)
            if other not in before:
                before[other] = wait
                frontier.append(other)
    return ()
