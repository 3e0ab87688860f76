"""Event logs of any model: correct logs are accepted in every order that they leave open, and lies are not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from random_systems import random_system
from streamproof import (
    Array,
    Bool,
    Case,
    Enum,
    Model,
    Option,
    Queue,
    Range,
    Record,
    Set,
    State,
    Union,
    action,
    require,
)
from streamproof.conformance import (
    Event,
    EventLog,
    InputError,
    Move,
    Plan,
    RunVerdict,
    Unit,
    assert_conforms,
    judge,
    judging,
    write_ndjson,
)
from streamproof.conformance.recorded_values import agrees, expect_value, sort_schema, value_json
from streamproof.system import Interpreter, StreamproofError, System
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    bag_sort,
    values,
)

jsonschema = pytest.importorskip("jsonschema")

MOST_EVENTS = 6


def plain(sort: Sort, value: Any) -> Any:
    """A value as an implementation would write it in JSON."""
    match sort:
        case OptionSort(element):
            return None if value is None else plain(element, value)
        case ArraySort(index, element):
            return {str(key): plain(element, part) for key, part in zip(values(index), value, strict=True)}
        case RecordSort(fields):
            return {name: plain(inner, part) for (name, inner), part in zip(fields, value, strict=True)}
        case UnionSort():
            return {"tag": value[0], "value": plain(sort.payload(value[0]), value[1])}
        case QueueSort(element, _):
            return [plain(element, part) for part in value]
        case SetSort(element):
            return sorted((plain(element, part) for part in value), key=json.dumps)
    return value


def recorded(system: System, random: Random) -> list[Event] | None:
    """The log of a random behaviour, written by up to three processes, in a random order of lines; None: it is too short."""
    interpreter = Interpreter(system)
    starts = list(interpreter.initial_states())
    if not starts or "frozenset" in repr([i.args for action in system.actions for i in action.instances]):
        return None  # sets as arguments have no form in a log
    state = random.choice(starts)
    events: list[Event] = []
    clocks: list[Counter[str]] = []
    seqs: Counter[str] = Counter()
    for _ in range(MOST_EVENTS):
        steps = list(interpreter.steps(state))
        if not steps:
            break
        taken = random.choice(steps)
        state = taken.state
        process = random.choice("pqr")
        clock = Counter({process: 1})
        for event, known in zip(events, clocks, strict=True):
            if event.process == process or random.random() < 0.3:
                clock |= known
        clock[process] = seqs[process] + 1
        shown = [v.name for v in system.variables if random.random() < 0.2]
        now = {name: plain(system.variables[system.index[name]].sort, state[system.index[name]]) for name in shown}
        args = dict(taken.instance.args)
        events.append(Event("t", process, seqs[process], taken.instance.action, args, state=now or None))
        seqs[process] += 1
        clocks.append(clock)
    if random.random() < 0.5:
        events = [replace(e, clock=dict(c)) for e, c in zip(events, clocks, strict=True)]
    random.shuffle(events)
    return events if len(events) > 1 else None


def tampered(events: list[Event], system: System, random: Random) -> list[Event]:
    """The log with one line left out, doubled, or of another action or argument."""
    lied, at = list(events), random.randrange(len(events))
    match random.randrange(3):
        case 0:
            del lied[at]
        case 1:
            other = random.choice([i for a in system.actions for i in a.instances])
            lied[at] = replace(lied[at], event=other.action, args=dict(other.args))
        case 2:
            i, j = random.sample(range(len(events)), 2)
            lied[i], lied[j] = (
                replace(lied[i], event=lied[j].event, args=lied[j].args),
                replace(lied[j], event=lied[i].event, args=lied[i].args),
            )
    return lied


def precedes(a: Event, b: Event) -> bool:
    """Whether the log says that `a` happened before `b`."""
    if a.process == b.process:
        return a.seq < b.seq
    return bool(a.clock and b.clock) and (a.clock or {})[a.process] <= (b.clock or {}).get(a.process, 0)


def possible(system: System, events: list[Event], hidden: frozenset[str]) -> bool:
    """By trying every order: whether the machine has a behaviour with these events."""
    interpreter = Interpreter(system)

    def closed(states: Iterable[Any]) -> set[Any]:
        found, open_ = set(states), list(states)
        while open_:
            for step in interpreter.steps(open_.pop()):
                if step.instance.action in hidden and step.state not in found:
                    found.add(step.state)
                    open_.append(step.state)
        return found

    def fits(event: Event, step: Any) -> bool:
        same = step.instance.action == event.event and dict(step.instance.args) == event.args
        return same and all(
            json.dumps(plain(v.sort, step.state[at])) == json.dumps((event.state or {})[v.name])
            for at, v in enumerate(system.variables)
            if v.name in (event.state or {})
        )

    @cache
    def reachable(left: frozenset[int], states: frozenset[Any]) -> bool:
        if not left:
            return bool(states)
        for at in left:
            if any(precedes(events[other], events[at]) for other in left if other != at):
                continue
            after = {s.state for state in closed(states) for s in interpreter.steps(state) if fits(events[at], s)}
            if after and reachable(left - {at}, frozenset(after)):
                return True
        return False

    return reachable(frozenset(range(len(events))), frozenset(interpreter.initial_states()))


def verdict(folder: Path, system: System, events: list[Event], **options: Any) -> RunVerdict:
    """What validation says of a log."""
    file = folder / "log.ndjson"
    file.unlink(missing_ok=True)
    write_ndjson(events, file)
    (found,) = judge(EventLog(system, **options).plan(file, None), "random")
    return found


@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 6000), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_random_logs(seeds: range, tmp_path: Path) -> None:
    """Correct logs are accepted, and all verdicts are those of trying every order."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        system = random_system(random)
        try:
            events = recorded(system, random)
            if events is None:
                continue
            names = sorted({e.event for e in events})
            hidden = frozenset(random.sample(names, 1)) if random.random() < 0.3 else frozenset()
            seen = [e for e in events if e.event not in hidden]
            if not seen:
                continue
            answer = verdict(tmp_path, system, seen, hidden=hidden).answer
            if answer == "error":
                continue
            assert answer == "accepted", seed
            lied = [e for e in tampered(events, system, random) if e.event not in hidden]
            if not lied:
                continue
            expected = "accepted" if possible(system, lied, hidden) else "rejected"
            answer = verdict(tmp_path, system, lied, hidden=hidden).answer
            if answer == "error":
                continue
            assert answer == expected, seed
        except StreamproofError:
            continue  # a mistake in the random system, as where the answer is "error"
        counts[expected] += 1
    assert counts["rejected"] > len(seeds) / 10
    assert counts["accepted"] > len(seeds) / 10


