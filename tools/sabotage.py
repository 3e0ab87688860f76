"""Which rules and guards of the machines that follow logs are needed: each is taken out, and a log must show it.

    python tools/sabotage.py                    every machine; writes the table docs/validated.md
    python tools/sabotage.py --machine regions  one of them, printed
    ... --most 2                                copies of each kind of edit and run; default: 1
    ... --list                                  also the guards that no log shows

Three kinds of sabotage:

* an action that is never possible: a recorded run must be rejected;
* a guard that is left out: a tampered copy of a run, which was rejected, must be accepted, or rejected elsewhere;
* a variant of the model, whose functions replace the machine's: a run or a tampered copy must have another verdict.

Copies are tampered with as `lies.py` does it, line by line, and, as these edits do not reach every guard, by random moves of
events: one is repeated, left out, or stands in the place of another.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent / "tests" / "support")]

from lies import MACHINES, recorded_runs, unpacked  # noqa: E402
from streamproof import Model  # noqa: E402
from streamproof.base.errors import ModelError  # noqa: E402
from streamproof.conformance import Task, explaining, judging, validate_paths  # noqa: E402
from streamproof.conformance.moves import SystemMoves  # noqa: E402
from streamproof.conformance.overlapping import OverlapTracker  # noqa: E402
from streamproof.conformance.relating import relation_to  # noqa: E402
from streamproof.conformance.tracker import Tracker  # noqa: E402
from streamproof.language.declare.model import marked  # noqa: E402
from streamproof.language.declare.origin import model_of  # noqa: E402
from streamproof.language.declare.primitives import ActionMark  # noqa: E402
from streamproof.system import StreamproofError  # noqa: E402
from streamproof.system.model import Conjunct, Instance, System  # noqa: E402
from streamproof.traces.explain import why_false  # noqa: E402
from tampering import runtime_lies  # noqa: E402

Answer = tuple[Any, ...]
"""What is compared of a verdict."""
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

    tasks: list[Task] = field(default_factory=list)
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

    def noted(system: System, guard: tuple[Conjunct, ...], state: Any) -> Any:
        seen.false.update(
            where for c in guard if (where := guard_of(c)) is not None and why_false(system, (c,), state) is not None
        )
        return why_false(system, guard, state)

    class Follower(Tracker):
        def __post_init__(self) -> None:
            seen.tasks.append(self.task)
            super().__post_init__()

    class SpanFollower(OverlapTracker):
        def __post_init__(self) -> None:
            seen.tasks.append(self.task)
            super().__post_init__()

    others_of: dict[str, Any] = {"SystemMoves": Moves, "Tracker": Follower, "OverlapTracker": SpanFollower}
    known = {name: getattr(judging, name) for name in others_of}
    vars(explaining)["why_false"] = noted
    for name, other_one in others_of.items():
        setattr(judging, name, other_one)
    try:
        yield seen
    finally:
        vars(explaining)["why_false"] = why_false
        for name, own in known.items():
            setattr(judging, name, own)


def followed(task: Task) -> Answer:
    """The verdict on one behaviour, with the sabotage of `judged_with`."""
    follow = vars(judging)["OverlapTracker" if task.spans else "Tracker"]
    try:
        tracked = follow(task, steps=vars(judging)["SystemMoves"](task.system, task.grounding)).run()
    except StreamproofError as error:
        return "error", str(error)
    rejection = tracked.rejection
    return ("accepted",) if rejection is None else ("rejected", rejection.index, rejection.message)


def tampered(task: Task, draw: random.Random) -> Task | None:
    """A copy of a behaviour in which an event is repeated, left out, or in the place of another one."""
    accounts: list[tuple[Any, ...]] = [*task.spans] or [tuple(stream.observations) for stream in task.streams]
    at = draw.choice([n for n, account in enumerate(accounts) if account] or [-1])
    if at < 0:
        return None
    own = [*accounts[at]]
    place, kind = draw.randrange(len(own)), draw.choice(("repeated", "elsewhere", "elsewhere", "left out", "instead"))
    if kind == "left out":
        del own[place]
    elif task.spans:
        other = draw.choice(own).observation
        own[place] = replace(own[place], observation=other if kind == "instead" else own[place - 1].observation)
    else:
        event = own[place] if kind == "repeated" else draw.choice(own)
        own[place : place + (kind == "instead")] = [replace(event, follows=None)]
    if task.spans:
        return replace(task, spans=tuple(tuple(own) if n == at else account for n, account in enumerate(task.spans)))
    streams = (replace(s, observations=tuple(own)) if n == at else s for n, s in enumerate(task.streams))
    return replace(task, streams=tuple(streams))


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


@dataclass
class Found:
    """What the sabotage of one machine's rules has shown."""

    machine: type[Model]
    model: str
    """The name of the verdict's model."""
    actions: dict[str, str] = field(default_factory=dict)
    """Action -> the run that is rejected without it; empty if none is."""
    guards: dict[Guard, str] = field(default_factory=dict)
    """Guard -> the edit that is caught by it alone, with its run; empty if there is none."""
    variants: dict[str, str] = field(default_factory=dict)
    """Variant of the model -> the run, or the run with the edit, that has another verdict; empty if there is none."""
    texts: dict[Guard, str] = field(default_factory=dict)

    @property
    def reached(self) -> frozenset[str]:
        """The functions whose conditions were looked at: those of actions that the runs take."""
        trees = [_reads(self.machine, action) for action in self.actions]
        return frozenset(name for names in trees for name in names)

    @property
    def summary(self) -> str:
        """The numbers of sabotages that a log shows."""
        parts: dict[str, dict[Any, str]] = {"actions": self.actions, "guards": self.guards, "variants": self.variants}
        shown = (f"{sum(map(bool, part.values()))} of {len(part)} {name}" for name, part in parts.items())
        return f"{self.machine.__name__}: {', '.join(shown)}"


