"""The symbolic engine and the interpreter give the same verdicts, at the same depths, on random systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from random_systems import random_system
from streamproof.symbolic.goals import ENDLESS
from streamproof.symbolic.proof import prove
from streamproof.system import Expr, Kind, Property, State, System, Verdict
from streamproof.system import build as b
from streamproof.system.reference import reference

DEPTH = 7
"""Steps that the engine is asked to cover; most random systems are exhausted before."""


@pytest.mark.parametrize(
    ("integers", "systems", "counts"),
    [
        (False, 40, {"violated": 41, "holds": 45, "inconclusive": 28, "error": 22, "after two steps or more": 8}),
        pytest.param(
            False,
            120,
            {"violated": 112, "holds": 139, "inconclusive": 110, "error": 70, "after two steps or more": 21},
            marks=pytest.mark.long,
        ),
        (True, 40, {"violated": 41, "holds": 45, "inconclusive": 28, "error": 22, "after two steps or more": 8}),
    ],
    ids=["bit-vectors", "more bit-vectors", "integers"],
)
def test_bounded_search_finds_what_breadth_first_search_finds_and_as_early(
    panel: Any, integers: bool, systems: int, counts: dict[str, int]
) -> None:
    """Verdict and length of the shortest behaviour agree for each property that is decided within the depth."""
    seen: Counter[str] = Counter()
    for seed in range(systems):
        result = panel.interpreter_result(random_system(Random(seed)))
        opinion = panel.bounded(result.system, DEPTH, integers=integers)
        result.compare(opinion)
        for answer in opinion.answers.values():
            seen[answer.verdict.value] += 1
            seen["after two steps or more"] += answer.length is not None and answer.length > 2
    assert seen == counts


@pytest.mark.push
@pytest.mark.parametrize(
    ("systems", "counts"),
    [
        (
            40,
            {"holds": 48, "violated": 35, "error": 21, "inconclusive": 8, "confirmed": 21}
            | {"induction of two steps or more": 3},
        ),
        pytest.param(
            80,
            {
                "holds": 100,
                "violated": 66,
                "error": 47,
                "inconclusive": 13,
                "confirmed": 41,
                "induction of two steps or more": 3,
            },
            marks=pytest.mark.long,
        ),
    ],
    ids=["few", "more"],
)
def test_a_proof_never_contradicts_the_search_of_all_states(expect: Any, systems: int, counts: dict[str, int]) -> None:
    """What induction or the search beside it decides is what exhaustive search decides; proofs are confirmed."""
    seen: Counter[str] = Counter()
    for seed in range(systems):
        system = random_system(Random(seed))
        answers = expect(system)
        proof = prove(system, depth=3, max_k=3)
        for finding in proof.findings:
            if finding.kind is not Kind.TERMINATION:
                seen[finding.verdict.value] += 1
                if finding.verdict is not Verdict.INCONCLUSIVE:
                    assert finding.verdict in answers[finding.property].verdicts, seed
        assert proof.confirmed in (True, None), seed
        seen["confirmed"] += proof.confirmed is True
        seen["induction of two steps or more"] += proof.strength > 1
    assert seen == counts


@pytest.mark.parametrize(
    ("systems", "counts"),
    [
        (
            50,
            {"all states": 13, "all states, proved": 12, "all but one": 17, "used": 3, "dropped": 25}
            | {"holds": 35, "violated": 25, "error": 4, "inconclusive": 7},
        ),
        pytest.param(
            100,
            {"all states": 26, "all states, proved": 24, "all but one": 28, "used": 6, "dropped": 39}
            | {"holds": 73, "violated": 43, "error": 5, "inconclusive": 11},
            marks=pytest.mark.long,
        ),
    ],
    ids=["few", "more"],
)
def test_lemmas_are_never_believed(expect: Any, systems: int, counts: dict[str, int]) -> None:
    """With lemmas, true ones or not, no verdict on them or on the rest becomes wrong.

    Every second property is a lemma, and what is known of the reachable states: all of them are listed, or all but the last.
    """
    seen: Counter[str] = Counter()
    for seed in range(systems):
        system = random_system(Random(seed))
        found = reference(system)
        states = [state for level in found.levels for state in level]
        claims = [p for p in system.properties if p.kind not in ENDLESS]
        if found.mistake is not None or not claims or not 1 < len(states) <= 30:
            continue
        missing = seed % 2 == 1
        reached = Property("reached", Kind.INVARIANT, one_of(system, states[:-1] if missing else states))
        lemmas = (reached, *[p for p in claims if p.kind in (Kind.INVARIANT, Kind.STEP)][1::2])
        rest = tuple(p for p in claims if p not in lemmas)
        answers = expect(replace(system, properties=(*rest, *lemmas)))
        proof = prove(replace(system, properties=rest, lemmas=lemmas), depth=2, max_k=1)
        for finding in (*proof.findings, *proof.lemmas):
            if finding.verdict is not Verdict.INCONCLUSIVE:
                assert finding.verdict in answers[finding.property].verdicts, seed
        assert {*proof.used, *proof.dropped} <= {p.name for p in lemmas}
        assert not {*proof.used} & {*proof.dropped}
        seen["all states" if not missing else "all but one"] += 1
        seen["all states, proved"] += not missing and "reached" not in proof.dropped
        seen["used"] += len(proof.used)
        seen["dropped"] += len(proof.dropped)
        seen.update(finding.verdict.value for finding in proof.findings)
    assert seen == counts


def one_of(system: System, states: Sequence[State]) -> Expr:
    """The state is one of these."""
    return b.or_(
        b.and_(
            b.eq(b.var(v.name, v.sort), b.const(v.sort, value))
            for v, value in zip(system.variables, state, strict=True)
        )
        for state in states
    )
