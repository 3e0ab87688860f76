"""Random compositions with free parameters, as source text: parts with parameters, joint actions, shared variables.

The parts of a joint action often fail (a value leaves its range, an absent option is read) in states that the guard of
another part excludes.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from dataclasses import dataclass
from pathlib import Path

from streamproof import Model

HEAD = '''"""A random composition."""
from streamproof import (
    Array, Bool, Enum, Model, Option, Parts, Range, Record, State, action, choose, each, initially, invariant, part,
    require, step, terminal,
)
'''


@dataclass(frozen=True)
class Composition:
    """The source of a model, and its free parameters."""

    seed: int
    source: str
    free: tuple[str, ...]

    def load(self, folder: Path) -> type[Model]:
        """The model's class, from a file of its own."""
        path = folder / f"composition_{self.seed}.py"
        path.write_text(self.source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.modules[path.stem]
        made: type[Model] = module.Whole
        return made


class _Draft:
    """The text of one composition in the making."""

    def __init__(self, seed: int, careful: bool) -> None:
        self.chance = random.Random(seed)
        self.careful = careful
        self.indexed = self.chance.random() < 0.3
        """Whether the parts have arrays of any length, and their actions an index."""
        self.shared = self.chance.random() < 0.4

    def condition(self) -> str:
        """A condition on the state of a part; some fail in some states."""
        found = [
            "s.x > 0",
            "s.x < self.room",
            "s.on",
            "not s.on",
            "s.kind == 'A'",
            "s.seen is None",
            "s.x != self.room",
        ]
        found += ["s.x + s.y <= self.room", "s.seen is not None and s.seen < self.room", "s.y * 2 >= s.x"]
        found += ["self.low(s)"] if self.careful else ["s.seen >= 0", "not s.seen == s.x", "self.low(s)"]
        found += ["s.marks[i]", "not s.marks[i]"] * 2 if self.indexed else []
        found += ["s.common > 0", "s.common < 3"] if self.shared else []
        return self.chance.choice(found)

    def effect(self) -> str:
        """An assignment in a part; some fail in some states, unless the parts are careful."""
        if self.careful:
            found = ["s.on = not s.on", "s.kind = 'B'", "s.seen = s.x", "s.seen = None", "s.x = self.room - s.x"]
            found += ["s.y = s.x", "s.x = min(s.x + 1, self.room)", "s.x = max(s.x - 1, 0)", "s.x = choose([0, 1])"]
            found += ["s.on = choose(yes=True, no=False)", "s.kind = choose(['A', 'C'])"]
            return self.chance.choice([*found, *(["s.marks[i] = not s.marks[i]"] * 2 if self.indexed else [])])
        found = ["s.x += 1", "s.x -= 1", "s.y += s.x", "s.on = not s.on", "s.kind = 'B'", "s.seen = s.x"]
        found += ["s.seen = None", "s.x, s.y = s.y, s.x", "s.y = s.seen", "s.x = self.room - s.x", "self.more(s)"]
        found += ["s.x = choose([0, 1])", "s.kind = choose(['A', 'C'])", "s.x = s.seen + 1"]
        found += ["s.on = choose(yes=True, no=False)"]
        found += ["s.marks[i] = not s.marks[i]", "s.marks[i] = True"] if self.indexed else []
        return self.chance.choice(found)

    def rule(self, name: str, index: bool) -> list[str]:
        """An action of a part: guards and assignments, in any order, some of them under a condition."""
        chance = self.chance
        given = '(i="width")' if index else ""
        lines = [f"    @action{given}", f"    def {name}(self, s{', i' if index else ''}):"]
        body: list[str] = []
        for _ in range(chance.randint(1, 4)):
            text = f"require({self.condition()})" if chance.random() < 0.45 else self.effect()
            if chance.random() < 0.25:
                body += [f"if {self.condition()}:", f"    {text}"]
                body += ["else:", f"    {self.effect()}"] if chance.random() < 0.4 else []
            else:
                body.append(text)
        if chance.random() < 0.3:
            body.append(f"require({self.condition()})")
        if not index:
            body = [line.replace("s.marks[i]", "s.on") for line in body]
        return [*lines, *(f"        {line}" for line in body or ["pass"])]

    def part(self, name: str, parts: str = "") -> list[str]:
        """A machine with the parameters `room` and `width`."""
        chance = self.chance
        variables = [
            f"x=Range(0, self.room{chance.choice(['', ', init=self.room', ', init=0'])})",
            "y=Range(0, self.room + 1)",
            f"on=Bool(init={chance.random() < 0.5})",
            "kind=Enum('A', 'B', 'C')",
            "seen=Option(Range(0, self.room))",
        ]
        variables += ["marks=Array(self.width, Bool())"] if self.indexed else []
        variables += ["common=Range(0, 4)"] if self.shared else []
        lines = [f"class {name}(Model):", "    room: int = 2", "    width: int = 2", "    check_deadlock = False", ""]
        lines += ["    def state(self):", f"        return State({', '.join(variables)})", ""]
        lines += ["    def low(self, s):", "        return s.x <= s.y", ""]
        lines += ["    def more(self, s):", "        s.y += 1", ""]
        for at, index in enumerate((self.indexed, False, self.indexed and chance.random() < 0.5)):
            lines += [*self.rule(f"a{at}", index), ""]
        if self.shared:
            lines += [
                "    @action",
                "    def shares(self, s):",
                "        require(s.common < 4)",
                "        s.common += 1",
                "",
            ]
        lines += ["    @invariant", "    def within(self, s):", f"        return {chance.choice(INVARIANTS)}", ""]
        return lines


INVARIANTS = [
    "s.x <= self.room", "s.y <= self.room + 1", "s.x + s.y >= 0", "s.seen is None or s.seen <= self.room",
    "s.on or s.x >= 0", "s.kind != 'C' or s.x <= self.room",
]  # fmt: skip


def composition(seed: int, *, careful: bool = False) -> Composition:
    """A random composition of two or three parts, one of which may itself have parts; `careful`: no rule fails."""
    draft = _Draft(seed, careful)
    chance = draft.chance
    room = chance.choice(["self.depth", "self.depth + 1", "self.depth", "2 * self.depth"])
    lines = [HEAD, *draft.part("One"), *draft.part("Two")]
    family = chance.random() < 0.35
    parts = [f"one=One(room={room}, width=self.width)"]
    if family:
        parts.append("two=each(range(2), lambda k: Two(room=self.depth, width=self.width))")
    elif chance.random() < 0.3:
        parts.append("two=part(Two(room=self.depth, width=self.width), rename={'a1': 'renamed'})")
    else:
        parts.append("two=Two(room=self.depth, width=self.width)")
    renamed = "rename=" in parts[1]
    second = {"a0": "a0", "a1": "renamed" if renamed else "a1", "a2": "a2"}
    nested = chance.random() < 0.3
    if nested:
        lines += ["class Inner(Model):", "    depth: int = 2", "    width: int = 2", "    check_deadlock = False", ""]
        lines += ["    def parts(self):", f"        return Parts({', '.join(parts)})"]
        lines[-1] += _joints(draft, family, second, "inner")
        lines += ["", *draft.part("Third")]
        outer = ["inner=Inner(depth=self.depth, width=self.width)", "third=Third(room=self.depth, width=self.width)"]
        own = f"Parts({', '.join(outer)}).together('last', 'inner.join', 'third.a1')"
    else:
        own = f"Parts({', '.join(parts)})" + _joints(draft, family, second, "outer")
    lines += ["class Whole(Model):", "    depth: int = 2", "    width: int = 2"]
    lines += ['    limits = {"depth": (1, None), "width": (1, None)}', "    check_deadlock = False", ""]
    lines += ["    def parts(self):", f"        return {own}", ""]
    one = "s.inner.one" if nested else "s.one"
    lines += ["    @invariant", "    def whole(self, s):", f"        return {one}.x <= 2 * self.depth + 1", ""]
    lines += ["    @step", "    def steps(self, s, t):"]
    lines += [f"        return {one.replace('s.', 't.', 1)}.x - {one}.x <= 2 * self.depth + 1", ""]
    return Composition(seed, "\n".join(lines) + "\n", ("depth", "width") if draft.indexed else ("depth",))


def _joints(draft: _Draft, family: bool, second: dict[str, str], where: str) -> str:
    """The joint action `join`, and what else the composition says of its parts."""
    chance = draft.chance
    index = "[k]" if family else ""
    if draft.indexed and chance.random() < 0.5:
        text = f".together('join', 'one.a0(i)', 'two{index}.a0(i)')"
    elif family and chance.random() < 0.4:
        text = ".together('join', 'one.a1', 'two[0].a1', 'two[1].a1')"
    else:
        text = f".together('join', 'one.a1', 'two{index}.{second['a1']}')"
    if where == "outer" and not draft.indexed and chance.random() < 0.3:
        text += f".together('other', 'one.a2', 'two{index}.a2')"
    if draft.shared:
        text += ".share('common', 'one.common', 'two.common')"
    return text
