"""What a rule does with containers of the state means what Python makes of it, or is refused at its line."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from shares import share

HEAD = """
from streamproof import *

class M(Model):
    check_deadlock = False
    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        pair = Array(2, Range(0, 2))
        return State(
            x=Array(2, Range(0, 2), init=[0, 1]), y=Array(2, Range(0, 2), init=[2, 2]), rows=Array(2, pair),
            r=Record(v=Range(0, 2, init=1)), q=Queue(Range(0, 2), capacity=2, init=[1]), f=Set(Range(0, 2), init={1}),
            o=Option(Range(0, 2)), a=Range(0, 9), i=Range(0, 1), done=Bool(), slots=Array(self.n, Option(Range(0, 2))),
        )

    def reset(self, s):
        s.x, s.r, s.q, s.f = [2, 2], {"v": 2}, [], {2}
        return 0

    def poke(self, s):
        s.x[0] = 2
        s.q.push(1)
        return 0

    def put(self, d):
        d[0] = 1
        return 0

    def first(self, pair, _):
        return pair[0]

    def adder(self, s):
        old = s.x
        return lambda: sum(old)

    @action
    def go(self, s):
        require(not s.done)
        s.done = True
"""
TAIL = """
    @invariant
    def right(self, s):
        return not s.done or ({})
"""


def written(body: str, right: str) -> None:
    """A model whose action does this, after which something is true; in m.py."""
    Path("m.py").write_text(HEAD + textwrap.indent(body, " " * 8) + "\n" + TAIL.format(right), encoding="utf-8")


RIGHT = {
    "a swap": ("s.x, s.y = s.y, s.x", "s.x == [2, 2] and s.y == [0, 1]"),
    "a swap in a nested unpacking": ("s.x, (s.y, s.a) = s.y, (s.x, 1)", "s.x == [2, 2] and s.y == [0, 1]"),
    "a swap in the first part": ("(s.a, (s.x, s.y)) = (1, (s.y, s.x))", "s.x == [2, 2] and s.y == [0, 1]"),
    "an element before the whole": ("s.x[0], s.x, s.y = 2, s.y, s.x", "s.x == [2, 2] and s.y == [2, 1]"),
    "an element, then a copy": ("s.x[0], s.y = 2, s.x", "s.y == [2, 1]"),
    "rows that a list holds": ("s.x, s.rows = s.y, [s.x, s.y]", "s.rows[0] == [0, 1] and s.rows[1] == [2, 2]"),
    "parts of a replaced row": ("s.rows[0], (s.a, s.r.v) = s.y, s.rows[0]", "s.a == 0 and s.r.v == 0"),
    "a name in a local list": ("l = [0, 0]\nl[0], l[1] = s.x, s.y\ns.x[0] = 2\ns.a = l[0][0]", "s.a == 2"),
    "one value for two": ("s.x = s.y = s.rows[0]", "s.x == [0, 0] and s.y == [0, 0]"),
    "a sum of those that are there": ("s.a = sum(v for v in s.slots if v is not None)", "s.a == 0"),
    "a maximum of those": ("s.a = max((v for v in s.slots if v is not None), default=3)", "s.a == 3"),
    "a minimum of those": ("s.o = 2\ns.a = min(v for v in (s.o, s.slots[0]) if v is not None)", "s.a == 2"),
    "a default that is not needed": ("s.a = max((v for v in s.x if v >= s.i), default=s.o)", "s.a == 1"),
    "a set of those": ("s.f = {v for v in (s.o, 2) if v is not None}", "s.f == {2}"),
    "a set with those": ("s.f |= {v for v in (s.o, 2) if v is not None}", "s.f == {1, 2}"),
    "a record where it is there": ("s.r = {'v': s.o} if s.o is not None else {'v': 0}", "s.r.v == 0"),
    "those in ascending order": (
        "s.o = 2\nfor v in {w for w in (s.o, s.x[1]) if w is not None}:\n    s.a = s.a * 3 + v",
        "s.a == 5",
    ),
    "an element of a new array": ("s.x = [1, 1]\ns.x[s.i] = s.y[0]\ns.a = 1 if s.x[s.i] > 1 else 0", "s.a == 1"),
    "a row of new rows": ("s.rows = [[1, 1], s.x]\ns.rows[s.i][0] = 2\ns.a = s.rows[s.i][s.i]", "s.a == 2"),
    "the size of a new set": ("s.f = {1}\ns.f.add(2)\ns.a = len(s.f)", "s.a == 2"),
    "the head of a new queue": ("s.q = [1]\ns.q.push(2)\ns.q.pop()\ns.a = 1 if s.q.head == 2 else 0", "s.a == 1"),
}


@pytest.mark.parametrize("case", share(RIGHT, 2))
def test_containers_mean_what_python_makes_of_them(case: str, streamproof: Any) -> None:
    """What plain Python makes true holds, and its negation does not."""
    body, right = RIGHT[case]
    written(body, right)
    done = streamproof("check", "m.py", "-q")
    assert done.code == 0, done
    written(body, f"not ({right})")
    assert streamproof("check", "m.py", "-q").code == 12


REPLACED = {
    "an operand": "s.a = sum(s.x, self.reset(s))",
    "an argument": "s.a = self.first(s.x, self.reset(s))",
    "a keyword argument": "s.a = self.first(pair=s.x, _=self.reset(s))",
    "an unpacked value": "old, n = s.x, self.reset(s)\ns.a = sum(old) + n",
    "what is indexed": "s.a = s.x[self.reset(s)]",
    "what is assigned into": "s.x[self.reset(s)] += 1",
    "what is added to": "s.x[0] += self.reset(s)",
    "a side of ==": "s.done = s.x == [self.reset(s), 1]",
    "a side of |": "s.f = s.f | {self.reset(s)}",
    "a side of <=": "s.done = s.f <= {self.reset(s)}",
    "a side of in": "s.done = 1 in (s.f - {self.reset(s)})",
    "a column of a zip": "s.a = sum(v * w for v, w in zip(s.x, [self.reset(s), 1]))",
    "an element of a list": "s.a = [s.x, self.reset(s)][0][0]",
    "a value of a dict": "d = {0: s.x, 1: self.reset(s)}\ns.a = d[0][0]",
    "one of two": "s.a = (s.x if s.i > 0 else s.y)[self.reset(s)]",
    "a record": "s.a = (lambda r, k: r.v + k)(s.r, self.reset(s))",
    "a default": "def count(old=s.x):\n    return sum(old)\ns.x = [0, 0]\ns.a = count()",
    "a default of a lambda": "count = lambda old=s.x: sum(old)\ns.x = [0, 0]\ns.a = count()",
    "a variable of a function that has returned": "count = self.adder(s)\ns.x = [0, 0]\ns.a = count()",
    "a bound method": "put = s.q.push\ns.q = []\nput(2)",
    "a name that the assignment itself gives": "old, s.x = s.x, [0, 0]\ns.a = sum(old)",
    "a name, on one path": "old = s.x\nif s.i > 0:\n    self.reset(s)\ns.a = sum(old)",
    "a name, replaced on the other path": (
        "if s.i > 0:\n    s.x = [0, 0]\n    old = s.x\nelse:\n    old = s.x\n    s.x = [1, 1]\ns.a = sum(old)"
    ),
}


@pytest.mark.parametrize("case", REPLACED)
def test_a_reference_to_a_replaced_container_is_refused(case: str, streamproof: Any) -> None:
    """Wherever it waits to be used; with the line, and what to write instead."""
    written(REPLACED[case], "True")
    done = streamproof("check", "m.py", "-q")
    assert done.code == 150, done
    assert "m.py:" in done.err, done
    assert "refers to a container that the assignment to s." in done.err, done
    assert "read the state again" in done.err, done


LAZY = {
    "reversed": "s.a = sum(reversed(s.x), self.poke(s))",
    "a generator": "s.a = sum((v for v in s.x), self.poke(s))",
    "what a generator reads": "s.a = sum((len(s.q) + v for v in s.y), self.poke(s))",
    "a generator and a default": "s.a = max((v for v in s.x), default=self.poke(s))",
    "an enumeration in a zip": "s.a = sum(v + k for (_, v), k in zip(enumerate(s.x), [self.poke(s), 0]))",
    "a local dict": "d = {0: s.i}\ns.a = sum(v + k for v, k in zip(d.values(), [self.put(d), 0]))",
    "a generator that changes something": "s.a = sum((self.poke(s) + v for v in s.y), s.x[0])",
}


@pytest.mark.parametrize("case", LAZY)
def test_what_changes_before_an_iterator_is_consumed_is_refused(case: str, streamproof: Any) -> None:
    """Python's iterators look at containers, and evaluate generators, when the call is made."""
    written(LAZY[case], "True")
    done = streamproof("check", "m.py", "-q")
    assert (done.code, "is evaluated bit by bit here, between other things" in done.err) == (150, True), done


