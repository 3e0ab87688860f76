"""Empty arrays, sets, options and domains: every engine counts what the same model without them has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quick_tlc import QUICK
from streamproof import (
    ANY,
    Array,
    Bool,
    Enum,
    Model,
    Native,
    Option,
    Queue,
    Range,
    Record,
    SearchOptions,
    Set,
    State,
    Symmetric,
    action,
    choose,
    explore,
    invariant,
    reachable,
    require,
)
from streamproof.exchange.itf.reading import read_itf
from streamproof.exchange.itf.writing import write_itf
from streamproof.exchange.tla import tlc
from streamproof.system import EvaluationError, Interpreter, ModelError


class Heads(Model):
    """Every container, of which a parameter decides whether it is empty."""

    heads: int = 0

    def setup(self):
        """Names and pairs."""
        self.names = [f"h{k}" for k in range(self.heads)]
        self.links = [(a, b) for a in range(self.heads) for b in range(2)]

    def state(self):
        """Variables without an `if`."""
        head = Range(0, self.heads - 1)
        return State(
            x=Range(0, 3),
            wire=Array(self.heads, Queue(Range(0, 1), capacity=1)),
            link=Array(self.links, Range(0, self.heads, init=self.heads)),
            by=Array(self.names, head),
            seen=Set(head),
            last=Option(head, init=ANY),
            calls=Queue(Enum(*self.names), capacity=2),
            twin=Set(Symmetric(*self.names)),
            box=Record(up=Array(self.heads, Bool()), at=Option(Record(k=head, up=Bool()))),
            rows=Option(Array(2, head)),
            grid=Array(2, Array(self.heads, head)),
        )

    @action
    def tick(self, s):
        """The only rule that something may happen in."""
        require(s.x < 3)
        s.x += 1
        for w in s.wire:
            w.clear()

    @action(h="heads")
    def push(self, s, h):
        """No instance without heads."""
        require(not s.wire[h].full and len(s.calls) < 2 and s.x == 0)
        s.wire[h].push(1)
        s.seen.add(h)
        s.last = h
        s.calls.push(self.names[h])

    @action
    def some(self, s):
        """A choice from nothing."""
        h = choose(range(self.heads))
        s.wire[h].clear()

    @action
    def member(self, s):
        """A choice from a set that has no member."""
        s.seen.discard(choose(s.seen))

    @action
    def again(self, s):
        """Conditions on what is absent."""
        require(s.x == 3)
        if s.last is not None:
            s.wire[s.last].clear()
            s.x = s.last
        if s.x < len(s.wire):
            s.wire[s.x].clear()
        s.grid = [list(row) for row in s.grid]
        s.last = None
        s.x = 0

    @invariant
    def nothing(self, s):
        """Every quantifier of nothing."""
        quiet = all(len(w) <= 1 for w in s.wire) and not any(w.full and len(w) == 0 for w in s.wire)
        return quiet and len(s.seen) <= self.heads and sum(s.link) == self.heads * len(s.link) and s.seen <= s.seen

    @reachable
    def three(self, s):
        """An empty maximum with a default."""
        return s.x == 3 and max((len(w) for w in s.wire), default=0) == 0 and s.last != 0


def test_engines_agree_and_count_nothing_for_what_is_empty(panel: Any) -> None:
    """Without heads there are the four values of x; every engine says so."""
    referee = panel.interpreter_result(Heads.system())
    assert (referee.result.distinct, referee.result.generated) == (4, 5)
    for found in (
        panel.explored(referee.system, "python"),
        panel.explored(referee.system, "compiled"),
        panel.bounded(referee.system, 4),
    ):
        referee.compare(found)
    reduced = explore(referee.system, SearchOptions(symmetry=True, por=True)).counts
    assert reduced is not None
    assert reduced.distinct == 4


def test_one_head_is_not_empty(panel: Any) -> None:
    """The same model with elements: the interpreter and both tiers agree."""
    referee = panel.interpreter_result(Heads.system(heads=1))
    assert referee.result.distinct > 4
    for tier in ("python", "compiled"):
        referee.compare(panel.explored(referee.system, tier))


def test_native_execution_and_traces(tmp_path: Path) -> None:
    """Rules run natively; ITF writes and reads states without elements."""
    system = Heads.system()
    trace = explore(system).finding("three").trace
    assert trace is not None
    native = Native(Heads())
    assert [native.step(trace.states[0], "tick"), native.step(trace.states[0], "member", picks=[0])] == [
        trace.states[1],
        None,
    ]
    write_itf(tmp_path / "trace.itf.json", system, trace)
    assert read_itf(tmp_path / "trace.itf.json", system).states == trace.states


def test_a_system_without_leaves(panel: Any) -> None:
    """A state that consists of empty containers only: one state, no instance."""

    class Void(Model):
        """Nothing."""

        check_deadlock = False

        def state(self):
            """Two empty variables."""
            return State(x=Array(0, Bool()), y=Set(Enum()))

        @action(i=range(0))
        def go(self, s, i):
            """No instance."""
            s.x[i] = True

        @invariant
        def fine(self, s):
            """True of nothing."""
            return all(s.x) and not any(s.x)

    referee = panel.interpreter_result(Void.system())
    assert referee.result.distinct == 1
    referee.compare(panel.explored(referee.system, "python"))
    for workers in (1, 2):
        counts = explore(referee.system, SearchOptions(tier="compiled", workers=workers)).counts
        assert counts is not None
        assert counts.distinct == 1
    referee.compare(panel.bounded(referee.system, 2))


@pytest.mark.long
def test_tlc_agrees(jar: Path) -> None:
    """TLC counts the same states over empty functions and sets."""
    for heads in (0, 1):
        system = Heads.system(heads=heads)
        ours, counted = explore(system).counts, tlc.count(system, QUICK)
        assert ours is not None
        assert (counted.distinct, counted.generated) == (ours.distinct, ours.generated)


def test_an_element_of_nothing_is_a_mistake() -> None:
    """The error is found where it is reached, and by native execution; one in every state is rejected."""

    class Late(Heads, variant="late"):
        """Reads a head that does not exist."""

        @action
        def late(self, s):
            """Mistaken at 2."""
            require(s.x == 2)
            s.wire[s.x].clear()

        @action
        def early(self, s):
            """Adds to the empty set where x is 3."""
            if s.x == 3:
                s.seen.add(0)

    system = Late.system()
    mistake = explore(system).mistake
    assert mistake is not None
    assert len(mistake.trace.states) == 3
    state = mistake.trace.states[-1]
    [rule] = [i for i in system.instances if i.action == "late"]
    for run in (lambda: Interpreter(system).take(rule, state), lambda: Native(Late()).take(state, rule, system)):
        with pytest.raises(EvaluationError, match=r"index outside Range\(0, -1\) in late\(\)"):
            run()

    class Always(Heads, variant="always"):
        """Adds to the empty set."""

        @action
        def add(self, s):
            """Always mistaken."""
            s.seen.add(s.x)

    with pytest.raises(ModelError, match="in every state of add"):
        Always.system()


@pytest.mark.parametrize(
    "declared",
    [lambda: Range(0, -1), Enum, lambda: Record(k=Range(0, -1)), lambda: Array(2, Range(5, 4)), lambda: Symmetric(0)],
    ids=["range", "enum", "record", "array", "symmetric"],
)
def test_a_variable_needs_a_value(declared: Any) -> None:
    """An empty sort is none of a variable; a range with its ends exchanged is none at all."""
    with pytest.raises(ModelError, match=r"x has no value, because .* is empty"):
        State(x=declared())
    with pytest.raises(ModelError, match=r"Range\(3, 0\) is empty"):
        Range(3, 0)
