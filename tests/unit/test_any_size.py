"""Proofs for every size: what must not be proved, what is, and what is refused with which words."""

# ruff: noqa: D102, RUF012  (the models are small, and say what they are in a line)

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from functools import singledispatch
from typing import Any, ClassVar

import pytest

from streamproof import (
    ANY,
    Array,
    Bool,
    Enum,
    Int,
    Model,
    ModelError,
    Nat,
    Option,
    Queue,
    Range,
    Record,
    Spec,
    State,
    Symmetric,
    UsageError,
    action,
    choose,
    initially,
    invariant,
    lemma,
    require,
    step,
    terminal,
)
from streamproof.any.engine import AnySize, prove_any
from streamproof.any.engine.bounds import bound_candidates
from streamproof.any.engine.claims import claim, products
from streamproof.any.engine.equality import difference
from streamproof.any.engine.laws import drift_candidates, law_candidates
from streamproof.any.engine.steps import SAFE
from streamproof.any.ground_induction import NotInductive, check_induction
from streamproof.any.readings import compare_readings
from streamproof.base.records import replace
from streamproof.system import build as b
from streamproof.transform.ground import ground
from streamproof.transform.unbounded import Unbounded


def prove(model: type[Model], *free: str, discover: bool = False, **given: Any) -> AnySize:
    """The proof of all safety properties of a model."""
    parametric = Spec(model).parametric(free, **given)
    stages = [lambda: law_candidates(parametric)] if discover else []
    return prove_any(parametric, list(parametric.system.properties), stages)


class Loose(Model):
    """A base for small models without deadlock."""

    check_deadlock = False


# --- what must not be proved


class OnlySmall(Loose):
    """Counts to a limit; the claims on it are true while the limit is small."""

    top: int = 2
    limits = {"top": (0, None)}

    def state(self):
        return State(n=Range(0, self.top))

    @action
    def up(self, s):
        require(s.n < self.top)
        s.n += 1

    @invariant
    def small(self, s):
        return s.n <= 5

    @invariant
    def not_seven(self, s):
        return s.n != 7

    @invariant
    def bounded(self, s):
        return s.n <= self.top


def test_what_is_true_of_small_sizes_only_is_not_proved() -> None:
    """An invariant that fails once the parameter is 6 or more stays open; the counterexample says at which value."""
    proof = prove(OnlySmall, "top")
    assert proof.proved == ("bounded",)
    assert int(dict(proof.ctis["small"].parameters)["top"]) >= 6


class Limited(Loose):
    """Starts at a parameter."""

    a: int = 3
    b: int = 1
    limits = {"a": (1, 9), "b": (None, None)}

    def state(self):
        return State(x=Int(init=self.a), y=Int(init=self.b))

    @action
    def stay(self, s):
        s.x = s.x

    @invariant
    def at_least_one(self, s):
        return s.x >= 1

    @invariant
    def at_most_nine(self, s):
        return s.x <= 9

    @invariant
    def at_most_eight(self, s):
        return s.x <= 8

    @invariant
    def unlimited(self, s):
        return s.y >= -1000


def test_limits_of_parameters_are_assumed_and_no_others() -> None:
    """What follows from the declared limits is proved; a parameter without limits is any number, negative ones too."""
    assert prove(Limited, "a", "b").proved == ("at_least_one", "at_most_nine")


class SomeIndex(Loose):
    """Claims that something is so somewhere."""

    n: int = 2
    k: int = 2
    limits = {"n": (0, None), "k": (1, None)}

    def state(self):
        return State(x=Array(self.n, Range(0, 3)), y=Array(range(self.k), Range(0, 3)))

    @action
    def stay(self, s):
        require(False or s.y[0] == 0)

    @invariant
    def maybe_none(self, s):
        return any(s.x[i] == 0 for i in range(self.n))

    @invariant
    def one_at_least(self, s):
        return any(s.y[i] == 0 for i in range(self.k))

    @invariant
    def nothing_adds_up(self, s):
        return sum(s.x[i] for i in range(self.n)) == 0

    @invariant
    def all_or_none(self, s):
        return all(s.x[i] == 0 for i in range(self.n)) or all(s.x[i] == 1 for i in range(self.n))


@pytest.mark.long
def test_an_index_may_have_no_values() -> None:
    """`any` over an index that may be empty is not proved, over one that has a value it is; an empty sum is 0."""
    assert prove(SomeIndex, "n", "k").proved == ("one_at_least", "nothing_adds_up", "all_or_none")


class TwoAlternatives(Loose):
    """One of two things is so everywhere, until both are wrong somewhere."""

    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        return State(x=Array(self.n, Bool()), y=Array(self.n, Bool()))

    @action(i="n")
    def break_x(self, s, i):
        s.x[i] = True

    @action(i="n")
    def break_y(self, s, i):
        s.y[i] = True

    @invariant
    def one_is_whole(self, s):
        return all(not s.x[i] for i in range(self.n)) or all(not s.y[i] for i in range(self.n))

    @invariant
    def never_both(self, s):
        return all(not (s.x[i] and s.y[i]) for i in range(self.n))


@pytest.mark.long
def test_two_conditions_may_fail_at_two_indices() -> None:
    """A disjunction of conditions on every index is broken by one index for each: it is not proved."""
    assert prove(TwoAlternatives, "n").proved == ()


class Overflow(Loose):
    """A step leaves the declared range when a parameter is 0."""

    most: int = 1
    limits = {"most": (0, None)}

    def state(self):
        return State(x=Range(0, self.most), f=Bool())

    @action
    def up(self, s):
        require(not s.f)
        s.f = True
        s.x += 1

    @invariant
    def nothing(self, s):
        return s.x >= 0


def test_a_model_that_makes_a_mistake_at_one_size_proves_nothing() -> None:
    """Values that leave their sort at some size are found, and then nothing is called proved, however true it is."""
    proof = prove(Overflow, "most")
    assert proof.proved == ()
    assert "s.x leaves Range(0, most)" in proof.ctis[SAFE].because