class Open(Case):
    """Open the door at a floor."""

    f: int


class Close(Case):
    """Close it."""


class Lift(Model):
    """A lift that calls overtake: an order of events matters across processes."""

    def state(self):
        """On the ground."""
        box = Record(kind=Enum("A", "B"), full=Range(0, 1))
        wire = Array([("a", "b"), ("b", "a")], Queue(Union(Open(f=Range(0, 3)), Close()), capacity=4))
        last = Option(Range(0, 3))
        return State(floor=Range(0, 3), called=Set(Range(0, 3)), boxes=Array(2, box), wire=wire, last=last)

    @action(f=range(4))
    def call(self, s, f):
        """Only from above."""
        require(f > s.floor)
        s.called.add(f)
        s.last = f
        s.wire["a", "b"].push(Open(f=f))

    @action
    def up(self, s):
        """One floor."""
        require(len(s.called) > 0 and s.floor < 3)
        s.floor += 1
        s.called.discard(s.floor)


def log(*events: tuple[str, str, dict[str, Any]], **more: Any) -> list[Event]:
    """Events of processes, each with its number."""
    seqs: Counter[str] = Counter()
    found = []
    for process, name, args in events:
        found.append(Event("t", process, seqs[process], name, args, **more))
        seqs[process] += 1
    return found


SORTS = [
    bag_sort(RecordSort((("flag", BoolSort()), ("n", RangeSort(0, 1)))), 2),
    ArraySort(RangeSort(0, 1), OptionSort(EnumSort(("A", "B")))),
    QueueSort(SetSort(RangeSort(0, 2)), 2),
    UnionSort(
        (("Ack", RecordSort((("id", RangeSort(0, 1)),))), ("Nack", RecordSort((("why", bag_sort(BoolSort(), 1)),))))
    ),
]


