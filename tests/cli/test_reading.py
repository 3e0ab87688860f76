"""What a class says twice, or marks in vain, is refused with both lines by every verb that reads a model."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from nonempty import nonempty
from streamproof.model_registry import bundled, find

HEAD = """
import functools
from typing import overload
from streamproof import (
    Model, Range, Set, Spec, State, action, any_of, initially, invariant, lemma, measure, reachable, refines, require, step,
    temporal, terminal,
)
import streamproof as sp

"""
BASE = """
class M(Model):
    limit: int = 3
    check_deadlock = False

    def state(self):
        return State(n=Range(0, self.limit))

    @action
    def more(self, s):
        require(s.n < self.limit)
        s.n += 1
"""
LINE = len((HEAD + BASE).splitlines()) + 1
"""The first line that a case adds, to the body of the class."""


def model(body: str, after: str = "") -> str:
    """A file with the model, further members of its class, and what follows the class."""
    return HEAD + BASE + textwrap.indent(textwrap.dedent(body), "    ") + textwrap.dedent(after)


TWICE = {
    "two invariants": (
        "@invariant\ndef bounded(self, s):\n    return s.n < 2\n\n@invariant\ndef bounded(self, s):\n    return True\n",
        "'bounded' is defined twice in M, lines {1} and {5}",
    ),
    "two actions": (
        "@action\ndef more(self, s):\n    require(False)\n    s.n = 0\n",
        "'more' is defined twice in M",
    ),
    "an invariant named like an action": (
        "@invariant\ndef more(self, s):\n    return s.n < 9\n",
        "'more' is defined twice in M",
    ),
    "an action named like an invariant": (
        "@invariant\ndef low(self, s):\n    return False\n@action\ndef low(self, s):\n    s.n = 0\n",
        "'low' is defined twice in M, lines {1} and {4}",
    ),
    "a helper after an invariant": (
        "@invariant\ndef low(self, s):\n    return False\ndef low(self, s):\n    return True\n",
        "'low' is defined twice in M, lines {1} and {3}",
    ),
    "two helpers": (
        "def low(self, s):\n    return s.n < 1\ndef low(self, s):\n    return True\n"
        "@invariant\ndef all_low(self, s):\n    return self.low(s)\n",
        "'low' is defined twice in M, lines {0} and {2}",
    ),
    "an invariant named like a parameter": (
        "@invariant\ndef limit(self, s):\n    return False\n",
        "'limit' is defined twice in M",
    ),
    "two defaults": ("limit: int = 1\n", "'limit' is defined twice in M"),
    "two limits": ("limits = {'limit': (0, 3)}\nlimits = {}\n", "'limits' is defined twice in M, lines {0} and {1}"),
    "an assignment over an invariant": (
        "@invariant\ndef low(self, s):\n    return False\nlow = 3\n",
        "'low' is defined twice in M, lines {1} and {3}",
    ),
    "an alias over an invariant": (
        "@invariant\ndef high(self, s):\n    return True\n@invariant\ndef low(self, s):\n    return False\nlow = high\n",
        "'low' is defined twice in M, lines {4} and {6}",
    ),
    "unpacking over an invariant": (
        "@invariant\ndef low(self, s):\n    return False\nlow, other = 1, 2\n",
        "'low' is defined twice in M, lines {1} and {3}",
    ),
    "two ifs": (
        "if True:\n    @invariant\n    def low(self, s):\n        return False\n"
        "if True:\n    @invariant\n    def low(self, s):\n        return True\n",
        "'low' is defined twice in M, lines {2} and {6}",
    ),
    "an if after a definition": (
        "@invariant\ndef low(self, s):\n    return False\nif limit > 1:\n    def low(self, s):\n        return True\n",
        "'low' is defined twice in M, lines {1} and {4}",
    ),
    "try": (
        "try:\n    @invariant\n    def low(self, s):\n        return False\n    1 / 0\nexcept ZeroDivisionError:\n"
        "    @invariant\n    def low(self, s):\n        return True\n",
        "'low' is defined twice in M, lines {2} and {7}",
    ),
    "a loop": (
        "for at in range(2):\n    @invariant\n    def low(self, s, at=at):\n        return at == 1\n",
        "'low' is defined in a loop: each round replaces the definition before",
    ),
    "a class over an invariant": (
        "@invariant\ndef low(self, s):\n    return False\nclass low:\n    pass\n",
        "'low' is defined twice in M, lines {1} and {3}",
    ),
    "an import over an invariant": (
        "@invariant\ndef isqrt(self, s):\n    return False\nfrom math import isqrt\n",
        "'isqrt' is defined twice in M, lines {1} and {3}",
    ),
    "a with over an invariant": (
        "@invariant\ndef low(self, s):\n    return False\nimport contextlib\n"
        "with contextlib.nullcontext(3) as low:\n    pass\n",
        "'low' is defined twice in M, lines {1} and {4}",
    ),
    "a loop variable over an invariant": (
        "@invariant\ndef low(self, s):\n    return False\nfor low in range(2):\n    pass\n",
        "'low' is defined twice in M, lines {1} and {3}",
    ),
    "del": (
        "@invariant\ndef low(self, s):\n    return False\ndel low\n",
        "low is marked @invariant, line {0}, but M ends",
    ),
    "global": ("global low\n@invariant\ndef low(self, s):\n    return False\n", "low is marked @invariant, line {1}"),
    "two marks": (
        "@lemma\n@invariant\ndef low(self, s):\n    return False\n",
        "'low' has two marks, lines {1} and {0}: the second one replaces the first",
    ),
    "two kinds of mark": (
        "@action\n@invariant\ndef low(self, s):\n    return False\n",
        "'low' has two marks, lines {1} and {0}",
    ),
    "two kinds of mark, otherwise": (
        "@invariant\n@action(fairness=sp.WEAK)\ndef low(self, s):\n    return False\n",
        "'low' has two marks, lines {1} and {0}",
    ),
    "a mark by assignment": (
        "@invariant\ndef low(self, s):\n    return False\nlow = lemma(low)\n",
        "'low' has two marks, lines {0} and {3}",
    ),
    "staticmethod above": (
        "@staticmethod\n@invariant\ndef low(s):\n    return False\n",
        "low is decorated, but is not a plain method: @staticmethod, line {0}, hides @invariant, line {1}",
    ),
    "staticmethod below": (
        "@invariant\n@staticmethod\ndef low(s):\n    return False\n",
        "low is decorated, but is not a plain method",
    ),
    "classmethod above": (
        "@classmethod\n@invariant\ndef low(cls, s):\n    return False\n",
        "low is decorated, but is not a plain method: @classmethod, line {0}, hides @invariant, line {1}",
    ),
    "classmethod below": (
        "@action\n@classmethod\ndef low(cls, s):\n    s.n = 0\n",
        "low is decorated, but is not a plain method",
    ),
    "property above": (
        "@property\n@invariant\ndef low(self):\n    return False\n",
        "low is decorated, but is not a plain method: @property, line {0}, hides @invariant, line {1}",
    ),
    "property below": (
        "@invariant\n@property\ndef low(self):\n    return False\n",
        "low is decorated, but is not a plain method",
    ),
    "cached_property above": (
        "@functools.cached_property\n@sp.invariant\ndef low(self):\n    return False\n",
        "low is decorated, but is not a plain method: @functools.cached_property, line {0}, hides @sp.invariant, line {1}",
    ),
    "cache above": (
        "@functools.cache\n@invariant\ndef low(self, s):\n    return False\n",
        "low is decorated, but is not a plain method: @functools.cache, line {0}",
    ),
    "a decorator that drops the mark": (
        "def plain(f):\n    return lambda self, s: f(self, s)\n@plain\n@invariant\ndef low(self, s):\n    return False\n",
        "low is decorated, but is not a plain method: @plain, line {2}, hides @invariant, line {3}",
    ),
    "a mark by another name": (
        "always = invariant\n@property\n@always\ndef low(self):\n    return False\n",
        "low is decorated, but is not a plain method: @property, line {1}, hides @always, line {2}",
    ),
    "a property by assignment": (
        "@invariant\ndef low(self, s):\n    return False\nlow = property(low)\n",
        "low is marked @invariant, line {0}, but M ends without this method",
    ),
}


def refused(streamproof: Any, text: str, said: str, *verbs: str) -> None:
    """Check a file with each verb, and expect the refusal."""
    Path("m.py").write_text(text, encoding="utf-8")
    for verb in verbs or ("check", "prove"):
        done = streamproof(verb, "m.py", "-q")
        assert done.code == 150, (verb, done.out, done.err)
        assert "m.py:" in done.err
        assert said in done.err


@pytest.mark.parametrize("case", TWICE)
def test_what_a_class_loses_is_refused(streamproof: Any, case: str) -> None:
    """No rule is dropped without a word."""
    body, said = TWICE[case]
    refused(streamproof, model(body), said.format(*range(LINE, LINE + 20)))


AFTER = {
    "a property outside, twice": (
        "@invariant\ndef low(m, s):\n    return s.n < 2\n\n@invariant\ndef low(m, s):\n    return True\n\n"
        "SPEC = Spec(M, properties=(low,))\n",
        "'low' is defined twice, lines {1} and {5}",
    ),
    "a measure outside, twice": (
        "@measure\ndef most(m, s):\n    return s.n\n\n@measure\ndef most(m, s):\n    return 0\n\n"
        "SPEC = Spec(M, measures=(most,))\n",
        "'most' is defined twice, lines {1} and {5}",
    ),
    "a class, twice": (
        "class M(Model):\n    def state(self):\n        return State(n=Range(0, 1))\n    @action\n    def go(self, s):\n"
        "        s.n = 0\n",
        "'M' is defined twice",
    ),
    "a rule of another kind in a subclass": (
        "class N(M):\n    @invariant\n    def more(self, s):\n        return True\n    @action\n    def go(self, s):\n"
        "        s.n = 0\nSPEC = Spec(N)\n",
        "'more' of N replaces an action of line {0} by another kind of mark",
    ),
    "a parameter in a subclass": (
        "class N(M):\n    more: int = 3\n    @action\n    def go(self, s):\n        s.n = 0\nSPEC = Spec(N)\n",
        "'more' of N replaces an action",
    ),
    "a property of Python in a subclass": (
        "class N(M):\n    @property\n    def more(self):\n        return 3\n    @action\n    def go(self, s):\n"
        "        s.n = 0\nSPEC = Spec(N)\n",
        "'more' of N replaces an action",
    ),
    "a mixin": (
        "class Mixin:\n    @invariant\n    def low(self, s):\n        return False\n"
        "    def low(self, s):\n        return True\n"
        "class N(Mixin, M):\n    pass\nSPEC = Spec(N)\n",
        "'low' is defined twice in Mixin, lines {2} and {4}",
    ),
    "a mixin with a property": (
        "class Mixin:\n    @property\n    @invariant\n    def low(self):\n        return False\n"
        "class N(Mixin, M):\n    pass\nSPEC = Spec(N)\n",
        "low is decorated, but is not a plain method: @property, line {1}",
    ),
    "a class in a function": (
        "def made():\n    class N(M):\n        @invariant\n        def low(self, s):\n            return False\n"
        "        @invariant\n        def low(self, s):\n            return True\n    return N\nSPEC = Spec(made())\n",
        "'low' is defined twice in N, lines {3} and {6}",
    ),
    "a class in a class": (
        "class Outer:\n    class N(M):\n        @invariant\n        def low(self, s):\n            return '''\nx'''\n"
        "        def low(self, s):\n            return True\nSPEC = Spec(Outer.N)\n",
        "'low' is defined twice in N, lines {3} and {6}",
    ),
}


@pytest.mark.parametrize("case", AFTER)
def test_what_a_file_loses_is_refused(streamproof: Any, case: str) -> None:
    """Beside the class, in subclasses and mixins it is the same."""
    after, said = AFTER[case]
    said = said.format(*range(LINE, LINE + 20)) if "of line" not in said else said.format(LINE - 3)
    refused(streamproof, model("", after), said, "check")


def test_variant(streamproof: Any) -> None:
    """The body of a variant is looked at where the variant is checked."""
    after = (
        "class Broken(M, variant='broken'):\n    @invariant\n    def low(self, s):\n        return False\n\n"
        "    def low(self, s):\n        return True\n"
    )
    Path("m.py").write_text(model("", after), encoding="utf-8")
    assert streamproof("check", "m.py", "-q", "--explore-only").code == 0
    done = streamproof("check", "m.py", "-q", "--variant", "broken")
    assert done.code == 150
    assert f"'low' is defined twice in Broken, lines {LINE + 2} and {LINE + 5}" in done.err


LEGAL = {
    "alternatives": (
        "if limit > 1:\n    @invariant\n    def low(self, s):\n        return s.n < 4\nelse:\n    @invariant\n"
        "    def low(self, s):\n        return False\n",
        "",
    ),
    "a branch not taken": ("if limit > 7:\n    @invariant\n    def low(self, s):\n        return False\n", ""),
    "setter": (
        "_x = 3\n@property\ndef x(self):\n    return 3\n@x.setter\ndef x(self, value):\n    self._x = value\n",
        "",
    ),
    "overload": (
        "@overload\ndef low(self, s: int) -> int: ...\n@overload\ndef low(self, s: str) -> str: ...\n"
        "def low(self, s):\n    return s\n",
        "",
    ),
    "a value that grows": ("table = (1,)\ntable = table + (2,)\ntable += (3,)\n", ""),
    "a declaration and its value": ("size: int\nsize = 3\n", ""),
    "placeholders": ("_, low = 1, 2\n_, high = 3, 4\n", ""),
    "an override": (
        "@invariant\ndef low(self, s):\n    return False\n",
        "class N(M):\n    def low(self, s):\n        return s.n < 4\nSPEC = Spec(N)\n",
    ),
    "an override with a mark": (
        "@invariant\ndef low(self, s):\n    return False\n",
        "class N(M):\n    @lemma\n    def low(self, s):\n        return s.n < 4\nSPEC = Spec(N)\n",
    ),
    "a rule removed": (
        "@invariant\ndef low(self, s):\n    return False\n",
        "class N(M):\n    low = None\nSPEC = Spec(N)\n",
    ),
    "a class in place of an import": (
        "",
        "try:\n    from nowhere import N\nexcept ImportError:\n    class N(M):\n        pass\nSPEC = Spec(N)\n",
    ),
    "inherited twice": (
        "@invariant\ndef low(self, s):\n    return False\n",
        "class Left(M):\n    def low(self, s):\n        return s.n < 4\nclass Right(M):\n    pass\n"
        "class N(Left, Right):\n    pass\nSPEC = Spec(N)\n",
    ),
    "a mixin": (
        "@invariant\ndef low(self, s):\n    return False\n",
        "class Mixin:\n    def low(self, s):\n        return s.n < 4\nclass N(Mixin, M):\n    pass\nSPEC = Spec(N)\n",
    ),
    "a decorator that keeps the mark": (
        "def plain(f):\n    @functools.wraps(f)\n    def inner(self, s):\n        return f(self, s)\n    return inner\n"
        "@plain\n@invariant\ndef low(self, s):\n    return s.n < 4\n",
        "",
    ),
    "names of other scopes": (
        "def helper(self, s):\n    low = 1\n    low = 2\n    return low\n"
        "@invariant\ndef low(self, s):\n    return self.helper(s) == 2\n",
        "def low():\n    return 3\nclass Other:\n    def low(self):\n        return 4\n",
    ),
    "an outside property named like one of another class": (
        "",
        "class Other:\n    @invariant\n    def low(self, s):\n        return False\n"
        "@invariant\ndef low(m, s):\n    return s.n < 4\nSPEC = Spec(M, properties=(low,))\n",
    ),
}


@pytest.mark.parametrize("case", LEGAL)
def test_legal(streamproof: Any, case: str) -> None:
    """What Python means by two definitions on purpose stays legal."""
    body, after = LEGAL[case]
    Path("m.py").write_text(model(body, after), encoding="utf-8")
    done = streamproof("check", "m.py", "-q", "--explore-only")
    assert done.code == 0, done.out + done.err


TRUE = "@invariant\ndef fine(self, s):\n    return s.n < 4\n"
FORGOTTEN = {
    "a property": ("def low(self, s):\n    return s.n < 2\n", "", "low(self, s) has no mark, and nothing calls it"),
    "an action": ("def less(self, s):\n    s.n = 0\n", "", "less(self, s) has no mark, and nothing calls it"),
    "a property outside": (
        "",
        "@invariant\ndef low(m, s):\n    return s.n < 2\n@invariant\ndef listed(m, s):\n    return True\n"
        "SPEC = Spec(M, properties=(listed,))\n",
        "low is marked, and no Spec has it among its properties",
    ),
}


@pytest.mark.parametrize("case", FORGOTTEN)
def test_forgotten_mark(streamproof: Any, case: str) -> None:
    """A function that takes the state, and that nothing calls, is worth a warning; for machines too."""
    body, after, said = FORGOTTEN[case]
    Path("m.py").write_text(model(body + TRUE, after), encoding="utf-8")
    for verb in ("check", "prove"):
        done = streamproof(verb, "m.py", "-q", "--json", "report.json")
        assert done.code == 0
        assert "streamproof: warning: " in done.err
        assert said in done.err
        (warning,) = json.loads(Path("report.json").read_text(encoding="utf-8"))["warnings"]
        assert said in warning
        Path("report.json").unlink()


CALLED = {
    "a helper": ("def low(self, s):\n    return s.n < 4\n@invariant\ndef fine(self, s):\n    return self.low(s)\n", ""),
    "by another name": ("def low(self, s):\n    return s.n < 4\nalias = low\n", ""),
    "a domain": (
        "def some(self, s=None):\n    return [1, 2]\n@action(i='some')\ndef go(self, s, i):\n    s.n = i\n",
        "",
    ),
    "by its name": (
        "def low(self, s):\n    return s.n < 4\n"
        "@invariant\ndef fine(self, s):\n    return getattr(self, 'lo' + 'w')(s)\n",
        "",
    ),
    "outside": (
        "def low(self, s):\n    return s.n < 4\n",
        "@invariant\ndef fine(m, s):\n    return m.low(s)\nSPEC = Spec(M, properties=(fine,))\n",
    ),
    "a subclass": (
        "def low(self, s):\n    return s.n < 4\n@invariant\ndef fine(self, s):\n    return self.low(s)\n",
        "class N(M):\n    def low(self, s):\n        return s.n < 5\nSPEC = Spec(N)\n",
    ),
    "of no state": ("def double(self, n):\n    return 2 * n\n", ""),
    "private": ("def _old(self, s):\n    return s.n < 4\n", ""),
}


@pytest.mark.parametrize("case", CALLED)
def test_called_functions_are_no_warning(streamproof: Any, case: str) -> None:
    """What is used anywhere, by whatever name, is a helper."""
    body, after = CALLED[case]
    Path("m.py").write_text(model(body, after), encoding="utf-8")
    assert "warning" not in streamproof("check", "m.py", "-q").err


def test_variables_and_properties_that_decide_nothing_are_named(streamproof: Any) -> None:
    """A variable that nothing uses is a warning, and an invariant of parameters alone says so."""
    text = model("@invariant\ndef fixed(self, s):\n    return 1 < 2\n")
    Path("m.py").write_text(text.replace("State(", "State(spare=Range(0, 1), "), encoding="utf-8")
    done = streamproof("check", "m.py")
    assert "warning: no rule and no property uses the variable spare at these parameters" in done.err
    assert "; ranges and parameters alone decide it" in done.out


@pytest.mark.parametrize("variants", [False, True])
@pytest.mark.long
def test_bundled_models_have_no_warnings(variants: bool) -> None:
    """No model of ours, and no variant, has a function that nothing calls, or a variable of no use."""
    for name in nonempty(bundled()):
        target = find(name)
        for variant in (None, *target.spec.model.variants) if variants else (None,):
            assert target.warnings(variant, target.system(variant, {})) == []


STATE = """
from streamproof import Array, Bool, Enum, Model, Queue, Range, Set, State, action, choose, invariant, require