class StartsOutside(Loose):
    """The first value is outside its range at some sizes."""

    most: int = 3
    limits = {"most": (0, None)}

    def state(self):
        return State(x=Range(0, self.most, init=2), y=Array(self.most, Range(0, self.most), init=1))

    @action
    def stay(self, s):
        s.x = s.x

    @invariant
    def nothing(self, s):
        return s.x == 2


def test_a_first_value_outside_its_range_proves_nothing() -> None:
    """That a variable starts in its sort is shown too."""
    assert prove(StartsOutside, "most").proved == ()


class WrongIndex(Loose):
    """Reads behind the end of an array, under a guard that comes later."""

    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        return State(x=Array(self.n, Range(0, 3)), at=Range(0, self.n))

    @action
    def move(self, s):
        require(s.at < self.n)
        s.at += 1

    @action
    def read(self, s):
        require(s.x[s.at] == 0)

    @invariant
    def zero(self, s):
        return all(s.x[i] == 0 for i in range(self.n))


def test_an_index_outside_the_array_is_a_mistake_at_every_size() -> None:
    """A guard that reads behind the end of an array of any length is found."""
    proof = prove(WrongIndex, "n")
    assert proof.proved == ()
    assert "index outside Range(0, n - 1)" in proof.ctis[SAFE].because


class Transfers(Loose):
    """Moves units between two places that may be one and the same, and sometimes forgets to take."""

    n: int = 2
    total: int = 3
    limits = {"n": (1, None), "total": (0, None)}

    def state(self):
        return State(x=Array(self.n, Nat()), pool=Nat(init=self.total))

    @action(i="n")
    def take(self, s, i):
        require(s.pool > 0)
        s.pool -= 1
        s.x[i] += 1

    @action(i="n", j="n")
    def move(self, s, i, j):
        require(s.x[i] > 0)
        s.x[i] -= 1
        s.x[j] += 1

    @invariant
    def conserved(self, s):
        return s.pool + sum(s.x[i] for i in range(self.n)) == self.total

    @invariant
    def each_small(self, s):
        return all(s.x[i] <= self.total for i in range(self.n))


class Copies(Transfers, variant="copies"):
    """What is moved stays where it was too."""

    @action(i="n", j="n")
    def move(self, s, i, j):
        require(s.x[i] > 0 and i != j)
        s.x[j] += s.x[i]


class Overwrites(Transfers, variant="overwrites"):
    """Adds what was there before both writes: right for two places, wrong for one and the same."""

    @action(i="n", j="n")
    def move(self, s, i, j):
        require(s.x[i] > 0)
        one, other = s.x[i], s.x[j]
        s.x[i] = one - 1
        s.x[j] = other + 1


def test_a_sum_changes_by_what_is_written_at_either_index() -> None:
    """Two indices that may be equal count once where they are; moving keeps the sum, copying does not."""
    assert prove(Transfers, "n", "total").proved == ("conserved", "each_small")
    for variant in ("copies", "overwrites"):
        parametric = Spec(Transfers).parametric(("n", "total"), variant)
        assert prove_any(parametric, list(parametric.system.properties)).proved == ()


class FixedLength(Loose):
    """Sums whose range is free, over arrays whose length is not, alone and beside an array of any length."""

    n: int = 2
    limits = {"n": (1, 3)}

    def state(self):
        return State(f=Array(3, Range(0, 10)), g=Array(self.n, Range(0, 10)), x=Range(0, 1000))

    @action
    def tick(self, s):
        require(s.x < 1000)
        s.x += 1

    @action
    def up(self, s):
        require(s.x == 1000 and s.f[0] < 10)
        s.f[0] += 1

    @action(i="n")
    def lower(self, s, i):
        require(s.g[i] > 0 and s.f[0] < 10)
        s.g[i] -= 1
        s.f[0] += 1

    @action
    def clear(self, s):
        require(s.x == 1000)
        s.f = [0, 0, 0]

    @step
    def same(self, s, t):
        return sum(t.f[i] for i in range(self.n)) == sum(s.f[i] for i in range(self.n))

    @step
    def falling(self, s, t):
        return sum(t.f[i] + t.g[i] for i in range(self.n)) <= sum(s.f[i] + s.g[i] for i in range(self.n))

    @step
    def weighed(self, s, t):
        return sum(t.f[i] if t.g[i] > 0 else 0 for i in range(self.n)) <= sum(
            s.f[i] if s.g[i] > 0 else 0 for i in range(self.n)
        )

    @step
    def emptied(self, s, t):
        return sum(t.g[i] for i in range(self.n)) <= sum(s.g[i] for i in range(self.n))


def test_a_sum_over_an_array_of_fixed_length_changes_when_that_is_written() -> None:
    """That no array of any length is written says nothing of it; the sum of another array is known beside it."""
    assert prove(FixedLength, "n").proved == ("emptied",)


def test_what_is_not_inductive_at_one_size_is_found_without_quantifiers() -> None:
    """A claim that is taken for proved and is not, on steps, on states, and at first; what is proved is confirmed."""
    parametric = Spec(FixedLength).parametric(("n",))
    said = {p.name: c for p in parametric.system.properties if (c := claim(parametric, p)) is not None}
    sizes = [{"n": n} for n in (1, 2, 3)]
    assert check_induction(parametric, [said["emptied"]], sizes) == tuple(sizes)
    for name in ("same", "falling", "weighed"):
        with pytest.raises(NotInductive, match=f"{name} was proved .* not inductive at n=1: it fails after "):
            check_induction(parametric, [said["emptied"], said[name]], sizes)
    pool = Spec(Transfers).parametric(("n", "total"))
    conserved, small = (claim(pool, p) for p in pool.system.properties)
    assert conserved is not None
    assert small is not None
    sizes = [{"n": 2, "total": 3}, {"n": 1, "total": 0}]
    assert len(check_induction(pool, [conserved, small], sizes)) == 2
    with pytest.raises(NotInductive, match=r"each_small was proved .* at n=2, total=3: it fails after "):
        check_induction(pool, [small], sizes)
    with pytest.raises(NotInductive, match=r"conserved was proved .* at n=2, total=3: it fails initially"):
        check_induction(pool, [replace(conserved, condition=b.not_(conserved.condition))], sizes)