@pytest.mark.parametrize("sort", SORTS, ids=str)
def test_written_values_are_read_as_what_they_were(sort: Sort) -> None:
    """Every value of a sort, as a suite writes it, agrees with this value and no other, and fits the contract."""
    every, schema = [*values(sort)], jsonschema.Draft202012Validator(sort_schema(sort))
    assert every
    for value in every:
        written = json.loads(json.dumps(value_json(sort, value)))
        expect_value(sort, written, "x", None)
        schema.validate(written)
        assert [other for other in every if agrees(sort, other, written)] == [value]


def test_an_event_may_make_another_impossible(tmp_path: Path) -> None:
    """After two floors nobody can call the lift to the first: the call came before, whatever the order of the lines."""
    events = log(("cabin", "up", {}), ("door", "call", {"f": 3}), ("door", "call", {"f": 1}), ("cabin", "up", {}))
    assert verdict(tmp_path, Lift.system(), events).answer == "accepted"
    assert verdict(tmp_path, Lift.system(), events, ordered=True).answer == "rejected"


def test_vector_clocks_order_events(tmp_path: Path) -> None:
    """A call that knows of the second floor came after it."""
    events = log(("cabin", "up", {}), ("door", "call", {"f": 3}), ("door", "call", {"f": 1}), ("cabin", "up", {}))
    clocks = [{"cabin": 1}, {"door": 1}, {"door": 2, "cabin": 2}, {"cabin": 2}]
    ordered = [replace(e, clock=c) for e, c in zip(events, clocks, strict=True)]
    assert verdict(tmp_path, Lift.system(), ordered).answer == "rejected"
    ordered[2] = replace(ordered[2], clock={"door": 2})
    assert verdict(tmp_path, Lift.system(), ordered).answer == "accepted"
    with pytest.raises(InputError, match="does not count this event of 'door'"):
        verdict(tmp_path, Lift.system(), [replace(ordered[2], clock={"cabin": 1})])


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        ({"floor": 0, "called": [2], "boxes": {"0": {"kind": "A"}}}, "accepted"),
        ({"boxes": [{"kind": "A", "full": 0}, {"kind": "A"}]}, "accepted"),
        ({"called": []}, "rejected"),
        ({"floor": 1}, "rejected"),
        ({"floor": 9}, "rejected"),
        ({"boxes": {"1": {"kind": "B"}}}, "rejected"),
        ({"wire": {"(a, b)": [{"tag": "Open", "value": {"f": 2}}], "(b, a)": []}}, "accepted"),
        ({"wire": [[{"tag": "Open", "value": {"f": 2}}], []]}, "accepted"),
        ({"wire": {"(a, b)": [{"tag": "Open"}]}}, "accepted"),
        ({"wire": {"(a, b)": [{"tag": "Open", "value": {"f": 1}}]}}, "rejected"),
        ({"wire": {"(a, b)": [{"tag": "Close"}]}}, "rejected"),
        ({"wire": {"(b, a)": [{"tag": "Close"}]}}, "rejected"),
        ({"last": 2}, "accepted"),
        ({"last": None}, "rejected"),
        ({"last": 3}, "rejected"),
    ],
)
def test_recorded_states(state: dict[str, Any], answer: str, tmp_path: Path) -> None:
    """A recorded state, or a part of one, is that of the model."""
    events = [replace(e, state=state) for e in log(("door", "call", {"f": 2}))]
    assert verdict(tmp_path, Lift.system(), events).answer == answer


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (("door", "cal", {"f": 1}), "has no action 'cal'"),
        (("door", "call", {"floor": 1}), "call has no parameter 'floor'"),
        (("door", "call", {"f": {"n": 1}}), "no parameter has a JSON object"),
    ],
)
def test_what_has_no_meaning_is_refused(event: Any, message: str, tmp_path: Path) -> None:
    """An event that no step could match is a mistake of the binding or the log, with its line; no verdict hides it."""
    with pytest.raises(InputError, match=message) as refused:
        verdict(tmp_path, Lift.system(), log(event))
    assert refused.value.loc is not None


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"floor": False}, "floor is false in the log, which is no value of Range(0, 3)"),
        ({"floor": None}, "floor is null"),
        ({"called": 2}, "called is 2"),
        ({"called": [2, 2]}, "called is a set, and has 2 twice in the log"),
        ({"called": ["2"]}, 'called[0] is "2"'),
        ({"boxes": {"2": {"kind": "A"}}}, "boxes has no element '2'"),
        ({"boxes": [{"kind": "A"}]}, "boxes is ["),
        ({"boxes": {"0": {"colour": "A"}}}, "boxes[0] has no field 'colour'"),
        ({"boxes": {"0": {"kind": "C"}}}, 'boxes[0].kind is "C"'),
        ({"wire": {"a,b": []}}, "wire has no element 'a,b'"),
        ({"wire": {"(a, b)": [{"tag": "Opn"}]}}, "wire[(a, b)][0] is {"),
        ({"wire": {"(a, b)": [{"tag": "Open", "value": {"g": 2}}]}}, "wire[(a, b)][0].Open has no field 'g'"),
        ({"wire": {"(a, b)": [{"tag": "Open", "value": [2]}]}}, "wire[(a, b)][0] is {"),
        ({"last": "2"}, 'last is "2"'),
    ],
)
def test_what_is_no_value_is_refused(state: dict[str, Any], message: str, tmp_path: Path) -> None:
    """A recorded value that the variable can never have in this form is a mistake of the log: no verdict hides it."""
    events = [replace(e, state=state) for e in log(("door", "call", {"f": 2}))]
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        verdict(tmp_path, Lift.system(), events)
    assert refused.value.loc is not None


