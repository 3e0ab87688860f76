"""Simulated runs of the runtime, and the verdict on their logs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import changed_logs
from streamproof.conformance import RunVerdict
from streamproof_runtime.jobs import walks
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.subtasks.termination import BatonSubtask
from streamproof_runtime.variants.baton_variants import VARIANTS
from streamproof_specs.baton.runtime import BINDING
from streamproof_specs.credit.runtime import BINDING as CREDIT

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
JOBS = ("collatz", "components", "pagerank", "shortest_paths", "word_count")


def example(name: str) -> ModuleType:
    """The example of that name as a module."""
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def verdicts(outcome: Outcome, folder: Path) -> list[RunVerdict]:
    """The verdicts on the attempts of a run."""
    return changed_logs.verdicts(outcome, folder, BINDING, "baton")


def credit_verdicts(outcome: Outcome, folder: Path) -> list[RunVerdict]:
    """The verdicts on the gates of a run."""
    return changed_logs.verdicts(outcome, folder, CREDIT, "credit")


def walked(graph: str, seed: int, variant: str = "", level: str = "none", **more: Any) -> tuple[str, Outcome]:
    """A run of records that walk through a graph: what is wrong with it, if anything, and its outcome."""
    job = walks.walk(graph, **more)
    outcome = Simulation(job, seed=seed, level=level, subtask_type=VARIANTS.get(variant, BatonSubtask)).run(100_000)
    wrong = outcome.reason
    if outcome.lost:
        wrong = f"{outcome.lost} records lost"
    elif outcome.finished and walks.visits(job, outcome.results) != walks.expected(job):
        wrong = "wrong result"
    return wrong, outcome