class SameNames(Loose):
    """Variables that are called as indices are, with the sort of an index."""

    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        return State(x=Array(self.n, Range(0, 1)), c=Range(0, self.n - 1), i=Range(0, self.n - 1))

    @action(c="n")
    def move(self, s, c):
        s.c = c

    @action(c="n")
    def mark(self, s, c):
        require(s.c == c and s.x[c] == 0)
        s.x[c] = 1

    @invariant
    def nothing_marked(self, s):
        return sum(s.x[c] for c in range(self.n)) == 0

    @invariant
    def marked_where_it_is(self, s):
        return sum(s.x[s.c] for c in range(self.n)) == 0

    @invariant
    def first_only(self, s):
        return all(s.c == c or s.x[c] == 0 for c in range(self.n))

    @invariant
    def somewhere(self, s):
        return sum(1 if s.c == c else 0 for c in range(self.n)) >= 0 and any(s.c == i for i in range(self.n))


def test_an_index_is_no_variable_of_its_name() -> None:
    """Names of state variables, parameters of rules and bound indices do not meet."""
    assert prove(SameNames, "n", discover=True).proved == ("somewhere",)


class CountsWithConditions(Loose):
    """A sum whose parts look at every index."""

    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        return State(x=Array(self.n, Range(0, 1)))

    @action(i="n")
    def mark(self, s, i):
        s.x[i] = 1

    @invariant
    def none_is_least(self, s):
        return sum(1 if all(s.x[j] <= s.x[i] for j in range(self.n)) else 0 for i in range(self.n)) >= 1


def test_a_sum_of_conditions_on_every_index_is_left_open() -> None:
    """What such a sum becomes is not known after a step: true or not, it is not proved."""
    assert prove(CountsWithConditions, "n", discover=True).proved == ()


class WholeArrays(Loose):
    """Arrays of any length in `all`, `any` and `sum`, as they are and element by element."""

    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        return State(f=Array(self.n, Bool()), x=Array(self.n, Range(0, 3)), done=Bool())

    @action(i="n")
    def mark(self, s, i):
        require(not s.f[i])
        s.f[i] = True
        s.x[i] = 1

    @action
    def finish(self, s):
        require(all(s.f))
        s.done = True

    @invariant
    def finished(self, s):
        return not s.done or all(x == 1 for x in s.x) or any(not f for f in s.f)

    @invariant
    def linked(self, s):
        return all((s.x[i] == 1) == s.f[i] and s.x[i] <= 1 for i in range(self.n))

    @invariant
    def done_means_all(self, s):
        return not s.done or all(s.f)

    @invariant
    def nothing(self, s):
        return sum(s.x) == 0 and not any(s.f)

    @step
    def grows(self, s, t):
        return sum(s.x) <= sum(x for x in t.x) and sum(t.x) <= sum(s.x) + 1


def test_arrays_of_any_length_as_they_are() -> None:
    """`all`, `any` and `sum` of an array, and of what a generator makes of its elements; sums of the next state too."""
    assert prove(WholeArrays, "n").proved == ("finished", "linked", "done_means_all", "grows")


class Scales(Loose):
    """A part of the sum is a variable of its own, which changes."""

    n: int = 2
    limits = {"n": (0, None)}

    def state(self):
        return State(x=Array(self.n, Range(0, 1)), factor=Range(0, 2))

    @action
    def grow(self, s):
        require(s.factor < 2)
        s.factor += 1

    @invariant
    def nothing(self, s):
        return sum(s.x[i] + s.factor for i in range(self.n)) == 0


def test_a_sum_that_hangs_on_another_variable_changes_with_it() -> None:
    """A write outside the arrays changes every part of a sum that reads it."""
    assert prove(Scales, "n").proved == ()


class TokenRing(Loose):
    """One token moves among any number of places."""

    n: int = 3
    limits = {"n": (1, None)}

    def state(self):
        return State(at=Range(0, self.n - 1), inside=Array(self.n, Bool()))

    @action
    def move(self, s):
        require(not s.inside[s.at])
        s.at = 0 if s.at == self.n - 1 else s.at + 1

    @action(i="n")
    def enter(self, s, i):
        require(s.at == i)
        s.inside[i] = True

    @action(i="n")
    def leave(self, s, i):
        s.inside[i] = False

    @lemma
    def only_with_the_token(self, s):
        return all(not s.inside[i] or s.at == i for i in range(self.n))

    @invariant
    def exclusive(self, s):
        return all(not (s.inside[i] and s.inside[j]) for i in range(self.n) for j in range(self.n) if i != j)

    @step
    def one_at_a_time(self, s, t):
        return all(s.inside[i] == t.inside[i] or s.at == t.at for i in range(self.n))


class Careless(TokenRing, variant="careless"):
    """Enters without the token."""

    @action(i="n")
    def enter(self, s, i):
        require(s.at != i)
        s.inside[i] = True


def test_mutual_exclusion_of_any_number_of_processes() -> None:
    """Two nested indices, a lemma, and a step property; entering without the token is not proved safe."""
    proof = prove(TokenRing, "n")
    assert (proof.proved, proof.lemmas) == (("exclusive", "one_at_a_time"), ("only_with_the_token",))
    parametric = Spec(TokenRing).parametric(("n",), "careless")
    assert prove_any(parametric, list(parametric.system.properties)).proved == ("one_at_a_time",)


class Guarded(Model):
    """A guard on everyone: the last to arrive opens the gate."""

    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        return State(here=Array(self.n, Bool()), open=Bool())

    @action(i="n")
    def arrive(self, s, i):
        require(not s.here[i])
        s.here[i] = True

    @action
    def unlock(self, s):
        require(all(s.here[i] for i in range(self.n)) and not s.open)
        s.open = True

    @terminal
    def over(self, s):
        return s.open

    @invariant
    def everyone_is_here(self, s):
        return not s.open or all(s.here[i] for i in range(self.n))


