"""Rules and properties do natively, on concrete states, what their lowered form does in the interpreter."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from letters import Letters
from shares import share
from streamproof import (
    ANY,
    Array,
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
    choose,
    initially,
    invariant,
    reachable,
    require,
    step,
)
from streamproof.language.declare.primitives import NoPick
from streamproof.language.native.native import Native
from streamproof.system import Interpreter, Kind, ModelError, UsageError
from streamproof_models.reference.async_termination_detection import AsyncTerminationDetection
from streamproof_models.reference.coffee_can import CoffeeCan
from streamproof_models.reference.die_hard import DieHard
from streamproof_models.reference.dining_philosophers import DiningPhilosophers
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.hanoi import Hanoi
from streamproof_models.reference.missionaries_and_cannibals import MissionariesAndCannibals
from streamproof_models.reference.token_ring import TokenRing
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit

WEIGHTS = {"low": 1, "high": 2}


def clamp(value, low=0, *, high):
    """`value`, but not outside the two ends."""
    return min(max(value, low), high)


class Post(Model):
    """Letters between offices: records in queues and sets, options of records, nested containers, helpers of all kinds."""

    offices: int = 2
    check_deadlock = False
    LIMIT = 3

    def setup(self):
        """Derived parameters."""
        self.neighbours = {0: (1,), 1: (0,)}
        self.names = [f"office-{i:02d}" for i in range(self.offices)]

    def state(self):
        """The variables."""
        letter = Record(kind=Enum("low", "high"), size=Range(0, 2))
        return State(
            box=Array(range(self.offices), Queue(letter, capacity=2)),
            desk=Array(range(self.offices), Option(letter)),
            seen=Array(range(self.offices), Set(Range(0, 2))),
            kinds=Set(Enum("low", "high")),
            work=Range(0, 3),
            grid=Array(range(2), Array(Enum("low", "high"), Range(0, 2))),
            closed=Array(range(self.offices), Bool(init=ANY)),
        )

    @initially
    def one_is_open(self, s):
        """Not every office starts closed."""
        return not all(s.closed)

    @property
    def most(self):
        """A limit, as a Python property."""
        return self.LIMIT

    def __weight(self, letter):
        return WEIGHTS[letter.kind] + letter.size

    def total(self, s, *offices):
        """The weight of what lies in some boxes."""
        return sum(self.__weight(letter) for o in offices for letter in s.box[o] if letter.size > 0)

    @action(a="offices")
    def write(self, s, a):
        """A letter is written and put into a neighbour's box."""
        b = choose(self.neighbours[a])
        kind = choose(["low", "high"])
        require(not s.closed[a] and not s.box[b].full)
        size = clamp(len(s.seen[a]), high=2)
        s.box[b].push({"kind": kind, "size": size})
        s.kinds |= {kind}
        s.grid[a % 2][kind] = clamp(s.grid[a % 2][kind] + 1, 0, high=2)

    @action(a="offices")
    def open_letter(self, s, a):
        """The letter with the least size is not chosen: the first one is."""
        require(len(s.box[a]) > 0 and s.desk[a] is None)
        s.desk[a] = s.box[a].pop()
        size = s.desk[a].size
        if size in s.seen[a]:
            s.work = min(self.most, s.work + 1)
            return
        s.seen[a].add(size)
        others = [o for o in range(self.offices) if o != a]
        for at, o in enumerate(others):
            if any(letter.kind == s.desk[a].kind and letter.size >= size for letter in s.box[o]):
                s.work = (s.work + at + 1) % 4
                break

    @action(a="offices")
    def answer(self, s, a):
        """What lies on the desk goes back, with a size chosen among those seen."""
        require(s.desk[a] is not None)
        letter = s.desk[a]
        size = choose(s.seen[a])
        reply = {"kind": "high" if letter.kind == "low" else "low", "size": size}

        def post(to, copies=1):
            for _ in range(copies):
                if s.box[to].full:
                    return False
                s.box[to].push(reply)
            return True

        if not post(self.neighbours[a][0], copies=2) and letter.size < size <= s.work < 3:
            s.closed[a] = not s.closed[a]
        s.desk[a] = None

    @action
    def tidy(self, s):
        """Everything that can be tidied at once."""
        tallest = max((letter.size for box in s.box for letter in box), default=0)
        s.kinds = {k for k in s.kinds if k == "high" or tallest > 0}
        totals = {name: self.total(s, at) for at, name in enumerate(self.names)}
        s.work = totals["office-00"] + totals["office-01"] if len({*totals.values()}) == 1 else s.work
        rows = [row["low"] for row in s.grid]
        rows[0], rows[-1] = rows[1], rows[0]
        rows += [0]
        for row, low in zip(s.grid, rows[:2], strict=True):
            row["low"] = low
        first = s.box[0] if s.closed[0] else s.box[1]
        if len(first) > 0 and s.box[1].pop().size == 0:
            s.seen[0].clear()

    @invariant
    def desk_or_box(self, s):
        """A letter on a desk has been seen."""
        return all(s.desk[a] is None or s.desk[a].size in s.seen[a] for a in range(self.offices))

    @reachable
    def busy(self, s):
        """Two different letters wait in one box."""
        return any(len(box) == 2 and box[0] != box[-1] for box in s.box)

    @step
    def seen_grows(self, s, t):
        """Nothing seen is forgotten, save by tidying."""
        return s.seen[0] <= t.seen[0] or len(t.seen[0]) == 0