OWN

class M(Model):
    check_deadlock = False

    def state(self):
        return State(
            slot=Array(3, Range(0, 3)), other=Array(3, Range(0, 3)), level=LEVEL, wire=Queue(Range(0, 3), capacity=2),
            seen=Set(Range(0, 3)), grid=Array(2, Array(2, Range(0, 3))), name=Enum("A", "B"),
        )

    def eat(self, s):
        if s.level > 1:
            s.wire.pop()

    def put(self, s, v):
        s.slot[2] = 1
        return v

    @action
    def go(self, s):
BODY

    @invariant
    def fine(self, s):
        return FINE
"""


def with_state(body: str = "s.level = 1", fine: str = "s.level < 4", own: str = "", level: str = "Range(0, 3)") -> str:
    """A file with this action, invariant and helpers."""
    text = STATE.replace("BODY", textwrap.indent(body, "        ")).replace("FINE", fine)
    return text.replace("OWN", own).replace("LEVEL", level)


CHANGING = {
    "ahead": "for i, v in enumerate(s.slot):\n    if i < 2:\n        s.slot[i + 1] = v",
    "whole": "for v in s.slot:\n    s.slot = [3, 3, 3]",
    "or left": "for v in s.slot:\n    if v == 0:\n        s.slot = [3, 3, 3]\n        if s.level > 1:\n            break",
    "reversed": "for v in reversed(s.slot):\n    s.slot[0] = 2",
    "alias": "a = s.slot\nfor v in s.slot:\n    a[2] = 1",
    "alias of the loop": "a = s.slot\nfor v in a:\n    s.slot[2] = 1",
    "one of two": "a = s.slot if s.level > 1 else s.other\nfor v in a:\n    s.slot[2] = 1",
    "zip": "for v, w in zip(s.slot, s.other):\n    s.other[2] = v",
    "pop": "for v in s.wire:\n    s.wire.pop()",
    "push": "for v in s.wire:\n    if not s.wire.full:\n        s.wire.push(v)",
    "continue": "for v in s.wire:\n    if v == 1:\n        s.wire.pop()\n        continue",
    "discard": "for v in s.seen:\n    if v > 1:\n        s.seen.discard(v)",
    "augmented": "for v in s.seen:\n    s.seen |= {1}",
    "inner": "for row in s.grid:\n    for v in row:\n        s.grid[1][1] = v",
    "helper": "for v in s.wire:\n    self.eat(s)",
    "comprehension": "a = [self.put(s, v) for v in s.slot]",
    "quantifier": "require(any(self.put(s, v) > 1 for v in s.slot))",
}


@pytest.mark.parametrize("case", CHANGING)
def test_loop_that_changes_its_container(streamproof: Any, case: str) -> None:
    """A loop whose body changes what it would read next is refused, as with local lists."""
    refused(
        streamproof, with_state(CHANGING[case]), "a container of the state changes while a loop runs over it", "check"
    )


KEEPING = {
    "its own element": "for i, v in enumerate(s.slot):\n    s.slot[i] = min(v + 1, 3)",
    "behind": "for i, v in enumerate(s.slot):\n    if i > 0:\n        s.slot[i - 1] = v",
    "left": "for v in s.slot:\n    if v == 0:\n        s.slot = [3, 3, 3]\n        break",
    "and returned": "for v in s.slot:\n    if v == 0:\n        s.slot = [3, 3, 3]\n        return",
    "and left": "for v in s.slot:\n    if v < 2:\n        if s.level > 1:\n            s.slot = [3, 3, 3]\n            break",
    "behind backwards": "for v in reversed(s.slot):\n    s.slot[2] = 2",
    "pop and left": "for v in s.wire:\n    if v == 1:\n        s.wire.pop()\n        break",
    "fixed range": "for v in range(4):\n    if v in s.seen:\n        s.seen.discard(v)",
    "new value": "for v in s.seen | {1}:\n    s.seen.discard(v)",
    "copy": "for v in list(s.slot):\n    s.slot[2] = v",
    "rows": "for row in s.grid:\n    row[0] = 1\n    s.grid[1][0] = 1\n    s.level = row[0]",
    "the same value": "for v in s.slot:\n    s.slot[2] = s.slot[2]",
}


@pytest.mark.parametrize("case", KEEPING)
def test_loop_that_keeps_what_it_reads(streamproof: Any, case: str) -> None:
    """What is no difference to Python's loop is none here."""
    Path("m.py").write_text(with_state(KEEPING[case]), encoding="utf-8")
    done = streamproof("check", "m.py", "-q")
    assert done.code == 0, done.err


