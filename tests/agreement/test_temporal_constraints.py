"""Within a constraint, a formula is violated by a fair behaviour that stays inside, or by a prefix inside that refutes it.

Brute force over words and walks, every engine, Spin and TLC have this one meaning, and a wrong reading is noticed.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from quick_tlc import QUICK as QUICK_TLC
from shares import share
from small_graphs import Drawn, drawn, is_bad, lassos, refuted_by, violates
from streamproof.agree import panel_engines
from streamproof.agree.comparing import differences
from streamproof.agree.interpreter_result import interpreter_result
from streamproof.base.options import SearchOptions
from streamproof.base.records import replace
from streamproof.certify.evidence import certify_search
from streamproof.certify.verifier import verify as verify_certificate
from streamproof.exchange.itf.reading import read_itf
from streamproof.exchange.itf.writing import write_itf
from streamproof.exchange.promela import spin
from streamproof.exchange.tla import tlc
from streamproof.exchange.tla.module import export
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.symbolic.liveness import prove_temporal
from streamproof.system import System, Verdict
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import Atom, Eventually, Formula, OrF, rewritten, untils, written
from streamproof.system.prefixes import may_contradict
from streamproof.system.reference import reference
from streamproof.system.reference_temporal import plain
from streamproof.system.verdict import Trace
from streamproof.traces.replay import ReplayError, verify
from streamproof.transform import constraint as constraints

QUICK_SPIN = spin.SpinOptions(hash_bits=16, depth=2_000_000, optimise="-O0", seconds=100)


# --- brute force


def _judge(graph: Drawn, seen: Counter[str], tier: str = "python") -> None:
    """The verdict of the search is the one of brute force, and its counterexample is one."""
    finding = explore(graph.system, SearchOptions(tier=tier)).finding("claim")
    if len({*untils(plain(graph.formula))}) < 4:  # its time doubles with each
        assert reference(graph.system).decisions["claim"].verdict is finding.verdict
        seen["reference"] += 1
    seen[finding.text()] += 1
    if finding.trace is None:
        found = next((lasso for lasso in lassos(graph, 5) if violates(graph, *lasso)), None)
        assert found is None
        if finding.verdict is Verdict.HOLDS:
            assert refuted_by(graph, 4) is None
        else:
            assert may_contradict(graph.formula)
        return
    verify(graph.system, "claim", finding.trace)
    walk = [state[0] for state in finding.trace.states]
    assert walk[0] in graph.initial
    assert set(walk) <= graph.inside
    assert all(then in (now, *graph.follow(now)) for now, then in pairwise(walk))
    if finding.trace.loop is None:
        seen["prefixes"] += 1
        assert is_bad(graph.formula, [graph.letters[state] for state in walk])
        assert not is_bad(graph.formula, [graph.letters[state] for state in walk[:-1]]) or len(walk) == 1
    else:
        seen["lassos"] += 1
        assert violates(graph, walk, finding.trace.loop)


@pytest.mark.push
@pytest.mark.parametrize("seeds", [range(150)])
def test_random_graphs(seeds: range) -> None:
    """States and steps are cut; both kinds of violation, and formulas that hold, occur."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        _judge(drawn(seed), seen)
    assert min(seen["prefixes"], seen["lassos"], seen["holds within the constraint"]) > 4
    assert seen["reference"] > 20


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(30))
def test_three_thousand_graphs(hundred: int) -> None:
    """A hundred at a time, every tenth of them with compiled code."""
    seen: Counter[str] = Counter()
    for seed in range(1000 + 100 * hundred, 1100 + 100 * hundred):
        _judge(drawn(seed), seen, "compiled" if seed % 10 == 0 else "python")
    assert seen["prefixes"] > 10


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 300), marks=pytest.mark.long)], ids=["few", "many"])
def test_proofs_and_certificates(tmp_path: Path, seeds: range) -> None:
    """Proofs (liveness to safety) have the verdict of the search, and its certificates are accepted."""
    compared: Counter[Verdict] = Counter()
    for seed in seeds:
        graph = drawn(seed)
        found = explore(graph.system)
        finding = found.finding("claim")
        proved = prove_temporal(graph.system, "claim", depth=12, seconds=20).findings[0]
        assert proved.verdict in (finding.verdict, Verdict.INCONCLUSIVE), seed
        if proved.trace is not None:
            verify(graph.system, "claim", proved.trace)
        compared[proved.verdict] += 1
        if finding.verdict is not Verdict.INCONCLUSIVE:
            certify_search(tmp_path / "c", "drawn", (), found)
            header = verify_certificate((tmp_path / "c").read_bytes(), lambda _, s=graph.system: s, lambda _: None)
            assert header["claims"] == {"claim": finding.verdict.value}
    assert compared[Verdict.VIOLATED] > len(seeds) // 8
    assert sum(compared.values()) - compared[Verdict.INCONCLUSIVE] > len(seeds) // 2


