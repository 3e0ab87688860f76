"""Random rules that replace containers amid expressions mean what plain Python makes of them, or are refused.

The other evaluation is CPython's own, on lists, sets and objects; that an assignment to the state copies what it is given
is all that is added. `Native` is compared as well.
"""

from __future__ import annotations

import random
import textwrap
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.agreement.test_random_rules import Writer, anything, compiled, indent

from loading import load
from streamproof.language.native.native import Native
from streamproof.system import Interpreter, ModelError

HEAD = """
from streamproof import *

class Random(Model):
    check_deadlock = False

    def state(self):
        pair = Array(2, Range(0, 300))
        return State(
            a=Range(0, 300), x=pair, y=pair, rows=Array(2, pair), r=Record(n=Range(0, 300), v=pair), f=Set(Range(0, 2)),
            g=Set(Range(0, 2)), q=Queue(Range(0, 2), capacity=12), o=Option(Range(0, 2)),
        )

    def reset(self, s):
        s.x = [1, 2]
        return 1

    def poke(self, s):
        s.x[0] = 2
        s.f.add(2)
        return 0

    def swap(self, s):
        s.x, s.y = s.y, s.x
        return 2

    def turn(self, s):
        s.rows[0] = s.x
        s.r = {"n": 1, "v": s.y}
        return 1

    def drop(self, s):
        s.q, s.f = [], {1}
        return 0

    def perhaps(self, s):
        if s.a > 1:
            s.y = [0, 1]
        return 1

    def first(self, pair, n):
        return pair[n % 2]

    def row(self, s, n):
        return s.rows[n % 2]
"""


