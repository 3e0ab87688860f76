"""`enabled` in properties, `first`, and several initial values inside containers: the system agrees with Python."""

from __future__ import annotations

from itertools import product

import pytest

from streamproof import (
    Array,
    Bool,
    Model,
    ModelError,
    Native,
    Parts,
    Queue,
    Range,
    Record,
    State,
    action,
    always,
    any_of,
    choose,
    enabled,
    explore,
    first,
    invariant,
    leads_to,
    require,
    step,
    temporal,
)
from streamproof.system import EvaluationError, Interpreter, Verdict


class Turns(Model):
    """Two clients with turns, and a queue."""

    n: int = 2

    def state(self):
        """Variables."""
        return State(
            turn=Range(0, self.n - 1),
            busy=Array(self.n, Bool()),
            q=Queue(Range(0, 2), capacity=2),
        )

    @action(i="n")
    def enter(self, s, i):
        """In turn."""
        require(s.turn == i and not s.busy[i])
        s.busy[i] = True

    @action(i="n")
    def leave(self, s, i):
        """The other's turn."""
        require(s.busy[i])
        s.busy[i] = False
        s.turn = (i + 1) % self.n

    @action(v=range(3))
    def put(self, s, v):
        """Two picks, one of which may be possible."""
        limit = choose([1, 2])
        require(v < limit and not s.q.full)
        s.q.push(v)

    @invariant
    def some(self, s):
        """Somebody can do something."""
        return any(enabled(self.enter, s, i) or enabled(self.leave, s, i) for i in range(self.n))

    @invariant
    def never_both(self, s):
        """Nobody can enter and leave."""
        return not any(enabled(self.enter, s, i) and enabled(self.leave, s, i) for i in range(self.n))

    @invariant
    def room(self, s):
        """An argument of the state, and picks."""
        return enabled(self.put, s, s.turn) == (len(s.q) < 2)

    @invariant
    def two(self, s):
        """With every pick disabled."""
        return not enabled(self.put, s, 2)

    @step
    def handed(self, s, t):
        """The next state's rules."""
        return s.turn == t.turn or (enabled(self.enter, t, t.turn) and not enabled(self.enter, s, t.turn))

    @invariant
    def violated(self, s):
        """False after one step."""
        return enabled(self.enter, s, 0)

    @temporal
    def open_again(self, s):
        """Inside an operator."""
        return leads_to(enabled(self.leave, s, 0), always(enabled(self.leave, s, 0)))


def test_enabled() -> None:
    """Verdicts, and native execution in every state and step."""
    system, native = Turns.system(), Native(Turns())
    found = explore(system)
    assert {f.property: f.verdict for f in found.findings if f.verdict is not Verdict.HOLDS} == {
        "violated": Verdict.VIOLATED,
        "open_again": Verdict.VIOLATED,
    }
    interpreter = Interpreter(system)
    for state in found.states():
        for name in ("some", "never_both", "room", "two", "violated"):
            assert native.holds(name, state) == interpreter.holds(system.property(name), state)


class Late(Turns):
    """A rule that fails behind its guards, by an operation of Python."""

    @action
    def last(self, s):
        """There is no number above the highest."""
        require(not s.busy[0])
        s.turn = first(v for v in range(self.n) if v > s.turn)

    @invariant
    def some(self, s):
        """Enabled where its guard is true, as for the checker."""
        return enabled(self.last, s) == (not s.busy[0])


def test_a_rule_that_fails_behind_its_guards_is_enabled() -> None:
    """In the system and natively."""
    system, native = Late.system(), Native(Late())
    interpreter, failing = Interpreter(system), (1, (False, False), ())
    assert native.holds("some", failing) is interpreter.holds(system.property("some"), failing) is True
    with pytest.raises(EvaluationError, match="first"):
        native.step(failing, "last")


class Whole(Model):
    """A part's rules, seen from the part."""

    def parts(self):
        """One machine."""
        return Parts(inner=Turns())

    @invariant
    def fine(self, s):
        """A condition."""
        return s.inner.turn < 2


def test_enabled_in_a_part() -> None:
    """The part's own properties use the names of the whole."""
    found = explore(Whole.system())
    alone = explore(Turns.system())
    assert [(f.property, f.verdict) for f in found.findings if f.property.startswith("inner.")] == [
        (f"inner.{f.property}", f.verdict) for f in alone.findings if f.property != "deadlock"
    ]


class InAction(Turns):
    """Asks in a rule."""

    @action
    def other(self, s):
        """Not allowed."""
        s.turn = 1 if enabled(self.enter, s, 0) else 0


