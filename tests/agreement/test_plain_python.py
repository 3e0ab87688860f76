"""Rules in ordinary Python mean over all reachable states what Python makes of them; where they do not, they are refused.

Three readings of each rule are compared: lowered, native, and on plain Python lists, sets and objects.
"""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from streamproof import Model
from streamproof.language.declare.primitives import Disabled
from streamproof.language.native.native import Native
from streamproof.system import EvaluationError, Interpreter, ModelError

HEAD = """
import collections
import enum
import types
from streamproof import *

class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1

class Name(enum.StrEnum):
    A = "A"
    B = "B"

class Odd(list):
    def __contains__(self, value):
        return value % 2 == 1

class M(Model):
    check_deadlock = False
    log = []
    last = 0

    def setup(self):
        self.pairs = ((a, 1 - a) for a in range(2))
        self.zipped = zip([0, 1], [1, 0])
        self.seldom = collections.Counter({0: 2})
        self.usual = collections.defaultdict(int, {2: 1})
        self.odd = Odd([0, 2])
        self.box = types.SimpleNamespace(n=0)

    def state(self):
        return State(
            a=Range(0, 2, init=ANY), b=Range(-2, 2, init=any_of(-2, 0, 1)), p=Bool(init=ANY),
            x=Array(2, Range(0, 2), init=[0, 1]), y=Array(2, Range(0, 2), init=[1, 2]),
            f=Set(Range(0, 2), init={1}), g=Set(Range(0, 2), init={0, 2}),
            q=Queue(Range(0, 2), capacity=2, init=[1]), o=Option(Range(0, 2), init=any_of(None, 1)),
            rows=Array(2, Array(2, Range(0, 2)), init=[[0, 1], [1, 2]]), done=Bool(),
        )

    def twice(self, s, pairs):
        n = sum(v for _, v in pairs)
        return n + sum(v for _, v in pairs)

    def grow(self, s, found):
        found |= {2}

    def reset(self, s):
        s.q = []

    def remember(self):
        self.log.append(1)
        return 1

    def note(self):
        type(self).last = 1
        return 1

    def put(self):
        self.box.n = 1
        return 1

    @action
    def go(self, s):
        require(not s.done)
        s.done = True
"""

