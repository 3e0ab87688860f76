"""Certificates of what the engines find are accepted, for bundled models and for random systems, temporal ones included."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from random_systems import random_system, temporal_system
from shares import share
from small_models import small_system
from streamproof.base.errors import Rejected
from streamproof.model_registry import bundled, find
from streamproof.system import Action, Fairness, Instance, Kind, Property, System, Variable, Verdict
from streamproof.system import build as b
from streamproof.system.formula import recurring
from streamproof.system.reference import reference
from streamproof.system.sorts import OptionSort, RangeSort

LONG = {
    "failover": 0,
    "cyclic": 1,
    "reference.bakery": -1,
    "reference.mattern": 0,
    "reference.raft_election": 0,
    "credit_channel": -1,
    "credit_flush": 0,
    "buffer_shares": 0,
    "cached_results": 0,
    "co_location": -1,
    "failure_budgets": 0,
    "loop_head": 0,
    "record_spans": 0,
    "partition_lifecycle": 1,
    "regions": 1,
    "slot_pool": 0,
    "slots": 0,
    "checkpoints": 0,
    "baton_channels": 0,
    "lifecycle_failover": -1,
    "region_slots": 0,
    "reference.three_way_handshake": 0,
}
"""Models with many or large variants, and the last of these that is in the quick tests; the model itself is number 0."""


def _variants(name: str) -> list[str | None]:
    return [None, *find(name).spec.model.variants]


CASES = [
    pytest.param(name, variant, marks=[pytest.mark.long] if k > LONG.get(name, k) else [], id=f"{name}-{variant}")
    for name in bundled()
    for k, variant in enumerate(_variants(name))
]


@pytest.mark.parametrize(("name", "variant"), share(CASES, 64))
def test_every_verdict_on_a_bundled_model_is_certified(searched: Any, name: str, variant: str | None) -> None:
    """All properties of a model or variant are claimed but what is promised of steps, and the claims are accepted."""
    system = small_system(name, variant)
    certificate = searched(system)
    of_steps = {p.name for p in system.properties if p.formula is not None and any(True for _ in recurring(p.formula))}
    claimed = certificate.header["claims"].keys()
    assert claimed | of_steps == {p.name for p in system.properties}
    assert not any(certificate.header["claims"].get(n) == "holds" for n in of_steps)
    assert certificate.verify() == certificate.header


def test_what_is_claimed_of_random_systems_is_what_the_interpreter_finds(searched: Any) -> None:
    """Claims equal the verdicts of the reference search, mistakes of properties included; all kinds occur."""
    seen: Counter[tuple[Kind, str]] = Counter()
    for seed in range(100):
        system = random_system(Random(seed))
        found = reference(system)
        if not found.levels or found.mistake is not None:
            continue
        certificate = searched(system, tier="python")
        assert certificate.header["claims"] == {n: d.verdict.value for n, d in found.decisions.items()}, seed
        assert certificate.header["counts"]["levels"] == list(found.counts.levels)
        certificate.verify()
        seen.update((p.kind, certificate.header["claims"][p.name]) for p in system.properties)
    for kind in (Kind.INVARIANT, Kind.STEP, Kind.REACHABLE, Kind.DEADLOCK, Kind.TERMINATION):
        assert min(seen[kind, verdict] for verdict in ("holds", "violated")) > 3
    assert seen[Kind.INVARIANT, "error"] > 0


@pytest.mark.parametrize(("systems", "least"), share([(40, 15), (80, 30)], 2))
def test_temporal_verdicts_on_random_systems_are_certified(searched: Any, systems: int, least: int) -> None:
    """Fairness of every kind, nested formulas: ranks exist and are accepted exactly where the referee says that it holds."""
    holds = 0
    for seed in range(systems):
        system = temporal_system(Random(seed))
        found = reference(system)
        if not found.levels or found.mistake is not None:
            continue
        certificate = searched(system, tier="python")
        assert certificate.header["claims"] == {n: d.verdict.value for n, d in found.decisions.items()}, seed
        certificate.verify()
        holds += sum(d.verdict is Verdict.HOLDS for d in found.decisions.values())
    assert holds > least


def test_strong_fairness_needs_a_table_within_a_table(searched: Any, lock: System) -> None:
    """What is enabled again and again must happen: where it is enabled is left for good, the rest is ranked again."""
    certificate = searched(lock)
    assert certificate.header["claims"] == {"opened": "holds"}
    tables = certificate.evidence["ranks"]["opened"]
    assert len(tables) == 2
    certificate.verify()
    changed = certificate.copy()
    del changed.evidence["ranks"]["opened"][1]
    with pytest.raises(Rejected, match="malformed"):
        changed.verify()


@pytest.mark.long
def test_two_workers_give_the_same_claims(searched: Any, model: Any) -> None:
    """The compiled tier numbers states of several workers in another way; levels, ranks and claims are accepted."""
    for system in (model("failover"), model("reference.ewd840")):
        one, two = searched(system), searched(system, tier="compiled", workers=2)
        assert one.header == two.header
        two.verify()


def test_a_search_cut_short_claims_what_behaviours_show(searched: Any, model: Any) -> None:
    """Without all states there are no counts, and claimed is only what behaviours show."""
    certificate = searched(model("failover", "no-versioning"), max_states=1200, tier="python")
    assert certificate.header["counts"] is None
    assert certificate.header["claims"].keys() == certificate.evidence["traces"].keys()
    assert "violated" in certificate.header["claims"].values()
    certificate.verify()


PROOFS = [("reference.ewd840", {"n": 4}), ("failover", {"topology": "pair"}), ("reference.die_hard", {})]


@pytest.mark.parametrize(("name", "parameters"), PROOFS, ids=[name for name, _ in PROOFS])
def test_proofs_of_bundled_models_are_certified(proved: Any, model: Any, name: str, parameters: Any) -> None:
    """What induction proves, with the lemmas that it needs, is accepted by the verifier's own translation."""
    system = model(name, **parameters)
    provable = [p.name for p in system.properties if p.kind in (Kind.INVARIANT, Kind.STEP, Kind.DEADLOCK)]
    certificate = proved(system, provable)
    assert set(certificate.header["claims"]) == set(provable)
    certificate.verify()


