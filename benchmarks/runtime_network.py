"""The runtime's network on processes: throughput and latency by buffer timeout, and receivers beside a stalled one.

Throughput: one source, 8 subtasks by key on two TaskExecutors, as fast as they can. Latency: the same job with 1,000
records a second, from the source to the subtask. Isolation: two sources on one TaskExecutor send by one connection, to a fast
receiver and to one whose own receiver stands still for some seconds. With credits and without: `no-credit` sends all,
`blocked-connection` stops reading, as Flink did before 1.5. Medians of the rounds, which go through all settings in turn.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamproof_runtime.command import Processes

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from plot_runtime import IMAGES, chart  # noqa: E402

TIMEOUTS = (0, 1, 2, 5, 10, 20, 50, 100)
"""In milliseconds."""
CREDITS: Mapping[str, str | None] = {"with credits": None, "without": "no-credit"}
RECEIVERS: Mapping[str, str | None] = {**CREDITS, "blocked connection": "blocked-connection"}
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- runtime network -->\n", "<!-- end of runtime network -->\n"
RATE = 1000
"""Records a second of the source whose latency is measured."""
OTHERS = 50_000
"""Records of 1 kB for the receiver that stands still: more than all buffers and sockets on the way can take."""
MORE = 4
"""Times as many records for the fast receiver: it has to be at work for as long as the other one stands still."""
STALL = 3
"""Seconds that a receiver stands still."""

HEAD = """
import os, time
from collections.abc import Sequence
from streamproof_runtime import Job
from streamproof_runtime.jobs.api import Operator
from streamproof_runtime.jobs.scopes import Scope

class Items(Sequence):
    def __init__(self, numbers):
        self.numbers = numbers
    def __len__(self):
        return len(self.numbers)
    def __getitem__(self, at):
        return Items(self.numbers[at])
    def __iter__(self):
        return made(self.numbers)

def sink(stream, name, function, parallelism=1):
    stream._operator(Operator(name, Scope(), parallelism, ((function, None),), is_sink=True))
"""
KEYED = """
def made(numbers):
    start = time.perf_counter()
    for n in numbers:
        if PAUSE:
            time.sleep(max(0, start + n * PAUSE - time.perf_counter()))
        yield n, time.perf_counter() if PAUSE else 0

def receive(context, record):
    now = time.perf_counter()
    found = context.state.setdefault("records", {"first": now, "last": now, "waits": []})
    found["last"] = now
    if PAUSE:
        found["waits"].append(now - record[1])
    return ()

def job():
    job = Job("keyed")
    sink(job.source("numbers", Items(range(RECORDS))).key_by(lambda r: r[0] % 64), "receive", receive, 8)
    return job
"""
BESIDE = """
def made(numbers):
    return ((n, os.getpid(), "x" * 1000) for n in numbers)

def fast(context, record):
    now = time.perf_counter()
    found = context.state.setdefault("records", {"pids": [record[1], os.getpid()], "times": []})
    if record[0] % 1000 == 0:
        found["times"].append(now)
    return ()

def relay(context, record):
    return [(*record, os.getpid())]

def slow(context, record):
    if record[0] == 0:
        now = time.perf_counter()
        context.state["records"] = {"pids": [record[1], record[3], os.getpid()], "begin": now}
        time.sleep(STALL)
    return ()

def job():
    job = Job("beside")
    sink(job.source("one", Items(range(RECORDS))), "fast", fast)
    sink(job.source("other", Items(range(OTHERS))).process("relay", relay), "slow", slow)
    return job
"""


def measured(text: str, names: Mapping[str, object], variant: str | None, **more: Any) -> dict[str, Any]:
    """The run of a job in which names have these values."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder, "job.py")
        job.write_text(HEAD + "".join(f"{n} = {v!r}\n" for n, v in names.items()) + text, encoding="utf-8")
        found = Processes(job, variant=variant, kills=(), restarts=0, seconds=300.0, **more).run(None, lambda _: None)
    if found["wrong"]:
        raise SystemExit(found["wrong"])
    return found


def keyed(timeout: int | None, variant: str | None, records: int, pause: float) -> tuple[float, list[float]]:
    """Records a second, and the time of each record from the source to its subtask in milliseconds.

    With a pause a source step is one record, and a buffer has up to 32, which it does not reach in 100 ms.
    """
    names, size = {"PAUSE": pause, "RECORDS": records}, {"records": 32} if pause else {}
    found = measured(KEYED, names, variant, executors=2, slots=4, timeout=timeout, **size)
    parts = [part for name, part in found["results"].items() if name.startswith("receive")]
    taken = max(p["last"] for p in parts) - min(p["first"] for p in parts)
    return records / taken, [wait * 1000 for part in parts for wait in part["waits"]]


