"""Time from the start of the process to the verdict, for tiny bundled models: those with fewer than 5,000 states.

The median of several checks with default parameters, each in a new process. ``start_up.py MODEL ...`` measures only these
models, ``start_up.py --variants`` also all variants. Limits: 0.5 s for models with temporal properties, 0.3 s for others.

``start_up.py --modules`` counts instead how many modules of streamproof each check loads, for models of any size.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from streamproof import model_registry

TINY = 5_000
"""Upper limit on the number of states of a tiny model, exclusive."""
RUNS = 9


def check(words: Sequence[str], folder: str) -> tuple[float, int, bool]:
    """One check: seconds from the start of the process, number of states found, and whether the search was complete."""
    command = [
        sys.executable,
        "-m",
        "streamproof",
        "check",
        *words,
        "--max-states",
        str(TINY),
        "--quiet",
        "--json",
        "-",
    ]
    # As installed: with the byte code of the program at hand.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    states = json.loads(done.stdout)["states"]
    return seconds, states["distinct"], states["queue"] == 0


COUNTING = """
import atexit, sys
from streamproof.__main__ import program
ours = lambda: [name for name in sys.modules if name.partition(".")[0] == "streamproof"]
atexit.register(lambda: sys.stderr.write("loaded: " + " ".join(ours())))
program()
"""
"""The program, which prints the modules that it has loaded at its end."""


def loaded(words: Sequence[str], folder: str) -> list[str]:
    """The modules of streamproof that one check loads."""
    command = [sys.executable, "-c", COUNTING, "check", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr.rpartition("loaded: ")[2].split()


def every(variants: bool) -> Iterator[tuple[str, ...]]:
    """The command-line words of each bundled model, and its variants."""
    for name in model_registry.bundled():
        yield (name,)
        for variant in model_registry.find(name).spec.model.variants if variants else ():
            yield (name, "--variant", variant)


def main() -> None:
    """Print one line per tiny model."""
    given = [(name,) for name in sys.argv[1:] if not name.startswith("--")]
    with tempfile.TemporaryDirectory() as folder:
        for words in given or every("--variants" in sys.argv):
            if "--modules" in sys.argv:
                print(f"{len(loaded(words, folder)):6} modules  {' '.join(words)}", flush=True)
                continue
            _, states, complete = check(words, folder)  # which also leaves byte code behind
            if complete and states < TINY:
                seconds = statistics.median(check(words, folder)[0] for _ in range(RUNS))
                print(f"{seconds * 1000:6.0f} ms {states:6,} states  {' '.join(words)}", flush=True)


if __name__ == "__main__":
    main()
