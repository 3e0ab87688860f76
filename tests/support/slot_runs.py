"""Simulated runs of the runtime, and their events of slots."""

from __future__ import annotations

import json
from typing import Any

from changed_logs import Records
from runtime_runs import example
from streamproof_runtime.event_log import lines
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.variants.slot_variants import SLOTS

BEGIN = {"trace": "job", "process": "jobmaster", "seq": 0, "event": "job_started", "args": {"operators": []}}
"""The event with which a log begins."""


def slot_events(outcome: Outcome) -> Records:
    """The events of slots, without the others."""
    return [r for line in lines(outcome.entries) if (r := json.loads(line))["trace"].endswith("/slots")]


def simulated(name: str, seed: int, level: str = "severe", variant: str = "", **more: Any) -> Outcome:
    """A run of an example."""
    job = example(name).job()
    return Simulation(job, seed=seed, level=level, slot_rules=SLOTS.get(variant), **more).run(200_000)
