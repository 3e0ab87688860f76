"""Variables of `Nat` and `Int` within a constraint: a search finds what it finds with wide ranges in their place."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamproof import SearchOptions, check
from streamproof.model_registry import find

NESTED = {
    "box=Record(n=Nat(), f=Bool())": ["s.box.n += 1"],
    "arr=Array(2, Nat())": ["s.arr[1] += 1"],
    "q=Queue(Nat(), 2)": ["if len(s.q) < 2:", "    s.q.push(s.a)", "else:", "    s.q.pop()"],
    "o=Option(Nat())": ["s.o = None if s.o is not None else s.a"],
}
LIMITS = {"box": " and s.box.n < 3", "arr": " and s.arr[1] < 3"}


def written(seed: int) -> str:
    """The source of a random model."""
    draw = random.Random(seed)
    nested = draw.choice([*NESTED, ""])
    limit = LIMITS.get(nested.split("=")[0], "")
    names = ["a", "b", "c"]

    def number() -> str:
        one, other = draw.choice(names), draw.choice(names)
        return draw.choice([f"s.{one}", f"s.{one} + 1", f"s.{one} - s.{other}", f"s.{one} * s.{other}", f"s.{one} % 3"])

    def condition() -> str:
        return f"{number()} {draw.choice(['<', '<=', '==', '!=', '>='])} {draw.choice([number(), str(draw.randint(0, 4))])}"

    text = f"""
from streamproof import *

class Numbers(Model):
    check_deadlock = {draw.random() < 0.7}

    def state(self):
        return State(a=Nat(init={draw.randint(0, 2)}), b=Nat(), c=Int(init={draw.randint(-1, 1)}), {nested})

    @constraint
    def small(self, s):
        return s.a <= {draw.randint(2, 4)} and s.b < 4 and -4 <= s.c <= {draw.randint(1, 3)}{limit}

    @invariant
    def inv(self, s):
        return {condition()} or {condition()}

    @reachable
    def reach(self, s):
        return {condition()}

    @temporal
    def often(self, s):
        return {draw.choice(["eventually(%s)", "always(eventually(%s))", "eventually(always(%s))"]) % condition()}

    @temporal
    def then(self, s):
        return leads_to({condition()}, {condition()})
"""
    for at in range(draw.randint(2, 4)):
        one, other = draw.choice(names), draw.choice(names)
        changes = [
            f"s.{one}",
            f"s.{one} + 1",
            f"s.{one} - 1",
            f"s.{other} + 1",
            f"s.{one} * 2 + 1",
            str(draw.randint(0, 2)),
        ]
        text += f"\n    @action{draw.choice(['', '(fairness=WEAK)', '(fairness=STRONG)'])}\n    def act{at}(self, s):\n"
        text += f"        require({condition()})\n        s.{one} = {draw.choice(changes)}\n"
        if nested and draw.random() < 0.6:
            text += "".join(f"        {line}\n" for line in NESTED[nested])
    return text


def searched(source: str, folder: Path, **options: Any) -> tuple[Any, ...]:
    """What a search of the model finds."""
    file = folder / "numbers_within.py"
    file.write_text(source)
    found = check(find(f"{file}:Numbers").spec.model, options=SearchOptions(max_states=20_000, **options))
    findings = [
        (
            one.property,
            one.verdict,
            one.vacuous,
            one.within,
            re.sub(r"Range\(.*?\)", "Range", one.because).replace(str(file), ""),
            one.trace and (one.trace.states, [step.label for step in one.trace.steps], one.trace.loop),
        )
        for one in found.findings
    ]
    return found.counts, found.stopped, findings


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 300), marks=pytest.mark.long)], ids=["few", "many"])
def test_numbers_are_wide_ranges(seeds: range, tmp_path: Path) -> None:
    """Counts, verdicts, reasons and traces are those of a model with ranges."""
    seen = Counter[str]()
    for seed in seeds:
        source = written(seed)
        ranges = re.sub(r"Nat\((?:(init=.*?))?\)", lambda m: f"Range(0, 1_000_000, {m[1] or 'init=0'})", source)
        ranges = re.sub(r"Int\((init=.*?)\)", r"Range(-1_000_000, 1_000_000, \1)", ranges)
        assert "Nat(" not in ranges
        (tmp_path / f"n{seed}").mkdir()
        (tmp_path / f"r{seed}").mkdir()
        found = searched(source, tmp_path / f"n{seed}")
        assert found == searched(ranges, tmp_path / f"r{seed}"), source
        seen.update(f"{name} {verdict.value}" for name, verdict, *_ in found[2])
    if len(seeds) > 100:
        for name in ("inv", "reach", "often", "then", "deadlock"):
            assert min(seen[f"{name} holds"], seen[f"{name} violated"]) > 10, seen
