"""Time from the save of a model to its verdict under ``check --watch``, beside a new ``check``, for three small models.

The median and the smallest of several saves, each with other content. Limit: 1 s. Other programs on the machine count: the
load at the end is printed.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import streamproof_models.reference

MODELS = ("die_hard", "two_phase_commit", "dining_philosophers")
SAVES = 15
LIMIT = 1.0
PROGRAM = (sys.executable, "-m", "streamproof", "check")


def until_watching(process: subprocess.Popen[str]) -> float:
    """The time at which the run that is going on has ended."""
    assert process.stderr is not None
    for line in process.stderr:
        if "watching" in line:
            return time.perf_counter()
    raise SystemExit("the watch has ended")


def watched(file: Path) -> list[float]:
    """The seconds from each save to the verdict."""
    process = subprocess.Popen(
        [*PROGRAM, file.name, "-q", "--watch"],
        cwd=file.parent,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    found = []
    try:
        until_watching(process)
        for number in range(SAVES):
            time.sleep(0.3)  # it loads for the next run what the first one needed
            file.write_text(f"{file.read_text()}# {number}\n")
            begun = time.perf_counter()
            found.append(until_watching(process) - begun)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
    return found


def checked(file: Path) -> list[float]:
    """The seconds of new checks."""
    found = []
    for _ in range(SAVES):
        begun = time.perf_counter()
        subprocess.run([*PROGRAM, file.name, "-q"], cwd=file.parent, capture_output=True, check=False)
        found.append(time.perf_counter() - begun)
    return found


def main() -> None:
    """Prints the table; ends with 1 if a median is above the limit."""
    sources = Path(streamproof_models.reference.__path__[0])
    late = False
    print("| model | save to verdict: median, smallest [s] | new check: median, smallest [s] |\n|---|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            file = Path(folder) / f"{name}.py"
            file.write_text((sources / file.name).read_text())
            saves, checks = watched(file), checked(file)
            cells = [f"{statistics.median(times):.2f}, {min(times):.2f}" for times in (saves, checks)]
            print(f"| {name} | {cells[0]} | {cells[1]} |", flush=True)
            late = late or statistics.median(saves) > LIMIT
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    sys.exit(late)


if __name__ == "__main__":
    main()
