"""What TLC prints and dumps, read back: counts, violations, behaviours with loops, values of every sort."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from streamproof.exchange.tla.module import export
from streamproof.exchange.tla.tlc import trace_of
from streamproof.exchange.tla.tlc_dump import trace_of_dump
from streamproof.exchange.tla.tlc_run import Printed, Violation, read_report
from streamproof.exchange.tla.tlc_values import Unreadable, read_state, read_value
from streamproof.exchange.tool_run import Refuted
from streamproof.model_registry import find
from streamproof.system import (
    ArraySort,
    BoolSort,
    EnumSort,
    InputError,
    Interpreter,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    System,
    SystemFailure,
)

SMALL = RangeSort(-1, 3)
PAIR = RecordSort((("holder", SMALL), ("clean", BoolSort())))
LINKS = EnumSort(("A>B", "A>B,C", "B<A"))

PLAIN = """TLC2 Version 2.15 of Day Month 20?? (rev: d5b5a7f)
Computing initial states...
Finished computing initial states: 1 distinct state generated at 2026-01-01 00:00:00.
Error: Invariant safe is violated.
Error: The behavior up to this point is:
State 1: <Initial predicate>
/\\ x = 0
/\\ q = <<>>

State 2: <send line 10, col 5 to line 12, col 20 of module m>
/\\ x = 1
/\\ q = << [ holder |-> 1,
        clean |-> TRUE ] >>

7 states generated, 5 distinct states found, 2 states left on queue.
The depth of the complete state graph search is 2.
Finished in 01s at (2026-01-01 00:00:01)
"""


def tool(*messages: tuple[int, int, str]) -> str:
    """Messages as ``-tool`` prints them: number, class, text."""
    return "".join(f"@!@!@STARTMSG {n}:{c} @!@!@\n{t}\n@!@!@ENDMSG {n} @!@!@\n" for n, c, t in messages)


COMPLETED = tool(
    (2262, 0, "TLC2 Version 2.15 of Day Month 20?? (rev: d5b5a7f)"),
    (
        2193,
        0,
        "Model checking completed. No error has been found.\n  Estimates of the probability that TLC did not check",
    ),
    (
        2200,
        0,
        "Progress(6) at 2026: 1,224 states generated (10,007 s/min), 80 distinct states found, 0 states left on queue.",
    ),
    (2199, 0, "1224 states generated, 80 distinct states found, 0 states left on queue."),
    (2194, 0, "The depth of the complete state graph search is 6."),
)


def test_a_completed_search_is_counted() -> None:
    """The last counts and the depth are those of the report, not of a line about progress."""
    report = read_report(COMPLETED)
    assert (report.generated, report.distinct, report.left, report.depth) == (1224, 80, 0, 6)
    assert (report.completed, report.violation, report.error) == (True, None, None)
    assert report.version == "2.15 of Day Month 20?? (rev: d5b5a7f)"


def test_a_violated_invariant_is_read_from_plain_output() -> None:
    """Name, states and the operators that led to them; a value may take several lines."""
    report = read_report(PLAIN)
    assert (report.generated, report.distinct, report.left, report.completed) == (7, 5, 2, False)
    assert report.error is None
    assert report.violation == Violation(
        "safe",
        (
            Printed("Initial predicate", "/\\ x = 0\n/\\ q = <<>>"),
            Printed("send", "/\\ x = 1\n/\\ q = << [ holder |-> 1,\n        clean |-> TRUE ] >>"),
        ),
    )


def test_an_initial_state_may_violate_an_invariant() -> None:
    """TLC prints the state in the same message."""
    text = tool((2107, 1, "Invariant safe is violated by the initial state:\n/\\ x = 0\n/\\ y = 1\n"))
    assert read_report(text).violation == Violation("safe", (Printed("Initial predicate", "/\\ x = 0\n/\\ y = 1"),))


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Action property grows is violated.", "grows"),
        (
            "Action property line 12, col 5 to line 12, col 9 of module m is violated.",
            "line 12, col 5 to line 12, col 9 of module m",
        ),
        ("Temporal properties were violated.\n", None),
        ("Temporal property live was violated.\n", "live"),
    ],
)
def test_loops_and_stuttering_are_read(said: str, name: str | None) -> None:
    """The state that follows the last one has a number; after stuttering nothing does."""
    states = [
        (2217, 4, "1: <Initial predicate>\nx = 0\n"),
        (2217, 4, "2: <send(1) line 1, col 1 to line 2, col 2 of module m>\nx = 1\n"),
    ]
    behaviour = (2264, 1, "The following behavior constitutes a counter-example:\n")
    back = read_report(
        tool((2116, 1, said), behaviour, *states, (2122, 4, "1: Back to state: <send line 1 of module m>\n"))
    )
    assert back.violation == Violation(name, (Printed("Initial predicate", "x = 0"), Printed("send", "x = 1")), 1)
    stuttering = read_report(tool((2116, 1, said), behaviour, *states, (2218, 4, "3: Stuttering")))
    assert stuttering.violation is not None
    assert (stuttering.violation.back_to, stuttering.violation.stutters) == (None, True)
    plain = f"Error: {said}\nError: The behavior up to this point is:\nState 1: <Initial predicate>\nx = 0\n\n"
    plain += "Back to state 1: <send line 1>\n"
    assert read_report(plain).violation == Violation(name, (Printed("Initial predicate", "x = 0"),), 1)


def test_an_error_of_tlc_is_told() -> None:
    """In its words; and an output that ends without a result is one, too."""
    failed = read_report(
        tool(
            (2199, 0, "1 states generated, 1 distinct states found, 0 states left on queue."),
            (1000, 1, "Evaluating p failed.\nIt is not a Boolean."),
        )
    )
    assert (failed.error, failed.violation, failed.completed) == (
        "Evaluating p failed. It is not a Boolean.",
        None,
        False,
    )
    with pytest.raises(SystemFailure, match="TLC ended without a result: Killed"):
        read_report("TLC2 Version 2.15\nKilled\n")


@pytest.mark.parametrize(
    ("sort", "text", "value"),
    [
        (BoolSort(), "TRUE", True),
        (SMALL, "-1", -1),
        (LINKS, '"A>B,C"', "A>B,C"),
        (PAIR, "[clean |-> FALSE,\n  holder |-> 2]", (2, False)),
        (RecordSort(()), '"unit"', ()),
        (OptionSort(SMALL), '[tag |-> "None", value |-> 0]', None),
        (OptionSort(PAIR), '[tag |-> "Some", value |-> [holder |-> 0, clean |-> TRUE]]', (0, True)),
        (ArraySort(RangeSort(1, 2), SMALL), "<<3, 0>>", (3, 0)),
        (ArraySort(RangeSort(0, 1), SMALL), "(1 :> 3 @@ 0 :> -1)", (-1, 3)),
        (ArraySort(BoolSort(), SMALL), "(FALSE :> 1 @@ TRUE :> 2)", (1, 2)),
        (ArraySort(LINKS, SMALL), "[A>B |-> 1, B<A |-> 3, A>B,C |-> 2]", (1, 2, 3)),
        (ArraySort(LINKS, SMALL), '("A>B" :> 1 @@ "B<A" :> 3 @@ "A>B,C" :> 2)', (1, 2, 3)),
        (QueueSort(SMALL, 2), "<<>>", ()),
        (QueueSort(SetSort(SMALL), 2), "<<{1, 2}, {}>>", (frozenset({1, 2}), frozenset())),
        (SetSort(SMALL), "-1..1", frozenset({-1, 0, 1})),
    ],
)
def test_values_are_read_by_their_sort(sort: Sort, text: str, value: Any) -> None:
    """A tuple may be a function, and a record one, too; strings are the sort's own."""
    assert read_value(sort, text) == value