ALIKE = {
    "numbers swapped": "s.a, s.x[0] = s.x[1], s.a",
    "an index that changes": "i = 0\ni, s.x[i] = 1, 2",
    "rounding of negatives": "s.b = s.b // 2 + s.b % 2",
    "late binding": "fs = [lambda: i for i in range(3)]\ns.a = fs[0]()",
    "bound by a default": "fs = [lambda i=i: i for i in range(3)]\ns.a = fs[1]()",
    "a default that is kept": ("def add(v, kept=[]):\n    kept.append(v)\n    return len(kept)\nadd(1)\ns.a = add(2)"),
    "pop in a condition": "if len(s.q) > 0 and s.q.pop() == s.a:\n    s.q.push(2)",
    "pop in a chain": "s.p = 0 < s.q.pop() < 2",
    "pops in order": "s.q.push(2)\ns.x = [s.q.pop(), s.q.pop()]",
    "short circuit": "s.p = s.p or s.q.pop() == 1",
    "any stops": "s.p = any(s.q.pop() == v for v in s.x if len(s.q) > 0)",
    "rows of one list": "rows = [[0] * 2] * 2\nrows[0][1] = s.a\ns.x = rows[1]",
    "two names of a list": "one = [s.a]\ntwo = one\ntwo += [1]\ns.x = one",
    "the list is another": "one = [s.a]\ntwo = one\ntwo = two + [1]\ns.a = len(one)",
    "a set of one name": "found = set()\nfor v in s.x:\n    found |= {v}\nfound -= {2}\ns.f = found",
    "a set in a branch": "found = {0}\nif s.p:\n    found |= {1}\ns.f = found",
    "a set of the state": "few = s.f\nfew |= {2}\nfor one in (s.f, s.g):\n    one -= {s.a}",
    "keys 0 and 1": "s.a = {0: 1, 1: 2}[s.p]",
    "keys False and True": "s.a = {False: 1, True: 2, 2: 0}[s.a]",
    "a key that is absent": "s.a = {None: 1, True: 2}[s.o]",
    "None in a range": "s.p = s.o in range(3)",
    "a counter": "s.a = self.seldom[s.a]",
    "a default dict": "s.a = self.usual[s.a]",
    "the last of a set": "for v in {s.a, s.x[0]}:\n    s.o = v",
    "the last of two sets": "for v in {2, s.a} | s.f:\n    s.o = v",
    "a set in order": "n = 0\nfor v in {2 - w for w in s.x}:\n    n = n * 3 + v\ns.a = n % 3",
    "truth values in order": "for v in {s.p, s.a > 0}:\n    s.p = v",
    "break in a set": "for v in {1, 2} & {s.a, 2}:\n    s.a = v\n    break",
    "members of enumerations": "s.x[Level.LOW] = s.x[Level.HIGH]\ns.a = Level.HIGH",
    "one name, read again": "t = s.q\nt.clear()\ns.q = [2]\nt = s.q\nt.pop()",
    "items": (
        "d = dict(zip(['a', 'b'], s.x))\ns.a = max(d.values())\n"
        "for i, (v, w) in enumerate(zip(s.x, s.y)):\n    s.x[i] = w"
    ),
    "another row": "row = s.rows[0]\ns.rows[1] = [2, 2]\nrow[0] = 2",
    "recursion": "def up(n):\n    return 0 if n <= 0 else 1 + up(n - 1)\ns.a = up(2)",
    "early return": "for v in s.x:\n    if v == s.a:\n        return\n    if v > s.a:\n        break\ns.a = 1",
    "tuples joined": "s.a = ((s.a, 1) + (s.x[0], s.b))[2]",
    "tuples of other lengths": "s.p = (s.a, 1) == (s.a, 1, 2) or (s.a, 1) == (1, 1)",
    "a list is no tuple": "one = [s.a]\ns.p = one == (s.a,) or (s.a,) == [1]",
    "lists are equal": "one = [s.a, 1]\ns.p = one == [1, 1] and one != [1]",
    "a filtered list": "few = [v for v in s.x if v < s.a]\ns.p = few == [1] or few == (0,)",
    "two filtered lists": "s.p = [v for v in s.x if v < s.a] == [v for v in s.y if v <= s.a]",
    "a local set and a known one": "found = {s.a, 1}\ns.p = found == {0, 1} or {0, 1} < found or {2} <= found",
    "a local set and one of the state": "found = {s.a, 1}\ns.p = found == s.f or s.g >= found",
    "a local list from its end": "one = [0, 1]\none[-1] = s.a\none[-2] = 1\ns.x = one",
    "in a range downwards": "s.p = s.b in range(2, -3, -2)",
    "in a range of one number": "s.p = s.b in range(1, 2) or s.a in range(2, 1, -1)",
    "in a container of its own kind": "s.p = s.a in self.odd",
    "dicts are equal": "one = {'a': s.a}\ns.p = one == {'a': 1} or one == {'b': s.a}",
    "choices": "if s.p and choose([True, False]):\n    s.x = [choose([0, k]) for k in range(2)]\ns.a = choose(s.g)",
}
ONCE = "is empty after its first use"
SHARED = "is changed in place, and the set may have another name"
GONE = "refers to a container that the assignment to"
REFUSED = {
    "one of two places": (
        "few = s.f if s.p else s.g\nfew |= {1, 2}",
        "which place 'few' refers to depends on the state",
    ),
    "a value of the state": ("x = s.f | {1}\ny = x\ny |= {2}\ns.f = x", SHARED),
    "a local set": ("x = {s.a, 1}\ny = x\ny |= {2}\ns.f = x", SHARED),
    "a known set": ("x = {0, 1}\ny = x\ny |= {2}\ns.f = x", SHARED),
    "a set as an argument": ("w = {s.a}\nself.grow(s, w)\ns.f = w", SHARED),
    "a set in a list": ("sets = [{0}, {1}]\none = sets[0]\nsets[0] |= {s.a}\ns.f = one", SHARED),
    "a set that a list holds": ("x = {s.a}\nsets = [x]\nx |= {2}\ns.f = sets[0]", SHARED),
    "a set that a list holds twice": ("sets = [0, {s.a}]\nsets[0] = sets[1]\nsets[0] |= {2}\ns.f = sets[1]", SHARED),
    "a set that a dict holds": ("x = {s.a}\nsets = {1: x}\nx |= {2}\ns.f = sets[1]", SHARED),
    "generator in a tuple": ("one, two = (v for v in s.x), 3\ns.a = (sum(one) + sum(one)) % 3", ONCE),
    "generator in a list": ("g = [(v for v in s.x)]\ns.a = (sum(g[0]) + sum(g[0])) % 3", ONCE),
    "generator in a dict": ("d = {1: reversed(s.x)}\ns.a = (sum(d[1]) + sum(d[1])) % 3", ONCE),
    "generators in a list": ("d = [reversed(r) for r in s.rows]\ns.a = (sum(d[1]) + sum(d[1])) % 3", ONCE),
    "generator as a default": ("f = lambda g=reversed(s.x): sum(g)\ns.a = (f() + f()) % 3", ONCE),
    "generator as an argument": ("s.a = self.twice(s, enumerate(s.x)) % 3", ONCE),
    "generator of the model": ("s.p = all(s.x[a] <= s.x[b] for a, b in self.pairs)", ONCE),
    "zip of the model": ("for a, b in self.zipped:\n    s.x[a] = s.y[b]", ONCE),
    "list of a zip": ("for a, b in list(self.zipped):\n    s.x[a] = s.y[b]", ONCE),
    "in a zip": ("s.p = (s.a, 1) in self.zipped", ONCE),
    "swap by a name": ("t = s.x\ns.x = s.y\ns.y = t", GONE),
    "swap of rows": ("row = s.rows[0]\ns.rows[0] = s.rows[1]\ns.rows[1] = row", GONE),
    "rows in a list": ("rows = list(s.rows)\ns.rows[0] = rows[1]\ns.rows[1] = rows[0]", GONE),
    "the whole is replaced": ("row = s.rows[0]\ns.rows = [[1, 1], [2, 2]]\ns.a = row[0]", GONE),
    "by a helper": ("q = s.q\nself.reset(s)\nq.push(2)", GONE),
    "an argument": ("s.a = (lambda q, k: len(q))(s.q, self.reset(s))", GONE),
    "a default": ("def size(q=s.q):\n    return len(q)\nself.reset(s)\ns.a = size()", GONE),
    "a bound method": ("push = s.q.push\nself.reset(s)\npush(2)", GONE),
    "a list of the class": ("s.a = self.remember()", "reading go\\(\\) changed M.log"),
    "a number of the class": ("s.a = self.note()", "reading go\\(\\) changed M.last"),
    "an object of the model": ("s.a = self.put()", "reading go\\(\\) changed self.box.n"),
    "in a branch": ("q = s.q\nif s.p:\n    s.q = []\nq.clear()", GONE),
}