class Impatient(Guarded, variant="impatient"):
    """The first to arrive opens the gate, and nobody is let in later."""

    @action
    def unlock(self, s):
        require(any(s.here[i] for i in range(self.n)) and not s.open)
        s.open = True

    @terminal
    def over(self, s):
        return False


def test_guards_that_look_at_every_index() -> None:
    """`all` and `any` in guards are assumed and denied as they are; freedom from deadlock is proved with them."""
    assert prove(Guarded, "n").proved == ("everyone_is_here", "deadlock")
    parametric = Spec(Guarded).parametric(("n",), "impatient")
    assert prove_any(parametric, list(parametric.system.properties)).proved == ()


class Branches(Loose):
    """An update that hangs on a condition on every index."""

    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        return State(x=Array(self.n, Range(0, 1)), clean=Bool(init=True))

    @action(i="n")
    def flip(self, s, i):
        s.x[i] = 1 - s.x[i]
        s.clean = all(s.x[j] == 0 for j in range(self.n))

    @invariant
    def told(self, s):
        return not s.clean or all(s.x[j] == 0 for j in range(self.n))

    @invariant
    def told_back(self, s):
        return s.clean or any(s.x[j] == 1 for j in range(self.n))

    @invariant
    def always_clean(self, s):
        return s.clean


def test_values_that_hang_on_every_index() -> None:
    """A condition on every index as a value is what it says, in both directions."""
    assert prove(Branches, "n").proved == ("told", "told_back")


class Composite(Loose):
    """Records, options, enumerations and fixed arrays among numbers without bounds."""

    most: int = 2
    limits = {"most": (1, None)}

    def state(self):
        return State(
            box=Record(count=Range(0, self.most), mode=Enum("IDLE", "BUSY")),
            last=Option(Range(0, self.most)),
            slot=Array(["left", "right"], Nat()),
            any=Nat(init=ANY),
            start=Range(0, self.most, init=ANY),
        )

    @action
    def work(self, s):
        require(s.box.count < self.most)
        s.box.count += 1
        s.box.mode = "BUSY"
        s.last = s.box.count
        s.slot["left"] += s.any

    @action
    def rest(self, s):
        require(s.last is not None and s.last == self.most)
        s.box = {"count": 0, "mode": "IDLE"}
        s.last = None

    @invariant
    def counted(self, s):
        return s.last is None or s.last == s.box.count

    @invariant
    def idle_is_empty(self, s):
        return s.box.mode == "BUSY" or s.box.count == 0

    @invariant
    def right_is_empty(self, s):
        return s.slot["right"] == 0

    @invariant
    def left_is_empty(self, s):
        return s.slot["left"] == 0

    @invariant
    def started_low(self, s):
        return s.start == 0


def test_composite_values_beside_numbers_without_bounds() -> None:
    """Their parts are compared and changed one by one; `ANY` is every value."""
    assert prove(Composite, "most").proved == ("counted", "idle_is_empty", "right_is_empty")


class Inside(Loose):
    """Arrays of any length inside other values."""

    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        told = Array(Range(0, self.n - 1), Bool())
        return State(rows=Array(Range(0, 1), told), box=Record(told=told), last=Option(told), got=Nat())

    @action
    def get(self, s):
        s.got += 1

    @invariant
    def few(self, s):
        return s.got <= 3


def test_no_claims_are_discovered_about_arrays_of_any_length_inside_other_values() -> None:
    """The property stays open, as without the discovery."""
    spec = Spec(Inside)
    parametric = spec.parametric(["n"])
    assert law_candidates(parametric) == drift_candidates(parametric) == []
    assert bound_candidates(parametric, lambda values: spec.system(**values)) == []
    assert "few" in prove(Inside, "n", discover=True).ctis


class Helpers(Loose):
    """Parameters in setup(), in helpers, in conditions, in `min` and in ranges that are tested."""

    size: int = 2
    limits = {"size": (2, None)}

    def setup(self):
        self.double = 2 * self.size
        self.each = [self.size, self.size + 1]

    def cut(self, x):
        if self.size > 1000:
            return min(x, 1000)
        return min(x, self.size)

    def state(self):
        return State(x=Range(0, self.double), k=Range(0, 1))

    @action
    def jump(self, s):
        require(s.x + self.each[1] <= self.double)
        s.x += self.cut(self.each[1])

    @invariant
    def inside(self, s):
        return s.x in range(self.double + 1)

    @invariant
    def at_most_size(self, s):
        return s.x <= self.size


def test_parameters_in_ordinary_python() -> None:
    """What is computed with parameters outside of rules is a term inside them."""
    assert prove(Helpers, "size").proved == ("inside",)


def test_the_rest_keeps_its_value() -> None:
    """Parameters that are not free are numbers, given ones too."""
    parametric = Spec(OnlySmall).parametric(())
    assert prove_any(parametric, list(parametric.system.properties)).proved == ("small", "not_seven", "bounded")
    assert Spec(OnlySmall).parametric((), top=6).fixed == {"top": 6}


class Cubes(Loose):
    """Fermat's last theorem for exponent 3, as an invariant."""

    def state(self):
        return State(x=Nat(init=ANY), y=Nat(init=ANY), z=Nat(init=ANY))

    @action
    def stay(self, s):
        s.x = s.x

    @invariant
    def fermat(self, s):
        return s.x * s.y == 0 or s.x * s.x * s.x + s.y * s.y * s.y != s.z * s.z * s.z


def test_what_the_solver_gives_up_on_is_not_proved() -> None:
    """A query that is not decided in time leaves the property open, and the products in it are named."""
    parametric = Spec(Cubes).parametric(())
    proof = prove_any(parametric, list(parametric.system.properties), query_limit=0.3)
    assert (proof.proved, proof.unknown, proof.ctis) == ((), ("fermat",), {})
    (prop,) = parametric.system.properties
    lines = {term.loc.line for term in products(parametric, prop) if term.loc is not None}
    assert lines == {Cubes.fermat.__code__.co_firstlineno + 2}


