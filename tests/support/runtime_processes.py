"""Runs of the runtime on processes, and what is left of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from streamproof_runtime.command import Processes

PROGRAM = Path(sys.executable).parent / "streamproof"
MARK = "STREAMPROOF_TEST_RUN"
"""The variable of the environment by which the processes of a run are found."""


def run(job: Path, logs: Path | None = None, *, executors: int = 2, slots: int = 2, **more: Any) -> dict[str, Any]:
    """A run of a job file; `logs` is a folder that exists."""
    settings = {"variant": None, "kills": (), "restarts": 10, "seconds": 300.0, **more}
    return Processes(job, executors=executors, slots=slots, **settings).run(logs, lambda _: None)


def started(job: Path, folder: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """The command line running a job, in a session of its own, and the mark of its processes."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [PROGRAM, "run", str(job), "--taskmanagers", "2", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, MARK: mark, "TMPDIR": str(folder)},
        start_new_session=True,
    )
    return process, mark


def marked(mark: str) -> dict[int, list[str]]:
    """The command lines of the living processes with a mark, by their numbers."""
    found = {}
    for place in Path("/proc").iterdir():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue
        try:
            if f"{MARK}={mark}".encode() in (place / "environ").read_bytes():
                found[int(place.name)] = (place / "cmdline").read_text().split("\0")
        except OSError:  # it has ended
            continue
    return found


def wait_until(condition: Any) -> None:
    """Waits for what must happen; the time limit of the test ends a wait in vain."""
    while not condition():
        time.sleep(0.02)
