"""The simulated runtime: time of a step, and which parts of it take how much; the number of runs until each variant of the
baton is caught.

A run of a variant is caught by its result (a record is lost, the job is stuck, or the result is wrong), or by its log, which
the model rejects. Runs go through the graphs of the catalogue in turn; every second turn has heavy faults.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from streamproof.conformance import judge
from streamproof_models.scopes.topologies import NAMED
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobs import walks
from streamproof_runtime.jobs.job_file import JobFile
from streamproof_runtime.simulator.loop import EventLoop
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.simulator.tape import SCHEDULE, Tape
from streamproof_runtime.subtasks.termination import BatonSubtask
from streamproof_runtime.variants.baton_variants import VARIANTS
from streamproof_specs.baton.runtime import BINDING

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ("collatz", "doubling", "pagerank", "readings", "sales")
"""Jobs with many steps."""
SAMPLE = 0.001
"""Seconds of processor time between two samples."""
_FUNCTIONS = {
    "events with their states and clocks": (
        "record",
        "note",
        "log",
        "state",
        "merge",
        "content",
        "_content",
        "_leaving",
    ),
    "what a subtask can do": (
        "enabled",
        "<listcomp>",
        "is_ready",
        "may_finish",
        "has_ended",
        "is_blocked",
        "woken",
        "wake",
    ),
}
_MODULES = {
    "scheduling: choice, timers, hosts": ("loop", "tape", "simulated_hosts", "simulation"),
    "messages on the network": ("network",),
    "credits and channels": ("channels", "flow", "sender_pools"),
    "user functions, routing, records, buffers": ("functions", "routing", "records", "output_buffers", "spanning"),
    "the action of a subtask": ("subtask", "termination", "batons", "barriers", "loop_heads", "spilling"),
    "TaskExecutor: what follows from an action": ("region_executor", "executor"),
}
"""Parts of a step, by functions, then by modules; anything else is the job's or that of other processes."""


def part(frame: FrameType | None) -> str:
    """The part of a step to which the code of a frame belongs."""
    if frame is None:
        return "other"
    module, name = Path(frame.f_code.co_filename).stem, frame.f_code.co_name
    if any(module in modules for modules in _MODULES.values()):
        for kind, names in _FUNCTIONS.items():
            if name in names and (name != "<listcomp>" or module == "subtask"):
                return kind
    if name.startswith("<"):
        return part(frame.f_back)
    return next((kind for kind, modules in _MODULES.items() if module in modules), "other")


def long_runs(turns: int) -> tuple[dict[str, float], Counter[str]]:
    """Processor time of a step of each example in microseconds, that of the fastest run, and samples by part."""
    found: dict[str, float] = {}
    samples: Counter[str] = Counter()
    signal.signal(signal.SIGPROF, lambda _, frame: samples.update([part(frame)]))
    for name in EXAMPLES:
        for turn in range(turns + 1):
            simulation = Simulation(JobFile(ROOT / "examples" / f"{name}.py").job(), seed=0)
            signal.setitimer(signal.ITIMER_PROF, SAMPLE if turn else 0, SAMPLE)
            start = time.process_time()
            outcome = simulation.run()
            spent = (time.process_time() - start) * 1e6
            signal.setitimer(signal.ITIMER_PROF, 0)
            assert outcome.finished, name
            found[name] = min(found.get(name, 1e6), spent / outcome.steps)
    return found, samples


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
    parser.add_argument("--seeds", type=int, default=8, help="turns through the catalogue for each variant; 0: none")
    seeds = parser.parse_args().seeds
    print(f"{step_time(300_000):.1f} us a step of the event loop alone")
    times, samples = long_runs(20)
    for name, took in times.items():
        print(f"{name:<12}{took:>6.1f} us a step, {1e6 / took:>8,.0f} steps/s")
    mean = sum(times.values()) / len(times)
    for kind, number in samples.most_common():
        share = number / samples.total()
        print(f"{kind:<44}{share:>5.0%}{share * mean:>6.1f} us")
    if not seeds:
        return
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