@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 3000), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_bad_prefixes_without_contradiction_are_informative(seeds: range) -> None:
    """Of a formula without contradicting parts, every bad prefix is found; the others are not rare, and are recognised."""
    contradicting = 0
    for seed in seeds:
        graph = drawn(seed)
        contradicting += may_contradict(graph.formula)
    assert 0 < contradicting < len(seeds) // 10


# --- formulas that a prefix refutes


GROWING = '''
from streamproof import *


class Growing(Model):
    """A counter that, once it has started, must go on; it may also never start."""

    def state(self):
        return State(n=Range(0, 100), d=Array(4, Range(0, 1)))

    @action
    def start(self, s):
        require(s.n == 0)
        s.n = 1

    @action(fairness=WEAK)
    def go(self, s):
        require(s.n > 0)
        s.n += 1

    @constraint
    def small(self, s{t}):
        return {limit} <= 5

    @temporal
    def claim(self, s):
        return {claim}
'''
SHAPES = {
    "always(s.n != 2)": 3,
    "always(s.n != 1 or always(s.n != 2))": 3,
    "not eventually(s.n == 2)": 3,
    "s.n == 1 or always(s.n != 2)": 3,
    "until(s.n < 3, s.n == 5) or always(s.n == 0)": 4,
    "always(s.n != 1 or until(s.n < 4, s.n == 5))": 5,
    "all(s.n < at or always(s.n != 2) for at in (0, 7))": 3,
    "always(s.n != 3 or (eventually(s.n == 9) and always(s.n > 3)))": 4,
    "leads_to(s.n == 1, s.n == 50)": None,
    "always(s.n != 6)": None,
    "always(eventually(s.n == 50) or s.n == 0)": None,
    "always(s.d[s.n - 2 if s.n > 1 else 0] == 0)": None,
    "leads_to(s.n == 6, s.n == 7)": None,
}
"""Formulas with the number of states of the shortest prefix that refutes them; None for those that hold within the
constraint. The last but one has no value in the first state outside."""


def growing(folder: Path, claim: str, *, steps: bool = False) -> System:
    """The model with this formula, and a constraint on states or on steps."""
    path = folder / "growing.py"
    path.write_text(GROWING.format(claim=claim, t=", t" if steps else "", limit="t.n" if steps else "s.n"))
    return find(f"{path}:Growing").system(None, {})


@pytest.mark.parametrize("claim", share(SHAPES, 8))
def test_a_prefix_within_the_constraint_refutes(claim: str, tmp_path: Path) -> None:
    """Every engine, the constraint on states or on steps; the finite counterexample is replayed, also from its file."""
    for steps in (False, True):
        system = growing(tmp_path, claim, steps=steps)
        wanted = Verdict.HOLDS if SHAPES[claim] is None else Verdict.VIOLATED
        findings = [explore(system, SearchOptions(tier=tier)).finding("claim") for tier in ("python", "compiled")]
        if wanted is Verdict.VIOLATED or not steps:
            findings.append(prove_temporal(system, "claim", depth=10).findings[0])
        assert reference(system).decisions["claim"].verdict is wanted
        for finding in findings:
            assert finding.verdict is wanted, finding.because
            if finding.trace is None:
                assert finding.text().startswith("holds within the constraint")
                continue
            assert (len(finding.trace), finding.trace.loop) == (SHAPES[claim], None)
            assert finding.because == f"refuted by the first {len(finding.trace) - 1} steps, whatever follows"
            verify(system, "claim", finding.trace)
            write_itf(tmp_path / "x.itf.json", system, finding.trace, system.property("claim"))
            assert read_itf(tmp_path / "x.itf.json", system) == finding.trace
            less = Trace(finding.trace.states[:-1], finding.trace.steps[:-1])
            with pytest.raises(
                ReplayError, match="the trace has no loop, and within the constraint it does not refute"
            ):
                verify(system, "claim", less)
            free = system.unconstrained
            same = replace(finding.trace, states=tuple(s[: len(free.variables)] for s in finding.trace.states))
            with pytest.raises(ReplayError, match=r"speaks of endless behaviours, and the trace has no loop$"):
                verify(free, "claim", same)


# --- other checkers

TOOLS = share(SHAPES, len(SHAPES), first=1)


@pytest.mark.skipif(spin.installed() is not None, reason=f"needs Spin: {spin.installed()}")
@pytest.mark.parametrize("claim", TOOLS)
def test_spin_decides_alike(claim: str, tmp_path: Path) -> None:
    """By a text that states the formula, and that does not come from the formula of our engines."""
    system = growing(tmp_path, claim)
    wanted = Verdict.HOLDS if SHAPES[claim] is None else Verdict.VIOLATED
    assert all(
        f"Its formula: {written(system.unconstrained.property('claim').formula)}" in t.text
        for t in spin.claimed(system, "claim")
    )
    assert [d.verdict for d in spin.decide(system, ["claim"], QUICK_SPIN)] == [wanted]
    trace = spin.counterexample(system, "claim", QUICK_SPIN)
    if trace is not None:
        verify(system, "claim", trace)


