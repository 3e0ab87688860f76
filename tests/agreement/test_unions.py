"""Unions mean the same in every engine: equal counts, in both tiers, in TLC, symbolically, and in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from letters import Letters
from quick_tlc import QUICK
from streamproof import (
    WEAK,
    Bag,
    Bool,
    Case,
    Enum,
    Model,
    Range,
    Record,
    Set,
    State,
    Union,
    action,
    choose,
    explore,
    require,
)
from streamproof.conformance import InputError
from streamproof.conformance.recorded_values import agrees, expect_value
from streamproof.exchange.tla import tlc
from streamproof.exchange.tla.module import export
from streamproof.system.model import fairness_constraints
from streamproof.system.sorts import BOOL, RangeSort, RecordSort, UnionSort
from streamproof.traces.replay import replay_labels


@pytest.mark.long
def test_letters_in_every_engine(panel: Any) -> None:
    """One model with unions in all containers: counts, states and verdicts of interpreter, both tiers and the solver."""
    system = Letters.system()
    referee = panel.interpreter_result(system)
    assert (referee.result.distinct, referee.result.generated, len(referee.result.levels)) == (2904, 9111, 15)
    referee.compare(panel.explored(system, "python"))
    referee.compare(panel.explored(system, "compiled"))
    referee.compare(panel.bounded(system, 3))


class Ask(Case):
    """A question with a number and perhaps a name."""

    n: int
    of: str


class Stop(Case):
    """No fields."""


class Post(Model):
    """Messages as parameters, as choices, and records as choices."""

    check_deadlock = False

    def state(self):
        """A bag of messages, a set of records."""
        return State(
            net=Bag(Union(Ask(n=Range(0, 1), of=Enum("a", "b")), Stop()), capacity=1),
            kept=Set(Record(n=Range(0, 1), up=Bool()), init=[{"n": 1, "up": False}]),
            last=Range(0, 1),
        )

    @action(message=[Ask(0, "a"), Ask(1, "b"), Stop()])
    def send(self, s, message):
        """One message."""
        require(len(s.net) == 0)
        s.net.add(message)

    @action
    def receive(self, s):
        """Any message."""
        got = choose(s.net)
        s.net.remove(got)
        match got:
            case Ask(n=k):
                s.last = k
            case Stop():
                s.last = 0

    @action
    def drop(self, s):
        """Any record."""
        kept = choose(s.kept)
        s.kept.remove(kept)
        s.last = kept.n


def test_steps_name_messages_as_the_source_does() -> None:
    """In labels, in patterns of steps by text and by value, and in TLA+, where a parameter is the record itself."""
    system = Post.system()
    labels = [i.label for i in system.instances]
    assert labels[:4] == ["send(message=Ask(n=0, of=a))", "send(message=Ask(n=1, of=b))", "send(message=Stop())",
                          "receive()[got=Ask(n=0, of=a)]"]  # fmt: skip
    assert "drop()[kept=(n=1, up=False)]" in labels
    for pattern in ("send(Ask(n=1, of=b))", "send(message=Ask(n=1, of=b))", ("send", {"message": Ask(1, "b")})):
        assert replay_labels(system, [pattern]).steps[0] is system.instances[1]
    exported = export(system)
    module = exported.modules[exported.module]
    assert '\\E message \\in {[type |-> "Ask", n |-> 0, of |-> "a"], [type |-> "Ask", n |-> 1, of |-> "b"], ' in module
    assert "[net EXCEPT ![message] = @ + 1]" in module
    assert "last' = kept_2.n" in module
    assert "'Ask'" not in module


@pytest.mark.long
def test_tlc_takes_messages_as_parameters(jar: Path) -> None:
    """The same counts."""
    ours, counted = explore(Post.system()).counts, tlc.count(Post.system(), QUICK)
    assert (counted.distinct, counted.generated) == (ours.distinct, ours.generated)


def test_recorded_values_of_a_union() -> None:
    """In an event log, a value of a union has its case as a tag and, of its fields, those that were recorded."""
    sort = UnionSort((("Ask", RecordSort((("number", RangeSort(0, 2)), ("of", BOOL)))), ("Stop", RecordSort(()))))
    assert agrees(sort, ("Ask", (1, True)), {"tag": "Ask", "value": {"number": 1}})
    assert agrees(sort, ("Stop", ()), {"tag": "Stop"})
    assert not agrees(sort, ("Ask", (1, True)), {"tag": "Ask", "value": {"number": 2}})
    assert not agrees(sort, ("Stop", ()), {"tag": "Ask", "value": {"number": 1}})
    for wrong in ({"tag": ["Ask"]}, {"tag": {}}, {"tag": None}, {"tag": "Ask", "value": None}, [], "Ask"):
        with pytest.raises(InputError, match="which is no value of Union"):
            expect_value(sort, wrong, "s.last", None)


def test_fairness_names_messages_as_steps_do() -> None:
    """What a fair behaviour owes is called as in the trace beside it."""

    class Owing(Model):
        check_deadlock = False

        def state(self) -> State:
            return State(last=Union(Ask(n=Range(0, 1), of=Enum("a", "b")), Stop()))

        @action(message=Union(Ask(n=Range(0, 1), of=Enum("a", "b")), Stop()), fairness=WEAK)
        def send(self, s: Any, message: Any) -> None:
            s.last = message

    system = Owing.system()
    labels = [constraint.label for constraint in fairness_constraints(system)]
    assert labels == [instance.label for instance in system.instances]
    assert "send(message=Ask(n=0, of=a))" in labels