OWN = (
    "class Odd(list):\n    def __contains__(self, x):\n        return x == 2\nODD = Odd([1])\n"
    "THREE, PAIRS = Odd([1, 2, 3]), Odd([(1, 1)])\n"
    "class Lies(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\n"
    "    def __lt__(self, other):\n        return True\nLIES = Lies(1)\n"
    "class Text(str):\n    def __eq__(self, other):\n        return False\n    __hash__ = str.__hash__\n"
    "class Ones(dict):\n    def __getitem__(self, key):\n        return 1\nONES = Ones({0: 2, 1: 2, 2: 2, 3: 2})\n"
)
UNFAITHFUL = {
    "a number": ({"fine": "s.level != LIES"}, "Lies has its own __eq__, and would be read as an int here"),
    "a number in a list": ({"fine": "s.level not in [LIES, 2]"}, "Lies has its own __eq__"),
    "a text": ({"fine": "s.name == Text('A')"}, "Text has its own __eq__, and would be read as a str here"),
    "a dict": ({"fine": "ONES[s.level] == 2"}, "Ones has its own __getitem__, and would be read as a dict here"),
    "assigned": ({"body": "s.level = LIES"}, "Lies has its own __eq__"),
    "a list assigned": (
        {"body": "s.slot = THREE"},
        "Odd has its own __contains__, and would be read as a list",
    ),
    "an end of a range": ({"level": "Range(0, LIES)"}, "Lies has its own __eq__"),
    "a first value": ({"level": "Range(0, 3, init=LIES)"}, "Lies has its own __eq__"),
    "a choice": ({"body": "s.level = choose([LIES, 2])"}, "Lies has its own __eq__"),
    "a member of a pair": ({"fine": "(s.level, 1) not in PAIRS"}, "Odd has its own __contains__"),
}


