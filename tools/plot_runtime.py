"""Plots of the runtime in simulation, whose figures are the same on every machine: `docs/images/runtime-*.svg`.

`restarts`: what is made again after a crash, by failover strategy. `credit`: buffers that wait in front of a slow
receiver, with and without credit-based flow control. `spill`: what is on disk, by the input policy of a loop.
"""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Callable, Mapping, Sequence
from math import floor, log10
from pathlib import Path

from loop_policies import middle
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.input_policies import POLICIES
from streamproof_runtime.simulator.faults import CRASH, Fault
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.subtasks.flow import FlowRules
from streamproof_runtime.variants.failover_variants import MASTERS
from streamproof_runtime.variants.flow_variants import FLOWS

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
COLOURS = ("#1f5fa8", "#c8501e", "#2e8b57", "#7a4fa0", "#777")
Line = Sequence[tuple[float, float]]


def chart(title: str, across: str, up: str, lines: Mapping[str, Line], *, names_on_left: bool = False) -> str:
    """A chart of lines as SVG; both axes begin at 0. The names of the lines are on the right, or on the left below `up`."""
    width, height, left, top = 560, 300, 60, 40
    right = 4 * step_of(max(x for line in lines.values() for x, _ in line) / 4)
    high = 4 * step_of(max(y for line in lines.values() for _, y in line) / 4)

    def place(x: float, y: float) -> str:
        return f"{left + x / right * (width - left - 20):.1f},{height - 45 - y / high * (height - 45 - top):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="18" font-weight="bold">{title}</text>',
        f'<polyline points="{place(0, high)} {place(0, 0)} {place(right, 0)}" fill="none" stroke="#555"/>',
    ]
    for at in range(5):
        x, y = place(right * at / 4, high * at / 4).split(",")
        parts.append(f'<text x="{x}" y="{height - 28}" text-anchor="middle">{right * at / 4:g}</text>')
        parts.append(f'<text x="{left - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{high * at / 4:,.6g}</text>')
    parts.append(f'<text x="{(left + width) / 2:.0f}" y="{height - 8}" text-anchor="middle">{across}</text>')
    parts.append(f'<text x="{left}" y="34" fill="#555">{up}</text>')
    for at, (name, line) in enumerate(lines.items()):
        points = " ".join(place(x, y) for x, y in line)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[at]}" stroke-width="2"/>')
        at_end = f'x="{width - 20}" y="{18 + 16 * at}" text-anchor="end"'
        where = f'x="{left + 10}" y="{58 + 16 * at}"' if names_on_left else at_end
        parts.append(f'<text {where} fill="{COLOURS[at]}">{name}</text>')
    return "\n".join((*parts, "</svg>\n"))


def step_of(least: float) -> float:
    """The least round step that is not smaller."""
    unit = 10 ** floor(log10(least)) if least > 0 else 1
    return next(step * unit for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * unit >= least)


def made(outcome_events: Sequence[str]) -> int:
    """Buffers that subtasks made or processed."""
    return sum(event in ("record_produced", "record_processed") for event in outcome_events)


def restarts() -> str:
    """Buffers made again after a crash of one of three TaskExecutors, by the time of the crash; the mean of ten seeds."""
    job = runpy.run_path(str(ROOT / "examples" / "sales.py"))["job"]

    def cost(master: type[JobMaster], at: int) -> float:
        total = 0
        for seed in range(10):
            counts = []
            for faults in ([], [Fault(CRASH, at, ("tm-1",), MILLISECOND)]):
                outcome = Simulation(job(), seed=seed, master_type=master, faults_given=faults, buffers=2).run()
                counts.append(made([entry[2] for entry in outcome.entries]))
            total += counts[1] - counts[0]
        return total / 10

    strategies: Mapping[str, type[JobMaster]] = {
        "regions, backtracking": JobMaster,
        "restart-all": MASTERS["restart-all"],
    }
    times = [MILLISECOND * at // 10 for at in range(0, 41, 4)]
    return chart(
        "Restart cost by failover strategy: sales.py, one crash",
        "time of the crash in milliseconds of virtual time",
        "buffers made again",
        {name: [(at / MILLISECOND, cost(master, at)) for at in times] for name, master in strategies.items()},
    )


def credit() -> str:
    """The longest queue in front of a receiver that takes its turn after the sender, by the number of buffers sent."""

    def longest(flow: FlowRules | None, records: int) -> float:
        job = Job("slow")
        job.source("numbers", range(records)).process("slow", lambda _, record: [record]).collect("all")
        run = Simulation(job, script={}, slots=1, buffers=8, flow=flow)  # always the first that is ready
        run.records = 1
        run.run()
        return max(host.executor.longest[False] for host in run.hosts.values())

    rules: Mapping[str, FlowRules | None] = {"with credits": None, "without": FLOWS["no-credit"]}
    return chart(
        "A receiver slower than its sender, 8 exclusive and 8 floating buffers",
        "buffers sent",
        "largest number of buffers that wait in a channel",
        {name: [(n, longest(flow, n)) for n in range(0, 401, 40)] for name, flow in rules.items()},
    )


def spill() -> str:
    """The most items on disk at a time, by the number of records that enter a loop that doubles each three times."""
    policies = sorted((p for p in POLICIES if p != "any"), key=lambda p: -middle("largest_spill", p, 60, 2))
    return chart(
        "Spill volume by input policy: each record becomes eight in three rounds",
        "records",
        "items on disk at a time, median of nine seeds",
        {p: [(0, 0), *((n, middle("largest_spill", p, n, 2)) for n in range(10, 61, 10))] for p in policies},
        names_on_left=True,
    )


PLOTS: Mapping[str, Callable[[], str]] = {"restarts": restarts, "credit": credit, "spill": spill}
"""The plots by name."""


def main() -> None:
    """Draws the plots that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*PLOTS], help="Plot to draw. Default: all.")
    parser.add_argument("--out", type=Path, default=IMAGES, metavar="DIR", help="Folder of the images.")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in [given.only] if given.only else PLOTS:
        (given.out / f"runtime-{name}.svg").write_text(PLOTS[name](), encoding="utf-8")


if __name__ == "__main__":
    main()