@pytest.mark.parametrize(
    ("sort", "text", "wanted"),
    [
        (SMALL, '"a"', 'a number for a value: "a"'),
        (ArraySort(RangeSort(0, 1), SMALL), "(0 :> 1)", "a value for every index"),
        (PAIR, "[holder |-> 1]", "all of its fields"),
        (BoolSort(), "TRUE FALSE", "the end for a value: FALSE"),
    ],
)
def test_other_values_are_refused(sort: Sort, text: str, wanted: str) -> None:
    """With what was expected and what came."""
    with pytest.raises(Unreadable, match=wanted):
        read_value(sort, text)


def test_a_state_without_a_variable_is_refused(toggle: System) -> None:
    """And variables that the system does not have, as a module of until has, are passed over."""
    assert read_state(toggle, {"on": "on"}, "/\\ until = TRUE\n/\\ on = FALSE") == (False,)
    with pytest.raises(Unreadable, match="a state without on"):
        read_state(toggle, {"on": "on"}, "until = TRUE")


def flipping(*values: str, **rest: Any) -> Violation:
    """A behaviour of the toggle as TLC prints it."""
    return Violation("ends", tuple(Printed(None, f"on = {v}") for v in values), **rest)


def test_behaviours_are_taken_by_the_interpreter(toggle: System) -> None:
    """Each step is an instance; a loop is closed by one, and stuttering by none."""
    model = export(toggle)
    straight = trace_of(toggle, model, flipping("FALSE", "TRUE"))
    assert (straight.states, [s.label for s in straight.steps], straight.loop) == (
        ((False,), (True,)),
        ["flip()[to=True]"],
        None,
    )
    around = trace_of(toggle, model, flipping("FALSE", "TRUE", back_to=1))
    assert ([s.label for s in around.steps], around.loop) == (["flip()[to=True]", "flip()[to=False]"], 0)
    twice = trace_of(toggle, model, flipping("FALSE", "TRUE", "FALSE", back_to=1))
    assert (len(twice.states), twice.loop) == (2, 0)
    still = trace_of(toggle, model, flipping("FALSE", stutters=True))
    assert still.stutters
    named = Violation("ends", (Printed(None, "on = FALSE"), Printed("stay", "on = FALSE")))
    assert [s.label for s in trace_of(toggle, model, named).steps] == ["stay()"]


