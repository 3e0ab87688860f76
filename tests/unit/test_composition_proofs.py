"""Composites: refinement of machines and by machines, and proofs for every size."""

from __future__ import annotations

import pytest

from streamproof import (
    WEAK,
    Array,
    Bool,
    Enum,
    Model,
    Native,
    Option,
    Parts,
    Range,
    Spec,
    State,
    action,
    always,
    choose,
    eventually,
    invariant,
    refines,
    require,
    temporal,
)
from streamproof.explicit.exploration import explore
from streamproof.system import EvaluationError, Interpreter


class Token(Model):
    """Something that is on or off."""

    def state(self):
        """Whether it is on."""
        return State(on=Enum("OFF", "ON"))

    @action(fairness=WEAK)
    def flip(self, s):
        """Goes on."""
        require(s.on == "OFF")
        s.on = "ON"

    @action
    def back(self, s):
        """Goes off."""
        require(s.on == "ON")
        s.on = "OFF"


def test_a_composite_refines_a_machine() -> None:
    """Refinement of a machine by a composite, and of a composite by a machine, is claimed as ever."""

    class Pair(Model):
        def parts(self):
            return Parts(a=Token(), b=Token()).together("back", "a.back()", "b.back()")

        @refines(Token)
        def seen(self, s):
            return {"on": s.a.on}

        @temporal
        def again(self, s):
            return always(eventually(s.a.on == "ON"))

    class Flat(Model):
        def state(self):
            return State(x=Enum("OFF", "ON"), y=Enum("OFF", "ON"))

        @action
        def forth(self, s):
            s.x = "ON"
            require(s.y == "OFF")

        @refines(Pair)
        def pair(self, s):
            return {"a.on": s.x, "b.on": s.y}

    assert {f.property: f.verdict.value for f in explore(Pair.system()).findings} == {
        "seen_start": "holds",
        "seen": "holds",
        "seen_fairness": "holds",
        "again": "holds",
        "deadlock": "holds",
    }
    verdicts = {f.property: f.verdict.value for f in explore(Flat.system()).findings}
    assert (verdicts["pair_start"], verdicts["pair"], verdicts["pair_fairness"]) == ("holds", "holds", "violated")


class Sized(Model):
    """Places that are marked, for proofs of every size."""

    room: int = 1
    limits = {"room": (1, None)}  # noqa: RUF012

    def state(self):
        """Marks by place."""
        return State(marked=Array(self.room, Bool()))

    @action(k="room")
    def mark(self, s, k):
        """One more place is marked."""
        s.marked[k] = True


class Marked(Model):
    """Two of them whose places are marked together."""

    room: int = 2
    limits = {"room": (1, None)}  # noqa: RUF012
    check_deadlock = False

    def parts(self):
        """Both mark the same place."""
        return Parts(a=Sized(room=self.room), b=Sized(room=self.room)).together("mark", "a.mark(k)", "b.mark(k)")

    @invariant
    def alike(self, s):
        """The same places are marked."""
        return all(s.a.marked[k] == s.b.marked[k] for k in range(self.room))


def test_proofs_for_every_size() -> None:
    """A composite with a free parameter: parameters of joint actions that run through any range are one."""
    pytest.importorskip("z3")
    from streamproof.any.engine.proof import prove_any

    parametric = Spec(Marked).parametric(["room"])
    (instance,) = parametric.system.action("mark").instances
    assert len(instance.args) == 1
    proof = prove_any(parametric, [parametric.system.property("alike")])
    assert proof.proved == ("alike",)


class Sender(Model):
    """Buffers on a wire."""

    depth: int = 2
    limits = {"depth": (1, None)}  # noqa: RUF012

    def state(self):
        """All of them are left."""
        return State(left=Range(0, self.depth, init=self.depth), wire=Range(0, self.depth))

    @action
    def send(self, s):
        """One more is on the wire, unless the wire is full: then the value leaves its range."""
        require(s.left > 0)
        s.left -= 1
        s.wire += 1


class Gate(Model):
    """A gate that may be shut."""

    def state(self):
        """It is open, and nobody has passed."""
        return State(shut=Bool(), last=Option(Range(0, 3)))

    @action
    def send(self, s):
        """Passes an open gate."""
        require(not s.shut)
        s.last = 0

    @action
    def again(self, s):
        """Passes if somebody has passed."""
        require(s.last > 0)


class Gated(Model):
    """A sender behind a gate."""

    depth: int = 2
    limits = {"depth": (1, None)}  # noqa: RUF012
    check_deadlock = False

    def parts(self):
        """What is sent passes the gate."""
        flow = Parts(flow=Sender(depth=self.depth), gate=Gate(), other=Gate())
        return flow.together("send", "flow.send", "gate.send").together("both", "other.send", "gate.again")

    @invariant
    def bounded(self, s):
        """Nothing is added."""
        return s.flow.left <= self.depth


def test_a_part_that_fails_behind_a_shut_gate() -> None:
    """The guards of all parts come before the effect of any, in plain Python as in the interpreter."""
    native, system = Native(Gated()), Gated.system()
    interpreter = Interpreter(system)
    send, both = (system.action(name).instances[0] for name in ("send", "both"))
    full = {
        "flow.left": 2,
        "flow.wire": 2,
        "gate.shut": True,
        "gate.last": None,
        "other.shut": True,
        "other.last": None,
    }
    state = native.values(full)
    assert interpreter.take(send, state) is native.take(state, send, system) is native.step(full, "send") is None
    open_ = native.values({**full, "gate.shut": False})
    for take in (lambda: native.take(open_, send, system), lambda: native.step(open_, "send")):
        with pytest.raises(EvaluationError, match=r"flow\.wire|s\.wire"):
            take()
    for run in (  # the guard of the second part fails, although the first one is disabled
        lambda: interpreter.take(both, state),
        lambda: native.take(state, both, system),
        lambda: native.step(full, "both"),
    ):
        with pytest.raises(EvaluationError, match="None where a value is needed"):
            run()


def test_readings_of_a_gated_sender_agree() -> None:
    """Random states in which a part fails and another one is disabled are no disagreement."""
    pytest.importorskip("z3")
    from streamproof.any.readings import compare_readings

    spec = Spec(Gated)
    assert compare_readings(spec, None, {}, spec.parametric(["depth"])).runs > 100


class Chooser(Model):
    """An unreached choice at some sizes only."""

    room: int = 2
    limits = {"room": (2, None)}  # noqa: RUF012
    check_deadlock = False

    def state(self):
        """A number, and a flag."""
        return State(x=Range(0, self.room, init=0), y=Range(0, 2), on=Bool())

    @action
    def pick(self, s):
        """The second choice is never reached at size 2, and the constant guard is none there."""
        s.y = choose([0, 1])
        if self.room > 2:
            s.x = choose([0, 1])
        if s.x > self.room:
            s.on = choose(yes=True, no=False)
        s.y += 1
        if s.on:
            s.y = s.y
        else:
            s.x += 1
        require(s.x <= self.room + 1)

    @invariant
    def small(self, s):
        """No number is too large."""
        return s.x <= self.room


def test_choices_of_some_sizes_only() -> None:
    """A choice that a size does not reach, and a guard that is constant there, are no difference of the readings."""
    pytest.importorskip("z3")
    from streamproof.any.readings import compare_readings

    spec = Spec(Chooser)
    assert compare_readings(spec, None, {}, spec.parametric(["room"])).runs > 100
