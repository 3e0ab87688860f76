"""A session of three jobs, of which the later ones read what the first has promoted, and its simulated runs."""

from __future__ import annotations

from collections import Counter

from streamproof_runtime.jobs.api import Job
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.variants import all_variants

LOST = "cluster partition"
"""So begins the reason of a job that does not find what an earlier one has promoted."""


def jobs() -> list[Job]:
    """The first job doubles numbers, the second adds to them, the third collects them."""
    first, second, third = Job("first"), Job("second"), Job("third")
    doubled = first.source("numbers", range(12), 2).key_by(lambda n: n % 3).process("double", lambda c, n: [2 * n], 2)
    doubled.promote("doubled")
    doubled.collect("all")
    taken = second.cluster_source("doubled", 2)
    taken.key_by(lambda n: n % 5).process("add", lambda c, n: [n + 1], 2).collect("more")
    third.cluster_source("doubled", 2).collect("again")
    return [first, second, third]


def ran(seed: int, level: str, variant: str | None = None) -> Outcome:
    """A run of the session; its results are right if it finishes, unless the variant breaks a rule."""
    first, *later = jobs()
    outcome = Simulation(first, later=later, seed=seed, level=level, **all_variants.simulated(variant)).run(100_000)
    if outcome.finished and variant is None:
        found = {name: {sink: Counter(v) for sink, v in of.items()} for name, of in outcome.results.items()}
        even = Counter(range(0, 24, 2))
        more = Counter(range(1, 25, 2))
        assert found == {"first": {"all": even}, "second": {"more": more}, "third": {"again": even}}, seed
    return outcome


def is_right(outcome: Outcome) -> bool:
    """Whether a session finishes, or what it has promoted was lost, as its log says: with a process, with a connection to the
    ResourceManager, or unnoticed."""
    if outcome.finished:
        return True
    events = {(name, process.rpartition(".")[2] != "0") for _, process, name, *_ in outcome.entries}
    is_lost = events & {("partitions_lost", False), ("partitions_lost", True), ("registering", True)}
    return outcome.reason.startswith(LOST) and bool(is_lost or {n for n, _ in events} & {"manager_lost"})