def test_behaviours_that_are_none_of_ours_are_refuted(relay: System, toggle: System) -> None:
    """A first state that is not initial, and a step that no instance makes, end with exit code 162."""
    with pytest.raises(Refuted, match="does not begin in an initial state") as refuted:
        trace_of(toggle, export(toggle), flipping("TRUE"))
    assert refuted.value.exit_code == 162
    rows = (
        "/\\ pool = 1\n/\\ backlog = (0 :> 1 @@ 1 :> 0)\n/\\ wire = <<>>",
        "/\\ pool = 0\n/\\ backlog = (0 :> 1 @@ 1 :> 0)\n/\\ wire = <<>>",
    )
    with pytest.raises(Refuted, match="no action leads from state 1 of TLC's behaviour to state 2"):
        trace_of(relay, export(relay), Violation("p", tuple(Printed("send", row) for row in rows)))


def dumped(*rows: dict[str, Any], back_to: int | None = None) -> str:
    """What TLC writes with ``-dumpTrace json``."""
    states = [[number, row] for number, row in enumerate(rows, start=1)]
    pairs = [*pairwise(states), *([(states[-1], states[back_to - 1])] if back_to else [])]
    actions = [[a, {"name": "send", "location": {"module": "m"}}, b] for a, b in pairs]
    return json.dumps({"state": states, "action": actions})


def test_dumped_behaviours_are_read(relay: System, toggle: System) -> None:
    """Functions from 0 are objects, sequences lists; a step back closes the loop."""
    rows = (
        {"pool": 1, "backlog": {"0": 1, "1": 0}, "wire": []},
        {"pool": 0, "backlog": {"0": 0, "1": 0}, "wire": ["DATA"]},
    )
    trace = trace_of_dump(relay, export(relay), dumped(*rows))
    assert trace.states == ((1, (1, 0), ()), (0, (0, 0), ("DATA",)))
    assert [s.label for s in trace.steps] == ["send(c=0)"]
    around = trace_of_dump(toggle, export(toggle), dumped({"on": False}, {"on": True}, back_to=1))
    assert (len(around.steps), around.loop) == (2, 0)
    for text in (
        "",
        "[]",
        "{}",
        '{"state": [[1e999, {}]], "action": []}',
        '{"state": [[1, 5]], "action": []}',
        "[" * 9_999,
    ):
        with pytest.raises(InputError, match="not a behaviour that TLC wrote"):
            trace_of_dump(toggle, export(toggle), text)
    with pytest.raises(Refuted, match="no action leads from state 1"):
        trace_of_dump(relay, export(relay), dumped(rows[0], {**rows[0], "pool": 0}))
    with pytest.raises(Unreadable, match="no value of Bool for on"):
        trace_of_dump(toggle, export(toggle), dumped({"on": 1}))


BAGS = """from streamproof import *

class Lot(Case):
    item: int

class Nothing(Case):
    pass

class Bags(Model):
    def state(self):
        return State(bag=Bag({sort}, capacity=2))

    @action
    def put(self, s):
        require(len(s.bag) == 0)
        s.bag.add({value})
"""


@pytest.mark.parametrize(
    ("sort", "value", "keys"),
    [
        (
            "Record(y=Range(-1, 0), x=Bool())",
            "{'y': -1, 'x': False}",
            [f"[x |-> {x}, y |-> {y}]" for x in ("FALSE", "TRUE") for y in (-1, 0)],
        ),
        (
            "Option(Range(0, 1))",
            "1",
            ['[tag |-> "Some", value |-> 1]', '[tag |-> "None", value |-> 0]', '[tag |-> "Some", value |-> 0]'],
        ),
        (
            "Union(Lot(item=Range(0, 1)), Nothing())",
            "Lot(item=1)",
            ['[type |-> "Lot", item |-> 1]', '[type |-> "Lot", item |-> 0]', '[type |-> "Nothing"]'],
        ),
        ("Range(-1, 1)", "-1", ["-1", "0", "1"]),
    ],
    ids=["record", "option", "union", "number"],
)
def test_dumped_bags_are_read(tmp_path: Path, sort: str, value: str, keys: list[str]) -> None:
    """The keys of an object are the possible elements of a bag as TLC prints them, in any order."""
    (tmp_path / "bags.py").write_text(BAGS.format(sort=sort, value=value))
    system = find(f"{tmp_path / 'bags.py'}").system(None, {})
    model = export(system)
    machine = Interpreter(system)
    (before,) = machine.initial_states()
    (step,) = machine.steps(before)
    rows = ({"bag": dict.fromkeys(keys, 0)}, {"bag": {k: int(k == keys[0]) for k in keys}})
    assert trace_of_dump(system, model, dumped(*rows)).states == (before, step.state)
