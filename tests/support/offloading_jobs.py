"""Simulated runs of jobs whose descriptors are blobs."""

from __future__ import annotations

from typing import Any

from runtime_mix import JOBS, job_of, wrong
from session_jobs import is_right, jobs
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.variants.all_variants import simulated

LIMIT = 100_000
"""Largest number of steps of a run."""
SHORT = 8_000
"""The same for a variant, whose runs may never end."""
KINDS: dict[str, dict[str, Any]] = {
    "all, small cache": {"offload": 0, "cached_blobs": 1},
    "all": {"offload": 0},
    "large ones": {"offload": 150, "cached_blobs": 2},
}
"""Arguments of `Simulation`: which descriptors are blobs, and how many are kept."""


def offloaded(seed: int, variant: str | None = None, offload: int = 0, **more: Any) -> tuple[Outcome, str]:
    """A run of a job of the mix, and what is wrong with it."""
    name, turn = JOBS[seed % len(JOBS)], seed // len(JOBS)
    job, check = job_of(name, turn)
    level = "severe" if seed % 5 == 4 else "heavy"
    more |= {"executors": 4, "slots": 4, "eager": seed % 2 == 1, "offload": offload}
    outcome = Simulation(job, seed=seed, level=level, **simulated(variant), **more).run(SHORT if variant else LIMIT)
    return outcome, wrong(outcome, check)


def session(seed: int) -> Outcome:
    """A run of a session of three jobs."""
    first, *later = jobs()
    outcome = Simulation(first, later=later, seed=seed, offload=0, **simulated(None)).run(LIMIT)
    assert is_right(outcome)
    return outcome
