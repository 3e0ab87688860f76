"""A helper that changes a Python object, however it reaches it, is refused: it would answer differently another time."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

HEAD = """
import collections, contextvars, functools, io, itertools, types
import helpers
from array import array
from streamproof import Model, Range, State, action, invariant, reachable


class Slots:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 0


class Inner:
    def __init__(self):
        self.n = 0


class Outer:
    def __init__(self):
        self.inner = Inner()
        self.row = [Inner()]


class Lazy:
    def __init__(self):
        self.first = 0

    @functools.cached_property
    def log(self):
        return []


class Calls:
    n = 0

    def __call__(self):
        self.n += 1
        return self.n


class Items(dict):
    pass


@functools.cache
def kept():
    return []


def counted():
    counted.n = getattr(counted, "n", 0) + 1
    return counted.n


def default(seen=[0]):
    seen[0] += 1
    return seen[0]


def keyword(*, seen={"n": 0}):
    seen["n"] += 1
    return seen["n"]


TOTAL = 0
TICKET = itertools.count()
LETTERS = io.StringIO("abc")
VARIABLE = contextvars.ContextVar("n", default=0)
BYTES = bytearray(1)
NUMBERS = array("i", [0])
TREE = {"a": ({"b": Inner()},)}
ORDER = collections.OrderedDict({0: 1, 1: 2})
QUEUE = collections.deque([1, 2])
CALLS = Calls()


class M(Model):
    check_deadlock = False
    names = ("n",)

    def setup(self):
        n = 0

        def inside():
            nonlocal n
            n += 1
            return n

        self.slots, self.outer, self.lazy, self.inside = Slots(), Outer(), Lazy(), inside
        self.push = QUEUE.append
        self.part = functools.partial(default)
        self.numbers = iter(range(9))
        self.space = types.SimpleNamespace(deep=types.SimpleNamespace(n=0))
        self.items = Items()

    def state(self):
        return State(x=Range(0, 9))

    def help(self):
{body}

    {mark}

    @{kind}
    def {name}(self, s):
        {use}
"""

EFFECTS = {
    "self.slots.n += 1": "self.slots.n",
    "self.outer.inner.n += 1": "self.outer.inner.n",
    "self.outer.row[0].n += 1": "self.outer.row[0].n",
    "self.outer.row.append(Inner())": "self.outer.row",
    "self.space.deep.n += 1": "self.space.deep.n",
    "self.items.n = 1": "self.items.n",
    "self.items['n'] = 1": "self.items",
    "self.inside()": "inside.n",
    "self.push(1)": "self.push",
    "self.part()": "default[0]",
    "self.numbers.__next__()": "self.numbers",
    "self.lazy.log.append(1)": "self.lazy.log",
    "self.lazy.other = 1": "self.lazy.other",
    "self.memo = 1": "self.memo",
    "kept().append(1)": "kept",
    "counted()": "counted.n",
    "default()": "default[0]",
    "keyword()": "keyword['seen']['n']",
    "global TOTAL; TOTAL += 1": "TOTAL",
    "TICKET.__next__()": "TICKET",
    "LETTERS.read(1)": "LETTERS",
    "VARIABLE.set(1)": "VARIABLE",
    "BYTES[0] += 1": "BYTES",
    "NUMBERS[0] += 1": "NUMBERS",
    "TREE['a'][0]['b'].n += 1": "TREE['a'][0]['b'].n",
    "ORDER.move_to_end(0)": "ORDER",
    "QUEUE.rotate(1)": "self.push",
    "CALLS()": "CALLS.n",
    "helpers.N += 1": "N",
    "helpers.bump()": "N",
    "type(self).names = ('n', 'm')": "M.names",
    "M.help.seen = 1": "help.seen",
    "Inner.kind = 1": "Inner.kind",
    "helpers.deep.more.LOG.append(1)": "LOG",
}
HELPERS = "from package import deep\nN = 0\n\n\ndef bump():\n    global N\n    N += 1\n    return N\n"


def written(folder: Path, body: str, kind: str = "action", use: str = "s.x = self.help()", name: str = "go") -> None:
    """Writes the model whose helper does this."""
    mark = "" if kind == "action" else "@action\n    def still(self, s):\n        s.x = 0\n"
    lines = textwrap.indent("\n".join([*body.split("; "), "return 1"]), " " * 8)
    text = HEAD.replace("{body}", lines).replace("{mark}", mark)
    (folder / "m.py").write_text(text.replace("{kind}", kind).replace("{use}", use).replace("{name}", name))
    (folder / "helpers.py").write_text(HELPERS)
    (folder / "package" / "deep").mkdir(parents=True)
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "deep" / "__init__.py").write_text("from package.deep import more\n")
    (folder / "package" / "deep" / "more.py").write_text("LOG = []\n")


@pytest.fixture(autouse=True)
def fresh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules beside the model are read anew for each test."""
    monkeypatch.syspath_prepend(folder)
    for name in ("helpers", "package", "package.deep", "package.deep.more"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(("body", "changed"), EFFECTS.items(), ids=list(EFFECTS))
def test_what_a_helper_changes_is_named(body: str, changed: str, streamproof: Any, folder: Path) -> None:
    """In slots, cells, nested objects, containers, functions, classes, modules and what only a type knows."""
    written(folder, body)
    done = streamproof("check", "m.py")
    assert done.code == 150, done
    assert f"reading go() changed {changed}\n" in done.err


@pytest.mark.parametrize(
    ("kind", "use"), [("invariant", "return self.help() == 1"), ("reachable", "return self.help() == 1")]
)
def test_properties_change_nothing(kind: str, use: str, streamproof: Any, folder: Path) -> None:
    """Theirs are read once: what they change would be seen by the next rule only."""
    written(folder, "self.slots.n += 1", kind, use)
    done = streamproof("check", "m.py")
    assert done.code == 150
    assert "reading go() changed self.slots.n" in done.err


FINE = {
    "one = Inner(); one.n += 1": "an object of its own",
    "self.lazy.log": "a cached property",
    "kept()": "a cached function",
    "self.slots.n = 0": "the value that it had",
    "self.outer.inner.n = int('0')": "an equal number",
    "import package.deep.more": "an import",
    "import email.mime.text": "an import of the standard library",
    "rows = [[0] * 3]; rows[0][1] = 2": "a list of its own",
    "sorted(ORDER, key=lambda k: -k)": "a function of its own",
}


@pytest.mark.parametrize("body", FINE, ids=FINE.values())
def test_what_changes_nothing_is_accepted(body: str, streamproof: Any, folder: Path) -> None:
    """What a helper makes itself, and results that are remembered."""
    written(folder, body)
    done = streamproof("check", "m.py", "--explore-only")
    assert done.code == 0, done


def test_too_much_to_look_at_is_refused(streamproof: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change among what is not looked at would go unnoticed."""
    monkeypatch.setattr("streamproof.language.lower.mutation_guard.MOST", 10_000)
    written(folder, "len(ORDER)")
    text = (folder / "m.py").read_text()
    (folder / "m.py").write_text(text.replace("TOTAL = 0", "TOTAL = 0\nTABLE = [[n] for n in range(20_000)]"))
    done = streamproof("check", "m.py")
    assert done.code == 150
    assert "functions of the model can reach more than 10,000 objects" in done.err
