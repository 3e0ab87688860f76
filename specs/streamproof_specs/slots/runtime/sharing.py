"""Who shares slots in a recorded job: slot sharing groups, subtasks of one operator, and co-located operators.

The machine `slot_pool` knows that a slot is used, not by whom. A JobMaster declares its slot sharing groups with the slots
that it requires, and records which subtasks come into which slots. From the reservation of a free slot until no region uses
it, its subtasks are of one group and of different operators; subtask i of an operator that is co-located with another one is
in the slot of subtask i of that. What comes into the slots of a TaskExecutor is what was reserved there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamproof.conformance import Event

Expect = Callable[[bool, str], None]
"""Takes a condition without which the log contradicts itself, and the contradiction."""


class Sharing:
    """The subtasks in the slots of one job, as the JobMaster reserves them."""

    def __init__(self, expect: Expect) -> None:
        self._expect = expect
        self._declared: Mapping[str, Any] | None = None
        self._masters: set[str] = set()
        self._job: Any = None
        """The job of the JobMaster, in a session of several."""
        self._of_master: dict[str, tuple[Mapping[str, Any], Mapping[str, tuple[str, str]]]] = {}
        """What each JobMaster has declared, and the operator and the group of its subtasks."""
        self._groups: dict[str, dict[str, int]] = {}
        self._task: dict[str, tuple[str, str]] = {}
        """The operator of each subtask, and its group."""
        self._inside: dict[str, set[str]] = {}
        """The subtasks in each slot."""

    def declared(self, event: Event) -> None:
        """The groups, which stay, and a requirement that is enough for them. Raises `ValueError` for another form."""
        about = {name: event.args[name] for name in ("groups", "co_located")}
        about |= {name: event.args[name] for name in ("resources", "profiles") if name in event.args}
        if event.args.get("job") != self._job and event.process not in self._masters:  # the next job of a session
            self._job, self._declared, self._task = event.args.get("job"), None, {}
        self._expect(event.args.get("job") == self._job, "the JobMaster was one of another job before")
        if self._declared is None:
            self._read(about)
            self._declared = about
        self._of_master[event.process] = self._declared, self._task
        self._expect(about == self._declared, "the slot sharing groups were other ones before")
        most = [max(own.values(), default=0) for own in self._groups.values()]
        required = event.args["required"]
        if len(most) > 1:
            self._expect(required <= sum(most), f"the slot sharing groups need {sum(most)} slots, not {required}")
            is_first = event.process not in self._masters
            self._expect(not is_first or required == sum(most), f"the slot sharing groups need {sum(most)} slots")
        self._masters.add(event.process)

    def _read(self, about: Mapping[str, Any]) -> None:
        groups, pairs = about["groups"], about["co_located"]
        if not isinstance(groups, dict) or not all(isinstance(own, dict) for own in groups.values()):
            raise ValueError("the slot sharing groups are no operators by group")
        for group, own in groups.items():
            for operator, number in own.items():
                if type(number) is not int or not 1 <= number <= 10_000:
                    raise ValueError(f"the parallelism of {operator} is {number!r}")
                for task in _subtasks(operator, number):
                    self._expect(task not in self._task, f"subtask {task} is in two groups")
                    self._task[task] = operator, group
        self._groups = groups
        operators = {operator: number for own in groups.values() for operator, number in own.items()}
        for pair in pairs if isinstance(pairs, list) else (pairs,):
            if not isinstance(pair, list) or len(pair) != 2 or not {*pair} <= operators.keys():
                raise ValueError(f"{pair!r} are no operators that are co-located")
            same = operators[pair[0]] == operators[pair[1]]
            self._expect(same, f"{pair[0]} and {pair[1]} are co-located, and have another parallelism")

    def reserved(self, event: Event, fresh: Iterable[str]) -> None:
        """The subtasks of a region come into slots; `fresh` are those that no region uses. Raises `ValueError`."""
        if self._declared is None:
            raise ValueError("no slots have been declared")
        tasks = slots_of(event)
        place = {task: slot for slot, own in tasks.items() for task in own}
        unknown = next((task for task in place if task not in self._task), None)
        if unknown is not None:
            raise ValueError(f"there is no subtask {unknown!r}")
        held = (event.state or {}).get("slots", {})
        self._expect({*fresh} <= {*tasks}, "a slot is reserved for no subtask")
        self._expect(
            all(held.get(slot) == "RESERVED" for slot in tasks), "a subtask comes into a slot that is not reserved"
        )
        self._expect(len(place) == sum(map(len, tasks.values())), "a subtask is in two slots")
        operators = {self._task[task][0] for task in place}
        every = {t for own in self._groups.values() for o in operators for t in _subtasks(o, own.get(o, 0))}
        self._expect(place.keys() == every, f"subtasks of {', '.join(sorted(operators))} have no slot")
        for slot in fresh:
            self._inside[slot] = set()
        for own in self._inside.values():  # an attempt ends before the next one
            own -= every
        for slot, new in tasks.items():
            inside = self._inside.setdefault(slot, set())
            inside.update(new)
            self._share(slot, sorted(inside))
        for one, other in self._declared["co_located"]:
            if one in operators:
                self._together(one, other, place)

    def _share(self, slot: str, inside: list[str]) -> None:
        """The subtasks in a slot are of one group and of different operators."""
        by_group, by_operator = dict[str, str](), dict[str, str]()
        for task in inside:
            operator, group = self._task[task]
            other = by_operator.setdefault(operator, task)
            self._expect(other == task, f"slot {slot} has {other} and {task}, subtasks of one operator")
            by_group.setdefault(group, task)
        first, *more = [f"{task} (slot sharing group {group})" for group, task in by_group.items()]
        self._expect(not more, f"slot {slot} has {' and '.join((first, *more))}")

    def _together(self, one: str, other: str, place: Mapping[str, str]) -> None:
        """Co-located operators are in the same slots."""
        number = next(own[one] for own in self._groups.values() if one in own)
        for task, beside in zip(_subtasks(one, number), _subtasks(other, number), strict=True):
            if place.get(task) != place.get(beside):
                self._expect(False, f"{task} is not in the slot of {beside}, with which it is co-located")

    def deployed(self, event: Event, source: Event | None, place: Mapping[str, str]) -> None:
        """The subtasks on a TaskExecutor are those that were reserved there; `place` has the TaskExecutor of each slot."""
        tasks = slots_of(event)
        self._expect([*tasks] == event.args["slots"], "the subtasks are in other slots")
        declared, known = self._of_master.get(source.process if source is not None else "", ({}, {}))
        profile = _amounts(declared.get("profiles", {}), event.process.partition("@")[0])
        for task in (task for own in tasks.values() for task in own if task in known):
            group = known[task][1]
            for name, amount in _amounts(declared.get("resources", {}), group).items():
                why = f"{task} (slot sharing group {group}) needs {name}={amount}, and is at {event.process}"
                self._expect(profile.get(name, 0) >= amount, why)
        if source is not None and source.event == "slots_reserved":
            expected = {slot: own for slot, own in slots_of(source).items() if place.get(slot) == event.process}
            self._expect(tasks == expected, f"{event.process} has {tasks} in its slots, not {expected}")


def _amounts(by_name: Any, name: str) -> dict[str, int]:
    """The resources of a group, or of the slots of a TaskExecutor. Raises `ValueError` for another form."""
    found = by_name.get(name, {}) if isinstance(by_name, dict) else None
    if not isinstance(found, dict) or not all(type(amount) is int for amount in found.values()):
        raise ValueError(f"the resources of {name} are no amounts by name")
    return found


def slots_of(event: Event) -> dict[str, list[str]]:
    """The subtasks in each slot. Raises `ValueError` for another form."""
    tasks = event.args["subtasks"]
    if not isinstance(tasks, dict) or not all(isinstance(own, list) and own for own in tasks.values()):
        raise ValueError("the subtasks are no lists by slot")
    if not all(isinstance(task, str) for own in tasks.values() for task in own):
        raise ValueError("a subtask is no text")
    return tasks


def _subtasks(operator: str, number: int) -> list[str]:
    return [operator] if number == 1 else [f"{operator}{i}" for i in range(number)]