@pytest.mark.parametrize("case", UNFAITHFUL)
def test_own_methods_are_refused(streamproof: Any, case: str) -> None:
    """A subclass that means something of its own is not read as the plain type."""
    given, said = UNFAITHFUL[case]
    refused(streamproof, with_state(own=OWN, **given), said, "check", "prove")


def test_own_membership_is_asked(streamproof: Any) -> None:
    """Whether a scalar is in a container with its own `__contains__`, the container says."""
    Path("m.py").write_text(with_state(body="s.level = 2", fine="s.level not in ODD", own=OWN), encoding="utf-8")
    assert streamproof("check", "m.py", "-q").code == 12


def test_keys_keep_their_order(streamproof: Any) -> None:
    """The keys of a dict come in the order of the dict, the members of a set in ascending order."""
    body = (
        "for v in {2: 0, 1: 0}.keys():\n    s.level = v\n    break\nfor v in KEYS.keys():\n    s.slot[0] = v\n    break"
    )
    Path("m.py").write_text(
        with_state(body=body, fine="s.level in (0, 2) and s.slot[0] in (0, 2)", own="KEYS = {2: 0, 1: 0}"),
        encoding="utf-8",
    )
    assert streamproof("check", "m.py", "-q").code == 0


CLASHES = {
    "a variable like a part of another": (
        'State(**{"a[0]": Bool(), "a": Array(2, Bool())})',
        "state variable 'a[0]' is not an identifier",
    ),
    "a field like a part of another": (
        'State(a=Record(**{"q.len": Bool(), "q": Queue(Bool(), capacity=1)}))',
        "field 'q.len' is not an identifier",
    ),
    "members with brackets": (
        'State(a=Array(["x", "x][y"], Array(["y][z", "z"], Bool())))',
        "two parts of the state are called a[x][y][z]",
    ),
}


