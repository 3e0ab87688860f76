"""Random models with free parameters: a protocol whose properties are mostly inductive, and conditions that break it at
special values of its parameters, written in hostile or in plain Python."""

from __future__ import annotations

import importlib.util
import random
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from streamproof import Model

from .parametric_families import FAMILIES, Draft
from .parametric_lies import IMPORTS, SUPPORT, Lie, lie, written_as

HEAD = f'''"""A random model."""
{IMPORTS}
from streamproof import (
    ANY, Array, Bool, Enum, Int, Model, Nat, Option, Range, Record, State, action, choose, initially, invariant, lemma,
    require, step, terminal,
)
'''


@dataclass(frozen=True)
class Drawn:
    """A model: its source, its free parameters with their limits, and the conditions in it."""

    seed: int
    family: str
    source: str
    free: dict[str, tuple[int | None, int | None]]
    defaults: dict[str, int]
    given: dict[str, int]
    """The parameters that are not free, at their defaults."""
    lies: tuple[Lie, ...]
    variant: str | None = None

    def values(self, most: int = 20) -> list[dict[str, int]]:
        """Values of the free parameters at which the model is searched: where a condition is true, near that, small
        ones, and random ones."""
        chance = random.Random(self.seed)
        found = [self.defaults]
        for told in self.lies:
            found += _where(told, self, chance)
        least = {name: low if low is not None else -2 for name, (low, _) in self.free.items()}
        for total in range(4):
            for first in self.free:
                found.append({**least, first: least[first] + total})
                found.append({name: low + total for name, low in least.items()})
        while len(found) < 3 * most:
            found.append({name: low + chance.randrange(7) for name, low in least.items()})
        kept = [self._inside(v) for v in found]
        return list({tuple(v.values()): v for v in kept}.values())[:most]

    def _inside(self, values: dict[str, int]) -> dict[str, int]:
        return {n: self.clamped(n, v) for n, v in values.items()}

    def clamped(self, name: str, value: int) -> int:
        """The nearest number within the limits of a parameter."""
        low, high = self.free[name]
        value = value if low is None else max(low, value)
        return value if high is None else min(high, value)

    def is_special(self, values: dict[str, int]) -> bool:
        """Whether one of the conditions is true at these values."""
        every = _Values({**self.given, **values})
        return any(eval(told.subject, {"self": every}) in told.special for told in self.lies)

    def load(self, folder: Path) -> type[Model]:
        """The model's class, from a file of its own."""
        path = folder / f"parametric_{self.seed}.py"
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
        made: type[Model] = module.Drawn
        return made


def smallest(test: str, site: str, number: str, special: int) -> Drawn:
    """The smallest model with one condition, stated as never true; `number` is how the special value is written."""
    told = written_as(test, site, 0, "self.n", (special,), number)
    draft = Draft(random.Random(0))
    draft.parameter("n", 2, 0)
    draft.state.append("x = Range(0, 1)")
    draft.action("flip", "", "s.x = 1 - s.x")
    draft.invariant("never", f"not {told.condition}")
    draft.invariant("bounded", f"s.x <= (2 if {told.condition} else 1) and s.x >= (1 if {told.condition} else 0)")
    source = _assembled(draft, [told], (special,))
    return Drawn(special, "smallest", source, {"n": (0, None)}, {"n": 2}, {}, (told,))