def _reads(machine: type[Model], action: str) -> set[str]:
    """The functions of a machine that an action calls, itself included."""
    found, open_names = set[str](), [action]
    while open_names:
        name = open_names.pop()
        functions = [vars(c)[name] for c in machine.__mro__ if inspect.isfunction(vars(c).get(name))]
        if name in found or not functions:
            continue
        found.add(name)
        open_names += [called for function in functions for called in function.__code__.co_names]
    return found


def sabotaged(
    lies: ModuleType, runs: Iterable[Path], most: int = 1, moved: int = 100, *, with_variants: bool = True
) -> list[Found]:
    """Takes the actions and guards of the machines out, one by one, that follow the runs which `lies` edits.

    `most`: copies of each kind of edit and run; `moved`: copies of each behaviour with moved events."""
    runs = [*runs]
    found: dict[type[Model], Found] = {}

    def of(machine: type[Model]) -> Found:
        if machine not in found:
            found[machine] = Found(machine, _model(machine, lies))
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

    def drop_false(seen: Seen, before: Answer, judged_again: Callable[[], Answer], what: str) -> None:
        owners = defaultdict(list)
        for machine in found.values():
            for guard in seen.false & machine.guards.keys():
                if not machine.guards[guard]:
                    owners[guard].append(machine)
        for guard, machines in owners.items():
            with judged_with(without_guard(guard)):
                after = judged_again()
            for machine in machines if after != before else ():
                machine.guards[guard] = what

    behaviours: list[tuple[str, Task]] = []
    for run in runs:
        with judged_with() as seen:
            _whole(lies, run)()
        behaviours += [(run.name, task) for task in seen.tasks]
        made: Counter[str] = Counter()
        for edit in lies.edits(run) if most else ():
            made[edit.kind] += 1
            if made[edit.kind] <= most:
                with judged_with() as seen:
                    before = _outcome(lies, run, edit)
                drop_false(seen, before, partial(_outcome, lies, run, edit), f"{run.name}: {edit.kind}")
    draw = random.Random(0)
    for _ in range(moved):
        for name, task in behaviours:
            of_task = model_of(task.system)
            copy = None if of_task is None or all(found[of_task].guards.values()) else tampered(task, draw)
            if copy is not None:
                with judged_with() as seen:
                    before = followed(copy)
                drop_false(seen, before, partial(followed, copy), f"{name}: an event moved")
    for one in found.values() if with_variants else ():
        for name, variant in _variants(one.machine).items():
            with suppress(ModelError):  # the variant is about state that the machine does not have
                one.variants[name] = _shows(one.machine, variant, lies, runs, moved)
    return [*found.values()]


def _model(machine: Any, lies: ModuleType) -> str:
    """The name of the model of the verdicts in which a machine is; the runtime's logs have many."""
    if lies is not runtime_lies:
        return str(lies.MODEL)
    return next((m for m in runtime_lies.MACHINES if relation_to(machine, m).model.startswith(m)), lies.MODEL)