class Nested(Loose):
    """Conditions three deep, whose instances make witnesses, for which there are instances again."""

    n: int = 2
    limits = {"n": (0, None)}

    def state(self):
        return State(a=Array(self.n, Nat()), ok=Bool())

    @action(i="n")
    def up(self, s, i):
        s.a[i] += 1

    @action
    def look(self, s):
        every = range(self.n)
        require(any(all(any(s.a[i] < s.a[j] for i in every) or s.a[j] == k for j in every) for k in every))
        s.ok = True

    @invariant
    def some_is_largest(self, s):
        every = range(self.n)
        return all(any(all(s.a[i] >= s.a[j] for i in every) for i in every) for j in every)

    @invariant
    def no_three(self, s):
        every = range(self.n)
        return all(all(all(s.a[i] != 0 or s.a[j] != 1 or s.a[k] != 2 for k in every) for j in every) for i in every)

    @invariant
    def one_of_two(self, s):
        return all(v == 0 for v in s.a) == all(v <= 1 for v in s.a)

    @invariant
    def other_of_two(self, s):
        return all(v == 0 for v in s.a) != any(v > 0 for v in s.a) and not any(v == 3 for v in s.a)


@pytest.mark.timeout(60)
def test_time_is_kept_while_formulas_are_made() -> None:
    """Instances of nested conditions are many: the end of the time is noticed among them."""
    parametric = Spec(Nested).parametric(("n",))
    answer = prove_any(parametric, list(parametric.system.properties), seconds=0.5)
    assert answer.proved == ()
    assert answer.stopped == "out of time after 0.5 s"


class Tally(Loose):
    """Counts indices by what there is at them: a truth value, a field, an option."""

    n: int = 2
    limits = {"n": (0, None)}

    def state(self):
        cell = Record(many=Nat(), held=Option(Range(0, 5)), mode=Enum("IDLE", "BUSY"))
        return State(
            up=Array(self.n, Bool()), down=Array(self.n, Bool(init=True)), cell=Array(self.n, cell),
            ups=Nat(), many=Nat(), held=Nat(), busy=Nat(),
        )  # fmt: skip

    @action(i="n")
    def start(self, s, i):
        require(not s.up[i])
        s.up[i] = True
        s.down[i] = False
        s.ups += 1

    @action(i="n")
    def hold(self, s, i):
        require(s.cell[i].held is None)
        s.cell[i].held = 3
        s.cell[i].many += 2
        s.held += 1
        s.many += 2

    @action(i="n")
    def work(self, s, i):
        require(s.cell[i].mode == "IDLE")
        s.cell[i].mode = "BUSY"
        s.busy += 1

    @invariant
    def counts_truth(self, s):
        return sum(s.up) == s.ups and (any(s.up) or s.ups >= 0)

    @invariant
    def counts_fields(self, s):
        return sum(s.cell[i].many for i in range(self.n)) == s.many

    @invariant
    def counts_options(self, s):
        return sum(s.cell[i].held for i in range(self.n) if s.cell[i].held is not None) == 3 * s.held

    @invariant
    def counts_names(self, s):
        return sum(s.cell[i].mode == "IDLE" for i in range(self.n)) == self.n - s.busy

    @invariant
    def each_is_one_of_two(self, s):
        return all(s.up[i] != s.down[i] for i in range(self.n))

    @invariant
    def counts_the_rest(self, s):
        return sum(s.down) == self.n - s.ups

    @invariant
    def nothing_is_down(self, s):
        return sum(s.down) == 0

    @invariant
    def everything_is_busy(self, s):
        return sum(s.cell[i].mode == "BUSY" for i in range(self.n)) == self.n

    @invariant
    def everything_is_held(self, s):
        return sum(s.cell[i].held is not None for i in range(self.n)) == self.n


def test_a_sum_is_known_at_first_by_what_there_is_at_every_index() -> None:
    """Truth values, names, options and fields of records, as well as numbers."""
    true = ("counts_truth", "counts_fields", "counts_options", "counts_names", "each_is_one_of_two", "counts_the_rest")
    assert prove(Tally, "n").proved == true


# --- discovery


class Buffers(Loose):
    """Any number of buffers go round; one action puts everything back to where it began."""

    n: int = 2
    most: int = 2
    limits = {"n": (1, None), "most": (0, None)}

    def state(self):
        return State(
            free=Array(self.n, Range(0, self.most), init=self.most),
            used=Array(self.n, Range(0, self.most)),
            all_used=Nat(),
        )

    @action(i="n")
    def take(self, s, i):
        require(s.free[i] > 0)
        s.free[i] -= 1
        s.used[i] += 1
        s.all_used += 1

    @action(i="n")
    def reset(self, s, i):
        s.all_used -= s.used[i]
        s.used[i] = 0
        s.free[i] = self.most

    @invariant
    def bounded(self, s):
        return all(s.used[i] <= self.most for i in range(self.n))


def test_laws_at_one_index_and_over_all_of_them_are_discovered() -> None:
    """That nothing is lost at an index, and what the sum over all of them is, is found though a reset hides the first."""
    assert prove(Buffers, "n", "most").proved == ()
    proof = prove(Buffers, "n", "most", discover=True)
    assert proof.proved == ("bounded",)
    assert set(proof.found) == {"for all c: free[c] + used[c] = most", "sum(used[c]) = all_used"}


# --- what is refused


class Refused(Loose):
    """A base for models that are refused."""

    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        return State(x=Array(self.n, Range(0, 3)), q=Range(0, 3), who=Range(0, self.n - 1))


class LoopsOver(Refused):
    """Changes every element."""

    @action
    def clear(self, s):
        for i in range(self.n):
            s.x[i] = 0


class IteratesOver(Refused):
    """Goes through an array."""

    @action
    def clear(self, s):
        require(max(s.x) == 0)


class Chooses(Refused):
    """Picks an index."""

    @action
    def clear(self, s):
        s.who = choose(range(self.n))


class Lists(Refused):
    """Makes a list of any length."""

    @action
    def clear(self, s):
        require([s.x[i] for i in range(self.n)] == [])


