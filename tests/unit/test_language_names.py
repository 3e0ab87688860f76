"""What a name of the user's source stands for is decided by its value: aliases, shadows, other names of rules."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import streamproof as sp
from loading import load
from shares import share
from streamproof import (
    STRONG,
    WEAK,
    Bool,
    Case,
    EvaluationError,
    Model,
    ModelError,
    Native,
    Range,
    State,
    Union,
    action,
    choose,
    eventually,
    explore,
    invariant,
    require,
    temporal,
)
from streamproof.agree.plain_python import compare_with_python
from streamproof.language.declare.spec import Spec
from streamproof.system import StreamproofError, Verdict

HOLDS, VIOLATED = Verdict.HOLDS, Verdict.VIOLATED


class Ack(Case):
    """A case."""


class Nack(Case):
    """Another one."""


def verdict(model: type[Model], name: str) -> Verdict:
    """The verdict of a property."""
    return explore(model.system()).finding(name).verdict


def answering(ack: type[Case]) -> type[Model]:
    """A model that answers in every case, if `ack` is the class of this name."""
    Ack = ack

    class Answering(Model):
        check_deadlock = False

        def state(self) -> State:
            return State(u=Union(globals()["Ack"](), Nack(), init=globals()["Ack"]()), x=Range(0, 3), done=Bool())

        @action
        def go(self, s: Any) -> None:
            require(not s.done)
            s.done = True
            match s.u:
                case Ack():
                    s.x = 1
                case Nack() | Ack():
                    s.x = 2

        @invariant
        def answered(self, s: Any) -> bool:
            return not s.done or s.x > 0

    return Answering


def test_cases_are_complete_by_class() -> None:
    """`match` is complete if its classes are those of the union, whatever the source calls them."""
    assert verdict(answering(Ack), "answered") is HOLDS
    assert verdict(answering(Nack), "answered") is VIOLATED


class Base(Model):
    """A helper to call by `super`."""

    check_deadlock = False

    def state(self) -> State:
        """A number."""
        return State(x=Range(0, 5))

    def f(self, s: Any) -> int:
        """Of the base class."""
        return 1

    @action
    def go(self, s: Any) -> None:
        """Overridden."""

    @invariant
    def fine(self, s: Any) -> bool:
        """Small."""
        return s.x < 3


def with_super(super: Callable[[], Any]) -> type[Model]:
    """A rule that calls this function."""

    class Above(Base):
        def f(self, s: Any) -> int:
            return 2

        def go(self, s: Any) -> None:
            s.x = super().f(s)

    return Above


class Kept(Base):
    """`super` under another name, in a method where Python knows the class."""

    def f(self, s: Any) -> int:
        """Not this one."""
        return 4

    def go(self, s: Any) -> None:
        """By an alias."""
        base = super
        s.x = base().f(s)


class Other:
    """What a function named `super` gives."""

    def f(self, s: Any) -> int:
        """Too large."""
        return 4


class Inside(Base):
    """Python has no instance there."""

    def go(self, s: Any) -> None:
        """In a comprehension."""
        s.x = max(super().f(s) for _ in range(2))


def test_super_is_the_function_of_python() -> None:
    """A function of the user with this name is called; an alias of Python's is Python's."""
    assert verdict(with_super(Other), "fine") is VIOLATED
    assert verdict(Kept, "fine") is HOLDS
    with pytest.raises(ModelError, match="super\\(\\) in a comprehension or an inner function\n  keep it first"):
        Inside.system()


class Checks:
    """An object with a method of the name of a primitive."""

    def require(self, condition: Any) -> None:
        """Requires nothing."""


class Shadowed(Base):
    """A local name that hides the module `sp`."""

    def setup(self) -> None:
        """An object that has `require`."""
        self.checks = Checks()

    def go(self, s: Any) -> None:
        """Not limited."""
        sp = self.checks
        sp.require(s.x < 2)
        s.x = 3 if s.x == 2 else s.x + 1


class Qualified(Base):
    """The module itself."""

    def go(self, s: Any) -> None:
        """Limited."""
        sp.require(s.x < 2)
        s.x = s.x + 1


def test_a_local_name_hides_a_module() -> None:
    """`sp.require` of an object of this name is its method."""
    assert verdict(Qualified, "fine") is HOLDS
    assert verdict(Shadowed, "fine") is VIOLATED


# --- fairness of a part


class Fair(Model):
    """What the rule moves to; the condition of its fairness is false of the steps that `ends` needs."""

    check_deadlock = False

    def state(self) -> State:
        """A number and a switch that never changes."""
        return State(x=Range(0, 3), b=Bool())

    def moves(self, s: Any, z: Any) -> bool:
        """The steps that a fair behaviour takes."""
        return z is not None and z != 1

    def noise(self) -> int:
        """A choice of a helper, in a variable of the same name."""
        z = choose([0, 3])
        return z

    @temporal
    def ends(self, s: Any) -> Any:
        """Only by the steps that are not fair."""
        return eventually(s.x == 1)


class Label(Fair):
    """The variable has the value behind the label."""

    @action(fairness=WEAK.where("moves"))
    def go(self, s: Any) -> None:
        """Labelled."""
        require(s.x == 0)
        z = choose(go=1, stay=0)
        s.x = z


class OneOfTwo(Fair):
    """One of two choices, depending on the state, in one variable."""

    @action(fairness=WEAK.where("moves"))
    def go(self, s: Any) -> None:
        """Never both."""
        require(s.x == 0)
        if s.b:
            z = choose([1])
            s.b = True
        else:
            z = choose([0, 1])
        s.x = z


class Helper(Fair):
    """The variable of the rule, not that of its helper."""

    @action(fairness=WEAK.where("moves"))
    def go(self, s: Any) -> None:
        """Both choose."""
        require(s.x == 0)
        self.noise()
        z = choose([0, 1])
        s.x = z


class Given(Fair):
    """A parameter of the rule, not the variable of its helper."""

    @action(z=[0, 1], fairness=WEAK.where("moves"))
    def go(self, s: Any, z: int) -> None:
        """The helper chooses."""
        require(s.x == 0)
        self.noise()
        s.x = z


def moved(self: Any, s: Any) -> None:
    """A rule with another name than its function."""
    require(s.x == 0)
    z = choose([0, 1])
    s.x = z


class Named(Fair):
    """A rule whose function has another name."""

    go = action(fairness=WEAK.where("moves"))(moved)


@pytest.mark.parametrize("model", [Label, OneOfTwo, Helper, Given, Named], ids=lambda m: m.__name__)
def test_the_condition_of_fairness_gets_the_value_of_the_variable(model: type[Model]) -> None:
    """Nothing forces the step that `ends` needs; with fairness of all steps, a helper's choice included, something does."""
    assert verdict(model, "ends") is VIOLATED

    class Forced(model):  # type: ignore[misc, valid-type]
        def moves(self, s: Any, z: Any) -> bool:
            return z == 1

    assert verdict(Forced, "ends") is HOLDS


