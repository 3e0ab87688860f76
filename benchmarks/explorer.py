"""The explicit engine on models of 10^4 to 10^8 states, beside Spin on the same models: docs/performance.md.

    python benchmarks/explorer.py [--runs 3] [--only PART] [--huge] [--write]

Every row is one model. Ours: the whole process, without cached code of the model; with one thread, and with the default
number of threads. Spin: `spin -a`, the C compiler and the verifier for the exported model, breadth first and depth first, the
better of the two. The counts of all runs are compared. `--huge` adds models of more than 2 * 10^7 states, where Spin is left
out; `--write` writes the page.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from random_access import rates

from streamproof.base.seals import CACHE_VARIABLE
from streamproof.exchange.promela.model import export
from streamproof.exchange.promela.spin_run import SearchOrder, SpinOptions, installed
from streamproof.exchange.promela.spin_run import run as search
from streamproof.explicit.compiled.memory import Fixed
from streamproof.explicit.compiled.search_kernels import GROUPS
from streamproof.system import System

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
SPIN_LIMIT = 20_000_000
"""Largest number of states for runs of Spin: for more, it needs more memory than the machine has."""


@dataclass(frozen=True)
class Measured:
    """One run of the explorer: counts, times and memory."""

    distinct: int
    generated: int
    depth: int
    process: float
    explore: float
    peak_bytes: int


@dataclass(frozen=True)
class Task:
    """A model, as words of the command line and as a system."""

    title: str
    words: tuple[str, ...]
    system: Callable[[], System]
    properties: tuple[str, ...] = ()
    huge: bool = False


def run(task: Task, workers: int | None, runs: int) -> Measured:
    """The run with the median time of several."""
    found = sorted((_run(task, workers) for _ in range(runs)), key=lambda m: m.process)
    return found[len(found) // 2]


@cache
def loops() -> str:
    """A cache folder with the compiled kernels of the search, and without code of any model."""
    folder = tempfile.mkdtemp(prefix="streamproof-loops-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    kept = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = folder
    try:
        for words in (1, 2, 3):
            for shards in (1, 2):
                for group in GROUPS:
                    Fixed(words, shards).function(group[0], 1)
    finally:
        os.environ.pop(CACHE_VARIABLE)
        if kept is not None:
            os.environ[CACHE_VARIABLE] = kept
    return folder


def _run(task: Task, workers: int | None) -> Measured:
    chosen = [word for name in task.properties for word in ("--property", name)]
    command = [sys.executable, "-m", "streamproof", "check", *task.words, *chosen]
    if workers is not None:
        command += ["--workers", str(workers)]
    command += ["-q", "--json", "-"]
    with tempfile.TemporaryDirectory() as folder:
        # As on a user's machine: Python's bytecode and the compiled kernels are cached.
        kept = shutil.copytree(loops(), Path(folder) / "cache")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment[CACHE_VARIABLE] = str(kept)
        begun = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=folder)
        seconds = time.perf_counter() - begun
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}") from None
    states = answer["states"]
    return Measured(
        states["distinct"],
        states["generated"],
        states["depth"],
        seconds,
        answer["seconds"]["explore"],
        answer["memory"]["peak_bytes"],
    )


def bundled(name: str, title: str, properties: tuple[str, ...] = (), *, huge: bool = False, **parameters: Any) -> Task:
    """A model of the registry."""
    from streamproof.selection import select

    given = tuple(f"{key}={value}" for key, value in parameters.items())
    words = tuple(word for text in given for word in ("-p", text))
    return Task(title, (name, *words), lambda: select(name, None, None, given, ()).system(), properties, huge)


def sized(name: str, size: str, properties: tuple[str, ...] = ()) -> Task:
    """A model of the registry at one of its sizes."""
    from streamproof.selection import select

    words = (name, "--size", size)
    return Task(f"{name}, {size}", words, lambda: select(name, None, size, (), ()).system(), properties)


def local(file: str, title: str, properties: tuple[str, ...]) -> Task:
    """A model in the folder of this file."""
    from streamproof.selection import select

    path = str(HERE / "measured" / file)
    return Task(title, (path,), lambda: select(path, None, None, (), ()).system(), properties)


def tasks() -> Iterator[Task]:
    """The models, small ones first."""
    safra = ("detection_is_right", "safra")
    yield bundled("reference.ewd840", "EWD 840, N = 4", n=4)
    yield sized("reference.ewd840", "large")
    yield sized("reference.async_termination_detection", "large")
    yield sized("reference.coffee_can", "large")
    yield bundled("reference.two_phase_commit", "two-phase commit, 6 resource managers", resource_managers=6)
    yield bundled("failover", "failover, default")
    yield sized("failover", "medium")
    yield bundled("reference.ewd998", "EWD 998, N = 3", safra, n=3)
    yield bundled("reference.two_phase_commit", "two-phase commit, 8", resource_managers=8)
    yield bundled("reference.two_phase_commit", "two-phase commit, 9", resource_managers=9)
    yield local("credit.py", "credit (one word)", ("conserved", "deadlock"))
    yield local("ring.py", "ring (two words)", ("detected_is_right",))
    safety = ("kept_while_needed", "read_where_stored", "idle_executors_only", "lost_with_connection")
    yield sized("partition_lifecycle", "large", safety)
    current = ("inputs_finished", "counted", "current", "fetchable", "bounded", "server_current", "kept")
    yield sized("regions", "large", current)
    yield sized("checkpoints", "large", ("consistent", "limited", "current", "published_is_stored", "deadlock"))
    yield sized("slot_pool", "large", ("budget", "task_in_slot", "counted", "rejection_current", "kept"))
    yield sized("cyclic", "large", ("conserved", "channel.within_capacity", "back.in_order", "counted", "deadlock"))
    yield sized("credit", "large", ("conservation", "no_overflow", "pool_conserved", "within_limit"))
    yield bundled("reference.two_phase_commit", "two-phase commit, 10", huge=True, resource_managers=10)
    yield bundled("reference.ewd998", "EWD 998, N = 4", safra, huge=True, n=4)
    owners = ("exclusive", "no_leak", "owned", "co_located", "deadlock")
    yield bundled("slots", "slots, large", owners, huge=True, instances=3, tasks="A H0 T0 Q Q")


def spin(task: Task, runs: int, expected: Measured) -> tuple[float, str] | None:
    """Spin's better median, and its search order; None without Spin, or if the model is too large for it."""
    if installed() is not None or expected.distinct > SPIN_LIMIT:
        return None
    model = export(task.system())
    bits = max(20, expected.distinct.bit_length())
    best: tuple[float, str] | None = None
    for order, name in ((SearchOrder.BREADTH_FIRST, "BFS"), (SearchOrder.DEPTH_FIRST, "DFS")):
        times = []
        for _ in range(max(1, runs - 2)):
            report = search(model, SpinOptions(order=order, memory=16_384, hash_bits=bits, depth=20_000_000))
            if report.truncated is not None:
                break
            # The choice of an initial state adds states and steps; Spin rounds counts of more than eight digits.
            spare = model.candidates + 2
            steps = report.stored + report.matched
            if not (
                abs(report.stored - expected.distinct) <= spare
                and abs(steps - expected.generated) <= spare + expected.generated / 1e7
            ):
                raise SystemExit(f"{task.title}: Spin counts {report.stored} and {steps}, we {expected}")
            times.append(report.seconds.total)
        if times and (best is None or statistics.median(times) < best[0]):
            best = (statistics.median(times), name)
    return best


