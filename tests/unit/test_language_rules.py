"""What Python says a rule does is what the rule does: one small rule per point of the language."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest

from streamproof import (
    Array,
    Bag,
    Bool,
    Enum,
    EvaluationError,
    Model,
    Option,
    Queue,
    Range,
    Record,
    Set,
    State,
    action,
    require,
)
from streamproof.language.native.native import Native
from streamproof.system import Interpreter

FACTOR = {"low": 1, "high": 2, "huge": 9}


def shifted(s, by=1, *, twice=False):
    """A helper with a default and a keyword-only parameter, and an early return."""
    if twice:
        return s.x + 2 * by
    return s.x + by


class Rules(Model):
    """Every rule is a test."""

    check_deadlock = False

    def state(self):
        """Variables of all sorts."""
        return State(
            x=Range(0, 9),
            y=Range(0, 9),
            flag=Bool(),
            mode=Enum("low", "high"),
            a=Array(range(3), Range(0, 9)),
            rec=Record(n=Range(0, 9), ok=Bool()),
            recs=Array(range(2), Record(n=Range(0, 9), ok=Bool())),
            q=Queue(Range(0, 9), capacity=2),
            few=Set(Range(0, 3)),
            opt=Option(Range(0, 9)),
        )

    @action
    def sequence(self, s):
        """An assignment sees those before it."""
        s.x += 1
        s.y = s.x + 1
        s.x = s.y * 2

    @action
    def swap(self, s):
        """The right side is evaluated before anything is assigned."""
        s.x, s.y = s.y, s.x

    @action
    def early_return(self, s):
        """What follows a return does not happen."""
        if s.flag:
            return
        s.x = 5

    @action
    def leaving_loops(self, s):
        """break and continue."""
        for v in s.a:
            if v == 0:
                continue
            if v > 5:
                break
            s.x += v
        s.y = 1

    @action
    def nested_loops(self, s):
        """break leaves the inner loop only."""
        for i in range(3):
            for j in range(3):
                if s.a[j] == i:
                    break
                s.x += 1
            s.y += 1

    @action
    def old_value(self, s):
        """An augmented assignment reads the old value before the right side changes it."""

        def spoil():
            s.x = 7
            return 1

        s.x += spoil()

    @action
    def alias(self, s):
        """A name for a container stands for its place."""
        r = s.recs[1]
        r.n = 4
        s.x = s.recs[1].n

    @action
    def copy(self, s):
        """Assigning a container copies what it holds."""
        s.rec = s.recs[0]
        s.rec.n = 8
        s.x = s.recs[0].n

    @action
    def effects_in_conditions(self, s):
        """What a condition does, it does only if it is reached."""
        if s.flag and s.q.pop() == 1:
            s.x = 1

    @action
    def effects_in_any(self, s):
        """any(...) stops at the first element that decides."""
        s.flag = any(s.q.pop() == v for v in (1, 2))

    @action
    def conditional_value(self, s):
        """A conditional expression evaluates one side only."""
        s.x = s.q.pop() if s.flag else s.x + 1

    @action
    def chained(self, s):
        """A chained comparison evaluates its middle once and its end only if need be."""
        s.flag = 0 < s.q.pop() < s.a[s.x]

    @action
    def closures(self, s):
        """Defaults are taken when a function is made, other names when it is called."""
        fs = [lambda v, i=i: v + i + s.y for i in range(2)]
        s.y = 3
        s.x = fs[0](1) + fs[1](1)

    @action
    def helper(self, s):
        """Functions of the module are lowered too."""
        s.x = shifted(s) + shifted(s, 2, twice=s.flag)

    @action
    def lists(self, s):
        """Local lists: aliases see each other's changes."""
        one = [s.x, 2]
        two = one
        two.append(s.y)
        one[0] = 9
        s.a = two
        s.y = len(one)

    @action
    def dicts(self, s):
        """Local and global dicts, read at a key of the state."""
        own = {"low": s.y, "high": 0}
        own["high"] += 4
        s.x = own[s.mode] + FACTOR[s.mode]

    @action
    def sets(self, s):
        """A local set holds equal values once."""
        s.x = len({s.a[0], s.a[1], s.a[2]})
        s.few = {v % 4 for v in s.a if v > 0} | {3}

    @action
    def options(self, s):
        """An option counts as its value once it is there."""
        if s.opt is not None and s.opt > 2:
            s.x = s.opt - 2
            s.opt = None
        else:
            s.opt = s.x

    @action
    def requirements_anywhere(self, s):
        """A require inside a branch, after an assignment."""
        s.x += 1
        if s.flag:
            require(s.x > 3)
        s.y = 1

    @action
    def counting(self, s):
        """Truth values count as numbers, as in Python."""
        s.x = sum(v > 2 for v in s.a) + (s.flag + 1)

    @action
    def negative_positions(self, s):
        """Negative positions count from the end, in queues and lists."""
        s.x = s.q[-1] + [1, 2, 3][-1]

    @action
    def overflow(self, s):
        """A value leaves its domain."""
        s.x -= 1

    @action
    def overfull(self, s):
        """One push too many."""
        s.q.push(1)

    @action
    def absent(self, s):
        """Nothing where a value is needed."""
        s.x = s.opt


