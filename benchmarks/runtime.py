"""The simulated runtime: time of a step and of a run, and the number of runs until each variant of the baton is caught.

A run of a variant is caught by its result (a record is lost, the job is stuck, or the result is wrong), or by its log, which
the model rejects. Runs go through the graphs of the catalogue in turn; every second turn has heavy faults.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from streamproof.conformance import judge
from streamproof_models.scopes.topologies import NAMED
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobs import walks
from streamproof_runtime.simulator.loop import EventLoop
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.simulator.tape import SCHEDULE, Tape
from streamproof_runtime.subtasks.termination import BatonSubtask
from streamproof_runtime.variants.baton_variants import VARIANTS
from streamproof_specs.baton.runtime import BINDING


class Idle:
    """A stepper that does nothing."""

    at = -1

    def step(self) -> None:
        """Nothing."""


def step_time(steps: int) -> float:
    """Processor time of a step of the loop alone, in microseconds."""
    loop = EventLoop(Tape(0).stream(SCHEDULE))
    for _ in range(8):
        loop.wake(Idle())
    start = time.process_time()
    loop.run(lambda: False, steps)
    return (time.process_time() - start) / steps * 1e6


def walked(graph: str, seed: int, variant: str, level: str) -> tuple[bool, Outcome]:
    """Whether a run is wrong by its result, and its outcome."""
    job = walks.walk(graph)
    outcome = Simulation(job, seed=seed, level=level, subtask_type=VARIANTS.get(variant, BatonSubtask)).run(100_000)
    right = outcome.finished and not outcome.lost and walks.visits(job, outcome.results) == walks.expected(job)
    return not right, outcome


def is_rejected(outcome: Outcome, folder: Path) -> bool:
    """Whether the model rejects an attempt of the run."""
    log = folder / "run.ndjson"
    log.write_text("".join(lines(outcome.entries)), encoding="ascii")
    return any(verdict.answer == "rejected" for verdict in judge(BINDING.plan(log, None), "baton"))


def runs(seeds: int) -> Iterator[tuple[str, int, str]]:
    """The runs of one variant, in order."""
    for seed in range(seeds):
        for graph in NAMED.values():
            yield graph, seed, "heavy" if seed % 2 else "none"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8, help="turns through the catalogue for each variant")
    seeds = parser.parse_args().seeds
    print(f"{step_time(300_000):.1f} us a step of the event loop alone")
    start, steps, total = time.process_time(), 0, 0
    for graph, seed, level in runs(seeds):
        wrong, outcome = walked(graph, seed, "", level)
        assert not wrong, (graph, seed)
        steps, total = steps + outcome.steps, total + 1
    spent = time.process_time() - start
    print(
        f"{total} runs by the rules, all right: {spent / total * 1e3:.1f} ms a run, {spent / steps * 1e6:.1f} us a step"
    )
    print(f"\n{'variant':<22}{'caught by result':>18}{'caught by log':>16}   (number of runs; of {total})")
    with tempfile.TemporaryDirectory() as folder:
        for variant in VARIANTS:
            by_result = by_log = 0
            for number, (graph, seed, level) in enumerate(runs(seeds), 1):
                wrong, outcome = walked(graph, seed, variant, level)
                by_result = by_result or (number if wrong else 0)
                by_log = by_log or (number if is_rejected(outcome, Path(folder)) else 0)
                if by_result and by_log:
                    break
            print(f"{variant:<22}{by_result or 'never':>18}{by_log or 'never':>16}", flush=True)


if __name__ == "__main__":
    main()