class RequiresInside(Refused):
    """A helper that requires something of every element."""

    def fine(self, s, i):
        require(s.x[i] == 0)
        return True

    @action
    def clear(self, s):
        require(all(self.fine(s, i) for i in range(self.n)))


class Queues(Loose):
    """A queue of any capacity."""

    n: int = 2

    def state(self):
        return State(q=Queue(Bool(), capacity=self.n))


class Symmetrics(Loose):
    """Names for any number of things."""

    n: int = 2

    def state(self):
        return State(q=Symmetric(*[f"m{i}" for i in range(self.n)]))


class QueueOfThree(Loose):
    """A queue beside a free parameter."""

    n: int = 2
    limits = {"n": (1, None)}

    def state(self):
        return State(q=Queue(Bool(), capacity=3), x=Range(0, self.n))

    @action
    def push(self, s):
        s.q.push(True)


class SumOfSums(Refused):
    """A sum that hangs on another index."""

    @action
    def stay(self, s):
        require(s.q == 0)

    @invariant
    def odd(self, s):
        return all(sum(s.x[i] + s.x[j] * s.x[i] for i in range(self.n)) <= 3 for j in range(self.n))


class SetUp(Loose):
    """Decides by a parameter before any rule is read."""

    n: int = 2

    def setup(self):
        self.many = self.n > 3
        self.names = [1] if self.many else []

    def state(self):
        return State(x=Bool())


