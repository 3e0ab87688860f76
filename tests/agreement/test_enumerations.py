"""Members of enumerations in declarations, rules and properties: natively, and in every engine."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from streamproof import Array, Enum, Model, Native, Queue, Range, Set, State, action, choose, invariant, require
from streamproof.base.errors import ModelError
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.symbolic.bmc import bmc
from streamproof.system.interpreter import Interpreter


class Level(enum.IntEnum):
    """Numbers with names."""

    LOW = 0
    MID = 1
    HIGH = 2


class Phase(enum.StrEnum):
    """Names."""

    IDLE = enum.auto()
    BUSY = enum.auto()
    DONE = enum.auto()


class Side(str, enum.Enum):  # noqa: UP042
    """Names, as they were written before `StrEnum`; their text is not their value."""

    LEFT = "left"
    RIGHT = "right"


NEXT = {Phase.IDLE: Phase.BUSY, Phase.BUSY: Phase.DONE, Phase.DONE: Phase.IDLE}


class Named(Model):
    """Uses enumerations wherever a plain value may stand."""

    top: int = Level.HIGH
    first: str = Phase.IDLE
    check_deadlock = False

    def state(self) -> State:
        """Sorts made of classes and of members."""
        return State(
            level=Range(Level.LOW, self.top, init=Level.LOW),
            phase=Enum(Phase, init=self.first),
            side=Enum(*Side),
            seen=Set(Enum(Phase)),
            count=Array(Phase, Range(0, 2)),
            of_level=Array(Level, Enum(Phase)),
            queue=Queue(Enum(Phase), capacity=Level.MID),
        )

    @action(p=Phase, side=Side)
    def become(self, s: Any, p: Phase, side: Side) -> None:
        """Parameters are members, with what members have."""
        require(s.phase != p and p.name == p.value.upper() and side.value == side)
        s.phase, s.side = p, side
        s.seen.add(p)
        s.count[p] = Level.HIGH
        s.of_level[s.level] = p

    @action(levels=[(Level.LOW, Level.MID), (Level.MID, Level.LOW)])
    def move(self, s: Any, levels: tuple[Level, Level]) -> None:
        """Tuples of members."""
        require(s.level == levels[0])
        s.level = Level(levels[1].value)

    @action
    def follow(self, s: Any) -> None:
        """Lookups, conversions, choices."""
        s.phase = Phase(NEXT[s.phase])
        s.side = choose(Side)
        got = choose([Level.LOW, Level.MID])
        s.level = got * Level.MID + Level.LOW if got.name == "MID" else -got

    @action
    def through(self, s: Any) -> None:
        """Queues of members."""
        if len(s.queue) == Level.LOW:
            s.queue.push(s.phase)
        elif s.queue.pop() in {Phase.DONE, Phase.BUSY}:
            s.count = {p: Level.MID if p == s.phase else s.count[p] for p in Phase}

    @invariant
    def small(self, s: Any) -> bool:
        """Comparisons, quantifiers, sums."""
        return s.level <= Level.HIGH and all(s.count[p] in list(Level) for p in Phase) and s.phase in list(Phase)

    @invariant
    def not_all(self, s: Any) -> bool:
        """Is violated."""
        return not s.seen >= set(Phase) or s.side == Side.LEFT or s.level != Level.MID


def test_rules_mean_natively_what_they_mean_to_the_checker() -> None:
    """In 200 states each instance gives the same successor; the system has plain values, the rules get members."""
    system = Named.system()
    interpreter, native = Interpreter(system), Native(Named())
    found = list(interpreter.initial_states())
    for state in found:
        for instance in system.instances:
            after = interpreter.take(instance, state)
            assert after == native.take(state, instance, system), instance.label
            if after is not None and after not in found and len(found) < 200:
                found.append(after)
    assert len(found) == 200
    values = [v for i in system.instances for _, v in (*i.args, *i.picks)]
    assert {type(v) for v in values} == {int, str, tuple}
    assert "become(p=busy, side=left)" in {i.label for i in system.instances}
    assert type(native.step(found[0], "become", Phase.BUSY, Side.LEFT)) is tuple
    assert native.step(found[0], "become", "busy", "left") == native.step(found[0], "become", Phase.BUSY, Side.LEFT)


@pytest.mark.parametrize("tier", ["python", "compiled"])
def test_both_tiers_agree_with_the_solver(tier: str) -> None:
    """The shortest violation has the same length in each."""
    system = Named.system()
    searched = explore(system, SearchOptions(tier=tier))
    solved = bmc(system, 6, ("not_all",))
    one, other = next(f for f in searched.findings if f.property == "not_all"), solved.findings[0]
    assert one.trace is not None
    assert other.trace is not None
    assert len(one.trace.steps) == len(other.trace.steps)


def test_what_a_class_cannot_stand_for() -> None:
    """Members that are neither names nor numbers, and values of a sort that are no members, are refused with a remedy."""

    class Plain(enum.Enum):
        """Neither names nor numbers."""

        A = 1

    class Refused(Named):
        """Looks for values that the enumeration does not have."""

        @action
        def follow(self, s: Any) -> None:
            """No level is 3."""
            s.level = Level((s.level + 1) % 4)

    with pytest.raises(ModelError, match="derive the class from StrEnum"):
        Enum(Plain)
    with pytest.raises(ModelError, match=r"3, which a Range\(1, 3\) can be, is not a member of Level"):
        Refused.system()