A = (0, 0, 0)
FIRST: dict[str, Any] = {
    "x": 0,
    "y": 0,
    "flag": False,
    "mode": "low",
    "a": A,
    "rec": (0, False),
    "recs": ((0, False), (0, False)),
    "q": (),
    "few": frozenset(),
    "opt": None,
}

STEPS: list[tuple[str, dict[str, Any], dict[str, Any] | None]] = [
    ("sequence", {"x": 1}, {"x": 6, "y": 3}),
    ("swap", {"x": 1, "y": 2}, {"x": 2, "y": 1}),
    ("early_return", {"flag": True}, {}),
    ("early_return", {}, {"x": 5}),
    ("leaving_loops", {"a": (2, 0, 3)}, {"x": 5, "y": 1}),
    ("leaving_loops", {"a": (2, 6, 3)}, {"x": 2, "y": 1}),
    ("nested_loops", {"a": (1, 0, 2)}, {"x": 3, "y": 3}),
    ("old_value", {"x": 2}, {"x": 3}),
    ("alias", {}, {"recs": ((0, False), (4, False)), "x": 4}),
    ("copy", {"recs": ((2, True), (0, False))}, {"rec": (8, True), "x": 2}),
    ("effects_in_conditions", {"q": (1, 2)}, {}),
    ("effects_in_conditions", {"q": (1, 2), "flag": True}, {"q": (2,), "x": 1}),
    ("effects_in_any", {"q": (1, 2)}, {"q": (2,), "flag": True}),
    ("effects_in_any", {"q": (0, 2)}, {"q": (), "flag": True}),
    ("conditional_value", {"q": (4,)}, {"x": 1}),
    ("conditional_value", {"q": (4,), "flag": True}, {"q": (), "x": 4}),
    ("chained", {"q": (0, 1), "x": 9}, {"q": (1,), "flag": False}),
    ("chained", {"q": (1,), "a": (2, 0, 0)}, {"q": (), "flag": True}),
    ("closures", {}, {"x": 9, "y": 3}),
    ("helper", {"x": 1}, {"x": 5}),
    ("helper", {"x": 1, "flag": True}, {"x": 7}),
    ("lists", {"x": 1, "y": 4}, {"a": (9, 2, 4), "y": 3}),
    ("dicts", {"y": 3}, {"x": 4}),
    ("dicts", {"y": 3, "mode": "high"}, {"x": 6}),
    ("sets", {"a": (5, 1, 5)}, {"x": 2, "few": frozenset({1, 3})}),
    ("options", {"opt": 4}, {"x": 2, "opt": None}),
    ("options", {"x": 3}, {"opt": 3}),
    ("requirements_anywhere", {"x": 2, "flag": True}, None),
    ("requirements_anywhere", {"x": 3, "flag": True}, {"x": 4, "y": 1}),
    ("requirements_anywhere", {"x": 2}, {"x": 3, "y": 1}),
    ("counting", {"a": (3, 0, 4)}, {"x": 3}),
    ("negative_positions", {"q": (1, 5)}, {"x": 8}),
]

