"""Loops that nothing but the baton ends compute what networkx computes, on random graphs, whatever fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph_jobs import GRAPH_JOBS, file_of, graph_job, same
from runtime_processes import run
from streamproof_runtime.simulator.simulation import Simulation


def check(name: str, seed: int, **more: Any) -> int:
    """A run of a random input has the results that another library computes; the number of restarts."""
    module, expected = graph_job(name, seed, **more)
    level = ("none", "light", "heavy", "severe")[seed % 4]
    outcome = Simulation(module.job(), seed=seed, level=level, eager=seed % 2 == 1).run()
    assert (outcome.finished, outcome.lost) == (True, 0), (seed, outcome.reason)
    (result,) = expected
    found = {result: outcome.results[result] or {}}
    assert same(found, expected, getattr(module, "TOLERANCE", 0)), (name, seed, found, expected)
    assert same(module.expected(), expected, 1e-9), (name, seed)
    return outcome.attempts - 1


@pytest.mark.parametrize("name", GRAPH_JOBS)
def test_loops_agree_with_networkx(name: str) -> None:
    """Without faults, and with light, heavy and severe ones, which restart some of the runs."""
    assert sum(check(name, seed) for seed in range(16 if name == "pagerank" else 60)) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", GRAPH_JOBS)
def test_many_loops_agree_with_networkx(name: str) -> None:
    """Many more, on larger graphs, and ranks to a hundredth of the tolerance."""
    for seed in range(1000, 1008):
        check(name, seed, most=10, least=1e-5)
    assert sum(check(name, seed, most=8) for seed in range(200 if name == "pagerank" else 800)) > 50


def test_a_wrong_rank_is_noticed() -> None:
    """The tolerance is small enough to tell ranks from those of another damping factor."""
    module, expected = graph_job("pagerank", 4, least=1e-5)
    module.DAMPING = 0.8
    results = Simulation(module.job()).run().results
    assert not same(results, expected, module.TOLERANCE)


@pytest.mark.long
@pytest.mark.parametrize("name", GRAPH_JOBS)
def test_loops_on_processes_agree_with_networkx(name: str, tmp_path: Path) -> None:
    """With kills of two TaskExecutors, or of the JobMaster."""
    for seed in range(6):
        module, expected = graph_job(name, seed, most=12)
        kills = ["jobmaster@9"] if seed % 3 == 2 else [f"tm-1@{3 + seed}", f"tm-2@{5 + 2 * seed}"]
        found = run(file_of(name, module, tmp_path), executors=3, kills=kills)
        (result,) = expected
        assert not found["wrong"], (seed, found["wrong"])
        assert same({result: found["results"][result]}, expected, getattr(module, "TOLERANCE", 0)), seed