class Replacing(Writer):
    """Writes rules about pairs of numbers (`c`), sets (`e`) and numbers (`n`); the state's numbers stay in their domains."""

    def n(self, depth: int) -> str:
        """A number."""
        small = self.pick("0", "1", "2", "s.a", "s.x[0]", "s.y[1]", "s.r.n", "len(s.q)", "len(s.f)", *self.numbers)
        if depth == 0 or self.chance(3):
            return f"({small})"
        n, c, e = self.n(depth - 1), self.c(depth - 1), self.e(depth - 1)
        call = self.pick("reset", "poke", "swap", "turn", "drop", "perhaps")
        return self.pick(
            *[f"self.{call}(s)"] * 3,
            *(f"{c}[{n} % 2]", f"sum({c}, {n})", f"sum({c})", f"self.first({c}, {n})", f"self.first(n={n}, pair={c})"),
            *(f"(lambda p, k: p[0] + k)({c}, {n})", f"(1 if {c} == {self.c(depth - 1)} else {n})", f"max({c}[1], {n})"),
            *(f"(1 if {n} in {c} else 0)", f"(2 if {n} % 3 in {e} else 1)", f"len({e} | {self.e(0)})", f"sum({e})"),
            *(f"sum(u * v for u, v in zip({c}, {self.c(depth - 1)}))", f"sum(v + {n} for v in {c})", f"min({c})"),
            *(
                f"sum(reversed({c}), {n})",
                f"sum((v + {n} for v in {c}), {self.n(0)})",
                f"max((v for v in {c}), default={n})",
            ),
            f"sum(v + k for (_, v), k in zip(enumerate({c}), [{n}, 1]))",
            *(f"{{0: {c}, 1: {self.c(0)}}}[0][1]", f"[{c}, {n}][0][0]", f"(1 if any(v == {n} for v in {c}) else 2)"),
            *(f"sum(v for v in (s.o, {n}) if v is not None)", "max(v for v in (s.o, s.r.n, s.o) if v is not None)"),
            *(f"len({{v for v in (s.o, {n}) if v is not None}})", f"({n} + {self.n(depth - 1)}) % 3"),
        )

    def c(self, depth: int) -> str:
        """A pair of numbers."""
        small = self.pick("s.x", "s.y", "s.rows[0]", "s.rows[1]", "s.r.v", *self.pairs)
        if depth == 0 or self.chance(2):
            return small
        n = self.n(depth - 1)
        listed = f"[{n} % 3, {self.n(depth - 1)} % 3]"
        return self.pick(
            f"s.rows[{n} % 2]", f"self.row(s, {n})", listed, f"(s.x if {n} > 1 else s.y)", f"list({small})", listed
        )

    def e(self, depth: int) -> str:
        """A set."""
        if depth == 0 or self.chance(2):
            return self.pick("s.f", "s.g", *self.sets)
        n, rest = self.n(depth - 1), self.e(depth - 1)
        return self.pick(f"{{{n} % 3, 1}}", f"({rest} {self.pick('|', '&', '-')} {self.e(0)})", "(s.g | {0})")

    def lines(self, depth: int) -> list[str]:
        """A statement."""
        n, c, e, other = self.n(2), self.c(2), self.e(1), self.c(1)
        where = self.pick("s.x", "s.y", "s.rows[0]", f"s.rows[{self.n(1)} % 2]", "s.r.v")
        t, f = self.name("t"), self.name("f")
        kinds = (
            "number pair name swap nested mixed rows element augmented record set sets kept held queue option if for"
        )
        match self.pick(*kinds.split()):
            case "number":
                return [f"s.a = {n} % 3"]
            case "pair":
                return [f"{where} = {c}"]
            case "name":
                self.pairs.append(t)
                return [f"{t} = {c}"]
            case "swap":
                return [f"{where}, {self.pick('s.x', 's.r.v', 's.rows[1]')} = {c}, {other}"]
            case "nested":
                return [f"{where}, (s.y, s.a) = {c}, ({other}, {n} % 3)"]
            case "mixed":
                self.pairs.append(t)
                return [
                    self.pick(
                        f"s.x[0], s.x, s.y = {n} % 3, {c}, s.x",
                        f"{t}, s.x = s.x, {c}",
                        f"s.rows[0], s.rows, (s.a, s.r.n) = {c}, [{other}, s.x], s.rows[0]",
                        f"(s.a, s.x), {t} = ({n} % 3, {other}), {c}",
                        f"s.y, s.x[{n} % 2] = s.x, 1",
                    ),
                    *([f"{t} = s.y"] if self.chance(2) else [f"s.a = 1\nif s.a == 2:\n    {t} = s.x"]),
                ]
            case "rows":
                return [self.pick(f"s.rows = [{c}, {other}]", "s.rows[0], s.rows[1] = s.rows[1], s.rows[0]")]
            case "element":
                return [f"{self.pick('s.x', 's.rows[1]', 's.r.v', *self.pairs)}[{n} % 2] = {self.n(1)} % 3"]
            case "augmented":
                return [f"{self.pick('s.x[0]', 's.rows[0][1]', 's.r.n', 's.y[s.a % 2]')} += {n} % 3"]
            case "record":
                return [f's.r = {{"n": {n} % 3, "v": {c}}}']
            case "set":
                self.sets.append(t)
                return [f"{t} = s.f", self.pick(f"s.f = {e}", f"s.f |= {{{n} % 3}}", f"s.g.add({n} % 3)")]
            case "sets":
                return [f"s.f, s.g = {self.e(1)}, {e}"]
            case "kept":
                self.numbers.append(f"{f}()")
                return [self.pick(f"{f} = lambda old={c}: old[0]", f"def {f}(old={c}):\n    return sum(old)")]
            case "held":
                self.numbers.append(f"{f}()")
                return [f"{t} = {c}", f"{f} = lambda: {t}[1]"]
            case "queue":
                push = [f"{f} = s.q.push", f"s.a = {n} % 3", f"{f}({self.n(1)} % 3)"]
                return [self.pick(f"s.q = [{n} % 3]", f"s.q.push({n} % 3)", "\n".join(push))]
            case "option":
                return [self.pick(f"s.o = {n} % 3", "s.o = None", "s.f = {v for v in (s.o, 1) if v is not None}")]
            case "if" if depth:
                return [f"if {n} > 1:", *indent(self.block(depth - 1)), "else:", *indent(self.block(depth - 1))]
            case "for" if depth:
                return [f"for v in {c}:", *indent([f"s.a = (v + {n}) % 3", *self.block(depth - 1)])]
        return [f"s.r.n = {n} % 3"]

    def block(self, depth: int) -> list[str]:  # type: ignore[override]
        """Some statements, after which what they name is not known."""
        names = list(self.numbers), list(self.pairs), list(self.sets)
        made = [line for _ in range(self.pick(1, 2)) for line in "\n".join(self.lines(depth)).split("\n")]
        self.numbers, self.pairs, self.sets = names
        return made

    numbers: list[str]
    pairs: list[str]
    sets: list[str]