class Twice(Fair):
    """Two choices in one variable."""

    @action(fairness=WEAK.where("moves"))
    def go(self, s: Any) -> None:
        """One after the other."""
        z = choose([0, 1])
        s.x = z
        z = choose([0, 3])
        s.x = z


class Default(Fair):
    """A choice, or another value."""

    @action(fairness=WEAK.where("moves"))
    def go(self, s: Any) -> None:
        """In one variable."""
        z = 2
        if s.b:
            z = choose([0, 1])
        s.x = z


class Loop(Fair):
    """A choice in a loop."""

    @action(fairness=WEAK.where("moves"))
    def go(self, s: Any) -> None:
        """Twice."""
        for _ in range(2):
            z = choose([0, 1])
            s.x = z


class Again(Fair):
    """A parameter that is assigned."""

    @action(z=[0, 1], fairness=WEAK.where("moves"))
    def go(self, s: Any, z: int) -> None:
        """Another value."""
        z = 1 - z
        s.x = z


class Captured(Fair):
    """A choice, or what a pattern captures."""

    @action(fairness=WEAK.where("moves"))
    def go(self, s: Any) -> None:
        """In one variable."""
        z = choose([0, 1])
        match s.x:
            case (1 | 2) as z:
                s.x = z


class Local(Fair):
    """No choice."""

    @action(fairness=WEAK.where("moves"))
    def go(self, s: Any) -> None:
        """The helper's variable has the name."""
        z = 1
        self.noise()
        s.x = z