class Careless(Post, variant="careless"):
    """Lets mistakes happen, so that errors are compared too."""

    def write(self, s, a):
        """A letter is pushed without looking, and counted."""
        super().write(s, a)
        s.work += 2

    def open_letter(self, s, a):
        """No test that there is a letter."""
        s.desk[a] = s.box[a].pop()
        s.work = 3 // s.work
        s.seen[a].remove(s.desk[a].size)


class Tide(Model):
    """A variable, with a property of steps."""

    def state(self):
        """A level."""
        return State(level=Range(0, 2))

    @action
    def turn(self, s):
        """Two up, or one down."""
        s.level = (s.level + 2) % 3

    @step
    def rises(self, s, t):
        """It never falls."""
        return t.level >= s.level


class Absent(Model):
    """Sets of which one element may be absent, on either side of an operator."""

    check_deadlock = False

    def state(self):
        """The variables."""
        return State(few=Set(Range(0, 3)), own=Option(Range(0, 3)))

    @action
    def joins(self, s):
        """Changes in place."""
        s.few |= {1, s.own}

    @action
    def meets(self, s):
        """The display comes second."""
        s.few = s.few & {s.own}

    @action
    def follows(self, s):
        """The display comes first."""
        s.few = {2, s.own} | s.few


MODELS: list[Model] = [
    TwoPhaseCommit(),
    DieHard(),
    MissionariesAndCannibals(each=2),
    Hanoi(discs=3),
    Ewd840(n=3),
    AsyncTerminationDetection(n=2),
    DiningPhilosophers(philosophers=3),
    TokenRing(n=3, values=3),
    CoffeeCan(beans=6),
    Ewd998(n=2),
    Post(),
    Careless(),
    Letters(),
]


