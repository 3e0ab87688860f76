"""What a subtask can do is kept while nothing changes it: after every step it is what is found anew, and who can do something
is scheduled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from batch_jobs import unending
from nonempty import nonempty
from runtime_mix import crashing, looping, run_of
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.simulator import simulation
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.all_variants import NAMES, simulated

STEPS = 5_000
"""Largest number of steps of a run."""


def _unending(seed: int, variant: str = "") -> None:
    about: dict[str, Any] = {**simulated(variant), "stop_after": (1 + seed % 9) * MILLISECOND // 6}
    Simulation(unending(), seed=seed, level="severe", **about).run(STEPS)


KINDS: tuple[Callable[[int, str], object], ...] = (
    run_of,
    looping,
    crashing,
    partial(crashing, unaligned=True),
    _unending,
)


def compare(run: Simulation) -> int:
    """Of all subtasks; how many were compared."""
    compared = 0
    for host in run.hosts.values():
        for part in host.executor.parts if host.is_alive else ():
            for subtask in part.subtasks.values():
                kept, subtask.known_actions = subtask.known_actions, None
                found = [*part.enabled(subtask)]
                subtask.known_actions = kept
                if kept is not None:
                    assert [*kept] == found, subtask.name
                    compared += 1
                if found and part.is_running and not host.is_paused:
                    assert host.runners[subtask.name].at >= 0, subtask.name
    return compared


@pytest.mark.parametrize(
    ("seeds", "variants"),
    [((13,), ("",)), pytest.param(range(4), ("", *NAMES), marks=pytest.mark.long)],
)
def test_kept_actions_are_those_found_anew(
    seeds: Iterable[int], variants: Iterable[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In runs of every kind of job, with every variant."""
    compared, whole = 0, Simulation.run

    def watched(run: Simulation, limit: int = STEPS) -> Any:
        def watch() -> None:
            nonlocal compared
            compared += compare(run)

        return whole(run, min(limit, STEPS), watch)

    monkeypatch.setattr(simulation, "WATCHED", 1)
    monkeypatch.setattr(Simulation, "run", watched)
    for at, variant in enumerate(nonempty(variants)):
        for seed in nonempty(seeds):
            for kind in KINDS:
                kind(seed + 4 * at, variant)
    assert compared > 1_000