def beside(variant: str | None, records: int) -> tuple[list[tuple[float, float]], int]:
    """When the fast receiver had how many records, in seconds since the slow one has stopped, and the largest memory."""
    found = measured(BESIDE, {"STALL": STALL, "RECORDS": records, "OTHERS": OTHERS}, variant, executors=3, slots=2)
    fast, slow = found["results"]["fast"], found["results"]["slow"]
    if fast["pids"] != slow["pids"][:2] or len({*slow["pids"]}) < 3:
        raise SystemExit("the subtasks are not placed as the measurement needs them: no connection has both receivers")
    times = [time - slow["begin"] for time in fast["times"]]
    if times[-1] < 0.75 * STALL:
        raise SystemExit("the fast receiver was done before the other one went on; add --records")
    return [(time, 1000 * n) for n, time in enumerate(times) if 0 <= time <= STALL], found["peak_bytes"]


def during(line: list[tuple[float, float]]) -> float:
    """Records a second between the first and the third quarter of the stall: what was under way has arrived by then."""
    return (_by(line, 0.75 * STALL) - _by(line, 0.25 * STALL)) / (STALL / 2)


def _by(line: list[tuple[float, float]], time: float) -> float:
    return max((count for at, count in line if at <= time), default=0)


def main() -> None:
    """Prints the tables; writes them and the plots if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=400_000, help="Records for throughput.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="Write the section of docs/performance.md, and the plots.")
    given = parser.parse_args()
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    rates, waits = (defaultdict[tuple[int | None, str], list[float]](list) for _ in range(2))
    for _ in range(given.rounds):
        for timeout in (*TIMEOUTS, None):
            for name, variant in CREDITS.items():
                records = given.records // 10 if timeout == 0 else given.records
                rates[timeout, name].append(keyed(timeout, variant, records, 0)[0])
                waits[timeout, name] += keyed(timeout, variant, 2 * RATE, 1 / RATE)[1]
    rate = {of: statistics.median(found) for of, found in rates.items()}
    middle = {of: statistics.median(found) for of, found in waits.items()}
    late = {of: statistics.quantiles(found, n=100)[98] for of, found in waits.items()}
    text = "| buffer timeout | records/s with credits | without | latency with credits: median, 99 % | without |\n"
    text += "| --- | --- | --- | --- | --- |\n"
    for timeout in (*TIMEOUTS, None):
        at, without = ((timeout, name) for name in CREDITS)
        text += f"| {'no option' if timeout is None else f'{timeout} ms'} | {rate[at]:,.0f} | {rate[without]:,.0f} "
        text += f"| {middle[at]:.1f} ms, {late[at]:.1f} ms | {middle[without]:.1f} ms, {late[without]:.1f} ms |\n"
    lines: dict[str, list[tuple[float, float]]] = {}
    text += f"\n| a receiver beside one that stands still for {STALL} s | records/s meanwhile | largest memory |\n"
    text += "| --- | --- | --- |\n"
    for name, variant in RECEIVERS.items():
        found = sorted((beside(variant, MORE * given.records) for _ in range(given.rounds)), key=lambda f: during(f[0]))
        lines[name], _ = found[len(found) // 2]
        memory = statistics.median(peak for _, peak in found)
        text += f"| {name} | {during(lines[name]):,.0f} | {memory / 1e6:.0f} MB |\n"
    text += (
        f"\nMedians of {given.rounds} rounds with {given.records:,} records, {MORE} times as many beside the slow receiver. "
        f"The load average was {load:.1f} at first, "
    )
    text += f"on {cores} cores; above 0.3 other programs disturb the figures.\n"
    print(text)
    if not given.write:
        return
    plots = {
        "throughput": chart(
            "Throughput by buffer timeout, 8 subtasks by key",
            "buffer timeout in milliseconds",
            "records a second",
            {name: [(t, rate[t, name]) for t in TIMEOUTS] for name in CREDITS},
        ),
        "latency": chart(
            f"Latency by buffer timeout, {RATE:,} records a second, with credits",
            "buffer timeout in milliseconds",
            "milliseconds from source to subtask",
            {"99 %": [(t, late[t, "with credits"]) for t in TIMEOUTS]}
            | {"median": [(t, middle[t, "with credits"]) for t in TIMEOUTS]},
        ),
        "isolation": chart(
            "A fast receiver beside one that stands still, one connection",
            "seconds since the other receiver has stopped",
            "records received",
            {name: lines[name] for name in ("with credits", "blocked connection")},
        ),
    }
    for name, plot in plots.items():
        (IMAGES / f"runtime-{name}.svg").write_text(plot, encoding="utf-8")
    old = PAGE.read_text(encoding="utf-8")
    before, after = old.index(BEGIN) + len(BEGIN), old.index(END)
    PAGE.write_text(f"{old[:before]}\n{text}\n{old[after:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
