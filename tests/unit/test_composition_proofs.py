"""Composites: refinement of machines and by machines, and proofs for every size."""

from __future__ import annotations

import pytest

from streamproof import (
    WEAK,
    Array,
    Bool,
    Enum,
    Model,
    Parts,
    Spec,
    State,
    action,
    always,
    eventually,
    invariant,
    refines,
    require,
    temporal,
)
from streamproof.explicit import explore


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
    from streamproof.symbolic.parametric.proof import prove_any

    parametric = Spec(Marked).parametric(["room"])
    (instance,) = parametric.system.action("mark").instances
    assert len(instance.args) == 1
    proof = prove_any(parametric, [parametric.system.property("alike")])
    assert proof.proved == ("alike",)
