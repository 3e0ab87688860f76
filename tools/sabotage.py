"""Which rules and guards of the machines that follow logs are needed: each is taken out, and a log must show it.

    python tools/sabotage.py                    every machine; prints what is noticed
    python tools/sabotage.py --machine regions  one of them
    ... --list                                  also by what, and why not
    ... --write                                 writes the sections of these machines in docs/validated.md

Three kinds of sabotage:

* an action that is never possible: a recorded run must be rejected;
* a guard that is left out: a log that was rejected must be accepted, or rejected elsewhere;
* a variant of the model, whose functions replace the machine's: a log must have another verdict.

Logs are recorded runs, copies of them that are tampered with as `lies.py` does it, and walks: `distinguishing.py` follows
a run, and adds an action that such runs have where only the guard in question, or one of two machines, forbids it.
What no log shows is listed with the reason, which is computed from what was looked at.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent / "tests" / "support")]

from distinguishing import (  # noqa: E402
    Following,
    Guard,
    Label,
    Log,
    as_task,
    difference,
    false_alone,
    followed_log,
    label_of,
)
from lies import MACHINES, recorded_runs, unpacked  # noqa: E402
from other_machines import actions_of, called_by, variants_of, varied  # noqa: E402
from simulated_regions import written as written_run  # noqa: E402
from streamproof import Model  # noqa: E402
from streamproof.base.errors import ModelError, UsageError  # noqa: E402
from streamproof.conformance import Task, explaining, judging, validate_paths  # noqa: E402
from streamproof.conformance.moves import SystemMoves  # noqa: E402
from streamproof.conformance.overlapping import OverlapTracker  # noqa: E402
from streamproof.conformance.relating import relation_to  # noqa: E402
from streamproof.conformance.tracker import Tracker  # noqa: E402
from streamproof.language.declare.origin import model_of  # noqa: E402
from streamproof.system import StreamproofError  # noqa: E402
from streamproof.system.model import Conjunct, Instance, State, System  # noqa: E402
from streamproof.traces.explain import why_false  # noqa: E402
from streamproof_models.failover.named_job_graphs import job_graph  # noqa: E402
from synthetic_flink import Cluster  # noqa: E402
from tampering import runtime_lies  # noqa: E402

Answer = tuple[Any, ...]
"""What is compared of a verdict."""
Change = Callable[[Instance], Instance | None]
"""Another instance in place of one; None: none."""


@dataclass
class Seen:
    """What was seen while logs were judged: the machines, the actions taken, and the conditions that were false."""

    tasks: list[Task] = field(default_factory=list)
    machines: dict[type[Model], None] = field(default_factory=dict)
    taken: set[tuple[type[Model], str]] = field(default_factory=set)
    false: set[tuple[str, int]] = field(default_factory=set)
    """File and line of each."""
    labels: dict[int, dict[Label, None]] = field(default_factory=lambda: defaultdict(dict))
    """Number of a task's system -> actions that were tried."""
    edges: dict[int, dict[State, dict[tuple[Instance, State], None]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    """Number of a task's system -> the steps that were taken from each state."""


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
            self.labels, self.edges = seen.labels[id(system)], seen.edges[id(system)]
            if change is not None:
                system = replace(
                    system, actions=tuple(replace(a, instances=others(a.instances)) for a in system.actions)
                )
            ground = grounding if grounding is None else lambda action, args: others(grounding(action, args))
            super().__init__(system, ground)

        def take(self, instance: Instance, state: Any) -> Any:
            after = super().take(instance, state)
            if change is None:
                self.labels[label_of(instance)] = None
                if after is not None and self.machine is not None:
                    seen.taken.add((self.machine, instance.action))
                    self.edges[state][instance, after] = None
            return after

    def noted(system: System, guard: tuple[Conjunct, ...], state: Any) -> Any:
        seen.false.update(
            where for c in guard if (where := line_of(c)) is not None and why_false(system, (c,), state) is not None
        )
        return why_false(system, guard, state)

    class Follower(Tracker):
        def __post_init__(self) -> None:
            seen.tasks.append(self.task)
            self.task = replace(self.task, explainer=None)  # it knows the actions of the machine as it is
            super().__post_init__()

    class SpanFollower(OverlapTracker):
        def __post_init__(self) -> None:
            seen.tasks.append(self.task)
            self.task = replace(self.task, explainer=None)  # it knows the actions of the machine as it is
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


def without_guard(guard: Guard, places: Places) -> Change:
    """Leaves out a condition."""
    return lambda instance: replace(instance, guard=tuple(c for c in instance.guard if places.of(c) != guard))


def without_action(action: str) -> Change:
    """Makes an action impossible."""
    return lambda instance: None if instance.action == action else instance


def line_of(conjunct: Conjunct) -> tuple[str, int] | None:
    """Where a condition is written."""
    return None if conjunct.loc is None else (str(Path(conjunct.loc.file).resolve()), conjunct.loc.line)


class Places:
    """The conditions ``require(...)`` in the functions that a machine has, its own and inherited, and those of its parts."""

    def __init__(self, machine: type[Model]) -> None:
        self.texts: dict[Guard, str] = {}
        """Guard -> class and function, and the text."""
        self._at: dict[tuple[str, int], list[Guard]] = defaultdict(list)
        self._known: dict[int, tuple[Conjunct, Guard | None]] = {}
        for guard, where in guards(machine):
            if guard not in self.texts:
                self.texts[guard] = where
                self._at[guard[:2]].append(guard)

    def at(self, line: tuple[str, int]) -> list[Guard]:
        """The conditions in a line."""
        return self._at[line]

    def of(self, conjunct: Conjunct) -> Guard | None:
        """The condition that a conjunct is, or is a part of."""
        if id(conjunct) not in self._known:
            line = line_of(conjunct)
            found = [] if line is None else self._at[line]
            text = _plain(conjunct.text)
            like = [g for g in found if g[2] == text] or [g for g in found if text in g[2]] or found
            self._known[id(conjunct)] = conjunct, next(iter(like), None)
        return self._known[id(conjunct)][1]


@cache
def _plain(text: str) -> str:
    try:
        return ast.unparse(ast.parse(text.partition("  [")[0], mode="eval"))
    except SyntaxError:
        return text


def guards(machine: type[Model]) -> Iterator[tuple[Guard, str]]:
    """The conditions ``require(...)`` in the functions that a machine has, its own and inherited, with class and function. A
    conjunction has one for each conjunct."""
    for name in dict.fromkeys(name for cls in machine.__mro__ for name in vars(cls)):
        for owner in machine.__mro__:
            function = vars(owner).get(name)
            if owner in (Model, object) or not inspect.isfunction(function):
                continue
            tree, first, file = _tree(function)
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require":
                    for part in _parts(node.args[0]):
                        at = str(Path(file).resolve()), first + part.lineno - 1, ast.unparse(part)
                        yield at, f"{owner.__name__}.{name}"
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


@dataclass(frozen=True)
class Source:
    """A binding, with the runs that it follows and the lies about them."""

    name: str
    model: str
    lies: ModuleType
    binding: str
    """The module of the binding."""

    @property
    def lines(self) -> int:
        """Lines that walks of a machine try behind a run."""
        return LINES.get(self.name, 20_000)

    @property
    def of_runtime(self) -> bool:
        """Whether the logs are the runtime's."""
        return self.lies is runtime_lies

    def runs(self, scratch: Path) -> list[Path]:
        """Short runs that take most actions."""
        if not self.of_runtime:
            found = [unpacked(run, scratch) for run in RUNS[self.name]]
            return [*found, *([_joined(scratch / "join")] if self.name == "regions" else [])]
        found = [run for run in recorded_runs(self.lies, scratch) if self.model in runtime_lies.machines(run)]
        return [run for run in found if run.stem in runtime_lies.USUAL] or found

    def verdicts(self, run: Path) -> Answer:
        """The verdicts on a run as it is."""
        if self.of_runtime:
            return runtime_lies.answer_of(_records(run), [self.model])
        return tuple((v.trace, v.answer, v.reason) for v in validate_paths([run], model=self.model))

    def edits(self, run: Path) -> Iterator[Any]:
        """One lie of each kind; none about the runtime, of which there are hundreds of kinds."""
        made = set[str]()
        for edit in () if self.of_runtime else self.lies.edits(run):
            if edit.kind not in made:
                made.add(edit.kind)
                yield edit

    def outcome(self, run: Path, edit: Any) -> Answer:
        """The verdict on a lie."""
        found = self.lies.outcome(run, edit)
        return found.verdict, found.place, found.message

    @cached_property
    def words(self) -> frozenset[str]:
        """All texts in the source of the binding: the actions that a line may be about are among them."""
        file = Path(inspect.getsourcefile(import_module(self.binding)) or "")
        files = file.parent.glob("*.py") if file.parent.name in ("flink", "runtime") else [file]
        nodes = (node for one in files for node in ast.walk(ast.parse(one.read_text(encoding="utf-8"))))
        return frozenset(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _joined(folder: Path) -> Path:
    """The simulated run of a job in which a region reads two others, which no recorded run of that size has."""
    cluster = Cluster(job_graph("join"))
    cluster.complete()
    folder.mkdir()
    written_run(cluster, folder)
    return folder


@lru_cache(maxsize=64)
def _records(run: Path) -> Any:
    return [json.loads(line) for line in run.read_text(encoding="ascii").splitlines()]


@dataclass
class Found:
    """What the sabotage of one machine's rules has shown: for each action, guard and variant a log, or the reason."""

    machine: type[Model]
    source: Source
    actions: dict[str, str] = field(default_factory=dict)
    guards: dict[Guard, str] = field(default_factory=dict)
    variants: dict[str, str] = field(default_factory=dict)
    reasons: dict[Any, str] = field(default_factory=dict)
    """For those that no log shows."""

    @cached_property
    def places(self) -> Places:
        """The conditions."""
        return Places(self.machine)

    @property
    def parts(self) -> dict[str, dict[Any, str]]:
        """All three."""
        return {"actions": self.actions, "guards": self.guards, "variants": self.variants}

    @property
    def counts(self) -> list[str]:
        """The numbers of sabotages that a log shows."""
        return [f"{sum(map(bool, part.values()))} of {len(part)}" for part in self.parts.values()]

    @property
    def summary(self) -> str:
        """The same as a line."""
        told = ", ".join(f"{count} {name}" for count, name in zip(self.counts, self.parts, strict=True))
        return f"{self.machine.__name__}: {told}"


NO_LINE = "no line of such logs is about its action"
NOT_TAKEN = "no run here has a line about its action"
NOT_USED = "with the numbers of these runs it is no condition of any action"
IMPLIED = "another condition is false wherever it is"
NEVER_FALSE = "it is true wherever its action was looked at"
HIDDEN = "its action has no line, and no later line shows it"
OTHERWISE = "wherever it is false alone, the same lines are possible in another way"
NOT_SEEN = "no log was found among those tried"
NO_LOG = "no log with the lines of these runs shows it"
NEEDLESS = "what it explains, other actions explain in these runs"
OWN = "the machine has its rules"
OTHER_SIZES = "it is of other sizes than the jobs of these runs"
OTHER_STATE = "it is of a model with more state, which no log shows"
LESS_STATE = "lines are about state that it does not have"
SAME_RULES = "with it the machine has the same rules in these runs"


def sabotaged(
    source: Source, runs: Iterable[Path], *, lies: bool = True, lines: int | None = None, with_variants: bool = True
) -> list[Found]:
    """Takes the actions and guards of the machines out, one by one, that follow some runs; `lines`: that walks of a machine
    try behind each, other than `Source.lines`."""
    return _Sabotage(source, [*runs], source.lines if lines is None else lines).results(lies, with_variants)


class _Sabotage:
    """The sabotage of the machines that follow the logs of one binding."""

    def __init__(self, source: Source, runs: list[Path], lines: int) -> None:
        self.source, self.runs, self.lines = source, runs, lines
        self.found: dict[type[Model], Found] = {}
        self.seen: dict[Path, Seen] = {}
        self.before: dict[Path, Answer] = {}
        for run in runs:
            with judged_with() as seen:
                self.before[run] = source.verdicts(run)
            self.seen[run] = seen
            for machine in seen.machines:
                if machine not in self.found:
                    one = self.found[machine] = Found(machine, source)
                    one.guards = dict.fromkeys(one.places.texts, "")

    def results(self, lies: bool, with_variants: bool) -> list[Found]:
        """All machines, each with what is noticed."""
        self._actions()
        if lies:
            self._lies(self.runs[0])
        if self.lines:
            for one in self.found.values():
                self._walks(one)
        if with_variants:
            for one in self.found.values():
                for name, variant in variants_of(one.machine).items():
                    one.variants[name], one.reasons[name] = self._variant(one.machine, variant)
        return [*self.found.values()]

    def _actions(self) -> None:
        for run, seen in self.seen.items():
            for machine, action in sorted(seen.taken, key=lambda pair: (pair[0].__name__, pair[1])):
                if not self.found[machine].actions.get(action):
                    with judged_with(without_action(action)):
                        after = self.source.verdicts(run)
                    self.found[machine].actions[action] = run.name if after != self.before[run] else ""
                    self.found[machine].reasons[action] = NEEDLESS

    def _lies(self, run: Path) -> None:
        """Leaves out what is false where a tampered copy is rejected."""
        tries = Counter[Guard]()
        for edit in self.source.edits(run):
            with judged_with() as seen:
                before = self.source.outcome(run, edit)
            for one in self.found.values():
                for guard in (g for line in sorted(seen.false) for g in one.places.at(line)):
                    tries[guard] += 1
                    if one.guards[guard] or tries[guard] > TRIES:
                        continue
                    with judged_with(without_guard(guard, one.places)):
                        after = self.source.outcome(run, edit)
                    if after != before:
                        one.guards[guard] = f"{run.name}: {edit.kind}"

    def _tasks(self, machine: type[Model]) -> Iterator[tuple[Path, Seen, int, Task]]:
        """Of each run the behaviours of a machine with the most steps, one of each instance."""
        for run, seen in self.seen.items():
            of = {id(t.system): (at, t) for at, t in enumerate(seen.tasks) if model_of(t.system) is machine}
            for number in sorted(of, key=lambda n: -len(seen.edges[n]))[:INSTANCES]:
                yield run, seen, *of[number]

    def _walks(self, one: Found) -> None:
        asked, false, alone, hidden = Counter[Guard](), set[Guard](), set[Guard](), set[Guard]()
        complete = True
        for run, seen, _, task in self._tasks(one.machine):
            labels, guide = labels_of(seen, task), followed_log(task, seen.edges[id(task.system)])
            machine = Following(task)
            looked = false_alone(machine, labels, guide, one.places.of, self.lines)
            asked.update(looked.asked)
            false |= looked.false
            alone |= looked.otherwise
            complete = complete and looked.complete
            for guard, logs in looked.logs.items():
                change = without_guard(guard, one.places)
                for log, label, is_hidden in [] if one.guards[guard] else logs:
                    walk: Log | None = (*log, label)
                    if is_hidden:
                        hidden.add(guard)
                        other = Following(task, change)
                        walk = difference(machine, other, labels, log, self.lines // 10).log
                    if walk is None:
                        continue
                    before = followed(as_task(task, walk))
                    with judged_with(change):
                        after = followed(as_task(task, walk))
                    if after != before:
                        one.guards[guard] = f"{run.name}: walk of {len(walk)} lines"
                        break
        states = f", in {'all' if complete else 'the'} states that walks reach"
        for guard, where in one.places.texts.items():
            one.reasons[guard] = (
                self._not_taken(one, where.partition(".")[2])
                or (NOT_USED if not asked[guard] else "")
                or (HIDDEN if guard in hidden else "")
                or (OTHERWISE if guard in alone else "")
                or (IMPLIED if guard in false else NEVER_FALSE) + states
            )

    def _not_taken(self, one: Found, function: str) -> str:
        """The reason if no run takes an action with a function; else empty."""
        own = [(seen, t) for seen in self.seen.values() for t in seen.tasks if model_of(t.system) is one.machine]
        tried = {label[0] for seen, task in own for label in seen.labels[id(task.system)]}
        hidden = {action for _, task in own for action in task.hidden}
        calling = {action for action in actions_of(one.machine) if function in called_by(one.machine, action)}
        if calling & (tried | hidden):
            return ""
        return NOT_TAKEN if calling & self.source.words else NO_LINE

    def _variant(self, machine: type[Model], variant: type[Model]) -> tuple[str, str]:
        """The log that shows a variant, and the reason if there is none."""
        if issubclass(machine, variant):
            return "", OWN
        complete, same = True, True
        for run in (r for r in self.runs if machine in self.seen[r].machines):
            try:
                with varied(machine, variant), judged_with() as other:
                    after = self.source.verdicts(run)
            except ModelError:
                return "", OTHER_STATE
            except UsageError:
                return "", OTHER_SIZES
            except KeyError:
                return "", LESS_STATE
            if after != self.before[run]:
                return f"{run.name}", ""
            for own, seen, at, task in self._tasks(machine):
                if own != run:
                    continue
                changed = other.tasks[at]
                more = actions_of(model_of(changed.system) or machine) - actions_of(machine)
                changed = replace(changed, hidden=changed.hidden | more)
                labels = dict.fromkeys((*labels_of(seen, task), *labels_of(other, changed)))
                here, there = Following(task), Following(changed)
                if alike(here, there, labels):
                    continue
                same = False
                guide = followed_log(task, seen.edges[id(task.system)])
                looked = difference(here, there, sorted(labels, key=repr), guide, self.lines // 2)
                complete = complete and looked.complete
                if looked.log is not None and followed(as_task(task, looked.log)) != followed(
                    as_task(changed, looked.log)
                ):
                    return f"{run.name}: walk of {len(looked.log)} lines", ""
        return "", SAME_RULES if same else NO_LOG if complete else NOT_SEEN


TRIES = 3
"""Number of tampered copies of a run with which the lack of a guard is tried."""
INSTANCES = 2
"""Number of instances of a machine, of one run, along which walks go."""
MOST_LABELS = 2_000


def labels_of(seen: Seen, task: Task) -> list[Label]:
    """The actions that logs of a machine have, with all arguments if the machine has few."""
    tried = seen.labels[id(task.system)]
    names = {label[0] for label in tried}
    more = [label_of(i) for a in task.system.actions if a.name in names for i in a.instances]
    found = {label for label in (*tried, *(more if len(more) <= MOST_LABELS else ())) if label[0] not in task.hidden}
    return sorted(found, key=repr)


def alike(one: Following, other: Following, labels: Iterable[Label]) -> bool:
    """Whether two machines have the same rules for some lines, and the same hidden ones, but for their places."""

    def rules(machine: Following) -> Any:
        instances = [i for label in labels for i in machine.matching(label)] + machine.hidden
        return [(i.action, i.args, i.picks, [c.expr for c in i.guard], i.updates) for i in instances]

    return one.start() == other.start() and rules(one) == rules(other)


RUNS = {
    "failover": ("logs/a-taskfail-1", "logs/b-lostpart-1", "logs/d-credit-3"),
    "regions": ("logs/a-taskfail-1", "logs/b-lostpart-1", "more/pipe", "more/rand2"),
    "partition_lifecycle": ("logs/e-slots-1", "live/hybrid-full2", "logs/b-lostpart-1"),
    "slot_pool": ("logs/f-clean-batch-1", "logs/e-slots-1"),
    "checkpoints": ("live/ckpt-expo", "live/savepoint", "live/tm12-kill", "versions/v120-ckfail"),
    "credit_channel": ("credit/d-2x2-e1-f1", "credit/i-2x2-e0-f4-ckpt", "credit/k-2x2-e2-f3-batch"),
}
"""Short runs in `tests/data/flink` that take most actions of a machine; of the runtime all simulated ones. Lies are about the
first."""


LINES = {"regions": 300_000}
"""Lines that walks try behind a run, where more than usual are needed: a task is renewed, and scheduled."""


def _sources() -> Iterator[Source]:
    modules = {e.name: e.module for group in GROUPS for e in entry_points(group=group)}
    for name in RUNS:
        yield Source(name, name, MACHINES[name], modules[name])
    for name in runtime_lies.MACHINES:
        yield Source(f"runtime.{name}", name, runtime_lies, modules.get(f"{name}:runtime", modules[name]))


GROUPS = ("streamproof.bindings", "streamproof.bindings_on_request")
SOURCES = {source.name: source for source in _sources()}

PAGE = TOOLS.parent / "docs" / "validated.md"
COLUMNS = ("logs", "model", "machine", "relation", "actions", "guards", "variants")
HEAD = f"""# What logs say about the models

An accepted log says something about a model only as far as another model would have rejected it. So each rule of the
[machines that follow logs](how-to-trust-a-verdict.md#what-an-accepted-log-says) is sabotaged, and some log must show it:

* *actions*: of the actions that the recorded runs take, those without which a run is rejected;
* *guards*: of the conditions in the rules of the machine, its own and inherited, those whose removal changes the verdict on
  a log;
* *variants*: of the variants of the model, most of them mistakes, those with which a log has another verdict.

The logs are recorded runs (of the runtime: simulated ones), copies of Flink's with one lie, which is named, and walks: lines
that follow a run, or leave it, and one line that must be rejected. What no log shows is listed with the reason:

* *{NO_LINE}*: such logs cannot speak of this rule; searches and proofs of the model cover it;
* *{NOT_TAKEN}*: it is rare, and other runs may show it;
* *{NOT_USED}*: it is for other parameters of the model;
* *{IMPLIED}*: as far as walks went, it could be left out;
* *{NEVER_FALSE}*: mostly a bound of an instance, which is larger than the log;
* *{HIDDEN}*, or *{OTHERWISE}*: hidden data;
* *{OTHER_STATE}*, *{LESS_STATE}*, or *{OTHER_SIZES}*: the machine
  has the rules of another model, or of other jobs;
* *{SAME_RULES}*: it changes fairness, an action without a line, a function that the machine has its own of, a size, or what
  the log gives;
* *{NO_LOG}*: the variant does nothing else there, or what it does otherwise has no line.

`python tools/sabotage.py --write` writes this page, `--machine NAME` the part of some logs.
"""


def section(results: Iterable[Found]) -> tuple[list[str], str]:
    """The rows of the table, and the text, about the machines that follow the logs of a binding."""
    rows, text = [], []
    for found in results:
        machine: Any = found.machine
        related = relation_to(machine, found.source.model)
        cells = (found.source.name, related.model, f"`{machine.__name__}`", related.kind, *found.counts)
        rows.append(f"| {' | '.join(cells)} |")
        text += [f"### `{machine.__name__}` of {related.model}, in logs of {found.source.name}", ""]
        noticed = [(found.places.texts[g], g[2], by) for g, by in found.guards.items() if by]
        if noticed:
            text += ["| rule | guard | noticed by |", "|---|---|---|"]
            text += [f"| `{rule}` | `{_cell(guard)}` | {by} |" for rule, guard, by in noticed] + [""]
        text += [
            f"Variants noticed: {', '.join(f'{n} ({by})' for n, by in found.variants.items() if by) or 'none'}.",
            "",
        ]
        missed: dict[tuple[str, str], list[str]] = defaultdict(list)
        for guard, by in found.guards.items():
            if not by:
                missed["Guards", found.reasons.get(guard, NOT_SEEN)].append(
                    f"`{found.places.texts[guard]}`: `{guard[2]}`"
                )
        for what, part in (("Actions", found.actions), ("Variants", found.variants)):
            for name, by in part.items():
                if not by:
                    missed[what, found.reasons[name]].append(f"`{name}`")
        for (what, why), names in sorted(missed.items()):
            text += [f"{what} not noticed: {why}:", "", *(f"* {name}" for name in names), ""]
    return rows, "\n".join(text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def written(page: str, sections: Mapping[str, tuple[list[str], str]]) -> str:
    """The page with other parts about some logs."""
    rows = {name: re.findall(rf"^\| {re.escape(name)} \|.*$", page, re.MULTILINE) for name in SOURCES}
    texts = dict(re.findall(r"^## ([\w.]+)\n\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    for name, (own, text) in sections.items():
        rows[name], texts[name] = own, text
    table = [
        f"| {' | '.join(COLUMNS)} |",
        "|---|---|---|---|--:|--:|--:|",
        *(row for own in rows.values() for row in own),
    ]
    parts = [f"## {name}\n\n{texts[name].strip()}\n" for name in SOURCES if name in texts]
    return "\n".join([HEAD, *table, "", *parts])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--machine", choices=SOURCES, action="append", help="logs; default: all")
    parser.add_argument("--no-lies", action="store_true", help="leave out the tampered copies")
    parser.add_argument("--lines", type=int, help="lines that walks of a machine try behind each run")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument(
        "--list", action="store_true", help="print what is noticed by which log, and what is not, and why"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.machine or SOURCES:
            runs = given.runs or SOURCES[name].runs(Path(scratch))
            results = sabotaged(SOURCES[name], runs, lies=not given.no_lies, lines=given.lines)
            for found in results:
                print(name, found.summary, flush=True)
            rows, text = section(results)
            if given.list:
                print(text)
            if given.write:
                page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
                PAGE.write_text(written(page, {name: (rows, text)}), encoding="utf-8")


if __name__ == "__main__":
    main()
