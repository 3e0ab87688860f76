"""Which rules and guards of the machines that follow logs are needed: each is taken out, and a log must show it.

    python tools/sabotage.py                    every machine; writes the table docs/validated.md
    python tools/sabotage.py --machine regions  one of them, printed
    ... --most 2                                copies of each kind of edit and run; default: 1
    ... --list                                  also the guards that no log shows

Three kinds of sabotage:

* an action that is never possible: a recorded run must be rejected;
* a guard that is left out: a tampered copy of a run, which was rejected, must be accepted, or rejected elsewhere;
* a variant of the model, whose functions replace the machine's: the same, or a recorded run must be rejected.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent / "tests" / "support")]

from lies import MACHINES, recorded_runs  # noqa: E402
from streamproof import Model  # noqa: E402
from streamproof.conformance import explaining, judging, validate_paths  # noqa: E402
from streamproof.conformance.moves import SystemMoves  # noqa: E402
from streamproof.language.declare.origin import model_of  # noqa: E402
from streamproof.system.model import Conjunct, Instance, System  # noqa: E402
from streamproof.traces.explain import why_false  # noqa: E402
from tampering import runtime_lies  # noqa: E402

Guard = tuple[str, int]
"""A condition of a rule: the file and the line."""
Change = Callable[[Instance], Instance | None]
"""Another instance in place of one; None: none."""


def guard_of(conjunct: Conjunct) -> Guard | None:
    """Where a condition is written."""
    return None if conjunct.loc is None else (str(Path(conjunct.loc.file).resolve()), conjunct.loc.line)


@dataclass
class Seen:
    """What was seen while logs were judged: the machines, the actions taken, and the conditions that were false."""

    machines: dict[type[Model], None] = field(default_factory=dict)
    taken: set[tuple[type[Model], str]] = field(default_factory=set)
    false: set[Guard] = field(default_factory=set)


@contextmanager
def judged_with(change: Change | None = None) -> Iterator[Seen]:
    """Judges logs with other instances of actions, and notes what is seen."""
    seen = Seen()
    changed: dict[int, tuple[Instance, Instance | None]] = {}

    def other(instance: Instance) -> Instance | None:
        if change is None:
            return instance
        if id(instance) not in changed:
            changed[id(instance)] = instance, change(instance)
        return changed[id(instance)][1]

    def others(instances: Iterable[Instance]) -> tuple[Instance, ...]:
        return tuple(o for i in instances if (o := other(i)) is not None)

    class Moves(SystemMoves):
        def __init__(self, system: System, grounding: Any = None) -> None:
            machine = model_of(system)
            if machine is not None:
                seen.machines[machine] = None
            self.machine = machine
            if change is not None:
                system = replace(
                    system, actions=tuple(replace(a, instances=others(a.instances)) for a in system.actions)
                )
            ground = grounding if grounding is None else lambda action, args: others(grounding(action, args))
            super().__init__(system, ground)

        def take(self, instance: Instance, state: Any) -> Any:
            after = super().take(instance, state)
            if after is not None and self.machine is not None:
                seen.taken.add((self.machine, instance.action))
            return after

    def noted(system: System, guard: tuple[Conjunct, ...], state: Any) -> str | None:
        seen.false.update(
            where for c in guard if (where := guard_of(c)) is not None and why_false(system, (c,), state) is not None
        )
        return why_false(system, guard, state)

    known = judging.SystemMoves, explaining.why_false
    judging.SystemMoves, explaining.why_false = Moves, noted  # type: ignore[misc, assignment]
    try:
        yield seen
    finally:
        judging.SystemMoves, explaining.why_false = known  # type: ignore[misc, assignment]


def without_guard(guard: Guard) -> Change:
    """Leaves out the conditions that are written at a place."""
    return lambda instance: replace(instance, guard=tuple(c for c in instance.guard if guard_of(c) != guard))


def without_action(action: str) -> Change:
    """Makes an action impossible."""
    return lambda instance: None if instance.action == action else instance


def guards(machine: type[Model]) -> Iterator[tuple[Guard, str, str]]:
    """The conditions ``require(...)`` in the functions that a machine has, its own and inherited: place, class and function,
    text. A condition with several lines has one place for each."""
    for name in dict.fromkeys(name for cls in machine.__mro__ for name in vars(cls)):
        for owner in machine.__mro__:
            function = vars(owner).get(name)
            if owner in (Model, object) or not inspect.isfunction(function):
                continue
            tree, first, file = _tree(function)
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require":
                    for part in _parts(node.args[0]):
                        at = str(Path(file).resolve()), first + part.lineno - 1
                        yield at, f"{owner.__name__}.{name}", ast.unparse(part)
            if not _calls_super(tree):
                break


def _parts(condition: ast.expr) -> list[ast.expr]:
    if isinstance(condition, ast.BoolOp) and isinstance(condition.op, ast.And):
        return [part for value in condition.values for part in _parts(value)]
    return [condition]


def _tree(function: Any) -> tuple[ast.AST, int, str]:
    lines, first = inspect.getsourcelines(function)
    indent = len(lines[0]) - len(lines[0].lstrip())
    return ast.parse("".join(line[indent:] or "\n" for line in lines)), first, inspect.getsourcefile(function) or ""


def _calls_super(tree: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and getattr(n.func, "id", "") == "super" for n in ast.walk(tree))


Answer = tuple[Any, ...]


def answer(outcome: Any) -> Answer:
    """What is compared of an outcome: the verdict, and the place or message of a rejection."""
    return outcome.verdict, outcome.place, outcome.message


@dataclass
class Found:
    """What the sabotage of one machine's rules has shown."""

    machine: type[Model]
    actions: dict[str, str] = field(default_factory=dict)
    """Action -> the run that is rejected without it; empty if none is."""
    guards: dict[Guard, str] = field(default_factory=dict)
    """Guard -> the edit that is caught by it alone, with its run; empty if there is none."""
    texts: dict[Guard, str] = field(default_factory=dict)


