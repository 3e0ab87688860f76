"""The driver beside a plain loop over the adapter, and suites beside covers of all edges that networkx finds.

A trivial adapter accepts everything that the model permits and observes two numbers. The plain loop makes the same calls in
the same order, and looks at no answer; it chooses no call, as walks do. A cover of all edges takes each step of the state
graph, by networkx: walks along unvisited edges, and shortest paths to the next one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import networkx as nx

from streamproof.base.options import SearchOptions
from streamproof.base.records import replace
from streamproof.driving.adapter import Adapter, Refused, serve
from streamproof.driving.choosing import Walking
from streamproof.driving.connection import AdapterSource, Connection, adapter_source, of_class
from streamproof.driving.drive import DriveOptions, drive
from streamproof.driving.driver import Driver
from streamproof.driving.suite import make_suite
from streamproof.driving.testing import subject_of
from streamproof.explicit.exploration import explore
from streamproof.selection import selected

LEASE = Path(__file__).resolve().parents[1] / "examples" / "lease" / "lease.py"
MODEL = '''
from streamproof import Model, Range, State, action, require


class Counters(Model):
    """Two counters."""

    top: int = 30

    def state(self):
        return State(a=Range(0, self.top), b=Range(0, self.top))

    @action
    def left(self, s):
        require(s.a < self.top)
        s.a += 1

    @action
    def right(self, s):
        require(s.b < self.top)
        s.b += 1

    @action
    def back(self, s):
        require(s.a > 0 and s.b > 0)
        s.a, s.b = 0, 0
'''


class Trivial(Adapter):
    """Two counters."""

    def reset(self, parameters: Mapping[str, Any], seed: int) -> None:
        """Both are 0."""
        self.top, self.a, self.b = parameters["top"], 0, 0

    def left(self) -> None:
        """One more."""
        if self.a == self.top:
            raise Refused("full")
        self.a += 1

    def right(self) -> None:
        """One more."""
        if self.b == self.top:
            raise Refused("full")
        self.b += 1

    def back(self) -> None:
        """Both are 0 again."""
        if not (self.a and self.b):
            raise Refused("empty")
        self.a = self.b = 0

    def observe(self, of: list[str] | None) -> dict[str, int]:
        """Both."""
        return {"a": self.a, "b": self.b}


class Recorded(Connection):
    """A connection that keeps the calls."""

    calls: list[Mapping[str, Any]] = []  # noqa: RUF012 -- of one drive at a time

    def __init__(self, inner: Connection) -> None:
        self.inner = inner

    def call(self, call: Mapping[str, Any]) -> Any:
        """Keeps a call."""
        Recorded.calls.append(call)
        return self.inner.call(call)

    def close(self) -> None:
        """Ends the adapter."""
        self.inner.close()


def seconds(works: Mapping[str, Callable[[], object]], clock: Callable[[], float]) -> dict[str, float]:
    """The median time of nine runs of each, in turn."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(9):
        for name, work in works.items():
            begun = clock()
            work()
            found[name].append(clock() - begun)
    return {name: median(times) for name, times in found.items()}


def speed(folder: Path) -> None:
    """Calls a second of the driver and of a plain loop, in this process and through a process."""
    (folder / "counters.py").write_text(MODEL)
    subject = subject_of(selected(str(folder / "counters.py")))
    command = f"{sys.executable} {Path(__file__).resolve()} --serve"
    print("| adapter | calls | of | driver: calls a second | plain loop | ratio |\n|---|---|---|---|---|---|")
    for name, source, walks in (
        ("a class", of_class(Trivial), 100),
        ("a class", of_class(Trivial), 1000),
        ("a process", adapter_source(command), 20),
    ):
        in_process = name == "a class"
        options = DriveOptions(walks=walks, steps=100, seed=1)
        Recorded.calls = []
        drive(subject, AdapterSource(name, lambda source=source: Recorded(source.connect())), options=options)  # type: ignore[misc]
        calls = Recorded.calls
        with Driver(subject, source, 1) as driver:
            walking = Walking(driver, options.steps)
            scripts = [driver.run(f"walk-{n}", walking).script for n in range(walks)]
        works: dict[str, Callable[[], object]] = {
            "scripts": partial(drive, subject, source, scripts, replace(options, walks=0)),
            "walks": partial(drive, subject, source, options=options),
            "loop": partial(plain_loop, calls, None if in_process else command),
        }
        found = seconds(works, time.process_time if in_process else time.perf_counter)
        for of in ("scripts", "walks"):
            rates = (
                f"{len(calls) / found[of]:,.0f} | {len(calls) / found['loop']:,.0f} | {found[of] / found['loop']:.1f}"
            )
            print(f"| {name} | {len(calls):,} | {of} | {rates} |", flush=True)


def plain_loop(calls: list[Mapping[str, Any]], command: str | None) -> None:
    """Makes the calls, of a class in this process or of a command."""
    if command is None:
        made = Trivial()
        for call in calls:
            made.answer(call)
        return
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen(command.split(), **pipes) as process:  # type: ignore[call-overload]
        for number, call in enumerate(calls, 1):
            process.stdin.write(json.dumps({"id": number, **call}) + "\n")
            json.loads(process.stdout.readline())
        process.stdin.close()


def edge_cover(model: str, parameters: Mapping[str, Any]) -> tuple[int, int, int]:
    """States, edges, and steps of scripts that take every edge, by networkx."""
    subject = subject_of(selected(model, parameters=parameters))
    explored = explore(replace(subject.system, properties=(), lemmas=()), SearchOptions(deadlock=False))
    found = explored.search.graph()
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(found.states))
    graph.add_edges_from(zip(found.sources.tolist(), found.targets.tolist(), strict=True))
    left = {node: list(graph.out_edges(node, keys=True)) for node in graph}
    depths = nx.multi_source_dijkstra_path_length(graph, set(range(found.initial)), weight=None)
    steps = 0
    for first in sorted(graph, key=lambda n: depths[n]):
        while left[first]:
            node = first
            steps += depths[node]
            while left[node]:
                _, node, _ = left[node].pop()
                steps += 1
    return found.states, found.steps, steps


def sizes() -> None:
    """Steps of suites beside those of edge covers, and the time of a large one."""
    print(
        "\n| model | states | edges | suite: scripts, steps, at least | edge cover: steps | s |\n|---|---|---|---|---|---|"
    )
    rows: list[tuple[str, dict[str, Any], bool]] = [
        (str(LEASE), {}, True),
        ("reference.two_phase_commit", {}, True),
        ("task_attempt", {}, True),
        ("slot_pool", {}, True),
        ("reference.two_phase_commit", {"resource_managers": 5}, True),
        ("reference.two_phase_commit", {"resource_managers": 8}, False),
    ]
    for model, parameters, covers in rows:
        subject = subject_of(selected(model, parameters=parameters))
        begun = time.perf_counter()
        made = make_suite(subject, 20_000_000, variants=False)
        spent = time.perf_counter() - begun
        _, edges, steps = edge_cover(model, parameters) if covers else (0, "", "")
        cover = f"{edges:,} | {len(made.scripts):,}, {made.steps:,}, {made.least:,} | {steps:,}" if covers else (
            f" | {len(made.scripts):,}, {made.steps:,}, {made.least:,} | "
        )  # fmt: skip
        print(f"| {made.system.heading} | {made.states:,} | {cover} | {spent:.1f} |", flush=True)


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve(Trivial)
    else:
        import tempfile

        with tempfile.TemporaryDirectory() as place:
            speed(Path(place))
        sizes()
