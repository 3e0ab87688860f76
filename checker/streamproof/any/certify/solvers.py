"""Z3 and cvc5, each in a separate process that is killed at its time limit."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from streamproof.base.options import MOST_PATIENCE
from streamproof.base.records import dataclass

PATIENCE = 60.0
"""Time limit of a solver for one script, in seconds."""
GRACE = 15.0
"""Seconds beyond twice the limit after which an unresponsive solver is killed."""
UNSAT, SAT, UNKNOWN, ERROR = "unsat", "sat", "unknown", "error"
PROGRAM = Path(__file__).with_name("solver_process.py")


@dataclass(frozen=True, slots=True)
class Answers:
    """The version of a solver, and its answer to each script."""

    solver: str
    version: str
    answers: tuple[str, ...]


def present(solver: str) -> bool:
    """Whether the Python package of a solver is installed."""
    return importlib.util.find_spec(solver) is not None


def solve(solver: str, scripts: Sequence[str], report: Callable[[str], None], seconds: float = PATIENCE) -> Answers:
    """The answers of `solver` (``z3`` or ``cvc5``) to each script; ``unknown`` for a crash or timeout."""
    version, answers = "", list[str]()
    seconds = min(seconds, MOST_PATIENCE)
    while len(answers) < len(scripts):
        done = len(answers)
        version, some = _run(solver, scripts[done:], seconds, lambda n, done=done: report(_shown(solver, done + n)))  # type: ignore[misc]
        answers += some
        if len(answers) < len(scripts):
            answers.append(UNKNOWN)
    return Answers(solver, version, tuple(answers))


def _shown(solver: str, done: int) -> str:
    return f"{done:,} obligation{'' if done == 1 else 's'} answered by {solver}"


def _run(solver: str, scripts: Sequence[str], seconds: float, report: Callable[[int], None]) -> tuple[str, list[str]]:
    """The version and the answers of one process, up to the script at which it ended."""
    command = [sys.executable, "-I", str(PROGRAM), solver, str(max(1, int(1000 * seconds)))]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        json.dump(list(scripts), file)
        file.seek(0)
        process = subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        version, answers = "", list[str]()
        assert process.stdout is not None
        try:
            for number in range(len(scripts) + 1):
                alarm = threading.Timer(2 * seconds + GRACE, process.kill)
                alarm.start()
                line = process.stdout.readline()
                alarm.cancel()
                if not line.endswith("\n"):
                    break
                if number == 0:
                    version = line.strip()
                else:
                    answers.append(line.strip() if line.strip() in (UNSAT, SAT, UNKNOWN) else ERROR)
                    report(number)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    return version, answers