def sabotaged(lies: ModuleType, runs: Iterable[Path], most: int = 1) -> list[Found]:
    """Takes the actions and guards of the machines out, one by one, that follow the runs which `lies` edits."""
    runs = [*runs]
    found: dict[type[Model], Found] = {}

    def of(machine: type[Model]) -> Found:
        if machine not in found:
            found[machine] = Found(machine)
            for place, where, text in guards(machine):
                found[machine].guards.setdefault(place, "")
                found[machine].texts.setdefault(place, f"{where}: {text}")
        return found[machine]

    for run in runs:
        whole = _whole(lies, run)
        with judged_with() as seen:
            before = whole()
        for machine, action in sorted(seen.taken, key=lambda pair: (pair[0].__name__, pair[1])):
            if not of(machine).actions.get(action):
                with judged_with(without_action(action)):
                    after = whole()
                of(machine).actions[action] = run.name if after != before else ""
        for machine in seen.machines:
            of(machine)
    for run in runs:
        made: Counter[str] = Counter()
        for edit in lies.edits(run):
            made[edit.kind] += 1
            if made[edit.kind] > most:
                continue
            with judged_with() as seen:
                before = answer(lies.outcome(run, edit))
            owners = defaultdict(list)
            for machine in found.values():
                for guard in seen.false & machine.guards.keys():
                    if not machine.guards[guard]:
                        owners[guard].append(machine)
            for guard, machines in owners.items():
                with judged_with(without_guard(guard)):
                    after = answer(lies.outcome(run, edit))
                if after != before:
                    for machine in machines:
                        machine.guards[guard] = f"{run.name}: {edit.kind}"
    return [*found.values()]


def _whole(lies: ModuleType, run: Path) -> Callable[[], Any]:
    """The verdicts on a run as it is."""
    if lies is runtime_lies:
        records = [json.loads(line) for line in run.read_text(encoding="ascii").splitlines()]
        by = runtime_lies.machines(run)
        return lambda: [runtime_lies.answer_of(records, [model]) for model in by]
    return lambda: [(v.trace, v.answer, v.reason) for v in validate_paths([run], model=lies.MODEL)]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--machine", choices=MACHINES, action="append", help="machine; default: all")
    parser.add_argument("--most", type=int, default=1, help="copies of each kind of edit and run")
    parser.add_argument("--list", action="store_true", help="print the guards and actions that no log shows")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.machine or MACHINES:
            runs = given.runs or recorded_runs(MACHINES[name], Path(scratch))
            for found in sabotaged(MACHINES[name], runs, given.most):
                noticed = sum(map(bool, found.guards.values()))
                needed = sum(map(bool, found.actions.values()))
                print(
                    f"{name}: {found.machine.__name__}: {needed} of {len(found.actions)} actions that are taken, "
                    f"{noticed} of {len(found.guards)} guards",
                    flush=True,
                )
                if given.list:
                    for action, run in found.actions.items():
                        print(f"  {'-' if not run else '+'} {action}  {run}")
                    for guard, shown in found.guards.items():
                        print(
                            f"  {'-' if not shown else '+'} {Path(guard[0]).name}:{guard[1]} {found.texts[guard]}  {shown}"
                        )


if __name__ == "__main__":
    main()