def test_a_proof_may_rest_on_how_values_are_represented(proved: Any) -> None:
    """Absent options are equal, whatever would be in them: nothing but their representation says so of the leaves."""
    sort = OptionSort(RangeSort(0, 1))
    one, other = b.var("one", sort), b.var("other", sort)
    leave = Instance("leave", (), (), (), (("one", b.const(sort, None)),))
    absent = b.and_([b.is_none(one), b.is_none(other)])
    system = System(
        "absent",
        (Variable("one", sort, (1,)), Variable("other", sort, (None, 1))),
        (Action("leave", (), Fairness.NONE, (leave,)),),
        (Property("equal", Kind.INVARIANT, b.or_([b.not_(absent), b.eq(one, other)])),),
    )
    certificate = proved(system, ["equal"])
    assert certificate.header["claims"] == {"equal": "holds"}
    certificate.verify()


@pytest.mark.parametrize(("systems", "least"), share([(20, 9), (40, 20)], 2))
def test_proofs_of_random_systems_are_certified(proved: Any, systems: int, least: int) -> None:
    """Every sort and operator that random systems have means the same to the prover and to the verifier."""
    claims = 0
    for seed in range(systems):
        system = random_system(Random(seed))
        provable = [p.name for p in system.properties if p.kind in (Kind.INVARIANT, Kind.STEP, Kind.DEADLOCK)]
        if provable:
            certificate = proved(system, provable, depth=4, max_k=3, confirm=False)
            if certificate is None:
                continue
            certificate.verify()
            claims += sum(len(proof["claims"]) for proof in certificate.evidence["proofs"])
    assert claims > least
