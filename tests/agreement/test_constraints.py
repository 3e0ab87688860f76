"""State constraints mean the same in every engine; `test_tlc_agreement` compares them with TLC's."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from random_constraints import corpus
from streamproof.agree import asking
from streamproof.system import Verdict
from streamproof.system.reference import reference


@pytest.mark.parametrize(
    ("seeds", "systems"),
    [(range(24), 10), pytest.param(range(24, 1000), 480, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_all_engines_agree(panel: Any, expect: Any, seeds: range, systems: int) -> None:
    """Counts, states, verdicts and lengths."""
    seen: Counter[str] = Counter()
    for system in corpus(seeds):
        referee = panel.interpreter_result(system)
        for opinion in (panel.explored(system, "python"), panel.explored(system, "compiled"), panel.bounded(system, 5)):
            referee.compare(opinion)
        proved = asking.proved(system, 5)
        allowed = expect(system)
        for name, answer in proved.answers.items():
            assert answer.verdict in {Verdict.INCONCLUSIVE, *allowed[name].verdicts}, (name, repr(system))
        seen["systems"] += 1
        seen["proved"] += any(a.verdict is Verdict.HOLDS for a in proved.answers.values())
    assert seen["systems"] >= systems
    assert seen["proved"] > systems // 3


@pytest.mark.parametrize(
    ("seeds", "systems"),
    [(range(20), 8), pytest.param(range(20, 1000), 480, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_formulas_concern_behaviours_inside(panel: Any, seeds: range, systems: int) -> None:
    """Temporal properties: the interpreter and both tiers agree, and the constraint decides some of them."""
    compared = changed = 0
    for system in corpus(seeds, temporal=True):
        assert system.constraint is not None
        referee = panel.interpreter_result(system)
        referee.compare(panel.explored(system, "python"))
        referee.compare(panel.explored(system, "compiled"))
        without = reference(system.constraint.free).decisions
        changed += any(without[name].verdict is not d.verdict for name, d in reference(system).decisions.items())
        compared += 1
    assert compared >= systems
    assert changed > systems // 6