def _variants(machine: type[Model]) -> dict[str, type[Model]]:
    """The variants of the models that a machine has the rules of."""
    bases = [c for c in machine.__mro__ if issubclass(c, Model) and c is not Model and has_actions(c)]
    models = [c for c in _subclasses(bases[-1]) if c.variant is None] if bases else []
    return {f"{m.title()} ({n})": v for m in models for n, v in m.variants.items() if issubclass(machine, bases[-1])}


def has_actions(model: type[Model]) -> bool:
    """Whether a class has rules, and not only the structure of a job."""
    return any(isinstance(mark, ActionMark) for mark, _ in marked(model).values())


def _subclasses(cls: type[Model]) -> list[type[Model]]:
    return [cls, *(found for sub in cls.__subclasses__() for found in _subclasses(sub))]


def _shows(machine: type[Model], variant: type[Model], lies: ModuleType, runs: Iterable[Path], moved: int) -> str:
    """The run, or the copy of one, that has another verdict with a variant of the model; empty if there is none."""
    for run in runs:
        with judged_with() as seen:
            before = _whole(lies, run)()
        with varied(machine, variant), judged_with() as other:
            after = _whole(lies, run)()
        if after != before:
            return run.name
        of = [(n, t) for n, t in enumerate(seen.tasks) if model_of(t.system) is machine]
        for number in range(moved if of else 0):
            at, task = of[number % len(of)]
            known, copy = tampered(task, random.Random(number)), tampered(other.tasks[at], random.Random(number))
            if known is not None and copy is not None and followed(known) != followed(copy):
                return f"{run.name}: an event moved"
    return ""


@contextmanager
def varied(machine: type[Model], variant: type[Model]) -> Iterator[None]:
    """The functions of a variant stand in place of those that a machine inherits."""
    if issubclass(variant, machine):
        with in_place_of(machine, variant):
            yield
        return
    shared = next(c for c in machine.__mro__ if issubclass(variant, c))
    namespace: dict[str, Any] = {**vars(sys.modules[variant.__module__]), "_Shared": shared}
    below = [c for c in variant.__mro__ if c is not shared and issubclass(c, shared)]
    for cls in reversed(below):
        namespace["_Shared"] = _rebased(cls, namespace)
    other: Any = type(f"Varied{machine.__name__}", (machine, namespace["_Shared"]), {"__module__": machine.__module__})
    with in_place_of(machine, other):
        yield


@contextmanager
def in_place_of(machine: type[Model], other: Any) -> Iterator[None]:
    """Another machine stands where the bindings name one."""
    places = [
        (module, name)
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("streamproof_specs")
        for name, value in list(vars(module).items())
        if value is machine
    ]
    cached = [v for m, _ in places for v in vars(m).values() if hasattr(v, "cache_clear")]
    for module, name in places:
        setattr(module, name, other)
    try:
        for function in cached:
            function.cache_clear()
        yield
    finally:
        for module, name in places:
            setattr(module, name, machine)
        for function in cached:
            function.cache_clear()


def _rebased(cls: type, namespace: dict[str, Any]) -> type:
    """A class with the functions of another one, of which `_Shared` in `namespace` is the base."""
    file = inspect.getsourcefile(cls) or ""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    node = next(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == cls.__name__)
    node.bases = [ast.copy_location(ast.Name("_Shared", ast.Load()), node.body[0])]
    node.keywords = []
    made = {**namespace, **vars(sys.modules[cls.__module__]), "_Shared": namespace["_Shared"]}
    exec(compile(ast.Module([node], []), file, "exec"), made)
    found: type = made[cls.__name__]
    return found


def _outcome(lies: ModuleType, run: Path, edit: Any) -> Answer:
    found = lies.outcome(run, edit)
    return found.verdict, found.place, found.message


def _whole(lies: ModuleType, run: Path) -> Callable[[], Any]:
    """The verdicts on a run as it is."""
    if lies is runtime_lies:
        records = [json.loads(line) for line in run.read_text(encoding="ascii").splitlines()]
        by = runtime_lies.machines(run)
        return lambda: [runtime_lies.answer_of(records, [model]) for model in by]
    return lambda: [(v.trace, v.answer, v.reason) for v in validate_paths([run], model=lies.MODEL)]


