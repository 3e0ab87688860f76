"""Induction with discovered lemmas and property-directed reachability agree on every bundled model at its small size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points

import pytest

from streamproof.cli.discovered import explored
from streamproof.cli.prove import PROVABLE
from streamproof.cli.selection import select
from streamproof.explicit import explore
from streamproof.registry import find
from streamproof.symbolic import Engine, Proof, prove
from streamproof.system import System, Verdict

SECONDS = 240.0
"""For one engine and one model; most need a few."""

HARD = ("credit", "failover")
"""Models whose variants take the engines minutes: they are looked at with the long tests."""

MAY_STAY_OPEN = frozenset(
    {
        # Thirty to forty leaves, thirty steps deep: what follows from the model's lemmas is decided by induction; of the
        # rest some, as fast as the machine is.
        "failover",
        "failover-restart-all",
        "failover-no-downstream-restart",
        "failover-no-versioning",
        "failover-no-fence",
        "failover-early-release",
        "failover-stop-at-created",
        "failover-attempt-reuse",
        "failover-no-topological-order",
        # Sums over two dozen counters.
        "credit",
        "credit-credit-before-free",
        "credit-floating-leak",
        "credit-uncounted-lending",
        "credit-lost-announcement",
        "credit-zero-exclusive",
        "credit-no-credit",
    }
)
"""Models and variants of which an engine may leave something open in this time; of all others, everything is decided."""


def bundled() -> Iterator[object]:
    """Every bundled model and variant."""
    for entry in sorted(entry_points(group="streamproof.models"), key=lambda e: e.name):
        target = find(entry.name)
        for variant in (None, *target.spec.model.variants):
            small = "small" in target.variant(variant).sizes
            name = f"{entry.name}-{variant}" if variant else entry.name
            marks = [pytest.mark.long] if entry.name in HARD else []
            yield pytest.param(entry.name, variant, "small" if small else None, id=name, marks=marks)


def decided(proof: Proof) -> dict[str, Verdict]:
    """What an engine has an answer for."""
    return {f.property: f.verdict for f in proof.findings if f.verdict is not Verdict.INCONCLUSIVE}


def asked(system: System) -> list[str]:
    """The properties that are for these engines."""
    return [p.name for p in system.properties if p.kind in PROVABLE]


@pytest.mark.parametrize(("model", "variant", "size"), list(bundled()))
def test_induction_and_pdr_agree(
    model: str, variant: str | None, size: str | None, request: pytest.FixtureRequest
) -> None:
    """What both decide, they decide alike, and as the search of all states does; both decide all but what is listed."""
    system = select(model, variant, size).system()
    names = asked(system)
    one, other = (
        decided(prove(system, names, engine=engine, explored=explored(system), seconds=SECONDS))
        for engine in (Engine.DISCOVERY, Engine.PDR)
    )
    searched = {f.property: f.verdict for f in explore(system, properties=names, max_states=500_000).findings}
    for verdicts in (one, other):
        assert verdicts.items() <= searched.items()
    assert {n: one[n] for n in one.keys() & other.keys()} == {n: other[n] for n in one.keys() & other.keys()}
    if request.node.callspec.id not in MAY_STAY_OPEN:
        assert one.keys() == other.keys() == set(names)


def test_only_hard_models_may_stay_open() -> None:
    """What may stay open are variants of the hard models that exist."""
    ids: Iterable[str] = {str(p.id) for p in bundled()}  # type: ignore[attr-defined]
    assert set(ids) >= MAY_STAY_OPEN
    assert all(name.startswith(HARD) for name in MAY_STAY_OPEN)