@pytest.mark.parametrize("case", CLASHES)
def test_names_of_parts_do_not_clash(streamproof: Any, case: str) -> None:
    """No two parts of the state have one name, whatever the names that a model chooses."""
    state, said = CLASHES[case]
    text = (
        "from streamproof import Array, Bool, Model, Queue, Record, State, action\n\nclass M(Model):\n    def state(self):\n"
        f"        return {state}\n    @action\n    def go(self, s):\n        s.a = s.a\n"
    )
    refused(streamproof, text, said, "check", "prove")


@pytest.mark.parametrize("keys", ['[1, "1"]', '["a(b", "c"]', '["a]", "c"]'])
def test_names_of_parts_of_a_composition(streamproof: Any, keys: str) -> None:
    """Keys that would give two parts one name, or cannot be distinguished from what follows them, are refused."""
    text = (
        "from streamproof import Model, Parts, Range, State, action, each\n\nclass Cell(Model):\n    def state(self):\n"
        "        return State(n=Range(0, 1))\n    @action\n    def flip(self, s):\n        s.n = 1 - s.n\n\n"
        f"class Both(Model):\n    def parts(self):\n        return Parts(cell=each({keys}, lambda k: Cell()))\n"
    )
    Path("m.py").write_text(text, encoding="utf-8")
    assert streamproof("check", "m.py:Both", "-q").code == 150


def test_an_object_that_is_replaced_is_noticed(streamproof: Any) -> None:
    """A rule that puts another object in the place of one that is gone changes the model, whatever its address."""
    own = (
        "class Box:\n    def __init__(self, n):\n        self.n = n\n\nclass Held(list):\n    pass\n\n"
        "def swap(held):\n    n = held[0].n\n    held[0] = None\n    held[0] = Box(n + 1)\n    return 0\n\nHELD = [Box(0)]\n"
    )
    Path("m.py").write_text(with_state(body="s.level = swap(HELD)", own=own), encoding="utf-8")
    done = streamproof("check", "m.py", "-q")
    assert (done.code, "changed HELD" in done.err) == (150, True), done