@pytest.mark.parametrize(
    ("meaning", "message"),
    [
        (lambda e: Move("call", {"f": e.args["at"]}), "the meaning of 'ring' failed: KeyError: 'at'"),
        (lambda e: Move("call", {"f": e.state["at"]}), "failed: TypeError: "),
        (lambda e: "up", "the meaning of 'ring' is 'up'"),
        (lambda e: [Move("up"), None], "the meaning of 'ring' is "),
    ],
)
def test_a_meaning_that_fails_is_refused(meaning: Any, message: str, tmp_path: Path) -> None:
    """A mistake in a binding names the line of the log at which it shows."""
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        verdict(tmp_path, Lift.system(), log(("d", "ring", {"floor": 1})), meaning={"ring": meaning})
    assert refused.value.loc is not None


def test_meanings(tmp_path: Path) -> None:
    """Events of other names: one move, several, or none."""
    meaning = {
        "ring": lambda e: Move("call", {"f": e.args["at"]}),
        "express": lambda e: [Move("up")] * e.args["floors"],
        "light": None,
    }
    events = log(("d", "ring", {"at": 3}), ("c", "light", {}), ("c", "express", {"floors": 3}))
    found = verdict(tmp_path, Lift.system(), events, meaning=meaning)
    assert (found.answer, found.matched) == ("accepted", 3)
    events = log(("d", "ring", {"at": 2}), ("c", "express", {"floors": 3}))
    assert verdict(tmp_path, Lift.system(), events, meaning=meaning).answer == "rejected"


class Counter3(Model):
    """Counts to three."""

    def state(self):
        """From zero."""
        return State(n=Range(0, 3))

    @action
    def up(self, s):
        """One more."""
        require(s.n < 3)
        s.n += 1


def test_a_log_of_which_nothing_matched_is_not_accepted(tmp_path: Path) -> None:
    """Events that say nothing about the protocol are no evidence."""
    write_ndjson([Event("t", "p", n, "started") for n in range(3)], tmp_path / "log.ndjson")
    (found,) = judge(EventLog(Counter3, {"started": lambda event: None}).plan(tmp_path / "log.ndjson", None), "counter")
    assert (found.answer, found.reason) == ("inconclusive", "no event is an action of the model")


class Flagged(Model):
    """Parameters of all kinds."""

    def state(self):
        """A number and a flag."""
        return State(n=Range(0, 1), up=Bool())

    @action(v=[0, 1])
    def put(self, s, v):
        """A number."""
        s.n = v

    @action(b=[True, False], pair=[("a", 1)])
    def flag(self, s, b, pair):
        """A truth value, and a name with a number."""
        s.up = b


