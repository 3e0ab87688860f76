"""What two processors gain at most: one search alone, two independent ones at the same time, and one with two threads.

    benchmarks/two_at_once.py [MODEL [NAME=VALUE ...]]

Two searches that share nothing wait for nothing but memory. If each takes F times as long as one alone, two threads of
one search are at most 2/F times as fast as one. Elapsed time of the search, least of `RUNS` runs in turn; processes have one
processor each. While one runs alone, another process counts on the second one, so that no other program takes it: run it
with a high priority (`nice -n -20`) where there are other programs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

RUNS = 3

CHILD = """
import os, sys, time
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
name, processors, workers, *given = sys.argv[1:]
os.sched_setaffinity(0, map(int, processors.split(",")))
values = {key: int(value) for key, value in (one.split("=") for one in given)}
system = find(name).spec.system(**values)
safe = tuple(p.name for p in system.properties if p.kind.value in ("invariant", "deadlock"))
options = SearchOptions(tier="compiled", workers=int(workers) or None, properties=safe)
explore(find(name).spec.system(), SearchOptions(tier="compiled", workers=1, properties=safe))
print("ready", flush=True)
sys.stdin.readline()
begun = time.perf_counter(), time.process_time()
found = explore(system, options)
print(found.counts.distinct, found.seconds.explore, time.process_time() - begun[1] - found.seconds.compile, flush=True)
"""
SPIN = """
import os
os.sched_setaffinity(0, [1])
while True: pass
"""


def started(model: list[str], processors: str, workers: int) -> subprocess.Popen[str]:
    """A process that is ready to search."""
    name, *given = model
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, name, processors, str(workers), *given],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def finished(processes: list[subprocess.Popen[str]]) -> list[tuple[int, float, float]]:
    """States, elapsed and processor time of searches that begin at once."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    found: list[Any] = [process.communicate()[0].split() for process in processes]
    return [(int(states), float(seconds), float(used)) for states, seconds, used in found]


def main() -> None:
    """Prints the least times."""
    model = sys.argv[1:] or ["reference.two_phase_commit", "resource_managers=8"]
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("needs two processors")
    alone, both, shared = [], [], []
    states = 0
    for _ in range(RUNS):
        spinning = subprocess.Popen([sys.executable, "-c", SPIN])
        try:
            ((states, seconds, used),) = finished([started(model, "0", 1)])
            alone.append((seconds, used))
        finally:
            spinning.kill()
            spinning.wait()
        pair = finished([started(model, "0", 1), started(model, "1", 1)])
        both.append((max(seconds for _, seconds, _ in pair), max(used for *_, used in pair)))
        ((_, seconds, used),) = finished([started(model, "0,1", 0)])
        shared.append((seconds, used))
    one, two, threads = (min(s for s, _ in times) for times in (alone, both, shared))
    print(f"{' '.join(model)}: {states:,} states")
    for what, times in (("one alone", alone), ("two at once, the slower", both), ("one with two threads", shared)):
        least = min(times)
        print(f"  {what}: {least[0]:.3f} s, {least[1]:.3f} s of processor time")
    print(f"  two at once take {two / one:.2f} times as long as one; at most {2 * one / two:.2f} by two threads")
    print(f"  two threads: {one / threads:.2f}")


if __name__ == "__main__":
    main()
