"""The classical detectors of termination: what variants break, how early, and what each needs after the end."""

from __future__ import annotations

from typing import Any

import pytest

from shares import share
from streamproof import Spec
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.system import UsageError, Verdict
from streamproof_models.baton.costs import BatonCosts
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.huang import Huang
from streamproof_models.reference.mattern import Mattern

BROKEN: list[tuple[str, str, dict[str, int]]] = [
    ("reference.huang", "keeps-its-weight", {"detection_is_right": 1, "weight_is_conserved": 1}),
    ("reference.huang", "overwrites", {"weight_is_conserved": 2, "end_is_detected": 3}),
    ("reference.huang", "returns-early", {"detection_is_right": 4}),
    ("reference.mattern", "two-counters", {"detection_is_right": 8}),
    ("reference.mattern", "counts-the-active", {"detection_is_right": 6}),
    ("reference.mattern", "gives-up", {"end_is_detected": 10}),
]


@pytest.mark.parametrize(("model", "variant", "lengths"), BROKEN, ids=[f"{m}-{v}" for m, v, _ in BROKEN])
def test_variants_break_what_is_expected(model: str, variant: str, lengths: dict[str, int]) -> None:
    """These properties after so many steps, all others hold, as the specification expects."""
    spec = find(model).spec
    findings = explore(spec.system(variant)).findings
    broken = {f.property: len(f.trace.steps) for f in findings if f.verdict is Verdict.VIOLATED and f.trace}
    assert broken == lengths
    assert {f.property for f in findings if f.verdict is Verdict.HOLDS} == {f.property for f in findings} - set(lengths)
    assert {p for p, verdict in spec.expected[variant].items() if verdict == "violated"} == set(lengths)


def test_every_property_has_a_variant_that_breaks_it() -> None:
    """None of them is said to hold of whatever there is."""
    for model in ("reference.huang", "reference.mattern"):
        broken = {name for one, _, lengths in BROKEN if one == model for name in lengths}
        assert {p.name for p in find(model).properties()} == broken
        assert set(find(model).spec.model.variants) == {v for one, v, _ in BROKEN if one == model}


COSTS: list[tuple[Any, dict[str, Any], int]] = [
    *((Ewd840, {"n": n, "counted": 40}, 3 * n - 2) for n in (2, 3, 4, 5)),
    *((Ewd998, {"n": n, "most": 1, "counted": 40}, 3 * n - 2) for n in (2, 3)),
    *((Mattern, {"n": n, "messages": 2, "counted": 40}, 3 * n - 1) for n in (2, 3, 4)),
    *((Huang, {"n": 3, "shares": k, "leader_gets_work": False, "counted": 9}, k - 1) for k in (2, 4, 8)),
    (BatonCosts, {"topology": "self-loop"}, 2),
    (BatonCosts, {"topology": "loop"}, 4),
    (BatonCosts, {"topology": "loop", "work": 2}, 4),
    (BatonCosts, {"topology": "nested"}, 14),
]


@pytest.mark.parametrize(("model", "parameters", "most"), share(COSTS, 2), ids=lambda v: str(getattr(v, "__name__", v)))
def test_messages_after_the_end(model: Any, parameters: dict[str, Any], most: int) -> None:
    """The largest value of the counter in all states; one less is too little to count to."""
    assert largest(model, parameters) == most
    fewer = model.system(**{**parameters, "counted": most - 1}) if most > 1 else None
    assert fewer is None or explore(fewer, SearchOptions(properties=())).mistake is not None


def largest(model: Any, parameters: dict[str, Any]) -> int | None:
    """What `check` reports of the measure."""
    spec = Spec(model)
    explored = explore(spec.system(**parameters), SearchOptions(properties=()))
    (found,) = explored.measured(spec.measured(**parameters))[-1:]
    assert (found.name, found.exact) == ("messages_after_the_end", True)
    value: int | None = found.value
    return value


def test_nothing_is_counted_unless_asked_for() -> None:
    """Without `counted` there is no counter among the variables, and nothing to measure."""
    for model in (Ewd840, Ewd998, Huang, Mattern):
        system = model.system()
        assert "spent" not in [variable.name for variable in system.variables]
        assert Spec(model).measured() == ()


def test_shares_are_a_power_of_two() -> None:
    """What cannot be halved evenly is refused."""
    with pytest.raises(UsageError, match="shares is a power of two"):
        find("reference.huang").system(None, {"shares": 6})