@pytest.mark.parametrize(
    ("model", "message", "remedy"),
    [
        (LoopsOver, "a loop over Range(0, n - 1), which has any number of elements", "use all(...), any(...) or sum"),
        (IteratesOver, "a loop over Range(0, n - 1), which has any number of elements", "use all(...)"),
        (Chooses, "a loop over Range(0, n - 1)", "an action changes an array at its own parameters"),
        (Lists, "a loop over Range(0, n - 1)", "use all(...)"),
        (
            RequiresInside,
            "require, choose or assignment for each index of an unbounded range",
            "state the condition with all",
        ),
        (Queues, "a Queue of capacity n is unbounded, which is not supported in proofs", "keep the number of"),
        (Symmetrics, "a loop over Range(0, n - 1), which has any number of elements", "use all(...), any(...) or sum"),
        (QueueOfThree, "q of Queue(Bool, capacity=3) is not supported in proofs for every size", "count"),
        (SumOfSums, "a sum over any number of indices inside all(...)", "state it for the parts"),
        (SetUp, "a local list or dict, which depends on a free parameter", "decide inside a rule"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_leaves_the_fragment_is_said_at_its_line(model: type[Model], message: str, remedy: str) -> None:
    """Each construct that has no meaning for every size is refused where it is written, with what to write instead."""
    with pytest.raises(ModelError) as raised:
        prove(model, "n")
    assert message in raised.value.message
    assert remedy in raised.value.remedy
    assert raised.value.loc is not None
    assert raised.value.loc.file == __file__


class Unlimited(Loose):
    """Numbers without bounds."""

    def state(self):
        return State(n=Nat(), z=Int(init=-3))

    @action
    def up(self, s):
        s.n += 1
        s.z -= s.n

    @invariant
    def negative(self, s):
        return s.z < 0

    @initially
    def small(self, s):
        return s.n <= 0


def test_numbers_without_bounds_are_for_proofs_only() -> None:
    """A system to count states of is refused with the line and what to do; a proof is made."""
    with pytest.raises(Unbounded, match="n is a Nat: a search counts states, and there are too many") as raised:
        Unlimited.system()
    assert raised.value.loc is not None
    assert "streamproof prove" in raised.value.remedy
    assert prove(Unlimited).proved == ("negative",)


@pytest.mark.parametrize(
    ("free", "given", "message"),
    [
        (("sise",), {}, "onlysmall has no parameter 'sise'"),
        (("top",), {"top": 3}, "top is to be any number and 3"),
    ],
    ids=["unknown", "given too"],
)
def test_what_cannot_be_any_number(free: tuple[str, ...], given: dict[str, int], message: str) -> None:
    """Names that are no parameters, and parameters that have a value, are wrong usage."""
    with pytest.raises(UsageError, match=message):
        Spec(OnlySmall).parametric(free, **given)


def test_a_parameter_that_is_no_number_is_refused() -> None:
    """Only numbers can be any number."""

    class Named(Loose):
        """Has a text."""

        mode: str = "a"

        def state(self):
            return State(x=Bool())

    with pytest.raises(UsageError, match="mode is not a number"):
        Spec(Named).parametric(("mode",))


# --- Python that answers for a number what it is not


EIGHT = int("8")


class Same:
    """Compares by identity wherever Python itself calls its methods."""

    def __init__(self, held):
        self.held = held

    def __eq__(self, other):
        return other is self.held

    def __hash__(self):
        return 0

    def __contains__(self, x):
        return x is self.held

    def __bool__(self):
        return self.held is EIGHT

    def __call__(self, x):
        return type(x) is int and x == 8


def is_eight(x):
    """By identity."""
    return x is EIGHT


@contextmanager
def opened(x):
    """A context manager of the user's."""
    yield x is EIGHT


def entered(x):
    """Runs it."""
    with opened(x) as found:
        return found


def as_json(x):
    """What stands for a value that is no number; called by `map`."""
    return json.dumps([x], default=lambda _: 0) == "[8]"


def matched(x):
    """A truth value in a pattern."""
    match x == 8:
        case True:
            return True
    return False


class Deceived(Loose):
    """A base for models in which a condition is true at 8, and Python takes it for false of a symbol."""

    n: int = 2
    limits = {"n": (0, None)}

    def state(self):
        return State(x=Bool())

    @action
    def flip(self, s):
        s.x = not s.x

    @invariant
    def never(self, s):
        return not self.told


class ByEq(Deceived):
    """A method that Python calls."""

    def setup(self):
        self.told = Same(EIGHT) == self.n


class ByContains(Deceived):
    """Another."""

    def setup(self):
        self.told = self.n in Same(EIGHT)


class ByBool(Deceived):
    """Another, of an object that holds the parameter."""

    def setup(self):
        self.told = bool(Same(self.n))


class ByCall(Deceived):
    """An object that is called."""

    def setup(self):
        self.told = Same(EIGHT)(self.n)


class ByMap(Deceived):
    """A function that is called from C."""

    def setup(self):
        self.told = list(map(is_eight, [self.n])) == [True]


class ByMapOfType(Deceived):
    """Python's own, called from C."""

    def setup(self):
        self.told = list(map(type, [self.n])) == [int]


class ByContext(Deceived):
    """A function that the standard library calls."""

    def setup(self):
        self.told = entered(self.n)


class ByEval(Deceived):
    """A text that is run."""

    def setup(self):
        self.told = eval("x is y", {"x": self.n, "y": EIGHT})


class ByClass(Deceived):
    """The body of a class inside a function."""

    def setup(self):
        class Inner:
            found = self.n is EIGHT

        self.told = Inner.found


class ByJson(Deceived):
    """A library that takes what is no number for something else."""

    def setup(self):
        self.told = json.dumps([self.n], default=lambda _: 0) == "[8]"


class ByMappedJson(Deceived):
    """The same, called from C."""

    def setup(self):
        self.told = list(map(as_json, [self.n])) == [True]


class ByCondition(Deceived):
    """A comparison is not True, whatever it is of."""

    def setup(self):
        self.told = (self.n > 7) is True


class ByMatch(Deceived):
    """A pattern that compares by identity."""

    def setup(self):
        self.told = matched(self.n)


class ByChain(Deceived):
    """Identity in a chain of comparisons."""

    def setup(self):
        self.told = EIGHT is self.n is EIGHT


class BySlot(Deceived):
    """A method of `int` that does not take what is no number."""

    def setup(self):
        self.told = int.__eq__(8, self.n) is True


@pytest.mark.parametrize(
    "model",
    [
        *(ByEq, ByContains, ByBool, ByCall, ByMap, ByMapOfType, ByContext, ByEval, ByClass, ByJson, ByMappedJson),
        *(ByCondition, ByChain, BySlot),
    ],
)
def test_what_python_itself_decides_of_a_free_parameter_is_refused(model: type[Model]) -> None:
    """A condition that is true at 8 is not read as one that is never true; the refusal names a line of this file."""
    with pytest.raises(ModelError) as raised:
        Spec(model).parametric(("n",))
    assert raised.value.loc is not None
    assert raised.value.loc.file == __file__


def test_a_pattern_is_read_as_what_it_means() -> None:
    """A condition that is true at 8 is true at 8."""
    assert prove(ByMatch, "n").proved == ()


class ThroughLibrary(Deceived):
    """A refusal that comes up in the standard library."""

    def setup(self):
        self.told = Counter([self.n])[8] == 1


def test_a_refusal_in_the_standard_library_names_the_line_that_called_it() -> None:
    """The line of the model, not one of Python's own."""
    with pytest.raises(ModelError, match="cannot be called with a free parameter") as raised:
        Spec(ThroughLibrary).parametric(("n",))
    assert raised.value.loc is not None
    assert (raised.value.loc.file, raised.value.loc.function) == (__file__, "setup")


class InsideLibrary(Deceived):
    """A function of the standard library with a free parameter, in a rule."""

    @invariant
    def never(self, s):
        return single(self.n) == 0


@singledispatch
def single(x):
    """Asks for a type."""
    return x


def test_what_cannot_be_read_of_the_standard_library_is_said_where_it_is_called() -> None:
    """The same inside rules, where the function would be read."""
    with pytest.raises(ModelError) as raised:
        Spec(InsideLibrary).parametric(("n",))
    assert raised.value.loc is not None
    assert raised.value.loc.file == __file__


kept = lambda x: x + 0  # noqa: E731


class CallsLambda(Deceived):
    """A lambda of a module, with other statements behind it."""

    @invariant
    def never(self, s):
        return kept(s.x) == 0


def test_a_lambda_of_a_module_is_refused_at_its_line() -> None:
    """It has no ``def`` to be read."""
    with pytest.raises(ModelError, match="the source of '<lambda>' cannot be read"):
        Spec(CallsLambda).parametric(("n",))


class Begun(Loose):
    """Many first values, few of which are initial states."""

    n: int = 2
    m: int = 8
    limits = {"n": (1, None), "m": (1, None)}

    def state(self):
        return State(x=Array(self.n, Range(0, self.m, init=ANY)), b=Array(self.n, Bool(init=ANY)))

    @initially
    def first(self, s):
        return all(s.x[i] == self.m and s.b[i] for i in range(self.n))

    @action(i="n")
    def lower(self, s, i):
        require(s.x[i] > 0)
        s.x[i] -= 1

    @invariant
    def at_most(self, s):
        return all(s.x[i] <= self.m for i in range(self.n))


@pytest.mark.long
@pytest.mark.timeout(60)
def test_initial_states_are_not_searched_for_without_end() -> None:
    """The grounding check looks at so many combinations of first values; the solver compares the conditions."""
    spec = Spec(Begun)
    assert len(compare_readings(spec, None, {}, spec.parametric(("n", "m"))).values) > 10


def test_initial_conditions_are_compared_by_the_solver() -> None:
    """One state more than was read is found, also where the first states that plain Python names are the same."""
    parametric = Spec(Begun).parametric(("n", "m"))
    one = ground(parametric, {"n": 2, "m": 1})
    assert list(difference(one, one)) == []
    other = replace(
        one, initially=b.or_((one.initially, b.eq(b.select(b.var("x", one.variables[0].sort), b.num(0)), b.num(0))))
    )
    assert [name for name, _ in difference(one, other)] == ["the initial condition"]


class Alternating(Loose):
    """Claims in each of which every index has a witness of its own, in two arrays."""

    n: int = 2
    m: int = 2
    limits = {"n": (1, None), "m": (1, None)}

    def state(self):
        return State(a=Array(self.n, Bool()), z=Array(self.m, Range(0, 3)))

    @action(i="n")
    def mark(self, s, i):
        s.a[i] = True

    @action(j="m")
    def add(self, s, j):
        require(s.z[j] < 3 and any(s.a[i] for i in range(self.n)))
        s.z[j] += 1

    @invariant
    def caused(self, s):
        return all(s.z[j] == 0 or any(s.a[i] for i in range(self.n)) for j in range(self.m))

    @invariant
    def least(self, s):
        return all(
            all(any(s.z[k] <= s.z[j] for k in range(self.m)) for j in range(self.m)) or s.a[i] for i in range(self.n)
        )

    @invariant
    def again(self, s):
        return all(any(s.z[i] <= 3 for i in range(self.m)) and (s.a[i] or not s.a[i]) for i in range(self.n))


@pytest.mark.timeout(60)
def test_alternating_quantifiers_are_bounded() -> None:
    """Witnesses of witnesses are not looked at without end."""
    assert prove(Alternating, "n", "m").proved == ("caused", "least", "again")


@pytest.mark.parametrize("name", [SAFE, "x <= 5"])
def test_no_property_has_the_name_of_a_claim_of_the_proof(name: str) -> None:
    """A proof has claims that nobody wrote: a property with such a name would be called proved in their place."""

    @invariant
    def false(m, s):
        return s.n != 40

    false.__name__ = name
    with pytest.raises(ModelError, match="is not an identifier"):
        Spec(OnlySmall, properties=(false,)).parametric(("top",))


class Clocks(Model):
    """Every clock counts down at once."""

    n: int = 2
    top: int = 2
    limits: ClassVar = {"n": (1, None), "top": (0, None)}
    check_deadlock = False

    def state(self):
        """All of them at the top."""
        clock = Array(self.n, Range(0, self.top, init=self.top))
        return State(clock=clock, before=clock, late=Array(self.n, Bool()), on=Bool(init=True))

    @action
    def tick(self, s):
        """Time passes."""
        require(all(c > 0 for c in s.clock))
        s.before = [s.clock[i] for i in range(self.n)]
        s.clock = [c - 1 for c in s.clock]
        if s.on:
            s.late = [s.before[i] > s.clock[i] for i in range(self.n)]
            s.late[0] = True

    @invariant
    def alike(self, s):
        """All clocks show the same."""
        return all(s.clock[i] == s.clock[j] for i in range(self.n) for j in range(self.n))

    @invariant
    def together(self, s):
        """A sum over arrays that are written as a whole."""
        return sum(s.clock[i] for i in range(self.n)) <= sum(s.before[i] for i in range(self.n))

    @invariant
    def each_late(self, s):
        """Late are all or none."""
        return all(s.late[i] for i in range(self.n)) or all(not s.late[i] for i in range(self.n))


class Uneven(Clocks, variant="uneven"):
    """The first clock alone counts."""

    @action
    def tick(self, s):
        """Time passes for it."""
        require(s.clock[0] > 0)
        s.clock = [s.clock[i] - 1 if i == 0 else s.clock[i] for i in range(self.n)]


class Below(Clocks, variant="below"):
    """Clocks count below 0."""

    @action
    def tick(self, s):
        """Time passes without a guard."""
        s.clock = [c - 1 for c in s.clock]


class Filtered(Clocks, variant="filtered"):
    """Elements that a comprehension leaves out have no value."""

    @action
    def tick(self, s):
        """Some of the time."""
        s.clock = [c for c in s.clock if c > 0]


def test_arrays_written_as_a_whole() -> None:
    """Every element has its new value, sums included; one that leaves its range is a mistake."""
    assert set(prove(Clocks, "n", "top").proved) == {"alike", "together", "each_late"}
    assert "alike" not in prove(Uneven, "n", "top").proved
    assert prove(Below, "n", "top").proved == ()
    with pytest.raises(ModelError, match="which has any number of elements") as refused:
        prove(Filtered, "n", "top")
    assert "s.x = [... for i in range(n)]" in str(refused.value.remedy)


class FixedFirst(Model):
    """Loops over a fixed range around those over any number of indices."""

    n: int = 2

    def state(self):
        def pairs():
            return Array(range(2), Array(range(self.n), Bool()))

        return State(a=pairs(), b=pairs())

    @action(e=range(2), p="n")
    def one(self, s, e, p):
        """Both tables alike."""
        require(any(not s.a[d][q] for d in range(2) if d == e for q in range(self.n) if q == p))
        s.a[e][p] = True
        s.b[e][p] = True

    @invariant
    def split(self, s):
        """Its conjuncts are those of the fixed index."""
        return all(s.a[e][p] == s.b[e][p] for e in range(2) for p in range(self.n))

    @invariant
    def whole(self, s):
        """The same inside another condition."""
        return not any(s.a[e][p] and not s.b[e][p] for e in range(2) if e >= 0 for p in range(self.n))

    @invariant
    def filtered(self, s):
        """A filter on the inner index that reads the outer one."""
        return all(s.b[e][p] for e in (0, 1) for p in range(self.n) if s.a[e][p])

    @invariant
    def three(self, s):
        """A fixed loop on each side."""
        return all(s.a[e][p] == s.b[d][p] for e in range(2) for p in range(self.n) for d in range(2) if d == e)


class FixedFirstUneven(FixedFirst, variant="uneven"):
    """The second row of one table stays behind."""

    @action(e=range(2), p="n")
    def one(self, s, e, p):
        """Only the first row of both."""
        require(not s.a[e][p])
        s.a[e][p] = True
        s.b[e][p] = e == 0


def test_a_fixed_range_may_come_before_an_unbounded_one() -> None:
    """The order of loops does not matter; each form is proved, and none where it is false."""
    names = {"split", "whole", "filtered", "three"}
    assert set(prove(FixedFirst, "n").proved) == names
    assert not names & set(prove(FixedFirstUneven, "n").proved)
    system = Spec(FixedFirst).parametric(["n"]).system
    assert [c.text.rpartition("  ")[2] for c in system.property("split").conjuncts] == ["[e=0]", "[e=1]"]