def outcome(run: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """The value a run gives, or the error it ends with: text and line."""
    try:
        return ("value", run(*args))
    except EvaluationError as error:
        return ("error", error.message, error.loc and error.loc.line)


@pytest.mark.parametrize("model", share(MODELS, 3), ids=lambda m: type(m).variant or type(m).title())
def test_native_steps_are_the_lowered_ones(model: Model) -> None:
    """On random walks: the same instances enabled, the same next states, errors and truth of properties."""
    system = type(model).system(type(model).variant, **model.settings())
    interpreter, native, rng = Interpreter(system), Native(model), random.Random(7)
    first = list(interpreter.initial_states())
    assert list(native.initial()) == first
    seen = {"steps": 0, "errors": 0}
    for _ in range(6):
        state = rng.choice(first)
        for _ in range(25):
            successors = []
            for instance in system.instances:
                lowered = outcome(interpreter.take, instance, state)
                if native.picks(state, instance, system) is None:
                    assert lowered[0] == "error" or lowered[1] is None
                    continue
                assert outcome(native.take, state, instance, system) == lowered, instance.label
                if lowered[0] == "error":
                    seen["errors"] += 1
                elif lowered[1] is not None:
                    seen["steps"] += 1
                    successors.append(lowered[1])
            for prop in system.properties:
                if prop.kind in (Kind.INVARIANT, Kind.REACHABLE):
                    assert native.holds(prop.name, state) == interpreter.holds(prop, state)
                for after in successors if prop.kind is Kind.STEP else []:
                    assert native.holds(prop.name, state, after) == interpreter.holds(prop, state, after)
            if not successors:
                break
            state = rng.choice(successors)
    assert seen["steps"] > 5
    assert (seen["errors"] > 20) == isinstance(model, Post)


def test_step_takes_arguments_and_picks() -> None:
    """A rule is run by its name, with its parameters by position or name and one pick per choice."""
    native = Native(Post())
    state = native.values(
        {
            "box": [[], []],
            "desk": [None, None],
            "seen": [set(), {1}],
            "kinds": set(),
            "work": 0,
            "grid": [{"low": 0, "high": 0}, {"low": 0, "high": 0}],
            "closed": [False, True],
        }
    )
    after = native.step(state, "write", 0, picks=(1, "high"))
    assert after is not None
    assert after[0] == ((), (("high", 0),))
    assert native.step(state, "write", a=0, picks=(1, "high")) == after
    assert native.step(state, "write", 1, picks=(0, "low")) is None
    assert native.step(state, "write", 0, picks=(0, "low")) is None


def test_states_of_a_property_may_be_mappings() -> None:
    """A property accepts states as `step` does, for a step too."""
    native = Native(Tide())
    assert native.holds("rises", {"level": 1}, {"level": 2})
    assert not native.holds("rises", {"level": 1}, (0,))
    assert native.step({"level": 1}, "turn") == (0,)


def test_wrong_calls_are_refused() -> None:
    """An unknown rule, a missing pick, a pick too many and an unknown variable are distinguished."""
    native = Native(Post())
    state = next(native.initial())
    with pytest.raises(UsageError, match="no action 'send'"):
        native.step(state, "send")
    with pytest.raises(NoPick):
        native.step(state, "write", 0)
    with pytest.raises(UsageError, match="3 picks were given, 2 used"):
        native.step(state, "write", 0, picks=(1, "low", "low"))
    with pytest.raises(UsageError, match="'desk' is missing"):
        native.values(dict.fromkeys(("box", "seen", "kinds", "work", "grid", "closed"), 0))


def test_a_property_cannot_change_the_state_natively() -> None:
    """What lowering refuses, the read-only view refuses too."""
    native = Native(Post())

    def meddles(self: Post, s: Any) -> bool:
        s.work = 1
        return True

    with pytest.raises(ModelError, match="a property cannot change the state"):
        native.holds(meddles, next(native.initial()))


@pytest.mark.parametrize("label", ["joins()", "meets()", "follows()"])
def test_an_absent_element_is_named_alike(label: str) -> None:
    """None in a set of numbers is a mistake on the same line and in the same words; a number in its place is none."""
    system, native = Absent.system(), Native(Absent())
    interpreter = Interpreter(system)
    instance = next(i for i in system.instances if i.label == label)
    for own in (None, 3):
        state = tuple({"few": frozenset({3}), "own": own}[v.name] for v in system.variables)
        lowered = outcome(interpreter.take, instance, state)
        assert outcome(native.take, state, instance, system) == lowered
        assert lowered[0] == ("error" if own is None else "value")
        assert "is None where a value is needed" in lowered[1] or own is not None