@pytest.mark.parametrize(
    ("model", "lines"),
    [(Twice, (5, 7)), (Default, (5, 7)), (Loop, (6, 6)), (Again, (3, 5)), (Captured, (5, 7))],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_a_name_with_several_values_is_refused(model: type[Model], lines: tuple[int, int]) -> None:
    """With the lines that give them."""
    first = model.go.__code__.co_firstlineno - 1  # type: ignore[attr-defined]
    shown = " and ".join(str(first + line - 1) for line in dict.fromkeys(lines))
    with pytest.raises(ModelError, match=f"'z', which may get several values in one step: lines? {shown}\n"):
        model.system()


def test_a_variable_without_a_choice_is_refused() -> None:
    """Also if a helper chooses into a variable of this name."""
    with pytest.raises(ModelError, match="'z', which is neither a parameter nor a pick of it"):
        Local.system()


class Branches(Fair):
    """Two of three branches."""

    @action(fairness=WEAK.branch("up", "down"))
    def go(self, s: Any) -> None:
        """Labelled."""
        require(s.x != 1)
        s.x = choose(up=2, down=3, ends=1)


class Single(Fair):
    """The third one."""

    @action(fairness=WEAK.branch("ends", "up"))
    def go(self, s: Any) -> None:
        """Labelled."""
        require(s.x == 0)
        s.x = choose(up=1, down=0, ends=1)


class Misspelt(Fair):
    """A branch that is none."""

    @action(fairness=STRONG.branch("up", "left"))
    def go(self, s: Any) -> None:
        """Labelled."""
        s.x = choose(up=2, down=3)


def test_several_branches_are_one_constraint() -> None:
    """On the steps that take any of them."""
    assert verdict(Branches, "ends") is VIOLATED
    assert verdict(Single, "ends") is HOLDS
    assert Branches.system().actions[0].fair_branch == "up or down"


def test_fairness_in_another_form_is_refused() -> None:
    """In words of the language."""
    with pytest.raises(ModelError, match="'strong' is not a fairness constraint\n  it is WEAK, STRONG"):
        action(fairness=(WEAK.branch("up"), "strong"))  # type: ignore[call-overload]
    with pytest.raises(ModelError, match=r"branch\(\.\.\.\) takes labels of branches, got none\n"):
        action(fairness=WEAK.branch())
    with pytest.raises(ModelError, match="got 1\n"):
        action(fairness=WEAK.branch(1))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="the branch 'left', which it does not have"):
        Misspelt.system()


class Groups(Model):
    """Choices and parameters that are sets."""

    check_deadlock = False

    def state(self) -> State:
        """A set."""
        return State(seen=sp.Set(sp.Enum("a", "b", "c")))

    @action(group=[frozenset({"b", "a"}), frozenset({"c"})])
    def go(self, s: Any, group: frozenset[str]) -> None:
        """To another one."""
        chosen = choose([{"c", "b", "a"}, set(), {"b"}])
        require(group != chosen)
        s.seen = chosen

    @sp.invariant
    def small(self, s: Any) -> bool:
        """Not with the first choice."""
        return len(s.seen) < 3


def test_sets_are_shown_in_order() -> None:
    """A step has the same name in every run, and Python runs the rule alike."""
    labels = [i.label for i in Groups.system().instances]
    assert labels[0] == "go(group={a, b})[chosen={a, b, c}]"
    assert labels[-1] == "go(group={c})[chosen={b}]"
    assert sp.check(Groups).finding("small").verdict is VIOLATED


class Keyed(Groups):
    """A record with a set in it as a key."""

    def state(self) -> State:
        """An array over records."""
        return State(seen=sp.Set(sp.Enum("a", "b", "c")), at=sp.Array(sp.Record(x=sp.Set(Bool())), Bool()))


def test_a_record_with_a_container_is_no_key() -> None:
    """The message says what is."""
    with pytest.raises(ModelError, match=r"cannot be a key of an Array\n  use numbers, names, and tuples of these"):
        Keyed.system()


def test_choose_of_an_object_is_its_method() -> None:
    """A label is one of streamproof's `choose`."""
    mine = SimpleNamespace(choose=lambda **given: 1)

    class Mine(Base):
        def go(self, s: Any) -> None:
            s.x = mine.choose(up=1)

    assert Mine.system().actions[0].branches == ()


# --- other names


SHADOWED = {
    "len": ("len(s.q)", "9"),
    "sum": ("sum(s.q)", "9"),
    "range": ("max(range(2))", "(9,)"),
    "all": ("(4 if all([v < 3 for v in s.q]) else 9)", "False"),
    "any": ("(9 if any([v > 3 for v in s.q]) else 4)", "True"),
    "min": ("min(s.q[0], 2)", "9"),
    "isinstance": ("(9 if isinstance(s.u, Ack) else 4)", "True"),
    "choose": ("choose([1, 2])", "9"),
    "first": ("first([v for v in s.q])", "9"),
    "enumerate": ("sum(i for i, v in enumerate(s.q))", "[(9, 0)]"),
    "sorted": ("sorted((2, 1))[0]", "[9]"),
}
"""A name of Python or the language: an expression that calls it, and what another function of this name returns."""
TEXT = """
from streamproof import *

class Ack(Case):
    pass

class Nack(Case):
    pass

{head}

class M(Model):
    check_deadlock = False

    def state(self):
        return State(x=Range(0, 9), q=Queue(Range(0, 3), capacity=2, init=[1]), u=Union(Ack(), Nack(), init=Nack()))

    @action
    def go(self, s):
        s.x = {value}

    @invariant
    def usual(self, s):
        return s.x < 9
"""