PLAIN = ("always(s.n != 2)", "all(s.n < at or always(s.n != 2) for at in (0, 7))")
"""The safety formulas that are ``[]`` of a condition on states, the second one by its first conjunct."""
NESTED = [claim for claim, states in SHAPES.items() if states is not None and claim not in PLAIN]
"""TLC decides these on the fair behaviours that stay inside; here that is the one that stays in the first state."""


@pytest.mark.parametrize("claim", share(SHAPES, len(SHAPES)))
def test_tlc_decides_alike(claim: str, jar: Path, tmp_path: Path) -> None:
    """`CONSTRAINT` with the formula itself: the same verdict for ``[]`` of a condition on states; a nested formula TLC does
    not decide by finite behaviours, and the comparison knows it."""
    system = growing(tmp_path, claim)
    text = export(system)
    assert "CONSTRAINT Inside" in text.runs[0].configuration()
    wanted = Verdict.INCONCLUSIVE if claim in NESTED else Verdict.HOLDS if SHAPES[claim] is None else Verdict.VIOLATED
    (decided,) = tlc.decide(system, ["claim"], QUICK_TLC)
    assert decided.verdict is wanted
    assert (decided.because == tlc.MISSED) is (wanted is Verdict.INCONCLUSIVE)
    if decided.trace is not None:
        verify(system, "claim", decided.trace)


@pytest.mark.long
@pytest.mark.skipif(spin.installed() is not None, reason=f"needs Spin: {spin.installed()}")
@pytest.mark.parametrize("five", range(12))
def test_spin_and_tlc_on_random_graphs(five: int, jar: Path) -> None:
    """Where Spin or TLC decides, it decides as the search does; TLC misses no fair behaviour that stays inside."""
    for seed in range(5 * five, 5 * five + 5):
        system = drawn(seed).system
        finding = explore(system).finding("claim")
        (of_tlc,) = tlc.decide(system, ["claim"], QUICK_TLC)
        if of_tlc.because == tlc.MISSED or finding.verdict is Verdict.INCONCLUSIVE:
            assert finding.trace is None or finding.trace.loop is None, seed
        else:
            assert of_tlc.verdict is finding.verdict, seed
        if len({*untils(plain(drawn(seed).formula))}) < 3:  # Spin's automata grow with them
            (of_spin,) = spin.decide(system, ["claim"], QUICK_SPIN)
            assert finding.verdict in (of_spin.verdict, Verdict.INCONCLUSIVE), seed


# --- the comparison can fail


def _left_out(formula: Formula, outside: Expr) -> Formula:
    """A wrong reading: behaviours that leave the constraint are left out."""
    return OrF((Eventually(Atom(outside)), formula))


def _one_sided(formula: Formula, outside: Expr) -> Formula:
    """A wrong reading: outside the constraint, negated conditions count as false."""
    return rewritten(formula, lambda condition: b.or_((outside, condition)))


FAULTS = [(_left_out, "always(s.n != 2)"), (_one_sided, "always(not eventually(s.n == 7))")]


@pytest.mark.parametrize(("fault", "claim"), FAULTS)
def test_the_reference_finds_a_wrong_reading(
    fault: Any, claim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the formula of the system without constraint."""
    monkeypatch.setattr(constraints, "weakened", fault)
    system = growing(tmp_path, claim)
    results = [panel_engines.explored(system, "python"), interpreter_result(system).result]
    assert [d.what for d in differences(system, results)] == ["claim"]


@pytest.mark.skipif(spin.installed() is not None, reason=f"needs Spin: {spin.installed()}")
@pytest.mark.parametrize(("fault", "claim"), share(FAULTS, 2))
def test_spin_finds_a_wrong_reading(fault: Any, claim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is written from the same formula, by other code."""
    monkeypatch.setattr(constraints, "weakened", fault)
    system = growing(tmp_path, claim)
    results = [panel_engines.explored(system, "python"), panel_engines.run_spin(system, QUICK_SPIN)]
    assert [d.what for d in differences(system, results)] == ["claim"]


def test_tlc_finds_a_wrong_reading(jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a constraint of its own."""
    monkeypatch.setattr(constraints, "weakened", _left_out)
    system = growing(tmp_path, "always(s.n != 2)")
    results = [panel_engines.explored(system, "python"), panel_engines.run_tlc(system, QUICK_TLC)]
    assert [d.what for d in differences(system, results)] == ["claim"]