MISTAKES = [
    ("overflow", {}, "s.x leaves Range(0, 9) in overflow() (new s.x = -1)"),
    ("overfull", {"q": (1, 2)}, "push on the full queue s.q in overfull() (s.q = <1, 2>)"),
    ("absent", {}, "the new s.x is None where a value is needed in absent() (the new s.x = None)"),
    ("negative_positions", {}, "position outside the queue s.q in negative_positions() (position = -1; s.q = <>)"),
    ("dicts", {"y": 9}, "s.x leaves Range(0, 9) in dicts() (new s.x = 10)"),
]


@pytest.mark.parametrize(("rule", "before", "changes"), STEPS, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(STEPS)])
def test_rule(rule: str, before: dict[str, Any], changes: dict[str, Any] | None) -> None:
    """The lowered rule and the Python function lead to the same, expected state."""
    system = Rules.system()
    state = tuple({**FIRST, **before}.values())
    expected = None if changes is None else tuple({**FIRST, **before, **changes}.values())
    assert Interpreter(system).take(system.action(rule).instances[0], state) == expected
    assert Native(Rules()).step(state, rule) == expected


@pytest.mark.parametrize(("rule", "before", "message"), MISTAKES, ids=[n for n, _, _ in MISTAKES])
def test_mistake(rule: str, before: dict[str, Any], message: str) -> None:
    """A mistake is the same error, at the same line, lowered and run natively."""
    system = Rules.system()
    state = tuple({**FIRST, **before}.values())
    with pytest.raises(EvaluationError) as lowered:
        Interpreter(system).take(system.action(rule).instances[0], state)
    with pytest.raises(EvaluationError) as ran:
        Native(Rules()).step(state, rule)
    assert lowered.value.message == ran.value.message == message
    assert lowered.value.loc == ran.value.loc


class Gathered(Model):
    """A list of forty optional elements, assigned to a queue with a smaller capacity and element range."""

    check_deadlock = False

    def state(self):
        """The variables."""
        return State(there=Array(range(40), Bool()), n=Range(0, 9), some=Queue(Range(0, 3), capacity=2))

    @action
    def gather(self, s):
        """Forty conditional appends to one list."""
        found = []
        for i in range(40):
            if s.there[i]:
                found.append(s.n)
        s.some = found


def test_what_alternatives_share_is_read_once() -> None:
    """Lowering is linear in the size of the rule, not in its 2^40 paths."""
    system = Gathered.system()
    (instance,) = system.instances
    there = tuple(i in (3, 30) for i in range(40))
    assert Interpreter(system).take(instance, (there, 2, ())) == (there, 2, (2, 2))
    with pytest.raises(EvaluationError):
        Interpreter(system).take(instance, (there, 4, ()))
    with pytest.raises(EvaluationError):
        Interpreter(system).take(instance, ((True,) * 40, 2, ()))


class Compared(Model):
    """Bags compared with what depends on the state, on either side."""

    check_deadlock = False

    def state(self):
        """A bag, and which values it is compared with."""
        return State(held=Bag(Range(0, 2), capacity=2), more=Bool())

    @action
    def inside(self, s):
        """The bag on the left."""
        require(s.held <= ([0, 1] if s.more else (1, 1)))

    @action
    def around(self, s):
        """The bag on the right."""
        require(((0,) if s.more else [1, 1]) < s.held)


def test_bags_are_compared_with_conditional_values() -> None:
    """A rule is enabled where `collections.Counter` compares the counts of the bag in this way."""
    system = Compared.system()
    inside, around = (system.action(name).instances[0] for name in ("inside", "around"))
    for counts, more in product(product(range(3), repeat=3), (False, True)):
        if sum(counts) > 2:
            continue
        state, held = (counts, more), Counter(dict(enumerate(counts)))
        assert Interpreter(system).enabled(inside, state) is (held <= Counter((0, 1) if more else (1, 1)))
        assert Interpreter(system).enabled(around, state) is (Counter((0,) if more else (1, 1)) < held)