@pytest.mark.parametrize("name", share(SHADOWED, 4))
@pytest.mark.parametrize("way", ["itself", "alias", "parameter", "module", "closure"])
def test_a_function_is_what_its_name_refers_to(name: str, way: str, tmp_path: Path) -> None:
    """A function of the user that hides one of Python or of the language is called; an alias of theirs is theirs."""
    value, result = SHADOWED[name]
    hiding = f"def {{}}(*given):\n    return {result}\n"
    head = hiding.format(name) if way == "module" else hiding.format("other")
    text = TEXT
    if way == "alias":
        head, value = f"another_name = {name}", value.replace(f"{name}(", "another_name(")
    if way in ("closure", "parameter"):
        at = text.index("class M")
        text = f"{text[:at]}def made({name}):\n{textwrap.indent(text[at:], '    ')}    return M\n\n"
        text += f"M = made({'other' if way == 'closure' else name})\n"
    text = text.replace("{head}", head).replace("{value}", value)
    spec = Spec(load(text, tmp_path, f"names_{name}_{way}").M)
    made, system = spec.read(None, {})
    compare_with_python(spec, made, system)
    assert explore(system).finding("usual").verdict is (VIOLATED if way in ("module", "closure") else HOLDS)


class Private(Base):
    """Private names, which Python changes."""

    def __f(self, s: Any) -> int:
        return _Private__g(s)  # type: ignore[no-any-return]  # noqa: F821

    def go(self, s: Any) -> None:
        """A private method, and a function of the module."""
        s.x = self.__f(s) + __g(s)  # type: ignore[name-defined]  # noqa: F821


def _private(s: Any) -> int:
    """The function that `__g` means in the class."""
    return 2


globals()["_Private__g"] = _private
globals()["__g"] = lambda s: 0


def renamed(function: Any) -> Any:
    """A decorator that changes what a function says of itself."""
    function.__qualname__, function.__name__ = "Other.f", "f"
    function.__signature__ = inspect.Signature([])
    return function


class Renamed(Base):
    """A private name in a function that says it is of another class."""

    __limit = 2

    @renamed
    def f(self, s: Any, more: int = 2) -> int:
        """The attribute of this class."""
        return self.__limit + more

    def go(self, s: Any) -> None:
        """Too large."""
        s.x = self.f(s, more=1)


def test_private_names_are_those_of_the_class() -> None:
    """By the code of the function, not by what it says of itself."""
    assert verdict(Private, "fine") is VIOLATED
    assert verdict(Renamed, "fine") is VIOLATED


COUNT = 0


class Outer(Base):
    """A declaration on a path that is not taken."""

    def go(self, s: Any) -> None:
        """The assignment changes the module."""
        if self.check_deadlock:
            global COUNT
        COUNT = 1
        s.x = COUNT


class Captures(Base):
    """A name that a pattern binds is local, also where the pattern does not match."""

    def go(self, s: Any) -> None:
        """Python finds no value."""
        match s.x:
            case 5 as COUNT:
                s.x = 0
            case _:
                s.x = COUNT


def test_a_name_is_local_or_not_in_the_whole_function() -> None:
    """As Python decides, wherever the statement stands."""
    with pytest.raises(ModelError, match="'global' is not part of the language\n  everything that changes belongs"):
        Outer.system()
    with pytest.raises(ModelError, match=r"'COUNT' (is used before it has a value|is assigned on some paths only)"):
        Captures.system()


class Mistaken(Base):
    """Mistakes of functions under other names."""

    def go(self, s: Any) -> None:
        """The smallest of nothing."""
        least = min
        s.x = least(v for v in (1, 2) if v < s.x)


def test_a_mistake_of_an_alias_is_one_of_the_model() -> None:
    """Natively too."""
    native = Native(Mistaken())
    with pytest.raises(EvaluationError, match=r"min\(\) of an empty collection in go"):
        native.step((0,), "go")
    compare_with_python(Spec(Mistaken), Mistaken(), Mistaken.system())


KINDS = """
from streamproof import *

dir = type

class M(Model):
    n: int = 2
    limits = {"n": (1, None)}

    def setup(self):
        self.most = 1 if dir(self.n) is int else 0

    def state(self):
        return State(x=Range(0, 1))

    @action
    def go(self, s):
        s.x = self.most

    @invariant
    def low(self, s):
        return s.x == 0
"""


def test_another_name_of_type_does_not_see_a_free_parameter(tmp_path: Path) -> None:
    """`dir` that is `type` would tell a free parameter from a number."""
    model = load(KINDS, tmp_path, "kinds_of_parameters").M
    with pytest.raises(StreamproofError, match=r"type\(\) cannot be called with a free parameter"):
        Spec(model).parametric(("n",))
