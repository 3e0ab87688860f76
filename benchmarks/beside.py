"""This checkout beside an older one: the same checks, alternately, with their processor time and peak memory.

    python benchmarks/beside.py OLDER [--runs 5] [--only PART] [--tiny] [--huge]

OLDER is the folder of another checkout of the project with an environment in its .venv. A row is one model: those of
explorer.py, or with `--tiny` those with fewer than 5,000 states. Printed are the least processor time of the older and of
this checkout with one worker, their quotient (above 1: slower than before), least elapsed times, and peak memory. The least
of several, since other programs make a time longer, never shorter. A first run of each fills its cache and is not counted.
Where the numbers of states differ, the line ends with those of the older one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from explorer import tasks
from start_up import TINY, every

from streamproof.base.errors import Exit
from streamproof.base.seals import CACHE_VARIABLE


@dataclass(frozen=True)
class Measured:
    """One check: times in seconds, peak memory in bytes, distinct and generated states."""

    processor: float
    elapsed: float
    peak: int
    counts: tuple[int, int]


def check(python: str, words: Sequence[str], folder: str) -> Measured | None:
    """One check in a new process; None if the checkout does not have the model, property or parameter."""
    command = [python, "-m", "streamproof", "check", *words, "-q", "--json", "-"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment[CACHE_VARIABLE] = str(Path(folder) / "cache")
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    elapsed, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode == Exit.USAGE:
        return None
    answer = json.loads(done.stdout)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    counts = answer["states"]["distinct"], answer["states"]["generated"]
    return Measured(processor, elapsed, answer["memory"]["peak_bytes"], counts)


def least(found: Sequence[Measured]) -> Measured:
    """The least of each figure of several checks of one model. Ends the program if their counts differ."""
    if len({one.counts for one in found}) > 1:
        raise SystemExit(f"the counts differ: {found}")
    times = min(one.processor for one in found), min(one.elapsed for one in found)
    return Measured(*times, min(one.peak for one in found), found[0].counts)


def rows(*, tiny: bool, huge: bool) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """Title and command-line words of each model, and whether it is a huge one."""
    if tiny:
        for words in every(variants=False):
            yield " ".join(words), (*words, "--max-states", str(TINY), "--workers", "1"), False
        return
    for task in tasks():
        if huge or not task.huge:
            names = (word for name in task.properties for word in ("--property", name))
            yield task.title, (*task.words, *names, "--workers", "1"), task.huge


def main() -> None:
    """Print a line per model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("older", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--huge", action="store_true")
    given = parser.parse_args()
    pythons = str(given.older.resolve() / ".venv" / "bin" / "python"), sys.executable
    print("model | states | processor s, older | this | this / older | elapsed s, older | this | MiB, older | this")
    with tempfile.TemporaryDirectory() as before, tempfile.TemporaryDirectory() as now:
        for title, words, is_huge in rows(tiny=given.tiny, huge=given.huge):
            if given.only not in title:
                continue
            places = tuple(zip(pythons, (before, now), strict=True))
            first = [check(python, words, folder) for python, folder in places]
            if None in first:
                print(f"{title} | {'only' if first[1] else 'not'} here", flush=True)
                continue
            if given.tiny and first[1] and first[1].counts[0] >= TINY:
                continue
            runs = [
                [check(python, words, folder) for python, folder in places] for _ in range(1 if is_huge else given.runs)
            ]
            older, this = (least([one for one in column if one]) for column in zip(*runs, strict=True))
            differ = (
                ""
                if older.counts == this.counts
                else f" | older: {older.counts[0]:,} states, {older.counts[1]:,} generated"
            )
            print(
                f"{title} | {this.counts[0]:,} | {older.processor:.2f} | {this.processor:.2f} | "
                f"{this.processor / older.processor:.2f} | {older.elapsed:.2f} | {this.elapsed:.2f} | "
                f"{older.peak >> 20} | {this.peak >> 20}{differ}",
                flush=True,
            )


if __name__ == "__main__":
    main()
