"""Spin's verifier and the explicit engine count the same states of the bundled models and decide alike, equally early."""

from __future__ import annotations

from typing import Any

import pytest

from shares import share
from streamproof import Model, Range, Spec, State, action
from streamproof.exchange.promela import spin, spin_run
from streamproof.exchange.promela.model import ALL, export
from streamproof.exchange.promela.spin_run import SpinGoal, installed, run
from streamproof.explicit.exploration import explore
from streamproof.system import Kind, System, Verdict
from streamproof_models.reference.async_termination_detection import AsyncTerminationDetection
from streamproof_models.reference.coffee_can import CoffeeCan
from streamproof_models.reference.die_hard import DieHard
from streamproof_models.reference.dining_philosophers import DiningPhilosophers
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.hanoi import Hanoi
from streamproof_models.reference.missionaries_and_cannibals import MissionariesAndCannibals
from streamproof_models.reference.token_ring import TokenRing
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit
from streamproof_specs.failover.properties import SPEC as FAILOVER

pytestmark = pytest.mark.skipif(installed() is not None, reason=f"needs Spin: {installed()}")

QUICK = spin.SpinOptions(hash_bits=16, depth=200_000, optimise="-O0")
DEEP = spin.SpinOptions(spin.SearchOrder.DEPTH_FIRST, hash_bits=16, depth=200_000, optimise="-O0")

Row = tuple[Spec, str | None, dict[str, Any]]

MODELS: list[Row] = [
    (Spec(AsyncTerminationDetection), None, {"n": 3}),
    (Spec(CoffeeCan), None, {"beans": 20}),
    (Spec(DieHard), None, {}),
    (Spec(DiningPhilosophers), None, {}),
    (Spec(Ewd840), None, {"n": 3}),
    (Spec(Ewd998), None, {"n": 2, "most": 2}),
    (Spec(Hanoi), None, {}),
    (Spec(TokenRing), None, {"n": 4, "values": 4}),
    (Spec(TwoPhaseCommit), None, {"resource_managers": 3}),
    (FAILOVER, None, {}),
    (FAILOVER, "early-release", {}),
    (FAILOVER, "individual", {}),
]

LARGER: list[Row] = [
    (Spec(MissionariesAndCannibals), None, {}),
    (Spec(AsyncTerminationDetection), None, {"n": 5}),
    (Spec(CoffeeCan), None, {"beans": 100}),
    (Spec(Ewd840), None, {"n": 6}),
    (Spec(Ewd998), None, {"n": 3, "most": 1}),
    (Spec(TokenRing), None, {}),
    (Spec(TwoPhaseCommit), None, {"resource_managers": 6}),
    (FAILOVER, "no-fence", {}),
    (FAILOVER, "literal-pseudocode", {}),
]


def name(row: Row) -> str:
    """``reference.ewd840-3``"""
    return "-".join([row[0].model.title(), *([row[1]] if row[1] else []), *map(str, row[2].values())])


def agree(system: System) -> None:
    """Compare both orders of Spin's search, and every property that Spin decides."""
    ours = explore(system)
    assert ours.complete
    wide, deep = spin.count(system, QUICK), spin.count(system, DEEP)
    counts = (ours.counts.distinct, ours.counts.generated)
    assert (wide.truncated, wide.mistake, wide.distinct, wide.generated) == (None, None, *counts)
    assert (deep.truncated, deep.mistake, deep.distinct, deep.generated) == (None, None, *counts)
    assert (wide.depth, deep.depth) == (ours.counts.depth, None)
    names = [p.name for p in system.properties if p.kind is not Kind.TEMPORAL]
    decided = spin.decide(system, names, QUICK)
    assert [d.property for d in decided] == names
    for answer in decided:
        finding = ours.finding(answer.property)
        length = len(finding.trace) if finding.trace and answer.kind is not Kind.TERMINATION else None
        assert (answer.verdict, answer.length) == (finding.verdict, length), answer.property


@pytest.mark.parametrize("row", share(MODELS, 6, whole=True), ids=name)
def test_bundled_models(row: Row) -> None:
    """Counts breadth first and depth first, the depth, verdicts and the shortest lengths are equal."""
    spec, variant, parameters = row
    agree(spec.system(variant, **parameters))


@pytest.mark.long
@pytest.mark.parametrize("row", LARGER, ids=name)
def test_larger_bundled_models(row: Row) -> None:
    """The same at larger parameters and for more variants."""
    spec, variant, parameters = row
    agree(spec.system(variant, **parameters))


def test_a_search_that_is_cut_short_gives_no_verdict() -> None:
    """With too small a depth, a violation that was seen is reported, and nothing is said to hold."""
    system = Hanoi.system()
    shallow = spin.SpinOptions(hash_bits=12, depth=10, optimise="-O0")
    assert spin.count(system, shallow).truncated == "max search depth too small"
    assert {d.verdict for d in spin.decide(system, None, shallow)} == {Verdict.INCONCLUSIVE}
    early = DieHard.system()
    assert spin.decide(early, ["measured"], spin.SpinOptions(depth=7, optimise="-O0"))[0].verdict is Verdict.HOLDS


def test_too_little_memory_gives_no_verdict() -> None:
    """A search that meets its limit on memory is not complete."""
    report = run(export(TokenRing.system()), spin.SpinOptions(memory=8, hash_bits=16, optimise="-O0"))
    assert report.truncated is not None
    assert report.stored < 46_656


class Noted(Model):
    """A counter whose last value but one is written down and never read."""

    def state(self) -> State:
        """At 0, nothing written."""
        return State(n=Range(0, 3, init=0), before=Range(0, 3, init=0))

    @action
    def count(self, s: Any) -> None:
        """Round and round."""
        s.before = s.n
        s.n = (s.n + 1) % 4


def test_spin_is_kept_from_hiding_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spin leaves variables that nothing reads out of its states; without the options that forbid it, two become one."""
    system = Noted.system()
    assert spin.count(system, QUICK).distinct == explore(system).counts.distinct == 5
    monkeypatch.setattr(spin_run, "SPIN_OPTIONS", ())
    assert spin.count(system, QUICK).distinct == 4


def test_what_spin_says_is_read_not_its_exit_code() -> None:
    """A violation is in the report, with its depth, though the verifier ends with 0."""
    report = run(export(DieHard.system()), QUICK, [ALL], SpinGoal.ASSERTIONS)
    assert report.found == {"assertion violated found_measured": 6}
    assert report.exact