def row(task: Task, runs: int) -> list[str]:
    """One line of the table."""
    few = max(1, runs // 2) if task.huge else runs
    alone, own = run(task, 1, few), run(task, None, few)
    if replace(own, process=0, explore=0, peak_bytes=0) != replace(alone, process=0, explore=0, peak_bytes=0):
        raise SystemExit(f"{task.title}: one thread counts {alone}, several count {own}")
    peer = spin(task, runs, alone)
    rate = alone.generated / alone.explore / 1e6
    share = "-"
    if alone.distinct > 1_000_000:
        table = max(16, alone.distinct * 12 >> 20)
        share = f"{100 * rate * 1e6 / rates(table, reads=1 << 24):.0f} %"
    return [
        task.title,
        f"{alone.distinct:,}",
        f"{alone.generated:,}",
        str(alone.depth),
        f"{alone.process:.2f}",
        f"{rate:.0f}",
        share,
        f"{alone.peak_bytes / alone.distinct:.0f}" if alone.distinct > 1_000_000 else "-",
        f"{own.process:.2f}",
        f"{alone.explore / own.explore:.2f}",
        "-" if peer is None else f"{peer[0]:.2f} ({peer[1]})",
        "-" if peer is None else f"{peer[0] / own.process:.1f}",
    ]


HEADERS = [
    "model", "distinct", "generated", "depth", "one thread, s", "M steps/s", "share of limit", "bytes/state", "seconds",
    "speed-up", "Spin, s", "Spin / ours",
]  # fmt: skip


def main() -> None:
    """Measure, print, and write the page if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--huge", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = []
    print(" | ".join(HEADERS), flush=True)
    for task in tasks():
        if given.only in task.title and (given.huge or not task.huge):
            rows.append(row(task, given.runs))
            print(" | ".join(rows[-1]), flush=True)
    if given.write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


def page(text: str, rows: list[list[str]]) -> str:
    """The text of docs/performance.md with the measured figures instead of older ones."""
    machine = f"{os.cpu_count()} cores, {_processor()}, Python {platform.python_version()}"
    text, found = re.subn(r"(?<=--write`\) on ).+", lambda _: f"{machine}.", text, count=1)
    assert found, "the page does not name the machine"
    reads = [[f"{size} MiB", f"{rates(size) / 1e6:.0f}"] for size in (64, 256, 1024, 4096)]
    for lines in ([HEADERS, *rows], [["table", "M reads/s"], *reads]):
        head, *body = (f"| {' | '.join(cells)} |\n" for cells in lines)
        dashes = f"| {' | '.join(['---'] * len(lines[0]))} |\n"
        before, here, rest = text.partition(head)
        assert here, f"the page has no table {head}"
        text = before + head + dashes + "".join(body) + re.sub(r"\A(\|.*\n)*", "", rest)
    return text


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