def _where(told: Lie, drawn: Drawn, chance: random.Random) -> list[dict[str, int]]:
    """Values at which a condition is true, and neighbours."""
    names = [n for n in re.findall(r"self\.(\w+)", told.subject) if n in drawn.free]
    if not names:
        return []
    found: list[dict[str, int]] = []
    for _ in range(60):
        one = {name: drawn.clamped(name, chance.randrange(-3, 15)) for name in drawn.free}
        found += [{**one, names[0]: drawn.clamped(names[0], n)} for n in range(-6, 20)]
    space = [(eval(told.subject, {"self": _Values({**drawn.given, **v})}), v) for v in found]
    true = sorted(
        (sum(map(abs, v.values())), *v.values(), at) for at, (value, v) in enumerate(space) if value in told.special
    )
    chosen = [space[row[-1]][1] for row in (*true[:3], *true[len(true) // 2 :][:1])]
    near = [{**v, names[0]: v[names[0]] + by} for v in chosen[:1] for by in (1, -1)]
    return [*chosen, *near]


class _Values:
    def __init__(self, values: dict[str, int]) -> None:
        self.__dict__.update(values)


def draw(seed: int, *, hostile: bool) -> Drawn:
    """The model of a seed; without hostile Python if not `hostile`."""
    chance = random.Random(seed * 2 + hostile)
    family = chance.choice(FAMILIES)
    draft = Draft(chance)
    family(draft)
    special = _special(chance, draft)
    many = chance.choice([1, 1, 2]) if hostile else chance.choice([0, 0, 1])
    lies = [lie(chance, k, _subject(chance, draft), special, hostile) for k in range(many)]
    slots = chance.sample(range(len(draft.slots)), min(len(lies), len(draft.slots)))
    texts = {at: plain for at, (_, plain, _) in enumerate(draft.slots)}
    for at, told in zip(slots, lies, strict=True):
        kind, _, lying = draft.slots[at]
        if kind == "first" and not hostile:
            continue  # ordinary Python cannot decide by a free parameter
        texts[at] = lying.replace("{lie}", told.condition)
    source = _assembled(draft, lies, special)
    source = re.sub(r"<<(\d+)>>", lambda m: texts[int(m[1])], source)
    free = {name: limits for name, (_, limits) in draft.parameters.items()}
    if len(free) > 1 and chance.random() < 0.25:
        fixed = chance.choice([n for n in free if n in ("k", "m", "slack", "floating", "width")] or [""])
        free.pop(fixed, None)
    defaults = {name: draft.parameters[name][0] for name in free}
    given = {name: default for name, (default, _) in draft.parameters.items() if name not in free}
    variant = chance.choice([None, "second"]) if draft.varied else None
    return Drawn(seed, family.__name__, source, free, defaults, given, tuple(lies), variant)


def _special(chance: random.Random, draft: Draft) -> tuple[int, ...]:
    first = chance.choice([3, 4, 5, 6, 8, 8, 9, 12])
    return (first, *chance.sample([7, 10, 11, 13], chance.choice([0, 0, 1])))


def _subject(chance: random.Random, draft: Draft) -> str:
    names = [f"self.{n}" for n in draft.parameters]
    one, other = chance.choice(names), chance.choice(names)
    forms = [one, one, one, one, f"{one} + {other}", f"{one} + 1", f"2 * {one}", f"{one} * {other}"]
    return chance.choice([*forms, f"{one} - {other} + 5"] if one != other else forms)


def _assembled(draft: Draft, lies: list[Lie], special: tuple[int, ...]) -> str:
    parts = [HEAD]
    text = "".join(told.module + told.members for told in lies)
    if re.search(r"\b_(?=[A-Za-z])", text) or any("_number" in told.condition for told in lies):
        parts.append(SUPPORT.format(n=special[0]))
    parts += [f"\n{told.module}\n" for told in lies]
    body = [f"{name}: int = {default}" for name, (default, _) in draft.parameters.items()]
    limits = {name: limits for name, (_, limits) in draft.parameters.items() if limits != (None, None)}
    body += [f"limits = {limits!r}", f"check_deadlock = {draft.deadlock}", ""]
    setup = [*draft.setup, *(told.setup for told in lies if told.setup)]
    if setup:
        body.append("def setup(self):\n" + textwrap.indent("\n".join(setup), "    ") + "\n")
    names = [line.split(" = ")[0] for line in draft.state]
    body.append("def state(self):\n" + textwrap.indent("\n".join(draft.state), "    "))
    fields = ", ".join(f"{n}={n}" for n in names if n not in ("each", "top"))
    body.append(f"    return State({fields})\n")
    body += [told.members for told in lies if told.members]
    members = list(draft.members)
    body += members
    parts.append("\nclass Drawn(Model):\n" + textwrap.indent("\n".join(body), "    "))
    if draft.varied:
        parts.append("\n\nclass Second(Drawn, variant='second'):\n" + textwrap.indent(draft.varied, "    "))
    return "\n".join(parts) + "\n"