def loaded(tmp_path: Path, body: str) -> ModuleType:
    """A module with the model whose action does this."""
    file = tmp_path / "plain_python.py"
    file.write_text(HEAD + textwrap.indent(body, " " * 8) + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


class Choices:
    """Every run of a function, with `choose` answered in all ways."""

    def __init__(self) -> None:
        self._given: list[int] = []
        self._widths: list[int] = []

    def choose(self, options: Any) -> Any:
        """The option that is next in turn."""
        found = list(options)
        if not found:
            raise Disabled
        if len(self._widths) == len(self._given):
            self._given.append(0)
        self._widths.append(len(found))
        return found[self._given[len(self._widths) - 1]]

    def runs(self, run: Callable[[], Any]) -> set[Any]:
        """What the runs come to: values, and `error` for a mistake."""
        found, todo = set[Any](), [list[int]()]
        while todo:
            self._given, self._widths = todo.pop(), []
            fixed = len(self._given)
            try:
                found.add(run())
            except Disabled:
                pass
            except (EvaluationError, IndexError, KeyError, ZeroDivisionError):
                found.add("error")
            for at in range(fixed, len(self._widths)):
                todo += [[*self._given[:at], other] for other in range(1, self._widths[at])]
        return found


class Waiting(list[Any]):
    """A queue of plain Python."""

    push = list.append

    def pop(self) -> Any:  # type: ignore[override]
        """Takes the first element."""
        return super().pop(0)


def plain_state(names: list[str], state: tuple[Any, ...]) -> SimpleNamespace:
    """A state of the model in plain Python's own containers."""
    s = SimpleNamespace(**dict(zip(names, state, strict=True)))
    s.x, s.y, s.rows = list(s.x), list(s.y), [list(row) for row in s.rows]
    s.f, s.g, s.q = set(s.f), set(s.g), Waiting(s.q)
    return s


def frozen(names: list[str], s: SimpleNamespace) -> tuple[Any, ...]:
    """That state as a tuple again."""
    s.x, s.y, s.rows = tuple(s.x), tuple(s.y), tuple(map(tuple, s.rows))
    s.f, s.g, s.q = frozenset(s.f), frozenset(s.g), tuple(s.q)
    return tuple(getattr(s, n) for n in names)


@pytest.mark.parametrize("case", ALIKE)
def test_rules_mean_what_python_makes_of_them(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same successors and errors in every reachable state."""
    module = loaded(tmp_path, ALIKE[case])
    kind: type[Model] = module.M
    system, model = kind.system(), kind()
    interpreter, native, choices = Interpreter(system), Native(model), Choices()
    names = [v.name for v in system.variables]
    monkeypatch.setattr(module, "choose", choices.choose)

    def taken(instance: Any, state: Any) -> Any:
        after = interpreter.take(instance, state)
        if after is None:
            raise Disabled
        return after

    def stepped(state: Any) -> Any:
        after = native.step(state, "go")
        if after is None:
            raise Disabled
        return after

    def changed(state: Any) -> Any:
        s = plain_state(names, state)
        kind.go(model, s)  # type: ignore[attr-defined]
        return frozen(names, s)

    todo = list(interpreter.initial_states())
    seen = set(todo)
    while todo:
        state = todo.pop()
        lowered = set[Any]().union(*(choices.runs(partial(taken, i, state)) for i in system.instances))
        assert choices.runs(partial(stepped, state)) == lowered, state
        assert choices.runs(partial(changed, state)) == lowered, state
        todo += [after for after in lowered - seen if after != "error"]
        seen |= lowered
    assert len(seen) > len(list(interpreter.initial_states()))


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_misread_is_refused(tmp_path: Path, case: str) -> None:
    """At its line, while the model is read."""
    body, said = REFUSED[case]
    module = loaded(tmp_path, body)
    with pytest.raises(ModelError, match=said) as found:
        module.M.system()
    assert found.value.loc is not None
