"""Induction with discovered lemmas and property-directed reachability agree on every bundled model at its small size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

import pytest

from shares import share
from streamproof.base.options import SearchOptions
from streamproof.cli.prove import PROVABLE
from streamproof.engines.proving import ExploredStates
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.selection import select
from streamproof.symbolic.portfolio import Engine
from streamproof.symbolic.proof import Proof, prove
from streamproof.system import System, Verdict

SECONDS = 60.0
"""For one engine and one model, in the solver's own steps: what is decided does not hang on the load of the machine."""

HARD = (
    *("baton", "checkpoints", "credit", "cyclic", "failover", "failure_budgets", "lifecycle_failover"),
    *("partition_lifecycle", "task_descriptors"),
    *("reference.bakery", "reference.chang_roberts", "reference.huang", "reference.mattern", "reference.raft_election"),
    *("loop_checkpoint", "main_thread", "region_slots", "record_spans", "regions", "slot_owners", "slot_pool", "slots"),
)
"""Models that take the engines minutes, themselves or their variants: they are looked at with the long tests."""

OPEN: Mapping[Engine, frozenset[str]] = {
    # What these variants break is up to 24 steps away or, where they break nothing, needs hundreds of clauses.
    Engine.DISCOVERY: frozenset(
        {
            "failover-no-downstream-restart",
            "failover-no-versioning",
            "failover-no-fence",
            "failover-no-topological-order",
            "partition_lifecycle-cleanup-of-all-jobs",
            "partition_lifecycle-persistent",
            "partition_lifecycle-runtime",
            "record_spans-shared-deserialiser",
        }
    ),
    Engine.PDR: frozenset(
        {
            "failover-no-downstream-restart",
            "failover-no-versioning",
            "failover-no-fence",
            "failover-early-release",
            "failover-no-topological-order",
            "credit-credit-before-free",
            "credit_flush-credit-before-free",
            "failure_budgets",
            "partition_lifecycle-cleanup-of-all-jobs",
            "partition_lifecycle-flink-repaired",
            "partition_lifecycle-persistent",
            "partition_lifecycle-runtime",
            "record_spans-dropped-when-full",
            "record_spans-shared-deserialiser",
        }
    ),
}
"""Models and variants of which an engine may leave something open in this time; of others it decides everything.

Nobody asks that what is listed stays open: an engine that becomes better must not break a test, and for each of these it
takes minutes to see that it did not.
"""

UNTOLD: Mapping[Engine, tuple[str, ...]] = {
    # Of the baton some variants are decided in seconds and others not in this time; which these are was not listed.
    # Neither engine finds the invariant that relates the locks, the queue of announcements and the owners of the slots.
    # Nor that a task which was sent descriptors finds them current, of three groups, with a cache of blobs.
    # Nor do they relate the parts of a composition. Checkpoints are decided in about this time.
    # Of the variants of slot_owners that break the lemmas, some are decided in about this time.
    # The three edges of loop_checkpoints are queues, and so are two logs.
    # The lemmas of main_thread are about its own time-out, which some variants exceed.
    # Nor do they decide the channel in outline, all of whose 102,808 states a search has.
    Engine.DISCOVERY: (
        *("baton", "checkpoints", "credit_channel-outlined", "lifecycle_failover", "loop_checkpoint", "main_thread"),
        *("region_slots", "regions", "slot_owners-", "slots"),
    ),
    Engine.PDR: (
        *("baton", "checkpoints", "credit_channel-outlined", "loop_checkpoint", "main_thread"),
        # The bag of segments has 27 kinds at two connections; one connection is decided in the quick tests.
        "reference.three_way_handshake",
        # A fault 8 to 12 steps away in 40,000 to 120,000 states, with queues of records in a loop: PDR, whose frames come
        # there one by one, has not been waited for longer than a minute. Induction decides these with the model's lemmas.
        "cyclic-spill-read-twice",
        "cyclic-spill-overtaken",
        "cyclic-spill-newest-first",
        "cyclic-barrier-overtakes",
        *("lifecycle_failover", "region_slots", "regions", "slot_owners-", "slots"),
    ),
}
"""How names begin of which it is tested that what is decided is right, and not how much is decided in this time."""


SMALLER: Mapping[str, Mapping[str, Any]] = {
    "reference.three_way_handshake": {"connections": 1, "capacity": 2},
    "reference.sliding_window": {"total": 3},
    "reference.dining_philosophers": {"philosophers": 3},
    "reference.ewd998": {"n": 2, "most": 2},
    "reference.token_ring": {"n": 4, "values": 4},
    "reference.two_phase_commit": {"resource_managers": 2},
}
"""Parameters of models that take the engines seconds at their small size, which is left to the long tests."""


def bundled() -> Iterator[object]:
    """Every bundled model and variant."""
    for entry in sorted(entry_points(group="streamproof.models"), key=lambda e: e.name):
        target = find(entry.name)
        for variant in (None, *target.spec.model.variants):
            small = "small" in target.variant(variant).sizes
            name = f"{entry.name}-{variant}" if variant else entry.name
            slow = (
                entry.name.startswith(HARD)
                or variant is not None
                or entry.name == "reference.missionaries_and_cannibals"
                or entry.name in SMALLER
            )
            marks = [pytest.mark.long] if slow else []
            yield pytest.param(entry.name, variant, "small" if small else None, id=name, marks=marks)
        if entry.name in SMALLER:
            yield pytest.param(entry.name, None, None, id=f"{entry.name}, smaller")


def decided(proof: Proof) -> dict[str, Verdict]:
    """What an engine has an answer for."""
    return {f.property: f.verdict for f in proof.findings if f.verdict is not Verdict.INCONCLUSIVE}


def asked(system: System) -> list[str]:
    """The properties that are for these engines."""
    return [p.name for p in system.properties if p.kind in PROVABLE]


@pytest.mark.parametrize(("model", "variant", "size"), share(bundled(), 12, first=1))
def test_induction_and_pdr_agree(
    model: str, variant: str | None, size: str | None, request: pytest.FixtureRequest
) -> None:
    """What both decide, they decide alike, and as the search of all states does; what each leaves open is listed."""
    smaller = request.node.callspec.id.endswith(", smaller")
    system = find(model).system(variant, SMALLER[model]) if smaller else select(model, variant, size).system()
    names = asked(system)
    searched = {
        f.property: f.verdict for f in explore(system, SearchOptions(properties=names, max_states=500_000)).findings
    }
    for engine, listed in OPEN.items():
        proof = prove(system, names, engine=engine, explored=ExploredStates(system), seconds=SECONDS, reproducible=True)
        verdicts = decided(proof)
        assert verdicts.items() <= searched.items(), engine
        name = request.node.callspec.id
        if name not in listed and not name.startswith(UNTOLD[engine]):
            assert verdicts.keys() == set(names), engine


def test_only_hard_models_may_stay_open() -> None:
    """What is listed as open are variants of the hard models that exist, and some of it by either engine."""
    ids = {str(p.id) for p in bundled()}  # type: ignore[attr-defined]
    for listed in OPEN.values():
        assert ids >= listed
        assert all(name.startswith(HARD) for name in listed)
    for beginnings in UNTOLD.values():
        assert all(any(name.startswith(beginning) for name in ids) for beginning in beginnings)
    assert OPEN[Engine.DISCOVERY] < OPEN[Engine.PDR]