@st.composite
def rules(draw: Any) -> str:
    """The source of a model with one random rule."""
    writer = Replacing(draw)
    writer.numbers, writer.pairs, writer.sets = [], [], []
    body = "\n".join(line for _ in range(draw(st.integers(1, 4))) for line in writer.lines(1))
    rule = "@action\ndef rule(self, s):\n" + textwrap.indent(body, "    ")
    return HEAD + "\n" + textwrap.indent(rule, "    ") + "\n"


class Pair(list[Any]):
    """A list that copies what is put into it."""

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(at, own(value))


class Fields:
    """An object that copies what its attributes get; `queues` are its attributes that are queues."""

    def __init__(self, queues: tuple[str, ...] = (), **given: Any) -> None:
        object.__setattr__(self, "queues", queues)
        for name, value in given.items():
            setattr(self, name, value)

    queues: tuple[str, ...]

    def __setattr__(self, name: str, value: Any) -> None:
        if value is not vars(self).get(name, self):  # s.f |= {1} puts the same set back
            object.__setattr__(self, name, Queue(value) if name in self.queues else own(value))


class Queue(list[Any]):
    """A queue, which nothing leaves."""

    push = list.append


def own(value: Any) -> Any:
    """A copy of what is assigned to the state."""
    if isinstance(value, dict | Fields):
        return Fields(**{n: v for n, v in (value if isinstance(value, dict) else vars(value)).items() if n != "queues"})
    return Pair(map(own, value)) if isinstance(value, list) else deepcopy(value)


def plain(names: list[str], state: tuple[Any, ...]) -> Fields:
    """A state in plain Python's own objects."""
    now = dict(zip(names, state, strict=True))
    listed = {n: [*map(list, now[n])] if n == "rows" else list(now[n]) for n in ("x", "y", "rows", "q")}
    record = {"n": now["r"][0], "v": list(now["r"][1])}
    return Fields(("q",), **now | listed | {"r": record, "f": set(now["f"]), "g": set(now["g"])})


def frozen(names: list[str], s: Fields) -> tuple[Any, ...]:
    """That state as a tuple again."""
    now = {n: getattr(s, n) for n in names}
    now |= {n: tuple(now[n]) for n in ("x", "y", "q")} | {"f": frozenset(now["f"]), "g": frozenset(now["g"])}
    return tuple((now | {"rows": tuple(map(tuple, now["rows"])), "r": (now["r"].n, tuple(now["r"].v))}).values())


def compare(source: str, folder: Path, stats: dict[str, int]) -> None:
    """Lower a rule, and run it in random states of three kinds: of the system, of `Native`, of plain Python."""
    kind = load(source, folder).Random
    system = compiled(kind)
    stats["rules"] += 1
    if isinstance(system, ModelError):
        assert system.loc is not None, source
        assert system.remedy, source
        stats["replaced"] += "refers to a container" in system.message
        stats["refused"] += 1
        return
    interpreter, model, rng = Interpreter(system), kind(), random.Random(source)
    names = [v.name for v in system.variables]
    for _ in range(6):
        state = tuple(
            small(anything(v.sort, rng))[:2] if v.name == "q" else small(anything(v.sort, rng))
            for v in system.variables
        )
        s = plain(names, state)
        kind.rule(model, s)
        wanted = frozen(names, s)
        shown = f"{dict(zip(names, state, strict=True))}\n{source[len(HEAD) :]}"
        assert interpreter.take(system.instances[0], state) == wanted, shown
        assert Native(model).step(state, "rule") == wanted, shown


def small(value: Any) -> Any:
    """A value whose numbers are 0, 1 and 2."""
    if isinstance(value, tuple | frozenset):
        return type(value)(map(small, value))
    return value % 3 if isinstance(value, int) else value


def check(folder: Path, examples: int) -> None:
    """Compare so many random rules, and see that enough of them were read and enough refused."""
    stats = dict.fromkeys(("rules", "refused", "replaced"), 0)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(rules())
    def run(source: str) -> None:
        compare(source, folder, stats)

    run()
    assert stats["rules"] - stats["refused"] > examples // 4, stats
    assert stats["replaced"] >= examples // 100, stats


@pytest.mark.long
def test_random_rules_that_replace_containers(tmp_path: Path) -> None:
    """60 of them: the same next state as in plain Python."""
    check(tmp_path, 60)


@pytest.mark.long
def test_many_random_rules_that_replace_containers(tmp_path: Path) -> None:
    """4,000 of them: the same next state as in plain Python."""
    check(tmp_path, 4_000)