class NoRule(Turns):
    """Asks for a property."""

    @invariant
    def other(self, s):
        """Not a rule."""
        return enabled(self.some, s)


class Fewer(Turns):
    """Forgets an argument."""

    @invariant
    def other(self, s):
        """Needs one."""
        return enabled(self.enter, s)


class NoState(Turns):
    """Forgets the state."""

    @invariant
    def other(self, s):
        """Needs it."""
        return enabled(self.enter, 0)


class Stranger(Turns):
    """Asks another model, which has a rule of this name."""

    def setup(self):
        """Another one."""
        self.other_one = Turns(n=3)

    @invariant
    def other(self, s):
        """Not of this model."""
        return enabled(self.other_one.enter, s, 0)


class Before(Turns):
    """Asks for the rule that it overrides."""

    @action(i="n")
    def enter(self, s, i):
        """Never."""
        require(s.busy[i] and not s.busy[i])

    @invariant
    def other(self, s):
        """Of the base class."""
        return enabled(super().enter, s, 0)


class WrongState(Whole):
    """Asks a rule of the whole about the state of a part."""

    @action
    def rest(self, s):
        """Nothing."""

    @invariant
    def other(self, s):
        """Of a part."""
        return enabled(self.rest, s.inner)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (InAction, r"enabled\(...\) in an action\n  use it in a property"),
        (NoRule, r"some is no rule of NoRule\n  name one with @action"),
        (Stranger, r"enter is no rule of Stranger"),
        (Before, r"enter is no rule of Before"),
        (WrongState, r"rest is asked of the state of another machine"),
        (Fewer, r"enter takes 1 arguments behind the state, got 0"),
        (NoState, r"enabled\(...\) takes a rule of the model, the state and the rule's arguments"),
    ],
)
def test_wrong_uses(model: type[Model], message: str) -> None:
    """One message each."""
    with pytest.raises(ModelError, match=message):
        model.system()


class Picking(Model):
    """Takes the first that fits."""

    def state(self):
        """Slots and a queue."""
        return State(slot=Array(3, Range(0, 2)), q=Queue(Range(0, 2), capacity=2), got=Range(0, 5))

    @action
    def free(self, s):
        """The first free slot, or none."""
        s.got = first((i for i in range(3) if s.slot[i] == 0), default=5)

    @action
    def whole(self, s):
        """The division is not done behind the first hit."""
        s.got = first(2 // v for v in s.slot if v != 1)

    @action
    def listed(self, s):
        """Of a list."""
        s.got = first([v for v in s.q if v > 0] + [4])

    @action
    def nested(self, s):
        """Of two loops."""
        s.got = first(i + v for v in s.q for i in range(3) if s.slot[i] == v)


def test_first() -> None:
    """As in Python, in every state, errors included."""
    system, native = Picking.system(), Native(Picking())
    interpreter = Interpreter(system)
    queues = [(), *product(range(3), repeat=1), *product(range(3), repeat=2)]
    outcomes: dict[str, int] = {}
    for slots, queue in product(product(range(3), repeat=3), queues):
        state = (slots, queue, 0)
        for instance in system.instances:
            results = []
            for run in (
                lambda i=instance, s=state: interpreter.take(i, s),
                lambda i=instance, s=state: native.step(s, i.action),
            ):
                try:
                    results.append(run())
                except EvaluationError:
                    results.append("error")
            assert results[0] == results[1], (instance.label, state)
            outcomes[instance.action] = outcomes.get(instance.action, 0) + (results[0] == "error")
    assert outcomes["free"] == outcomes["listed"] == 0
    assert outcomes["whole"] > 100
    assert outcomes["nested"] > 30


class Starts(Model):
    """Several initial values inside containers."""

    def state(self):
        """Of each kind."""
        return State(
            a=Array(3, Range(0, 2), init=[0, any_of(1, 2), 2]),
            b=Record(init={"x": any_of(0, 1), "y": 1}, x=Range(0, 1), y=Range(0, 1)),
            c=Array(["p", "q"], Range(0, 3), init={"p": any_of(1, 2), "q": any_of(0, 3)}),
            d=Queue(Range(0, 1), capacity=2, init=any_of([], [any_of(0, 1)])),
        )

    @action
    def stay(self, s):
        """Nothing."""


def test_several_initial_values_inside_containers() -> None:
    """All combinations, each once."""
    variables = {v.name: v.initial for v in Starts.system().variables}
    assert variables["a"] == ((0, 1, 2), (0, 2, 2))
    assert variables["b"] == ((0, 1), (1, 1))
    assert variables["c"] == ((1, 0), (1, 3), (2, 0), (2, 3))
    assert variables["d"] == ((), (0,), (1,))