@pytest.mark.parametrize(
    ("event", "args", "message"),
    [
        ("put", {"v": True}, "v is true in the log, and 1 in the model"),
        ("flag", {"b": 0}, "b is 0 in the log, and False in the model"),
        ("flag", {"b": True, "pair": ["a", True]}, r'pair is \["a", true\] in the log, and \(.a., 1\) in the model'),
        ("put", {"v": "1"}, 'v is "1" in the log, and 1 in the model'),
        ("flag", {"b": "True"}, 'b is "True" in the log, and True in the model'),
        ("put", {"v": 1}, None),
        ("flag", {"b": False, "pair": ["a", 1]}, None),
    ],
)
def test_truth_values_are_no_numbers(tmp_path: Path, event: str, args: dict[str, Any], message: str | None) -> None:
    """Python calls 1 and True equal, a log does not mean the same."""
    log = tmp_path / "log.ndjson"
    write_ndjson([Event("t", "p", 0, event, args)], log)
    if message is None:
        assert [v.answer for v in assert_conforms(log, Flagged)] == ["accepted"]
        return
    with pytest.raises(InputError, match=message):
        assert_conforms(log, Flagged)


@pytest.mark.parametrize("value", [True, "1", 1])
def test_a_binding_passes_values_of_the_right_type(tmp_path: Path, value: Any) -> None:
    """What a binding copies from the log is no better than the log: true is not 1, and "1" is not 1."""
    log = tmp_path / "log.ndjson"
    write_ndjson([Event("t", "p", 0, "set", {"to": value})], log)
    binding = EventLog(Flagged, {"set": lambda event: Move("put", {"v": event.args["to"]})})
    if type(value) is int:
        assert [v.answer for v in assert_conforms(log, binding)] == ["accepted"]
        return
    with pytest.raises(InputError, match=r"v is .* in the binding's move, and 1 in the model"):
        assert_conforms(log, binding)


class Overflowing(Model):
    """A mistake that the log reaches."""

    def state(self):
        """A number."""
        return State(n=Range(0, 1))

    @action
    def count(self, s):
        """Not guarded."""
        s.n += 1


def test_a_mistake_of_the_model_is_one_line(tmp_path: Path) -> None:
    """The reason of a verdict has the remedy behind the message, not an escaped line break."""
    log = tmp_path / "log.ndjson"
    write_ndjson([Event("t", "p", seq, "count") for seq in range(2)], log)
    with pytest.raises(AssertionError, match=r"leaves Range\(0, 1\) in count\(\) \(new s\.n = 2\); guard it with"):
        assert_conforms(log, Overflowing)


def test_the_recipe_for_tests(tmp_path: Path, flink_logs: Path) -> None:
    """`assert_conforms` takes a model, a binding or a name, and names the line that is not allowed."""
    log = tmp_path / "log.ndjson"
    write_ndjson([Event("t", "p", n, "up") for n in range(3)], log)
    assert [v.answer for v in assert_conforms(log, Counter3)] == ["accepted"]
    assert [v.answer for v in assert_conforms(log, EventLog(Counter3))] == ["accepted"]
    assert [v.answer for v in assert_conforms(flink_logs / "a-taskfail-1", "failover")] == ["accepted"]
    long = tmp_path / "long.ndjson"
    write_ndjson([Event("t", "p", n, "up") for n in range(5)], long)
    with pytest.raises(AssertionError, match=r"long\.ndjson, t: rejected at .*long\.ndjson:4, p#3 up\(\): "):
        assert_conforms(long, Counter3)
    with pytest.raises(InputError):
        assert_conforms(tmp_path / "none.ndjson", Counter3)


def test_larger_bounds_decide_only_what_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rejection or an error stays, whatever other bounds would say."""
    up = Event("job", "p", 0, "up")
    log = Plan("run", (Unit("job", "a job", (), partial=None),), (up,))
    for kind in ("rejected", "error", "inconclusive"):
        monkeypatch.setattr(judging._CaseJudge, "verdict", lambda case, kind=kind: replace(case.open, answer=kind))
        asked: list[str] = []
        plan = replace(log, larger=lambda asked=asked: iter(asked.append("larger") or ()))
        assert [v.answer for v in judge(plan, "credit")] == [kind]
        assert bool(asked) is (kind == "inconclusive")