ORDER = {
    "numbers far apart": ("s.a = 9 - s.i\nfor v in {s.a * 9, s.i}:\n    s.a = v % 9", "numbers from 0 to 81"),
    "None among numbers": ("for v in {s.o, 2}:\n    s.o = v", "numbers and other things"),
    "None or a number": ("for v in {s.o, s.slots[0]}:\n    s.o = v", "numbers and other things"),
}


@pytest.mark.parametrize("case", ORDER)
def test_a_set_without_a_known_order_is_refused(case: str, streamproof: Any) -> None:
    """By a loop over a local set, whose order Python leaves open or makes from hash values."""
    body, said = ORDER[case]
    written(body, "True")
    done = streamproof("check", "m.py", "-q")
    assert (done.code, said in done.err) == (150, True), done


SWAP = """
from streamproof import *

class Swap(Model):
    n: int = 2
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self):
        record = Record(f=Range(0, 2), g=Bool())
        rows = Array(self.n, Range(0, 1))
        return State(a=record, b=record, x=rows, y=rows, o=Array(self.n, Option(Bool())))

    @action
    def put(self, s):
        require(s.a.f < 2)
        s.a.f += 1

    @action
    def swap(self, s):
        s.a, (s.b, s.x, s.y) = s.b, (s.a, s.y, s.x)

    @invariant
    def small(self, s):
        return s.a.f + s.b.f <= 4

    @invariant
    def none(self, s):
        return sum(v for v in s.o if v is not None) == 0
"""


def test_swaps_are_read_alike_for_every_size(streamproof: Any) -> None:
    """The runs of plain Python, by which `prove --any` tests what it read, swap records and arrays of any length too."""
    Path("m.py").write_text(SWAP, encoding="utf-8")
    done = streamproof("prove", "m.py", "--any", "n", "-q")
    assert done.code == 0, done
