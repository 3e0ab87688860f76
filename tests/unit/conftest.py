"""Hand-built systems that several unit tests share; they need no language and no engine."""

from __future__ import annotations

import pytest

from streamproof.system import (
    Action,
    ArraySort,
    Conjunct,
    EnumSort,
    Fairness,
    Instance,
    Kind,
    Loc,
    Property,
    QueueSort,
    RangeSort,
    System,
    Variable,
)
from streamproof.system import build as b


def _at(line: int) -> Loc:
    return Loc("relay.py", line)


def _relay() -> System:
    pool = b.var("pool", RangeSort(0, 1))
    backlog = b.var("backlog", ArraySort(RangeSort(0, 1), RangeSort(0, 2)))
    wire = b.var("wire", QueueSort(EnumSort(("DATA", "EVENT")), 2))
    data = b.const(EnumSort(("DATA", "EVENT")), "DATA")

    def send(c: int) -> Instance:
        waiting = b.select(backlog, b.num(c))
        guard = (
            Conjunct(b.less(b.num(0), waiting), "s.backlog[c] > 0", _at(12)),
            Conjunct(b.less(b.num(0), pool), "s.pool > 0", _at(13)),
        )
        updates = (
            ("pool", b.sub(pool, b.num(1))),
            ("backlog", b.store(backlog, b.num(c), b.sub(waiting, b.num(1)))),
            ("wire", b.push(wire, data)),
        )
        return Instance("send", (("c", c),), (), guard, updates)

    def receive(lost: bool) -> Instance:
        guard = (Conjunct(b.less(b.num(0), b.length(wire)), "len(s.wire) > 0", _at(20)),)
        given_back = () if lost else (("pool", b.add(pool, b.num(1))),)
        return Instance("receive", (), (("lost", lost),), guard, (*given_back, ("wire", b.pop(wire))))

    once = b.eq(b.add(pool, b.length(wire)), b.num(1))
    first = b.select(backlog, b.num(0))
    grows = b.less_eq(b.var("pool", pool.sort), b.next_("pool", pool.sort))
    return System(
        "relay",
        (
            Variable("pool", pool.sort, (1,)),
            Variable("backlog", backlog.sort, ((1, 0), (1, 1)), _at(5)),
            Variable("wire", wire.sort, ((),)),
        ),
        (
            Action("send", ("c",), Fairness.NONE, (send(0), send(1)), _at(10)),
            Action("receive", (), Fairness.WEAK, (receive(False), receive(True)), _at(18)),
        ),
        (
            Property("deadlock_free", Kind.DEADLOCK, b.TRUE, doc="Every stop is a terminal state."),
            Property("one_buffer", Kind.INVARIANT, once, (Conjunct(once, "s.pool + len(s.wire) == 1", _at(30)),)),
            Property("pool_grows", Kind.STEP, grows, (Conjunct(grows, "t.pool >= s.pool", _at(34)),)),
            Property("first_sent", Kind.REACHABLE, b.eq(first, b.num(0))),
            Property("ends", Kind.TERMINATION, b.TRUE),
        ),
        terminal=b.eq(first, b.num(0)),
        parameters={"channels": 2},
        variant="lossy",
    )


@pytest.fixture
def relay() -> System:
    """Two channels share one buffer; the receiver gives it back or loses it.

    Starts with something to send on channel 0, and on channel 1 or not. Ends when channel 0 is empty.
    """
    return _relay()


def _toggle() -> System:
    on = b.var("on", b.TRUE.sort)
    return System(
        "toggle",
        (Variable("on", on.sort, (False,)),),
        (
            Action(
                "flip",
                (),
                Fairness.NONE,
                (
                    Instance("flip", (), (("to", True),), (Conjunct(b.not_(on), "not s.on", None),), (("on", b.TRUE),)),
                    Instance("flip", (), (("to", False),), (Conjunct(on, "s.on", None),), (("on", b.FALSE),)),
                ),
            ),
            Action("stay", (), Fairness.NONE, (Instance("stay", (), (), (), ()),)),
        ),
        (Property("ends", Kind.TERMINATION, b.TRUE, doc="Every run ends."),),
    )


@pytest.fixture
def toggle() -> System:
    """One Boolean that flips for ever, or is left alone."""
    return _toggle()
