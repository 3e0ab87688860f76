"""The runtime on processes: throughput and latency over loopback, the cost of tracing, and memory with a slow sink.

Throughput: records per second of a sink in another process than the source. Latency: a single record goes around a loop of
two processes. Times are taken inside the user functions, from the first record to the last, so that the start of the
processes does not count. Processor time is that of all processes, without that of a run with a few records; it depends less
on what else the machine does. With traces and without alternate; the median of the rounds is printed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
from pathlib import Path
from typing import Any

from streamproof_runtime.command import Processes
from streamproof_runtime.subtasks.flow import BUFFERS

THROUGHPUT = """
import time
from streamproof_runtime import Job

def job():
    made = Job("throughput")

    def count(context, record):
        state = context.state
        state["n"] = n = state.get("n", 0) + 1
        now = time.perf_counter()
        state.setdefault("start", now)
        return [now - state["start"]] if n == {records} else []

    made.source("numbers", range({records})).process("count", count).collect("seconds")
    return made
"""
LATENCY = """
import time
from streamproof_runtime import Job

def job():
    made = Job("latency")

    def ping(context, record):
        start, left = record
        return [(start or time.perf_counter(), left - 1)]

    def around(loop):
        pong = loop.process("pong", lambda _, r: [r])
        back = pong.process("ping", ping)
        return back.filter(lambda r: r[1]), back.filter(lambda r: not r[1]).map(lambda r: time.perf_counter() - r[0])

    made.source("one", [(0, {records} + 1)]).iterate("Loop", around).collect("seconds")
    return made
"""
SLOW = """
import time
from collections.abc import Sequence
from streamproof_runtime import Job

class Texts(Sequence):
    def __init__(self, numbers=range({records})):
        self.numbers = numbers
    def __len__(self):
        return len(self.numbers)
    def __getitem__(self, at):
        return Texts(self.numbers[at]) if isinstance(at, slice) else str(at) * (100_000 // len(str(at)))

def job():
    made = Job("slow")
    made.source("texts", Texts()).process("slow", lambda _, r: time.sleep({pause}) or ()).collect("all")
    return made
"""


FEW = 10
"""Records of a run that costs little but the start of its processes."""


def children() -> float:
    """Processor time of all processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(text: str, records: int, *, traced: bool = False, pause: str = "0.001", **more: Any) -> dict[str, Any]:
    """A run of a job on two TaskExecutors of one slot each."""
    with tempfile.TemporaryDirectory() as folder:
        job, logs = Path(folder, "job.py"), Path(folder, "logs")
        logs.mkdir()
        job.write_text(text.format(records=records, pause=pause))
        settings: dict[str, Any] = {"variant": None, "kills": (), "restarts": 0, "seconds": 600.0, **more}
        before = children()
        found = Processes(job, executors=2, slots=1, **settings).run(logs if traced else None, lambda _: None)
        found["processor"] = children() - before
    if found["wrong"]:
        raise SystemExit(found["wrong"])
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--records", type=int, default=300_000, help="Records for throughput; one in 300 goes around the loop."
    )
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    for title, text, records in (("throughput", THROUGHPUT, given.records), ("latency", LATENCY, given.records // 300)):
        seconds: dict[bool, list[float]] = {False: [], True: []}
        processor: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(given.rounds):
            for traced in (False, True):
                found, least = measured(text, records, traced=traced), measured(text, FEW, traced=traced)
                (taken,) = found["results"]["seconds"]
                seconds[traced].append(taken / records)
                processor[traced].append((found["processor"] - least["processor"]) / (records - FEW))
        for traced in (False, True):
            median, used = statistics.median(seconds[traced]), statistics.median(processor[traced]) * 1e6
            shown = f"{1 / median:,.0f} records/s" if title == "throughput" else f"{median * 1e6:,.0f} us a round"
            print(f"{title}, {'with' if traced else 'without'} trace: {shown}, {used:,.2f} us of processor time each")
    for buffers in (1, 8, 64, 2000):
        found = measured(SLOW, 1500, buffers=buffers)
        print(
            f"150 MB to a slow sink, {buffers} buffers: {found['peak_bytes'] / 1e6:.0f} MB in the larger TaskExecutor"
        )
    stalled = measured(SLOW, 1500, pause="5 if r[0] == '0' else 0")
    print(
        f"150 MB to a sink that stands still for 5 s: {stalled['peak_bytes'] / 1e6:.0f} MB in the larger TaskExecutor, "
        f"up to {stalled['longest_queue']} of {BUFFERS} buffers in a channel"
    )


if __name__ == "__main__":
    main()
