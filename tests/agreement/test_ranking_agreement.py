"""Proofs by ranking functions for every value of a parameter, of random models, against exhaustive search at small values."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

from shares import share
from streamproof import Spec
from streamproof.any.ranking import prove_by_ranking
from streamproof.base.errors import UsageError
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict

AT = range(8)
"""Values of the parameter that are searched."""
LONG = 200


def _text(seed: int) -> str:
    """A model that counts down, by rules with indices that they do not read, from ranges that may be empty."""
    chance = random.Random(seed)
    room = chance.choice(
        ["range(5 - self.n)", "range(self.n - 2)", "range(self.n, 4)", "range(self.n + 1)", "range(2)"]
    )
    fair = chance.choice(["WEAK", "WEAK", "STRONG"])
    size = chance.choice(["3", "self.n"])
    over = chance.choice([f"i=some, fairness={fair}", f"i=some, j='n', fairness={fair}", f"fairness={fair}"])
    names = "".join(f", {n}" for n in "ij" if f"{n}=" in over)
    refill = chance.choice(["", "", "    @action(i=some)\n    def refill(self, s, i):\n        s.x = 1\n\n"])
    reads = chance.choice(["", "", "", " and all(s.x >= i for i in range(self.n - 9))"])
    return f"""
from streamproof import *


class Random(Model):
    n: int = 1
    limits = {{"n": (0, None)}}
    check_deadlock = False

    def state(self):
        return State(x=Range(0, {size} + 1, init={size}), y=Bool())

    def some(self):
        return {room}

    @action({over})
    def dec(self, s{names}):
        require(s.x > 0{reads})
        s.x -= 1

    @action(i=some)
    def flip(self, s, i):
        require(s.x == 0)
        s.y = not s.y

{refill}    @temporal
    def done(self, s):
        return leads_to(s.x > 0, s.x == 0)

    @temporal
    def never_more(self, s):
        return leads_to(s.y, not s.y)

    @temporal
    def again(self, s):
        return always(eventually(s.x == 0))

    @temporal
    def none(self, s):
        return leads_to(s.x > 0, all(s.x != i for i in range(1, self.n + 1)))

    @temporal
    def some_value(self, s):
        return leads_to(s.x > 0, any(s.x == i for i in {room}))
"""


def _module(folder: Path, seed: int) -> ModuleType:
    path = folder / f"ranked_{seed}.py"
    path.write_text(_text(seed), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[path.stem]
    return module


def disagree(folder: Path, seed: int) -> tuple[int, int]:
    """How many properties are proved, and refused; asserts that no search at small values refutes a proof."""
    spec = Spec(_module(folder, seed).Random)
    system = spec.endless(["n"])
    proved, refused = [], 0
    for name in [p.name for p in system.system.properties if p.formula is not None]:
        try:
            found = prove_by_ranking(system, name, rank="x", seconds=20)
        except UsageError as error:
            refused += "range of free size" in error.message and error.loc is not None
        else:
            proved += [name] if found.finding.verdict is Verdict.HOLDS else []
    for n in AT if proved else ():
        found_at = explore(spec.system(n=n), SearchOptions(properties=proved, max_states=500))
        for name in proved:
            assert found_at.finding(name).verdict is Verdict.HOLDS, (seed, name, n, _text(seed))
    return len(proved), refused


@pytest.mark.parametrize(("systems", "proved", "refused"), share([(12, 3, 12), (24, 6, 24)], 2))
def test_what_has_a_rank_holds_at_every_value_searched(tmp_path: Path, systems: int, proved: int, refused: int) -> None:
    """Rules whose index has no value at some size count for nothing there."""
    seen = [disagree(tmp_path, seed) for seed in range(systems)]
    assert sum(found for found, _ in seen) >= proved
    assert sum(found for _, found in seen) >= refused


@pytest.mark.long
def test_many_with_a_rank(tmp_path: Path) -> None:
    """The same of many."""
    seen = [disagree(tmp_path, seed) for seed in range(1_000, 1_000 + LONG)]
    assert sum(proved for proved, _ in seen) >= 50