RUNS = {
    "failover": ("logs/a-taskfail-1", "logs/d-credit-3"),
    "regions": ("logs/a-taskfail-1", "logs/b-lostpart-1", "more/pipe"),
    "partition_lifecycle": ("logs/e-slots-1", "live/hybrid-full2"),
    "slot_pool": ("logs/e-slots-1",),
    "checkpoints": ("live/ckpt-expo",),
    "credit_channel": ("credit/d-2x2-e1-f1",),
}
"""Short runs in `tests/data/flink` that take most actions of a machine; of the runtime all simulated ones."""
PAGE = TOOLS.parent / "docs" / "validated.md"
NOT_TAKEN, NOT_ALONE = "no run takes its action", "no copy breaks it alone"


def page(results: Iterable[Found], command: str) -> str:
    """The page with the table of all machines, and for each what no log shows."""
    rows, details = [], []
    for found in results:
        machine: Any = found.machine
        related = relation_to(machine, found.model)
        counts = [
            f"{sum(map(bool, part.values()))} of {len(part)}" for part in (found.actions, found.guards, found.variants)
        ]
        rows.append(f"| {related.model} | `{found.machine.__name__}` | {related.kind} | {' | '.join(counts)} |")
        open_guards = defaultdict(list)
        for guard, shown in found.guards.items():
            if not shown:
                where, _, text = found.texts[guard].partition(": ")
                open_guards[NOT_ALONE if where.partition(".")[2] in found.reached else NOT_TAKEN].append((where, text))
        details.append(f"\n## `{found.machine.__name__}` of {related.model}\n")
        for why in (NOT_TAKEN, NOT_ALONE):
            if open_guards[why]:
                details.append(f"Guards not noticed, {why}:\n")
                details += [f"* `{where}`: `{text}`" for where, text in open_guards[why]]
                details.append("")
        for part, what in ((found.actions, "Actions"), (found.variants, "Variants")):
            missed = ", ".join(f"`{name}`" for name, shown in part.items() if not shown)
            details.append(f"{what} not noticed: {missed or 'none'}.\n")
    head = HEAD.format(command=command)
    table = ["| model | machine | relation | actions | guards | variants |", "|---|---|---|--:|--:|--:|", *rows]
    return "\n".join([head, *table, *details]).rstrip() + "\n"


HEAD = """# What recorded logs say about the models

An accepted log says something about a model only as far as another model would have rejected it. So each rule of the
[machines that follow logs](how-to-trust-a-verdict.md#what-an-accepted-log-says) is sabotaged, and some log must show it:

* *actions*: of the actions that the recorded runs take, those without which a run is rejected;
* *guards*: of the conditions in the rules of the machine, its own and inherited, those whose removal changes the verdict on
  a tampered copy of a run (it is accepted, or rejected elsewhere);
* *variants*: of the variants of the model, which are mistakes that it should not make, those with which a run or a copy has
  another verdict.

`{command}` wrote this page. A guard that is not noticed is listed with
its reason: no run takes its action, or no copy breaks it alone, because the events themselves say the same, or another guard.
In logs of the runtime events are only moved.
"""


def short_runs(name: str, scratch: Path) -> list[Path]:
    """The runs of a machine that are used without RUN."""
    return [unpacked(run, scratch) for run in RUNS[name]] if name in RUNS else recorded_runs(MACHINES[name], scratch)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--machine", choices=MACHINES, action="append", help="machine; default: all")
    parser.add_argument("--most", type=int, default=1, help="copies of each kind of edit and run")
    parser.add_argument("--moved", type=int, default=100, help="copies of each behaviour with moved events")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--list", action="store_true", help="print the guards and actions that no log shows")
    given = parser.parse_args()
    results: list[Found] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.machine or MACHINES:
            runs = given.runs or short_runs(name, Path(scratch))
            most = 0 if MACHINES[name] is runtime_lies and not given.runs else given.most  # hundreds of kinds of edits
            for found in sabotaged(MACHINES[name], runs, most, given.moved):
                results.append(found)
                print(name, found.summary, flush=True)
                for part in (found.actions, found.variants) if given.list else ():
                    for what, shown in part.items():
                        print(f"  {'+' if shown else '-'} {what}  {shown}")
                for guard, shown in found.guards.items() if given.list else ():
                    print(f"  {'+' if shown else '-'} {Path(guard[0]).name}:{guard[1]} {found.texts[guard]}  {shown}")
    if given.write:
        chosen = "".join(f"--machine {name} " for name in given.machine or ())
        command = f"python tools/sabotage.py {chosen}--most {given.most} --moved {given.moved} --write"
        PAGE.write_text(page(results, command), encoding="utf-8")


if __name__ == "__main__":
    main()
